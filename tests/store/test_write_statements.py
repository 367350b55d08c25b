"""How many statements a write of the catalog sends; deletions omitted for this had nothing to delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import insert

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByValues
from hms_cache.store.engine.database import Database
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.schema import (
    BUCKETING_COLS,
    PART_COL_PRIVS,
    PART_PRIVS,
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
    SD_PARAMS,
    SDS,
    SERDE_PARAMS,
    SERDES,
    SKEWED_COL_NAMES,
    SKEWED_COL_VALUE_LOC_MAP,
    SKEWED_STRING_LIST,
    SKEWED_STRING_LIST_VALUES,
    SKEWED_VALUES,
    SORT_COLS,
    TABLE_PARAMS,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Order, Partition, SkewedInfo, Table
from tests.databases import count_statements
from tests.store.partitions.catalog import PartitionCatalog, descriptor

NAME = TableName("hive", "d", "t")


class Writer:
    def __init__(self, catalog: PartitionCatalog) -> None:
        self.catalog = catalog
        self.store = ObjectStore(catalog.context)

    def count(self, call: Callable[[], object]) -> int:
        with count_statements(self.catalog.database) as seen:
            call()
        # On SQLite, ids are assigned inside the transaction: a statement for each kind of row. Nothing goes over a
        # network.
        return sum('"SEQUENCE_TABLE"' not in one and "`SEQUENCE_TABLE`" not in one for one in seen.statements)

    def table(self, name: str = "t", **parameters: str) -> Table:
        return Table(
            tableName=name,
            dbName="d",
            owner="o",
            sd=descriptor(f"file:{self.catalog.root}/d.db/{name}"),
            partitionKeys=[FieldSchema("dt", "string"), FieldSchema("hr", "int")],
            parameters={"EXTERNAL": "TRUE", **parameters},
            tableType="EXTERNAL_TABLE",
        )

    def partition(self, hour: int, **changes: object) -> Partition:
        place = f"file:{self.catalog.root}/d.db/t/{hour}"
        return Partition(
            values=["a", str(hour)], dbName="d", tableName="t", sd=descriptor(place, **changes), parameters={"x": "y"}
        )

    def add(self, *partitions: Partition) -> None:
        self.store.writes.partitions.add_partitions(NAME, partitions)

    def drop(self, hour: int) -> None:
        self.store.writes.partitions.drop_partitions(NAME, ByValues(("a", str(hour))), delete_data=False)

    def alter(self, **parameters: str) -> None:
        self.store.writes.tables.alter_table(NAME, self.table(**parameters))


@pytest.fixture
def writer(initialized_database: Database, tmp_path: Path) -> Writer:
    made = Writer(PartitionCatalog(initialized_database, tmp_path / "warehouse", files="leave"))
    made.store.writes.tables.create_table(made.table(a="1", b="2"))
    made.add(made.partition(1))
    return made


def test_writes_take_few_statements(writer: Writer) -> None:
    taken = {
        "create_table": writer.count(lambda: writer.store.writes.tables.create_table(writer.table("u"))),
        "alter_table": writer.count(lambda: writer.alter(a="2", b="2")),
        "add_partitions": writer.count(lambda: writer.add(writer.partition(2))),
        "drop_partitions": writer.count(lambda: writer.drop(2)),
    }
    most = {"create_table": 12, "alter_table": 8, "add_partitions": 12, "drop_partitions": 16}
    if writer.catalog.database.is_sqlite:
        most["create_table"] += 1  # if there are round trips, what is queued for a cleaner is read with the name
    assert all(taken[call] <= most[call] for call in most), taken
    assert all(taken.values())


def test_parameters_are_those_of_the_last_alter(writer: Writer) -> None:
    writer.alter(a="2", c="3")
    rows = writer.catalog.rows(TABLE_PARAMS, TABLE_PARAMS.c.PARAM_KEY, TABLE_PARAMS.c.PARAM_VALUE)
    found = {key: value for key, value in rows if key in "abc"}
    assert found == {"a": "2", "c": "3"}


def test_a_parameter_without_a_value_can_get_one(writer: Writer) -> None:
    """Rows whose value is null are not read, but exist."""
    [(table_id, *_)] = {(row[0],) for row in writer.catalog.rows(TABLE_PARAMS, TABLE_PARAMS.c.TBL_ID)}
    with writer.catalog.database.writing() as connection:
        connection.execute(insert(TABLE_PARAMS).values(TBL_ID=table_id, PARAM_KEY="n", PARAM_VALUE=None))
        connection.commit()
    writer.alter(n="1")
    assert ("n", "1") in writer.catalog.rows(TABLE_PARAMS, TABLE_PARAMS.c.PARAM_KEY, TABLE_PARAMS.c.PARAM_VALUE)


def test_a_drop_leaves_nothing_of_what_a_partition_may_have(writer: Writer) -> None:
    kept = (PARTITIONS, PARTITION_PARAMS, PARTITION_KEY_VALS, SDS, SERDES, SERDE_PARAMS)
    before = [len(writer.catalog.rows(one)) for one in kept]
    skew = SkewedInfo(["id"], [["1"], ["2"]], {("1",): "file:/x"})
    rich = {"bucketCols": ["id"], "sortCols": [Order("v", 1)], "skewedInfo": skew, "parameters": {"p": "q"}}
    writer.add(writer.partition(3, **rich))
    [part_id] = [row[0] for row in writer.catalog.rows(PARTITIONS, PARTITIONS.c.PART_ID, PARTITIONS.c.PART_NAME)][-1:]
    with writer.catalog.database.writing() as connection:
        privilege = {"PART_ID": part_id, "CREATE_TIME": 0, "GRANT_OPTION": 0, "PRINCIPAL_NAME": "x"}
        connection.execute(insert(PART_PRIVS).values(PART_GRANT_ID=1, **privilege))
        connection.execute(insert(PART_COL_PRIVS).values(PART_COLUMN_GRANT_ID=1, COLUMN_NAME="v", **privilege))
        connection.commit()
    extra = (
        *(PART_PRIVS, PART_COL_PRIVS, SD_PARAMS, BUCKETING_COLS, SORT_COLS, SKEWED_COL_NAMES),
        *(SKEWED_COL_VALUE_LOC_MAP, SKEWED_VALUES, SKEWED_STRING_LIST, SKEWED_STRING_LIST_VALUES),
    )
    assert all(writer.catalog.rows(one) for one in extra), "there is something to delete in each"
    writer.drop(3)
    assert not [one.name for one in extra if writer.catalog.rows(one)]
    assert [len(writer.catalog.rows(one)) for one in kept] == before
