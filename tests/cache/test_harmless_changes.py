"""Changes cost in proportion to what changed: alters without effect on partitions, and reads beside changed partitions
(P1, P12)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.event_rules import NOTHING_STAYS, UnchangedParts, changed_columns, unchanged_parts
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming.loaded_parts import AGGREGATE
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.messages import MessageFormat
from hms_cache.notifications.tjson import write_struct
from hms_cache.store.contract.environment import EnvironmentOptions, Writer
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.contract.statistics import StatisticsQuery
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

CHANGES_LISTS = {"comment", "owner", "external"}
"""Alters that the list of the database's tables shows."""

READS: dict[str, Callable[[MetadataStore], Any]] = {
    "all": lambda store: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t"))),
    "one": lambda store: store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["a", "1"]),
    "filter": lambda store: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(CATALOG, "d", "t"), ByFilter('p = "a"'))
    ),
    "names": lambda store: store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t"))),
    "statistics": lambda store: store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(CATALOG, "d", "t"), ["a"]), NAMES
    ),
    "aggregate": lambda store: store.reads.statistics.get_aggregate_statistics(
        StatisticsQuery(TableName(CATALOG, "d", "t"), ["a"]), NAMES
    ),
    "table statistics": lambda store: store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(TableName(CATALOG, "d", "t"), ["a"])
    ),
    "table": lambda store: store.reads.tables.get_table(TableName(CATALOG, "d", "t")),
    "table names": lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")),
    "tables by type": lambda store: store.reads.tables.get_table_names(
        DatabaseName(CATALOG, "d"), None, "EXTERNAL_TABLE"
    ),
    "meta": lambda store: store.reads.tables.get_table_meta(CATALOG, "d", "*"),
}


def make(server: Server) -> None:
    create_database(server.objects, "d")
    server.objects.writes.tables.create_table(table("d", "t", KEYS, version="1"))
    of = server.objects.reads.tables.get_table(TableName(CATALOG, "d", "t"))
    values = [tuple(part.partition("=")[2] for part in name.split("/")) for name in NAMES]
    server.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(of, one) for one in values]
    )
    for name in NAMES:
        server.objects.writes.statistics.update_partition_column_statistics([_statistics(name)])
    server.poller.step()


def _statistics(partition_name: str | None, column_name: str = "a", length: int = 9) -> ttypes.ColumnStatistics:
    numbers = ttypes.StringColumnStatsData(maxColLen=length, avgColLen=4.0, numNulls=1, numDVs=3)
    column = ttypes.ColumnStatisticsObj(column_name, "string", ttypes.ColumnStatisticsData(stringStats=numbers))
    about = ttypes.ColumnStatisticsDesc(partition_name is None, "d", "t", partition_name, 1_700_000_000, CATALOG)
    return ttypes.ColumnStatistics(about, [column], None, "hive")


def agree(server: Server) -> None:
    for name, ask in READS.items():
        for _ in range(2):
            assert encoded(lambda ask=ask: ask(server.store)) == encoded(lambda ask=ask: ask(server.objects)), name


LONG = [pytest.mark.soak, pytest.mark.long]


@pytest.mark.parametrize(
    ("message_format", "cascade"),
    [  # each format and each method in every run, and all pairs in the long soak
        pytest.param(MessageFormat.JSON, False, id="json"),
        pytest.param(MessageFormat.JSON, True, id="json-cascade", marks=LONG),
        pytest.param(MessageFormat.GZIP_JSON, False, id="gzip", marks=LONG),
        pytest.param(MessageFormat.GZIP_JSON, True, id="gzip-cascade"),
    ],
)
@pytest.mark.parametrize("name", ALTERS)
def test_after_an_alter_memory_equals_the_database(
    name: str, message_format: MessageFormat, cascade: bool, servers: MakeServer
) -> None:
    keeps, alter = ALTERS[name]
    here, elsewhere = servers(), servers(message_format=message_format)
    make(here)
    agree(here)
    changed = copy.deepcopy(here.objects.reads.tables.get_table(TableName(CATALOG, "d", "t")))
    alter(changed)
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed, writer=Writer(options=EnvironmentOptions(cascades=cascade))
    )
    here.poller.step()
    entry = here.cache.shared.entry(T)
    held = set(entry.facets) if entry is not None else set()
    of_database = here.cache.shared.entry(T.in_database)
    assert of_database is not None
    assert (Facet.TABLE_NAMES in of_database.facets) == (name not in CHANGES_LISTS)
    agree(here)
    assert (Facet.PARTITIONS in held, Facet.PARTITION_STATISTICS in held) == (keeps, keeps)
    assert Facet.TABLE not in held


