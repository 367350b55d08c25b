"""`history`: each event once, whatever happens to the process that writes it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset
from pyspark.sql.functions import expr
from sqlalchemy import create_engine, delete, func, select, update

from hms_cache.errors import HmsCacheError
from hms_cache.jobs.history.tables import read_history
from hms_cache.jobs.history.transform import churn, transform
from hms_cache.jobs.registry import JOBS
from hms_cache.jobs.sources import register
from hms_cache.store.schema import NOTIFICATION_LOG
from tests.clients.spark.session import SparkProcess
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def keep(spark: Any, options: dict[str, Any], dry_run: bool = False) -> dict[str, Any]:
    """In Spark's process."""
    register(spark)
    result = JOBS["history"].run(spark, options, dry_run=dry_run)
    return {"summary": dict(result.summary), "tables": [[list(map(str, row)) for row in t.rows] for t in result.tables]}


def refused(spark: Any, options: dict[str, Any]) -> str:
    """In Spark's process: the error with which the job ends."""
    register(spark)
    try:
        JOBS["history"].run(spark, options)
    except HmsCacheError as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def days(spark: Any, zone: str, times: list[str]) -> list[str]:
    """In Spark's process: the days of events, in a session with this time zone."""
    columns = "event_id BIGINT, event_type STRING, catalog STRING, database STRING, table STRING, message STRING"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = [(number, "OTHER", None, None, None, None) for number in range(len(times))]
        events = spark.createDataFrame(rows, columns)
        values = ", ".join(f"TIMESTAMP '{time}'" for time in times)
        events = events.withColumn("event_time", expr(f"element_at(array({values}), int(event_id) + 1)"))
        return [str(row["day"]) for row in transform(events).orderBy("event_id").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def look(spark: Any, output: str) -> dict[str, Any]:
    """In Spark's process: the contents of the history."""
    history = read_history(spark, output)
    rows = [row.asDict() for row in history.drop("event_time").orderBy("event_id").collect()]
    return {
        "rows": json.loads(json.dumps(rows, default=str)),
        "churn": [list(row)[:8] for row in churn(history).collect()],
    }


@pytest.mark.soak
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_days_are_those_of_utc(job_spark: SparkProcess, zone: str) -> None:
    """Also with ``--conf spark.sql.session.timeZone``: a batch that is written again must find its own files."""
    times = [
        "2026-03-01 00:00:00Z",
        "2026-03-01 23:59:59.999999Z",
        "1969-12-31 23:59:59.999999Z",
        "2026-03-08 07:30:00Z",
    ]
    found = job_spark.call(days, zone=zone, times=times)
    assert found == ["2026-03-01", "2026-03-01", "1969-12-31", "2026-03-08"]


@pytest.mark.soak
def test_who_changed_what(start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path) -> None:
    server = start_server("sqlite")
    output = str(tmp_path / "history")
    options = {"metastore": server.uri, "output": output, "batch_events": 4}
    with closing(Catalog(server.uri)) as catalog:
        catalog.database("d")
        table = catalog.table("d", "parts", keys=["day"])
        catalog.partitions("d", "parts", [(str(number),) for number in range(7)])
        table.parameters["last_modified_by"] = "bob"
        table.tableName = "moved"
        catalog.client.call("alter_table", "d", "parts", table)
        assert job_spark.call(keep, options=options, dry_run=True)["summary"]["events to add"] == 4
        assert job_spark.call(keep, options=options)["summary"]["events added"] == 4
        catalog.client.call("drop_partition", "d", "moved", ["3"], False)
        catalog.client.call("drop_table", "d", "moved", False)
    again = job_spark.call(keep, options=options)
    assert (again["summary"]["events added"], again["summary"]["events in all"]) == (2, 6)
    answer = job_spark.call(look, output=output)
    seen = [
        (row["event_type"], row["change"], row["table"], row["old_name"], row["actor"], row["partitions"], row["batch"])
        for row in answer["rows"]
    ]
    assert seen == [
        ("CREATE_DATABASE", "created", None, None, "anonymous", None, 0),
        ("CREATE_TABLE", "created", "parts", None, "ann", None, 0),
        ("ADD_PARTITION", "created", "parts", None, None, 7, 0),
        ("ALTER_TABLE", "renamed", "moved", "d.parts", "bob", None, 0),
        ("DROP_PARTITION", "dropped", "moved", None, None, 1, 1),
        ("DROP_TABLE", "dropped", "moved", None, None, None, 1),
    ]
    assert answer["churn"] == [["hive", "d", "moved", 3, 1, 0, 0, 1], ["hive", "d", "parts", 2, 0, 0, 7, 0]]


@pytest.mark.soak
def test_who_did_it_by_the_audit_log(start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path) -> None:
    """Also for events without a user; nothing for lines that come too late, or that belong to another log."""
    settings = {"log.format": "json", "server.audit_format": "json"}
    first = start_server("sqlite", **settings)
    for user, database in (("ann", "a"), ("bob", "b")):
        with closing(Catalog(first.uri)) as catalog:
            catalog.client.call("set_ugi", user, [])
            catalog.database(database)
            catalog.table(database, "t", keys=["day"])
            catalog.partitions(database, "t", [(str(number),) for number in range(3)])
            catalog.client.call("drop_partition", database, "t", ["1"], False)
    assert first.stop() == 0  # with its last lines written
    server = start_server(first.database_url, "second")
    lines = first.log.splitlines()
    logs, output = tmp_path / "logs", str(tmp_path / "history")
    logs.mkdir()
    (logs / "server-1.log").write_text("\n".join(["no JSON", *lines]))
    # Lines with only the audit logger's messages, without a time, and with an event that does not exist.
    (logs / "server-2.log").write_text(json.dumps({"ugi": "eve", "method": "drop_table", "events": [[900, 901]]}))
    old = {"ugi": "eve", "method": "drop_table", "events": [[1, 1 << 60]]}
    (logs / "of-another-database.log").write_text(
        json.dumps({"time": 1.0, "logger": "hms_cache.audit", "message": json.dumps(old)})
    )
    options = {"metastore": server.uri, "output": output, "batch_events": 3, "audit": (str(logs),)}
    summary = job_spark.call(keep, options=options)["summary"]
    assert summary["events added"] == summary["events with a caller"] == 8
    rows = job_spark.call(look, output=output)["rows"]
    assert {(row["database"], row["caller"]) for row in rows} == {("a", "ann"), ("b", "bob")}
    assert [row["method"] for row in rows[:4]] == [
        "create_database",
        "create_table",
        "add_partitions",
        "drop_partition",
    ]
    assert {row["caller_address"] for row in rows} == {"127.0.0.1"}
    assert {row["caller_principal"] for row in rows} == {None}
    with closing(Catalog(server.uri)) as catalog:
        catalog.client.call("drop_table", "a", "t", False)
    assert job_spark.call(keep, options=options)["summary"]["events with a caller"] == 0
    assert job_spark.call(look, output=output)["rows"][-1]["caller"] is None


LATE_PYTHON = """#!/bin/sh
case "$*" in *streaming*) if mkdir {late} 2>/dev/null; then sleep 13; fi ;; esac
exec {python} "$@"
"""


@pytest.mark.soak
def test_a_worker_that_is_late_is_waited_for(start_server: ServerStarter, tmp_path: Path) -> None:
    """Spark gives a worker ten seconds to connect, which a busy machine may need for its imports."""
    server = start_server("sqlite")
    with closing(Catalog(server.uri)) as catalog:
        catalog.database("d")
    late, python, output = tmp_path / "late", tmp_path / "python", tmp_path / "history"
    python.write_text(LATE_PYTHON.format(late=late, python=sys.executable))
    python.chmod(0o755)
    command = [sys.executable, "-c", "from hms_cache.cli.main import main; main()", "jobs", "history", "--json"]
    done = subprocess.run(
        [*command, "--metastore", server.uri, "--output", str(output)],
        env=os.environ | {"PYSPARK_PYTHON": str(python)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert late.exists(), "no worker was late"
    assert json.loads(done.stdout)["summary"]["events added"] == 1


@pytest.mark.soak
def test_a_trimmed_log_is_an_error_that_says_so(
    start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path
) -> None:
    server = start_server("sqlite")
    options = {"metastore": server.uri, "output": str(tmp_path / "history")}
    write_events(server.uri, 10)
    assert job_spark.call(keep, options=options)["summary"]["events in all"] == 10
    with closing(Catalog(server.uri)) as catalog:
        for name in ("a", "b", "c"):
            catalog.table("d", name)
    engine = create_engine(server.database_url)
    with engine.begin() as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID <= 11))
    error = job_spark.call(refused, options=options)
    assert error.startswith("EventLogError: event 10, the last one that was read, is no longer in the notification log")
    assert "start=earliest" in error and "\n" not in error
    with engine.begin() as connection:
        connection.execute(update(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID == 13).values(EVENT_ID=10))
    assert "another history" in job_spark.call(refused, options=options)
    engine.dispose()
    assert job_spark.call(look, output=options["output"])["rows"][-1]["event_id"] == 10


def write_events(uri: str, count: int) -> None:
    with closing(Catalog(uri)) as catalog:
        catalog.database("d")
        table = catalog.table("d", "t")
        for number in range(count - 2):
            table.parameters["n"] = str(number)
            catalog.client.call("alter_table", "d", "t", table)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_killed_in_the_middle_of_20_000_events(start_server: ServerStarter, tmp_path: Path, kind: str) -> None:
    """The process is really killed: the JVM with its workers."""
    server = start_server(kind)
    write_events(server.uri, 20_000)
    output, seed = tmp_path / "history", random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    where = ["--metastore", server.uri] if kind == "sqlite" else ["--database", server.database_url]
    command = [sys.executable, "-m", "hms_cache.cli", "jobs", "history", *where, "--output", str(output)]
    command += ["--batch-events", "1000", "--master", "local[2]", "--json"]
    killed = 0
    while True:
        with (tmp_path / "job.log").open("a") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        if killed < 5:
            _wait_for_batches(output, process, (killed + 1) * 3)
            time.sleep(chance.random())
        if killed >= 5 or process.poll() is not None:
            answer, _ = process.communicate(timeout=900)
            assert process.returncode == 0, (tmp_path / "job.log").read_text()[-3000:]
            break
        _kill_group(process)
        killed += 1
    assert killed >= 3
    assert json.loads(answer)["summary"]["events in all"] == 20_000
    # Read without Spark: what any reader of the files sees.
    ids = dataset.dataset(output, partitioning="hive").to_table(columns=["event_id"])["event_id"].to_pylist()
    with closing(create_engine(server.database_url).connect()) as connection:
        stored = connection.execute(select(func.count(), func.max(NOTIFICATION_LOG.c.EVENT_ID))).one()
    assert tuple(stored) == (20_000, 20_000)
    assert sorted(ids) == list(range(1, 20_001))


def _wait_for_batches(output: Path, process: subprocess.Popen[bytes], count: int) -> None:
    """Waits until this many batches were begun, or the process ended."""
    deadline = time.monotonic() + 600
    offsets = output / "_checkpoint" / "offsets"
    while process.poll() is None and len(list(offsets.glob("[0-9]*"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
