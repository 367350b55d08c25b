"""Settings that a session has while the job reads many small files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from zipimport import zipimporter

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from hms_cache.jobs.frame import python_daemon
from hms_cache.jobs.statistics.session import reading_tables
from tests.clients.spark.session import SparkProcess

pytestmark = pytest.mark.spark

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
OPEN_COST = "spark.sql.files.openCostInBytes"


def read_with_and_without(spark: SparkSession, *, directory: str, files: int) -> dict[str, object]:
    """The tasks of reading small files: as Spark does it, in the job, and after it; and a setting of the session."""
    spark.range(10).coalesce(1).write.parquet(directory)
    [made] = Path(directory).glob("*.parquet")
    for number in range(1, files):
        shutil.copyfile(made, f"{directory}/{number}.parquet")

    def tasks() -> int:
        return spark.read.parquet(directory).rdd.getNumPartitions()

    before = tasks()
    with reading_tables(spark):
        inside, listing = tasks(), int(str(spark.conf.get(LISTING)))
    after = tasks()
    spark.conf.set(OPEN_COST, "12345")
    try:
        with reading_tables(spark):
            own = spark.conf.get(OPEN_COST)
        kept = spark.conf.get(OPEN_COST)
    finally:
        spark.conf.unset(OPEN_COST)
    return {"tasks": (before, inside, after), "listing": listing, "own": (own, kept)}


def where_workers_find_pyspark(spark: SparkSession) -> list[str]:
    """Its file, and the archives that a worker checks before each task."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            archives = [name for name, one in sys.path_importer_cache.items() if isinstance(one, zipimporter)]
            found = [pyspark.__file__, *archives]
            yield pa.RecordBatch.from_pylist([{"found": one} for one in found])

    return [row["found"] for row in spark.range(1).mapInArrow(look, "found string").collect()]


@pytest.mark.soak
@pytest.mark.short
def test_workers_of_this_machine_leave_archives_out(job_spark: SparkProcess, job_conf: dict[str, str]) -> None:
    """Otherwise, each Python task starts by reading all names in them."""
    before = job_spark.call(where_workers_find_pyspark)
    assert len(before) > 1
    job_spark.session(job_conf | {"spark.python.daemon.module": python_daemon.MODULE})
    found = job_spark.call(where_workers_find_pyspark)
    assert len(found) == 1, found
    [found] = found
    assert Path(found).is_file() and Path(found).parent.name == "pyspark"


@pytest.mark.soak
@pytest.mark.short
def test_many_small_files_are_few_tasks(job_spark: SparkProcess, tmp_path: Path) -> None:
    found = job_spark.call(read_with_and_without, directory=str(tmp_path / "small"), files=100)
    before, inside, after = found["tasks"]
    assert before == after > inside
    assert found["listing"] < 100
    assert found["own"] == ["12345", "12345"]
