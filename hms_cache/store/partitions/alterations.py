"""Alters and renames partitions.

Facts: `HiveAlterHandler.alterPartition`/`alterPartitions`, `MetaStoreDirectSql.alterPartitions` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.contract.environment import NO_OPTIONS, Writer
from hms_cache.store.contract.partitions import partitions_are_missing
from hms_cache.store.engine.bulk_writes import (
    ParameterChange,
    change_parameters,
    delete_ids,
    upsert_rows,
)
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import FileAccess
from hms_cache.store.partitions.additions import (
    check_values_allowed,
    insert_partition_values,
    partitioned,
)
from hms_cache.store.partitions.altered_statistics import (
    drop_outdated_column_statistics,
    read_aborted_write_ids,
    settle_write_id,
    update_basic_statistics,
)
from hms_cache.store.partitions.images import StoredPartition, check_belongs, new_image, place_of, read_stored
from hms_cache.store.partitions.moves import move_directory, release_new_locations
from hms_cache.store.partitions.selection import partitions_by_name
from hms_cache.store.replication_sources import check_location_stays
from hms_cache.store.rows.database_rows import require_database
from hms_cache.store.rows.parameters import (
    accurate_columns,
    add_columns_to_accuracy,
)
from hms_cache.store.rows.storage_descriptor_updates import DescriptorChange, update_storage_descriptors
from hms_cache.store.rows.storage_descriptors import columns_key
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import PART_COL_STATS, PARTITION_KEY_VALS, PARTITION_PARAMS, PARTITIONS
from hms_cache.store.soft_drops import (
    needs_copy,
    queue_renamed_partition,
)
from hms_cache.store.transactions.name_changes import ObjectName, rename_in_transaction_tables
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidOperationException,
    Partition,
    Table,
)


def alter_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    partitions: Sequence[Partition],
    *,
    writer: Writer,
) -> None:
    """Replaces partitions of the table inside a transaction, with one event each. A fixed number of statements per some
    thousand partitions. Does not change the given structs."""
    table = row.table
    naming = PartitionNaming([key.name for key in table.partitionKeys or ()])
    if writer.options.sets_location:
        database = require_database(transaction.connection, name_of_table(table).in_database).database
        check_location_stays(database, table, writer.options)
    for partition in partitions:
        check_belongs(table, partition)
    names = [naming.name(partition.values) for partition in partitions]
    stored = read_stored(context, transaction, row, names)
    if len(stored) != len(names):
        raise InvalidOperationException(partitions_are_missing(len(names), len(stored)))
    files = FileAccess(context, transaction.connection)
    changes = [
        (stored[name], new_image(context, table, stored[name].partition, partition, writer.given_write_id))
        for name, partition in zip(names, partitions, strict=True)
    ]
    release_new_locations(context, transaction, table, names, changes)
    update_basic_statistics(context, files, table, changes, writer.options)
    drop_outdated_column_statistics(transaction, changes)
    aborted = read_aborted_write_ids(transaction, table, [old for old, _ in changes])
    for old, new in changes:
        settle_write_id(table, old.partition, new, writer.valid_write_ids, aborted)
    _store(transaction, row, changes)
    _log(context, transaction, table, changes)


def rename_partition(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    old_values: Sequence[str],
    partition: Partition,
    *,
    writer: Writer,
    name: TableName,
) -> None:
    """Gives a partition other values inside a transaction, and moves the directory if the table is managed.

    If the context asks for a copy (`copies_renamed`), the old directory stays for its current readers: an empty base
    hides its files from later readers, and it is queued for cleaning. `name`: the table as the request names it.
    """
    table = row.table
    naming = PartitionNaming([key.name for key in table.partitionKeys or ()])
    if not old_values:
        raise InvalidOperationException("Unable to rename partition because its old values are missing")
    check_belongs(table, partition)
    check_values_allowed(partition.values, context.settings.catalog.partition_name_whitelist_pattern)
    old_name, new_name = naming.name(old_values), naming.name(partition.values)
    stored = read_stored(context, transaction, row, [old_name])
    if old_name not in stored:
        raise InvalidOperationException("Unable to rename partition because old partition does not exist")
    same = partitions_by_name(transaction.connection, partitioned(row), [new_name], is_exact=False)
    if any(part_id != stored[old_name].part_id or each == old_name == new_name for part_id, each in same):
        of = f"{name.as_sent.database}.{name.as_sent.table}"
        raise InvalidOperationException(f"Partition already exists:{of}.[{', '.join(partition.values)}]")
    old = stored[old_name]
    new = new_image(context, table, old.partition, partition, writer.given_write_id)
    files = FileAccess(context, transaction.connection)
    copying_write_id = new.writeId if needs_copy(table, writer.options, new.writeId) else None
    move_directory(context, transaction, files, row, old.partition, new, new_name, copying_write_id)
    changes = [(old, new)]
    claimed = accurate_columns(old.partition.parameters or {}) & accurate_columns(new.parameters)
    update_basic_statistics(context, files, table, changes, NO_OPTIONS, keeps_files=True)
    if claimed and not accurate_columns(new.parameters):
        # The files may have been counted for the first time; the claims about columns remain true, because a rename
        # does not change the rows.
        add_columns_to_accuracy(new.parameters, claimed)
        new.parameters = dict(sorted(new.parameters.items()))
    drop_outdated_column_statistics(transaction, changes)
    settle_write_id(
        table, old.partition, new, writer.valid_write_ids, read_aborted_write_ids(transaction, table, [old])
    )
    _store(transaction, row, changes)
    if is_transactional(table):
        rename_in_transaction_tables(
            transaction.connection,
            ObjectName(table.dbName, table.tableName, old_name),
            ObjectName(table.dbName, table.tableName, new_name),
            catalog=table.catName,
        )
    if copying_write_id is not None and place_of(new) != place_of(
        old.partition
    ):  # otherwise these are the files of the new name
        queue_renamed_partition(
            context, transaction, row, old_name, place_of(old.partition), copying_write_id, writer.options
        )
    _store_name(transaction, old.part_id, new_name, new)
    for event in context.messages.build_alter_partition_each(
        table, [(old.partition, new)], write_id=new.writeId if new.writeId > 0 else -1
    ):
        transaction.append_event(event)


def _store(transaction: WriteTransaction, row: TableRow, changes: Sequence[tuple[StoredPartition, Partition]]) -> None:
    connection = transaction.connection
    features = features_of(connection)
    upsert_rows(
        connection,
        PARTITIONS,
        [
            features.writable(
                PARTITIONS,
                {
                    "PART_ID": old.part_id,
                    "CREATE_TIME": new.createTime,
                    "LAST_ACCESS_TIME": new.lastAccessTime,
                    "WRITE_ID": max(new.writeId, 0),
                },
            )
            for old, new in changes
            if (new.createTime, new.lastAccessTime, new.writeId)
            != (old.partition.createTime, old.partition.lastAccessTime, old.partition.writeId)
        ],
    )
    change_parameters(
        connection,
        PARTITION_PARAMS,
        "PART_ID",
        [ParameterChange(old.part_id, old.partition.parameters, new.parameters) for old, new in changes],
    )
    update_storage_descriptors(
        transaction,
        [
            DescriptorChange(old.sd_id, old.column_descriptor_id, old.partition.sd, new.sd)
            for old, new in changes
            if old.sd_id is not None and new.sd is not None
        ],
        column_descriptors=_columns_of_table(row),
    )


def _columns_of_table(row: TableRow) -> dict[tuple[tuple[str, str | None, str | None], ...], int]:
    if row.cd_id is None or row.table.sd is None:
        return {}
    return {columns_key(row.table.sd.cols): row.cd_id}


def _store_name(transaction: WriteTransaction, part_id: int, name: str, partition: Partition) -> None:
    connection = transaction.connection
    try:
        connection.execute(update(PARTITIONS).where(PARTITIONS.c.PART_ID == part_id).values(PART_NAME=name))
    except IntegrityError as error:
        raise RetryableConflict("a partition of the new name was added by another transaction") from error
    delete_ids(connection, PARTITION_KEY_VALS.c.PART_ID, [part_id])
    insert_partition_values(connection, {name: part_id}, {name: partition})
    if features_of(connection).has(PART_COL_STATS.c.PARTITION_NAME):
        connection.execute(
            update(PART_COL_STATS).where(PART_COL_STATS.c.PART_ID == part_id).values(PARTITION_NAME=name)
        )


def _log(
    context: StoreContext,
    transaction: WriteTransaction,
    table: Table,
    changes: Sequence[tuple[StoredPartition, Partition]],
) -> None:
    """Logs one ALTER_PARTITION each, or ALTER_PARTITIONS if so configured. Such an event contains changes of one write
    id only, and a client sends only one."""
    if context.settings.events.single_alter_partitions_event:
        for event in context.messages.build_alter_partitions(table, [new for _, new in changes]):
            transaction.append_event(event)
        return
    pairs: dict[int, list[tuple[Partition, Partition]]] = {}
    for old, new in changes:
        pairs.setdefault(new.writeId if new.writeId > 0 else -1, []).append((old.partition, new))
    for write_id, images in pairs.items():
        for event in context.messages.build_alter_partition_each(table, images, write_id=write_id):
            transaction.append_event(event)
