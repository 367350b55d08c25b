"""Numbers of rows and files: what the job writes, who uses it, and what the files mean for the next run."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from hms_cache.client import MetastoreClient
from hms_cache.jobs.frame import JobRun
from hms_cache.jobs.statistics import main
from hms_cache.jobs.statistics.computing import Computation, compute_small
from hms_cache.jobs.statistics.data_files import RECORDED, FigureLister, Figures
from hms_cache.jobs.statistics.recording import CHANGED, GONE, Unit, record_partitions, record_table
from hms_cache.jobs.statistics.writing import FILES_CHANGED, _unchanged
from hms_cache.thrift_gen.hive_metastore.ttypes import EnvironmentContext, PartitionsStatsRequest
from tests.clients.conftest import ServerStarter
from tests.clients.hive import engine as hive_engine
from tests.clients.spark.session import SparkProcess, remote
from tests.jobs.statistics.catalog import run_statistics
from tests.jobs.verify.test_verify import compare

pytestmark = [pytest.mark.spark, pytest.mark.timeout(290)]


@pytest.fixture
def job(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> tuple[SparkProcess, Any]:
    """A session on a server, with `d.parted` of three partitions and `d.plain`."""
    server = start_server("sqlite", **{"catalog.statistics_sketches": "true"})
    spark.session(remote(tmp_path, server.uri))
    spark.sql("create database d")
    spark.sql("create table d.parted (a int, t string, day date) partitioned by (p int) stored as parquet")
    spark.sql("insert into d.parted values (1, 'x', date'2024-01-01', 1), (2, 'yy', null, 1)")
    spark.sql("insert into d.parted values (7, 'z', date'2024-02-01', 2), (9, null, null, 3)")
    spark.sql("create table d.plain (a int, t string, m decimal(5,2), at timestamp) stored as orc")
    spark.sql("insert into d.plain values (3, 'abc', 1.25, timestamp'2024-01-01 00:00:00'), (5, 'd', null, null)")
    return spark, server


def parameters_of(client: MetastoreClient) -> dict[str, dict[str, str]]:
    found = {f"p={one.values[0]}": dict(one.parameters) for one in client.call("get_partitions", "d", "parted", -1)}
    return found | {name: dict(client.call("get_table", "d", name).parameters) for name in ("parted", "plain")}


def run(spark: SparkProcess, uri: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = spark.call(run_statistics, metastore=uri, **options)
    return found


def plan(report: dict[str, Any]) -> dict[str, int]:
    return {row[0]: row[5] for row in report["tables"]["Plan"]}


@pytest.mark.soak
def test_what_is_written_and_what_the_next_run_does(job: tuple[SparkProcess, Any]) -> None:
    spark, server = job
    first = run(spark, server.uri)
    assert (first["exit_status"], plan(first)) == (0, {"d.parted": 3, "d.plain": 1}), first
    with MetastoreClient(server.uri) as client:
        found = parameters_of(client)
        locations = {
            f"p={one.values[0]}": Path(one.sd.location.removeprefix("file:"))
            for one in client.call("get_partitions", "d", "parted", -1)
        } | {"plain": Path(client.call("get_table", "d", "plain").sd.location.removeprefix("file:"))}
    for name, rows in {"p=1": 2, "p=2": 1, "p=3": 1, "plain": 2}.items():
        files = [path for path in locations[name].iterdir() if path.name[0] not in "._"]
        parameters = found[name]
        assert (parameters["numRows"], parameters["numFiles"]) == (str(rows), str(len(files)))
        assert parameters["totalSize"] == str(sum(path.stat().st_size for path in files))
        assert int(parameters["rawDataSize"]) > 0
        assert '"BASIC_STATS":"true"' in parameters["COLUMN_STATS_ACCURATE"]
        assert '"a":"true"' in parameters["COLUMN_STATS_ACCURATE"]
    assert found["parted"]["spark.sql.statistics.numRows"] == "4"
    assert found["plain"]["spark.sql.statistics.colStats.a.max"] == "5"
    assert found["plain"]["spark.sql.statistics.colStats.m.nullCount"] == "1"

    # Nothing has changed since: nothing is computed, and nothing written.
    again = run(spark, server.uri)
    assert again["tables"]["Plan"] == [] and again["summary"]["tables computed"] == 0
    with MetastoreClient(server.uri) as client:
        assert parameters_of(client) == found
    assert compare([server.uri], server.database_url)[0] == set()

    # Changes of files of which the metastore was not notified: more, others, fewer.
    data = next(locations["p=1"].glob("*.parquet"))
    shutil.copy(data, data.with_name("appended.parquet"))
    third = run(spark, server.uri)
    assert plan(third) == {"d.parted": 1} and third["summary"]["partitions written"] == 1
    [other] = locations["p=3"].glob("*.parquet")
    shutil.copy(next(locations["p=2"].glob("*.parquet")), other)
    other.with_name(f".{other.name}.crc").unlink()
    fourth = run(spark, server.uri)
    assert plan(fourth) == {"d.parted": 1}
    data.with_name("appended.parquet").unlink()
    fifth = run(spark, server.uri)
    assert plan(fifth) == {"d.parted": 1}
    with MetastoreClient(server.uri) as client:
        now = parameters_of(client)
        [low] = client.call("get_table_column_statistics", "d", "parted", "a").statsObj
    assert {name: now[name]["numRows"] for name in ("p=1", "p=2", "p=3")} == {"p=1": "2", "p=2": "1", "p=3": "1"}
    assert low.statsData.longStats.highValue == 7  # the row with 9 was in the deleted file
    assert run(spark, server.uri)["tables"]["Plan"] == []


@pytest.mark.soak
def test_what_is_not_certain_is_read_by_spark(job: tuple[SparkProcess, Any]) -> None:
    """Beside what workers read. A file that Spark cannot read either fails, and no claim is made about it."""
    spark, server = job
    with MetastoreClient(server.uri) as client:
        parts = {f"p={one.values[0]}": one for one in client.call("get_partitions", "d", "parted", -1)}
    place = Path(parts["p=1"].sd.location.removeprefix("file:"))
    rows = pa.table({"a": pa.array([100], pa.int8()), "t": ["of Arrow"], "day": pa.array([None], pa.date32())})
    parquet.write_table(rows, place / "x.parquet")
    report = run(spark, server.uri)
    assert (report["exit_status"], report["summary"]["rows read"]) == (0, 7), report
    with MetastoreClient(server.uri) as client:
        found = parameters_of(client)
        [whole] = client.call("get_table_column_statistics", "d", "parted", "a").statsObj
    assert {name: found[name]["numRows"] for name in ("p=1", "p=2", "p=3", "plain")} == {
        "p=1": "3",
        "p=2": "1",
        "p=3": "1",
        "plain": "2",
    }
    assert whole.statsData.longStats.highValue == 100 and found["parted"]["spark.sql.statistics.numRows"] == "5"

    (place / "x.parquet").write_bytes(b"this is no file of Parquet")
    failed = run(spark, server.uri)
    assert failed["exit_status"] == 3 and "d.parted" in str(failed["tables"]["Failures"])
    with MetastoreClient(server.uri) as client:
        after = parameters_of(client)
    # Its numbers remain, but are no longer claimed as exact.
    claims = ("COLUMN_STATS_ACCURATE", RECORDED)
    assert after["p=1"] == {name: value for name, value in found["p=1"].items() if name not in claims}


def run_and_count(spark: SparkSession, **options: Any) -> dict[str, Any]:
    """The report, and how many tables were read together, by the Spark job that read them."""
    counts: list[int] = []

    def counted(run: JobRun, some: Sequence[Computation], cores: int) -> None:
        compute_small(run, some, cores)
        counts.append(len(some))

    with patch.object(main, "compute_small", counted):
        return run_statistics(spark, **options) | {"counts": counts}


@pytest.mark.soak
def test_small_tables_are_read_together(job: tuple[SparkProcess, Any]) -> None:
    """Whatever is between them; each has its own statistics in the end, and one that fails fails alone."""
    spark, server = job
    for number in range(6):
        spark.sql(f"create table d.of_{number} (a int, more{number} string) stored as parquet")
        spark.sql(f"insert into d.of_{number} select id, 'x' from range({number + 1})")
        spark.sql(f"create table d.of_{number}_text (a int) stored as textfile")
        spark.sql(f"insert into d.of_{number}_text values ({number})")
    with MetastoreClient(server.uri) as client:
        place = Path(client.call("get_table", "d", "of_3").sd.location.removeprefix("file:"))
        (place / "damaged").write_bytes(b"this is no file of Parquet")
        found = spark.call(run_and_count, metastore=server.uri)
        # With `parted`, without `plain`, which has timestamps in ORC.
        assert found["counts"] == [7] and found["summary"]["tables computed"] == 14, found
        assert [row[0] for row in found["tables"]["Failures"]] == ["d.of_3"]
        for number in range(6):
            rows = client.call("get_table", "d", f"of_{number}").parameters.get("numRows")
            [one] = client.call("get_table_column_statistics", "d", f"of_{number}_text", "a").statsObj
            assert one.statsData.longStats.highValue == number
            if number != 3:
                assert rows == str(number + 1)
                [one] = client.call("get_table_column_statistics", "d", f"of_{number}", "a").statsObj
                assert one.statsData.longStats.highValue == number


@pytest.mark.soak
def test_a_limit_of_bytes_leaves_the_rest_for_the_next_run(job: tuple[SparkProcess, Any]) -> None:
    """Each run reads one partition or table here, in the order of the day; a table as a whole gets its statistics with
    those of its last partition."""
    spark, server = job
    with MetastoreClient(server.uri) as client:
        lake = copy.deepcopy(client.call("get_table", "d", "plain"))
        lake.tableName, lake.tableType = "ice", "EXTERNAL_TABLE"
        lake.sd.location += "-ice"
        lake.parameters = {"EXTERNAL": "TRUE", "table_type": "ICEBERG"}
        client.call("create_table", lake)
    for left in (3, 2, 1, 0):
        report = run(spark, server.uri, max_bytes="1")
        assert (report["exit_status"], report["summary"]["left for the next run"]) == (0, left), report
        assert ["d.ice", "left out: Iceberg keeps statistics of its tables itself"] in report["tables"]["Notes"]
        with MetastoreClient(server.uri) as client:
            found = parameters_of(client)
        done = {name for name in ("p=1", "p=2", "p=3", "plain") if RECORDED in found[name]}
        assert len(done) == 4 - left
        assert ("spark.sql.statistics.numRows" in found["parted"]) == (done >= {"p=1", "p=2", "p=3"})
    assert found["parted"]["spark.sql.statistics.numRows"] == "4" and found["plain"]["numRows"] == "2"
    assert run(spark, server.uri, max_bytes="1")["tables"]["Plan"] == []


@pytest.mark.soak
def test_sparks_planner_uses_them(job: tuple[SparkProcess, Any]) -> None:
    """As after its own ANALYZE TABLE … COMPUTE STATISTICS FOR ALL COLUMNS."""
    spark, server = job
    assert run(spark, server.uri)["exit_status"] == 0
    for table in ("d.plain", "d.parted"):
        spark.sql(f"refresh table {table}")
        ours = {row[0]: row[1] for row in spark.sql(f"describe extended {table}")}
        columns = {one: dict(map(tuple, spark.sql(f"describe extended {table} {one}"))) for one in ("a", "t")}
        spark.sql("set spark.sql.cbo.enabled=true")
        [[cost]] = spark.sql(f"explain cost select * from {table} where a > 4")
        spark.sql(f"analyze table {table} compute statistics for all columns")
        theirs = {row[0]: row[1] for row in spark.sql(f"describe extended {table}")}
        assert ours["Statistics"] == theirs["Statistics"]
        assert "rowCount" in cost.partition("Physical Plan")[0]
        for column, described in columns.items():
            wanted = dict(map(tuple, spark.sql(f"describe extended {table} {column}")))
            for figure in ("min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len"):
                assert described[figure] == wanted[figure], (table, column, figure)


@pytest.mark.soak
def test_a_sample_is_marked_and_claims_nothing(job: tuple[SparkProcess, Any], tmp_path: Path) -> None:
    """Of a partition and a table of ten files of a hundred rows each, some are read; small ones are read completely."""
    spark, server = job
    spark.sql("set spark.sql.files.maxRecordsPerFile=100")
    values = "select id, if(id % 4 = 0, null, 'x'), date'2024-01-01'"
    spark.sql(f"insert into d.parted select /*+ coalesce(1) */ *, 4 from ({values} from range(1000))")
    spark.sql("create table d.large (a int, t string, day date) stored as orc")
    spark.sql(f"insert into d.large select /*+ coalesce(1) */ * from ({values} from range(1000))")
    spark.sql("create table d.lines (t string) stored as textfile")
    spark.sql("insert into d.lines select repeat('x', 1000) from range(20)")
    with MetastoreClient(server.uri) as client:
        place = client.call("get_partition", "d", "parted", ["4"]).sd.location
        files = FigureLister().figures(place)[0]
        assert files is not None and files.files == 10
        limit = str(files.bytes // 4)
        assert run(spark, server.uri)["exit_status"] == 0
        exact = parameters_of(client)
        # Exact numbers remain exact while nothing changes.
        assert run(spark, server.uri, sample_above=limit)["tables"]["Plan"] == []
        sampled = run(spark, server.uri, sample_above=limit, all=True)
        assert sampled["exit_status"] == 0, sampled
        assert sampled["summary"]["tables with estimates"] == 2
        found = parameters_of(client)
        of_part, of_table = found["p=4"], client.call("get_table", "d", "large").parameters
        for estimated in (of_part, of_table):
            read, size = map(int, estimated["hms_cache.statistics.sample"].split(":"))
            assert int(limit) <= read < size == int(estimated["totalSize"])
            assert "COLUMN_STATS_ACCURATE" not in estimated
            assert int(estimated["numRows"]) == pytest.approx(1000, rel=0.1)
        # Spark has no mark for estimates: it gets the known numbers.
        for whole in (of_table, found["parted"]):
            assert {name for name in whole if name.startswith("spark.sql.statistics")} == {
                "spark.sql.statistics.totalSize"
            }
        assert found["parted"]["hms_cache.statistics.sample"] == "1 of 4 partitions"
        for name in ("p=1", "p=2", "p=3", "plain"):
            assert found[name] == exact[name] | {"transient_lastDdlTime": found[name]["transient_lastDdlTime"]}
        # Spark reads lines of text through Hive's classes, and cannot read only some of the files.
        assert client.call("get_table", "d", "lines").parameters["numRows"] == "20"
        [number] = client.call("get_partitions_statistics_req", one_partition("p=4")).partStats["p=4"]
        assert number.statsData.stringStats.numNulls == pytest.approx(250, rel=0.1)
        assert run(spark, server.uri, sample_above=limit)["tables"]["Plan"] == []
        # Without a limit, estimates do not suffice.
        again = run(spark, server.uri)
        assert plan(again) == {"d.large": 1, "d.parted": 1}
        now = parameters_of(client)
        assert (now["p=4"]["numRows"], now["parted"]["spark.sql.statistics.numRows"]) == ("1000", "1004")
        assert '"BASIC_STATS":"true"' in now["p=4"]["COLUMN_STATS_ACCURATE"]
        assert not any("hms_cache.statistics.sample" in parameters for parameters in now.values())


def one_partition(name: str) -> PartitionsStatsRequest:
    return PartitionsStatsRequest("d", "parted", ["t"], [name], engine="hive")


def histogram_parts(spark: Any, tables: list[str]) -> dict[str, list[str]]:
    """In Spark's process: the bins of each column's histogram as Spark reads them from the catalog."""
    found = {}
    for table in tables:
        spark.catalog.refreshTable(table)
        name = spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier(
            table.split(".")[1], spark._jvm.scala.Option.apply(table.split(".")[0])
        )
        stats = spark._jsparkSession.sessionState().catalog().getTableMetadata(name).stats().get().colStats().iterator()
        while stats.hasNext():
            pair = stats.next()
            histogram = pair._2().histogram()
            if histogram.isDefined():
                bins = histogram.get().bins()
                found[f"{table}.{pair._1()}"] = [histogram.get().height()] + [one.toString() for one in bins]
    return found


@pytest.mark.soak
def test_a_table_whose_directory_is_gone_has_no_rows(job: tuple[SparkProcess, Any]) -> None:
    """As in an object store, where a directory is gone with its last file."""
    spark, server = job
    assert run(spark, server.uri)["exit_status"] == 0
    spark.sql("create table d.typed (c varchar(9), d char(3), t timestamp, b binary, n decimal(9,2)) stored as parquet")
    with MetastoreClient(server.uri) as client:
        for table in ("plain", "typed"):
            shutil.rmtree(client.call("get_table", "d", table).sd.location.removeprefix("file:"))
        report = run(spark, server.uri)
        assert (report["exit_status"], plan(report)) == (0, {"d.plain": 1, "d.typed": 1}), report
        for table in ("plain", "typed"):
            parameters = client.call("get_table", "d", table).parameters
            assert (parameters["numRows"], parameters["numFiles"]) == ("0", "0")
        [number] = client.call("get_table_column_statistics", "d", "plain", "a").statsObj
    assert (number.statsData.longStats.numDVs, number.statsData.longStats.highValue) == (0, None)
    assert run(spark, server.uri)["tables"]["Plan"] == []


@pytest.mark.soak
def test_histograms_are_those_of_sparks_analyze(job: tuple[SparkProcess, Any]) -> None:
    spark, server = job
    spark.sql("insert into d.parted select id, 'x', date'2024-03-01', id % 3 from range(5000)")
    tables = ["d.parted", "d.plain"]
    assert run(spark, server.uri)["exit_status"] == 0
    assert spark.call(histogram_parts, tables=tables) == {}
    assert run(spark, server.uri, histograms=True, all=True)["exit_status"] == 0
    ours = spark.call(histogram_parts, tables=tables)
    assert set(ours) == {"d.parted.a", "d.parted.day", "d.plain.a", "d.plain.m", "d.plain.at"}
    spark.sql("set spark.sql.statistics.histogram.enabled=true")
    for table in tables:
        spark.sql(f"analyze table {table} compute statistics for all columns")
    spark.sql("set spark.sql.statistics.histogram.enabled=false")
    theirs = spark.call(histogram_parts, tables=tables)
    assert {name: ours[name] for name in ours} == {name: theirs[name] for name in ours}
    # Statistics that are computed again replace the previous ones.
    spark.sql("insert into d.plain values (1, 'z', 2.5, null)")
    assert run(spark, server.uri)["exit_status"] == 0
    assert not any(name.startswith("d.plain") for name in spark.call(histogram_parts, tables=tables))


@pytest.mark.soak
def test_nothing_is_written_over_a_change(job: tuple[SparkProcess, Any], tmp_path: Path) -> None:
    spark, server = job
    with MetastoreClient(server.uri) as client:
        read = client.call("get_table", "d", "plain")
        # Another client replaces it by another table of this name.
        client.call("drop_table", "d", "plain", True)
        spark.sql("create table d.plain (a int) stored as orc")
        before = client.call("get_table", "d", "plain")
        assert record_table(client, read, dict, lambda found: False) == CHANGED
        # Another client alters it between its reading and its writing.
        read = client.call("get_table", "d", "plain")

        def change(parameters: Any) -> dict[str, str]:
            altered = client.call("get_table", "d", "plain")
            altered.parameters |= {"transient_lastDdlTime": "7", "by": "another"}
            context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
            client.call("alter_table_with_environment_context", "d", "plain", altered, context)
            return {**parameters, "numRows": "99"}

        assert record_table(client, read, change, lambda found: False) == CHANGED
        after = client.call("get_table", "d", "plain").parameters
        assert after["by"] == "another" and after.get("numRows") == before.parameters.get("numRows")
        client.call("drop_table", "d", "plain", True)
        assert record_table(client, read, change, lambda found: False) == GONE
        figures = Figures(1, 2, 3)
        units = [Unit("p=1", 2, "file:/elsewhere", figures, ()), Unit("p=77", 2, "file:/x", figures, ())]
        parted = client.call("get_table", "d", "parted")
        assert record_partitions(client, parted, units) == {"p=1": GONE, "p=77": GONE}
        assert RECORDED not in parameters_of_partition(client, "1")


def parameters_of_partition(client: MetastoreClient, value: str) -> dict[str, str]:
    return dict(client.call("get_partition", "d", "parted", [value]).parameters)


def test_files_that_change_while_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "f").write_text("abc")
    lister = FigureLister()
    figures, problem = lister.figures(f"file:{tmp_path}/p")
    assert figures is not None and (figures.files, figures.bytes, problem) == (1, 3, None) and figures.newest_us > 0
    row = {"name": "p=1", "location": f"file:{tmp_path}/p", "files": str(figures)}
    assert _unchanged([row], lister) == ([row], [])
    (tmp_path / "p" / "_temporary").write_text("hidden")
    assert _unchanged([row], lister) == ([row], [])
    (tmp_path / "p" / "g").write_text("")
    kept, [outcome] = _unchanged([row], lister)
    assert (kept, outcome["failure"]) == ([], FILES_CHANGED)


@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_hives_engine_answers_from_them(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> None:
    """Without a task, and correctly; after an append and the next run, too."""
    server = start_server("mariadb", **{"catalog.statistics_sketches": "true"})
    spark.session(remote(tmp_path, server.uri))
    spark.sql("create database d")
    place = f"location 'file:{tmp_path}/warehouse/parted'"
    spark.sql(f"create external table d.parted (a int, t string) partitioned by (p int) stored as parquet {place}")
    queries = "select count(*), min(a), max(a) from d.parted;"
    for rows, wanted in (("(1, 'x', 1), (20, 'y', 2)", "2\t1\t20"), ("(100, 'z', 1)", "3\t1\t100")):
        spark.sql(f"insert into d.parted values {rows}")
        assert run(spark, server.uri)["exit_status"] == 0
        script = f"set hive.compute.query.using.stats=true;\n{queries}\nexplain {queries}"
        printed = "\n".join(hive_engine.run(script, server.uri, tmp_path / f"hive of {rows[1:4].strip(',')}"))
        assert wanted in printed
        assert re.search(r"Fetch Operator", printed) and not re.search(r"\bTez\b\s*$", printed, re.MULTILINE)
