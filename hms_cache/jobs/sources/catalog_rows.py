"""Converts Thrift structs to rows of `catalog_schemas`, in the order of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hms_cache.jobs.sources.catalog_reader import TableName
from hms_cache.metadata.statistics_values import decimal_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    Database,
    FieldSchema,
    MetaException,
    Partition,
    PrincipalType,
    StorageDescriptor,
    Table,
)

Row = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_BASIC_STATISTICS = ("numFiles", "numRows", "totalSize")


def time_of(epoch_s: int | None) -> datetime | None:
    """Converts a stored time; null if it is 0, unset or outside of the calendar."""
    if not epoch_s:
        return None
    try:
        return _EPOCH + timedelta(seconds=epoch_s)
    except OverflowError:
        return None


def _principal(kind: int | None) -> str | None:
    return None if kind is None else PrincipalType._VALUES_TO_NAMES.get(kind)


def _fields(columns: list[FieldSchema] | None) -> list[tuple[str, str, str | None]]:
    return [(column.name, column.type, column.comment) for column in columns or ()]


def _basic_statistics(parameters: Mapping[str, str] | None) -> tuple[int | None, ...]:
    """Number of files, number of rows and total size from the parameters; null if a value is not a number or
    negative."""
    numbers: list[int | None] = []
    for name in _BASIC_STATISTICS:
        text = (parameters or {}).get(name, "")
        numbers.append(int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None)
    return tuple(numbers)


def database_row(database: Database, catalog: str) -> Row:
    """Converts to a row of `DATABASES`."""
    return (
        database.catalogName or catalog,
        database.name,
        database.description,
        database.locationUri,
        database.managedLocationUri,
        database.ownerName,
        _principal(database.ownerType),
        time_of(database.createTime),
        dict(database.parameters or {}),
    )


def table_row(table: Table, name: TableName) -> Row:
    """Converts to a row of `TABLES`."""
    descriptor = table.sd or StorageDescriptor()
    serde = descriptor.serdeInfo
    table_id = getattr(table, "id", None)
    return (
        name.catalog,
        name.database,
        name.table,
        table_id if table_id and table_id > 0 else None,
        table.tableType,
        table.owner,
        _principal(table.ownerType),
        time_of(table.createTime),
        time_of(table.lastAccessTime),
        descriptor.location,
        descriptor.inputFormat,
        descriptor.outputFormat,
        serde.serializationLib if serde else None,
        dict(serde.parameters or {}) if serde else None,
        descriptor.numBuckets,
        list(descriptor.bucketCols or ()),
        [f"{order.col} {'ASC' if order.order else 'DESC'}" for order in descriptor.sortCols or ()],
        _fields(descriptor.cols),
        _fields(table.partitionKeys),
        dict(table.parameters or {}),
        *_basic_statistics(table.parameters),
        table.viewOriginalText,
        table.viewExpandedText,
        table.writeId,
    )


def column_rows(table: Table, name: TableName) -> Iterator[Row]:
    """Converts to rows of `COLUMNS`: the columns, then the partition keys, as a query sees them."""
    columns = list(table.sd.cols or ()) if table.sd else []
    keys = list(table.partitionKeys or ())
    for position, column in enumerate(columns + keys):
        is_key = position >= len(columns)
        yield (name.catalog, name.database, name.table, column.name, position, column.type, column.comment, is_key)


def partition_row(partition: Partition, partition_name: str, table: TableName) -> Row:
    """Converts to a row of `PARTITIONS`."""
    descriptor = partition.sd or StorageDescriptor()
    serde = descriptor.serdeInfo
    return (
        table.catalog,
        table.database,
        table.table,
        partition_name,
        list(partition.values),
        time_of(partition.createTime),
        time_of(partition.lastAccessTime),
        descriptor.location,
        descriptor.inputFormat,
        descriptor.outputFormat,
        serde.serializationLib if serde else None,
        dict(partition.parameters or {}),
        *_basic_statistics(partition.parameters),
        partition.writeId,
    )


def statistics_rows(statistics: ColumnStatistics, table: TableName, engine: str) -> Iterator[Row]:
    """Converts to rows of `STATISTICS`, one for each column."""
    description = statistics.statsDesc
    for column in statistics.statsObj or ():
        kind, data = _filled(column.statsData)
        yield (
            table.catalog,
            table.database,
            table.table,
            None if description.isTblLevel else description.partName,
            column.colName,
            column.colType,
            statistics.engine or engine,
            time_of(description.lastAnalyzed),
            kind,
            _limit(getattr(data, "lowValue", None)),
            _limit(getattr(data, "highValue", None)),
            getattr(data, "numNulls", None),
            getattr(data, "numDVs", None),
            getattr(data, "avgColLen", None),
            getattr(data, "maxColLen", None),
            getattr(data, "numTrues", None),
            getattr(data, "numFalses", None),
            getattr(data, "bitVectors", None),
        )


def _filled(union: Any) -> tuple[str | None, Any]:
    """Returns the name and the value of the union's member that is set."""
    for entry in union.thrift_spec:
        if entry is not None and getattr(union, entry[2]) is not None:
            return entry[2].removesuffix("Stats"), getattr(union, entry[2])
    return None, None


def _limit(value: Any) -> str | None:
    if value is None:
        return None
    if hasattr(value, "unscaled"):
        try:
            return format(decimal_of(value), "f")
        except MetaException:
            return None  # no column type allows so many digits
    if hasattr(value, "daysSinceEpoch"):
        return _text_of(_EPOCH_DAY, timedelta(days=value.daysSinceEpoch), value.daysSinceEpoch)
    if hasattr(value, "secondsSinceEpoch"):
        local_time = _EPOCH.replace(tzinfo=None)
        return _text_of(local_time, timedelta(seconds=value.secondsSinceEpoch), value.secondsSinceEpoch)
    return str(value)


def _text_of(epoch: date, distance: timedelta, number: int) -> str:
    try:
        return (epoch + distance).isoformat()
    except OverflowError:
        return str(number)  # a year with more than four digits
