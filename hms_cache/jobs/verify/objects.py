"""Objects of the catalog, read in the same way from a server and from the database, for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pyspark.sql.datasource import InputPartition

from hms_cache.jobs.sources.catalog_reader import CatalogReader, PartitionRange, TableName
from hms_cache.values import frozen
from hms_cache.wire import decode_struct, encode_struct

_NAMES_OF_A_READ = 1_000
"""Number of partitions whose statistics are read at once: they have many columns."""

_ENGINE = "hive"

_DATA = "statsData"
_BIT_VECTORS = "bitVectors"
"""The field of `LongColumnStatsData` and similar structs that holds a sketch of the distinct values."""


@frozen
class ObjectKey:
    """Identifies an object to compare: ``kind`` is database, tables (the names in a database), table, partitions (the
    names in a table), partition or statistics; ``table`` and ``partition`` are empty if not applicable."""

    kind: str
    database: str
    table: str = ""
    partition: str = ""


Objects = Mapping[ObjectKey, Any]
"""Structs and sorted lists of names by key; objects that do not exist are absent."""


@frozen
class Unit(InputPartition):  # type: ignore[misc]
    """The objects that one task compares on one server. Serialized to Spark's workers."""

    server: str
    catalog: str
    database: str
    tables: tuple[str, ...] = ()
    """Tables, with their statistics and the names of their partitions."""

    ranges: tuple[PartitionRange, ...] = ()
    """Partitions with their statistics, as planned by the database's reader."""

    whole_database: bool = False
    """Whether to include the database itself and the names of its tables."""


def objects_of(reader: CatalogReader, unit: Unit, partition_names: Mapping[TableName, list[str]] | None) -> Objects:
    """All objects of the unit.

    :param partition_names: by table, the names to request from a server, because the ranges of the unit only apply to
      the database. None for the database.
    """
    found: dict[ObjectKey, Any] = {}
    if unit.whole_database:
        for database in reader.databases(unit.catalog, [unit.database]):
            found[ObjectKey("database", unit.database)] = database
        found[ObjectKey("tables", unit.database)] = reader.table_names(unit.catalog, unit.database)
    for table in reader.tables(unit.catalog, unit.database, unit.tables):
        name = str(table.tableName)
        found[ObjectKey("table", unit.database, name)] = table
        for statistics in reader.table_statistics(table, _ENGINE):
            found |= _statistics(ObjectKey("statistics", unit.database, name), statistics)
        if table.partitionKeys:
            of_table = TableName(unit.catalog, unit.database, name)
            found[ObjectKey("partitions", unit.database, name)] = reader.partition_names(of_table)
    for part in unit.ranges:
        requested = part
        if partition_names is not None:
            requested = PartitionRange(part.table, names=tuple(partition_names.get(part.table, ())))
        found.update(_partitions(reader, requested))
    return found


def _partitions(reader: CatalogReader, part: PartitionRange) -> Iterator[tuple[ObjectKey, Any]]:
    name = part.table
    for partition_name, partition in reader.partitions(part):
        yield ObjectKey("partition", name.database, name.table, partition_name), partition
    tables = reader.tables(name.catalog, name.database, [name.table])
    names = iter(part.names if part.names is not None else [one for one, _ in reader.partitions(part)])
    while tables and (some := list(islice(names, _NAMES_OF_A_READ))):
        for statistics in reader.partition_statistics(tables[0], some, _ENGINE):
            key = ObjectKey("statistics", name.database, name.table, statistics.statsDesc.partName)
            yield from _statistics(key, statistics).items()


def _statistics(key: ObjectKey, statistics: Any) -> dict[ObjectKey, Any]:
    """By column; the time of analysis is omitted because not all calls return it."""
    by_column = {column.colName: column for column in statistics.statsObj or ()}
    return {key: dict(sorted(by_column.items()))}


def partition_names_of(objects: Objects, catalog: str) -> dict[TableName, list[str]]:
    """The names of the partitions among these objects."""
    names: dict[TableName, list[str]] = {}
    for key in objects:
        if key.kind == "partition":
            names.setdefault(TableName(catalog, key.database, key.table), []).append(key.partition)
    return names


def equal(one: Any, other: Any) -> bool:
    """Whether two objects are equal for a client; bit vectors are compared only if both have them."""
    if hasattr(one, "thrift_spec") and hasattr(other, "thrift_spec") and encode_struct(one) == encode_struct(other):
        return True
    left, right = comparable_pair(one, other)
    return bool(left == right)


def comparable_pair(one: Any, other: Any) -> tuple[Any, Any]:
    """Both as `comparable`, without bit vectors that only one side has: a server returns them only with
    `catalog.statistics_sketches` (Hive's `hive.stats.fetch.bitvector`), and the database always has them."""
    left, right = comparable(one), comparable(other)
    _drop_lonely_bit_vectors(left, right)
    return left, right


def _drop_lonely_bit_vectors(one: Any, other: Any) -> None:
    """Modifies two plain maps of statistics by column."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return
    for column in one.keys() & other.keys():
        for kind, left, right in _figures_of(one[column], other[column]):
            if (left.get(_BIT_VECTORS) is None) != (right.get(_BIT_VECTORS) is None):
                one[column][_DATA][kind] = {name: item for name, item in left.items() if name != _BIT_VECTORS}
                other[column][_DATA][kind] = {name: item for name, item in right.items() if name != _BIT_VECTORS}


def _figures_of(one: Any, other: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The members of `ColumnStatisticsData` that are set in both plain `ColumnStatisticsObj`."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return
    left, right = one.get(_DATA), other.get(_DATA)
    if isinstance(left, dict) and isinstance(right, dict):
        for kind in left.keys() & right.keys():
            yield kind, left[kind], right[kind]


def comparable(value: Any) -> Any:
    """An object as a client sees it, without classes: fields omitted by the protocol have their defaults."""
    if hasattr(value, "thrift_spec"):
        return _plain(decode_struct(type(value), encode_struct(value)))
    if isinstance(value, dict):
        return {str(key): comparable(item) for key, item in value.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    """Structs as maps of the fields that are set, sets without order."""
    if hasattr(value, "thrift_spec"):
        names = [entry[2] for entry in value.thrift_spec if entry is not None]
        return {name: _plain(getattr(value, name)) for name in names if getattr(value, name) is not None}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(repr, map(_plain, value)))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def changed_fields(held: Any, stored: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two plain values differ, each with both values; None stands for a missing value."""
    if isinstance(held, dict) and isinstance(stored, dict):
        for name in sorted(held.keys() | stored.keys()):
            if held.get(name) != stored.get(name):
                yield from changed_fields(held.get(name), stored.get(name), f"{path}.{name}" if path else name)
    elif held != stored:
        yield path, held, stored
