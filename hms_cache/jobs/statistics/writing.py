"""Writes statistics to the metastore in batches, through its API, so that every cache is updated."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, StructType
from thrift.Thrift import TException

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient, Metastores, OutcomeUnknownError
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.sources.fields import BOOLEAN, INTEGER, LONG, STRING, fields, required
from hms_cache.jobs.statistics.acid import Snapshot
from hms_cache.jobs.statistics.columns import StatisticsColumn, statistics_columns
from hms_cache.jobs.statistics.data_files import FigureLister, Figures, UnitFiles, reading_of
from hms_cache.jobs.statistics.parameters import not_answerable, spark_statistics
from hms_cache.jobs.statistics.recording import (
    CHANGED,
    Failures,
    Unit,
    counted,
    disclaimed,
    is_counted,
    is_disclaimed,
    is_planned_by,
    planned_by,
    record_partitions,
    record_table,
)
from hms_cache.jobs.statistics.rows import small_files
from hms_cache.jobs.statistics.table_level import StatisticsMerger
from hms_cache.jobs.statistics.totals import TotalsOfColumns
from hms_cache.jobs.statistics.transform import bounds_us_of_row, estimated, statistics_of_row
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    SetPartitionsStatsRequest,
    Table,
)
from hms_cache.values import frozen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_ATTEMPTS = 3

COLUMNS_OF_A_CALL = 4_000
"""Number of column statistics per call, if they belong to several partitions: up to some MB, mostly bit vectors."""

FILES_CHANGED = "its files changed while they were read; the next run reads them again"

OUTCOME = StructType(
    [
        # Its number, if several tables are processed together.
        *required(INTEGER, "table"),
        *required(LONG, "written", "rows"),
        # Null: the table itself, for a failure.
        *fields(STRING, "partition"),
        *fields(STRING, "failure"),
        # Nothing was read of the partition: it is left to Spark (`small_files`).
        *required(BOOLEAN, "is_left"),
        # An encoded `AggrStats` of everything that the task wrote, in a row of its own.
        *fields(BinaryType(), "together"),
        *fields(STRING, "totals"),
    ]
)
"""Result of a batch: numbers of partitions and rows written; or a partition that was not written, with the reason. The
last row of a task contains merged statistics of everything it wrote, and encoded `TotalsOfColumns`."""


@frozen
class Target:
    """The table whose statistics are written, and how. Serialized to Spark's workers."""

    metastore: Metastores
    table: TableName
    engine: str
    batch_partitions: int
    writers: int = 1
    """Number of parallel calls of one task."""

    snapshot: Snapshot | None = None
    """For a transactional table, the visible state of the transaction in which its statistics are written."""

    write_id: int | None = None
    """Write id under which they are stored."""

    last_pass: tuple[str, ...] = ()
    """Columns of the last pass over a table that needs several: a partition is recorded in that pass."""

    partitions: int = 0
    """Number of partitions of the table."""

    @property
    def valid_write_ids(self) -> str | None:
        """The write ids of the snapshot."""
        return None if self.snapshot is None else self.snapshot.write_ids

    def statistics(self, partition: str | None, columns: list[ColumnStatisticsObj]) -> ColumnStatistics:
        """The struct for a partition, or for the table."""
        description = ColumnStatisticsDesc(
            isTblLevel=partition is None,
            dbName=self.table.database,
            tableName=self.table.table,
            partName=partition,
            catName=self.table.catalog,
        )
        return ColumnStatistics(statsDesc=description, statsObj=columns, engine=self.engine)

    def write(self, client: MetastoreClient, statistics: Sequence[ColumnStatistics]) -> None:
        """Writes one batch, replacing existing statistics; retried after a broken connection, because writing it twice
        is harmless.

        Raises the errors of the metastore.
        """
        request = SetPartitionsStatsRequest(
            colStats=list(statistics),
            needMerge=False,
            writeId=-1 if self.write_id is None else self.write_id,
            validWriteIdList=self.valid_write_ids,
            engine=self.engine,
        )
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                client.call("set_aggr_stats_for", request)
                return
            except OutcomeUnknownError:
                if attempt == _ATTEMPTS:
                    raise


