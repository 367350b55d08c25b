"""Writes of partitions."""

from __future__ import annotations

import copy
import time
from typing import Any

from hms_cache.clock import stored_s
from hms_cache.metadata.object_names import TableName
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import requested_table, table_name, write_id, writer
from hms_cache.server.handlers.partition_specs import expand_specs
from hms_cache.server.handlers.partitions import (
    Positional,
    expression,
    partition_of,
    partition_values,
    positional,
    without_columns,
)
from hms_cache.store.contract.environment import EnvironmentOptions, Writer, environment_options
from hms_cache.store.contract.partitions import (
    NO_TABLE_TO_ALTER,
    ByAnyExpression,
    ByExpression,
    ByNames,
    ByValues,
    FromTable,
    PartitionSelection,
    partitions_are_missing,
)
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AddPartitionsResult,
    AlterPartitionsResponse,
    DropPartitionsResult,
    EnvironmentContext,
    FieldSchema,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    RenamePartitionResponse,
)

handlers = HandlerTable()


def _table_of(partitions: list[Partition]) -> TableName:
    first = partitions[0]
    return table_name(first.dbName, first.tableName, first.catName)


def _required(partition: Partition | None) -> Partition:
    if partition is None:
        raise MetaException("Partition cannot be null.")
    return partition


def _required_list(partitions: Any, what: str = "Partition list") -> list[Any]:
    if partitions is None:
        raise MetaException(f"{what} cannot be null.")
    return list(partitions)


def _prepare(name: TableName, partitions: list[Partition]) -> list[Partition]:
    """Fills in what clients leave out: names in the spelling of the request, without prefix, and the time of
    creation."""
    now = stored_s(time.time())
    sent = name.as_sent
    for partition in partitions:
        if partition.dbName is None:
            partition.dbName = sent.database
        if partition.tableName is None:
            partition.tableName = sent.table
        own = table_name(partition.dbName, partition.tableName, partition.catName or sent.catalog).as_sent
        partition.catName, partition.dbName = own.catalog, own.database
        if not partition.createTime:
            partition.createTime = now
    return partitions


def _names_of(partition: Partition) -> tuple[str | None, str | None]:
    return partition.dbName, partition.tableName


def _is_other_spelling(one: Partition, other: Partition) -> bool:
    """Whether it is of the same table. A partition of another table is refused later."""
    same = [table_name(*_names_of(each)) for each in (one, other)]
    return _names_of(one) != _names_of(other) and same[0] == same[1]


def _require_names(
    call: Call,
    name: TableName,
    partitions: list[Partition],
    *,
    one_spelling: bool = False,
    if_missing: type[InvalidObjectException | InvalidOperationException] = InvalidObjectException,
) -> None:
    """Raises MetaException for partitions that do not name their table, or that name it in several spellings where Hive
    compares texts. A missing table is reported first, as in Hive, by an `if_missing`."""
    if any(None in _names_of(partition) for partition in partitions):
        text = "The database and table name must be set in the partition."
    elif one_spelling and any(_is_other_spelling(partition, partitions[0]) for partition in partitions):
        of = f"{name.as_sent.database}.{name.as_sent.table}"
        text = f"Partition does not belong to target table {of}: another is spelled differently"
    else:
        return
    try:
        call.stores.reads.tables.get_table(name)
    except NoSuchObjectException as error:
        raise if_missing(error.message) from error
    raise MetaException(text)


def _add(
    call: Call, name: TableName, partitions: list[Partition], context: EnvironmentContext | None = None, **options: Any
) -> list[Partition]:
    prepared = _prepare(name, partitions)
    added = call.stores.writes.partitions.add_partitions(
        name, prepared, writer=Writer(options=environment_options(context)), **options
    )
    sent = prepared[0]
    for partition in added:
        # Hive returns the names that it was sent: all names of one request have one spelling.
        partition.catName, partition.dbName, partition.tableName = sent.catName, sent.dbName, sent.tableName
    return added


def _add_one(call: Call, partition: Partition, context: EnvironmentContext | None) -> Partition:
    sent = _table_of([partition])
    # Here, and only here, Hive uses its own name for the catalog.
    partition.catName = sent.catalog
    return _add(call, table_name(sent.as_sent.database, sent.as_sent.table, sent.catalog), [partition], context)[0]


def _add_audit(arguments: Any) -> str:
    return f"add_partition : db={arguments.new_part.dbName} tbl={arguments.new_part.tableName}"


@handlers.write("add_partition", audit=_add_audit)
def add_partition(call: Call, arguments: methods.add_partition_args) -> Partition:
    return _add_one(call, _required(arguments.new_part), None)


@handlers.write("add_partition_with_environment_context", audit=_add_audit)
def add_partition_with_environment_context(
    call: Call, arguments: methods.add_partition_with_environment_context_args
) -> Partition:
    return _add_one(call, _required(arguments.new_part), arguments.environment_context)


