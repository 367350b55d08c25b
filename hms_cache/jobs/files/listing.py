"""Catalog and file system as data: partitions with their locations and files, and the directories below tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, BooleanType, StructField, StructType
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.Thrift import TException
from thrift.TSerialization import serialize

from hms_cache.client import Metastores, for_tasks
from hms_cache.jobs.files.directories import NO_ROOT, PARTITION, canonical, place_of
from hms_cache.jobs.files.trees import TreeLister
from hms_cache.jobs.frame.rate_limit import RateLimit
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName
from hms_cache.jobs.sources.fields import LONG, STRING, fields, required
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TABLE_COLUMNS
from hms_cache.values import frozen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_OWNER = required(STRING, *TABLE_COLUMNS)

SLICES = StructType([*_OWNER, *required(ArrayType(STRING, False), "partitions")])
"""Names of some partitions of a table."""

PLACES = StructType(
    [
        *_OWNER,
        # Null: the table itself, which has no partitions.
        *fields(STRING, "partition"),
        *required(STRING, "location"),
        # Common to all locations of one directory: see `place_of`.
        *required(STRING, "place"),
        # Size of the struct as sent to clients.
        *required(LONG, "encoded_bytes"),
        # From its parameters.
        *fields(LONG, "recorded_files", "recorded_bytes"),
        # Why it could not be read or listed. Then nothing else is known.
        *fields(STRING, "problem"),
    ]
)
"""The locations of data according to the catalog."""

_FIGURES = [
    *fields(LONG, "files", "bytes", "small_files", "blocks"),
    # Last modification in microseconds since 1970; 0 if the file system does not report it.
    *fields(LONG, "newest_us"),
    # Number of directory levels above the deepest file.
    *fields(LONG, "depth"),
]

LISTED = StructType([*PLACES.fields, StructField("exists", BooleanType(), False), *_FIGURES])
"""The same with the actual content."""

_KEYS = required(ArrayType(STRING, False), "keys", "types")
ROOTS = StructType([*_OWNER, *required(STRING, "location", "place"), *_KEYS])
"""Partitioned tables: their directories and partition keys."""

FOUND = StructType(
    [
        *_OWNER,
        *required(STRING, "kind", "location", "place"),
        *fields(STRING, "partition", "problem"),
        # For a partition's directory only.
        *_FIGURES,
    ]
)
"""Directories below tables; for the kinds see `directories`."""

_PROTOCOL = TBinaryProtocolAcceleratedFactory()
_Rows = Iterator[dict[str, Any]]


@frozen
class ListingOptions:
    """How directories are listed. Serialized to Spark's workers."""

    small_file_bytes: int
    block_bytes: int
    requests_per_s: float = 0
    """Maximum number of listings per second of one task in one store; 0 for no limit."""

    def lister(self) -> TreeLister:
        """Returns a lister for one task."""
        limit = RateLimit(self.requests_per_s)
        return TreeLister(small_file_bytes=self.small_file_bytes, block_bytes=self.block_bytes, limit=limit)


def places_of(slices: DataFrame, metastore: Metastores) -> DataFrame:
    """The partitions named in `slices` (`SLICES`) with their locations (`PLACES`); a row with the problem for a slice
    that cannot be read."""
    access = for_tasks(metastore)

    def read(rows: _Rows) -> _Rows:
        reader = MetastoreReader(access, fills_cache=False)
        try:
            for row in rows:
                table = TableName(*(row[name] for name in TABLE_COLUMNS))
                try:
                    for name, partition in reader.partitions(PartitionRange(table, names=tuple(row["partitions"]))):
                        location = partition.sd.location if partition.sd is not None else None
                        yield place_row(table, name, location, partition, partition.parameters)
                except TException as error:
                    yield failed_row(table, error)
        finally:
            reader.close()

    return _mapped(slices, read, PLACES)


def failed_row(table: TableName, error: Exception) -> dict[str, Any]:
    """A row of `PLACES` for a table that cannot be read."""
    row = dict.fromkeys(PLACES.names) | table._asdict()
    return row | {"location": "", "place": "", "encoded_bytes": 0, "problem": reason_of(error)}


def place_row(
    table: TableName, partition: str | None, location: str | None, struct: Any, parameters: dict[str, str] | None
) -> dict[str, Any]:
    """A row of `PLACES`."""
    return {
        **table._asdict(),
        "partition": partition,
        "location": canonical(location or ""),
        "place": place_of(location or ""),
        "encoded_bytes": len(serialize(struct, _PROTOCOL)),
        "recorded_files": _number(parameters, "numFiles"),
        "recorded_bytes": _number(parameters, "totalSize"),
        "problem": None,
    }


def _number(parameters: dict[str, str] | None, name: str) -> int | None:
    text = (parameters or {}).get(name, "")
    return int(text) if text.isdecimal() else None


def transform(places: DataFrame, found: DataFrame, parts: int, options: ListingOptions) -> DataFrame:
    """The places (`PLACES`) with their files (`LISTED`): from the trees of their tables (`FOUND`), or from a listing of
    their own if they are not in the tree."""
    names = [field.name for field in _FIGURES]
    owner = [*TABLE_COLUMNS, "place"]
    of_trees = found.where((found["kind"] == PARTITION) & found["files"].isNotNull())
    # Two partitions may share a directory, which is listed once.
    joined = places.join(of_trees.select(*owner, *names).dropDuplicates(owner), owner, "left")

    def list_them(rows: _Rows) -> _Rows:
        lister = options.lister()
        for row in rows:
            if row["files"] is not None or row["problem"] is not None:
                yield row | {"exists": row["problem"] is None}
            else:
                yield row | asdict(lister.files(row["location"]))

    ordered = joined.select(*PLACES.names, *names)
    return _mapped(ordered.repartition(parts), list_them, LISTED)


def directories_below(roots: DataFrame, slices: int, options: ListingOptions) -> DataFrame:
    """The directories below tables (`ROOTS`) with their files, whether of partitions or not (`FOUND`).

    The tables' own directories are listed first, the directories below them in `slices` parts.
    """

    def prefixes(rows: _Rows) -> _Rows:
        lister = options.lister()
        for row in rows:
            for found in lister.prefixes(row["location"], row["keys"]):
                yield row | asdict(found) | {"root": row["location"], "root_place": row["place"]}

    def trees(rows: _Rows) -> _Rows:
        lister = options.lister()
        for row in rows:
            owner = {name: row[name] for name in TABLE_COLUMNS}
            if row["kind"] != PARTITION:
                yield {field.name: row.get(field.name) for field in FOUND}
                continue
            written = len(row["root"].rstrip("/"))
            for one in lister.tree(row["location"], row["root"], row["keys"], row["types"]):
                figures = {} if one.files is None else asdict(one.files)
                place = {"place": row["root_place"] + one.found.location[written:]}
                yield owner | figures | asdict(one.found) | place

    between = StructType([*FOUND.fields, *required(STRING, "root", "root_place"), *_KEYS])
    return _mapped(_mapped(roots, prefixes, between).repartition(slices), trees, FOUND)


def missing_roots(found: DataFrame) -> DataFrame:
    """Tables whose own directory does not exist (`TABLE_COLUMNS`)."""
    return found.where(found["kind"] == NO_ROOT).select(*TABLE_COLUMNS).distinct()


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
