"""Adds partitions: checks, directories, parameters, and bulk inserts.

Facts: `HMSHandler.add_partitions_core`, `MetaStoreServerUtils.updatePartitionStatsFast`, `ObjectStore.addPartitions`
(Hive 4.0.1).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.metadata.struct_texts import java_text
from hms_cache.patterns.java_regex import JavaRegexError, java_regex
from hms_cache.store.contract.environment import EnvironmentOptions, Writer
from hms_cache.store.contract.partitions import FromTable
from hms_cache.store.engine.bulk_writes import ParameterChange, change_parameters, insert_rows, insert_together
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.read_plans import execute_plan, side_by_side
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import FileAccess
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.selection import by_name_plan
from hms_cache.store.replication_files import files_of_new_partitions
from hms_cache.store.rows.parameters import (
    DO_NOT_UPDATE_STATS,
    has_fast_statistics,
    set_ddl_time,
    update_directory_statistics,
)
from hms_cache.store.rows.storage_descriptor_writes import insert_storage_descriptors
from hms_cache.store.rows.storage_descriptors import ColumnsKeys, own_descriptor
from hms_cache.store.rows.table_kinds import is_parameter_true, is_transactional, is_view
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import (
    PART_COL_PRIVS,
    PART_PRIVS,
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
    TBL_COL_PRIVS,
    TBL_PRIVS,
)
from hms_cache.store.waiting_deletions import WaitingDeletion, release_locations, waiting_deletions_plan
from hms_cache.store.warehouse import AllowedLocation, Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    MetaException,
    Partition,
    StorageDescriptor,
    Table,
)
from hms_cache.values import frozen

PARTITION_LEVEL_PRIVILEGE = "PARTITION_LEVEL_PRIVILEGE"


def partitioned(row: TableRow) -> PartitionedTable:
    """The part of a table that is needed to read its partitions."""
    table = row.table
    return PartitionedTable(
        row.table_id,
        table.catName,
        table.dbName,
        table.tableName,
        table.tableType,
        row.sd_id,
        tuple((key.name, key.type) for key in table.partitionKeys or ()),
        is_transactional(table),
    )


def add_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    partitions: Sequence[Partition],
    *,
    if_not_exists: bool,
    writer: Writer,
    of: TableName,
) -> list[Partition]:
    """Adds the partitions to the table inside a transaction, with directories and event; returns them as stored.

    Does not change the given structs. A fixed number of statements per 5,000 partitions. `of`: the table as the request
    names it.
    """
    table = row.table
    names = check_partitions(context, table, partitions, of)
    existing, waiting = _existing_names_and_deletions(transaction.connection, partitioned(row), names)
    new: dict[str, Partition] = {}
    for name, partition in zip(names, partitions, strict=True):
        if name in existing:
            if not if_not_exists:
                raise AlreadyExistsException(f"Partition already exists: {java_text(partition)}")
        elif name in new:
            raise MetaException(f"Duplicate partitions in the list: {java_text(partition)}")
        else:
            new[name] = _own_copy(table, partition, writer.write_id)
    if not new:
        return []
    requested = prepare_added(context, transaction, table, new, writer.options)
    if waiting:
        placed = {name: each.sd.location for name, each in new.items() if each.sd is not None and each.sd.location}
        located = ((name, context.warehouse.location(text)) for name, text in placed.items())
        release_locations(context, transaction.connection, table, located, waiting)
    part_ids = insert_partitions(context, transaction, row, new)
    # After the rows: if another call has taken a name, this one fails before it could undo the other's directory.
    places = _make_directories(context, transaction, requested)
    if context.warehouse.manages_files and gathers_statistics(context, table):
        counted = {each.name: each.place for each in requested if each.name in places and not each.has_statistics}
        _count_files(context, transaction, table, new, counted, part_ids, writer.options)
    files = files_of_new_partitions(context, transaction.connection, table, new, places)
    added = list(new.values())
    for event in context.messages.build_add_partitions(table, added, files):
        transaction.append_event(event)
    return added


def like_table(table: Table, partitions: Sequence[Partition], from_table: FromTable) -> Sequence[Partition]:
    """The partitions with what they inherit from the table, whose row is locked. Does not change the given structs."""
    if from_table is FromTable.NOTHING or table.sd is None:
        return partitions
    changed = []
    for partition in partitions:
        own = copy.copy(partition)
        if from_table is FromTable.DESCRIPTOR:
            own.sd = copy.copy(table.sd)
            own.sd.location = None  # type: ignore[assignment]  # it has none of its own
        elif own.sd is not None:
            own.sd = copy.copy(own.sd)
            own.sd.cols = table.sd.cols
        changed.append(own)
    return changed


def _existing_names_and_deletions(
    connection: Connection, table: PartitionedTable, names: Sequence[str]
) -> tuple[set[str], list[WaitingDeletion]]:
    """The names that exist, and the directories that are queued for deletion.

    Raises AlreadyExistsException if the database considers two different names equal: MySQL ignores trailing blanks.
    """
    pairs, waiting = execute_plan(
        connection,
        side_by_side(by_name_plan(connection, table, names, is_exact=False), waiting_deletions_plan(connection)),
    )
    found = {name for _, name in pairs}
    confused = sorted(found.difference(names))
    if connection.dialect.name in ("mysql", "mariadb"):
        seen: dict[str, str] = {}
        confused += [name for name in names if seen.setdefault(name.rstrip(" "), name) != name]
    if confused:
        raise AlreadyExistsException(
            f"Partition already exists: the database does not distinguish {confused[0]!r} from another partition name"
        )
    return found, waiting


def check_partitions(context: StoreContext, table: Table, partitions: Sequence[Partition], of: TableName) -> list[str]:
    """The names of the partitions. Raises MetaException if the table cannot have such a partition."""
    database, name = table.dbName, table.tableName
    pattern = context.settings.catalog.partition_name_whitelist_pattern
    naming = PartitionNaming([key.name for key in table.partitionKeys or ()])
    names = []
    for partition in partitions:
        if partition.dbName is None or partition.tableName is None:
            raise MetaException("The database and table name must be set in the partition.")
        if (normalize_identifier(partition.dbName), normalize_identifier(partition.tableName)) != (database, name):
            raise MetaException(
                f"Partition does not belong to target table {of.as_sent}. It belongs to the table "
                f"{partition.dbName}.{partition.tableName} : {java_text(partition)}"
            )
        if not partition.values:
            raise MetaException("The partition values cannot be null or empty.")
        if None in partition.values:
            raise MetaException("Partition value cannot be null.")
        if partition.sd is not None:
            check_descriptor(partition.sd)
        check_values_allowed(partition.values, pattern)
        names.append(naming.name(partition.values))
    return names


def check_descriptor(descriptor: StorageDescriptor) -> None:
    """Raises MetaException if a partition's storage descriptor has no SerDe, or a column without name or type."""
    if descriptor.serdeInfo is None:
        raise MetaException("Invalid SerDeInfo object")
    if any(column.name is None for column in descriptor.cols or ()):
        raise MetaException("Column name cannot be null")
    if any(column.type is None for column in descriptor.cols or ()):
        raise MetaException("Column type cannot be null")


