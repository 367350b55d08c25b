"""Settings that a session has while the job reads many small files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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


@pytest.mark.soak
@pytest.mark.short
def test_many_small_files_are_few_tasks(job_spark: SparkProcess, tmp_path: Path) -> None:
    found = job_spark.call(read_with_and_without, directory=str(tmp_path / "small"), files=100)
    before, inside, after = found["tasks"]
    assert before == after > inside
    assert found["listing"] < 100
    assert found["own"] == ["12345", "12345"]
