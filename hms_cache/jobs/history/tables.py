"""The table of a history: directories of Parquet files, or an Iceberg table.

Both store each batch exactly once, despite failures. The Parquet files of a batch have directories of their own, which
a repeated batch replaces. Iceberg commits a batch completely or not at all, and events arrive in the order of their
ids; a repeated batch omits the events that the table already has.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.history.compaction import OPEN_DAY_FILES, Compacted, compact, delete_days, journals, recover
from hms_cache.jobs.history.files import Files
from hms_cache.jobs.history.transform import HISTORY_TABLE

CHECKPOINT = "_checkpoint"
"""Next to the directories of days; readers of the table ignore names that begin with an underscore."""


class HistoryTable(Protocol):
    """Stores a history."""

    checkpoint: str
    """Directory of Spark's checkpoint."""

    def prepare(self) -> None:
        """Called before a run: finishes interrupted work of an earlier one, and adds missing columns."""
        ...

    def read(self) -> DataFrame:
        """Rows of `HISTORY_TABLE`; none if the table does not exist yet. Columns that earlier releases did not write
        are null."""
        ...

    def add(self, batch: DataFrame) -> None:
        """Stores a batch: rows of `HISTORY_TABLE`."""
        ...

    def has_checkpoint(self) -> bool:
        """Whether a run can continue from a checkpoint."""
        ...

    def merge(self, target_bytes: int) -> Compacted:
        """Merges the files of past days."""
        ...

    def delete_days(self, keep_days: int) -> int:
        """Deletes all days except the newest and those less than `keep_days` older. Returns the number of deleted
        days."""
        ...


def history_table(spark: SparkSession, output: str, file_format: str, checkpoint: str | None = None) -> HistoryTable:
    """The table at this location. Raises ConfigurationError if a part is missing."""
    if file_format != "iceberg":
        return ParquetHistory(spark, output)
    return IcebergHistory(spark, output, checkpoint or "")


class ParquetHistory:
    """Parquet files in a directory, by day and batch."""

    def __init__(self, spark: SparkSession, output: str) -> None:
        self._spark = spark
        self._output = output.rstrip("/")
        self._files = Files(spark, self._output)
        self.checkpoint = f"{self._output}/{CHECKPOINT}"

    def prepare(self) -> None:
        recover(self._files)

    def has_checkpoint(self) -> bool:
        return self._files.exists(CHECKPOINT)

    def read(self) -> DataFrame:
        """Reads the merged files of a day that is being merged."""
        spark, files, output = self._spark, self._files, self._output
        if not any(name.startswith("day=") for name in files.directories()):
            stored = spark.createDataFrame([], HISTORY_TABLE)
        else:
            stored = spark.read.schema(HISTORY_TABLE).parquet(output)
        for journal in journals(files):
            places = [f"{journal.staging}/{name}" for name in journal.new]
            places = [place if files.exists(place) else journal.target(place.rpartition("/")[2]) for place in places]
            merged = spark.read.schema(HISTORY_TABLE).parquet(*(f"{output}/{place}" for place in places))
            merged = merged.withColumns(
                {"day": F.lit(journal.day).cast("date"), "batch": F.lit(journal.batch).cast("long")}
            )
            stored = stored.where(~F.col("day").eqNullSafe(F.lit(journal.day).cast("date"))).unionByName(merged)
        return stored

    def add(self, batch: DataFrame) -> None:
        """Writes one file per day, in the order of events."""
        (
            batch.repartition("day")
            .sortWithinPartitions("event_id")
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy("day", "batch")
            .parquet(self._output)
        )

    def merge(self, target_bytes: int) -> Compacted:
        return compact(self._spark, self._files, target_bytes)

    def delete_days(self, keep_days: int) -> int:
        return delete_days(self._files, keep_days)


class IcebergHistory:
    """A table in a catalog of the session, by day. Does not need Iceberg's SQL extensions."""

    def __init__(self, spark: SparkSession, output: str, checkpoint: str) -> None:
        self._spark = spark
        self._table = output
        self.checkpoint = checkpoint

    def prepare(self) -> None:
        if not self.checkpoint:
            raise ConfigurationError("a history in Iceberg needs --checkpoint, a directory that Spark can write")
        if not self._exists():
            empty = self._spark.createDataFrame([], HISTORY_TABLE)
            empty.writeTo(self._table).using("iceberg").partitionedBy(F.col("day")).create()
        has = set(self._spark.table(self._table).columns)
        for field in HISTORY_TABLE.fields:
            if field.name not in has:
                kind = field.dataType.simpleString()
                self._spark.sql(f"ALTER TABLE {self._table} ADD COLUMN `{field.name}` {kind}")

    def has_checkpoint(self) -> bool:
        files = Files(self._spark, self.checkpoint)
        return files.exists()

    def read(self) -> DataFrame:
        if not self._exists():
            return self._spark.createDataFrame([], HISTORY_TABLE)
        self._spark.catalog.refreshTable(self._table)
        stored = self._spark.table(self._table)
        missing = {
            field.name: F.lit(None).cast(field.dataType)
            for field in HISTORY_TABLE.fields
            if field.name not in stored.columns
        }
        return (
            stored.withColumns(missing).select(HISTORY_TABLE.names) if missing else stored.select(HISTORY_TABLE.names)
        )

    def add(self, batch: DataFrame) -> None:
        last = self.read().agg(F.max("event_id")).collect()[0][0]
        new = batch if last is None else batch.where(F.col("event_id") > last)
        columns = self._spark.table(self._table).columns
        new.select(columns).repartition("day").sortWithinPartitions("event_id").writeTo(self._table).append()

    def merge(self, target_bytes: int) -> Compacted:
        """Replaces the files of each day by merged ones with the same rows, in one commit."""
        done = Compacted()
        files = self._spark.table(f"{self._table}.files").where("content = 0 AND partition.day IS NOT NULL")
        days = files.groupBy("partition.day").agg(F.count("*"), F.sum("file_size_in_bytes")).orderBy("day").collect()
        for number, (day, count, size) in enumerate(days, start=1):
            target_files = max(1, -(-size // target_bytes))
            if count <= target_files or (number == len(days) and count < OPEN_DAY_FILES):
                continue
            is_day = F.col("day") == F.lit(day)
            rows = self._spark.table(self._table).where(is_day)
            rows = rows.repartitionByRange(target_files, "event_id") if target_files > 1 else rows.repartition(1)
            rows.sortWithinPartitions("event_id").writeTo(self._table).overwrite(is_day)
            done.days += 1
            done.files_before += count
            done.files_after += target_files
        return done

    def delete_days(self, keep_days: int) -> int:
        days: list[date] = [
            row[0] for row in self.read().select("day").where("day IS NOT NULL").distinct().orderBy("day").collect()
        ]
        old = [day for day in days if day <= days[-1] - timedelta(days=keep_days)]
        if old:
            self._spark.sql(f"DELETE FROM {self._table} WHERE day <= DATE '{old[-1].isoformat()}'")
        return len(old)

    def _exists(self) -> bool:
        return bool(self._spark.catalog.tableExists(self._table))


def read_history(spark: SparkSession, output: str, file_format: str = "parquet") -> DataFrame:
    """The history in this directory, or with `file_format` ``iceberg`` in this table: rows of `HISTORY_TABLE`."""
    return history_table(spark, output, file_format).read()
