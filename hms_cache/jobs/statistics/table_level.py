"""Statistics of a partitioned table as a whole, from those of its partitions: no row is read again.

Counts and bounds combine, sketches of distinct values merge, lengths are the largest of a partition: as Hive aggregates
partitions for its planner (`AggregationRules`), here for those readers that look at the table alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, LongType, StructField, StructType
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.TSerialization import deserialize, serialize

from hms_cache.jobs.sources.origin import Origin
from hms_cache.store.names import DEFAULT_CATALOG
from hms_cache.store.statistics_merge import AggregationRules, aggregate
from hms_cache.store.statistics_values import values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatisticsObj

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

PARTIAL = StructType([StructField("found", LongType(), False), StructField("statistics", BinaryType(), False)])
"""Statistics of the partitions of a slice, an encoded `AggrStats`, and how many of them have statistics."""

_RULES = AggregationRules(sketches=True)
_PROTOCOL = TBinaryProtocolAcceleratedFactory()


def transform(slices: DataFrame, origin: Origin, engine: str) -> DataFrame:
    """Statistics of the partitions of each slice (`lacking.SLICES`, of one table) together (`PARTIAL`)."""
    return slices.mapInArrow(_merger(origin, engine), PARTIAL)


def _merger(origin: Origin, engine: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(PARTIAL)

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with origin.reading() as reader:
            for batch in batches:
                for row in batch.to_pylist():
                    tables = reader.tables(DEFAULT_CATALOG, row["database"], [row["table"]])
                    names = row["partitions"]
                    found = reader.partition_statistics(tables[0], names, engine) if tables else []
                    pairs = ((one.statsDesc.partName, column) for one in found for column in one.statsObj)
                    together = aggregate(names, pairs, row["columns"], _RULES)
                    partial = {"found": together.partsFound, "statistics": serialize(together, _PROTOCOL)}
                    yield pyarrow.RecordBatch.from_pylist([partial], schema)

    return merge


def merged(partials: Sequence[tuple[int, bytes]], columns: Sequence[str]) -> tuple[int, list[ColumnStatisticsObj]]:
    """How many partitions have statistics, and the statistics of all together."""
    parts = [deserialize(AggrStats(), data, _PROTOCOL) for _, data in partials]
    names = [str(number) for number in range(len(parts))]
    pairs = ((name, column) for name, part in zip(names, parts, strict=True) for column in part.colStats)
    return sum(found for found, _ in partials), list(aggregate(names, pairs, columns, _RULES).colStats)


def without_sketch(statistics: Sequence[ColumnStatisticsObj]) -> list[str]:
    """Columns whose number of distinct values could not be merged, and is only a lower bound."""
    found = []
    for one in statistics:
        values = values_of(one)
        if values.kind.has_distinct_values and values.bit_vector is None:
            found.append(one.colName)
    return found
