"""`verify` finds what the database contains and a server does not return, but no differences caused by live writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, delete, select, update

from hms_cache.jobs.frame import JobResult
from hms_cache.jobs.registry import JOBS
from hms_cache.jobs.sources.options import SliceSize
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.verify.comparison import Recheck
from hms_cache.jobs.verify.source import SCHEMA, HmsDifferencesReader
from hms_cache.store.schema import (
    DBS,
    PART_COL_STATS,
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
    SDS,
    TAB_COL_STATS,
    TABLE_PARAMS,
    TBLS,
)
from tests.clients.spark.session import SparkProcess
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog, sketch_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

#: (kind, database, table, partition, field) of the changes by `plant`.
PLANTED = {
    ("database", "sales", None, None, "description"),
    ("tables", "other", None, None, "gone"),
    ("table", "other", "gone", None, ""),
    ("table", "sales", "plain", None, "owner"),
    ("table", "sales", "plain", None, "parameters.colour"),
    ("table", "sales", "wide", None, "sd.location"),
    ("statistics", "sales", "plain", None, "id.statsData.longStats.numNulls"),
    ("partitions", "sales", "parts", None, "day=3"),
    ("partition", "sales", "parts", "day=5", "parameters.numRows"),
    ("statistics", "sales", "few", "day=1", "name.statsData.stringStats.numDVs"),
}


def fill(uri: str) -> None:
    with closing(Catalog(uri)) as catalog:
        for database in ("sales", "other", "busy"):
            catalog.database(database)
        catalog.table("sales", "plain", colour="red")
        catalog.table("sales", "wide")
        catalog.table("other", "gone")
        catalog.table("other", "stays")
        catalog.statistics("sales", "plain")
        for database, name in (("sales", "parts"), ("busy", "parts")):
            catalog.table(database, name, keys=["day"])
            catalog.partitions(database, name, [(str(number),) for number in range(20)])
        catalog.table("sales", "few", keys=["day"])
        catalog.partitions("sales", "few", [("1",), ("2",)])
        catalog.statistics("sales", "few", "day=1")
        for number in range(5):
            catalog.table("busy", f"t{number}")


def plant(url: str) -> None:
    """Changes of the database without events, unknown to the servers."""
    engine = create_engine(url)
    with engine.begin() as connection:

        def table_id(database: str, name: str) -> Any:
            named = (TBLS.c.TBL_NAME == name) & (DBS.c.NAME == database)
            return connection.execute(
                select(TBLS.c.TBL_ID).join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID).where(named)
            ).scalar_one()

        def run(statement: Any) -> None:
            assert connection.execute(statement).rowcount > 0

        def part_id(table: str, name: str) -> Any:
            named = (PARTITIONS.c.PART_NAME == name) & (PARTITIONS.c.TBL_ID == table_id("sales", table))
            return connection.execute(select(PARTITIONS.c.PART_ID).where(named)).scalar_one()

        plain, gone = table_id("sales", "plain"), table_id("other", "gone")
        run(update(DBS).where(DBS.c.NAME == "sales").values(DESC="another"))
        run(update(TBLS).where(TBLS.c.TBL_ID == plain).values(OWNER="eve"))
        colour = (TABLE_PARAMS.c.TBL_ID == plain) & (TABLE_PARAMS.c.PARAM_KEY == "colour")
        run(update(TABLE_PARAMS).where(colour).values(PARAM_VALUE="blue"))
        run(update(SDS).where(SDS.c.LOCATION == "file:/nowhere/sales/wide").values(LOCATION="file:/elsewhere"))
        column = (TAB_COL_STATS.c.TBL_ID == plain) & (TAB_COL_STATS.c.COLUMN_NAME == "id")
        run(update(TAB_COL_STATS).where(column).values(NUM_NULLS=77))
        rows = (PARTITION_PARAMS.c.PART_ID == part_id("parts", "day=5")) & (PARTITION_PARAMS.c.PARAM_KEY == "numRows")
        run(update(PARTITION_PARAMS).where(rows).values(PARAM_VALUE="8"))
        texts = (PART_COL_STATS.c.PART_ID == part_id("few", "day=1")) & (PART_COL_STATS.c.COLUMN_NAME == "name")
        run(update(PART_COL_STATS).where(texts).values(NUM_DISTINCTS=13))
        third = part_id("parts", "day=3")
        for table in (PARTITION_PARAMS, PARTITION_KEY_VALS, PARTITIONS):
            run(delete(table).where(table.c.PART_ID == third))
        run(delete(TABLE_PARAMS).where(TABLE_PARAMS.c.TBL_ID == gone))
        run(delete(TBLS).where(TBLS.c.TBL_ID == gone))
    engine.dispose()


@contextmanager
def live_writes(uri: str) -> Iterator[None]:
    """Writes through a server until the block ends: tables altered, partitions added and dropped, names that come and
    go."""
    over, begun, failures = threading.Event(), threading.Event(), list[BaseException]()

    def write() -> None:
        try:
            with closing(Catalog(uri)) as catalog:
                number = 0
                while not over.is_set():
                    number += 1
                    catalog.set_parameter("busy", f"t{number % 5}", "round", str(number))
                    catalog.partitions("busy", "parts", [(f"n{number}",)])
                    catalog.client.call("drop_partition", "busy", "parts", [f"n{number}"], False)
                    catalog.table("busy", f"new{number}")
                    begun.set()
                    catalog.client.call("drop_table", "busy", f"new{number}", False)
        except BaseException as error:
            failures.append(error)
            begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        over.set()
        thread.join(60)
    assert not failures


def compare(servers: list[str], url: str, tables: str = "") -> tuple[set[tuple[Any, ...]], int]:
    """(kind, database, table, partition, field) of the differences, and how many objects were compared; no Spark."""
    reader = HmsDifferencesReader(
        servers, url, TableScope.of_text(tables), Recheck(2, 0.05), slice_size=SliceSize(tables=3, partitions=8)
    )
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for part in reader.partitions() for row in reader.read(part)]
    different = {
        (row["kind"], row["database"], row["table"], row["partition"], row["field"])
        for row in rows
        if row["outcome"] == "different"
    }
    return different, sum(row["compared"] or 0 for row in rows)


def run_job(spark: Any, servers: list[str], database: str, **more: Any) -> dict[str, Any]:
    """In Spark's process."""
    options = {"server": tuple(servers), "database": database, "rechecks": 2, "recheck_wait_s": 0.05, **more}
    result: JobResult = JOBS["verify"].run(spark, options)
    return {
        "status": result.exit_status,
        "summary": dict(result.summary),
        "tables": {table.title: [list(row) for row in table.rows] for table in result.tables},
    }


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("sqlite", marks=[pytest.mark.soak, pytest.mark.short]),
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak]),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.soak]),
    ],
)
def test_all_planted_differences_and_nothing_else_under_live_writes(start_server: ServerStarter, kind: str) -> None:
    server = start_server(kind)
    fill(server.uri)
    with live_writes(server.uri):
        different, compared = compare([server.uri], server.database_url)
        # The server has now answered everything, from memory from here on.
        assert different == set() and compared > 60
        plant(server.database_url)
        different, _ = compare([server.uri], server.database_url)
    assert different == PLANTED


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.long
def test_bit_vectors_count_where_both_sides_have_them(start_server: ServerStarter) -> None:
    without = start_server("sqlite", "without")
    fill(without.uri)
    with_them = start_server(without.database_url, "with", **{"catalog.statistics_sketches": "true"})
    for server in (without, with_them):
        different, _ = compare([server.uri], server.database_url)
        assert different == set()
    engine = create_engine(without.database_url)
    with engine.begin() as connection:
        # Unknown to the servers: one bit vector is another, another is gone, and its count with it.
        numbers, texts = TAB_COL_STATS.c.COLUMN_NAME == "id", TAB_COL_STATS.c.COLUMN_NAME == "name"
        connection.execute(update(TAB_COL_STATS).where(numbers).values(BIT_VECTOR=sketch_of(41)))
        connection.execute(update(TAB_COL_STATS).where(texts).values(BIT_VECTOR=None, NUM_DISTINCTS=11))
    engine.dispose()
    count = ("statistics", "sales", "plain", None, "name.statsData.stringStats.numDVs")
    vector = ("statistics", "sales", "plain", None, "id.statsData.longStats.bitVectors")
    assert compare([without.uri], without.database_url)[0] == {count}
    assert compare([with_them.uri], without.database_url)[0] == {count, vector}