def _altered(before: ttypes.Table | None, after: ttypes.Table | None, **fields: Any) -> ev.TableAltered:
    images = [None if image is None else write_struct(image) for image in (before, after)]
    return ev.TableAltered(header("ALTER_TABLE", T), T, T, before_json=images[0], after_json=images[1], **fields)


def test_what_shows_nothing_keeps_nothing() -> None:
    image = table("d", "t", KEYS)
    assert unchanged_parts(_altered(image, image)).partitions
    assert not unchanged_parts(_altered(image, image, is_truncate=True)).partitions
    assert not unchanged_parts(_altered(None, image)).partitions
    assert not unchanged_parts(_altered(image, None)).partitions
    assert not unchanged_parts(
        ev.TableAltered(header("ALTER_TABLE", T), T, T, before_json="{", after_json="{")
    ).partitions
    renamed = TableName(CATALOG, "d", "u")
    json = write_struct(image)
    assert not unchanged_parts(
        ev.TableAltered(header("ALTER_TABLE", T), T, renamed, before_json=json, after_json=json)
    ).partitions


def test_what_shows_nothing_keeps_no_names() -> None:
    image = table("d", "t", KEYS)
    assert unchanged_parts(_altered(image, image)) == UnchangedParts(True, True, image)
    assert unchanged_parts(_altered(image, image, is_truncate=True)) == UnchangedParts(False, True, image)
    assert unchanged_parts(_altered(None, image)) == unchanged_parts(_altered(image, None)) == NOTHING_STAYS
    for name, value in (("tableType", "EXTERNAL_TABLE"), ("owner", "x"), ("ownerType", 2), ("tableName", "T")):
        other = copy.deepcopy(image)
        setattr(other, name, value)
        assert not unchanged_parts(_altered(image, other)).names, name


def test_an_alter_leaves_the_list_of_tables_in_memory(servers: MakeServer) -> None:
    """A writer sends one after each INSERT: the names of a large database are not listed again for it."""
    here, elsewhere = servers(), servers()
    make(here)
    READS["meta"](here.store)
    elsewhere.objects.writes.tables.alter_table(TableName(CATALOG, "d", "t"), _with_parameter(elsewhere.objects))
    here.reasons()
    loaded = here.loaded()
    for name in ("meta", "table names", "tables by type"):
        assert encoded(lambda name=name: READS[name](here.store)) == encoded(
            lambda name=name: READS[name](here.objects)
        )
    assert (here.reasons(), loaded) == ([Reason.HIT] * 3, [])


def test_each_field_of_a_table_counts_unless_it_is_named() -> None:
    """A field that a later version of Hive adds to the struct counts as a change until it has been classified."""
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
        assert unchanged_parts(_altered(image, other)).partitions == (name in free), name


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
        one = elsewhere.objects.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["b", "1"])
        one.parameters["k"] = "new"
        elsewhere.objects.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [one])
    else:
        elsewhere.objects.writes.partitions.drop_partitions(
            TableName(CATALOG, "d", "t"), ByNames(("p=b/q=1",)), delete_data=True
        )
    here.reasons()
    requested = here.loaded()
    for ask in (
        lambda store: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t"), selection)),
        lambda store: store.reads.partitions.get_partition_count(
            PartitionQuery(TableName(CATALOG, "d", "t"), selection)
        ),
        lambda store: store.reads.partitions.get_partition_names(
            PartitionQuery(TableName(CATALOG, "d", "t"), selection)
        ),
    ):
        assert encoded(lambda ask=ask: ask(here.store)) == encoded(lambda ask=ask: ask(here.objects))
    expected = [LoadRequest(T, Facet.PARTITIONS, (("b", "1"),))] if concerned else []
    assert requested == expected
    assert here.reasons() == [Reason.MISS if concerned else Reason.HIT, Reason.HIT, Reason.HIT]
    agree(here)


