"""Budget, eviction, refill, and a cache whose own code fails (P9, P11)."""

from __future__ import annotations

import gc
import importlib
import logging
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from hms_cache.cache import budget as budgets
from hms_cache.cache.answers import Answer
from hms_cache.cache.entries import Facet
from hms_cache.cache.reads import reading
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification import invariants
from hms_cache.cache.warming.refill import RECENT_S
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.cache.weights import weight_of
from hms_cache.call_context import call_context
from hms_cache.limited_log import LimitedLog
from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import ByFilter, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.schema import PARTITIONS
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from hms_cache.wire import UnencodableReply
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table
from tests.manual_clock import ManualClock

T = TableName(CATALOG, "d", "t0")
KEYS = (("p", "string"),)


def fill(server: Server, tables: int, partitions: int = 0) -> None:
    create_database(server.store, "d")
    for number in range(tables):
        server.store.writes.tables.create_table(table("d", f"t{number}", KEYS, version="old"))
        values = [(str(value),) for value in range(partitions)]
        server.store.writes.partitions.add_partitions(
            TableName(CATALOG, "d", f"t{number}"), [partition(table("d", f"t{number}"), v) for v in values]
        )


def read(server: Server, *numbers: int) -> list[Reason]:
    server.reads.clear()
    for number in numbers:
        server.store.reads.tables.get_table(TableName(CATALOG, "d", f"t{number}"))
    return server.reasons()


def test_the_budget_is_kept_and_the_table_that_was_read_least_recently_goes(servers: MakeServer) -> None:
    plenty = servers()
    fill(plenty, 12)
    read(plenty, *range(4))
    here = servers(CacheOptions(budget_bytes=plenty.cache.shared.weight))
    shared = here.cache.shared
    for number in range(12):
        read(here, number)
        assert shared.weight <= shared.budget_bytes
    assert shared.evictions > 0
    held = sorted(int(name.table[1:]) for name in shared.tables)
    assert held == list(range(12 - len(held), 12))
    oldest = held[0]
    assert read(here, oldest) == [Reason.HIT]
    assert read(here, 0) == [Reason.MISS]
    assert TableName(CATALOG, "d", f"t{oldest}") in shared.tables, "it was read since"
    assert TableName(CATALOG, "d", f"t{held[1]}") not in shared.tables
    here.reads.clear()
    assert len(here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))) == 12
    invariants.check(shared)


def test_names_that_nobody_has_do_not_pile_up(servers: MakeServer) -> None:
    """Absence is cached, too: a client that requests thousands of databases must not fill the memory."""
    here = servers(CacheOptions(budget_bytes=50_000))
    for number in range(500):
        with pytest.raises(NoSuchObjectException):
            here.store.reads.tables.get_table(TableName(CATALOG, f"nowhere{number}", "t"))
        assert here.cache.shared.weight <= 50_000
    assert len(here.cache.shared.databases) < 500
    assert DatabaseName(CATALOG, "nowhere499") in here.cache.shared.databases


