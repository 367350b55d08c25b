"""What is measured: each data source and job on the part of the catalog that a size names."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.jobs.catalog import JobCatalog
from benchmarks.jobs.processor_time import SparkProcessorTime
from hms_cache.jobs.registry import JOBS


@dataclass(frozen=True, slots=True)
class Place:
    """Where the catalog is."""

    catalog: JobCatalog
    metastore: str
    database: str
    last_event_id: int
    scratch: Path
    processor_time: SparkProcessorTime


@dataclass(frozen=True, slots=True)
class Measure:
    """`run` answers how many rows there were; `is_hive`: Spark has to read tables."""

    name: str
    rows: str
    """What a row is."""
    run: Callable[[Any, Place, int], int]
    is_hive: bool = False


def _read(frame: Any) -> int:
    """Every row of a DataFrame, to nowhere."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    frame.observe(seen, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def _catalog(spark: Any, place: Place, size: int, **origin: str) -> int:
    options = {**origin, "tables": place.catalog.pattern(size)}
    return _read(spark.read.format("hms_catalog").options(**options).load("partitions"))


def _catalog_from_server(spark: Any, place: Place, size: int) -> int:
    return _catalog(spark, place, size, metastore=place.metastore)


def _catalog_from_database(spark: Any, place: Place, size: int) -> int:
    return _catalog(spark, place, size, database=place.database)


def _events(spark: Any, place: Place, size: int) -> int:
    options = {"database": place.database, "start": str(place.last_event_id - size), "end": str(place.last_event_id)}
    return _read(spark.read.format("hms_events").options(**options).load())


def _history(spark: Any, place: Place, size: int) -> int:
    output = place.scratch / "history"
    options = {"database": place.database, "output": str(output), "start": str(place.last_event_id - size)}
    try:
        return int(str(JOBS["history"].run(spark, options).summary["events in all"]))
    finally:
        shutil.rmtree(output, ignore_errors=True)


def _files(spark: Any, place: Place, size: int) -> int:
    options = {"metastore": place.metastore, "tables": (place.catalog.pattern(size),)}
    result = JOBS["files"].run(spark, options)
    if result.exit_status:
        raise RuntimeError(f"files found differences: {dict(result.summary)}")
    return int(str(result.summary["partitions"]))


def _verify(spark: Any, place: Place, size: int) -> int:
    options = {
        "server": (place.metastore,),
        "database": place.database,
        "tables": (place.catalog.pattern(size),),
    }
    result = JOBS["verify"].run(spark, options)
    if result.exit_status:
        raise RuntimeError(f"verify found differences: {dict(result.summary)}")
    return int(str(result.summary["objects compared"]))


def _statistics(spark: Any, place: Place, size: int) -> int:
    options = {"metastore": place.metastore, "tables": (place.catalog.pattern(size),), "all": True}
    result = JOBS["statistics"].run(spark, options)
    if result.exit_status:
        raise RuntimeError(f"statistics failed: {dict(result.summary)} {[list(one.rows) for one in result.tables]}")
    return int(str(result.summary["partitions written"]))


MEASURES = (
    Measure("hms_catalog, from a server", "partitions", _catalog_from_server),
    Measure("hms_catalog, from the database", "partitions", _catalog_from_database),
    Measure("hms_events", "events", _events),
    Measure("history", "events", _history),
    Measure("files", "directories", _files),
    Measure("verify", "objects", _verify),
    # Last: what it writes changes what the others read.
    Measure("statistics", "partitions", _statistics, is_hive=True),
)
