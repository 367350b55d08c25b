"""Reads of large tables that are not cached go to the database; the table is loaded in the background (P12)."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming import background_loads
from hms_cache.cache.warming.background_loads import REQUESTED_AGAIN_S, LoadDecision
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, ByPartialValues, PartitionQuery
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table
from tests.databases import count_statements
from tests.manual_clock import ManualClock

T = TableName(CATALOG, "d", "t")
KEYS = (("p", "string"), ("q", "int"))
LARGE = 20
LIMIT_S = 20

READS: dict[str, Callable[[MetadataStore], Any]] = {
    "one": lambda store: store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["a", "3"]),
    "none": lambda store: store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["a", "99"]),
    "names": lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(CATALOG, "d", "t"), ByNames(("p=a/q=1", "p=a/q=2", "p=x/q=1")))
    ),
    "filter": lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(CATALOG, "d", "t"), ByFilter('p = "b" and q > 3'))
    ),
    "ps": lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(CATALOG, "d", "t"), ByPartialValues(("b",)))
    ),
    "first of all": lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(CATALOG, "d", "t"), AllPartitions(), 3)
    ),
    "names of ps": lambda store: store.reads.partitions.get_partition_names(
        PartitionQuery(TableName(CATALOG, "d", "t"), ByPartialValues(("a",)))
    ),
    "all names": lambda store: store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t"))),
    "count": lambda store: store.reads.partitions.get_partition_count(
        PartitionQuery(TableName(CATALOG, "d", "t"), ByFilter('p = "a"'))
    ),
    "values": lambda store: store.reads.partitions.get_partition_values(
        PartitionQuery(TableName(CATALOG, "d", "t")), ["p"]
    ),
}


def make_large(server: Server) -> None:
    create_database(server.objects, "d")
    server.objects.writes.tables.create_table(table("d", "t", KEYS))
    values = [(letter, str(number)) for letter in "ab" for number in range(LARGE // 2)]
    server.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(table("d", "t"), one) for one in values]
    )
    server.poller.step()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def here(servers: MakeServer, clock: ManualClock) -> Server:
    """A table of 20 partitions, more than are loaded immediately."""
    server = servers(CacheOptions(load_at_once_partitions=LARGE - 1), clock)
    make_large(server)
    return server


def is_held(server: Server) -> bool:
    entry = server.cache.shared.entry(T)
    held = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
    return isinstance(held, PartitionSet) and held.whole


def test_of_many_that_changed_none_is_looked_at_by_itself(here: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examining each would happen while memory is locked; more than may be queued are loaded as a whole anyway."""
    here.cache.loader.load([LoadRequest(T, Facet.TABLE), LoadRequest(T, Facet.PARTITIONS)])
    monkeypatch.setattr(background_loads, "MAX_QUEUED", 3)
    looked_at = []

    def watched(held: PartitionSet, values: tuple[str, ...]) -> bool:
        looked_at.append(values)
        return True

    monkeypatch.setattr(background_loads, "_is_in_complete", watched)
    some = tuple(("a", str(number)) for number in range(4))
    assert here.cache.background.decide(T, (LoadRequest(T, Facet.PARTITIONS, some[:3]),), ()) is LoadDecision.LOAD
    assert len(looked_at) == 3
    here.cache.background.decide(T, (LoadRequest(T, Facet.PARTITIONS, some),), ())
    assert len(looked_at) == 3


@pytest.mark.parametrize("name", READS)
def test_a_cold_read_costs_what_an_uncached_one_costs(name: str, here: Server, servers: MakeServer) -> None:
    uncached = servers(CacheOptions(modes=ReadModes(enabled=False)))
    READS["count"](uncached.store), READS["filter"](uncached.store)  # the schema's form is examined at once
    with count_statements(uncached.database) as without:
        expected = encoded(lambda: READS[name](uncached.store))
    READS["count"](here.store)  # its size is known from here on
    here.reasons()
    with count_statements(here.database) as seen:
        assert encoded(lambda: READS[name](here.store)) == expected
    assert here.reasons() == [Reason.NOT_CACHED]
    assert seen.count == without.count + 1, "the position check"
    assert here.cache.loader.loads == 0


