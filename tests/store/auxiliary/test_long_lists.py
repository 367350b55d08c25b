"""A statement that lists objects of the database is split so that the database accepts each list, whatever its length.

SQLite is set to accept few parameters here, but still more than any list of a fixed length has; PostgreSQL accepts
65,535.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from sqlalchemy import event, insert

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.schema import CDS, COLUMNS_V2, DBS, FUNC_RU, FUNCS, I_SCHEMA, SCHEMA_VERSION, TBLS, WM_POOL
from hms_cache.store.schema import WM_RESOURCEPLAN as PLANS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import World
from tests.store.auxiliary.test_schema_registry import NAME

MOST = 5_500
MANY = 6_000


@pytest.fixture
def world(sqlite_world: World) -> World:
    def narrow(driver: sqlite3.Connection, *_: object) -> None:
        driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, MOST)

    for engine in sqlite_world.database.engines:
        event.listen(engine, "checkout", narrow)
    return sqlite_world


def fill(world: World, table: Any, **columns: Any) -> None:
    """Rows with numbers from 1 on; a function computes a value from the number."""
    rows = [
        {name: value(number) if callable(value) else value for name, value in columns.items()}
        for number in range(1, MANY + 1)
    ]
    with world.database.writing() as connection:
        connection.execute(insert(table), rows)
        connection.commit()


def number(value: int) -> int:
    return value


def drop_everything(world: World) -> None:
    world.objects.writes.databases.drop_database(DatabaseName("hive", "e"), delete_data=False, cascade=True)
    assert world.objects.reads.databases.get_database_names("hive", "e") == []


@pytest.fixture
def filled(world: World) -> World:
    """With a database `e`."""
    with world.database.writing() as connection:
        connection.execute(insert(DBS).values(DB_ID=900, NAME="e", CTLG_NAME="hive", DB_LOCATION_URI="file:/nowhere"))
        connection.commit()
    return world


def test_a_database_with_many_functions_is_dropped(filled: World) -> None:
    fill(
        filled,
        FUNCS,
        FUNC_ID=number,
        DB_ID=900,
        FUNC_NAME=lambda one: f"f{one}",
        CLASS_NAME="c",
        FUNC_TYPE=1,
        CREATE_TIME=0,
        OWNER_NAME="o",
        OWNER_TYPE="USER",
    )
    fill(filled, FUNC_RU, FUNC_ID=number, RESOURCE_TYPE=1, RESOURCE_URI="u", INTEGER_IDX=0)
    assert len(filled.objects.reads.functions.get_functions("hive")) == MANY
    drop_everything(filled)


def test_a_database_with_many_tables_is_dropped(filled: World) -> None:
    fill(
        filled,
        TBLS,
        TBL_ID=lambda one: 10_000 + one,
        DB_ID=900,
        TBL_NAME=lambda one: f"t{one}",
        TBL_TYPE="EXTERNAL_TABLE",
        OWNER="o",
        CREATE_TIME=0,
        LAST_ACCESS_TIME=0,
        RETENTION=0,
    )
    assert len(filled.objects.reads.tables.get_table_names(DatabaseName("hive", "e"))) == MANY
    drop_everything(filled)


def test_many_versions_of_a_schema_are_answered(world: World) -> None:
    policy = {"COMPATIBILITY": 1, "VALIDATION_LEVEL": 1, "CAN_EVOLVE": True}
    with world.database.writing() as connection:
        database_id = connection.execute(DBS.select().where(DBS.c.NAME == "d")).first().DB_ID  # type: ignore[union-attr]
        row = {"SCHEMA_ID": 1, "SCHEMA_TYPE": 1, "NAME": NAME.schemaName, "DB_ID": database_id, **policy}
        connection.execute(insert(I_SCHEMA).values(row))
        connection.commit()
    fill(world, CDS, CD_ID=lambda one: 10_000 + one)
    fill(world, COLUMNS_V2, CD_ID=lambda one: 10_000 + one, COLUMN_NAME="a", TYPE_NAME="int", INTEGER_IDX=0)
    fill(
        world,
        SCHEMA_VERSION,
        SCHEMA_VERSION_ID=number,
        SCHEMA_ID=1,
        VERSION=number,
        CREATED_AT=0,
        CD_ID=lambda one: 10_000 + one,
        STATE=1,
    )
    found = world.stores.schemas.get_all_versions(NAME)
    assert [one.version for one in found] == list(range(MANY, 0, -1))
    assert {len(one.cols) for one in found} == {1}


def test_many_resource_plans_are_answered(world: World) -> None:
    fill(world, PLANS, RP_ID=number, NAME=lambda one: f"r{one}", NS="default", STATUS="DISABLED")
    fill(world, WM_POOL, POOL_ID=number, RP_ID=number, PATH="p")
    with world.database.writing() as connection:
        connection.execute(PLANS.update().values(DEFAULT_POOL_ID=PLANS.c.RP_ID))
        connection.commit()
    found = world.stores.resource_plans.get_all("default")
    assert (len(found), {one.defaultPoolPath for one in found}) == (MANY, {"p"})


def test_statistics_of_many_named_columns_are_deleted(world: World) -> None:
    """Here the client determines the length; like names of partitions, they are sent in several lists."""
    world.create_table("t")
    name = TableName("hive", "d", "t")
    figures = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(numNulls=0, numDVs=1))
    written = [ttypes.ColumnStatisticsObj("a", "int", figures)]
    description = ttypes.ColumnStatisticsDesc(True, "d", "t", catName="hive")
    statistics = world.objects.writes.statistics
    statistics.update_table_column_statistics(ttypes.ColumnStatistics(description, written, engine="hive"))
    columns = [*(f"none{one}" for one in range(MANY)), "a"]
    statistics.delete_table_column_statistics(name, columns)
    with pytest.raises(ttypes.NoSuchObjectException):
        statistics.delete_table_column_statistics(name, columns)
