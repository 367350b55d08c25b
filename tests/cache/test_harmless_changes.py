"""Changes cost what changed: alters that leave partitions alone, and reads beside partitions that changed (P1, P12)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.event_rules import keeps_partitions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming.snapshot_reads import Wanted
from hms_cache.notifications import events as ev
from hms_cache.notifications.messages import MessageFormat
from hms_cache.notifications.scope import TableName
from hms_cache.notifications.tjson import write_struct
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, ByPartialValues, PartitionSelection
from hms_cache.store.contract.raw_store import RawStore
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.test_event_cells import header
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

T = TableName(CATALOG, "d", "t")
KEYS = (("p", "string"), ("q", "int"))
NAMES = ("p=a/q=1", "p=a/q=2", "p=b/q=1")

Alter = Callable[[ttypes.Table], object]


def _parameter(name: str, text: str) -> Alter:
    return lambda one: one.parameters.update({name: text})


def _columns(change: Callable[[list[ttypes.FieldSchema]], object]) -> Alter:
    return lambda one: change(one.sd.cols)


ALTERS: dict[str, tuple[bool, Alter]] = {
    "parameter": (True, _parameter("k", "v")),
    "statistics mark": (True, _parameter("spark.sql.statistics.numRows", "5")),
    "comment": (True, _parameter("comment", "new")),
    "parameter removed": (True, lambda one: one.parameters.pop("version")),
    "owner": (True, lambda one: setattr(one, "owner", "somebody")),
    "nothing": (True, lambda one: None),
    "external": (False, _parameter("EXTERNAL", "TRUE")),
    "excluded": (False, _parameter("hms_cache.sync", "false")),
    "location": (False, lambda one: setattr(one.sd, "location", f"{one.sd.location}_moved")),
    "column added": (False, _columns(lambda cols: cols.append(ttypes.FieldSchema("c", "int", None)))),
    "column removed": (False, _columns(lambda cols: cols.pop())),
    "column type": (False, _columns(lambda cols: setattr(cols[0], "type", "varchar(9)"))),
    "column comment": (False, _columns(lambda cols: setattr(cols[0], "comment", "c"))),
    "serde": (False, lambda one: one.sd.serdeInfo.parameters.update({"x": "y"})),
    "input format": (False, lambda one: setattr(one.sd, "inputFormat", "x.Y")),
    "descriptor parameter": (False, lambda one: one.sd.parameters.update({"x": "y"})),
    "key comment": (False, lambda one: setattr(one.partitionKeys[0], "comment", "c")),
    "retention": (False, lambda one: setattr(one, "retention", 7)),
}

READS: dict[str, Callable[[RawStore], Any]] = {
    "all": lambda store: store.get_partitions(CATALOG, "d", "t", AllPartitions()),
    "one": lambda store: store.get_partition(CATALOG, "d", "t", ["a", "1"]),
    "filter": lambda store: store.get_partitions(CATALOG, "d", "t", ByFilter('p = "a"')),
    "names": lambda store: store.get_partition_names(CATALOG, "d", "t", AllPartitions()),
    "statistics": lambda store: store.get_partition_column_statistics(CATALOG, "d", "t", NAMES, ["a"]),
    "aggregate": lambda store: store.get_aggregate_statistics(CATALOG, "d", "t", NAMES, ["a"]),
    "table statistics": lambda store: store.get_table_column_statistics(CATALOG, "d", "t", ["a"]),
    "table": lambda store: store.get_table(CATALOG, "d", "t"),
}


def make(server: Server) -> None:
    create_database(server.objects, "d")
    server.objects.create_table(table("d", "t", KEYS, version="1"))
    of = server.objects.get_table(CATALOG, "d", "t")
    values = [tuple(part.partition("=")[2] for part in name.split("/")) for name in NAMES]
    server.objects.add_partitions(CATALOG, "d", "t", [partition(of, one) for one in values])
    for name in NAMES:
        server.objects.update_partition_column_statistics([_statistics(name)])
    server.poller.step()


def _statistics(partition_name: str) -> ttypes.ColumnStatistics:
    numbers = ttypes.StringColumnStatsData(maxColLen=9, avgColLen=4.0, numNulls=1, numDVs=3)
    column = ttypes.ColumnStatisticsObj("a", "string", ttypes.ColumnStatisticsData(stringStats=numbers))
    about = ttypes.ColumnStatisticsDesc(False, "d", "t", partition_name, 1_700_000_000, CATALOG)
    return ttypes.ColumnStatistics(about, [column], None, "hive")


def agree(server: Server) -> None:
    for name, ask in READS.items():
        for _ in range(2):
            assert encoded(lambda ask=ask: ask(server.store)) == encoded(lambda ask=ask: ask(server.objects)), name


@pytest.mark.parametrize("cascade", [False, True], ids=["", "cascade"])
@pytest.mark.parametrize("message_format", MessageFormat)
@pytest.mark.parametrize("name", ALTERS)
def test_after_an_alter_memory_equals_the_database(
    name: str, message_format: MessageFormat, cascade: bool, servers: MakeServer
) -> None:
    keeps, alter = ALTERS[name]
    here, elsewhere = servers(), servers(message_format=message_format)
    make(here)
    agree(here)
    changed = copy.deepcopy(here.objects.get_table(CATALOG, "d", "t"))
    alter(changed)
    elsewhere.objects.alter_table(CATALOG, "d", "t", changed, cascade=cascade)
    here.poller.step()
    entry = here.cache.shared.entry(T)
    held = set(entry.facets) if entry is not None else set()
    agree(here)
    assert (Facet.PARTITIONS in held, Facet.PARTITION_STATISTICS in held) == (keeps, keeps)
    assert Facet.TABLE not in held


def _altered(before: ttypes.Table | None, after: ttypes.Table | None, **fields: Any) -> ev.TableAltered:
    images = [None if image is None else write_struct(image) for image in (before, after)]
    return ev.TableAltered(header("ALTER_TABLE", T), T, T, before_json=images[0], after_json=images[1], **fields)


def test_what_shows_nothing_keeps_nothing() -> None:
    image = table("d", "t", KEYS)
    assert keeps_partitions(_altered(image, image))
    assert not keeps_partitions(_altered(image, image, is_truncate=True))
    assert not keeps_partitions(_altered(None, image))
    assert not keeps_partitions(_altered(image, None))
    assert not keeps_partitions(ev.TableAltered(header("ALTER_TABLE", T), T, T, before_json="{", after_json="{"))
    renamed = TableName(CATALOG, "d", "u")
    json = write_struct(image)
    assert not keeps_partitions(
        ev.TableAltered(header("ALTER_TABLE", T), T, renamed, before_json=json, after_json=json)
    )


def test_each_field_of_a_table_counts_unless_it_is_named() -> None:
    """A field that a later version of Hive adds to the struct counts, too, until somebody decides about it."""
    free = {"owner", "ownerType", "lastAccessTime", "parameters", "privileges", "writeId"}
    image = table("d", "t", KEYS)
    for spec in ttypes.Table.thrift_spec:
        if spec is None:
            continue
        _, kind, name, _, _ = spec
        other = copy.deepcopy(image)
        new = _another(kind, getattr(image, name), name)
        if new is None:
            continue
        setattr(other, name, new)
        assert keeps_partitions(_altered(image, other)) == (name in free), name


def _another(kind: int, value: Any, name: str) -> Any:
    if kind == 11:
        return f"{value}x"
    if kind == 2:
        return not value
    if kind in (8, 10) and name != "ownerType":
        return (value or 0) + 1
    return None


SELECTIONS: list[tuple[PartitionSelection, bool]] = [
    (ByNames(("p=a/q=1",)), False),
    (ByNames(("p=b/q=1", "p=a/q=1")), True),
    (ByPartialValues(("a",)), False),
    (ByPartialValues(("b",)), True),
    (ByFilter('p = "a"'), False),
    (ByFilter("q > 1"), False),
    (ByFilter("q = 1"), True),
    (AllPartitions(), True),
]


@pytest.mark.parametrize("change", ["alter", "drop"])
@pytest.mark.parametrize(("selection", "concerned"), SELECTIONS, ids=[str(one) for one, _ in SELECTIONS])
def test_a_read_beside_a_changed_partition_asks_the_database_only_for_what_it_selects(
    selection: PartitionSelection, concerned: bool, change: str, servers: MakeServer
) -> None:
    here, elsewhere = servers(), servers()
    make(here)
    agree(here)
    if change == "alter":
        one = elsewhere.objects.get_partition(CATALOG, "d", "t", ["b", "1"])
        one.parameters["k"] = "new"
        elsewhere.objects.alter_partitions(CATALOG, "d", "t", [one])
    else:
        elsewhere.objects.drop_partitions(CATALOG, "d", "t", ByNames(("p=b/q=1",)), delete_data=True)
    here.reasons()
    asked = here.loaded()
    for ask in (
        lambda store: store.get_partitions(CATALOG, "d", "t", selection),
        lambda store: store.get_partition_count(CATALOG, "d", "t", selection),
        lambda store: store.get_partition_names(CATALOG, "d", "t", selection),
    ):
        assert encoded(lambda ask=ask: ask(here.store)) == encoded(lambda ask=ask: ask(here.objects))
    expected = [Wanted(T, Facet.PARTITIONS, (("b", "1"),))] if concerned else []
    assert asked == expected
    assert here.reasons() == [Reason.MISS if concerned else Reason.HIT, Reason.HIT, Reason.HIT]
    agree(here)