@handlers.write("add_partitions", audit=lambda a: "add_partitions")
def add_partitions(call: Call, arguments: methods.add_partitions_args) -> int:
    partitions = _required_list(arguments.new_parts)
    if not partitions:
        return 0
    name = _table_of(partitions)
    _require_names(call, name, partitions, one_spelling=True)
    return len(_add(call, name, partitions))


@handlers.write("add_partitions_pspec", audit=lambda a: "add_partitions_pspec")
def add_partitions_pspec(call: Call, arguments: methods.add_partitions_pspec_args) -> int:
    specifications = _required_list(arguments.new_parts, "Partition spec list")
    if not specifications:
        return 0
    # The first spec determines the table (HMSHandler, 4.0.1); partitions of other tables are refused as in any list.
    sent = _table_of(specifications)
    name = table_name(sent.database, sent.table, sent.as_sent.catalog)  # Hive keeps the spelling of the catalog only.
    partitions = expand_specs(specifications)
    _require_names(call, name, partitions)
    return len(_add(call, name, partitions)) if partitions else 0


@handlers.write("add_partitions_req", audit=lambda a: "add_partitions")
def add_partitions_req(call: Call, arguments: methods.add_partitions_req_args) -> AddPartitionsResult:
    request = arguments.request
    needs_result = request.needResult is None or bool(request.needResult)
    added: list[Partition] = []
    columns: list[FieldSchema] | None = None
    if request.parts:
        name = requested_table(request)
        _require_names(call, name, request.parts, one_spelling=True)
        if request.skipColumnSchemaForPartition:
            columns = _columns_of_all(call, name, request)
            _set_columns(request.parts, columns)
        takes_columns = columns is not None and not request.partitionColSchema
        added = _add(
            call,
            name,
            list(request.parts),
            request.environmentContext,
            if_not_exists=bool(request.ifNotExists),
            from_table=FromTable.COLUMNS if takes_columns else FromTable.NOTHING,
        )
        if takes_columns and added and added[0].sd is not None:
            columns = list(added[0].sd.cols or ())
    if not needs_result or not request.parts:
        return AddPartitionsResult()
    if columns is None:
        return AddPartitionsResult(partitions=added)
    _set_columns(added, [])
    return AddPartitionsResult(partitions=added, partitionColSchema=columns if added else None)


def _columns_of_all(call: Call, name: TableName, request: AddPartitionsRequest) -> list[FieldSchema]:
    """The columns of partitions that are sent without columns: given once in the request, or else the table's (Hive
    4.0)."""
    if request.partitionColSchema:
        return list(request.partitionColSchema)
    try:
        table = call.stores.reads.tables.get_table(name)
    except NoSuchObjectException as error:
        raise InvalidObjectException(error.message) from error
    return list((table.sd.cols if table.sd is not None else None) or ())


def _set_columns(partitions: list[Partition], columns: list[FieldSchema]) -> None:
    """The same list for all of them."""
    for partition in partitions:
        if partition.sd is not None:
            partition.sd.cols = columns


def _append(call: Call, name: TableName, values: list[str], context: EnvironmentContext | None = None) -> Partition:
    """A partition with nothing but values: its storage descriptor is the table's (Hive's append_partition)."""
    if not values:
        raise MetaException("The partition values must not be null or empty.")
    try:
        table = call.stores.reads.tables.get_table(name)
    except NoSuchObjectException as error:
        raise InvalidObjectException("Unable to add partition because table or database do not exist") from error
    if table.sd is None or not table.sd.location:
        raise MetaException("Cannot append a partition to a view")
    if len(values) != len(table.partitionKeys or ()):
        raise MetaException(
            f"{len(values)} partition values were given for {len(table.partitionKeys or ())} partition keys"
        )
    descriptor = copy.copy(table.sd)
    descriptor.location = None  # type: ignore[assignment]  # left out of the message
    partition = Partition(values=values, sd=descriptor, parameters={})
    # The object that was read may change before the partition is added.
    return _add(call, name, [partition], context, from_table=FromTable.DESCRIPTOR)[0]


@handlers.write("append_partition")
def append_partition(call: Call, arguments: methods.append_partition_args) -> Partition:
    return _append(call, positional(arguments), list(arguments.part_vals or ()))


@handlers.write("append_partition_with_environment_context")
def append_partition_with_environment_context(
    call: Call, arguments: methods.append_partition_with_environment_context_args
) -> Partition:
    return _append(call, positional(arguments), list(arguments.part_vals or ()), arguments.environment_context)


@handlers.write("append_partition_by_name")
def append_partition_by_name(call: Call, arguments: methods.append_partition_by_name_args) -> Partition:
    name = positional(arguments)
    return _append(call, name, _values_to_append(call, name, arguments.part_name))


