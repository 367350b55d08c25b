"""The measures: each data source and job on the part of the catalog for a size."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.catalog import TablePlan
from benchmarks.jobs.catalog import JobCatalog, add_file
from benchmarks.jobs.processor_time import SparkProcessorTime
from hms_cache.jobs.registry import JOBS


@dataclass(frozen=True, slots=True)
class Place:
    """Access to the catalog."""

    catalog: JobCatalog
    metastore: str
    database: str
    last_event_id: int
    scratch: Path
    processor_time: SparkProcessorTime
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings for reading the files."""

    store: str = ""
    """The object store with the files; empty for local directories."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure. `run` returns the number of rows.

    :param is_hive: whether Spark has to read tables.
    """

    name: str
    rows: str
    """What a row is."""
    run: Callable[[Any, Place, int], int]
    before: Callable[[Place, int], None] | None = None
    """Is called first, and not measured."""

    after: Callable[[Place, int], None] | None = None
    is_hive: bool = False
    has_files: bool = False
    """Whether it reads the files of tables."""


def _read(frame: Any) -> int:
    """Reads every row of a DataFrame and discards it."""
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
    return _statistics_written(spark, place, size, everything=True)


def _statistics_written(spark: Any, place: Place, size: int, *, everything: bool) -> int:
    options = {"metastore": place.metastore, "tables": (place.catalog.pattern(size),), "all": everything}
    result = JOBS["statistics"].run(spark, options)
    if result.exit_status:
        raise RuntimeError(f"statistics failed: {dict(result.summary)} {[list(one.rows) for one in result.tables]}")
    return int(str(result.summary["partitions written"]))


def _change_some(place: Place, size: int) -> None:
    """Adds a file to each hundredth partition, without an event."""
    name = f"part-{time.monotonic_ns()}"
    for plan in place.catalog.tables(size):
        for number in range(0, plan.partitions, _PARTS):
            add_file(place.catalog, plan, number, name)


def _changed_statistics(spark: Any, place: Place, size: int) -> int:
    written = _statistics_written(spark, place, size, everything=False)
    changed = sum(len(range(0, plan.partitions, _PARTS)) for plan in place.catalog.tables(size))
    if written != changed:
        raise RuntimeError(f"statistics of {written} partitions written, and {changed} changed")
    return size


_PARTS = 100
"""A hundredth changes, and a hundredth is new."""


def _add_some(place: Place, size: int) -> None:
    for plan in place.catalog.tables(size):
        for number in _new(plan):
            add_file(place.catalog, plan, number, "part-0")


def _new(plan: TablePlan) -> range:
    return range(plan.partitions, plan.partitions + max(1, plan.partitions // _PARTS))


def _repair(spark: Any, place: Place, size: int) -> int:
    summary = _repaired(place, size, "add")
    new = sum(len(_new(plan)) for plan in place.catalog.tables(size))
    if (summary["added"], summary["partitions"]) != (new, size):
        raise RuntimeError(f"repair: {dict(summary)}")
    return size + new


def _repaired(place: Place, size: int, mode: str) -> Mapping[str, object]:
    tables = (place.catalog.pattern(size),)
    options = {"metastore": place.metastore, "database": place.database, "tables": tables, "mode": mode}
    return JOBS["repair"].run(None, options).summary


def _drop_some(place: Place, size: int) -> None:
    """Drops what was added, so that the next measures find the original catalog."""
    for plan in place.catalog.tables(size):
        for number in _new(plan):
            place.catalog.lake.delete(place.catalog.location(plan, number))
    _repaired(place, size, "drop")


MEASURES = (
    Measure("hms_catalog, from a server", "partitions", _catalog_from_server),
    Measure("hms_catalog, from the database", "partitions", _catalog_from_database),
    Measure("hms_events", "events", _events),
    Measure("history", "events", _history),
    Measure("files", "directories", _files, has_files=True),
    Measure("repair, 1 % new", "directories", _repair, _add_some, _drop_some, has_files=True),
    Measure("verify", "objects", _verify),
    # Last: what it writes changes what the others read.
    Measure("statistics", "partitions", _statistics, is_hive=True, has_files=True),
    Measure(
        *("statistics again, 1 % changed", "partitions", _changed_statistics, _change_some),
        is_hive=True,
        has_files=True,
    ),
)
