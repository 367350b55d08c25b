"""Catalog and file system as data: partitions with their locations, their files, and the directories below tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructField, StructType
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.TSerialization import serialize

from hms_cache.jobs.files.directories import (
    EMPTY,
    NO_ROOT,
    PARTITION,
    UNREADABLE,
    UNREGISTERED,
    DirectoryLister,
    canonical,
)
from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.metadata.names import DEFAULT_CATALOG

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_STRING, _LONG = StringType(), LongType()
_OWNER = [StructField("database", _STRING, False), StructField("table", _STRING, False)]

SLICES = StructType([*_OWNER, StructField("partitions", ArrayType(_STRING, False), False)])
"""Names of some partitions of a table."""

PLACES = StructType(
    [
        *_OWNER,
        # Null: the table itself, which has no partitions.
        StructField("partition", _STRING),
        StructField("location", _STRING, False),
        # Of its struct as clients are sent it.
        StructField("encoded_bytes", _LONG, False),
        # As its parameters say.
        StructField("recorded_files", _LONG),
        StructField("recorded_bytes", _LONG),
    ]
)
"""Where the catalog says that data is."""

LISTED = StructType(
    [
        *PLACES.fields,
        StructField("exists", BooleanType(), False),
        StructField("files", _LONG, False),
        StructField("bytes", _LONG, False),
        StructField("small_files", _LONG, False),
        StructField("blocks", _LONG, False),
        StructField("problem", _STRING),
    ]
)
"""The same with what is there."""

ROOTS = StructType(
    [*_OWNER, StructField("location", _STRING, False), StructField("keys", ArrayType(_STRING, False), False)]
)
"""Partitioned tables: their directories, and their partition keys."""

FOUND = StructType(
    [
        *_OWNER,
        StructField("kind", _STRING, False),
        StructField("location", _STRING, False),
        StructField("partition", _STRING),
        StructField("problem", _STRING),
    ]
)
"""Directories below tables; kinds are those of `directories`."""

_PROTOCOL = TBinaryProtocolAcceleratedFactory()
_Rows = Iterator[dict[str, Any]]


def places_of(slices: DataFrame, metastore: str) -> DataFrame:
    """The partitions named in `slices` (`SLICES`) with their locations (`PLACES`)."""

    def read(rows: _Rows) -> _Rows:
        reader = MetastoreReader(metastore)
        try:
            for row in rows:
                table = TableName(DEFAULT_CATALOG, row["database"], row["table"])
                for name, partition in reader.partitions(PartitionRange(table, names=tuple(row["partitions"]))):
                    yield place_row(table, name, partition.sd.location, partition, partition.parameters)
        finally:
            reader.close()

    return _mapped(slices, read, PLACES)


def place_row(
    table: TableName, partition: str | None, location: str | None, struct: Any, parameters: dict[str, str] | None
) -> dict[str, Any]:
    """A row of `PLACES`."""
    return {
        "database": table.database,
        "table": table.table,
        "partition": partition,
        "location": canonical(location or ""),
        "encoded_bytes": len(serialize(struct, _PROTOCOL)),
        "recorded_files": _number(parameters, "numFiles"),
        "recorded_bytes": _number(parameters, "totalSize"),
    }


def _number(parameters: dict[str, str] | None, name: str) -> int | None:
    text = (parameters or {}).get(name, "")
    return int(text) if text.isdecimal() else None


def transform(places: DataFrame, *, small_file_bytes: int, block_bytes: int) -> DataFrame:
    """The places (`PLACES`) with the files that are there (`LISTED`)."""

    def list_them(rows: _Rows) -> _Rows:
        lister = DirectoryLister(small_file_bytes=small_file_bytes, block_bytes=block_bytes)
        for row in rows:
            yield row | asdict(lister.files(row["location"]))

    return _mapped(places, list_them, LISTED)


def directories_below(roots: DataFrame, slices: int) -> DataFrame:
    """The directories below tables (`ROOTS`) that are partitions', or nobody's (`FOUND`).

    The first level is listed table by table, what is below it in as many parts as `slices` says.
    """

    def first_level(rows: _Rows) -> _Rows:
        lister = DirectoryLister()
        for row in rows:
            for found in lister.below(row["location"], row["keys"], depth=1):
                yield row | asdict(found) | {"root": row["location"]}

    def rest(rows: _Rows) -> _Rows:
        lister = DirectoryLister()
        for row in rows:
            owner = {"database": row["database"], "table": row["table"]}
            if row["kind"] != PARTITION:
                yield {field.name: row[field.name] for field in FOUND}
                continue
            for found in lister.rest(row["location"], row["root"], row["keys"]):
                yield owner | asdict(found)

    between = StructType(
        [*FOUND.fields, StructField("root", _STRING, False), StructField("keys", ArrayType(_STRING, False), False)]
    )
    return _mapped(_mapped(roots, first_level, between).repartition(slices), rest, FOUND)


def looked_into(unknown: DataFrame) -> DataFrame:
    """Directories (`FOUND`) with those of partitions told apart: unregistered with files, else empty."""

    def look(rows: _Rows) -> _Rows:
        lister = DirectoryLister()
        for row in rows:
            if row["kind"] == PARTITION:
                now = lister.files(row["location"])
                row["kind"] = UNREADABLE if now.problem else UNREGISTERED if now.files else EMPTY
                row["problem"] = now.problem
            yield row

    return _mapped(unknown, look, FOUND)


def missing_roots(found: DataFrame) -> DataFrame:
    """Tables whose own directory does not exist: ``database``, ``table``."""
    return found.where(found["kind"] == NO_ROOT).select("database", "table").distinct()


def _mapped(frame: DataFrame, function: Callable[[_Rows], _Rows], schema: StructType) -> DataFrame:
    def map_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark.sql.pandas.types import to_arrow_schema

        arrow_schema = to_arrow_schema(schema)
        held: list[dict[str, Any]] = []
        for row in function(row for batch in batches for row in batch.to_pylist()):
            held.append(row)
            if len(held) >= _ROWS_OF_A_BATCH:
                yield pyarrow.RecordBatch.from_pylist(held, arrow_schema)
                held = []
        if held:
            yield pyarrow.RecordBatch.from_pylist(held, arrow_schema)

    return frame.mapInArrow(map_batches, schema)


_ROWS_OF_A_BATCH = 1_000
