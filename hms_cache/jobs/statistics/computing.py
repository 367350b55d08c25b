"""Computes statistics for the chosen units of a table: reads, computes, writes and merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hms_cache.client import for_tasks
from hms_cache.jobs.frame import JobRun
from hms_cache.jobs.statistics import table_level
from hms_cache.jobs.statistics.columns import StatisticsColumn, passes
from hms_cache.jobs.statistics.plan import TableWork
from hms_cache.jobs.statistics.reading import PLACE, PartitionBatch, partition_numbers, portions, rows_of
from hms_cache.jobs.statistics.rows.file_index import reads_files
from hms_cache.jobs.statistics.rows.listed_files import OtherFiles
from hms_cache.jobs.statistics.rows.small_files import SessionReading, is_small
from hms_cache.jobs.statistics.totals import TotalsOfColumns
from hms_cache.jobs.statistics.transform import transform
from hms_cache.jobs.statistics.writing import SmallUnits, Target, read_and_written, written
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

PARTITIONS_OF_A_TASK = 10_000
"""Number of partitions processed in one task, if they are too many for one task per writer: some ten MB per column."""


class Computation:
    """The computation for one table, and its results."""

    def __init__(self, run: JobRun, work: TableWork, session: SessionReading) -> None:
        """:param session: how the session reads files."""
        self.partitions = 0
        """Number of partitions written."""

        self.rows = 0
        """Number of rows read."""

        self.failures: list[tuple[str, str | None, str]] = []
        """Table, partition, reason."""

        self.totals = TotalsOfColumns()
        """Totals of everything written."""

        self._run = run
        self._work = work
        self._groups = passes(work.columns)
        self._together: list[list[bytes]] = [[] for _ in self._groups]
        self._session = session
        self._rest: list[str | None] = [None] if work.is_chosen else [*work.chosen]
        """Units that are not read yet."""

        self._small: list[str | None] = []
        """Those of them that workers read without Spark's reader."""

        self._by_directory = bool(self._rest) and reads_files(run.spark, work.table)
        if self._by_directory and session.may_be_replaced(work.table, work.columns):
            self._small = [unit for unit in self._rest if is_small(work.files[unit])]

    @property
    def small_units(self) -> int:
        """The number of units that Spark need not read."""
        return len(self._small)

    @property
    def needs_spark(self) -> bool:
        """Whether Spark has to read the other units."""
        return len(self._small) < len(self._rest)

    def begun_again(self) -> Computation:
        """A new computation for the units of the table chosen now."""
        return Computation(self._run, self._work, self._session)

    def compute(self, cores: int) -> None:
        """Computes everything that is not done yet; small units with this many cores. Raises the errors of Spark and of
        the metastore."""
        if self._small:
            compute_small(self._run, [self], cores)
        if self._rest:
            self._read_by_spark([unit for unit in self._rest if unit is not None])

    def together(self) -> list[AggrStats]:
        """Merged statistics of everything written, per group of columns."""
        names = [[column.name for column in columns] for columns in self._groups]
        return [table_level.merged(*each) for each in zip(self._together, names, strict=True)]

    def _read_by_spark(self, chosen: Sequence[str]) -> None:
        work = self._work
        writing_tasks = _writing_tasks(self._run)
        target = target_of(self._run, work, writing_tasks)
        some = None if work.names is None else chosen
        for portion in portions(some, work.names, work.files, by_directory=self._by_directory):
            for number, columns in enumerate(self._groups):
                portion, numbers, rows = self._rows(portion, columns)
                if rows is None:
                    break
                tasks = max(writing_tasks, len(portion.names) // PARTITIONS_OF_A_TASK) if portion.names else 1
                statistics = transform(rows, columns, numbers, tasks).join(_broadcast(numbers), "partition")
                # In order, because a call contains consecutive partitions, which the metastore and its database store
                # together.
                in_order = statistics.coalesce(writing_tasks).sortWithinPartitions("partition")
                self._collect(written(in_order, target, columns, work.table).collect(), number)

    def _rows(
        self, portion: PartitionBatch, columns: Sequence[StatisticsColumn]
    ) -> tuple[PartitionBatch, DataFrame, DataFrame | None]:
        """The rest of the portion, its `partition_numbers`, and `rows_of` it; None if nothing is left."""
        work, spark = self._work, self._run.spark
        while True:
            numbers = partition_numbers(spark, work.table, portion.names, work.files)
            try:
                return portion, numbers, rows_of(spark, work.table, columns, portion, numbers, work.files)
            except OtherFiles as error:
                portion = self._without(portion, error)
                if not portion.names:
                    return portion, numbers, None

    def _without(self, portion: PartitionBatch, error: OtherFiles) -> PartitionBatch:
        """The portion without the units for which Spark finds other files, which are recorded as failures."""
        names: Sequence[str | None] = [None] if portion.names is None else portion.names
        gone = {name for number, name in enumerate(names) if number in error.numbers}
        self.failures += [(self._work.label, name, str(error)) for name in names if name in gone]
        return replace(portion, names=tuple(name for name in portion.names or () if name not in gone))

    def _small_ones(self, tasks: int) -> SmallUnits:
        work = self._work
        units = [(unit, work.files[unit]) for unit in self._small]
        return SmallUnits(target_of(self._run, work, tasks), work.columns, work.table, units)

    def _collect_small(self, outcomes: Iterable[Row]) -> None:
        left = self._collect(outcomes, 0)
        done = set(self._small) - left
        self._rest, self._small = [unit for unit in self._rest if unit not in done], []

    def _collect(self, outcomes: Iterable[Row], group: int) -> set[str | None]:
        """Processes the results of a group of columns. Returns the units left to Spark."""
        left: set[str | None] = set()
        for outcome in outcomes:
            if outcome["together"] is not None:
                self._together[group].append(bytes(outcome["together"]))
                self.totals.add_encoded(outcome["totals"])
            elif outcome["is_left"]:
                left.add(outcome["partition"])
            elif outcome["failure"] is not None:
                self.failures.append((self._work.label, outcome["partition"], outcome["failure"]))
            elif group == len(self._groups) - 1:
                self.partitions += outcome["written"] if self._work.names is not None else 0
                self.rows += outcome["rows"]
        return left


def compute_small(run: JobRun, some: Sequence[Computation], cores: int) -> None:
    """Computes the small units of several tables in one Spark job with this many cores. Raises the errors of Spark and
    of the metastore."""
    # Each task reads and writes: use all cores.
    writing = min(run.options["writers"], run.spark.sparkContext.defaultParallelism)
    by_table: dict[int, list[Row]] = {number: [] for number in range(len(some))}
    small = [one._small_ones(writing) for one in some]
    for row in read_and_written(run.spark, small, min(writing, cores)).collect():
        by_table[row["table"]].append(row)
    for number, rows in by_table.items():
        some[number]._collect_small(rows)


def target_of(run: JobRun, work: TableWork, tasks: int | None = None) -> Target:
    """Where the statistics of the table are written, and the number of tasks that write at the same time."""
    options = run.options
    tasks = tasks or _writing_tasks(run)
    return Target(
        for_tasks(run.metastores),
        work.name,
        options["engine"],
        options["batch_partitions"],
        -(-options["writers"] // tasks),
        work.snapshot,
        work.write_id,
        tuple(column.name for column in passes(work.columns)[-1]),
        len(work.names or ()),
    )


def _writing_tasks(run: JobRun) -> int:
    """Number of Spark tasks that write: they mostly wait, and leave half of the cores to those that read."""
    writers: int = run.options["writers"]
    cores: int = run.spark.sparkContext.defaultParallelism
    return max(1, min(writers, cores // 2))


def _broadcast(numbers: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return f.broadcast(numbers.select("partition", *PLACE))
