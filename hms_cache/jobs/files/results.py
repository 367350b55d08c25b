"""Results of the job's runs as tables: Parquet files below a directory, or Iceberg.

``directories`` holds rows of `DIRECTORIES`: every directory for a full run, otherwise those that differ from the
previous run. ``tables`` holds the totals of each table, ``runs`` a row for each completed run; it is written last, so
that results of a killed run are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from hms_cache.jobs.files.directories import UNREADABLE
from hms_cache.jobs.files.transform import DIRECTORIES
from hms_cache.jobs.sources.fields import LONG, STRING, TIME, required
from hms_cache.jobs.sources.scope import TABLE_COLUMNS, TableScope
from hms_cache.metadata.names import DEFAULT_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEW, CHANGED, SAME, GONE = "new", "changed", "same", "gone"
"""Values of ``change``: compared with the previous run."""

_RUN, _CHANGE = StructField("run", StringType(), False), StructField("change", StringType(), False)

KEPT_DIRECTORIES = StructType([*DIRECTORIES.fields, _CHANGE, _RUN])
RUNS = StructType(
    [
        # The full run that this one builds on; a full run itself.
        *required(STRING, "base"),
        *required(TIME, "started_at", "ended_at"),
        *required(STRING, "scope"),
        *required(LONG, "tables", "directories", "written", "differences"),
        _RUN,
    ]
)

_KEY = [*TABLE_COLUMNS, "kept_as", "location"]
"""Key of a directory. Two partitions may share one, so the partition is part of it."""


class Results:
    """The tables of one output."""

    def __init__(self, spark: SparkSession, output: str, file_format: str) -> None:
        """:param output: a directory for ``parquet``; a namespace of a Spark catalog, such as ``lake.files``, for
        ``iceberg``."""
        self._spark = spark
        self._output = output.rstrip("/")
        self._format = file_format

    def runs(self) -> list[Any]:
        """The rows of completed runs, oldest first."""
        found = self._read("runs", RUNS)
        return [] if found is None else list(found.orderBy("run").collect())

    def directories(self, runs: Sequence[str]) -> DataFrame:
        """The rows written by these runs."""
        found = self._read("directories", KEPT_DIRECTORIES)
        if found is None or not runs:
            return self._spark.createDataFrame([], KEPT_DIRECTORIES)
        # Earlier releases only wrote the default catalog.
        catalog = f.coalesce(found["catalog"], f.lit(DEFAULT_CATALOG))
        return found.where(found["run"].isin(list(runs))).withColumn("catalog", catalog)

    def latest(self) -> DataFrame:
        """The state of each directory after the last completed run: rows of `DIRECTORIES` with the run that wrote
        them."""
        runs = self.runs()
        base = runs[-1]["base"] if runs else ""
        written = _keyed(self.directories([row["run"] for row in runs if row["run"] >= base]))
        newest = f.row_number().over(Window.partitionBy(*_KEY).orderBy(f.desc("run")))
        kept = written.withColumn("newest", newest).where(f.col("newest") == 1)
        return kept.where(kept["change"] != GONE).drop("newest", "kept_as", "change")

    def next_run(self, runs: Sequence[Any], now: datetime) -> str:
        """An id greater than all existing ones."""
        name = _run_name(now)
        while runs and name <= runs[-1]["run"]:
            now += timedelta(microseconds=1)
            name = max(_run_name(now), f"{runs[-1]['run']}+")
        return name

    def add(
        self,
        found: DataFrame,
        tables: DataFrame,
        *,
        scope: TableScope,
        started_at: datetime,
        counts: tuple[int, int, int],
        full_every: int,
    ) -> tuple[str, int]:
        """Stores the results of a run. Returns its id and the number of directories written.

        :param counts: numbers of tables, of directories, of differences.
        """
        runs = self.runs()
        run = self.next_run(runs, started_at)
        base = runs[-1]["base"] if runs else run
        if sum(1 for row in runs if row["base"] == base) >= full_every:
            base = run
        changes = self._changes(found, scope, keep_same=base == run).withColumn("run", f.lit(run)).cache()
        written = changes.count()
        self._append("directories", changes.select(*KEPT_DIRECTORIES.names))
        self._append("tables", tables.withColumn("run", f.lit(run)))
        ended_at = datetime.now(UTC)
        row = (base, started_at, ended_at, ",".join(scope.patterns) or "*", *counts[:2], written, counts[2], run)
        self._append("runs", self._spark.createDataFrame([row], RUNS).coalesce(1))
        changes.unpersist()
        return run, written

    def _changes(self, found: DataFrame, scope: TableScope, *, keep_same: bool) -> DataFrame:
        """The rows to write, each with its ``change``."""
        names = DIRECTORIES.names
        before = _keyed(self.latest())
        before = before.select(
            *_KEY, f.xxhash64(*names).alias("hash_before"), *(f.col(n).alias(f"b_{n}") for n in names)
        )
        now = _keyed(found).withColumn("hash_now", f.xxhash64(*names))
        both = now.join(before, _KEY, "full")
        gone = both["hash_now"].isNull()
        change = (
            f.when(gone, GONE)
            .when(both["hash_before"].isNull(), NEW)
            .when(both["hash_before"] != both["hash_now"], CHANGED)
            .otherwise(SAME)
        )
        key_names = {*TABLE_COLUMNS, "location"}
        columns = [
            f.col(name) if name in key_names else f.when(gone, f.col(f"b_{name}")).otherwise(f.col(name)).alias(name)
            for name in names
        ]
        rows = both.select(*columns, change.alias("change"))
        # Deleted directories are unknown for a table that could not be listed completely or was not in scope.
        unknown = found.where(found["kind"] == UNREADABLE).select(*TABLE_COLUMNS).distinct()
        gone_tables = rows.where(rows["change"] == GONE).select(*TABLE_COLUMNS).distinct()
        admitted = [
            tuple(row)
            for row in gone_tables.join(unknown, list(TABLE_COLUMNS), "left_anti").collect()
            if scope.admits(*row)
        ]
        owner = StructType([StructField(name, StringType()) for name in TABLE_COLUMNS])
        really = rows.where(rows["change"] == GONE).join(
            f.broadcast(self._spark.createDataFrame(admitted, owner)), list(TABLE_COLUMNS), "left_semi"
        )
        unwritten = (GONE,) if keep_same else (GONE, SAME)
        kept = rows.where(~rows["change"].isin(*unwritten))
        # A full run is read without its predecessors: deleted directories are simply absent.
        return kept if keep_same else kept.unionByName(really)

    def _read(self, name: str, schema: StructType) -> DataFrame | None:
        if self._format == "iceberg":
            table = f"{self._output}.{name}"
            if not self._spark.catalog.tableExists(table):
                return None
            found = self._spark.table(table)
            return found.withColumns(
                {field.name: f.lit(None).cast(field.dataType) for field in schema if field.name not in found.columns}
            )
        path = f"{self._output}/{name}"
        return self._spark.read.schema(schema).parquet(path) if _exists(self._spark, path) else None

    def _append(self, name: str, rows: DataFrame) -> None:
        if self._format != "iceberg":
            rows.write.mode("append").partitionBy("run").parquet(f"{self._output}/{name}")
            return
        table = f"{self._output}.{name}"
        if self._spark.catalog.tableExists(table):
            has = set(self._spark.table(table).columns)
            for field in rows.schema.fields:
                if field.name not in has:  # the table was created by an earlier release
                    kind = field.dataType.simpleString()
                    self._spark.sql(f"ALTER TABLE {table} ADD COLUMN `{field.name}` {kind}")
            rows.writeTo(table).append()
        else:
            rows.writeTo(table).using("iceberg").partitionedBy(f.col("run")).create()


def latest(spark: SparkSession, output: str, file_format: str = "parquet") -> DataFrame:
    """The state of each directory after the last completed run."""
    return Results(spark, output, file_format).latest()


def _keyed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("kept_as", f.coalesce(rows["partition"], f.lit("")))


def _run_name(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%S.%f}Z"


def _exists(spark: SparkSession, path: str) -> bool:
    jvm: Any = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))