@pytest.mark.parametrize("name", ["table", *READS])
def test_connections_of_position_checks_are_for_nothing_else(name: str, here: Server) -> None:
    """There are two for all calls: a read that occupied one, however briefly, could delay all answers from memory
    (P9)."""
    requested: list[str] = []
    engine = here.database.check_engine
    event.listen(engine, "before_cursor_execute", lambda *given: requested.append(given[2]))
    read = READS.get(name, lambda store: store.reads.tables.get_table(T))
    for _ in range(2):
        assert encoded(lambda: read(here.store)) == encoded(lambda: read(here.objects))
        here.cache.background.drain()
    of_the_log = ("NOTIFICATION_SEQUENCE", "NOTIFICATION_LOG")
    assert requested and not [text for text in requested if not any(table in text for table in of_the_log)]


@pytest.mark.parametrize("name", READS)
def test_a_table_that_is_asked_again_is_loaded_beside_and_answers_then(name: str, here: Server) -> None:
    expected = encoded(lambda: READS[name](here.objects))
    for _ in range(2):
        assert here.cache.background.waiting == 0
        assert encoded(lambda: READS[name](here.store)) == expected
    assert not is_held(here)
    assert here.cache.background.waiting == 1
    here.cache.background.drain()
    assert is_held(here)
    assert (here.cache.background.loaded, here.cache.background.waiting) == (1, 0)
    here.reasons()
    assert encoded(lambda: READS[name](here.store)) == expected
    assert here.reasons() == [Reason.INCOMPLETE if name == "none" else Reason.HIT]


def test_what_asks_for_all_partitions_fills_the_cache_on_its_way(here: Server) -> None:
    assert (
        len(here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t"))).partitions)
        == LARGE
    )
    assert is_held(here)
    here.reasons()
    READS["filter"](here.store)
    assert here.reasons() == [Reason.HIT]


def test_a_read_of_all_partitions_does_not_wait_for_their_load_beside(here: Server) -> None:
    """A load pauses after each page, and may have started a moment ago."""
    for _ in range(2):
        READS["one"](here.store)
    answers: list[Any] = []

    def read() -> None:
        answers.append(encoded(lambda: here.store.reads.partitions.get_partitions(PartitionQuery(T))))

    def during() -> None:
        if here.cache.background.is_loading(T) and not answers:
            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            reader.join(LIMIT_S)

    here.during_loads(during)
    here.reasons()
    here.cache.background.drain()
    assert answers == [encoded(lambda: here.objects.reads.partitions.get_partitions(PartitionQuery(T)))]
    assert here.reasons() == [Reason.NOT_CACHED]
    assert is_held(here) and not here.cache.background.is_loading(T)


def test_a_small_table_is_loaded_by_its_first_read(servers: MakeServer) -> None:
    server = servers(CacheOptions(load_at_once_partitions=LARGE))
    make_large(server)
    READS["filter"](server.store)
    assert is_held(server)


def test_a_table_that_is_asked_once_in_a_while_is_not_loaded(here: Server, clock: ManualClock) -> None:
    for _ in range(3):
        READS["filter"](here.store)
        clock.advance(REQUESTED_AGAIN_S + 1)
    assert here.cache.background.waiting == 0


def test_of_a_table_that_does_not_fit_its_share_what_was_asked_for_is_loaded_and_what_lies_around_it(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_cache.cache.warming.background_loads.BYTES_A_PARTITION", 10**9)
    monkeypatch.setattr("hms_cache.cache.warming.background_loads.SMALLEST_WINDOW", 12)
    server = servers(CacheOptions(load_at_once_partitions=2))
    make_large(server)
    expected = encoded(lambda: READS["one"](server.objects))
    for _ in range(2):  # the table, then the requested data
        for _ in range(2):
            READS["one"](server.store)
            READS["filter"](server.store)
        server.cache.background.drain()
    assert not is_held(server)
    server.reasons()
    assert encoded(lambda: READS["one"](server.store)) == expected
    READS["filter"](server.store)
    assert server.reasons() == [Reason.HIT, Reason.HIT]


def test_what_changes_while_a_table_is_loaded_is_seen(here: Server, servers: MakeServer) -> None:
    elsewhere = servers()
    for _ in range(2):
        READS["ps"](here.store)

    def change() -> None:
        new = partition(table("d", "t"), ("b", "77"))
        elsewhere.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), [new], if_not_exists=True)
        here.poller.step()

    here.during_loads(change)
    here.cache.background.drain()
    for name, ask in READS.items():
        assert encoded(lambda ask=ask: ask(here.store)) == encoded(lambda ask=ask: ask(here.objects)), name


