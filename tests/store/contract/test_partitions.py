"""Contract of partitions: each read agrees with what was written, for each form of a selection."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import Writer
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByExpression,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    Grantee,
    PartitionProjection,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest, columns, environment, external, table

KEYS = (("dt", "string"), ("hr", "int"))
T = (CATALOG, DATABASE, "t")
KEEP_STATISTICS = environment(DO_NOT_UPDATE_STATS="true")


@pytest.fixture
def parted(catalog: StoreUnderTest) -> StoreUnderTest:
    """A table `t` of two days of three hours."""
    catalog.create_table(keys=KEYS)
    catalog.add_partitions("t", *((day, str(hour)) for day in ("2024-01-01", "2024-01-02") for hour in (1, 9, 10)))
    return catalog


def names(
    under_test: StoreUnderTest,
    selection: PartitionSelection | None = None,
    max_parts: int = -1,
    order: str | None = None,
) -> list[str]:
    return under_test.store.reads.partitions.get_partition_names(
        PartitionQuery(TableName(*T), selection or AllPartitions(), max_parts), order=order
    )


def get(under_test: StoreUnderTest, *values: str) -> ttypes.Partition:
    return under_test.store.reads.partitions.get_partition(TableName(*T), values)


def new_partition(*values: str, name: str = "t", **fields: Any) -> ttypes.Partition:
    descriptor = table(name).sd
    defaults: dict[str, Any] = {"values": list(values), "dbName": DATABASE, "tableName": name, "sd": descriptor}
    return ttypes.Partition(**{**defaults, "parameters": {}, "catName": CATALOG, **fields})


ALL = [f"dt=2024-01-0{day}/hr={hour}" for day in (1, 2) for hour in (1, 10, 9)]
SELECTIONS: list[tuple[PartitionSelection, list[str]]] = [
    (AllPartitions(), ALL),
    (ByNames(("dt=2024-01-02/hr=1", "dt=x/hr=1", "dt=2024-01-01/hr=9", "dt=2024-01-02/hr=1")), [ALL[2], ALL[3]]),
    (ByValues(("2024-01-02", "9")), [ALL[5]]),
    (ByValues(("2024-01-02", "8")), []),
    (ByPartialValues(("2024-01-02",)), ALL[3:]),
    (ByPartialValues(("", "9")), [ALL[2], ALL[5]]),
    (ByPartialValues(("2024-01-01", "")), ALL[:3]),
    (ByPartialValues(("", "")), ALL),
    (ByFilter("hr > 1"), [ALL[1], ALL[2], ALL[4], ALL[5]]),
    (ByFilter('dt = "2024-01-01" and hr in (9, 10)'), [ALL[1], ALL[2]]),
    (ByFilter('dt like "%02" or hr = 1'), [ALL[0], *ALL[3:]]),
    (ByExpression(b"hr < 9", plain_text=True), [ALL[0], ALL[3]]),
]


@pytest.mark.parametrize("order", [0, 1, None])
def test_sort_columns_are_stored_as_hive_stores_them(catalog: StoreUnderTest, order: int | None) -> None:
    """In the lists of a descriptor, Hive lowers the case of these names."""
    sent = [ttypes.Order(" Id\t", order), ttypes.Order("V", 1)]
    stored = [ttypes.Order("id", order or 0), ttypes.Order("v", 1)]
    of_table = table(keys=KEYS)
    of_table.sd.sortCols, of_table.sd.bucketCols = copy.deepcopy(sent), ["Id"]
    catalog.store.writes.tables.create_table(of_table)
    assert (catalog.get("t").sd.sortCols, catalog.get("t").sd.bucketCols) == (stored, ["Id"])
    for _ in range(2):  # the second time, it is sent what is already stored
        changed = catalog.get("t")
        changed.sd.sortCols = copy.deepcopy(sent[1:])
        catalog.alter("t", changed)
        assert catalog.get("t").sd.sortCols == stored[1:]
    added = new_partition("2024-01-01", "1")
    added.sd.sortCols = copy.deepcopy(sent)
    [answered] = catalog.store.writes.partitions.add_partitions(TableName(*T), [added])
    found = get(catalog, "2024-01-01", "1")
    assert answered.sd.sortCols == found.sd.sortCols == stored
    found.sd.sortCols = copy.deepcopy(sent[1:])
    catalog.store.writes.partitions.alter_partitions(TableName(*T), [found])
    assert get(catalog, "2024-01-01", "1").sd.sortCols == stored[1:]


@pytest.mark.parametrize(("selection", "expected"), SELECTIONS, ids=[str(index) for index in range(len(SELECTIONS))])
def test_all_reads_of_a_selection_agree(
    parted: StoreUnderTest, selection: PartitionSelection, expected: list[str]
) -> None:
    store = parted.store
    assert names(parted, selection) == expected
    assert store.reads.partitions.get_partition_count(PartitionQuery(TableName(*T), selection)) == len(expected)
    found = store.reads.partitions.get_partitions(PartitionQuery(TableName(*T), selection))
    assert not found.has_unknown
    assert [f"dt={one.values[0]}/hr={one.values[1]}" for one in found.partitions] == expected
    assert found.partitions == [get(parted, *one.values) for one in found.partitions]
    for limit in (0, 1, 3, 100):
        assert names(parted, selection, max_parts=limit) == expected[:limit]
        limited = store.reads.partitions.get_partitions(PartitionQuery(TableName(*T), selection, limit)).partitions
        assert limited == found.partitions[:limit]
    rows = store.reads.partitions.get_partition_values(
        PartitionQuery(TableName(*T), selection), ["hr", "dt"], distinct=False
    )
    assert sorted((row.row[1], row.row[0]) for row in rows) == sorted(tuple(one.values) for one in found.partitions)


def test_what_is_added_is_answered(catalog: StoreUnderTest) -> None:
    store = catalog.store
    owner = catalog.create_table(keys=KEYS)
    sent = new_partition("a b", "1", parameters={"b": "2", "a": "1"}, lastAccessTime=7)
    untouched = copy.deepcopy(sent)
    [added] = store.writes.partitions.add_partitions(TableName(*T), [sent])
    assert sent == untouched
    found = get(catalog, "a b", "1")
    assert found == ttypes.Partition(
        values=["a b", "1"],
        dbName=DATABASE,
        tableName="t",
        createTime=1_700_000_000,
        lastAccessTime=7,
        sd=ttypes.StorageDescriptor(**{**_fields(sent.sd), "location": f"{owner.sd.location}/dt=a b/hr=1"}),
        parameters={"a": "1", "b": "2", "transient_lastDdlTime": "1700000000"},
        catName=CATALOG,
        writeId=-1,
    )
    assert list(found.parameters) == sorted(found.parameters)
    assert (added.sd, added.parameters, added.values) == (found.sd, found.parameters, found.values)
    assert catalog.files()[-1] == "d.db/t/dt=a b/hr=1"
    assert catalog.events()[-1] == ("ADD_PARTITION", DATABASE, "t")
    assert catalog.last_event().partitions == (("a b", "1"),)


def _fields(struct: Any) -> dict[str, Any]:
    fields = {entry[2]: getattr(struct, entry[2]) for entry in struct.thrift_spec if entry is not None}
    fields["storedAsSubDirectories"] = bool(fields.get("storedAsSubDirectories"))
    return fields


def test_answers_are_the_callers(parted: StoreUnderTest) -> None:
    first = get(parted, "2024-01-01", "1")
    first.parameters["x"] = "changed"
    first.values[0] = "changed"
    first.sd.location = "changed"
    assert "x" not in get(parted, "2024-01-01", "1").parameters
    found = parted.partitions("t")
    found[0].parameters["x"] = "changed"
    assert "x" not in parted.partitions("t")[0].parameters
    assert found[0].values != found[1].values


def test_reads_follow_writes(parted: StoreUnderTest) -> None:
    """Each change is visible in each later read."""
    store = parted.store
    assert len(parted.partitions("t")) == 6
    store.writes.partitions.add_partitions(TableName(*T), [new_partition("2024-01-03", "1")])
    assert names(parted) == [*ALL, "dt=2024-01-03/hr=1"]
    changed = get(parted, "2024-01-03", "1")
    changed.parameters["k"] = "v"
    store.writes.partitions.alter_partitions(TableName(*T), [changed], writer=Writer(options=KEEP_STATISTICS))
    assert get(parted, "2024-01-03", "1").parameters["k"] == "v"
    changed.values = ["2024-01-04", "2"]
    store.writes.partitions.rename_partition(TableName(*T), ["2024-01-03", "1"], changed)
    assert names(parted) == [*ALL, "dt=2024-01-04/hr=2"]
    with pytest.raises(ttypes.NoSuchObjectException):
        get(parted, "2024-01-03", "1")
    assert get(parted, "2024-01-04", "2").parameters["k"] == "v"
    store.writes.partitions.drop_partitions(TableName(*T), ByFilter("hr = 2"), delete_data=True)
    assert names(parted) == ALL
    assert store.reads.partitions.get_partition_count(PartitionQuery(TableName(*T))) == 6
    assert [event for event, _, _ in parted.events()[-4:]] == [
        "ADD_PARTITION",
        "ALTER_PARTITION",
        "ALTER_PARTITION",
        "DROP_PARTITION",
    ]


def test_unknown_tables_and_partitions(parted: StoreUnderTest) -> None:
    store = parted.store
    absent = (CATALOG, DATABASE, "absent")
    for call in (
        lambda: store.reads.partitions.get_partition(TableName(*absent), ["a", "1"]),
        lambda: store.reads.partitions.get_partitions(PartitionQuery(TableName(*absent))),
        lambda: store.reads.partitions.get_partition_names(PartitionQuery(TableName(*absent))),
        lambda: store.reads.partitions.get_partition_count(PartitionQuery(TableName(*absent))),
        lambda: store.reads.partitions.get_partition_values(PartitionQuery(TableName(*absent)), ["dt"]),
        lambda: store.writes.partitions.drop_partitions(TableName(*absent), AllPartitions(), delete_data=True),
    ):
        with pytest.raises(ttypes.NoSuchObjectException):
            call()
    with pytest.raises(ttypes.NoSuchObjectException) as raised:
        get(parted, "2024-01-01", "0")
    assert raised.value.message == "partition values=[2024-01-01, 0]"
    with pytest.raises(ttypes.MetaException):
        get(parted, "2024-01-01")


@pytest.mark.parametrize("text", ['nokey = "1"', "hr = ", 'hr = "x" and', "dt ="])
def test_bad_filters(parted: StoreUnderTest, text: str) -> None:
    for call in (
        parted.store.reads.partitions.get_partitions,
        parted.store.reads.partitions.get_partition_names,
        parted.store.reads.partitions.get_partition_count,
    ):
        with pytest.raises(ttypes.MetaException):
            call(PartitionQuery(TableName(*T), ByFilter(text)))


def test_bad_values_and_keys(parted: StoreUnderTest) -> None:
    with pytest.raises(ttypes.MetaException):
        names(parted, ByPartialValues(("a", "b", "c")))
    with pytest.raises(ttypes.MetaException):
        parted.store.reads.partitions.get_partition_values(PartitionQuery(TableName(*T)), ["nokey"])


def test_orders_and_values(parted: StoreUnderTest) -> None:
    store = parted.store
    assert names(parted, order="1,0:-+", max_parts=3) == [ALL[1], ALL[4], ALL[2]]
    assert [row.row for row in store.reads.partitions.get_partition_values(PartitionQuery(TableName(*T)), ["hr"])] == [
        ["1"],
        ["9"],
        ["10"],
    ]
    descending = store.reads.partitions.get_partition_values(
        PartitionQuery(TableName(*T), max_parts=2), ["HR"], ascending=False
    )
    assert [row.row for row in descending] == [["10"], ["9"]]


def test_projections_and_privileges(parted: StoreUnderTest) -> None:
    requested = PartitionProjection(("values", "sd.location", "parameters"), exclude_parameters="transient%")
    [found] = parted.store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), ByValues(("2024-01-01", "1"))), projection=requested
    ).partitions
    assert (found.values, found.parameters) == (["2024-01-01", "1"], {})
    assert found.sd.location.endswith("/dt=2024-01-01/hr=1")
    assert (found.tableName, found.sd.cols) == (None, None)
    for one in parted.store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T)), grantee=Grantee("u", ("g",))
    ).partitions:
        assert one.privileges is None


def test_additions_are_all_or_none(parted: StoreUnderTest) -> None:
    store = parted.store
    both = [new_partition("new", "1"), new_partition("2024-01-01", "1")]
    with pytest.raises(ttypes.AlreadyExistsException, match="Partition already exists: "):
        store.writes.partitions.add_partitions(TableName(*T), both)
    assert names(parted) == ALL
    assert [one.values for one in store.writes.partitions.add_partitions(TableName(*T), both, if_not_exists=True)] == [
        ["new", "1"]
    ]
    assert names(parted) == [*ALL, "dt=new/hr=1"]
    with pytest.raises(ttypes.InvalidObjectException):
        store.writes.partitions.add_partitions(
            TableName(CATALOG, DATABASE, "absent"), [new_partition("a", "1", name="absent")]
        )


def test_changes_of_what_is_not_there(parted: StoreUnderTest) -> None:
    store = parted.store
    with pytest.raises(ttypes.InvalidOperationException):
        store.writes.partitions.alter_partitions(
            TableName(*T), [get(parted, "2024-01-01", "1"), new_partition("x", "1")]
        )
    with pytest.raises(ttypes.InvalidOperationException):
        store.writes.partitions.rename_partition(TableName(*T), ["x", "1"], new_partition("y", "1"))
    with pytest.raises(ttypes.NoSuchObjectException):
        store.writes.partitions.drop_partitions(TableName(*T), ByNames((ALL[0], "dt=x/hr=1")), delete_data=True)
    assert names(parted) == ALL
    assert (
        store.writes.partitions.drop_partitions(
            TableName(*T), ByNames(("dt=x/hr=1",)), delete_data=True, if_exists=True
        )
        == []
    )
    with pytest.raises(ttypes.MetaException):
        store.writes.partitions.drop_partitions(TableName(*T), ByExpression(b"not understood"), delete_data=True)
    assert store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), ByExpression(b"not understood"))
    ).has_unknown
    for limit in (-1, 1):
        with pytest.raises(ttypes.MetaException):
            store.reads.partitions.get_partition_names(
                PartitionQuery(TableName(*T), ByExpression(b"not understood"), limit)
            )
    assert len(parted.partitions("t")) == 6


def test_drops_answer_what_was_and_take_data_along(parted: StoreUnderTest) -> None:
    before = parted.partitions("t")
    dropped = parted.store.writes.partitions.drop_partitions(
        TableName(*T), ByPartialValues(("2024-01-01",)), delete_data=True
    )
    assert dropped == before[:3]
    assert not any("2024-01-01" in path for path in parted.files())
    assert any("2024-01-02" in path for path in parted.files())


def test_data_of_external_tables_stays(catalog: StoreUnderTest) -> None:
    catalog.store.writes.tables.create_table(external("t", keys=KEYS))
    catalog.add_partitions("t", ("a", "1"))
    catalog.store.writes.partitions.drop_partitions(TableName(*T), AllPartitions(), delete_data=True)
    assert any(path.endswith("dt=a/hr=1") for path in catalog.files())


def test_an_exchange(parted: StoreUnderTest) -> None:
    parted.create_table("u", keys=KEYS)
    moved = parted.store.writes.partitions.exchange_partitions(
        {"dt": "2024-01-01"}, TableName(*T), TableName(CATALOG, DATABASE, "u")
    )
    assert len(moved) == 3
    assert names(parted) == ALL[3:]
    assert (
        parted.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, DATABASE, "u"))) == ALL[:3]
    )
    assert all("/u/" in one.sd.location for one in parted.partitions("u"))


def test_markers(parted: StoreUnderTest) -> None:
    store, values = parted.store, {"dt": "2024-01-01", "hr": "1"}
    with pytest.raises(ttypes.UnknownTableException):
        store.reads.partitions.is_partition_marked_for_event(TableName(CATALOG, DATABASE, "absent"), values, 1)
    assert not store.reads.partitions.is_partition_marked_for_event(TableName(*T), values, 1)


def test_columns_of_partitions_are_their_own(parted: StoreUnderTest) -> None:
    wider = get(parted, "2024-01-01", "1")
    wider.sd.cols = columns(("id", "bigint"), ("v", "string"), ("more", "int"))
    parted.store.writes.partitions.alter_partitions(TableName(*T), [wider], writer=Writer(options=KEEP_STATISTICS))
    assert [len(one.sd.cols) for one in parted.partitions("t")] == [3, 2, 2, 2, 2, 2]


def test_unpartitioned_tables_have_none(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    assert names(catalog) == []
    assert catalog.partitions("t") == []
    assert catalog.store.reads.partitions.get_partition_count(PartitionQuery(TableName(*T))) == 0


def test_names_of_any_text(catalog: StoreUnderTest) -> None:
    catalog.create_table(keys=(("k", "string"),))
    values = ["", "a/b=c", "100%", "ä'\"", "日本", "x y"]
    catalog.add_partitions("t", *((value,) for value in values))
    assert sorted(one.values[0] for one in catalog.partitions("t")) == sorted(values)
    for value in values:
        assert get(catalog, value).values == [value]
    assert "k=__HIVE_DEFAULT_PARTITION__" in names(catalog)
    assert "k=a%2Fb%3Dc" in names(catalog)
