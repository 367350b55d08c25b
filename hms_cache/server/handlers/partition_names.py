"""Names, counts and key values of partitions, names as text, and the marks that partitions get for events."""

from __future__ import annotations

from typing import Any

from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import parse_partition_name
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import requested_table, version
from hms_cache.server.handlers.partitions import check_not_empty, limit, no_table_to_filter, positional, selected_by
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByPartialValues, PartitionSelection
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetPartitionNamesPsResponse,
    MetaException,
    NoSuchObjectException,
    PartitionValuesResponse,
)

handlers = HandlerTable()

NO_CONDITION = b"\xff"
"""What Hive 4 sends as the expression of `get_partition_names_req` for SHOW PARTITIONS without WHERE."""


def _names(call: Call, name: TableName, selection: PartitionSelection, **options: Any) -> list[str]:
    return call.stores.reads.partitions.get_partition_names(name, selection, **options)


def _all_names(call: Call, name: TableName, **options: Any) -> list[str]:
    """Names of all partitions; a table that is not there has none (Hive 4.0.1)."""
    check_not_empty(name)
    try:
        return _names(call, name, AllPartitions(), **options)
    except NoSuchObjectException:
        return []


@handlers.read("get_partition_names")
def get_partition_names(call: Call, arguments: methods.get_partition_names_args) -> list[str]:
    return _all_names(call, positional(arguments), max_parts=limit(arguments.max_parts))


@handlers.read("fetch_partition_names_req")
def fetch_partition_names_req(call: Call, arguments: methods.fetch_partition_names_req_args) -> list[str]:
    request = arguments.partitionReq
    return _all_names(call, requested_table(request), max_parts=limit(request.maxParts), version=version(request))


@handlers.read("get_partition_names_ps")
def get_partition_names_ps(call: Call, arguments: methods.get_partition_names_ps_args) -> list[str]:
    name = positional(arguments)
    selection = _named_values(call, name, arguments.part_vals)
    return _names(call, name, selection, max_parts=limit(arguments.max_parts))


def _named_values(call: Call, name: TableName, values: list[str] | None) -> ByPartialValues:
    """Names are asked for with at least one value, be it empty: Hive refuses less, and its client tests for that.

    Raises NoSuchObjectException first where the table is not there, as Hive does.
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
    name = requested_table(request)
    selection = _named_values(call, name, request.partValues)
    names = _names(call, name, selection, max_parts=limit(request.maxParts), version=version(request))
    return GetPartitionNamesPsResponse(names=names)


@handlers.read("get_partition_names_req")
def get_partition_names_req(call: Call, arguments: methods.get_partition_names_req_args) -> list[str]:
    request = arguments.req
    selection = selected_by(call, request) if request.expr != NO_CONDITION else AllPartitions()
    return _names(
        call,
        requested_table(request),
        selection,
        max_parts=limit(request.maxParts),
        order=request.order or None,
        version=version(request),
    )


@handlers.read("get_num_partitions_by_filter")
def get_num_partitions_by_filter(call: Call, arguments: methods.get_num_partitions_by_filter_args) -> int:
    name = positional(arguments)
    selection: PartitionSelection = ByFilter(arguments.filter) if arguments.filter else AllPartitions()
    try:
        return call.stores.reads.partitions.get_partition_count(name, selection)
    except NoSuchObjectException as error:
        raise no_table_to_filter(name) from error


@handlers.read("get_partition_values")
def get_partition_values(call: Call, arguments: methods.get_partition_values_args) -> PartitionValuesResponse:
    request = arguments.request
    if not request.partitionKeys:
        raise MetaException("The values of no partition key are asked for")
    keys = [key.name for key in request.partitionKeys]
    if None in keys:
        raise MetaException("The values of a partition key without a name are asked for")
    if len(set(keys)) < len(keys):
        # Each would be a further column of every row of the answer.
        raise MetaException("The values of a partition key are asked for more than once")
    try:
        rows = call.stores.reads.partitions.get_partition_values(
            requested_table(request),
            keys,
            selection=ByFilter(request.filter) if request.filter else None,
            distinct=request.applyDistinct is None or bool(request.applyDistinct),
            ascending=request.ascending is None or bool(request.ascending),
            max_parts=limit(request.maxParts),
            version=ReadVersion(valid_write_ids=request.validWriteIdList or None),
        )
    except NoSuchObjectException as error:
        # The method declares both; Hive 4.0.1 throws this one, and its client tests for that.
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