def check_values_allowed(values: Iterable[str], pattern: str) -> None:
    """Raises MetaException if `metastore.partition.name.whitelist.pattern` does not match one of the values."""
    if not pattern:
        return
    try:
        matches = java_regex(pattern).matches
        refused = next((value for value in values if not matches(value)), None)
    except JavaRegexError as error:
        raise MetaException(f"metastore.partition.name.whitelist.pattern: {error}") from error
    if refused is not None:
        raise MetaException(
            f"Partition value '{refused}' contains a character not matched by whitelist pattern '{pattern}'.  "
            "(configure with metastore.partition.name.whitelist.pattern)"
        )


def _own_copy(table: Table, partition: Partition, write_id: int | None) -> Partition:
    """A copy that may be changed: names as stored, its own parameters and descriptor."""
    sd = partition.sd
    return Partition(
        values=list(partition.values),
        dbName=table.dbName,
        tableName=table.tableName,
        createTime=partition.createTime,
        lastAccessTime=partition.lastAccessTime or 0,
        sd=None if sd is None else own_descriptor(sd),
        parameters=dict(sorted((partition.parameters or {}).items())),
        catName=table.catName,
        writeId=_positive(write_id) or _positive(partition.writeId) or -1,
    )


def _positive(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None


@frozen
class _RequestedPartition:
    """The directory of a new partition, to be created if it does not exist."""

    name: str
    place: AllowedLocation
    may_be_listed: bool
    has_statistics: bool
    """Whether the client has sent the basic statistics."""


def prepare_added(
    context: StoreContext,
    transaction: WriteTransaction,
    table: Table,
    partitions: Mapping[str, Partition],
    options: EnvironmentOptions,
) -> list[_RequestedPartition]:
    """Completes new partitions, which are given by name: locations, times and inherited parameters.

    Returns the directories that they need.
    """
    warehouse = context.warehouse
    root = None if table.sd is None or not table.sd.location else warehouse.location(table.sd.location)
    files = FileAccess(context, transaction.connection)
    now, ddl_time_s = context.now_s(), context.ddl_time_s()
    places: list[tuple[str, Location, bool]] = []
    for name, partition in partitions.items():
        location = None
        given = None if partition.sd is None else partition.sd.location
        if given:
            if root is None:
                raise MetaException("Cannot specify location for a view partition")
            location = warehouse.location(given)
            warehouse.require_known_scheme(location)
        elif root is not None:
            location = root.child(*name.split("/"))
        if location is not None:
            if partition.sd is None:
                raise MetaException("Invalid partition: it has no storage descriptor")
            partition.sd.location = str(location)
            places.append((name, location, has_fast_statistics(partition.parameters)))
        partition.createTime = now
        set_ddl_time(partition.parameters, ddl_time_s)
        _inherit_parameters(context, table, partition)
    allowed = files.allow_making_all([location for _, location, _ in places])
    if gathers_statistics(context, table):
        unknown = (
            name for name, location, has_location in places if not has_location and files.allow(location) is None
        )
        for name in unknown:
            _withdraw_uncertain_claims(partitions[name], options)
    return [
        _RequestedPartition(name, place, files.allow(location) is not None, has_statistics)
        for (name, location, has_statistics), place in zip(places, allowed, strict=True)
        if place is not None
    ]


def _withdraw_uncertain_claims(partition: Partition, options: EnvironmentOptions) -> None:
    """Removes claims of accuracy if this server may not list the directory and the client has not sent all figures.

    Clients of Hive 2, and Spark with them, claim for a partition with files that it has exactly 0 rows. A server that
    counts the files removes this claim. Source: `MetaStoreServerUtils.updatePartitionStatsFast` (Hive 4.0.1).
    """
    update_directory_statistics(partition.parameters, None, options)
    partition.parameters = dict(sorted(partition.parameters.items()))


def _inherit_parameters(context: StoreContext, table: Table, partition: Partition) -> None:
    inherited = inherited_parameters(table, context.settings.catalog.inherited_table_parameters)
    partition.parameters = dict(sorted((partition.parameters | inherited).items()))


def _make_directories(
    context: StoreContext, transaction: WriteTransaction, requested: Sequence[_RequestedPartition]
) -> dict[str, AllowedLocation]:
    """Creates missing directories. Returns those that existed before and may be listed, by partition name."""
    made = context.warehouse.changes(transaction).make_directories([each.place for each in requested])
    return {
        each.name: each.place
        for each, is_made in zip(requested, made, strict=True)
        if each.may_be_listed and not is_made
    }


def _count_files(
    context: StoreContext,
    transaction: WriteTransaction,
    table: Table,
    partitions: Mapping[str, Partition],
    places: Mapping[str, AllowedLocation],
    part_ids: Mapping[str, int],
    options: EnvironmentOptions,
) -> None:
    """Stores the basic statistics of partitions whose directories existed before."""
    found = context.warehouse.directory_statistics_all(list(places.values()))
    changes = []
    for name, statistics in zip(places, found, strict=True):
        partition = partitions[name]
        before, partition.parameters = partition.parameters, dict(partition.parameters)
        update_directory_statistics(partition.parameters, statistics, options)
        _inherit_parameters(context, table, partition)
        changes.append(ParameterChange(part_ids[name], before, partition.parameters))
    change_parameters(transaction.connection, PARTITION_PARAMS, "PART_ID", changes)


def inherited_parameters(table: Table, names: Sequence[str]) -> dict[str, str]:
    """The table parameters that new partitions inherit: those named, or all if `names` contains ``*``."""
    parameters: dict[str, str] = table.parameters or {}
    return {name: value for name, value in parameters.items() if name in names or "*" in names}


def gathers_statistics(context: StoreContext, table: Table) -> bool:
    """Whether the server computes numFiles and totalSize of the table's partitions (Hive's `canUpdateStats`)."""
    return (
        context.settings.catalog.statistics_autogather
        and not is_view(table)
        and not is_parameter_true(table, DO_NOT_UPDATE_STATS)
    )


def insert_partitions(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, partitions: Mapping[str, Partition]
) -> dict[str, int]:
    """Inserts rows for the partitions, which are given by name, and returns their ids. Copies the table's privileges if
    it keeps privileges per partition. If another transaction has inserted the same name, the whole transaction runs
    again."""
    connection = transaction.connection
    features = features_of(connection)
    with_sd = {name: partition for name, partition in partitions.items() if partition.sd is not None}
    key_of = ColumnsKeys()
    own_columns = None if row.cd_id is None or row.table.sd is None else key_of(row.table.sd.cols)
    sd_ids = insert_storage_descriptors(
        transaction,
        [partition.sd for partition in with_sd.values()],
        column_descriptor_ids=[
            row.cd_id if key_of(partition.sd.cols) == own_columns and partition.sd.cols is not None else None
            for partition in with_sd.values()
        ],
    )
    sd_id_of = dict(zip(with_sd, sd_ids, strict=True))
    part_ids = dict(zip(partitions, transaction.ids("MPartition", len(partitions)), strict=True))
    own_rows = [
        features.writable(
            PARTITIONS,
            {
                "PART_ID": part_ids[name],
                "CREATE_TIME": partition.createTime or 0,
                "LAST_ACCESS_TIME": partition.lastAccessTime or 0,
                "PART_NAME": name,
                "SD_ID": sd_id_of.get(name),
                "TBL_ID": row.table_id,
                "WRITE_ID": max(partition.writeId or 0, 0),
            },
        )
        for name, partition in partitions.items()
    ]
    parameters = [
        {"PART_ID": part_ids[name], "PARAM_KEY": key, "PARAM_VALUE": value}
        for name, partition in partitions.items()
        for key, value in (partition.parameters or {}).items()
        if value is not None
    ]
    values = _rows_of_values(part_ids, partitions)
    try:
        # Upserted, as for tables.
        insert_together(
            connection,
            {PARTITIONS: own_rows, PARTITION_KEY_VALS: values, PARTITION_PARAMS: parameters},
            upserted=[PARTITION_PARAMS],
        )
    except IntegrityError as error:
        raise RetryableConflict("a partition was added, or the table dropped, by another transaction") from error
    if is_parameter_true(row.table, PARTITION_LEVEL_PRIVILEGE):
        _inherit_privileges(transaction, row.table_id, list(part_ids.values()), context.now_s())
    return part_ids


def insert_partition_values(
    connection: Connection, part_ids: Mapping[str, int], partitions: Mapping[str, Partition]
) -> None:
    """Inserts rows of PARTITION_KEY_VALS for the partitions, which are given by name."""
    insert_rows(connection, PARTITION_KEY_VALS, _rows_of_values(part_ids, partitions))


def _rows_of_values(part_ids: Mapping[str, int], partitions: Mapping[str, Partition]) -> list[dict[str, Any]]:
    return [
        {"PART_ID": part_ids[name], "PART_KEY_VAL": value, "INTEGER_IDX": position}
        for name, partition in partitions.items()
        for position, value in enumerate(partition.values)
    ]


def _inherit_privileges(transaction: WriteTransaction, table_id: int, part_ids: Sequence[int], now: int) -> None:
    """Copies grants on the table and its columns to each partition."""
    connection = transaction.connection
    for source, target, identity, model, renamed in (
        (TBL_PRIVS, PART_PRIVS, "PART_GRANT_ID", "MPartitionPrivilege", {"TBL_PRIV": "PART_PRIV"}),
        (
            TBL_COL_PRIVS,
            PART_COL_PRIVS,
            "PART_COLUMN_GRANT_ID",
            "MPartitionColumnPrivilege",
            {"TBL_COL_PRIV": "PART_COL_PRIV"},
        ),
    ):
        grants = connection.execute(select(source).where(source.c.TBL_ID == table_id)).all()
        inherited = [_inherited(grant, source, target, renamed) for grant in grants]
        ids = iter(transaction.ids(model, len(grants) * len(part_ids)))
        insert_rows(
            connection,
            target,
            [
                {**grant, identity: next(ids), "PART_ID": part_id, "CREATE_TIME": now}
                for part_id in part_ids
                for grant in inherited
            ],
        )


def _inherited(grant: Row[Any], source: Any, target: Any, renamed: Mapping[str, str]) -> dict[str, Any]:
    values = {renamed.get(column.name, column.name): value for column, value in zip(source.c, grant, strict=True)}
    return {name: value for name, value in values.items() if name in target.c}