def test_an_outage_leaves_the_load_to_a_later_question(here: Server) -> None:
    for _ in range(2):
        READS["ps"](here.store)
    away = DatabaseUnavailable("away")

    def fail() -> None:
        raise away

    here.during_loads(fail)
    assert here.cache.background.step()
    assert (here.cache.background.loaded, here.cache.background.waiting) == (0, 0)


def test_the_queue_is_bounded(here: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_cache.cache.warming.background_loads.MAX_QUEUED", 0)
    for _ in range(5):
        READS["ps"](here.store)
    assert here.cache.background.waiting == 0


def test_what_waits_for_a_load_has_no_names_that_no_partition_has(here: Server) -> None:
    """They would be stored as long as another table is loaded, which may take minutes."""
    here.store.reads.tables.get_table(T)
    for _ in range(2):
        READS["one"](here.store)
    assert here.cache.background.waiting == 1
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(30):
            value = f"{number}".ljust(100_000, "x")
            with pytest.raises(NoSuchObjectException):
                here.store.reads.partitions.get_partition(T, [value, "1"])
            here.store.reads.partitions.get_partitions(PartitionQuery(T, ByPartialValues((value,))))
            here.store.reads.partitions.get_partitions(PartitionQuery(T, ByNames((f"p={value}/q=1",))))
        assert tracemalloc.get_traced_memory()[0] - before < 5_000_000
    finally:
        tracemalloc.stop()
    here.cache.background.drain()
    assert is_held(here)


@pytest.mark.parametrize("max_few", [LARGE - 1, LARGE])
def test_what_is_loaded_at_once_comes_in_one_piece_only_if_it_is_few(
    max_few: int, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_loads, "MAX_FEW", max_few)
    server = servers(CacheOptions(load_at_once_partitions=LARGE))
    make_large(server)
    pages = []
    read_pages = server.objects.reads.read_partition_pages
    monkeypatch.setattr(
        server.objects.reads, "read_partition_pages", lambda table: pages.append(table) or read_pages(table)
    )
    for ask in READS.values():
        assert encoded(partial(ask, server.store)) == encoded(partial(ask, server.objects))
    assert is_held(server) and len(pages) == (max_few < LARGE)


def test_nothing_is_held_of_a_table_that_is_not_to_be(servers: MakeServer) -> None:
    """Its few partitions are read together with the table, which contains their number."""
    server = servers(CacheOptions())
    create_database(server.objects, "d")
    server.objects.writes.tables.create_table(table("d", "t", KEYS, **{"hms_cache.sync": "false"}))
    server.objects.writes.partitions.add_partitions(T, [partition(table("d", "t"), ("a", "1"))])
    server.poller.step()
    for _ in range(2):
        assert (
            len(server.store.reads.partitions.get_partitions(PartitionQuery(T, ByNames(("p=a/q=1",)))).partitions) == 1
        )
    entry = server.cache.shared.entry(T)
    assert entry is not None and entry.facets.keys() == {Facet.EXCLUDED}


def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(servers: MakeServer) -> None:
    """What the reads that bypassed the cache have seen of it is not exact."""
    server = servers(CacheOptions(load_at_once_partitions=0))
    make_large(server)
    for seen in ("names", "all names", "count"):
        READS[seen](server.store)
    for keys in (KEYS, (("r", "string"),)):
        server.objects.writes.tables.drop_table(T, delete_data=False)
        server.objects.writes.tables.create_table(table("d", "t", keys))
        new = partition(table("d", "t"), ("a", "77")[: len(keys)])
        server.objects.writes.partitions.add_partitions(T, [new])
        reads = server.store.reads.partitions
        expected = "/".join(f"{key}={value}" for (key, _), value in zip(keys, new.values, strict=True))
        assert reads.get_partition_names(PartitionQuery(T)) == [expected]
        assert reads.get_partition_count(PartitionQuery(T, ByFilter(f'{keys[0][0]} = "a"'))) == 1
        assert [one.values for one in reads.get_partitions(PartitionQuery(T, ByNames((expected,)))).partitions] == [
            new.values
        ]
