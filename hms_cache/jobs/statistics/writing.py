"""Statistics into the metastore, in batches through its API, so that every cache follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType
from thrift.Thrift import TException

from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.jobs.statistics.table_level import Together
from hms_cache.jobs.statistics.transform import column_values
from hms_cache.metadata.statistics_values import statistics_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    SetPartitionsStatsRequest,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_ATTEMPTS = 3

OUTCOME = StructType(
    [
        StructField("written", LongType(), False),
        StructField("rows", LongType(), False),
        # Null: of the table itself, where a failure is told.
        StructField("partition", StringType()),
        StructField("failure", StringType()),
        # An encoded `AggrStats` of all that the task wrote, in a row of its own.
        StructField("together", BinaryType()),
    ]
)
"""What became of a batch: so many partitions written, of so many rows; or a partition that was not, and why. The last
row of a task has what it wrote, together."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whose statistics are written, and how. Travels to Spark's workers."""

    metastore: str
    database: str
    table: str
    engine: str
    batch_partitions: int

    def statistics(self, partition: str | None, columns: list[ColumnStatisticsObj]) -> ColumnStatistics:
        """The struct of a partition, or of the table."""
        description = ColumnStatisticsDesc(
            isTblLevel=partition is None, dbName=self.database, tableName=self.table, partName=partition
        )
        return ColumnStatistics(statsDesc=description, statsObj=columns, engine=self.engine)

    def write(self, client: MetastoreClient, statistics: Sequence[ColumnStatistics]) -> None:
        """One batch, replacing what there was; sent again when a connection broke, since it may be written twice.

        Raises what the metastore says.
        """
        request = SetPartitionsStatsRequest(colStats=list(statistics), needMerge=False, engine=self.engine)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                client.call("set_aggr_stats_for", request)
                return
            except OutcomeUnknownError:
                if attempt == _ATTEMPTS:
                    raise


def written(statistics: DataFrame, target: Target, columns: Sequence[str]) -> DataFrame:
    """Writes rows of `STATISTICS`, of these columns, that have a ``name`` each (null: the table) when it is evaluated
    (`OUTCOME`)."""
    return statistics.select("name", "rows", "columns").mapInArrow(_writer(target, columns), OUTCOME)


def _writer(target: Target, columns: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(OUTCOME)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        together = Together(columns)
        with MetastoreClient(target.metastore) as client:
            for batch in batches:
                for start in range(0, batch.num_rows, target.batch_partitions):
                    rows = batch.slice(start, target.batch_partitions).to_pylist()
                    yield pyarrow.RecordBatch.from_pylist(_write(client, target, rows, together), schema)
        last = _outcome(together=together.encoded())
        yield pyarrow.RecordBatch.from_pylist([last], schema)

    return write


def _outcome(**figures: Any) -> dict[str, Any]:
    return {"written": 0, "rows": 0, "partition": None, "failure": None, "together": None} | figures


def _write(
    client: MetastoreClient, target: Target, rows: list[dict[str, Any]], together: Together
) -> list[dict[str, Any]]:
    """A batch that the metastore refuses is halved until what it refuses stands alone."""
    statistics = [
        target.statistics(
            row["name"],
            [statistics_of(one["column"], one["type"], column_values(one)) for one in row["columns"]],
        )
        for row in rows
    ]
    try:
        target.write(client, statistics)
    except TException as error:
        if len(rows) == 1:
            reason = getattr(error, "message", None) or str(error)
            return [_outcome(partition=rows[0]["name"], failure=f"{reason}")]
        half = len(rows) // 2
        return _write(client, target, rows[:half], together) + _write(client, target, rows[half:], together)
    for row, one in zip(rows, statistics, strict=True):
        if row["name"] is not None:
            together.add(row["name"], one.statsObj)
    return [_outcome(written=len(rows), rows=sum(row["rows"] for row in rows))]
