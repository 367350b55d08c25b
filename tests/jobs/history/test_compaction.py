"""Files of a history are merged and deleted without losing or duplicating an event, wherever this is interrupted."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset
from pyspark.sql import functions as F

from hms_cache.jobs.history.compaction import STAGING, compact, delete_days, journals, recover
from hms_cache.jobs.history.files import Files
from hms_cache.jobs.history.tables import IcebergHistory, read_history
from hms_cache.jobs.history.transform import HISTORY_TABLE
from hms_cache.jobs.history.views import VIEWS, create_views
from tests.clients.spark.session import SparkProcess

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(600)]

FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAYS, BATCHES, EVENTS = 3, 4, 5
"""Batches of a day, events of a batch."""


class Interrupted(Exception):
    pass


class InterruptedFiles(Files):
    """Ends like a process that is killed, before the change of this number."""

    def __init__(self, spark: Any, root: str, survives: int) -> None:
        super().__init__(spark, root)
        self._survives = survives

    def _change(self) -> None:
        if self._survives == 0:
            raise Interrupted
        self._survives -= 1

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)

    def move(self, path: str, to: str) -> None:
        self._change()
        super().move(path, to)


def fill(spark: Any, output: str, days: int = DAYS) -> list[int]:
    """Batches as written by the job, the first day's by a release with fewer columns. Returns the ids of all events."""
    ids: list[int] = []
    for number in range(days * BATCHES):
        when = FIRST_DAY + timedelta(days=number // BATCHES)
        first = number * EVENTS + 1
        rows = [
            {"event_id": event, "event_time": when, "event_type": "ALTER_TABLE", "change": "altered", "actor": "ann"}
            | {"catalog": "hive", "database": "d", "table": f"t{event % 2}", "day": when.date(), "batch": number}
            for event in range(first, first + EVENTS)
        ]
        ids += [row["event_id"] for row in rows]
        batch = spark.createDataFrame([tuple(map(row.get, HISTORY_TABLE.names)) for row in rows], HISTORY_TABLE)
        if number < BATCHES:
            batch = batch.drop("write_id", "message", "server")
        batch.repartition(1).write.mode("append").partitionBy("day", "batch").parquet(output)
    return ids


def read_plainly(output: str) -> list[int]:
    """As any reader of the files sees them."""
    return sorted(dataset.dataset(output, partitioning="hive").to_table(columns=["event_id"])["event_id"].to_pylist())


def ids_of(spark: Any, output: str) -> list[int]:
    return [row.event_id for row in read_history(spark, output).orderBy("event_id").collect()]


def files_of(output: str) -> dict[str, int]:
    days = sorted(Path(output).glob("day=*"))
    return {day.name.removeprefix("day="): len(list(day.rglob("*.parquet"))) for day in days}


def interrupt_everywhere(spark: Any, output: str) -> dict[str, Any]:
    """In Spark's process: a merge that ends before its first change, its second one, …, each of the same initial
    history."""
    ids = fill(spark, f"{output}-filled", days=2)
    assert files_of(f"{output}-filled") == {"2026-01-01": BATCHES, "2026-01-02": BATCHES}
    unfinished = 0
    for survives in range(100):
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(f"{output}-filled", output)
        try:
            compact(spark, InterruptedFiles(spark, output, survives), 1 << 20)
            break
        except Interrupted:
            pass
        unfinished += len(journals(Files(spark, output)))
        # A reader that works like the job never sees the interruption.
        assert ids_of(spark, output) == ids, survives
        # The continuation is interrupted, too.
        with suppress(Interrupted):
            recover(InterruptedFiles(spark, output, survives * 7 % 11))
        recover(Files(spark, output))
        # And other readers of the files do not, once the next run has begun.
        assert read_plainly(output) == ids == ids_of(spark, output), survives
        assert not Path(output, STAGING).exists()
    merged = read_history(spark, output).where("day = '2026-01-01'").orderBy("event_id").collect()
    return {
        "same": read_plainly(output) == ids == ids_of(spark, output),
        "interruptions": survives,
        "unfinished": unfinished,
        "files": files_of(output),
        "columns": [merged[0].event_id, merged[0].actor, merged[0].write_id, merged[0].batch],
    }


@pytest.mark.long
def test_interrupted_at_every_step(job_spark: SparkProcess, tmp_path: Path) -> None:
    answer = job_spark.call(interrupt_everywhere, output=str(tmp_path / "history"))
    assert answer["same"]
    # The journal, four old files, the merged one, three empty directories, the staged files.
    assert answer["interruptions"] > 10 and answer["unfinished"] > 7
    # The newest day still grows.
    assert answer["files"] == {"2026-01-01": 1, "2026-01-02": BATCHES}
    assert answer["columns"] == [1, "ann", None, BATCHES - 1]


def sizes_and_days(spark: Any, output: str) -> dict[str, Any]:
    """In Spark's process."""
    ids = fill(spark, output)
    files = Files(spark, output)
    largest = max(one.size_bytes for one in files.files("day=2026-01-02"))
    small = compact(spark, files, largest * 2)
    by_size = files_of(output)
    # Merged files have the target size by now: nothing is written again.
    nothing = compact(spark, files, largest * 2)
    create_views(spark, output)
    counts = {name: spark.table(name).count() for name in VIEWS}
    churned = [list(row)[1:4] for row in spark.table("history_churn").collect()]
    deleted = delete_days(files, 2)
    kept = ids_of(spark, output)
    everything = delete_days(files, 1), delete_days(files, 1)
    return {
        "merged": [small.days, small.files_before, small.files_after],
        "by_size": by_size,
        "again": nothing.days,
        "views": counts,
        "churned": churned,
        "deleted": deleted,
        "kept": kept == [one for one in ids if one > BATCHES * EVENTS],
        "last": [*everything, ids_of(spark, output) == ids[-BATCHES * EVENTS :]],
    }


def test_sizes_views_and_days(job_spark: SparkProcess, tmp_path: Path) -> None:
    answer = job_spark.call(sizes_and_days, output=str(tmp_path / "history"))
    assert answer["merged"][:2] == [2, 2 * BATCHES] and answer["by_size"]["2026-01-02"] == 2
    assert answer["again"] == 0
    events = DAYS * BATCHES * EVENTS
    assert answer["views"] == {"history_changes": events, "history_actors": 2, "history_daily": 6, "history_churn": 2}
    assert answer["churned"] == [["d", "t0", events // 2], ["d", "t1", events // 2]]
    assert answer["deleted"] == 1 and answer["kept"]
    assert answer["last"] == [1, 0, True]


def in_iceberg(spark: Any, warehouse: str) -> dict[str, Any]:
    """In Spark's process: batches that are written again, a table of an earlier release, days merged and deleted."""
    for name, value in (
        ("spark.sql.catalog.kept", "org.apache.iceberg.spark.SparkCatalog"),
        ("spark.sql.catalog.kept.type", "hadoop"),
        ("spark.sql.catalog.kept.warehouse", f"file:{warehouse}"),
    ):
        spark.conf.set(name, value)
    output = "kept.d.history"
    table = IcebergHistory(spark, output, f"{warehouse}/checkpoint")
    nothing = table.read().count()
    earlier = spark.createDataFrame([], HISTORY_TABLE).drop("caller", "method")
    earlier.writeTo(output).using("iceberg").partitionedBy(F.col("day")).create()
    before = table.read().columns
    table.prepare()
    ids = []
    for number in range(DAYS * BATCHES):
        when = datetime(2026, 1, 1 + number // BATCHES, 12, 0, tzinfo=UTC)
        first = 1 + number * EVENTS
        rows = [
            {"event_id": event, "event_time": when, "database": "d", "caller": "ann"}
            | {"day": when.date(), "batch": number}
            for event in range(first, first + EVENTS)
        ]
        ids += [row["event_id"] for row in rows]
        batch = spark.createDataFrame([tuple(map(row.get, HISTORY_TABLE.names)) for row in rows], HISTORY_TABLE)
        table.add(batch)
        table.add(batch)  # Spark runs the last batch again after a kill

    def found() -> list[int]:
        return [row.event_id for row in read_history(spark, output, "iceberg").orderBy("event_id").collect()]

    answer = {"nothing": nothing, "before": before == HISTORY_TABLE.names, "once": found() == ids}
    merged = table.merge(1 << 30)
    again = table.merge(1 << 30)
    files = spark.table(f"{output}.files").groupBy("partition.day").count().orderBy("day").collect()
    create_views(spark, output, "iceberg")
    who = [row.actor for row in spark.table("history_changes").select("actor").distinct().collect()]
    answer |= {"who": who, "merged": [merged.days, merged.files_before, merged.files_after, again.days]}
    answer |= {"files": [row["count"] for row in files], "same": found() == ids}
    answer["deleted"] = [table.delete_days(2), found() == ids[BATCHES * EVENTS :], table.delete_days(2)]
    return answer


@pytest.mark.soak
def test_a_history_in_iceberg(job_spark: SparkProcess, tmp_path: Path) -> None:
    answer = job_spark.call(in_iceberg, warehouse=str(tmp_path / "iceberg"))
    assert (answer["nothing"], answer["before"], answer["once"], answer["same"]) == (0, True, True, True)
    assert answer["who"] == ["ann"]
    # The newest day still grows.
    assert answer["merged"] == [DAYS - 1, (DAYS - 1) * BATCHES, DAYS - 1, 0]
    assert answer["files"] == [1] * (DAYS - 1) + [BATCHES]
    assert answer["deleted"] == [1, True, 0]
