"""Jobs and data sources on Spark, with executors in separate processes without a ticket."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from hms_cache.jobs.registry import JOBS
from hms_cache.jobs.sources import register
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.clients.spark.session import SparkProcess, base_conf
from tests.jobs.statistics.catalog import run_job
from tests.python_client.authentication.site import PASSWORD, Site
from tests.server.kerberos_realm import REALM
from tests.server.test_tls import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CLUSTER = "local-cluster[1,1,1024]"
DAYS = 3


START = """
import os, pathlib
place = pathlib.Path("{place}")
place.write_text('''#!/bin/sh
case "$PWD" in */app-*) export KRB5CCNAME=FILE:/nonexistent KRB5_CONFIG=/nonexistent;; esac
exec {python} "$@"
''')
place.chmod(0o755)
spark.sparkContext.pythonExec = str(place)
home = spark.sparkContext._jvm.java.lang.System.getenv("SPARK_HOME") or "."
result = os.path.abspath(os.path.join(home, "work", spark.sparkContext.applicationId))
"""
"""Python of Spark's workers: those of executors, which are told by where they run, know of no ticket and no KDC. Spark
plans sources by it, too, beside the driver. `result`: where the executors run."""


@pytest.fixture(scope="module")
def cluster(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """A driver with ann's tickets, and an executor that has none."""
    directory = tmp_path_factory.mktemp("cluster")
    (directory / "events").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5CCNAME", f"FILE:{site.ticket}")
        patch.setenv("SSL_CERT_FILE", str(site.authority.ca_file))
        process = SparkProcess(directory)
    conf = base_conf(directory) | {
        "spark.master": CLUSTER,
        "spark.executor.memory": "1g",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{directory / 'events'}",
    }
    process.session(conf)
    work = Path(process.python(START.format(python=sys.executable, place=str(directory / "python"))))
    yield process
    process.python("spark.stop()")
    process.close()
    # The JVM may still start an executor to replace one that it has ended.
    wait_for(lambda: shutil.rmtree(work, ignore_errors=True) is None and not work.exists())
    with contextlib.suppress(OSError):
        work.parent.rmdir()


def filled(site: Site, directory: Path, name: str) -> None:
    """A table of Parquet with three partitions, and rows in them."""
    root = directory / "warehouse" / name
    with site.client("none", "none") as client:
        client.call("create_database", Database(name=name, locationUri=f"file:{root}", parameters={}))

        def descriptor(place: Path) -> StorageDescriptor:
            return StorageDescriptor(
                cols=[FieldSchema("id", "bigint"), FieldSchema("text", "string")],
                location=f"file:{place}",
                inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
                outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
                serdeInfo=SerDeInfo(
                    serializationLib="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", parameters={}
                ),
                numBuckets=-1,
                bucketCols=[],
                sortCols=[],
                parameters={},
            )

        table = Table(
            dbName=name,
            tableName="t",
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
            sd=descriptor(root / "t"),
            partitionKeys=[FieldSchema("day", "string")],
        )
        client.call("create_table", table)
        partitions = []
        for day in range(DAYS):
            place = root / "t" / f"day={day}"
            place.mkdir(parents=True)
            parquet.write_table(pa.table({"id": [day, day + 10], "text": ["a", None]}), place / "part.parquet")
            partitions.append(Partition(dbName=name, tableName="t", values=[str(day)], sd=descriptor(place)))
        client.call("add_partitions", partitions)


def auth_of(site: Site, port: str) -> str:
    """Also in the executor: it finds the files, but has no ticket."""
    if port.startswith("kerberos"):
        return f"kerberos server=hive/_HOST@{REALM}"
    return f"jwt file={site.bearer_file}" if port.startswith("jwt") else site.ldap


def read_sources(spark: SparkSession, options: dict[str, str], database: str) -> dict[str, Any]:
    """In Spark's process."""
    register(spark)
    catalog = spark.read.format("hms_catalog").options(**options)
    partitions = catalog.load("partitions").where(f"database = '{database}'")
    # The schema of a table contains its options.
    spark.sql("DROP TABLE IF EXISTS kept")
    told = ", ".join(f"`{name}` '{value}'" for name, value in {**options, "kind": "tables"}.items())
    spark.sql(f"CREATE TABLE kept USING hms_catalog OPTIONS ({told})")
    events = spark.read.format("hms_events").options(**options).load().where(f"database = '{database}'")
    return {
        "partitions": sorted(row.partition for row in partitions.collect()),
        "kept": spark.sql(f"SELECT `table` FROM kept WHERE `database` = '{database}'").count(),
        "events": sorted({row.event_type for row in events.collect()}),
        "plans": partitions._jdf.queryExecution().toString() + events._jdf.queryExecution().toString(),
    }


