"""Names, counts and key values of partitions, names as text, and the marks that partitions get for events."""

from __future__ import annotations

from dataclasses import replace

from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import parse_partition_name
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import specified_table
from hms_cache.server.handlers.partitions import (
    check_not_empty,
    limit,
    partition_query,
    positional,
    selected_by,
)
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByPartialValues,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetPartitionNamesPsResponse,
    MetaException,
    NoSuchObjectException,
    PartitionValuesResponse,
)

handlers = HandlerTable()

NO_CONDITION = b"\xff"
"""The expression that Hive 4 sends in `get_partition_names_req` for SHOW PARTITIONS without WHERE."""


def _names(call: Call, query: PartitionQuery, order: str | None = None) -> list[str]:
    return call.stores.reads.partitions.get_partition_names(query, order=order)


def _all_names(call: Call, query: PartitionQuery) -> list[str]:
    """Names of all partitions. A missing table has none (Hive 4.0.1)."""
    check_not_empty(query.table)
    try:
        return _names(call, query)
    except NoSuchObjectException:
        return []


@handlers.read("get_partition_names")
def get_partition_names(call: Call, arguments: methods.get_partition_names_args) -> list[str]:
    return _all_names(call, PartitionQuery(positional(arguments), AllPartitions(), limit(arguments.max_parts)))


@handlers.read("fetch_partition_names_req")
def fetch_partition_names_req(call: Call, arguments: methods.fetch_partition_names_req_args) -> list[str]:
    return _all_names(call, partition_query(arguments.partitionReq, AllPartitions()))


@handlers.read("get_partition_names_ps")
def get_partition_names_ps(call: Call, arguments: methods.get_partition_names_ps_args) -> list[str]:
    name = positional(arguments).as_stored
    selection = _named_values(call, name, arguments.part_vals)
    return _names(call, PartitionQuery(name, selection, limit(arguments.max_parts)))


def _named_values(call: Call, name: TableName, values: list[str] | None) -> ByPartialValues:
    """Names are requested with at least one value, which may be empty: Hive refuses less, and the tests of its client
    check that.

    If the table does not exist, NoSuchObjectException is raised first, as in Hive, here and where the names are read,
    with the name as it would be stored.
    """
    if not values:
        call.stores.reads.tables.get_table(name)
        raise MetaException("Invalid partition key & values; keys [], values []")
    return ByPartialValues(tuple(values))


@handlers.read("get_partition_names_ps_req")
def get_partition_names_ps_req(
    call: Call, arguments: methods.get_partition_names_ps_req_args
) -> GetPartitionNamesPsResponse:
    request = arguments.req
    query = partition_query(request, AllPartitions())
    query = replace(query, table=query.table.as_stored)
    selection = _named_values(call, query.table, request.partValues)
    return GetPartitionNamesPsResponse(names=_names(call, replace(query, selection=selection)))


@handlers.read("get_partition_names_req")
def get_partition_names_req(call: Call, arguments: methods.get_partition_names_req_args) -> list[str]:
    request = arguments.req
    selection = selected_by(call, request) if request.expr != NO_CONDITION else AllPartitions()
    query = partition_query(request, selection)
    with specified_table(query.table):
        return _names(call, query, request.order or None)


@handlers.read("get_num_partitions_by_filter")
def get_num_partitions_by_filter(call: Call, arguments: methods.get_num_partitions_by_filter_args) -> int:
    name = positional(arguments)
    selection: PartitionSelection = ByFilter(arguments.filter) if arguments.filter else AllPartitions()
    with specified_table(name):
        return call.stores.reads.partitions.get_partition_count(PartitionQuery(name, selection))


@handlers.read("get_partition_values")
def get_partition_values(call: Call, arguments: methods.get_partition_values_args) -> PartitionValuesResponse:
    request = arguments.request
    if not request.partitionKeys:
        raise MetaException("The values of no partition key are asked for")
    keys = [key.name for key in request.partitionKeys]
    if None in keys:
        raise MetaException("The values of a partition key without a name are asked for")
    if len(set(keys)) < len(keys):
        # Each would be one more column in every row of the answer.
        raise MetaException("The values of a partition key are asked for more than once")
    try:
        rows = call.stores.reads.partitions.get_partition_values(
            partition_query(request, ByFilter(request.filter) if request.filter else AllPartitions()),
            keys,
            distinct=request.applyDistinct is None or bool(request.applyDistinct),
            ascending=request.ascending is None or bool(request.ascending),
        )
    except NoSuchObjectException as error:
        # The method declares both. Hive 4.0.1 raises this one, and the tests of its client check that.
        raise MetaException(error.message) from error
    return PartitionValuesResponse(partitionValues=rows)


# Names as text and markers


@handlers.read("partition_name_to_vals")
def partition_name_to_vals(call: Call, arguments: methods.partition_name_to_vals_args) -> list[str]:
    return list(parse_partition_name(arguments.part_name).values()) if arguments.part_name else []


@handlers.read("partition_name_to_spec")
def partition_name_to_spec(call: Call, arguments: methods.partition_name_to_spec_args) -> dict[str, str]:
    return parse_partition_name(arguments.part_name) if arguments.part_name else {}


@handlers.read("isPartitionMarkedForEvent")
def is_partition_marked_for_event(call: Call, arguments: methods.isPartitionMarkedForEvent_args) -> bool:
    return call.stores.reads.partitions.is_partition_marked_for_event(
        positional(arguments), arguments.part_vals or {}, arguments.eventType
    )


@handlers.write("markPartitionForEvent")
def mark_partition_for_event(call: Call, arguments: methods.markPartitionForEvent_args) -> None:
    call.stores.writes.partitions.mark_partition_for_event(
        positional(arguments), arguments.part_vals or {}, arguments.eventType
    )