@pytest.mark.soak
@pytest.mark.short
def test_a_difference_is_told_with_the_newest_event_that_it_outlived(start_server: ServerStarter) -> None:
    server = start_server("sqlite")
    fill(server.uri)
    compare([server.uri], server.database_url)
    plant(server.database_url)
    events: list[int] = []
    with closing(Catalog(server.uri)) as catalog:

        def write(_: float) -> None:
            catalog.set_parameter("busy", "t1", "round", str(len(events)))
            events.append(catalog.client.call("get_current_notificationEventId").eventId)

        scope = TableScope.of_text("sales.plain")
        reader = HmsDifferencesReader([server.uri], server.database_url, scope, Recheck(2, 0.0, write))
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for part in reader.partitions() for row in reader.read(part)]
    found = {row["field"]: row["event_id"] for row in rows if row["outcome"] == "different"}
    assert found.keys() == {
        field for kind, database, table, _, field in PLANTED if (database, table) == ("sales", "plain")
    }
    # Written between the reads: the report names the event of the last one.
    assert len(events) == 2 and set(found.values()) == {events[-1]}
    assert {row["event_id"] for row in rows if row["outcome"] == "compared"} == {None}


@pytest.mark.soak
def test_the_job_tells_servers_apart(start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path) -> None:
    cached = start_server("sqlite", "cached")
    plain = start_server(cached.database_url, "plain", **{"cache.enabled": "false"})
    fill(cached.uri)
    compare([cached.uri], cached.database_url)
    plant(cached.database_url)
    with live_writes(plain.uri):
        answer = job_spark.call(
            run_job, servers=[cached.uri, plain.uri], database=cached.database_url, output=str(tmp_path / "kept")
        )
    counts = {row[0]: (row[2], row[3]) for row in answer["tables"]["Servers"]}
    assert counts[plain.uri][0] == 0
    assert counts[cached.uri][0] == len({key[:4] for key in PLANTED})
    assert answer["status"] == 3 and answer["summary"]["different"] == counts[cached.uri][0]
    shown = {tuple(row[2:5]) for row in answer["tables"]["Differences"] if row[0] == "different"}
    assert all(row[-1] > 0 for row in answer["tables"]["Differences"])
    assert ("table", "hive.sales.plain", "owner") in shown
    assert ("partitions", "hive.sales.parts", "day=3") in shown
    kept = job_spark.call(kept_differences, output=str(tmp_path / "kept"))
    assert len({row["run"] for row in kept}) == 1
    assert {(row["kind"], row["field"]) for row in kept if row["outcome"] == "different"} == {
        (row[2], row[4]) for row in answer["tables"]["Differences"] if row[0] == "different"
    }


def kept_differences(spark: Any, output: str) -> list[dict[str, Any]]:
    """In Spark's process."""
    return [row.asDict() for row in spark.read.parquet(output).collect()]