def written(statistics: DataFrame, target: Target, columns: Sequence[StatisticsColumn], table: Table) -> DataFrame:
    """Writes the rows of `transform` for these columns when it is evaluated (`OUTCOME`). Each row has a ``name`` (null:
    the `table`), its ``location``, the ``files`` found before the rows were read, and ``sample_bytes`` of ``all_bytes``
    if not everything was read."""
    size = _partitions_of_a_call(target, columns)

    def write_rows(arrow_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _Connections() as connections:
            write = _writer(target, columns, table, connections)
            yield from write((rows, []) for rows in _portions(arrow_batches, size))

    return statistics.mapInArrow(write_rows, OUTCOME)


@frozen
class SmallUnits:
    """Units of a table with small files, each processed in one task, and where their statistics are written."""

    target: Target
    columns: Sequence[StatisticsColumn]
    table: Table
    units: Sequence[tuple[str | None, UnitFiles]]

    @property
    def slices(self) -> Iterator[Sequence[tuple[str | None, UnitFiles]]]:
        """Units that are read and written together."""
        size = _partitions_of_a_call(self.target, self.columns)
        return batches(self.units, size)


def read_and_written(spark: SparkSession, tables: Sequence[SmallUnits], tasks: int) -> DataFrame:
    """Reads units with small files and writes their statistics when it is evaluated (`OUTCOME`), in at most `tasks`
    tasks."""
    # Units are serialized in the slices.
    known = [replace(one, units=()) for one in tables]

    def read_and_write(arrow_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in arrow_batches for row in batch.to_pylist())
        with _Connections() as connections, small_files.Files() as files:
            for number, of_table in itertools.groupby(rows, key=lambda row: row["table"]):
                one = known[number]
                read = small_files.reader(files, one.table, one.columns)
                write = _writer(one.target, one.columns, one.table, connections, number)
                yield from write(read(row["units"]) for row in of_table)

    slices = [(number, some) for number, one in enumerate(tables) for some in one.slices]
    return small_files.slices(spark, slices, tasks).mapInArrow(read_and_write, OUTCOME)


def _partitions_of_a_call(target: Target, columns: Sequence[StatisticsColumn]) -> int:
    return max(1, min(target.batch_partitions, COLUMNS_OF_A_CALL // max(1, len(columns))))


_Portion = tuple[list[dict[str, Any]], list[str | None]]
"""Rows to write in one call, and units that are left to Spark."""


def _writer(
    target: Target, columns: Sequence[StatisticsColumn], table: Table, connections: _Connections, number: int = 0
) -> Callable[[Iterator[_Portion]], Iterator[pa.RecordBatch]]:
    """Returns a function that writes portions of rows of a table; `number` identifies the table in the results."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(OUTCOME)

    def outcome_batch(outcomes: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        return pyarrow.RecordBatch.from_pylist([{"table": number, **one} for one in outcomes], schema)

    def write(portions: Iterator[_Portion]) -> Iterator[pa.RecordBatch]:
        merger = StatisticsMerger([column.name for column in columns])

        def merge_written(done: Sequence[_Written]) -> None:
            for row, one in done:
                if one.statsDesc.partName is not None:
                    merger.add(one.statsDesc.partName, one.statsObj, row["rows"], bounds_us_of_row(row, columns))

        with _Calls(target, columns, table, connections) as calls:
            for rows, left in portions:
                if left:
                    yield outcome_batch([_outcome(partition=one, is_left=True) for one in left])
                if not rows:
                    continue
                for outcomes, done in calls.add(rows):
                    merge_written(done)
                    yield outcome_batch(outcomes)
            for outcomes, done in calls.rest():
                merge_written(done)
                yield outcome_batch(outcomes)
        yield outcome_batch([_outcome(together=merger.encoded(), totals=merger.totals.encoded())])

    return write


def _portions(arrow_batches: Iterator[pa.RecordBatch], size: int) -> Iterator[list[dict[str, Any]]]:
    """The rows in portions of `size`, independent of the batches."""
    held: list[dict[str, Any]] = []
    for batch in arrow_batches:
        for start in range(0, batch.num_rows, size):
            held += batch.slice(start, size).to_pylist()
            while len(held) >= size:
                yield held[:size]
                held = held[size:]
    if held:
        yield held


_Written = tuple[dict[str, Any], ColumnStatistics]
"""A row of `transform`, and its statistics."""

_Answer = tuple[list[dict[str, Any]], list[_Written]]
"""The results of a batch, and the rows that were written."""


class _Connections:
    """Connections of one task, reused for its tables; as many as are in use at the same time."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._free: SimpleQueue[tuple[MetastoreClient, FigureLister]] = SimpleQueue()

    def __enter__(self) -> _Connections:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    @contextmanager
    def one(self, metastore: Metastores) -> Iterator[tuple[MetastoreClient, FigureLister]]:
        """A free connection, or a new one."""
        try:
            found = self._free.get_nowait()
        except Empty:
            found = self._stack.enter_context(MetastoreClient(metastore, fills_cache=False)), FigureLister()
        try:
            yield found
        finally:
            self._free.put(found)


class _Calls:
    """Writes batches while the next ones are read, with as many parallel calls as the target specifies, each on a
    connection of its own. Results are returned in the order of the batches; at most two batches per thread are held in
    memory."""

    def __init__(
        self, target: Target, columns: Sequence[StatisticsColumn], table: Table, connections: _Connections
    ) -> None:
        self._target = target
        self._columns = columns
        self._table = table
        self._connections = connections
        self._waiting: deque[Future[_Answer]] = deque()

    def __enter__(self) -> _Calls:
        self._pool = ThreadPoolExecutor(self._target.writers, "statistics")
        return self

    def __exit__(self, *failure: object) -> None:
        # Closes connections when no calls are running.
        self._pool.shutdown(cancel_futures=True)

    def add(self, rows: list[dict[str, Any]]) -> Iterator[_Answer]:
        """Adds a batch; yields results of earlier ones."""
        self._waiting.append(self._pool.submit(self._write, rows))
        while self._waiting and (len(self._waiting) > 2 * self._target.writers or self._waiting[0].done()):
            yield self._waiting.popleft().result()

    def rest(self) -> Iterator[_Answer]:
        """The results of the remaining batches."""
        while self._waiting:
            yield self._waiting.popleft().result()

    def _write(self, rows: list[dict[str, Any]]) -> _Answer:
        with self._connections.one(self._target.metastore) as (client, lister):
            unchanged, outcomes = _unchanged(rows, lister, self._target.snapshot, self._target.partitions)
            if len(unchanged) < len(rows) and self._is_one_of_several:
                # Those already written in an earlier pass.
                others = {one["partition"] for one in outcomes if one["failure"] == FILES_CHANGED}
                self._disclaim(client, [row for row in rows if row["name"] in others])
            if not unchanged:
                return outcomes, []
            unchanged = [_of_all_files(row) for row in unchanged]
            statistics = [
                self._target.statistics(row["name"], statistics_of_row(row, self._columns)) for row in unchanged
            ]
            failures, done = self._send(client, unchanged, statistics)
            late = self._overtaken(client, lister, [row for row, _ in done])
            done = [(row, one) for row, one in done if row["name"] not in late]
            summary = _outcome(written=len(done), rows=sum(row["rows"] for row, _ in done))
            more = [_outcome(partition=name, failure=reason) for name, reason in (failures | late).items()]
            return [*outcomes, summary, *more], done

    @property
    def _is_one_of_several(self) -> bool:
        """Whether the table has more columns than this pass."""
        return len(statistics_columns(self._table)) > len(self._columns)

    def _send(
        self, client: MetastoreClient, rows: Sequence[dict[str, Any]], statistics: Sequence[ColumnStatistics]
    ) -> tuple[Failures, list[_Written]]:
        """Sends a batch; a refused batch is halved until the refused units are isolated."""
        is_written = False
        try:
            self._target.write(client, statistics)
            is_written = True
            failures = self._record(client, rows, statistics)
        except TException as error:
            if len(rows) == 1:
                disclaim_error = self._disclaim(client, rows) if is_written else None
                return {rows[0]["name"]: "; ".join(filter(None, (reason_of(error), disclaim_error)))}, []
            half = len(rows) // 2
            failures, done = self._send(client, rows[:half], statistics[:half])
            others, more = self._send(client, rows[half:], statistics[half:])
            return failures | others, done + more
        # Written for another partition or table with this name, or for one that was altered.
        disclaim_error = self._disclaim(client, [row for row in rows if row["name"] in failures])
        failures = {name: "; ".join(filter(None, (reason, disclaim_error))) for name, reason in failures.items()}
        return failures, [(row, one) for row, one in zip(rows, statistics, strict=True) if row["name"] not in failures]

    def _overtaken(self, client: MetastoreClient, lister: FigureLister, rows: list[dict[str, Any]]) -> Failures:
        """The units whose files were changed by others between listing and recording; their claims are withdrawn.
        Writers that change files later also update the metastore later."""
        if self._target.snapshot is not None or not rows:
            return {}
        _, outcomes = _unchanged(rows, lister, None, self._target.partitions)
        # A failed listing decides nothing; the one before it matched.
        late = {one["partition"]: FILES_CHANGED for one in outcomes if one["failure"] == FILES_CHANGED}
        disclaim_error = self._disclaim(client, [row for row in rows if row["name"] in late])
        return {name: "; ".join(filter(None, (reason, disclaim_error))) for name, reason in late.items()}

    def _disclaim(self, client: MetastoreClient, rows: Sequence[dict[str, Any]]) -> str | None:
        """Withdraws claims of units whose statistics were written but do not match their files. Returns None, or the
        reason why this failed."""
        if not rows:
            return None
        target, table = self._target, self._table
        columns = frozenset(column.name for column in statistics_columns(table))
        change, is_done = partial(disclaimed, columns), partial(is_disclaimed, columns)
        units = [Unit(row["name"], row["rows"], None, _figures_of(row), ()) for row in rows]
        whose = (target.write_id, target.valid_write_ids)
        try:
            if units[0].name is not None:
                record_partitions(client, table, units, *whose, change, is_done)
                return None
            [unit] = units
            for _ in range(_ATTEMPTS):
                reason = record_table(client, table, partial(change, unit), partial(is_done, unit), *whose, is_any=True)
                if reason != CHANGED:
                    return None
        except TException as error:
            reason = reason_of(error)
        return f"what is claimed of it could not be taken back: {reason}"

    def _record(
        self, client: MetastoreClient, rows: Sequence[dict[str, Any]], statistics: Sequence[ColumnStatistics]
    ) -> Failures:
        """After the last pass: records counts and files next to the statistics of all columns. After other passes:
        withdraws claims that would make queries wrong."""
        target, table = self._target, self._table
        units, reading = [], reading_of(table)
        for row, one in zip(rows, statistics, strict=True):
            sample = None if row["sample_bytes"] is None else f"{row['sample_bytes']}:{row['all_bytes']}"
            units.append(
                Unit(row["name"], row["rows"], row["location"], _figures_of(row), one.statsObj, sample, reading)
            )
        if {one.colName for one in statistics[0].statsObj} != set(target.last_pass):
            return self._withdraw(client, [unit for unit in units if not_answerable(unit.columns)])
        if units[0].name is not None:
            return record_partitions(client, table, units, target.write_id, target.valid_write_ids)
        [unit] = units
        totals = TotalsOfColumns()
        totals.add(unit.columns, unit.rows, bounds_us_of_row(rows[0], self._columns))

        def change(parameters: Mapping[str, str]) -> dict[str, str]:
            rows_of_all = None if unit.sample is not None else unit.rows
            return spark_statistics(counted(unit, parameters), rows_of_all, unit.figures.bytes, unit.columns, totals)

        reason = record_table(client, table, change, partial(is_counted, unit), target.write_id, target.valid_write_ids)
        return {} if reason is None else {None: reason}

    def _withdraw(self, client: MetastoreClient, units: Sequence[Unit]) -> Failures:
        if not units:
            return {}
        table, whose = self._table, (self._target.write_id, self._target.valid_write_ids)
        if units[0].name is not None:
            return record_partitions(client, table, units, *whose, planned_by, is_planned_by)
        [unit] = units
        reason = record_table(client, table, partial(planned_by, unit), partial(is_planned_by, unit), *whose)
        return {} if reason is None else {None: reason}


def _figures_of(row: dict[str, Any]) -> Figures:
    figures = Figures.read(row["files"])
    assert figures is not None
    return figures


def _of_all_files(row: dict[str, Any]) -> dict[str, Any]:
    return row if row["sample_bytes"] is None else estimated(row, row["all_bytes"] / row["sample_bytes"])


def _outcome(
    *,
    written: int = 0,
    rows: int = 0,
    partition: str | None = None,
    failure: str | None = None,
    is_left: bool = False,
    together: bytes | None = None,
    totals: str | None = None,
) -> dict[str, Any]:
    """A row of `OUTCOME`, without its table."""
    return {
        "written": written,
        "rows": rows,
        "partition": partition,
        "failure": failure,
        "is_left": is_left,
        "together": together,
        "totals": totals,
    }


def _unchanged(
    rows: list[dict[str, Any]], lister: FigureLister, snapshot: Snapshot | None = None, partitions: int = 0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows whose files are still those that were read, and the results for the others."""
    kept, outcomes = [], []
    known: Mapping[str, Figures] = {}
    if snapshot is None:
        known = lister.of_many([row["location"] for row in rows], partitions)
    for row in rows:
        figures: Figures | None
        problem: str | None
        if row["location"] in known:
            figures, problem = known[row["location"]], None
        elif snapshot is None:
            figures, problem = lister.figures(row["location"])
        else:
            figures, problem, _ = lister.seen(row["location"], snapshot)
        if figures is not None and str(figures) == row["files"]:
            kept.append(row)
        else:
            outcomes.append(_outcome(partition=row["name"], failure=problem or FILES_CHANGED))
    return kept, outcomes