def test_a_batch_reload_that_is_overtaken_is_not_installed(servers: MakeServer) -> None:
    """What changes between the snapshot of a reload and its installation is read again."""
    here, elsewhere = servers(), servers()
    make(here)
    agree(here)
    _alter_partition(elsewhere, "first")
    versions = iter(("second",))

    def overtake() -> None:
        for version in versions:
            _alter_partition(elsewhere, version)
            here.poller.step()

    here.during_loads(overtake)
    READS["all"](here.store)
    agree(here)


def _alter_partition(server: Server, version: str) -> None:
    one = server.objects.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["b", "1"])
    one.parameters["k"] = version
    server.objects.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [one])


# Statistics go by partition and column

QUESTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "first": (NAMES[:1], ("a", "b")),
    "first otherwise spelled": (("p=%61/q=1",), ("a", "b")),
    "others": (NAMES[1:], ("a", "b")),
    "all": (NAMES, ("a", "b")),
    "none": (("p=z/q=9",), ("a", "b")),
    "no name": (("nonsense",), ("a",)),
}


def _changed_first(store: MetadataStore) -> ttypes.Partition:
    one = store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["a", "1"])
    one.parameters["k"] = "new"
    return one


def _rename_first(store: MetadataStore) -> None:
    one = _changed_first(store)
    one.values = ["z", "9"]
    store.writes.partitions.rename_partition(TableName(CATALOG, "d", "t"), ["a", "1"], one)


FIRST = {"first", "first otherwise spelled", "all", "no name"}
OF_FIRST: dict[str, tuple[set[str], set[str], Callable[[MetadataStore], object]]] = {
    # requests that lose both columns; requests that lose column "a"; the change
    "alter": (
        FIRST,
        set(),
        lambda store: store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [_changed_first(store)]),
    ),
    "drop": (
        FIRST,
        set(),
        lambda s: s.writes.partitions.drop_partitions(
            TableName(CATALOG, "d", "t"), ByNames(NAMES[:1]), delete_data=True
        ),
    ),
    "rename": (FIRST | {"none"}, set(), _rename_first),
    "add": (
        {"none", "no name"},
        set(),
        lambda s: s.writes.partitions.add_partitions(
            TableName(CATALOG, "d", "t"),
            [partition(s.reads.tables.get_table(TableName(CATALOG, "d", "t")), ("z", "9"))],
        ),
    ),
    "update statistics": (
        set(),
        FIRST,
        lambda store: store.writes.statistics.update_partition_column_statistics([_statistics(NAMES[0], "A", 77)]),
    ),
    "delete statistics": (
        set(),
        FIRST,
        lambda store: store.writes.statistics.delete_partition_column_statistics(
            TableName(CATALOG, "d", "t"), NAMES[:1], ["a"]
        ),
    ),
    "delete all statistics": (
        FIRST,
        set(),
        lambda store: store.writes.statistics.delete_partition_column_statistics(
            TableName(CATALOG, "d", "t"), NAMES[:1]
        ),
    ),
    "table parameter": (
        set(),
        set(),
        lambda store: store.writes.tables.alter_table(TableName(CATALOG, "d", "t"), _with_parameter(store)),
    ),
}


def _with_parameter(store: MetadataStore) -> ttypes.Table:
    changed = copy.deepcopy(store.reads.tables.get_table(TableName(CATALOG, "d", "t")))
    changed.parameters["k"] = "new"
    return changed


def _ask_statistics(store: MetadataStore) -> list[Any]:
    return [
        encoded(
            lambda ask=ask, names=names, columns=columns: ask(
                StatisticsQuery(TableName(CATALOG, "d", "t"), columns), names
            )
        )
        for names, columns in QUESTIONS.values()
        for ask in (
            store.reads.statistics.get_partition_column_statistics,
            store.reads.statistics.get_aggregate_statistics,
        )
    ]


