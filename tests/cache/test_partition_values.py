"""Partitions whose values are spelled unusually: each read through a cache equals the read on the database, also after
a change made elsewhere. A partition is identified by its name, and an event or a request may spell its values
differently than they are stored."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import (
    DEFAULT_PARTITION_VALUE,
    PartitionNaming,
    escape_path_name,
    make_partition_name,
)
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import ByFilter, ByNames, ByPartialValues, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.schema import PARTITIONS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

T = TableName(CATALOG, "d", "t")
VALUES = ("", DEFAULT_PARTITION_VALUE, "plain", " x ", "a/b=c", "%41", "a%2Fb", "é", "e\u0301", "日本", "01", "X", "x")
QUICK = ("", DEFAULT_PARTITION_VALUE, "plain", "a/b=c", "a%2Fb", "e\u0301")

Change = Callable[[MetadataStore, ttypes.Table, str], object]


def name_of(value: str) -> str:
    return make_partition_name(["p", "q"], [value, "1"])


def statistics(name: str, maximum: int) -> ttypes.ColumnStatistics:
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=maximum, numNulls=0, numDVs=3)
    return ttypes.ColumnStatistics(
        statsDesc=ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName="d", tableName="t", partName=name),
        statsObj=[ttypes.ColumnStatisticsObj("a", "bigint", ttypes.ColumnStatisticsData(longStats=numbers))],
        engine="hive",
    )


def stored(store: MetadataStore, value: str) -> ttypes.Partition:
    return copy.deepcopy(store.reads.partitions.get_partition(T, [value, "1"]))


def alter(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    changed = stored(store, value)
    changed.parameters = {**(changed.parameters or {}), "k": "v"}
    store.writes.partitions.alter_partitions(T, [changed])


def alter_columns(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    """Moves the statistics of the column along."""
    changed = stored(store, value)
    changed.sd.cols = changed.sd.cols[1:]
    store.writes.partitions.alter_partitions(T, [changed])


def rename(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    changed = stored(store, value)
    changed.values = ["new", "1"]
    store.writes.partitions.rename_partition(T, [value, "1"], changed)


def rename_hither(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    rename(store, made, value)
    changed = stored(store, "new")
    changed.values = [value, "1"]
    changed.parameters = {**(changed.parameters or {}), "k": "v"}
    store.writes.partitions.rename_partition(T, ["new", "1"], changed)


def drop(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    store.writes.partitions.drop_partitions(T, ByNames((name_of(value),)), delete_data=False)


def drop_and_add(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    drop(store, made, value)
    store.writes.partitions.add_partitions(T, [partition(made, (value, "1"), k="v")])


CHANGES: dict[str, Change] = {
    "alter": alter,
    "alter columns": alter_columns,
    "rename": rename,
    "rename hither": rename_hither,
    "drop": drop,
    "drop and add": drop_and_add,
    "truncate": lambda store, made, value: store.writes.tables.truncate_table(T, partition_names=[name_of(value)]),
    "statistics": lambda store, made, value: store.writes.statistics.update_partition_column_statistics(
        [statistics(name_of(value), 77)]
    ),
    "merged statistics": lambda store, made, value: store.writes.statistics.merge_column_statistics(
        [statistics(name_of(value), 77)]
    ),
    "deleted statistics": lambda store, made, value: store.writes.statistics.delete_partition_column_statistics(
        T, [name_of(value)], ["a"]
    ),
}


def reads(value: str) -> Iterator[tuple[str, Callable[[MetadataStore], Any]]]:
    """Reads that may include the partition, with each spelling of its name."""
    names = [name_of(value), name_of(value).replace("p=", "P="), f"p={value}/q=1", f"p={escape_path_name(value)}/q=1/"]
    for name in dict.fromkeys(names):
        yield (
            f"statistics {name}",
            lambda store, n=name: store.reads.statistics.get_partition_column_statistics(
                StatisticsQuery(T, ["a"]), [n]
            ),
        )
        yield (
            f"aggregate {name}",
            lambda store, n=name: store.reads.statistics.get_aggregate_statistics(StatisticsQuery(T, ["A"]), [n]),
        )
        yield (
            f"by name {name}",
            lambda store, n=name: store.reads.partitions.get_partitions(PartitionQuery(T, ByNames((n,)))),
        )
    for spelled in dict.fromkeys((value, value or DEFAULT_PARTITION_VALUE, value.strip(), value.upper())):
        values = (spelled, "1")
        yield f"one {values}", lambda store, v=values: store.reads.partitions.get_partition(T, list(v))
        yield (
            f"ps {values}",
            lambda store, v=values: store.reads.partitions.get_partitions(PartitionQuery(T, ByPartialValues(v))),
        )
        yield (
            f"ps {spelled}",
            lambda store, v=values: store.reads.partitions.get_partition_names(
                PartitionQuery(T, ByPartialValues(v[:1]))
            ),
        )
        text = f'p = "{spelled}"'
        yield (
            f"filter {text}",
            lambda store, f=text: store.reads.partitions.get_partitions(PartitionQuery(T, ByFilter(f))),
        )
    yield "all", lambda store: store.reads.partitions.get_partitions(PartitionQuery(T))
    yield "values", lambda store: store.reads.partitions.get_partition_values(PartitionQuery(T), ["p"])


def check(server: Server, value: str) -> None:
    for label, ask in reads(value):
        expected = encoded(lambda ask=ask: ask(server.objects))
        for _ in range(2):
            assert encoded(lambda ask=ask: ask(server.store)) == expected, label


@pytest.mark.parametrize("value", [pytest.param(one, marks=() if one in QUICK else pytest.mark.soak) for one in VALUES])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_elsewhere_is_seen(servers: MakeServer, change: str, value: str) -> None:
    here, elsewhere = servers(), servers()
    create_database(elsewhere.store, "d")
    made = table("d", "t", (("p", "string"), ("q", "int")))
    made.sd.cols[0].type = "bigint"
    elsewhere.store.writes.tables.create_table(made)
    same_name = {"", DEFAULT_PARTITION_VALUE}
    others = [one for one in VALUES if one != value and not {one, value} <= same_name and one != ""]
    added = [partition(made, (one, "1")) for one in (value, *others)]
    elsewhere.store.writes.partitions.add_partitions(T, added)
    elsewhere.store.writes.statistics.update_partition_column_statistics(
        [statistics(name_of(one), 5) for one in (value, *others)]
    )
    check(here, value)
    assert here.reasons().count(Reason.HIT) > 20
    CHANGES[change](elsewhere.store, made, value)
    check(here, value)


LONG = [pytest.mark.soak, pytest.mark.long]

FOREIGN_NAMES = {"a:b": "p=a:b/q=1", "c:d": "p=c%3ad/q=1", "plain": "p=%70lain/q=1", "X": "P=X/q=1", "": "p=/q=1"}
"""By value, the name that another program gave to the partition."""

CHANGES_BY_NAME: dict[str, Callable[[MetadataStore, str], object]] = {
    "drop": lambda store, name: store.writes.partitions.drop_partitions(T, ByNames((name,)), delete_data=False),
    "truncate": lambda store, name: store.writes.tables.truncate_table(T, partition_names=[name]),
    "statistics": lambda store, name: store.writes.statistics.update_partition_column_statistics(
        [statistics(name, 77)]
    ),
}


@pytest.mark.parametrize("value", FOREIGN_NAMES)
@pytest.mark.parametrize("change", CHANGES_BY_NAME)
@pytest.mark.parametrize("at_once", [pytest.param(0, id="in windows", marks=LONG), pytest.param(1000, id="whole")])
def test_a_change_of_a_partition_that_another_program_named(
    servers: MakeServer, at_once: int, change: str, value: str
) -> None:
    here, elsewhere = servers(CacheOptions(load_at_once_partitions=at_once)), servers()
    create_database(elsewhere.store, "d")
    made = table("d", "t", (("p", "string"), ("q", "int")))
    made.sd.cols[0].type = "bigint"
    elsewhere.store.writes.tables.create_table(made)
    elsewhere.store.writes.partitions.add_partitions(
        T, [partition(made, (one, "1")) for one in (value, "other", "another")]
    )
    stored_name = FOREIGN_NAMES[value]
    with elsewhere.database.writing() as connection:
        own = PARTITIONS.c.PART_NAME == name_of(value)
        connection.execute(update(PARTITIONS).where(own).values(PART_NAME=stored_name))
        connection.commit()

    def check_all() -> None:
        for _ in range(2):
            check(here, value)
            check(here, "other")
            by_name = [
                lambda store: store.reads.partitions.get_partitions(
                    PartitionQuery(T, ByNames((stored_name, name_of("other"))))
                ),
                lambda store: store.reads.partitions.get_partition_names(PartitionQuery(T)),
                lambda store: store.reads.statistics.get_aggregate_statistics(StatisticsQuery(T, ["a"]), [stored_name]),
            ]
            for ask in by_name:
                assert encoded(lambda ask=ask: ask(here.store)) == encoded(lambda ask=ask: ask(here.objects))
            here.cache.background.drain()

    check_all()
    with contextlib.suppress(ttypes.NoSuchObjectException):  # statistics have names with keys in lower case
        CHANGES_BY_NAME[change](elsewhere.store, stored_name)
    check_all()


texts = st.text(st.sampled_from("aZ0 %/=:[^{\x7f\n\\é日_-."), max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["p", "Q", "a=b", "%"]), texts), min_size=1, max_size=3), texts)
def test_names_that_are_made_of_their_values(parts: list[tuple[str, str]], other: str) -> None:
    naming = PartitionNaming([key for key, _ in parts])
    made = naming.name([value for _, value in parts])
    assert naming.makes(made)
    for changed in (
        made + other,
        other + made,
        made.replace("%", "%25", 1),
        made.lower(),
        made.replace("=", f"={other}"),
    ):
        found = [one.partition("=")[2] for one in changed.split("/")]
        is_own = len(found) == len(parts) and changed == "/".join(
            f"{prefix}{escape_path_name(unescape_path_name(value))}"
            for prefix, value in zip((f"{escape_path_name(key.lower())}=" for key, _ in parts), found, strict=True)
        )
        assert bool(naming.makes(changed)) == is_own, changed
