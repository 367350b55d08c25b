"""Partly cached tables: segments are loaded, evicted and outdated, and reads show the contents of the database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.cache.warming import background_loads
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, ByPartialValues, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from tests.cache.conftest import MakeServer
from tests.cache.evictions import evict_at_random
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

T = TableName(CATALOG, "d", "t")
KEYS = (("dt", "string"), ("hr", "int"))
DAYS = [f"2024-01-{day:02d}" for day in range(1, 11)]
HOURS = 6
WINDOW = 8


@contextmanager
def in_parts(budget_for: int = 10**9) -> Iterator[None]:
    """Segments of eight partitions, of tables that exceed their share of the budget."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(segments, "SEGMENT_PARTITIONS", WINDOW)
        patching.setattr(background_loads, "SMALLEST_WINDOW", WINDOW)
        patching.setattr(background_loads, "BYTES_A_PARTITION", budget_for)
        yield


def prepared(make: MakeServer, options: CacheOptions | None = None) -> tuple[Server, Server]:
    """Returns one server that caches, and one to write through."""
    here = make(options or CacheOptions(load_at_once_partitions=2))
    elsewhere = make()
    create_database(elsewhere.objects, "d")
    elsewhere.objects.writes.tables.create_table(table("d", "t", KEYS))
    values = [(day, str(hour)) for day in DAYS for hour in range(HOURS)]
    elsewhere.objects.writes.partitions.add_partitions(T, [partition(table("d", "t"), one) for one in values])
    here.poller.step()
    here.store.reads.tables.get_table(T)
    here.reasons()
    return here, elsewhere


def day(which: int) -> Callable[[MetadataStore], Any]:
    return lambda store: store.reads.partitions.get_partitions(PartitionQuery(T, ByFilter(f'dt = "{DAYS[which]}"')))


def hour(which: int, at: int) -> Callable[[MetadataStore], Any]:
    return lambda store: store.reads.partitions.get_partition(T, [DAYS[which], str(at)])


READS: list[Callable[[MetadataStore], Any]] = [
    *(day(which) for which in range(len(DAYS))),
    *(hour(which, which % (HOURS + 1)) for which in range(len(DAYS))),
    # Empty selections, which touch no segment at all.
    lambda store: store.reads.partitions.get_partitions(PartitionQuery(T, ByNames(()))),
    lambda store: store.reads.partitions.get_partitions(PartitionQuery(T, ByFilter('dt = "a" and dt = "b"'))),
    lambda store: store.reads.partitions.get_partition_count(PartitionQuery(T, ByFilter('dt < "a" and dt > "b"'))),
    lambda store: store.reads.partitions.get_partition_values(PartitionQuery(T, ByNames(())), ["hr"]),
    lambda store: store.reads.partitions.get_partition_names(PartitionQuery(T, ByPartialValues((DAYS[4], "")))),
    lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(T, ByNames((f"dt={DAYS[0]}/hr=1", f"dt={DAYS[7]}/hr=5", f"dt={DAYS[7]}/hr=99")))
    ),
    lambda store: store.reads.partitions.get_partition_count(PartitionQuery(T, ByFilter("hr > 3"))),
    lambda store: store.reads.partitions.get_partition_names(PartitionQuery(T, AllPartitions(), 3)),
    lambda store: store.reads.partitions.get_partition_values(PartitionQuery(T), ["dt"]),
    lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(T, ByFilter(f'dt in ("{DAYS[1]}", "{DAYS[8]}") and hr < 2'))
    ),
]


def compare(server: Server) -> None:
    for number, ask in enumerate(READS):
        expected = encoded(lambda ask=ask: ask(server.objects))
        assert encoded(lambda ask=ask: ask(server.store)) == expected, number
    assert Reason.CORRUPT not in server.reasons(), "what is held was dropped, since it could not be read"
    invariants.check(server.cache.shared)


def held(server: Server) -> PartitionSet:
    found = server.cache.shared.tables[T].facets[Facet.PARTITIONS]
    assert isinstance(found, PartitionSet)
    return found


def load(server: Server, *asks: Callable[[MetadataStore], Any]) -> None:
    """As two concurrent readers of each do."""
    for ask in asks:
        for _ in range(2):
            ask(server.store)
        server.cache.background.drain()
    server.reasons()


def answers(server: Server, ask: Callable[[MetadataStore], Any]) -> Reason:
    server.reasons()
    assert encoded(lambda: ask(server.store)) == encoded(lambda: ask(server.objects))
    return server.reasons()[-1]


