"""Selections of partitions whose values are spelled unusually: memory answers like each database, also in the same
order.

Numbers with leading zeros, dates with a time of day, values that do not have their type, values that are stored empty,
characters that names escape, characters outside of ASCII and latin1.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionQuery,
    PartitionReads,
    PartitionSelection,
)
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

T = TableName(CATALOG, "d", "t")
DEFAULT = "__HIVE_DEFAULT_PARTITION__"

TEXTS: dict[str, list[str]] = {
    "string": ["", "a", "A", "a b", "a/b", "a%b", "a_b", "a=b", "a'b", 'a"b', "a\\b", "%41", "é", "10", "9", "~", " a"],
    "char(4)": ["a", "ab", "a b", "é", ""],
    "int": ["1", "01", "+1", "001", "-1", "-01", "0", "-0", "10", "9", "x", "1.0", "", "9223372036854775808"],
    "date": ["2024-01-01", "2024-1-1", "2024-01-01 10:00:00", "2024-01-10", "2023-12-31", "never", "", "2024-02-30"],
    "timestamp": ["2024-01-01 00:00:00", "2024-01-01 00:00:00.0", "2024-01-01", "2024-01-01 1:02", "", "no"],
    "decimal(5,2)": ["1", "1.0", "1.00", "-1", "01", "0.1", "x", "", "1E1"],
    "double": ["1", "1.0", "1e0", "-0.0", "0", "NaN", "Infinity", ""],
    "boolean": ["true", "false", "TRUE", "x", ""],
}
QUICK = ("string", "int", "decimal(5,2)")
"""What every run tries; the soak tries all types."""

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "<>")


def literal(text: str) -> str:
    return f"'{text}'" if "'" not in text else f'"{text}"'


def leaf(rng: random.Random, key: str, texts: list[str]) -> str:
    one, other = (rng.choice([*texts, DEFAULT]) for _ in range(2))
    if one.lstrip("-").isdecimal() and one.isascii() and rng.random() < 0.7:
        return f"{key} {rng.choice(OPERATORS)} {one}"
    return rng.choice(
        (
            f"{key} {rng.choice(OPERATORS)} {literal(one)}",
            f"{literal(one)} {rng.choice(OPERATORS)} {key}",
            f"{key} IN ({literal(one)}, {literal(other)})",
            f"{key} NOT IN ({literal(one)}, {literal(other)})",
            f"{key} BETWEEN {literal(one)} AND {literal(other)}",
            f"{key} LIKE {literal(one[:1] + '%')}",
            f"NOT {key} LIKE {literal('%' + one[1:])}",
        )
    )


def selections(rng: random.Random, keys: tuple[tuple[str, str], ...]) -> list[PartitionSelection]:
    pools = [TEXTS[type_] for _, type_ in keys]
    found: list[PartitionSelection] = [AllPartitions()]
    for _ in range(60):
        leaves = [leaf(rng, keys[at][0], pools[at]) for at in (0, 1)]
        found.append(ByFilter(rng.choice((leaves[0], leaves[1], " AND ".join(leaves), " OR ".join(leaves)))))
    for _ in range(15):
        values = [rng.choice([*pool, "", DEFAULT]) for pool in pools]
        found += [ByPartialValues(tuple(values[: rng.choice((1, 2))])), ByValues(tuple(values))]
    return found


def reads_of(rng: random.Random, one: PartitionSelection) -> dict[str, Callable[[PartitionReads], Any]]:
    """Each read that has a selection."""
    most, order = rng.choice((-1, 1, 3)), rng.choice(("0:+", "0:-", "1:+", "1,0:-+", "1,0:+-"))
    chosen, distinct, ascending = rng.choice((["x"], ["y"], ["y", "x"])), rng.random() < 0.5, rng.random() < 0.5
    return {
        f"{most} names": lambda reads: reads.get_partition_names(PartitionQuery(T, one, most)),
        f"{most} names by {order}": lambda reads: reads.get_partition_names(PartitionQuery(T, one, most), order=order),
        f"{most} partitions": lambda reads: reads.get_partitions(PartitionQuery(T, one, most)),
        "count": lambda reads: reads.get_partition_count(PartitionQuery(T, one)),
        f"{most} values of {chosen} {distinct} {ascending}": lambda reads: reads.get_partition_values(
            PartitionQuery(T, one, most), chosen, distinct=distinct, ascending=ascending
        ),
    }


@pytest.mark.parametrize(
    "first",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.soak, pytest.mark.long]) for one in TEXTS],
)
def test_memory_answers_as_the_database(initialized_database_url: str, tmp_path: Path, first: str) -> None:
    rng = random.Random(first)
    second = rng.choice([one for one in TEXTS if one != first])
    keys = (("x", first), ("y", second))
    with closing(Server(initialized_database_url, tmp_path)) as server:
        store = server.objects
        create_database(store, "d")
        owner = table("d", "t", keys)
        store.writes.tables.create_table(owner)
        pairs = [(one, other) for one in (*TEXTS[first], DEFAULT) for other in (*TEXTS[second], DEFAULT)]
        rng.shuffle(pairs)
        by_name: dict[tuple[str, str], tuple[str, str]] = {}
        for one, other in pairs[:60]:
            by_name.setdefault((one or DEFAULT, other or DEFAULT), (one, other))
        for values in by_name.values():
            store.writes.partitions.add_partitions(T, [partition(owner, values)])
        server.poller.step()
        server.store.reads.partitions.get_partitions(PartitionQuery(T))
        every = store.reads.partitions.get_partition_names(PartitionQuery(T))
        assert len(every) == len(by_name)
        for one in [*selections(rng, keys), ByNames(tuple(every))]:
            for what, read in reads_of(rng, one).items():
                from_memory = encoded(partial(read, server.store.reads.partitions))
                assert from_memory == encoded(partial(read, store.reads.partitions)), (one, what)
        assert server.reasons().count(Reason.HIT) > 200


EMPTY_OR_NOT: list[PartitionSelection] = [
    *(ByFilter(text) for text in ("x = ''", "x < 'A'", "x != 'a'", "x LIKE ''", "NOT x LIKE '_%'")),
    *(ByFilter(text) for text in (f"x = '{DEFAULT}'", f"x != '{DEFAULT}'", "x > 'A'", "x LIKE '#_#_HIVE%'")),
    *(ByPartialValues((value,)) for value in ("a", "", DEFAULT)),
    ByValues(("", "1")),
    ByNames((f"x={DEFAULT}/y=1",)),
    AllPartitions(),
]
"""Selections that tell an empty value from the default partition's name, and some that do not."""


