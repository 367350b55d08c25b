"""Statistics into the metastore, in batches through its API, so that every cache follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType
from thrift.Thrift import TException

from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.statistics.data_files import RECORDED, FigureLister, Figures
from hms_cache.jobs.statistics.parameters import basic_statistics, spark_statistics
from hms_cache.jobs.statistics.recording import Failures, Unit, record_partitions, record_table
from hms_cache.jobs.statistics.table_level import Together
from hms_cache.jobs.statistics.transform import column_values
from hms_cache.metadata.statistics_values import statistics_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    SetPartitionsStatsRequest,
    Table,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_ATTEMPTS = 3

FILES_CHANGED = "its files changed while they were read; the next run reads them again"

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
    last_pass: tuple[str, ...] = ()
    """Columns of the last reading of a table that takes several: then a partition is recorded."""

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


def written(statistics: DataFrame, target: Target, columns: Sequence[str], table: Table) -> DataFrame:
    """Writes rows of `STATISTICS`, of these columns, when it is evaluated (`OUTCOME`). Each has a ``name`` (null: the
    `table`), its ``location`` and the ``files`` that were there before the rows were read."""
    chosen = statistics.select("name", "rows", "columns", "location", "files")
    return chosen.mapInArrow(_writer(target, columns, table), OUTCOME)


def _writer(
    target: Target, columns: Sequence[str], table: Table
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(OUTCOME)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        together = Together(columns)
        lister = FigureLister()
        with MetastoreClient(target.metastore) as client:
            for batch in batches:
                for start in range(0, batch.num_rows, target.batch_partitions):
                    rows = batch.slice(start, target.batch_partitions).to_pylist()
                    unchanged, outcomes = _unchanged(rows, lister)
                    if unchanged:
                        outcomes += _write(client, target, unchanged, together, table)
                    yield pyarrow.RecordBatch.from_pylist(outcomes, schema)
        last = _outcome(together=together.encoded())
        yield pyarrow.RecordBatch.from_pylist([last], schema)

    return write


def _outcome(**figures: Any) -> dict[str, Any]:
    return {"written": 0, "rows": 0, "partition": None, "failure": None, "together": None} | figures


def _unchanged(rows: list[dict[str, Any]], lister: FigureLister) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Those whose files are still the ones that were read; and what to tell of the others."""
    kept, outcomes = [], []
    for row in rows:
        figures, problem = lister.figures(row["location"])
        if figures is not None and str(figures) == row["files"]:
            kept.append(row)
        else:
            outcomes.append(_outcome(partition=row["name"], failure=problem or FILES_CHANGED))
    return kept, outcomes


def _write(
    client: MetastoreClient, target: Target, rows: list[dict[str, Any]], together: Together, table: Table
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
        failures = _record(client, target, rows, statistics, table)
    except TException as error:
        if len(rows) == 1:
            return [_outcome(partition=rows[0]["name"], failure=reason_of(error))]
        half = len(rows) // 2
        first = _write(client, target, rows[:half], together, table)
        return first + _write(client, target, rows[half:], together, table)
    done = [(row, one) for row, one in zip(rows, statistics, strict=True) if row["name"] not in failures]
    for row, one in done:
        if row["name"] is not None:
            together.add(row["name"], one.statsObj)
    outcomes = [_outcome(partition=name, failure=reason) for name, reason in failures.items()]
    return [_outcome(written=len(done), rows=sum(row["rows"] for row, _ in done)), *outcomes]


def _record(
    client: MetastoreClient,
    target: Target,
    rows: list[dict[str, Any]],
    statistics: Sequence[ColumnStatistics],
    table: Table,
) -> Failures:
    """After the last pass: what was counted, and of which files, stands beside statistics of all columns."""
    if {one.colName for one in statistics[0].statsObj} != set(target.last_pass):
        return {}
    units = []
    for row, one in zip(rows, statistics, strict=True):
        figures = Figures.read(row["files"])
        assert figures is not None
        units.append(Unit(row["name"], row["rows"], row["location"], figures, one.statsObj))
    if units[0].name is not None:
        return record_partitions(client, table, units)
    [unit] = units

    def change(parameters: Mapping[str, str]) -> dict[str, str]:
        basic = basic_statistics(dict(parameters), unit.rows, unit.figures, unit.columns)
        return spark_statistics(basic, unit.rows, unit.figures.bytes, unit.columns)

    reason = record_table(client, table, change, lambda found: found.get(RECORDED) == str(unit.figures))
    return {} if reason is None else {None: reason}
