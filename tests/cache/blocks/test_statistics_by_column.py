"""Statistics are cached by column: parts that were read separately answer the whole, and absence is known, not
assumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.statistics_by_column import (
    MAX_COLUMNS,
    CachedStatistics,
    LoadedColumns,
    add_columns,
    missing_columns,
    weight_of_key,
)
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.snapshots import StatisticsOfColumn
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, encoded_value, partition, table
from tests.databases import count_statements
from tests.work import CountedLock, instructions

T = (CATALOG, "d", "t")
NAMES = ["p=0", "p=1", "p=2"]

Ask = Callable[[MetadataStore, Sequence[str]], object]
KINDS: dict[str, Ask] = {
    "table": lambda store, columns: store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(TableName(*T), columns)
    ),
    "partitions": lambda store, columns: store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), columns), NAMES
    ),
}


def _statistics(column: str, number: int, made_s: int, name: str | None) -> ttypes.ColumnStatistics:
    data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(0, number, 1, 2))
    described = ttypes.ColumnStatisticsDesc(name is None, "d", "t", partName=name, lastAnalyzed=made_s, catName=CATALOG)
    return ttypes.ColumnStatistics(described, [ttypes.ColumnStatisticsObj(column, "bigint", data)], engine="hive")


@pytest.fixture
def here(servers: MakeServer) -> Server:
    server = servers()
    create_database(server.store, "d")
    made = table("d", "t", (("p", "string"),))
    made.sd.cols = [ttypes.FieldSchema(name, "bigint", None) for name in "abc"]
    server.store.writes.tables.create_table(made)
    server.store.writes.partitions.add_partitions(
        TableName(*T), [partition(made, (str(number),)) for number in range(3)]
    )
    # Loaded at different times: an answer contains the latest time of its own columns.
    for column, made_s in (("a", 100), ("b", 300)):
        server.objects.writes.statistics.update_table_column_statistics(_statistics(column, 7, made_s, None))
        of_partitions = [_statistics(column, made_s, made_s, name) for name in NAMES[:2]]
        server.objects.writes.statistics.update_partition_column_statistics(of_partitions)
    return server


def _outcome(here: Server, ask: Ask, columns: Sequence[str]) -> Reason:
    del here.reads[:]
    found = ask(here.store, columns)
    assert encoded_value(found) == encoded_value(ask(here.objects, columns))
    return here.reads[-1][1]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_that_were_asked_for_answer_the_whole(kind: str, here: Server) -> None:
    ask = KINDS[kind]
    assert _outcome(here, ask, ["a"]) is Reason.MISS
    assert _outcome(here, ask, ["b"]) is Reason.MISS
    assert _outcome(here, ask, ["a", "b"]) is Reason.HIT
    assert _outcome(here, ask, ["B", "a", "a"]) is Reason.HIT
    assert _outcome(here, ask, ["a"]) is Reason.HIT


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_asked_and_is_absent_differs_from_what_was_never_asked(kind: str, here: Server) -> None:
    ask = KINDS[kind]
    assert _outcome(here, ask, ["c"]) is Reason.MISS
    assert _outcome(here, ask, ["c"]) is Reason.HIT
    assert _outcome(here, ask, ["a", "c"]) is Reason.MISS
    assert _outcome(here, ask, ["c", "a"]) is Reason.HIT
    assert _outcome(here, ask, []) is Reason.HIT


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_is_seen_by_all_questions(kind: str, here: Server) -> None:
    ask = KINDS[kind]
    for columns in (["a"], ["b", "c"]):
        _outcome(here, ask, columns)
    here.objects.writes.statistics.update_table_column_statistics(_statistics("c", 9, 500, None))
    here.objects.writes.statistics.update_partition_column_statistics([_statistics("c", 9, 500, NAMES[2])])
    assert _outcome(here, ask, ["a", "b", "c"]) is Reason.MISS
    assert _outcome(here, ask, ["c"]) is Reason.HIT


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_missing_columns_are_read(kind: str, here: Server) -> None:
    ask = KINDS[kind]
    ask(here.store, ["a"])
    with count_statements(here.database) as seen:
        ask(here.store, ["a", "b", "c"])
        first = seen.count
        ask(here.store, ["c", "b", "a"])
        again = seen.count - first
    assert again <= 1, "the position check"
    assert first <= 8


def test_columns_without_end_do_not_take_memory_without_end() -> None:
    held: dict[str, tuple[object, ...]] = {}
    for number in range(MAX_COLUMNS + 10):
        add_columns(held, [f"column_{number}"], [])  # type: ignore[arg-type]
    assert len(held) <= MAX_COLUMNS
    assert missing_columns(held, [f"COLUMN_{MAX_COLUMNS + 9}"]) is None  # type: ignore[arg-type]


def _loaded(column: str, names: Sequence[str]) -> LoadedColumns:
    [struct] = _statistics(column, 7, 100, None).statsObj
    return LoadedColumns.of([column], [StatisticsOfColumn(name, struct, 100) for name in names])


def test_a_column_more_or_less_weighs_that_one_alone() -> None:
    """While memory is locked, only the changed column is measured, since the structs of all others would have to be
    encoded."""
    names = tuple(f"p={number}" for number in range(30))
    question = ("hive", names)
    partitions = frozenset((str(number),) for number in range(30))
    took = {}
    for columns in (2, 30):
        held = CachedStatistics()
        for number in range(columns):
            held.add(question, _loaded(f"c{number}", names), weight_of_key(question, partitions), partitions)
        one_more = _loaded("more", names)
        added = instructions(lambda held=held, more=one_more: held.add(question, more, 500, partitions))
        assert CachedStatistics.from_parts(held.parts()).weight > held.weight - 500 > 0
        held.add(question, one_more, weight_of_key(question, partitions), partitions)
        assert held.weight == CachedStatistics.from_parts(held.parts()).weight
        dropped = instructions(lambda held=held: held.drop_changed([("3",)], frozenset({"more"})))
        assert held.weight == CachedStatistics.from_parts(held.parts()).weight
        assert set(held[question]) == {f"c{number}" for number in range(columns)}
        took[columns] = added, dropped
        assert held.drop_changed(None, frozenset(held[question]))
        assert held.weight == 0 and not held
    a_column = 60
    """To look at its name."""
    assert took[30][0] <= took[2][0]
    assert took[30][1] <= took[2][1] + 28 * a_column, took


@pytest.mark.parametrize("merged", [False, True])
def test_memory_is_locked_no_longer_for_the_statistics_of_many_partitions(merged: bool, servers: MakeServer) -> None:
    """Neither when they are loaded nor when they are returned from memory."""
    server = servers()
    create_database(server.store, "d")
    made = table("d", "t", (("p", "string"),))
    made.sd.cols = [ttypes.FieldSchema(name, "bigint", None) for name in "ab"]
    server.store.writes.tables.create_table(made)
    names = [f"p={number}" for number in range(120)]
    server.store.writes.partitions.add_partitions(
        TableName(*T), [partition(made, (str(number),)) for number in range(120)]
    )
    of_partitions = [_statistics(column, 7, 100, name) for column in "ab" for name in names]
    server.objects.writes.statistics.update_partition_column_statistics(of_partitions)
    query = StatisticsQuery(TableName(*T), ["a", "b"])
    most = {}
    for count in (4, 120):
        statistics = server.store.reads.statistics
        ask = statistics.get_aggregate_statistics if merged else statistics.get_partition_column_statistics
        server.store.reads.tables.get_table(TableName(*T))
        shared, reading = server.cache.shared, server.cache.reading
        lock, own = CountedLock(), shared._lock
        shared._lock = reading._view = lock  # type: ignore[assignment]
        try:
            server.reads.clear()
            assert ask(query, names[:count]) and ask(query, names[:count])
        finally:
            shared._lock = reading._view = own
        assert server.reasons() == [Reason.MISS, Reason.HIT]
        most[count] = lock.most
    assert most[120] < 1.2 * most[4], most