@pytest.mark.parametrize("length", [1, 5_000])
def test_names_that_nobody_has_make_no_table_go(
    length: int, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do databases dropped in the course of a year. Otherwise tables would be evicted first."""
    monkeypatch.setattr(budgets, "MAX_MISSING", 20)
    plenty = servers()
    fill(plenty, 12)
    for number in range(3):
        create_database(plenty.store, f"e{number}")
    read(plenty, *range(12))
    here = servers(CacheOptions(budget_bytes=2 * plenty.cache.shared.weight))
    shared = here.cache.shared
    read(here, *range(12))
    for number in range(3):
        here.store.reads.databases.get_database(DatabaseName(CATALOG, f"e{number}"))
        assert here.store.reads.tables.get_table_names(DatabaseName(CATALOG, f"e{number}")) == []
    for number in range(100):
        name = f"nobody{number}".ljust(length, "x")
        with pytest.raises(NoSuchObjectException):
            here.store.reads.tables.get_table(TableName(CATALOG, name, "t"))
        with pytest.raises(NoSuchObjectException):
            here.store.reads.functions.get_function(FunctionName(CATALOG, name, "f"))
        assert here.store.reads.databases.get_database_names(f"of_{name}") == []
        with pytest.raises(NoSuchObjectException):
            here.store.reads.databases.get_database(DatabaseName(f"in_{name}", "d"))
    assert len(shared.databases) + len(shared.catalogs) <= 5 + 20
    assert shared.evictions == 0
    assert read(here, *range(12)) == [Reason.HIT] * 12
    here.reads.clear()
    for number in range(3):
        assert here.store.reads.tables.get_table_names(DatabaseName(CATALOG, f"e{number}")) == []
    assert here.reasons() == [Reason.HIT] * 3, "of one that is there it is known"
    for _ in range(2):
        with pytest.raises(NoSuchObjectException):
            here.store.reads.tables.get_table(TableName(CATALOG, name, "t"))
    assert here.reasons()[-1] is Reason.HIT, "the last one is remembered"
    for _ in range(2):
        assert here.store.reads.databases.get_database_names(f"of_{name}") == []
    assert here.reasons()[-1] is Reason.HIT
    invariants.check(shared)


def test_what_was_dropped_is_not_kept_by_threads_that_were_answered_from_it(servers: MakeServer) -> None:
    """P11: each thread may have answered from another large table, and been idle since."""
    here = servers()
    fill(here, 1, partitions=5)
    call_context.begin(1)
    for _ in range(2):
        here.store.reads.partitions.get_partition_names(PartitionQuery(T))
    assert here.reasons()[-1] is Reason.HIT
    call_context.end()
    held = weakref.ref(here.cache.shared.tables[T].facets[Facet.PARTITIONS])
    assert held() is not None
    here.cache.shared.forget_all()
    gc.collect()
    assert held() is None


def test_what_is_larger_than_the_budget_is_read_once_and_then_left_to_the_store(servers: MakeServer) -> None:
    elsewhere = servers()
    fill(elsewhere, 1, partitions=40)
    elsewhere.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))
    partitions = elsewhere.cache.shared.tables[T].weights[Facet.PARTITIONS]
    here = servers(CacheOptions(budget_bytes=elsewhere.cache.shared.weight - partitions // 2))
    expected = here.objects.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))
    for _ in range(3):
        assert (
            here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0"))) == expected
        )
    loads = here.cache.loader.loads
    here.reads.clear()
    assert here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0"))) == expected
    assert here.cache.loader.loads == loads, "its size is remembered"
    assert here.reasons() == [Reason.INCOMPLETE]
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t0"), changed_table(elsewhere.objects, "d", "t0", version="new")
    )
    here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))
    assert here.cache.loader.loads > loads, "it may be smaller now"
    assert read(here, 0)[-1] in (Reason.HIT, Reason.MISS), "the table itself fits"


def test_partitions_that_change_again_and_again_do_not_grow_the_account(servers: MakeServer) -> None:
    here, elsewhere = servers(), servers()
    fill(here, 1, partitions=10)
    here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t0")))
    before = here.cache.shared.weight
    for number in range(20):
        changed = elsewhere.objects.reads.partitions.get_partition(TableName(CATALOG, "d", "t0"), ["3"])
        changed.parameters = {"k": str(number)}
        elsewhere.objects.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t0"), [changed])
        here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t0")))
    assert here.cache.shared.weight < before * 1.2


@pytest.mark.parametrize("key_type", ["int", "decimal(10,2)", "timestamp"])
def test_what_filters_make_of_keys_counts_at_once(servers: MakeServer, key_type: str) -> None:
    """Columns store the values that a filter has parsed from their texts; those of decimals are larger than the
    texts."""
    here = servers()
    create_database(here.store, "d")
    of = table("d", "t0", (("p", key_type),))
    here.store.writes.tables.create_table(of)
    values = [f"2024-01-01 00:00:{value:02}" if key_type == "timestamp" else str(value) for value in range(60)]
    literals = values if key_type == "int" else list(map(repr, values))
    here.store.writes.partitions.add_partitions(T, [partition(of, (value,)) for value in values])
    here.store.reads.partitions.get_partitions(PartitionQuery(T))
    shared = here.cache.shared
    before = shared.weight
    here.reads.clear()
    found = here.store.reads.partitions.get_partition_names(PartitionQuery(T, ByFilter(f"p > {literals[7]}")))
    assert (len(found), here.reasons()) == (52, [Reason.HIT])
    least = 60 * (9 if key_type == "int" else 9 + 28)
    assert shared.weight >= before + least
    assert shared.tables[T].weights[Facet.PARTITIONS] == weight_of(shared.tables[T].facets[Facet.PARTITIONS])
    invariants.check(shared)
    # What is already cached is not accounted twice.
    weight = shared.weight
    here.store.reads.partitions.get_partition_names(PartitionQuery(T, ByFilter(f"p > {literals[8]}")))
    assert shared.weight == weight


def test_statistics_asked_in_many_ways_stay_within_the_budget(servers: MakeServer) -> None:
    here = servers(CacheOptions(budget_bytes=40_000))
    fill(here, 1)
    for number in range(100):
        here.store.reads.statistics.get_table_column_statistics(
            StatisticsQuery(TableName(CATALOG, "d", "t0"), ["a", f"missing{number}"])
        )
        assert here.cache.shared.weight <= 40_000


def test_statistics_that_nobody_has_make_no_table_go(servers: MakeServer) -> None:
    """Each request names partitions and columns that do not exist, of one table after the other (P11)."""
    plenty = servers()
    fill(plenty, 12)
    read(plenty, *range(12))
    budget = 4 * plenty.cache.shared.weight
    here = servers(CacheOptions(budget_bytes=budget))
    shared, statistics = here.cache.shared, here.store.reads.statistics
    read(here, *range(12))
    for number in range(300):
        of, name = TableName(CATALOG, "d", f"t{number % 12}"), f"p={number}".ljust(budget // 100, "x")
        assert statistics.get_partition_column_statistics(StatisticsQuery(of, ["a"]), [name]) == []
        assert statistics.get_aggregate_statistics(StatisticsQuery(of, ["a"]), [name]).partsFound == 0
        assert statistics.get_table_column_statistics(StatisticsQuery(of, [name])).statsObj == []
        invariants.check(shared)
    assert shared.evictions == 0
    assert read(here, *range(12)) == [Reason.HIT] * 12
    for ask in (
        lambda: statistics.get_partition_column_statistics(StatisticsQuery(of, ["a"]), [name]),
        lambda: statistics.get_aggregate_statistics(StatisticsQuery(of, ["a"]), [name]),
        lambda: statistics.get_table_column_statistics(StatisticsQuery(of, [name])),
    ):
        ask()
    assert here.reasons()[-3:] == [Reason.HIT] * 3, "the last ones are held"


def test_an_answer_of_statistics_that_takes_too_much_is_loaded_once(servers: MakeServer) -> None:
    here = servers(CacheOptions(budget_bytes=200_000))
    fill(here, 1, partitions=2)
    names = ["p=0", "p=1", *(f"p={number}".ljust(500, "x") for number in range(100))]
    read(here, 0)
    statistics, loads = here.store.reads.statistics, []
    for _ in range(3):
        assert statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), names) == []
        loads.append(here.cache.loader.loads)
    assert here.reasons()[-3:] == [Reason.INCOMPLETE] * 3
    assert loads == [loads[0]] * 3
    assert Facet.PARTITION_STATISTICS not in here.cache.shared.tables[T].facets
    changed = here.objects.reads.partitions.get_partition(T, ["0"])
    here.objects.writes.partitions.alter_partitions(T, [changed])
    for _ in range(2):
        assert statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), names) == []
    assert here.cache.loader.loads == loads[0] + 1, "after a change of one of them it may be another answer"
    statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), names[:2])
    statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), names[:2])
    assert here.reasons()[-1] is Reason.HIT


def test_answers_are_held_once_and_within_their_own_budget(servers: MakeServer) -> None:
    here = servers(CacheOptions(budget_bytes=100_000))
    fill(here, 1)
    shared = here.cache.shared
    reading = here.cache.reading

    def keep(key: bytes, size: int) -> None:
        call_context.source.begin()
        here.store.reads.tables.get_table(TableName(CATALOG, "d", "t0"))
        reading.keep_answer(key, "get_table", lambda sequence: sequence, size)

    for _ in range(50):
        keep(b"the same request", 100)
    assert len(shared.answers) == 1
    assert shared.tables[T].answers == {b"the same request"}
    for number in range(200):
        keep(b"request %d" % number, 1000)
    assert shared.answers.size_bytes <= shared.answers.budget_bytes
    assert len(shared.tables[T].answers) == len(shared.answers)
    found = shared.answers.find(b"request 199")
    assert isinstance(found, Answer) and found.current
    here.store.writes.tables.alter_table(
        TableName(CATALOG, "d", "t0"), changed_table(here.objects, "d", "t0", version="new")
    )
    here.poller.step()
    assert not found.current and len(shared.answers) == 0
    invariants.check(shared)


# Refill


def test_what_was_read_recently_is_filled_again_after_an_event(servers: MakeServer) -> None:
    clock = ManualClock()
    here, elsewhere = servers(clock=clock), servers()
    fill(here, 4, partitions=2)
    read(here, 0, 1, 2)
    here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))
    clock.advance(RECENT_S + 1)
    read(here, 0, 2)
    for number in range(3):
        elsewhere.objects.writes.tables.alter_table(
            TableName(CATALOG, "d", f"t{number}"), changed_table(elsewhere.objects, "d", f"t{number}", version="new")
        )
    here.poller.step()
    assert not any(Facet.TABLE in entry.facets for entry in here.cache.shared.tables.values())
    while here.cache.refill.step():
        pass
    assert sorted(name.table for name in here.cache.shared.tables) == ["t0", "t2"], "t1 was not read lately"
    assert read(here, 0, 2) == [Reason.HIT, Reason.HIT]
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t0")).parameters["version"] == "new"
    assert here.cache.refill.step() == 0


def test_a_refill_asks_only_for_the_partitions_that_changed(servers: MakeServer) -> None:
    here, elsewhere = servers(), servers()
    fill(here, 1, partitions=5)
    here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))
    read(here, 0)
    elsewhere.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t0"), [partition(table("d", "t0"), ("9",))]
    )
    here.poller.step()
    requested = here.loaded()
    assert here.cache.refill.step() == 1
    assert [(one.facet, one.detail) for one in requested] == [(Facet.PARTITIONS, (("9",),))]
    here.reads.clear()
    assert len(here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))) == 6
    assert here.reasons() == [Reason.HIT]


def test_a_refill_while_the_database_is_away_fails_nothing(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = servers(), servers()
    fill(here, 1)
    read(here, 0)
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t0"), changed_table(elsewhere.objects, "d", "t0", version="new")
    )
    here.poller.step()

    def away() -> Any:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(here.objects.reads, "snapshot", away)
        assert here.cache.refill.step() == 0
    assert read(here, 0) == [Reason.MISS]


# A defective cache


class Unreadable(dict[Any, Any]):
    """Replaces an entry's facets: each access to them fails."""

    def __contains__(self, key: object) -> bool:
        raise RuntimeError("a defect of the cache")

    def get(self, key: object, default: Any = None) -> Any:
        raise RuntimeError("a defect of the cache")


def test_a_defect_in_what_is_held_costs_a_read_of_the_database_and_no_more(servers: MakeServer) -> None:
    here = servers()
    fill(here, 2, partitions=2)
    read(here, 0, 1)
    entry = here.cache.shared.tables[T]
    sound, entry.facets = entry.facets, Unreadable(entry.facets)
    here.reads.clear()
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t0")).tableName == "t0"
    assert here.reasons() == [Reason.CORRUPT]
    entry.facets = sound
    assert read(here, 1) == [Reason.HIT]


MADE: dict[str, Callable[[MetadataStore], object]] = {
    "cached_tables._matching": lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")),
    "cached_tables._matching_meta": lambda store: store.reads.tables.get_table_meta(CATALOG, "d", "*"),
    "cached_databases.matching_names": lambda store: store.reads.databases.get_database_names(CATALOG),
    "cached_functions._matching": lambda store: store.reads.functions.get_function_names(DatabaseName(CATALOG, "d")),
    "cached_functions._of_each": lambda store: store.reads.functions.get_functions(CATALOG, "d"),
    "cached_partitions._partition_answer": lambda store: store.reads.partitions.get_partitions(PartitionQuery(T)),
    "cached_statistics.statistics_of_table_partitions": lambda store: (
        store.reads.statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), ["p=0"])
    ),
}
"""What makes answers of what was chosen, after memory is not locked any more."""