@pytest.mark.parametrize("stored", ["", DEFAULT], ids=["stored empty", "stored by name"])
def test_what_changed_of_a_default_partition_is_read_again(
    initialized_database_url: str, tmp_path: Path, stored: str
) -> None:
    """Deletions of statistics, compactions, and Hive's updates of statistics have only the partition's name."""
    keys = (("x", "string"), ("y", "string"))
    name = f"x={DEFAULT}/y=1"
    described = ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName="d", tableName="t", partName=name)
    numbers = ttypes.ColumnStatisticsData(stringStats=ttypes.StringColumnStatsData(1, 1.0, 0, 1))
    statistics = ttypes.ColumnStatistics(
        statsDesc=described, statsObj=[ttypes.ColumnStatisticsObj("a", "string", numbers)], engine="hive"
    )
    with (
        closing(Server(initialized_database_url, tmp_path)) as here,
        closing(Server(initialized_database_url, tmp_path)) as elsewhere,
    ):
        create_database(here.store, "d")
        owner = table("d", "t", keys)
        here.store.writes.tables.create_table(owner)
        some = [partition(owner, values) for values in ((stored, "1"), ("a", "1"), ("a", "2"))]
        here.store.writes.partitions.add_partitions(T, some)
        reads, writes = here.store.reads.partitions, elsewhere.objects.writes.statistics
        for selection in EMPTY_OR_NOT:

            def ask(store: PartitionReads, one: PartitionSelection = selection) -> list[str]:
                return list(store.get_partition_names(PartitionQuery(T, one)))

            writes.update_partition_column_statistics([copy.deepcopy(statistics)])
            reads.get_partitions(PartitionQuery(T))
            writes.delete_partition_column_statistics(T, [name], [], engine="hive")
            here.reasons()
            assert encoded(partial(ask, reads)) == encoded(partial(ask, here.objects.reads.partitions)), selection
            assert here.reasons() in ([Reason.HIT], [Reason.MISS])