def what_was_asked_for_is_held_and_no_more(make: MakeServer) -> None:
    with in_parts():
        here, _ = prepared(make)
        load(here, day(5), day(1))
        assert held(here).is_segmented
        assert not held(here).complete
        assert 12 <= len(held(here)) <= 3 * 2 * WINDOW
        assert [answers(here, day(which)) for which in (5, 1, 9)] == [Reason.HIT, Reason.HIT, Reason.NOT_CACHED]
        assert answers(here, hour(5, 3)) is Reason.HIT
        compare(here)


def what_lies_beside_a_segment_is_not_taken_for_absent(make: MakeServer) -> None:
    """A filter without a range needs all segments."""
    with in_parts():
        here, _ = prepared(make)
        load(here, day(5))
        for ask in READS:
            assert encoded(lambda ask=ask: ask(here.store)) == encoded(lambda ask=ask: ask(here.objects))
        assert answers(here, READS[-4]) is Reason.NOT_CACHED


def every_name_lies_in_one_segment(make: MakeServer) -> None:
    """Loaded piece by piece, with boundaries anywhere, the table is complete."""
    with in_parts():
        here, _ = prepared(make)
        for which in (5, 0, 9, 4, 6, 2, 7, 1, 3, 8):
            load(here, day(which))
            compare(here)
        here.cache.background.drain()
        for which in range(len(DAYS)):
            assert answers(here, day(which)) is Reason.HIT
        assert len(held(here)) == len(DAYS) * HOURS


def changed(which: int, at: int) -> Partition:
    return partition(table("d", "t"), (DAYS[which], str(at)), changed="yes")


def what_an_event_names_while_a_segment_is_loaded_is_missing_from_it(make: MakeServer) -> None:
    with in_parts():
        here, elsewhere = prepared(make)
        changes = iter([changed(5, 2)])

        def change() -> None:
            for one in changes:
                elsewhere.objects.writes.partitions.alter_partitions(T, [one])
                here.poller.step()

        for _ in range(2):
            day(5)(here.store)
        here.during_loads(change)
        here.cache.background.drain()
        assert [*held(here).missing] == [(DAYS[5], "2")]
        compare(here)
        assert answers(here, day(5)) is Reason.HIT


def what_an_event_does_to_all_partitions_while_a_segment_is_loaded_discards_it(make: MakeServer) -> None:
    with in_parts():
        here, elsewhere = prepared(make)
        load(here, day(0))
        is_done: list[bool] = []

        def change() -> None:
            if not is_done:
                is_done.append(True)
                moved = elsewhere.objects.reads.tables.get_table(T)
                moved.sd.location += "_moved"
                elsewhere.objects.writes.tables.alter_table(T, moved)
                here.poller.step()

        for _ in range(2):
            day(5)(here.store)
        here.during_loads(change)
        here.cache.background.drain()
        entry = here.cache.shared.tables.get(T)
        assert entry is None or Facet.PARTITIONS not in entry.facets
        compare(here)


