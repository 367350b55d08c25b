"""`hms_catalog` in a real Spark: the rows are those of the database, in the requested number of slices."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from hms_cache.jobs.sources import register
from hms_cache.jobs.sources.catalog import HmsCatalogReader, PartitionSlice, TableSlice
from hms_cache.jobs.sources.catalog_schemas import TABLES
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.options import SliceSize
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TableScope
from tests.clients.spark.session import SparkProcess
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BIG = 250


def fill(uri: str) -> None:
    with closing(Catalog(uri)) as catalog:
        catalog.database("sales")
        catalog.database("other")
        catalog.table("sales", "big", keys=["day", "hour"])
        catalog.partitions("sales", "big", [(f"d{number // 10}", f"{number % 10}") for number in range(BIG)])
        catalog.table("sales", "small", keys=["day"])
        catalog.partitions("sales", "small", [("x=y",), ("__HIVE_DEFAULT_PARTITION__",)])
        catalog.table("sales", "plain", numRows="12", numFiles="3")
        catalog.table("other", "plain", numRows="no number")
        catalog.statistics("sales", "plain")
        catalog.statistics("sales", "small", "day=x%3Dy")


def read_all(spark: Any, options: dict[str, str]) -> dict[str, Any]:
    """In Spark's process."""
    register(spark)

    def load(kind: str) -> Any:
        return spark.read.format("hms_catalog").options(**options).load(kind)

    partitions = load("partitions")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW catalog_columns USING hms_catalog OPTIONS ("
        + ", ".join(f"{name} '{value}'" for name, value in {**options, "kind": "columns"}.items())
        + ")"
    )
    narrowed = load("tables").where("database = 'sales' AND table IN ('plain', 'nothing') AND num_rows = 12")
    return {
        "databases": sorted(row.database for row in load("databases").collect()),
        "slices": partitions.rdd.getNumPartitions(),
        "partitions": sorted([row.database, row.table, row.partition] for row in partitions.collect()),
        "rows": [row["num_rows"] for row in partitions.where("table = 'small'").collect()],
        "columns": [
            list(row)
            for row in spark.sql(
                "SELECT column, type, is_partition_key FROM catalog_columns "
                "WHERE database = 'sales' AND table = 'big' ORDER BY position"
            ).collect()
        ],
        "narrowed": [
            [row.table, row.num_rows, row.num_files, row.parameters["numFiles"]] for row in narrowed.collect()
        ],
        "plan": narrowed._jdf.queryExecution().executedPlan().toString(),
        "statistics": sorted(
            [row.table, row.partition or "", row.column, row.kind, row.low_value or "", row.num_distinct]
            for row in load("statistics").collect()
        ),
    }


@pytest.mark.parametrize(
    ("kind", "through"),
    [
        pytest.param("sqlite", "metastore", marks=pytest.mark.soak),
        pytest.param("mariadb", "database", marks=[pytest.mark.mariadb, pytest.mark.soak]),
        pytest.param("sqlite", "database", marks=pytest.mark.soak),
        pytest.param("mariadb", "metastore", marks=[pytest.mark.mariadb, pytest.mark.soak]),
        pytest.param("postgresql", "database", marks=[pytest.mark.postgresql, pytest.mark.soak]),
        pytest.param("postgresql", "metastore", marks=[pytest.mark.postgresql, pytest.mark.soak]),
    ],
)
def test_rows_are_what_the_database_holds(
    start_server: ServerStarter, job_spark: SparkProcess, kind: str, through: str
) -> None:
    server = start_server(kind)
    fill(server.uri)
    where = {"metastore": server.uri} if through == "metastore" else {"database": server.database_url}
    answer = job_spark.call(read_all, options={**where, "partitions_per_slice": "100"})
    with closing(create_engine(server.database_url).connect()) as connection:
        quote = '"' if kind == "postgresql" else ""
        statement = (
            "SELECT d.{0}NAME{0}, t.{0}TBL_NAME{0}, p.{0}PART_NAME{0} FROM {0}PARTITIONS{0} p "
            "JOIN {0}TBLS{0} t ON t.{0}TBL_ID{0} = p.{0}TBL_ID{0} JOIN {0}DBS{0} d ON d.{0}DB_ID{0} = t.{0}DB_ID{0}"
        )
        stored = sorted(list(row) for row in connection.execute(text(statement.format(quote))))
    assert answer["databases"] == ["default", "other", "sales"]
    assert answer["partitions"] == stored and len(stored) == BIG + 2
    assert answer["slices"] == 4  # 100, 100 and 50 of the big table, the small one
    assert answer["rows"] == [7, 7]
    assert answer["columns"] == [
        ["id", "bigint", False],
        ["name", "string", False],
        ["day", "string", True],
        ["hour", "string", True],
    ]
    assert answer["narrowed"] == [["plain", 12, 3, "3"]]
    conditions = answer["plan"].partition("Filter")[2].splitlines()[0]
    assert "num_rows" in conditions and "= sales" not in conditions and "nothing" not in conditions
    assert answer["statistics"] == [
        ["plain", "", "id", "long", "-3", 40],
        ["plain", "", "name", "string", "", 12],
        ["small", "day=x%3Dy", "id", "long", "-3", 40],
        ["small", "day=x%3Dy", "name", "string", "", 12],
    ]


