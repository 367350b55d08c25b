"""Finds partitions and tables without statistics of some of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, StructField, StructType

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient, Metastores, for_tasks
from hms_cache.jobs.sources.catalog_reader import TableName
from hms_cache.jobs.sources.fields import BOOLEAN, INTEGER, STRING, fields, required
from hms_cache.jobs.sources.scope import TABLE_COLUMNS
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, PartitionsStatsRequest, TableStatsRequest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

PARTITIONS_OF_A_SLICE = 500
"""Number of partitions checked in one call: it returns the statistics of each column, some 100 bytes each."""

STATISTICS_OF_A_CALL = 50_000
"""Number of column statistics per call, of several partitions: some ten MB, and five times that as objects."""

_NAMES = ArrayType(STRING, False)
SLICES = StructType(
    [
        *required(STRING, *TABLE_COLUMNS),
        *required(_NAMES, "columns"),
        # Null: the table itself.
        *fields(_NAMES, "partitions"),
        # Number of partitions of the table.
        *required(INTEGER, "partitions_in_all"),
        # `acid.Snapshot`; null: the table is not transactional.
        StructField(
            "snapshot",
            StructType(
                [
                    *required(STRING, "transactions", "write_ids"),
                    *required(BOOLEAN, "is_full"),
                ]
            ),
        ),
    ]
)
LACKING = StructType(
    [
        *required(STRING, *TABLE_COLUMNS),
        *fields(STRING, "partition"),
    ]
)


def transform(slices: DataFrame, metastore: Metastores, engine: str) -> DataFrame:
    """Returns those of the partitions and tables in `slices` (`SLICES`) that lack statistics of a column
    (`LACKING`)."""
    return slices.mapInArrow(_finder(for_tasks(metastore), engine), LACKING)


def _finder(metastore: Metastores, engine: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(LACKING)

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with MetastoreClient(metastore, fills_cache=False) as client:
            for batch in batches:
                for row in batch.to_pylist():
                    name = TableName(*(row[part] for part in TABLE_COLUMNS))
                    found = _lacking(client, name, row["columns"], row["partitions"], engine)
                    rows = [{**name._asdict(), "partition": one} for one in found]
                    yield pyarrow.RecordBatch.from_pylist(rows, schema)

    return find


def _lacking(
    client: MetastoreClient, name: TableName, columns: list[str], partitions: list[str] | None, engine: str
) -> list[str | None]:
    try:
        if partitions is None:
            answer = client.call(
                "get_table_statistics_req",
                TableStatsRequest(name.database, name.table, columns, name.catalog, engine=engine),
            )
            return [] if {one.colName for one in answer.tableStats} >= set(columns) else [None]
        lacking: list[str | None] = []
        for some in batches(partitions, max(1, STATISTICS_OF_A_CALL // len(columns))):
            request = PartitionsStatsRequest(name.database, name.table, columns, some, name.catalog, engine=engine)
            found = client.call("get_partitions_statistics_req", request).partStats
            lacking += [one for one in some if not {stat.colName for stat in found.get(one, ())} >= set(columns)]
        return lacking
    except NoSuchObjectException:
        return []  # dropped since it was listed