SCENARIOS = [
    what_was_asked_for_is_held_and_no_more,
    what_lies_beside_a_segment_is_not_taken_for_absent,
    every_name_lies_in_one_segment,
    what_an_event_names_while_a_segment_is_loaded_is_missing_from_it,
    what_an_event_does_to_all_partitions_while_a_segment_is_loaded_discards_it,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_segments(scenario: Callable[[MakeServer], None], servers: MakeServer) -> None:
    scenario(servers)


def test_what_is_answered_of_an_evicted_segment_is_forgotten_with_its_change(servers: MakeServer) -> None:
    """Replies are cached by their bytes while the entry does not change: an eviction is no change, an event is."""
    with in_parts():
        here, elsewhere = prepared(servers)
        load(here, day(5), day(0))
        entry = here.cache.shared.tables[T]
        version = entry.version
        with here.cache.shared.view():
            held(here).evict(held(here).segment_of(f"dt={DAYS[5]}/hr=1"))
        assert entry.version == version
        elsewhere.objects.writes.partitions.alter_partitions(T, [changed(5, 1)])
        here.poller.step()
        assert entry.version > version
        compare(here)


def test_a_table_of_ten_times_the_budget_is_answered_and_the_budget_is_kept(servers: MakeServer) -> None:
    with in_parts(budget_for=200):
        here, elsewhere = prepared(servers, CacheOptions(load_at_once_partitions=2, budget_bytes=40_000))
        shared = here.cache.shared
        chance = random.Random(20_241_125)
        hits = 0
        for number in range(60):
            which = min(int(chance.expovariate(0.6)), len(DAYS) - 1)
            hits += answers(here, day(which)) is Reason.HIT
            if number % 3 == 0:
                here.cache.background.drain()
            if number % 10 == 9:
                elsewhere.objects.writes.partitions.alter_partitions(T, [changed(which, number % HOURS)])
                here.poller.step()
            assert shared.weight <= shared.budget_bytes
            invariants.check(shared)
        assert hits >= 20
        assert shared.evictions > 0


def test_a_segment_is_evicted_before_a_table_that_was_read_after_it(servers: MakeServer) -> None:
    with in_parts():
        here, _ = prepared(servers)
        load(here, day(0), day(9))
        here.objects.writes.tables.create_table(table("d", "small"))
        here.poller.step()
        here.store.reads.tables.get_table(TableName(CATALOG, "d", "small"))
        day(9)(here.store)
        shared = here.cache.shared
        with shared.view():
            whole, shared.budget_bytes = shared.budget_bytes, shared.weight - 1
            shared._evict_segment(float("inf"))
            shared.budget_bytes = whole
        assert answers(here, day(0)) is Reason.NOT_CACHED
        assert answers(here, day(9)) is Reason.HIT
        assert TableName(CATALOG, "d", "small") in shared.tables
        invariants.check(shared)


@pytest.mark.parametrize("seed", [1, pytest.param(None, marks=[pytest.mark.soak])])
def test_whatever_is_evicted_and_loaded_meanwhile_reads_are_right(seed: int | None, servers: MakeServer) -> None:
    seed = random.randrange(2**32) if seed is None else seed
    print(f"seed {seed}")
    chance = random.Random(seed)
    with in_parts(budget_for=chance.choice([200, 10**9])):
        here, elsewhere = prepared(servers)
        pending: list[Callable[[], object]] = []

        def during_a_load() -> None:
            if chance.random() < 0.2:
                evict_at_random(here.cache.shared, chance)
            if pending and chance.random() < 0.5:
                pending.pop()()
                here.poller.step()

        here.during_loads(during_a_load)
        partitions = elsewhere.objects.writes.partitions
        for _ in range(40):
            which, at = chance.randrange(len(DAYS)), chance.randrange(HOURS)
            one = changed(which, at)
            change = chance.choice(
                [
                    lambda one=one: partitions.add_partitions(T, [one], if_not_exists=True),
                    lambda one=one: partitions.drop_partitions(
                        T, ByNames((f"dt={one.values[0]}/hr={one.values[1]}",)), if_exists=True, delete_data=False
                    ),
                ]
            )
            pending.append(change)
            for ask in chance.sample(READS, 6):
                before = encoded(lambda ask=ask: ask(here.objects))
                found = encoded(lambda ask=ask: ask(here.store))
                if found != before:  # the change during the read
                    assert found == encoded(lambda ask=ask: ask(here.objects))
            if chance.random() < 0.4:
                here.cache.background.drain()
            if chance.random() < 0.2:
                evict_at_random(here.cache.shared, chance)
            for change in pending:
                change()
            pending.clear()
            here.poller.step()
            if chance.random() < 0.2:
                compare(here)
        compare(here)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_partitions_whose_names_the_database_orders_by_bytes_are_not_taken_for_absent(
    seed: int, database_of_any_schema: Database, tmp_path: Path
) -> None:
    """Hive's script for MySQL stores names in latin1: the euro sign sorts before letters with accents there."""
    days = [*"aez", "d€", "dÿ", "é", "ÿ", "€", "œ", "“"]
    random.Random(seed).shuffle(days)
    asks = [
        lambda store, day=day: store.reads.partitions.get_partitions(PartitionQuery(T, ByPartialValues((day, ""))))
        for day in days
    ]
    url = database_of_any_schema.url.render_as_string(hide_password=False)
    options = CacheOptions(load_at_once_partitions=2)
    with in_parts(), closing(Server(url, tmp_path / "warehouse", options)) as here:
        create_database(here.objects, "d")
        here.objects.writes.tables.create_table(table("d", "t", KEYS))
        values = [(day, str(hour)) for day in days for hour in range(HOURS)]
        here.objects.writes.partitions.add_partitions(T, [partition(table("d", "t"), one) for one in values])
        for ask in asks:
            load(here, ask)
            assert [encoded(lambda ask=ask: ask(here.store)) for ask in asks] == [
                encoded(lambda ask=ask: ask(here.objects)) for ask in asks
            ]
        assert held(here).is_segmented