EXPECTED = {
    "partitions": [f"day={day}" for day in range(DAYS)],
    "kept": 1,
    "events": ["ADD_PARTITION", "CREATE_DATABASE", "CREATE_TABLE"],
}


@pytest.mark.soak
@pytest.mark.parametrize("port", [pytest.param("kerberos", marks=pytest.mark.short), "kerberos tls", "ldap tls", "jwt"])
def test_sources(site: Site, cluster: SparkProcess, tmp_path: Path, port: str) -> None:
    name = f"sources_{port}".replace(" ", "_")
    filled(site, tmp_path, name)
    options = {"metastore": site.uri(port), "auth": auth_of(site, port)}
    found = cluster.call(read_sources, options=options, database=name)
    assert {key: found[key] for key in EXPECTED} == EXPECTED


def stream_events(spark: SparkSession, options: dict[str, str], database: str) -> int:
    """In Spark's process."""
    register(spark)
    stream = spark.readStream.format("hms_events").options(**options, message="none").load()
    query = stream.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.sql(f"SELECT * FROM seen WHERE database = '{database}'").count()


@pytest.mark.soak
@pytest.mark.parametrize("port", ["kerberos", "ldap tls"])
def test_a_stream(site: Site, cluster: SparkProcess, tmp_path: Path, port: str) -> None:
    name = f"stream_{port}".replace(" ", "_")
    filled(site, tmp_path, name)
    options = {"metastore": site.uri(port), "auth": auth_of(site, port)}
    before = tokens(site)
    assert cluster.call(stream_events, options=options, database=name) == 3
    wait_for(lambda: tokens(site) == before)


def tokens(site: Site) -> int:
    """Number of valid delegation tokens."""
    with contextlib.closing(sqlite3.connect(site.directory / "metastore.db")) as database:
        found: int = database.execute("SELECT COUNT(*) FROM DELEGATION_TOKENS").fetchone()[0]
    return found


@pytest.mark.soak
@pytest.mark.parametrize("port", ["kerberos", "ldap tls", "jwt"])
def test_jobs(site: Site, cluster: SparkProcess, tmp_path: Path, port: str) -> None:
    name = f"jobs_{port}".replace(" ", "_")
    filled(site, tmp_path, name)
    before = tokens(site)
    options = {"metastore": site.uri(port), "auth": auth_of(site, port), "tables": [f"{name}.*"]}
    done = cluster.call(run_named, job="statistics", options=options)
    assert done["summary"]["partitions written"] == DAYS and not done["summary"]["failures"], done
    new = tmp_path / "warehouse" / name / "t" / "day=7"
    new.mkdir()
    (new / "part").write_bytes(b"x")
    done = cluster.call(run_named, job="files", options=options | {"repair": "add"})
    assert done["summary"]["added"] == 1, done
    url = f"sqlite:///{site.directory / 'metastore.db'}"
    verified = {"server": [site.uri(port)], "auth": auth_of(site, port), "database": url, "tables": [f"{name}.*"]}
    done = cluster.call(run_named, job="verify", options=verified)
    assert done["summary"]["objects compared"] > DAYS and not done["summary"]["different"], done
    kept = {"metastore": site.uri(port), "auth": auth_of(site, port), "output": f"file:{tmp_path / 'history'}"}
    done = cluster.call(run_named, job="history", options=kept)
    assert done["summary"]["events added"] > 3, done
    assert tokens(site) == before, "each job has cancelled those of its tasks"
    with site.client("none", "none") as client:
        table = client.call("get_table", name, "t")
        statistics = client.call("get_partition_column_statistics", name, "t", "day=1", "id").statsObj[0].statsData
        assert (statistics.longStats.lowValue, statistics.longStats.highValue) == (1, 11)
        assert table.parameters["spark.sql.statistics.numRows"] == str(2 * DAYS)


def with_files(spark: SparkSession, files: list[str], options: dict[str, str], database: str) -> Any:
    """In Spark's process: `--files` does this at the start of a session."""
    for file in files:
        spark.sparkContext.addFile(file)
    sources = read_sources(spark, options, database)
    return {**sources, "job": run_named(spark, "statistics", {**options, "tables": [f"{database}.*"]})["summary"]}


@pytest.mark.soak
@pytest.mark.parametrize("by", ["password", "bearer", "keytab", "token"])
def test_files_that_spark_distributes_go_by_their_names(
    site: Site, cluster: SparkProcess, tmp_path: Path, by: str
) -> None:
    """Neither the driver nor an executor runs in the directory that contains them."""
    database, name = f"files_{by}", f"ann.{by}"
    filled(site, tmp_path, database)
    file = tmp_path / "elsewhere" / name
    file.parent.mkdir()
    port, auth, content = {
        "password": ("ldap tls", f"ldap user=ann password_file={name}", site.password_file.read_bytes()),
        "bearer": ("jwt", f"jwt file={name}", site.bearer_file.read_bytes()),
        "keytab": (
            "kerberos",
            f"kerberos server=hive/_HOST@{REALM} principal=ann@{REALM} keytab={name}",
            site.keytab.read_bytes(),
        ),
        "token": ("kerberos", f"token file={name}", site.token().encode()),
    }[by]
    file.write_bytes(content)
    options = {"metastore": site.uri(port), "auth": auth}
    found = cluster.call(with_files, files=[str(file)], options=options, database=database)
    assert {key: found[key] for key in EXPECTED} == EXPECTED
    assert found["job"]["partitions written"] == DAYS