@handlers.write("append_partition_by_name_with_environment_context")
def append_partition_by_name_with_environment_context(
    call: Call, arguments: methods.append_partition_by_name_with_environment_context_args
) -> Partition:
    name = positional(arguments)
    return _append(call, name, _values_to_append(call, name, arguments.part_name), arguments.environment_context)


@handlers.write("append_partition_req")
def append_partition_req(call: Call, arguments: methods.append_partition_req_args) -> Partition:
    request = arguments.appendPartitionsReq
    if request.name is None and not request.partVals:
        raise MetaException("The partition values must not be null or empty.")
    name = requested_table(request)
    values = list(request.partVals or ()) or _values_to_append(call, name, request.name)
    return _append(call, name, values, request.environmentContext)


def _values_to_append(call: Call, name: TableName, partition_name: str | None) -> list[str]:
    try:
        return partition_values(call, name, partition_name)
    except NoSuchObjectException as error:
        raise InvalidObjectException(error.message) from error


# Changes


def _alter_one(call: Call, name: TableName, partition: Partition, context: EnvironmentContext | None) -> None:
    """Hive's texts differ if the call is about one partition."""
    try:
        _alter(call, name, [partition], Writer(options=environment_options(context)))
    except InvalidOperationException as error:
        if error.message == NO_TABLE_TO_ALTER:
            text = f"alter is not possible: {NO_TABLE_TO_ALTER}"
        elif error.message == partitions_are_missing(1, 0):
            text = f"alter is not possible: partition values=[{', '.join(partition.values)}]"
        else:
            raise
        raise InvalidOperationException(text) from error


def _alter_all(call: Call, name: TableName, partitions: list[Partition], writer: Writer) -> None:
    try:
        _alter(call, name, partitions, writer)
    except InvalidOperationException as error:
        if error.message != NO_TABLE_TO_ALTER:
            raise
        message_text = (
            "InvalidObjectException(message:Unable to alter partitions because table or database does not exist.)"
        )
        raise InvalidOperationException(f"Alter partition operation failed: {message_text}") from error


def _alter(call: Call, name: TableName, partitions: list[Partition], writer: Writer) -> None:
    if not partitions:
        raise InvalidOperationException("Alter partition operation failed: there are no partitions to alter")
    for partition in partitions:
        own = table_name(
            partition.dbName or name.database, partition.tableName or name.table, partition.catName or name.catalog
        )
        partition.catName, partition.dbName, partition.tableName = own
    call.stores.writes.partitions.alter_partitions(name, partitions, writer=writer)


@handlers.write("alter_partition")
def alter_partition(call: Call, arguments: methods.alter_partition_args) -> None:
    _alter_one(call, positional(arguments), _required(arguments.new_part), None)


@handlers.write("alter_partition_with_environment_context")
def alter_partition_with_environment_context(
    call: Call, arguments: methods.alter_partition_with_environment_context_args
) -> None:
    _alter_one(call, positional(arguments), _required(arguments.new_part), arguments.environment_context)


@handlers.write("alter_partitions")
def alter_partitions(call: Call, arguments: methods.alter_partitions_args) -> None:
    _alter_all(call, positional(arguments), _required_list(arguments.new_parts), Writer())


@handlers.write("alter_partitions_with_environment_context")
def alter_partitions_with_environment_context(
    call: Call, arguments: methods.alter_partitions_with_environment_context_args
) -> None:
    writer = Writer(options=environment_options(arguments.environment_context))
    _alter_all(call, positional(arguments), _required_list(arguments.new_parts), writer)


@handlers.write("alter_partitions_req")
def alter_partitions_req(call: Call, arguments: methods.alter_partitions_req_args) -> AlterPartitionsResponse:
    request = arguments.req
    partitions = list(request.partitions or ())
    if request.skipColumnSchemaForPartition and request.partitionColSchema:
        _set_columns(
            [each for each in partitions if each.sd is not None and not each.sd.cols], request.partitionColSchema
        )
    options = environment_options(request.environmentContext)
    _alter_all(call, requested_table(request), partitions, writer(request, options))
    return AlterPartitionsResponse()


@handlers.write("rename_partition")
def rename_partition(call: Call, arguments: methods.rename_partition_args) -> None:
    name = positional(arguments)
    _require_names(call, name, [_required(arguments.new_part)], if_missing=InvalidOperationException)
    new = _prepare(name, [arguments.new_part])[0]
    call.stores.writes.partitions.rename_partition(name, arguments.part_vals or (), new)