@pytest.mark.parametrize("message_format", MessageFormat)
@pytest.mark.parametrize("change", OF_FIRST)
def test_statistics_of_partitions_go_with_their_partitions_and_columns(
    change: str, message_format: MessageFormat, servers: MakeServer
) -> None:
    all_gone, a_gone, perform = OF_FIRST[change]
    here, elsewhere = servers(), servers(message_format=message_format)
    make(here)
    for name in NAMES:
        here.objects.writes.statistics.update_partition_column_statistics([_statistics(name, "b")])
    here.poller.step()
    assert _ask_statistics(here.store) == _ask_statistics(here.objects)
    perform(elsewhere.objects)
    here.poller.step()
    entry = here.cache.shared.entry(T)
    assert entry is not None
    held = entry.facets[Facet.PARTITION_STATISTICS]
    weight = held.weight
    for name, (names, columns) in QUESTIONS.items():
        left = set(columns) - (set(columns) if name in all_gone else {"a"} if name in a_gone else set())
        if name == "no name":
            assert (("hive", names) in held) == (change == "table parameter"), "a name that cannot be read: any"
            continue
        assert set(held.get(("hive", names), {})) == left, name
        is_kept = len(left) == len(columns)
        assert (("hive", names, columns, AGGREGATE) in held) == is_kept, name
    assert weight == entry.weights[Facet.PARTITION_STATISTICS] > 0
    assert _ask_statistics(here.store) == _ask_statistics(here.objects)


def test_statistics_of_partitions_go_with_their_partitions(servers: MakeServer) -> None:
    test_statistics_of_partitions_go_with_their_partitions_and_columns("alter", MessageFormat.JSON, servers)


@pytest.mark.parametrize("message_format", MessageFormat)
@pytest.mark.parametrize(
    ("change", "gone"),
    [
        (lambda store: store.writes.statistics.update_table_column_statistics(_statistics(None, "A", 77)), {"a"}),
        (
            lambda store: store.writes.statistics.delete_table_column_statistics(TableName(CATALOG, "d", "t"), ["b"]),
            {"b"},
        ),
        (
            lambda store: store.writes.statistics.delete_table_column_statistics(TableName(CATALOG, "d", "t")),
            {"a", "b"},
        ),
        (
            lambda store: store.writes.statistics.update_partition_column_statistics([_statistics(NAMES[0], "a", 5)]),
            set(),
        ),
    ],
    ids=["update a", "delete b", "delete all", "of a partition"],
)
def test_statistics_of_a_table_go_by_column(
    change: Callable[[MetadataStore], object], gone: set[str], message_format: MessageFormat, servers: MakeServer
) -> None:
    here, elsewhere = servers(), servers(message_format=message_format)
    make(here)
    for column in ("a", "b"):
        here.objects.writes.statistics.update_table_column_statistics(_statistics(None, column))
    here.poller.step()

    def ask(store: MetadataStore) -> Any:
        return encoded(
            lambda: store.reads.statistics.get_table_column_statistics(
                StatisticsQuery(TableName(CATALOG, "d", "t"), ["a", "b", "nope"])
            )
        )

    assert ask(here.store) == ask(here.objects)
    change(elsewhere.objects)
    here.poller.step()
    entry = here.cache.shared.entry(T)
    held = entry.facets[Facet.TABLE_STATISTICS][("hive", ())] if entry is not None and gone != {"a", "b"} else {}
    if gone != {"a", "b"}:
        assert set(held) == {"a", "b", "nope"} - gone
    assert ask(here.store) == ask(here.objects)


def test_columns_that_an_event_does_not_show_are_all_of_them() -> None:
    of_table = ev.TableColumnStatisticsUpdated
    assert changed_columns(of_table(header("STAT", T))) is None
    assert changed_columns(of_table(header("STAT", T), statistics_json="{")) is None
    empty = write_struct(ttypes.ColumnStatistics(ttypes.ColumnStatisticsDesc(True, "d", "t"), []))
    assert changed_columns(of_table(header("STAT", T), statistics_json=empty)) is None
    assert changed_columns(ev.PartitionColumnStatisticsDeleted(header("STAT", T))) is None
    assert changed_columns(ev.PartitionAltered(header("ALTER_PARTITION", T))) is None
    shown = write_struct(_statistics(None, "A"))
    assert changed_columns(of_table(header("STAT", T), statistics_json=shown)) == {"a"}