def read_some(spark: Any, options: dict[str, str]) -> list[str]:
    """In Spark's process."""
    register(spark)
    partitions = spark.read.format("hms_catalog").options(**options).load("partitions")
    some = partitions.where("database = 'sales' AND table LIKE 'sm%' AND num_rows = 7")
    return sorted(row.partition for row in some.collect())


@pytest.mark.soak
def test_a_filtered_read(start_server: ServerStarter, job_spark: SparkProcess) -> None:
    server = start_server("sqlite")
    fill(server.uri)
    found = job_spark.call(read_some, options={"metastore": server.uri})
    assert found == ["day=__HIVE_DEFAULT_PARTITION__", "day=x%3Dy"]


@pytest.mark.parametrize("through", ["metastore", pytest.param("database", marks=pytest.mark.soak)])
def test_what_is_dropped_after_planning_is_left_out(start_server: ServerStarter, through: str) -> None:
    server = start_server("sqlite")
    fill(server.uri)
    origin = Origin(metastore=server.uri) if through == "metastore" else Origin(database=server.database_url)
    reader = HmsCatalogReader("partitions", origin, TableScope.of_text("sales.*"), slice_size=SliceSize(500, 100))
    slices = list(reader.partitions())
    assert [len(part.ranges) for part in slices if isinstance(part, PartitionSlice)] == [1, 1, 1, 1]
    with closing(Catalog(server.uri)) as catalog:
        catalog.client.call("drop_table", "sales", "big", False)
    rows = [row for part in slices for row in reader.read(part)]
    assert [row[3] for row in rows] == ["day=__HIVE_DEFAULT_PARTITION__", "day=x%3Dy"]


@pytest.mark.parametrize("kind", ["tables", "columns", "partitions", "statistics"])
def test_a_database_that_is_dropped_after_planning_is_left_out(start_server: ServerStarter, kind: str) -> None:
    """Otherwise, a nightly run of any job would fail as a whole because of a temporary database."""
    server = start_server("sqlite")
    fill(server.uri)
    reader = HmsCatalogReader(kind, Origin(metastore=server.uri), TableScope(), slice_size=SliceSize(500, 100))
    slices = list(reader.partitions())
    with closing(Catalog(server.uri)) as catalog:
        catalog.client.call("drop_database", "sales", False, True)
    rows = [row for part in slices for row in reader.read(part)]
    assert all(row[1] != "sales" for row in rows)
    metastore = MetastoreReader(server.uri)
    try:
        assert metastore.tables("hive", "sales", ["big"]) == []
        assert metastore.partition_ranges("hive", "sales", ["big"], 10) == []
    finally:
        metastore.close()


def test_patterns_and_slices_of_tables(start_server: ServerStarter) -> None:
    server = start_server("sqlite")
    fill(server.uri)
    reader = HmsCatalogReader(
        "tables",
        Origin(metastore=server.uri),
        TableScope.of_text("sales.p*, hive.sales.big, no*.x"),
        slice_size=SliceSize(tables=1, partitions=20_000),
    )
    slices = list(reader.partitions())
    assert [part.tables for part in slices if isinstance(part, TableSlice)] == [("big",), ("plain",)]
    everything = HmsCatalogReader("tables", Origin(metastore=server.uri), TableScope.of_text("other.plain"))
    rows = [
        dict(zip(TABLES.names, row, strict=True)) for part in everything.partitions() for row in everything.read(part)
    ]
    assert [(row["table"], row["num_rows"], row["parameters"]["numRows"]) for row in rows] == [
        ("plain", None, "no number")
    ]