@handlers.write("rename_partition_req")
def rename_partition_req(call: Call, arguments: methods.rename_partition_req_args) -> RenamePartitionResponse:
    request = arguments.req
    name = requested_table(request)
    _require_names(call, name, [_required(request.newPart)], if_missing=InvalidOperationException)
    call.stores.writes.partitions.rename_partition(
        name,
        request.partVals or (),
        _prepare(name, [request.newPart])[0],
        writer=Writer(
            write_id(request.newPart.writeId),
            request.validWriteIdList or None,
            EnvironmentOptions(copies_renamed=bool(request.clonePart), txn_id_text=str(request.txnId or 0)),
        ),
    )
    return RenamePartitionResponse()


# Drops


def _drop_one(call: Call, name: TableName, values: list[str], delete_data: Any, context: Any = None) -> bool:
    with partition_of(name):
        call.stores.writes.partitions.drop_partitions(
            name, ByValues(tuple(values)), delete_data=bool(delete_data), options=environment_options(context)
        )
    return True


def _drop_audit(arguments: Positional) -> str:
    return f"drop_partition : db={arguments.db_name} tbl={arguments.tbl_name}"


@handlers.write("drop_partition", audit=_drop_audit)
def drop_partition(call: Call, arguments: methods.drop_partition_args) -> bool:
    return _drop_one(call, positional(arguments), arguments.part_vals or [], arguments.deleteData)


@handlers.write("drop_partition_with_environment_context", audit=_drop_audit)
def drop_partition_with_environment_context(
    call: Call, arguments: methods.drop_partition_with_environment_context_args
) -> bool:
    return _drop_one(
        call, positional(arguments), arguments.part_vals or [], arguments.deleteData, arguments.environment_context
    )


@handlers.write("drop_partition_by_name", audit=_drop_audit)
def drop_partition_by_name(call: Call, arguments: methods.drop_partition_by_name_args) -> bool:
    name = positional(arguments)
    return _drop_one(call, name, partition_values(call, name, arguments.part_name), arguments.deleteData)


@handlers.write("drop_partition_by_name_with_environment_context", audit=_drop_audit)
def drop_partition_by_name_with_environment_context(
    call: Call, arguments: methods.drop_partition_by_name_with_environment_context_args
) -> bool:
    name = positional(arguments)
    values = partition_values(call, name, arguments.part_name)
    return _drop_one(call, name, values, arguments.deleteData, arguments.environment_context)


@handlers.write("drop_partition_req")
def drop_partition_req(call: Call, arguments: methods.drop_partition_req_args) -> bool:
    request = arguments.dropPartitionReq
    name = requested_table(request)
    values = list(request.partVals or ()) or partition_values(call, name, request.partName)
    return _drop_one(call, name, values, request.deleteData, request.environmentContext)


@handlers.write("drop_partitions_req", audit=lambda a: f"drop_partitions : db={a.req.dbName} tbl={a.req.tblName}")
def drop_partitions_req(call: Call, arguments: methods.drop_partitions_req_args) -> DropPartitionsResult:
    """Drops by names or by expressions. Each expression must select something unless `ifExists` is set (Hive's
    rule)."""
    request = arguments.req
    name = requested_table(request)
    selection: PartitionSelection | ByAnyExpression
    if request.parts is not None and request.parts.names is not None:
        selection = ByNames(tuple(request.parts.names))
    elif request.parts is not None and request.parts.exprs is not None:
        each = (expression(call, requested.expr) for requested in request.parts.exprs)
        selection = ByAnyExpression(tuple(ByExpression(one.expression, None, one.plain_text) for one in each))
    else:
        raise MetaException("DropPartitionsRequest names no partitions: neither names nor expressions are set")
    dropped = call.stores.writes.partitions.drop_partitions(
        name,
        selection,
        delete_data=bool(request.deleteData),
        if_exists=bool(request.ifExists),  # not sent: false
        options=environment_options(request.environmentContext),
    )
    needs_result = request.needResult is None or bool(request.needResult)
    return DropPartitionsResult(partitions=without_columns(request, dropped) if needs_result else None)


@handlers.write("exchange_partition")
def exchange_partition(call: Call, arguments: methods.exchange_partition_args) -> Partition:
    """Exchanges partitions and returns nothing: Hive returns an empty struct, and the tests of its client check
    that."""
    _exchange(call, arguments)
    return Partition(createTime=0, lastAccessTime=0, writeId=None)


@handlers.write("exchange_partitions")
def exchange_partitions(call: Call, arguments: methods.exchange_partitions_args) -> list[Partition]:
    return _exchange(call, arguments)


def _exchange(
    call: Call, arguments: methods.exchange_partition_args | methods.exchange_partitions_args
) -> list[Partition]:
    source = table_name(arguments.source_db, arguments.source_table_name)
    destination = table_name(arguments.dest_db, arguments.dest_table_name)
    moved = call.stores.writes.partitions.exchange_partitions(arguments.partitionSpecs or {}, source, destination)
    for partition in moved:
        # Hive returns the database as it was sent, and the table as it is stored.
        partition.dbName = destination.as_sent.database
    return moved
