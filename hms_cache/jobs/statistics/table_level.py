"""Statistics of a partitioned table as a whole, from those of its partitions: no rows are read.

Counts and bounds are combined, sketches of distinct values merged, and lengths are the maximum of all partitions, as
Hive aggregates partitions for its planner (`AggregationRules`). Here this is done for readers that only use the
statistics of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.TSerialization import deserialize, serialize

from hms_cache.jobs.sources.catalog_reader import CatalogReader, PartitionRange, TableName
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TABLE_COLUMNS
from hms_cache.jobs.statistics.totals import BoundsUs, TotalsOfColumns
from hms_cache.metadata.statistics_merge import AggregationRules, aggregate
from hms_cache.metadata.statistics_values import values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatistics, ColumnStatisticsObj

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

PARTIAL = StructType([StructField("statistics", BinaryType(), False), StructField("totals", StringType(), False)])
"""Statistics of the partitions of a slice, as an encoded `AggrStats`, and encoded `TotalsOfColumns`."""

PARTITIONS_PUT_TOGETHER = 500
"""Number of partitions whose statistics are held before they are merged: a column takes up to 1 KB."""

_RULES = AggregationRules(sketches=True, certain_bounds=True)
_PROTOCOL = TBinaryProtocolAcceleratedFactory()


class StatisticsMerger:
    """Merges statistics of partitions as they arrive; holds those of at most `PARTITIONS_PUT_TOGETHER`."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._names: list[str] = []
        self._pending: list[tuple[str, ColumnStatisticsObj]] = []
        self._total = AggrStats([], 0)
        self.totals = TotalsOfColumns()

    def add(
        self, name: str, statistics: Sequence[ColumnStatisticsObj], rows: int, bounds_us: BoundsUs | None = None
    ) -> None:
        """Adds a partition with this number of rows."""
        self.totals.add(statistics, rows, bounds_us)
        self._names.append(name)
        self._pending += ((name, one) for one in statistics)
        if len(self._names) >= PARTITIONS_PUT_TOGETHER:
            self._put_together()

    def encoded(self) -> bytes:
        """The merged statistics as an encoded `AggrStats`, as in `PARTIAL`."""
        self._put_together()
        return bytes(serialize(self._total, _PROTOCOL))

    def _put_together(self) -> None:
        if self._names:
            some = aggregate(self._names, self._pending, self._columns, _RULES)
            self._total = _merged([self._total, some], self._columns)
            self._names, self._pending = [], []


def transform(slices: DataFrame, origin: Origin, engine: str) -> DataFrame:
    """Merges the statistics of the partitions of each slice (`missing_statistics.SLICES`), which belong to one table
    (`PARTIAL`)."""
    return slices.mapInArrow(_merger(origin.for_tasks(), engine), PARTIAL)


def _merger(origin: Origin, engine: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(PARTIAL)

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for partial in partials((row for batch in batches for row in batch.to_pylist()), origin, engine):
            yield pyarrow.RecordBatch.from_pylist([partial], schema)

    return merge


def partials(slices: Iterable[dict[str, Any]], origin: Origin, engine: str) -> Iterator[dict[str, Any]]:
    """The result of `transform`, without Spark."""
    # Reads each partition of each changed table once: loading the cache would cost the server more than the answer.
    with origin.reading(fills_cache=False) as reader:
        for row in slices:
            tables = reader.tables(row["catalog"], row["database"], [row["table"]])
            names = row["partitions"]
            found = list(reader.partition_statistics(tables[0], names, engine)) if tables else []
            pairs = ((one.statsDesc.partName, column) for one in found for column in one.statsObj)
            together = aggregate(names, pairs, row["columns"], _RULES)
            totals = _totals(reader, row, found)
            yield {"statistics": serialize(together, _PROTOCOL), "totals": totals.encoded()}


def _totals(reader: CatalogReader, row: dict[str, Any], found: Iterable[ColumnStatistics]) -> TotalsOfColumns:
    """Totals of the partitions whose numbers of rows are recorded."""
    part = PartitionRange(TableName(*(row[name] for name in TABLE_COLUMNS)), names=tuple(row["partitions"]))
    rows = {name: (partition.parameters or {}).get("numRows", "") for name, partition in reader.partitions(part)}
    totals = TotalsOfColumns()
    for one in found:
        count = rows.get(one.statsDesc.partName, "")
        if count.isdecimal():
            totals.add(one.statsObj, int(count))
    return totals


def merged(partials: Iterable[bytes], columns: Sequence[str]) -> AggrStats:
    """Merges encoded `AggrStats`. `partsFound`: the number of partitions with statistics."""
    return _merged([deserialize(AggrStats(), data, _PROTOCOL) for data in partials], columns)


def _merged(partials: Sequence[AggrStats], columns: Sequence[str]) -> AggrStats:
    having = [one for one in partials if one.colStats]
    names = [str(number) for number in range(len(having))]
    pairs = ((name, column) for name, part in zip(names, having, strict=True) for column in part.colStats)
    return AggrStats(aggregate(names, pairs, columns, _RULES).colStats, sum(part.partsFound for part in partials))


def without_sketch(statistics: Sequence[ColumnStatisticsObj]) -> list[str]:
    """Columns whose numbers of distinct values could not be merged and are only lower bounds."""
    found = []
    for one in statistics:
        values = values_of(one)
        if values.kind.has_distinct_values and values.bit_vector is None:
            found.append(one.colName)
    return found
