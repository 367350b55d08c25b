"""A table that changes all the time is loaded during a small part of the time (P9), one that changes rarely at once."""

from __future__ import annotations

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.warming.cooldowns import LENGTHENING, MAX_REMEMBERED, SOON_TIMES, Cooldowns
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.refill import LONGEST_COOLDOWN_TIMES
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByFilter, PartitionQuery
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, partition, table
from tests.manual_clock import ManualClock

T = TableName(CATALOG, "d", "t")
KEYS = (("p", "string"), ("q", "int"))
LARGE = 40
A_LOAD_S = 0.5


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def here(servers: MakeServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A table that is large; each load takes half a second."""
    server = servers(CacheOptions(load_at_once_partitions=LARGE - 1), clock)
    create_database(server.objects, "d")
    server.objects.writes.tables.create_table(table("d", "t", KEYS))
    add(server, range(LARGE))
    load = Loader.load

    def slow(*arguments: object, **options: object) -> bool:
        clock.advance(A_LOAD_S)
        return load(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Loader, "load", slow)
    return server


def add(server: Server, numbers: range, name: str = "t") -> None:
    some = [partition(table("d", name), ("a", str(number))) for number in numbers]
    server.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", name), some)
    server.poller.step()


def read(server: Server) -> int:
    found = server.store.reads.partitions.get_partitions(PartitionQuery(T, ByFilter('p = "a" and q >= 0')))
    return len(found.partitions)


def held(server: Server) -> PartitionSet | None:
    entry = server.cache.shared.entry(T)
    found = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
    return found if isinstance(found, PartitionSet) else None


def test_a_cooldown_grows_while_the_table_is_lost_again_and_again() -> None:
    cooldowns = Cooldowns(shortest_times=1, longest_times=LENGTHENING * LENGTHENING)
    now_s, lengths = 100.0, []
    for _ in range(4):
        assert cooldowns.is_over(T, now_s)
        cooldowns.begin(T, now_s, now_s + 1)
        ended_s = now_s = now_s + 1
        while not cooldowns.is_over(T, now_s):
            now_s += 0.25
        lengths.append(now_s - ended_s)
    assert lengths == [1, LENGTHENING, LENGTHENING**2, LENGTHENING**2]
    now_s += SOON_TIMES  # then it starts again
    cooldowns.begin(T, now_s, now_s + 1)
    assert not cooldowns.is_over(T, now_s + 1.75)
    assert cooldowns.is_over(T, now_s + 2)


def test_cooldowns_are_bounded() -> None:
    cooldowns = Cooldowns(1, 1)
    tables = [TableName(CATALOG, "d", f"t{number}") for number in range(MAX_REMEMBERED + 1)]
    for one in tables:
        cooldowns.begin(one, 0.0, 10.0)
    assert cooldowns.is_over(tables[0], 11.0)
    assert not cooldowns.is_over(tables[1], 11.0)


def test_changes_now_and_then_are_filled_in_at_once(here: Server, clock: ManualClock) -> None:
    here.store.reads.partitions.get_partitions(PartitionQuery(T))
    for number in range(5):
        add(here, range(LARGE + number, LARGE + number + 1))
        assert here.cache.refill.step() == 1
        found = held(here)
        assert found is not None
        assert found.whole
        clock.advance(LONGEST_COOLDOWN_TIMES * A_LOAD_S)


def test_refills_of_a_table_that_changes_all_the_time_take_a_small_part_of_it(here: Server, clock: ManualClock) -> None:
    here.store.reads.partitions.get_partitions(PartitionQuery(T))
    began_s, refills = clock.monotonic_s(), 0
    for number in range(400):
        add(here, range(LARGE + number, LARGE + number + 1))
        refills += here.cache.refill.step()
        clock.advance(1.0)
    assert refills * A_LOAD_S < 0.1 * (clock.monotonic_s() - began_s)
    assert len(here.cache.shared.invalidated) == 1, "it waits"
    clock.advance(LONGEST_COOLDOWN_TIMES * A_LOAD_S)
    assert here.cache.refill.step() == 1
    found = held(here)
    assert found is not None
    assert found.whole, "nothing that changed meanwhile is forgotten"


def test_tables_with_a_cooldown_do_not_keep_others_waiting(here: Server, clock: ManualClock) -> None:
    here.objects.writes.tables.create_table(table("d", "u", KEYS))
    here.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "u"), [partition(table("d", "u"), ("a", "1"))]
    )
    here.poller.step()
    for name in "tu":
        here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", name)))
    add(here, range(100, 101))
    assert here.cache.refill.step() == 1
    add(here, range(101, 102))
    here.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "u"), [partition(table("d", "u"), ("a", "2"))]
    )
    here.poller.step()
    assert here.cache.refill.step() == 1, "of u alone"
    assert [*here.cache.shared.invalidated] == [T]


def test_a_table_that_is_asked_for_while_it_is_loaded_is_not_loaded_again(
    here: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.store.reads.tables.get_table(T)
    read(here)
    assert here.cache.background.waiting == 1
    load = Loader.load

    def asked_meanwhile(*arguments: object, **options: object) -> bool:
        monkeypatch.setattr(Loader, "load", load)
        assert read(here) == LARGE
        assert here.cache.background.waiting == 1
        return load(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Loader, "load", asked_meanwhile)
    here.cache.background.drain()
    assert (here.cache.background.loaded, here.cache.background.waiting) == (1, 0)


def test_a_large_table_that_is_lost_again_and_again_is_loaded_a_small_part_of_the_time(
    here: Server, clock: ManualClock
) -> None:
    began_s = clock.monotonic_s()
    for _ in range(600):
        assert read(here) == LARGE, "from the database or from memory"
        here.cache.background.drain()
        with here.cache.shared.view():
            entry = here.cache.shared.entry(T)
            if entry is not None and Facet.PARTITIONS in entry.facets:
                here.cache.shared._remove_facet(entry, Facet.PARTITIONS)
        clock.advance(1.0)
    loads = here.cache.background.loaded
    assert loads >= 3
    assert loads * A_LOAD_S < 0.1 * (clock.monotonic_s() - began_s)


def test_a_large_table_that_was_evicted_is_loaded_as_soon_as_it_is_wanted(here: Server, clock: ManualClock) -> None:
    """It does not change. It was evicted for lack of memory, and is loaded again as the least recently used one is
    evicted."""
    here.store.reads.tables.get_table(T)
    for number in range(8):
        assert read(here) == LARGE
        here.cache.background.drain()
        assert here.cache.background.loaded == number + 1
        with here.cache.shared.view():
            entry = here.cache.shared.entry(T)
            assert entry is not None
            here.cache.shared._remove_facet(entry, Facet.PARTITIONS)
            here.cache.shared.evictions += 1
