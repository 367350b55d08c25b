"""Alters and renames partitions.

Facts: `HiveAlterHandler.alterPartition`/`alterPartitions`, `MetaStoreDirectSql.alterPartitions` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.column_types import are_columns_included
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions, Writer
from hms_cache.store.contract.partitions import ByNames, partitions_are_missing
from hms_cache.store.engine.bulk_writes import (
    IDS_IN_A_STATEMENT,
    ParameterChange,
    change_parameters,
    delete_ids,
    in_ids,
    upsert_rows,
)
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.read_plans import carry_out
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import FileAccess
from hms_cache.store.partitions.additions import (
    check_descriptor,
    check_values_allowed,
    insert_partition_values,
    partitioned,
)
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import partitions_by_name, select_for_write
from hms_cache.store.partitions.shared_directories import places_of_other_partitions
from hms_cache.store.replication_sources import check_place_stays
from hms_cache.store.rows.database_rows import require_database
from hms_cache.store.rows.parameters import (
    DDL_TIME,
    FAST_STATISTICS,
    accurate_columns,
    add_columns_to_accuracy,
    doubt_rows_counted_twice,
    forget_directory_statistics,
    has_fast_statistics,
    remove_columns_from_accuracy,
    set_basic_statistics_accurate,
    update_directory_statistics,
)
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid, check_statistics_change
from hms_cache.store.rows.storage_descriptor_updates import DescriptorChange, update_storage_descriptors
from hms_cache.store.rows.storage_descriptors import columns_key, own_descriptor
from hms_cache.store.rows.table_kinds import is_external, is_parameter_true, is_transactional, is_view
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import PART_COL_STATS, PARTITION_KEY_VALS, PARTITION_PARAMS, PARTITIONS
from hms_cache.store.shared_places import partition_places_in_use
from hms_cache.store.soft_drops import (
    DROPPED,
    hide_older_files,
    is_copy_wanted,
    queue_renamed_partition,
    remove_interrupted_drop,
)
from hms_cache.store.transactions.name_changes import ObjectName, rename_in_transaction_tables
from hms_cache.store.waiting_deletions import release_place, release_places, waiting_deletions_plan
from hms_cache.store.warehouse import AllowedLocation
from hms_cache.store.warehouse.locations import Location, is_relative
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidOperationException,
    MetaException,
    Partition,
    StorageDescriptor,
    Table,
)
from hms_cache.values import frozen


@frozen
class _Stored:
    """A partition as stored, with its ids."""

    part_id: int
    sd_id: int | None
    column_descriptor_id: int | None
    partition: Partition


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
        check_place_stays(database, table, writer.options)
    for partition in partitions:
        _check_belongs(table, partition)
    names = [naming.name(partition.values) for partition in partitions]
    stored = _read_stored(context, transaction, row, names)
    if len(stored) != len(names):
        raise InvalidOperationException(partitions_are_missing(len(names), len(stored)))
    files = FileAccess(context, transaction.connection)
    changes = [
        (stored[name], _new_image(context, table, stored[name].partition, partition, writer.given_write_id))
        for name, partition in zip(names, partitions, strict=True)
    ]
    _release_new_places(context, transaction, table, names, changes)
    _update_basic_statistics(context, files, table, changes, writer.options)
    _drop_outdated_column_statistics(transaction, changes)
    aborted = _aborted(transaction, table, [old for old, _ in changes])
    for old, new in changes:
        _settle_write_id(table, old.partition, new, writer.valid_write_ids, aborted)
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
    _check_belongs(table, partition)
    check_values_allowed(partition.values, context.settings.catalog.partition_name_whitelist_pattern)
    old_name, new_name = naming.name(old_values), naming.name(partition.values)
    stored = _read_stored(context, transaction, row, [old_name])
    if old_name not in stored:
        raise InvalidOperationException("Unable to rename partition because old partition does not exist")
    same = partitions_by_name(transaction.connection, partitioned(row), [new_name], is_exact=False)
    if any(part_id != stored[old_name].part_id or each == old_name == new_name for part_id, each in same):
        of = f"{name.as_sent.database}.{name.as_sent.table}"
        raise InvalidOperationException(f"Partition already exists:{of}.[{', '.join(partition.values)}]")
    old = stored[old_name]
    new = _new_image(context, table, old.partition, partition, writer.given_write_id)
    files = FileAccess(context, transaction.connection)
    copying_write_id = new.writeId if is_copy_wanted(table, writer.options, new.writeId) else None
    _move(context, transaction, files, row, old.partition, new, new_name, copying_write_id)
    changes = [(old, new)]
    claimed = accurate_columns(old.partition.parameters or {}) & accurate_columns(new.parameters)
    _update_basic_statistics(context, files, table, changes, NO_OPTIONS, keeps_files=True)
    if claimed and not accurate_columns(new.parameters):
        # The files may have been counted for the first time; the claims about columns remain true, because a rename
        # does not change the rows.
        add_columns_to_accuracy(new.parameters, claimed)
        new.parameters = dict(sorted(new.parameters.items()))
    _drop_outdated_column_statistics(transaction, changes)
    _settle_write_id(table, old.partition, new, writer.valid_write_ids, _aborted(transaction, table, [old]))
    _store(transaction, row, changes)
    if is_transactional(table):
        rename_in_transaction_tables(
            transaction.connection,
            ObjectName(table.dbName, table.tableName, old_name),
            ObjectName(table.dbName, table.tableName, new_name),
            catalog=table.catName,
        )
    if copying_write_id is not None and _place(new) != _place(
        old.partition
    ):  # otherwise these are the files of the new name
        queue_renamed_partition(
            context, transaction, row, old_name, _place(old.partition), copying_write_id, writer.options
        )
    _store_name(transaction, old.part_id, new_name, new)
    for event in context.messages.build_alter_partition_each(
        table, [(old.partition, new)], write_id=new.writeId if new.writeId > 0 else -1
    ):
        transaction.append_event(event)


def _check_belongs(table: Table, partition: Partition) -> None:
    if partition.dbName is not None and normalize_identifier(partition.dbName) != table.dbName:
        raise MetaException(f"Invalid DB name : {partition.dbName}")
    if partition.tableName is not None and normalize_identifier(partition.tableName) != table.tableName:
        raise MetaException(f"Invalid table name : {partition.tableName}")
    if not is_view(table) and (partition.sd is None or partition.sd.serdeInfo is None):
        raise MetaException("Partition does not set storageDescriptor or serdeInfo.")
    if partition.sd is not None:
        check_descriptor(partition.sd)


def _read_stored(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, names: Sequence[str]
) -> dict[str, _Stored]:
    header = partitioned(row)
    selected = select_for_write(transaction.connection, header, ByNames(tuple(names)), context)
    rows = read_partition_rows(transaction.connection, header, selected)
    return {
        name: _Stored(rows.part_ids[index], rows.sd_ids[index], _column_descriptor_id(rows, index), partition)
        for index, (name, partition) in enumerate(zip(rows.names, partitions_of_rows(rows), strict=True))
    }


def _column_descriptor_id(rows: PartitionRows, index: int) -> int | None:
    number = rows.template_numbers[index]
    return None if number is None else rows.column_descriptor_ids[number]


def _new_image(context: StoreContext, table: Table, old: Partition, sent: Partition, write_id: int | None) -> Partition:
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
    location = _location(context, table, sent)
    if sent != old.location and str(location) != old.location:
        context.warehouse.require_known_scheme(location)
    return str(location)


def _location(context: StoreContext, table: Table, text: str) -> Location:
    """The location that a client names. As in Hive it may be relative, here to the table's directory, so that stored
    locations are always complete."""
    if is_relative(text) and table.sd is not None and table.sd.location:
        return context.warehouse.location(table.sd.location).resolve(text)
    return context.warehouse.location(text)


def _update_basic_statistics(
    context: StoreContext,
    files: FileAccess,
    table: Table,
    changes: Sequence[tuple[_Stored, Partition]],
    environment_context: EnvironmentOptions,
    *,
    keeps_files: bool = False,
) -> None:
    """Recomputes numFiles and totalSize unless the client sent them and they are unchanged. If a statistics task or a
    user computed them, only the claim of accuracy is set (`MetaStoreServerUtils.requireCalStats`).

    File systems are asked about all partitions in parallel. A new location has other files, unless the partition's
    files were moved with it (`keeps_files`). So they are counted, and no claim about them is kept unless a statistics
    task has made it. Hive keeps figures and claims there, and then answers `count(*)` from them. If this server may not
    list the new directory, the old figures are removed; if it does not exist yet, it has no files. Claims about
    transactional partitions are checked by write ids instead.
    """
    if environment_context.keeps_partition_statistics or is_view(table):
        return
    is_generated = environment_context.statistics_from is not None
    moved = set()
    if not keeps_files and not is_transactional(table):
        moved = {id(new) for old, new in changes if _is_moved(context, table, old.partition, new)}
    updated: list[Partition] = []
    counted: list[Partition] = []
    for old, new in changes:
        is_same = _has_same_fast_statistics(old.partition.parameters, new.parameters)
        is_same = is_same and id(new) not in moved
        if has_fast_statistics(new.parameters) and is_same and not is_generated:
            continue
        updated.append(new)
        if is_same:
            set_basic_statistics_accurate(new.parameters, environment_context.statistics_from == "TASK")
        elif not is_transactional(table) and new.sd is not None:
            counted.append(new)
    files.judge_texts(new.sd.location for new in counted)
    places = {id(new): place for new in counted if (place := files.allow_text(new.sd.location)) is not None}
    outside = [new for new in counted if id(new) in moved and id(new) not in places]
    vacant = zip(outside, files.vacant(new.sd.location for new in outside), strict=True)
    places |= {id(new): place for new, place in vacant if place is not None}
    found = dict(zip(places, context.warehouse.directory_statistics_all(list(places.values())), strict=True))
    for new in counted:
        update_directory_statistics(new.parameters, found.get(id(new)), environment_context)
        if id(new) in moved and id(new) not in places and not is_generated:
            forget_directory_statistics(new.parameters)
    if not is_transactional(table):
        for old, new in changes:
            doubt_rows_counted_twice(old.partition.parameters or {}, new.parameters, are_files_listed=True)
    for new in updated:
        new.parameters = dict(sorted(new.parameters.items()))


def _is_moved(context: StoreContext, table: Table, old: Partition, new: Partition) -> bool:
    before, after = _place(old), _place(new)
    if before == after or not after:
        return False
    try:
        return not before or str(_location(context, table, before)) != after
    except MetaException:
        return True


def _has_same_fast_statistics(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    try:
        return all(key in old and key in new and int(old[key]) == int(new[key]) for key in FAST_STATISTICS)
    except ValueError:
        return False


_COLUMN_STATISTICS = select(
    PART_COL_STATS.c.CS_ID, PART_COL_STATS.c.PART_ID, PART_COL_STATS.c.COLUMN_NAME, PART_COL_STATS.c.COLUMN_TYPE
).where(in_ids(PART_COL_STATS.c.PART_ID))


def _drop_outdated_column_statistics(
    transaction: WriteTransaction, changes: Sequence[tuple[_Stored, Partition]]
) -> None:
    """Deletes statistics of columns that were removed or have another type now, and the claims that they are
    accurate."""
    changed = {
        old.part_id: new
        for old, new in changes
        if old.partition.sd is not None
        and new.sd is not None
        and new.sd.cols is not old.partition.sd.cols
        and not are_columns_included(old.partition.sd.cols or (), new.sd.cols or ())
    }
    outdated: list[int] = []
    gone: dict[int, list[str]] = {}
    for batch in batches(sorted(changed), IDS_IN_A_STATEMENT):
        for cs_id, part_id, column, type_name in transaction.connection.execute(
            _COLUMN_STATISTICS, {"ids": list(batch)}
        ):
            kept = {field.name.lower(): (field.type or "").lower() for field in changed[part_id].sd.cols or ()}
            if kept.get(column.lower()) != (type_name or "").lower():
                outdated.append(cs_id)
                gone.setdefault(part_id, []).append(column)
    if outdated:
        delete_ids(transaction.connection, PART_COL_STATS.c.CS_ID, outdated)
    for part_id, columns in gone.items():
        remove_columns_from_accuracy(changed[part_id].parameters, columns)


def _aborted(transaction: WriteTransaction, table: Table, stored: Sequence[_Stored]) -> frozenset[int]:
    if not is_transactional(table):
        return frozenset()
    write_ids = {one.partition.writeId for one in stored}
    return aborted_write_ids(transaction.connection, (table.catName, table.dbName, table.tableName), write_ids)


def _settle_write_id(
    table: Table, old: Partition, new: Partition, valid_write_ids: str | None, aborted: Collection[int]
) -> None:
    """Stores the writer's write id in a transactional table, and removes claims about statistics that it has not seen.

    Raises MetaException if a request without write id or list changes the claims (`ObjectStore.alterPartitionNoTxn`):
    it would not be known for which readers they are valid.
    """
    if is_transactional(table):
        check_statistics_change(
            f"{table.dbName}.{table.tableName}",
            old.parameters or {},
            new.parameters,
            new.writeId,
            valid_write_ids,
            is_column_change=False,
        )
    if is_transactional(table) and valid_write_ids is not None and new.writeId > 0:
        if not are_statistics_valid(
            new.parameters, old.writeId, valid_write_ids, is_complete_writer=True, aborted=aborted
        ):
            set_basic_statistics_accurate(new.parameters, False)
    else:
        new.writeId = old.writeId


def _store(transaction: WriteTransaction, row: TableRow, changes: Sequence[tuple[_Stored, Partition]]) -> None:
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


def _move(
    context: StoreContext,
    transaction: WriteTransaction,
    files: FileAccess,
    row: TableRow,
    old: Partition,
    new: Partition,
    new_name: str,
    copying_write_id: int | None,
) -> None:
    """Sets the location that belongs to the new name, and renames the directory if it exists.

    With `copying_write_id` the directory is copied instead, and the old files are hidden from readers that see this
    write id. The location of a partition does not change if the table is external, or if its directory must not be
    moved because it is not allowed or another object or partition uses it.
    """
    table = row.table
    if new.sd is None or old.sd is None:
        return
    moves = not is_external(table) or is_parameter_true(table, "TRANSLATED_TO_EXTERNAL")
    if not moves or table.sd is None or not table.sd.location or not old.sd.location:
        new.sd.location = old.sd.location
        return
    warehouse = context.warehouse
    source = warehouse.location(old.sd.location)
    root = warehouse.location(table.sd.location).spelled_as(source)
    goal = root.child(*new_name.split("/"))
    if not source.is_same_file_system(goal):
        raise InvalidOperationException(
            f"New table location {goal} is on a different file system than the old location {source}. "
            "This operation is not supported."
        )
    if not warehouse.manages_files:
        new.sd.location = old.sd.location  # the files there cannot be moved
        return
    if source == goal:
        new.sd.location = str(goal)
        return
    place, new_place = files.allow(source), files.allow(goal)
    naming = PartitionNaming([key.name for key in table.partitionKeys or ()])
    if (
        place is None
        or new_place is None
        or not place.is_below_root
        or source == root
        or root.is_inside(source)
        or partition_places_in_use(context, transaction.connection, row, [source])
        or places_of_other_partitions(context, transaction.connection, row, root, [(naming.name(old.values), source)])
    ):
        new.sd.location = old.sd.location
        return
    changes = warehouse.changes(transaction)
    if copying_write_id is not None:
        changes.remove_interrupted_copy(new_place)
    there = None if changes.resume_rename(place, new_place) else _where_it_is(context, transaction, row, root, place)
    if there is not None:
        if changes.is_taken(there, new_place):
            raise InvalidOperationException(
                f"New location for this table {table.dbName}.{table.tableName} already exists : {goal}"
            )
        if copying_write_id is None or there is not place:
            changes.rename_directory(there, new_place, origin=place)
        else:
            remove_interrupted_drop(warehouse, place, copying_write_id)
            changes.copy_directory(place, new_place)
            hide_older_files(changes, place, copying_write_id, DROPPED)
    new.sd.location = str(goal)
    release_place(context, transaction.connection, table, goal, new_name)


def _release_new_places(
    context: StoreContext,
    transaction: WriteTransaction,
    table: Table,
    names: Sequence[str],
    changes: Sequence[tuple[_Stored, Partition]],
) -> None:
    """Makes sure that no cleaner deletes the directories to which this change moves partitions."""
    moved = [
        (name, context.warehouse.location(new.sd.location))
        for name, (old, new) in zip(names, changes, strict=True)
        if new.sd is not None and new.sd.location and new.sd.location != _place(old.partition)
    ]
    if moved:
        waiting = carry_out(transaction.connection, waiting_deletions_plan(transaction.connection))
        release_places(context, transaction.connection, table, moved, waiting)


def _where_it_is(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, root: Location, place: AllowedLocation
) -> AllowedLocation | None:
    """The directory of a partition whose row says that it is at `place`; None if there is none.

    A rename that ended without its commit may have moved the directory aside. If another partition has been added at
    that location meanwhile, the directory belongs to that one.
    """
    warehouse = context.warehouse
    if warehouse.is_directory(place):
        return place
    moved = warehouse.move_records.moved_beside(place)
    if moved is None or not moved[0].location.is_inside(root):
        return None
    found, record = moved
    name = found.location.path[len(root.path.rstrip("/")) + 1 :]
    if partitions_by_name(transaction.connection, partitioned(row), [name], is_exact=False):
        return None
    warehouse.changes(transaction).forget_after_commit(record)
    return found


def _place(partition: Partition) -> str | None:
    return None if partition.sd is None else partition.sd.location


def _log(
    context: StoreContext, transaction: WriteTransaction, table: Table, changes: Sequence[tuple[_Stored, Partition]]
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
