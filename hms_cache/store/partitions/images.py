"""Partitions as stored, and what they become when a client changes them.

Facts: `HiveAlterHandler.alterPartition` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.metadata.names import normalize_identifier
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.partitions.additions import (
    check_descriptor,
    partitioned,
)
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import select_for_write
from hms_cache.store.rows.parameters import (
    DDL_TIME,
)
from hms_cache.store.rows.storage_descriptors import own_descriptor
from hms_cache.store.rows.table_kinds import is_view
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.warehouse.locations import Location, is_relative
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    Partition,
    StorageDescriptor,
    Table,
)
from hms_cache.values import frozen


@frozen
class StoredPartition:
    """A partition as stored, with its ids."""

    part_id: int
    sd_id: int | None
    column_descriptor_id: int | None
    partition: Partition


def read_stored(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, names: Sequence[str]
) -> dict[str, StoredPartition]:
    """The partitions of these names, locked for the write. Names that do not exist are left out."""
    header = partitioned(row)
    selected = select_for_write(transaction.connection, header, ByNames(tuple(names)), context)
    rows = read_partition_rows(transaction.connection, header, selected)
    return {
        name: StoredPartition(rows.part_ids[index], rows.sd_ids[index], _column_descriptor_id(rows, index), partition)
        for index, (name, partition) in enumerate(zip(rows.names, partitions_of_rows(rows), strict=True))
    }


def _column_descriptor_id(rows: PartitionRows, index: int) -> int | None:
    number = rows.template_numbers[index]
    return None if number is None else rows.column_descriptor_ids[number]


def check_belongs(table: Table, partition: Partition) -> None:
    """Raises MetaException if the partition names another table, or has no usable storage descriptor."""
    if partition.dbName is not None and normalize_identifier(partition.dbName) != table.dbName:
        raise MetaException(f"Invalid DB name : {partition.dbName}")
    if partition.tableName is not None and normalize_identifier(partition.tableName) != table.tableName:
        raise MetaException(f"Invalid table name : {partition.tableName}")
    if not is_view(table) and (partition.sd is None or partition.sd.serdeInfo is None):
        raise MetaException("Partition does not set storageDescriptor or serdeInfo.")
    if partition.sd is not None:
        check_descriptor(partition.sd)


def new_image(context: StoreContext, table: Table, old: Partition, sent: Partition, write_id: int | None) -> Partition:
    """The partition to store: what the client sent, with the table's names, a DDL time and a location.

    Raises MetaException, as Hive does, for a partition that another program created without a storage descriptor: the
    descriptor that the client sends would not be stored.
    """
    if old.sd is None and not is_view(table):
        raise MetaException(
            f"Partition [{', '.join(old.values)}] of {table.dbName}.{table.tableName} has no storage descriptor"
        )
    parameters = {key: value for key, value in sorted((sent.parameters or {}).items()) if value is not None}
    if not parameters.get(DDL_TIME, "").strip("0"):
        parameters[DDL_TIME] = str(context.ddl_time_s())
    return Partition(
        values=list(sent.values),
        dbName=table.dbName,
        tableName=table.tableName,
        createTime=sent.createTime or 0,
        lastAccessTime=sent.lastAccessTime or 0,
        sd=None if sent.sd is None or old.sd is None else _new_descriptor(context, table, old.sd, sent.sd),
        parameters=dict(sorted(parameters.items())),
        catName=table.catName,
        writeId=write_id if write_id is not None else sent.writeId or 0,
    )


def _new_descriptor(
    context: StoreContext, table: Table, old: StorageDescriptor, sent: StorageDescriptor
) -> StorageDescriptor:
    new = own_descriptor(sent)
    if sent.cols is not None and not sent.cols and table.sd is not None:
        new.cols = table.sd.cols
    # If a client omits the location, the location does not change.
    new.location = _new_location(context, table, old, sent.location) if sent.location else old.location
    return new


def _new_location(context: StoreContext, table: Table, old: StorageDescriptor, sent: str) -> str:
    """The location to store. Raises MetaException for a new location with a scheme that is not allowed."""
    location = resolved_location(context, table, sent)
    if sent != old.location and str(location) != old.location:
        context.warehouse.require_known_scheme(location)
    return str(location)


def resolved_location(context: StoreContext, table: Table, text: str) -> Location:
    """The location that a client names. As in Hive it may be relative, here to the table's directory, so that stored
    locations are always complete."""
    if is_relative(text) and table.sd is not None and table.sd.location:
        return context.warehouse.location(table.sd.location).resolve(text)
    return context.warehouse.location(text)


def place_of(partition: Partition) -> str | None:
    """Location of a partition. None: it has no storage descriptor, or no location."""
    return None if partition.sd is None else partition.sd.location