def run_named(spark: SparkSession, job: str, options: dict[str, Any]) -> dict[str, Any]:
    """In Spark's process."""
    register(spark)
    return run_job(spark, JOBS[job], False, options)


def test_repair_without_spark(site: Site, tmp_path: Path) -> None:
    filled(site, tmp_path, "repaired")
    (tmp_path / "warehouse" / "repaired" / "t" / "day=7").mkdir()
    options = {"metastore": site.uri("kerberos"), "auth": site.kerberos, "tables": ("repaired.*",)}
    result = JOBS["repair"].run(None, options)
    assert result.summary["added"] == 1, result


def with_hives_keys(spark: SparkSession, keys: dict[str, str], options: dict[str, str], database: str) -> Any:
    """In Spark's process: the settings for Spark's own client are sufficient."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in keys.items():
        hadoop.set(name, value)
    try:
        sources = read_sources(spark, options, database)
        job = run_named(spark, "statistics", {**options, "tables": [f"{database}.*"]})
    finally:
        for name in keys:
            hadoop.unset(name)
    register(spark)
    return {**sources, "job": job["summary"]}


@pytest.mark.soak
def test_the_keys_of_sparks_own_client(site: Site, cluster: SparkProcess, tmp_path: Path) -> None:
    filled(site, tmp_path, "by_keys")
    keys = {"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}"}
    options = {"metastore": site.uri("kerberos")}
    found = cluster.call(with_hives_keys, keys=keys, options=options, database="by_keys")
    assert {key: found[key] for key in EXPECTED} == EXPECTED
    assert found["job"]["partitions written"] == DAYS


def failure_of(spark: SparkSession, options: dict[str, str]) -> str:
    """In Spark's process."""
    register(spark)
    try:
        spark.read.format("hms_catalog").options(**options).load("tables").collect()
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.soak
def test_what_goes_wrong_is_told(site: Site, cluster: SparkProcess, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("not the password")
    ldap, kerberos = {"metastore": site.uri("ldap")}, {"metastore": site.uri("kerberos")}
    auth = f"ldap user=ann password_file={tmp_path / 'wrong'}"
    told = cluster.call(failure_of, options=ldap | {"auth": auth})
    assert "wrong name or password" in told and "not the password" not in told
    told = cluster.call(failure_of, options=kerberos | {"auth": f"kerberos server=nobody/_HOST@{REALM}"})
    assert f"the realm has no nobody/localhost@{REALM}" in told
    assert "hive.metastore.sasl.enabled" in cluster.call(failure_of, options=kerberos)


def planned_elsewhere(site: Site, directory: Path, port: str) -> list[tuple[str, dict[str, Any]]]:
    """Jobs with sources of their own, to which the driver passes what tasks need, and their options."""
    url = f"sqlite:///{site.directory / 'metastore.db'}"
    verified = {"server": [site.uri(port)], "database": url, "tables": ["shown.*"]}
    history = {"metastore": site.uri(port), "output": f"file:{directory / port.replace(' ', '_')}"}
    return [("verify", verified), ("history", history)]


@pytest.mark.soak
def test_no_secret_is_in_what_spark_shows_and_keeps(site: Site, cluster: SparkProcess, tmp_path: Path) -> None:
    filled(site, tmp_path, "shown")
    for port in ("kerberos", "ldap tls", "jwt"):
        options = {"metastore": site.uri(port), "auth": auth_of(site, port)}
        for job, more in planned_elsewhere(site, tmp_path, port):
            cluster.call(run_named, job=job, options={"auth": auth_of(site, port), **more})
        found = cluster.call(read_sources, options=options, database="shown")
        assert "auth" in found["plans"] or "hms_catalog" in found["plans"]
        shown = found["plans"]
        for file in cluster._log.parent.rglob("*"):
            if file.is_file() and ("events" in file.parts or file.name in ("stderr", "stdout", "spark.log")):
                shown += file.read_text(errors="replace")
        assert "SparkListenerApplicationStart" in shown, "it has read the log of events"
        # A token's identifier begins with a zero byte and the owner's principal.
        for secret in (PASSWORD, site.bearer_file.read_text(), "SElWRV9ERUxFR0FUSU9OX1RPS0VO", "HIVE_DELEGATION_TOKEN"):
            assert secret not in shown and json.dumps(secret) not in shown