@pytest.mark.parametrize("what", MADE)
def test_what_no_answer_can_be_made_of_is_read_from_the_database(
    what: str, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = servers()
    fill(here, 1, partitions=2)
    for _ in range(2):
        MADE[what](here.store)
    assert here.reasons()[-1] is Reason.HIT

    def fail(*_: object) -> Any:
        raise RuntimeError("a defect of the cache")

    module, _, name = what.partition(".")
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module(f"hms_cache.cache.reads.{module}"), name, fail)
        assert encoded(lambda: MADE[what](here.store)) == encoded(lambda: MADE[what](here.objects))
    assert here.reasons() == [Reason.HIT, Reason.CORRUPT]
    assert encoded(lambda: MADE[what](here.store)) == encoded(lambda: MADE[what](here.objects))
    assert here.reasons() == [Reason.MISS], "it was dropped"


def test_what_fails_again_and_again_does_not_fill_the_log(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = servers()
    fill(here, 1)

    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("a defect of the cache")

    monkeypatch.setattr(reading, "_log", LimitedLog(logging.getLogger(reading.__name__)))
    monkeypatch.setattr(here.cache.loader, "load", fail)
    for _ in range(20):
        read(here, 0)
    lines = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert [(one.getMessage(), bool(one.exc_info)) for one in lines] == [
        ("a load failed: RuntimeError: a defect of the cache", True)
    ]


def test_statistics_of_a_table_that_was_dropped_a_moment_ago_are_no_fault(
    servers: MakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    here, elsewhere = servers(), servers()
    fill(here, 1)
    read(here, 0)
    load = here.cache.loader.load

    def overtaken(*given: Any, **how: Any) -> bool:
        elsewhere.objects.writes.tables.drop_table(T, delete_data=False)
        here.cache.loader.load = load  # type: ignore[method-assign]
        return load(*given, **how)

    here.cache.loader.load = overtaken  # type: ignore[method-assign]
    with pytest.raises(NoSuchObjectException):
        here.store.reads.statistics.get_table_column_statistics(StatisticsQuery(T, ["a"]))
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("part", ["freshness.ensure", "loader.load", "shared.touch", "shared.install"])
def test_whatever_part_of_the_cache_fails_the_store_answers(
    part: str, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = servers()
    fill(here, 1, partitions=2)
    if part == "shared.touch":
        read(here, 0)

    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("a defect of the cache")

    owner, _, name = part.partition(".")
    with monkeypatch.context() as patch:
        patch.setattr(getattr(here.cache, owner), name, fail)
        assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t0")).tableName == "t0"
        assert here.store.reads.databases.get_database(DatabaseName(CATALOG, "d")).name == "d"
        assert len(here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))) == 2
        assert here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")) == ["t0"]
        with pytest.raises(NoSuchObjectException):
            here.store.reads.tables.get_table(TableName(CATALOG, "d", "nowhere"))
    assert read(here, 0, 0)[-1] is Reason.HIT


def test_a_write_is_made_and_seen_whatever_the_cache_does(servers: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    here = servers()
    fill(here, 1)
    read(here, 0)

    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("a defect of the cache")

    with monkeypatch.context() as patch:
        patch.setattr(here.cache.shared, "apply", fail)
        patch.setattr(here.cache.own_writes, "committed", fail)
        here.store.writes.tables.alter_table(
            TableName(CATALOG, "d", "t0"), changed_table(here.objects, "d", "t0", version="new")
        )
        assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t0")).parameters["version"] == "new"
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t0")).parameters["version"] == "new"
    assert here.objects.reads.tables.get_table(TableName(CATALOG, "d", "t0")).parameters["version"] == "new"


@pytest.mark.parametrize("budget", [0, 1, 5_000])
def test_without_room_for_anything_every_read_is_answered(budget: int, servers: MakeServer, tmp_path: Path) -> None:
    here = servers(CacheOptions(budget_bytes=budget))
    fill(here, 2, partitions=2)
    for _ in range(2):
        assert [
            one.tableName for one in here.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), ["t0", "t1"])
        ] == ["t0", "t1"]
        assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "t1")).tableName == "t1"
        assert here.store.reads.databases.get_database_names(
            CATALOG
        ) == here.objects.reads.databases.get_database_names(CATALOG)
        assert len(here.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t0")))) == 2
        assert here.cache.shared.weight <= budget


@pytest.mark.parametrize("is_complete", [True, False], ids=["all are held", "none is held"])
def test_what_cannot_be_encoded_is_neither_absent_nor_uncharged(servers: MakeServer, is_complete: bool) -> None:
    """A number that does not fit into any message, written by a program that accesses the tables directly."""
    here, elsewhere = servers(CacheOptions(load_at_once_partitions=0)), servers()
    fill(elsewhere, 1, 5)
    here.store.reads.tables.get_table(T)
    if is_complete:
        here.cache.loader.load([LoadRequest(T, Facet.PARTITIONS)])
    changed = elsewhere.store.reads.partitions.get_partition(T, ["1"])
    elsewhere.store.writes.partitions.alter_partitions(T, [changed])
    with elsewhere.database.writing() as connection:
        connection.execute(update(PARTITIONS).where(PARTITIONS.c.PART_NAME == "p=1").values(CREATE_TIME=2**40))
        connection.commit()
    here.poller.step()
    for _ in range(2):
        with pytest.raises(UnencodableReply):
            here.cache.loader.load([LoadRequest(T, Facet.PARTITIONS, (("1",), ("2",)))])
        invariants.check(here.cache.shared)
        assert here.store.reads.partitions.get_partition(T, ["1"]).createTime == 2**40
        names = here.store.reads.partitions.get_partition_names(PartitionQuery(T))
        assert names == [f"p={number}" for number in range(5)]