@pytest.mark.parametrize("column", [" b", "c ", " D ", "\u00a0e", "İ"], ids=ascii)
def test_statistics_of_a_column_with_an_odd_name_are_followed(
    initialized_database_url: str, tmp_path: Path, column: str
) -> None:
    """Columns may begin and end with blanks (Hive and Spark accept any name between backticks)."""

    def statistics(number: int, partition_name: str | None = None) -> ttypes.ColumnStatistics:
        described = ttypes.ColumnStatisticsDesc(partition_name is None, "d", "t", partition_name)
        numbers = ttypes.ColumnStatisticsData(stringStats=ttypes.StringColumnStatsData(number, 1.0, 0, number))
        return ttypes.ColumnStatistics(
            described, [ttypes.ColumnStatisticsObj(column, "string", numbers)], engine="hive"
        )

    with (
        closing(Server(initialized_database_url, tmp_path)) as here,
        closing(Server(initialized_database_url, tmp_path)) as elsewhere,
    ):
        create_database(here.store, "d")
        owner = table("d", "t", (("x", "string"),))
        owner.sd.cols = [ttypes.FieldSchema(name, "string", None) for name in ("a", column)]
        here.store.writes.tables.create_table(owner)
        here.store.writes.partitions.add_partitions(T, [partition(owner, ("1",))])
        questions: list[Callable[[MetadataStore], Any]] = [
            lambda store: store.reads.statistics.get_table_column_statistics(StatisticsQuery(T, [column])),
            lambda store: store.reads.statistics.get_partition_column_statistics(
                StatisticsQuery(T, ["a", column]), ["x=1"]
            ),
            lambda store: store.reads.statistics.get_aggregate_statistics(StatisticsQuery(T, [column]), ["x=1"]),
        ]
        writes = elsewhere.objects.writes.statistics
        for number in (1, 2):
            writes.update_table_column_statistics(statistics(number))
            writes.update_partition_column_statistics([statistics(number, "x=1")])
            for ask in questions:
                assert encoded(partial(ask, here.store)) == encoded(partial(ask, here.objects)), number
        here.reasons()
        for ask in questions:
            ask(here.store)
        assert here.reasons() == [Reason.HIT] * 3


@pytest.mark.parametrize("key", ["q:", "a=b", "50%", "q/r", "Q:"])
def test_statistics_of_partitions_whose_key_is_escaped_in_their_name(
    initialized_database_url: str, tmp_path: Path, key: str
) -> None:
    with closing(Server(initialized_database_url, tmp_path)) as server:
        create_database(server.store, "d")
        owner = table("d", "t", ((key, "string"), ("y", "string")))
        server.store.writes.tables.create_table(owner)
        server.store.writes.partitions.add_partitions(T, [partition(owner, ("1", "2"))])
        [name] = server.store.reads.partitions.get_partition_names(PartitionQuery(T))
        assert name.startswith(make_partition_name([key], ["1"]))
        described = ttypes.ColumnStatisticsDesc(False, "d", "t", name)
        numbers = ttypes.ColumnStatisticsData(stringStats=ttypes.StringColumnStatsData(1, 1.0, 0, 1))
        written = ttypes.ColumnStatistics(
            described, [ttypes.ColumnStatisticsObj("a", "string", numbers)], engine="hive"
        )
        server.store.writes.statistics.update_partition_column_statistics([written])
        for store in (server.store, server.objects):
            [found] = store.reads.statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), [name])
            assert (found.statsDesc.partName, found.statsObj) == (name, written.statsObj)
            assert store.reads.statistics.get_aggregate_statistics(StatisticsQuery(T, ["a"]), [name]).partsFound == 1
        server.store.writes.statistics.delete_partition_column_statistics(T, [name], ["a"])
        assert server.store.reads.statistics.get_partition_column_statistics(StatisticsQuery(T, ["a"]), [name]) == []
