"""Reads of partitions: each spelling becomes one call of the store with another selection."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from thrift.Thrift import TApplicationException

from hms_cache.metadata.column_types import column_names
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import parse_partition_name, values_as_named, values_for_keys
from hms_cache.server.calls import Call, HandlerTable, consistent_snapshot
from hms_cache.server.handlers.names import is_of_table, requested_table, specified_table, table_name, version
from hms_cache.server.handlers.partition_specs import group_partitions, listed_or_grouped
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByExpression,
    ByFilter,
    ByNames,
    ByPartialValues,
    Grantee,
    PartitionProjection,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.rows.parameters import with_accurate_columns
from hms_cache.thrift_gen.base import TBase
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetPartitionResponse,
    GetPartitionsByNamesResult,
    GetPartitionsPsWithAuthResponse,
    GetPartitionsResponse,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionFilterMode,
    PartitionsByExprRequest,
    PartitionsByExprResult,
    PartitionSpec,
    PartitionsResponse,
    PartitionsSpecByExprResult,
)

handlers = HandlerTable()

EXPRESSION_PROXY = "metastore.expression.proxy"
"""The variable by which MSCK's connections announce that their expressions are plain filter texts."""


class Positional(Protocol):
    """Arguments of a positional call that name a table."""

    @property
    def db_name(self) -> str: ...

    @property
    def tbl_name(self) -> str: ...


class Skipping(Protocol):
    """A request with a field for leaving the columns out of its partitions."""

    @property
    def skipColumnSchemaForPartition(self) -> bool | None: ...


class Shaping(Skipping, Protocol):
    """A request with fields for leaving parts of its partitions out."""

    @property
    def includeParamKeyPattern(self) -> str | None: ...

    @property
    def excludeParamKeyPattern(self) -> str | None: ...


def positional(arguments: Positional) -> TableName:
    """The table of a positional call."""
    return table_name(arguments.db_name, arguments.tbl_name)


def limit(value: int | None) -> int:
    """`max_parts` as sent: absent or negative means no limit."""
    return -1 if value is None or value < 0 else value


def partition_query(request: TBase, selection: PartitionSelection) -> PartitionQuery:
    """The query of a request struct: its table, limit, write ids and table id, and what it selects."""
    return PartitionQuery(
        requested_table(request), selection, limit(getattr(request, "maxParts", None)), version(request)
    )


def grantee(user: str | None, groups: list[str] | None) -> Grantee | None:
    """The user whose privileges are requested; None if no user is given. An empty name is a user without privileges."""
    return Grantee(user, tuple(groups or ())) if user is not None else None


def expression(call: Call, serialized: bytes | None, default_partition: str | None = None) -> ByExpression:
    """The selection of an expression request. The bytes of an MSCK connection are text."""
    proxy = call.session.variables.get(EXPRESSION_PROXY, "")
    return ByExpression(
        serialized or b"", default_partition or None, plain_text=proxy.endswith("MsckPartitionExpressionProxy")
    )


def selected_by(call: Call, request: PartitionsByExprRequest) -> PartitionSelection:
    """The selection of an expression request: all partitions if it has no expression, or an empty one."""
    return expression(call, request.expr, request.defaultPartitionName) if request.expr else AllPartitions()


def partition_values(call: Call, table: TableName, name: str | None) -> list[str]:
    """The values in a partition name, in the order of the table's keys.

    Raises NoSuchObjectException (the table does not exist, or a key is missing in the name), MetaException (not a
    partition name).
    """
    try:
        keys = [key.name for key in call.stores.reads.tables.get_table(table).partitionKeys or ()]
    except NoSuchObjectException as error:
        # Hive omits the catalog when it looks for values in a name.
        sent = table.as_sent
        raise NoSuchObjectException(f"{sent.database}.{sent.table} table not found") from error
    if not name:
        raise MetaException(f"Partition name is invalid. {name or ''}")
    try:
        return values_for_keys(name, keys)
    except InvalidObjectException as error:
        raise NoSuchObjectException(error.message) from error


# One partition


@contextmanager
def partition_of(table: TableName) -> Iterator[None]:
    """For reads of one partition, Hive has a separate text for a missing table."""
    try:
        yield
    except NoSuchObjectException as error:
        if not is_of_table(error):
            raise
        text = f"Unable to get partition because {table.as_sent} does not exist"
        raise NoSuchObjectException(text) from error


@handlers.read(
    "get_partition", audit=lambda a: f"get_partition : db={a.db_name} tbl={a.tbl_name}[{','.join(a.part_vals or ())}]"
)
def get_partition(call: Call, arguments: methods.get_partition_args) -> Partition:
    name = positional(arguments)
    with partition_of(name):
        return call.stores.reads.partitions.get_partition(name, arguments.part_vals or ())


@handlers.read("get_partition_req")
def get_partition_req(call: Call, arguments: methods.get_partition_req_args) -> GetPartitionResponse:
    request = arguments.req
    name = requested_table(request)
    with partition_of(name):
        partition = call.stores.reads.partitions.get_partition(name, request.partVals or (), version=version(request))
    return GetPartitionResponse(partition=partition)


@handlers.read("get_partition_with_auth")
def get_partition_with_auth(call: Call, arguments: methods.get_partition_with_auth_args) -> Partition:
    values = arguments.part_vals or ()
    try:
        return call.stores.reads.partitions.get_partition(
            positional(arguments), values, grantee=grantee(arguments.user_name, arguments.group_names)
        )
    except NoSuchObjectException as error:
        if not is_of_table(error):
            raise
        raise NoSuchObjectException(f"partition values=[{', '.join(values)}]") from error


@handlers.read("get_partition_by_name")
@consistent_snapshot
def get_partition_by_name(call: Call, arguments: methods.get_partition_by_name_args) -> Partition:
    name = positional(arguments)
    return call.stores.reads.partitions.get_partition(name, partition_values(call, name, arguments.part_name))


# Lists


def _partitions(
    call: Call,
    query: PartitionQuery,
    grantee: Grantee | None = None,
    projection: PartitionProjection | None = None,
) -> list[Partition]:
    return call.stores.reads.partitions.get_partitions(query, grantee=grantee, projection=projection).partitions


@handlers.read("get_partitions")
def get_partitions(call: Call, arguments: methods.get_partitions_args) -> list[Partition]:
    query = PartitionQuery(positional(arguments), AllPartitions(), limit(arguments.max_parts))
    return _all_partitions(call, query)


@handlers.read("get_partitions_req")
def get_partitions_req(call: Call, arguments: methods.get_partitions_req_args) -> PartitionsResponse:
    request = arguments.req
    found = _all_partitions(call, partition_query(request, AllPartitions()), _projection(request))
    return PartitionsResponse(partitions=without_columns(request, found))


def _all_partitions(
    call: Call, query: PartitionQuery, projection: PartitionProjection | None = None
) -> list[Partition]:
    """All partitions. A missing table has none (Hive 4.0.1, in the calls that request no privileges).

    If `metastore.limit.partition.request` is set, Hive counts the partitions first, and so reports what is missing.
    """
    check_not_empty(query.table)
    try:
        return _partitions(call, query, projection=projection)
    except NoSuchObjectException:
        if _limits_requests(call):
            raise
        return []


def _limits_requests(call: Call) -> bool:
    return call.stores.auxiliary.settings.partition_request_limit >= 0


def _partial_values(call: Call, values: list[str] | None) -> ByPartialValues:
    """The selection by leading values. Without values, everything is selected, which Hive cannot count for its
    limit."""
    if not values and _limits_requests(call):
        raise MetaException("Invalid partition key & values; keys [], values []")
    return ByPartialValues(tuple(values or ()))


def check_not_empty(name: TableName) -> None:
    """Raises NoSuchObjectException if the database or the table is not named."""
    for part, text in (("dbName", name.database), ("tblName", name.table)):
        if not text:
            raise NoSuchObjectException(f"{part} is not valid")


@handlers.read("get_partitions_with_auth")
def get_partitions_with_auth(call: Call, arguments: methods.get_partitions_with_auth_args) -> list[Partition]:
    query = PartitionQuery(positional(arguments), AllPartitions(), limit(arguments.max_parts))
    return _partitions(call, query, grantee(arguments.user_name, arguments.group_names))


@handlers.read("get_partitions_ps")
def get_partitions_ps(call: Call, arguments: methods.get_partitions_ps_args) -> list[Partition]:
    selection = _partial_values(call, arguments.part_vals)
    return _partitions(call, PartitionQuery(positional(arguments), selection, limit(arguments.max_parts)))


@handlers.read(
    "get_partitions_ps_with_auth",
    audit=lambda a: f"get_partitions_ps_with_auth : db={a.db_name} tbl={a.tbl_name}[{','.join(a.part_vals or ())}]",
)
def get_partitions_ps_with_auth(call: Call, arguments: methods.get_partitions_ps_with_auth_args) -> list[Partition]:
    selection = _partial_values(call, arguments.part_vals)
    query = PartitionQuery(positional(arguments), selection, limit(arguments.max_parts))
    return _partitions(call, query, grantee(arguments.user_name, arguments.group_names))


@handlers.read("get_partitions_ps_with_auth_req")
def get_partitions_ps_with_auth_req(
    call: Call, arguments: methods.get_partitions_ps_with_auth_req_args
) -> GetPartitionsPsWithAuthResponse:
    request = arguments.req
    query = partition_query(request, AllPartitions())
    if request.partNames is not None:
        # Hive then returns these names only, none if the list is empty, and ignores the limit.
        query = replace(query, selection=_given_names(request.partNames), max_parts=-1)
    elif request.partVals is not None:
        query = replace(query, selection=_partial_values(call, request.partVals))
    found = _partitions(call, query, grantee(request.userName, request.groupNames), _projection(request))
    return GetPartitionsPsWithAuthResponse(partitions=without_columns(request, found))


def _by_filter(call: Call, query: PartitionQuery, projection: PartitionProjection | None = None) -> list[Partition]:
    with specified_table(query.table):
        return _partitions(call, query, projection=projection)


@handlers.read("get_partitions_by_filter")
def get_partitions_by_filter(call: Call, arguments: methods.get_partitions_by_filter_args) -> list[Partition]:
    selection = ByFilter(arguments.filter or "")
    return _by_filter(call, PartitionQuery(positional(arguments), selection, limit(arguments.max_parts)))


@handlers.read("get_partitions_by_filter_req")
def get_partitions_by_filter_req(call: Call, arguments: methods.get_partitions_by_filter_req_args) -> list[Partition]:
    request = arguments.req
    found = _by_filter(call, partition_query(request, ByFilter(request.filter or "")), _projection(request))
    return without_columns(request, found)


@handlers.read("get_partitions_by_names")
def get_partitions_by_names(call: Call, arguments: methods.get_partitions_by_names_args) -> list[Partition]:
    return _partitions(call, PartitionQuery(positional(arguments), _given_names(arguments.names)))


def _given_names(names: list[str] | None) -> ByNames:
    if names is None:
        raise MetaException("Partition names cannot be null")
    return ByNames(tuple(names))


@handlers.read("get_partitions_by_names_req")
@consistent_snapshot
def get_partitions_by_names_req(
    call: Call, arguments: methods.get_partitions_by_names_req_args
) -> GetPartitionsByNamesResult:
    request = arguments.req
    name = requested_table(request)
    check_not_empty(name)
    selection = _given_names(request.names)
    snapshot = version(request)
    try:
        query = PartitionQuery(name, selection, version=snapshot)
        found = _partitions(call, query, projection=_projection(request))
    except NoSuchObjectException as error:
        # Only clients of the positional call may be too old for this type (Hive 4.0.1 uses it in both).
        raise InvalidObjectException(error.message) from error
    found = without_columns(request, found)
    if request.get_col_stats:
        found = _with_statistics(call, name, found, selection.names, request.engine or "hive", snapshot)
    found = call.stores.auxiliary.translation.partitions(
        found, lambda: call.stores.reads.tables.get_table(name, version=snapshot), request.processorCapabilities
    )
    return GetPartitionsByNamesResult(partitions=found)


def without_columns(request: Skipping, partitions: list[Partition]) -> list[Partition]:
    """Without the columns of the descriptors if the request says so: in most cases they are the table's."""
    if not request.skipColumnSchemaForPartition:
        return partitions
    shorter = [copy.copy(partition) for partition in partitions]
    for partition in shorter:
        if partition.sd is not None:
            partition.sd = copy.copy(partition.sd)
            partition.sd.cols = []
    return shorter


def _with_statistics(
    call: Call, name: TableName, partitions: list[Partition], names: tuple[str, ...], engine: str, snapshot: ReadVersion
) -> list[Partition]:
    """Copies of the partitions with their column statistics, if these are up to date."""
    table = call.stores.reads.tables.get_table(name, version=snapshot)
    query = StatisticsQuery(name, column_names(table), engine, snapshot)
    statistics = call.stores.reads.statistics.get_partition_column_statistics(query, names)
    by_values = {values_as_named(parse_partition_name(s.statsDesc.partName).values()): s for s in statistics}
    answer = [copy.copy(partition) for partition in partitions]
    for partition in answer:
        partition.colStats = with_accurate_columns(
            by_values.get(values_as_named(partition.values)), partition.parameters
        )
    return answer


@handlers.read("get_partitions_by_expr")
def get_partitions_by_expr(call: Call, arguments: methods.get_partitions_by_expr_args) -> PartitionsByExprResult:
    request = arguments.req
    query = partition_query(request, selected_by(call, request))
    with specified_table(query.table):
        answer = call.stores.reads.partitions.get_partitions(query, projection=_projection(request))
    found = without_columns(request, answer.partitions)
    return PartitionsByExprResult(partitions=found, hasUnknownPartitions=answer.has_unknown)


@handlers.read("get_partitions_spec_by_expr")
@consistent_snapshot
def get_partitions_spec_by_expr(
    call: Call, arguments: methods.get_partitions_spec_by_expr_args
) -> PartitionsSpecByExprResult:
    request = arguments.req
    query = partition_query(request, selected_by(call, request))
    with specified_table(query.table):
        answer = call.stores.reads.partitions.get_partitions(query, projection=_projection(request))
    found = without_columns(request, answer.partitions)
    specifications = group_partitions(call.stores.reads.tables.get_table(query.table, version=query.version), found)
    return PartitionsSpecByExprResult(partitionsSpec=specifications, hasUnknownPartitions=answer.has_unknown)


def _projection(request: Shaping) -> PartitionProjection | None:
    include, exclude = request.includeParamKeyPattern, request.excludeParamKeyPattern
    if not include and not exclude:
        return None
    return PartitionProjection((), include or None, exclude or None)


# Partition specs


@handlers.read("get_partitions_pspec")
@consistent_snapshot
def get_partitions_pspec(call: Call, arguments: methods.get_partitions_pspec_args) -> list[PartitionSpec]:
    if arguments.tbl_name is None:
        # Java fails with a null pointer here, and Hive's client tests expect the fault.
        raise TApplicationException(TApplicationException.INTERNAL_ERROR, "get_partitions_pspec needs a table name")
    # In lower case, unlike in similar calls.
    name = table_name(arguments.db_name, arguments.tbl_name.lower())
    found = _partitions(call, PartitionQuery(name, AllPartitions(), limit(arguments.max_parts)))
    return listed_or_grouped(call.stores.reads.tables.get_table(name), found)


@handlers.read("get_part_specs_by_filter")
@consistent_snapshot
def get_part_specs_by_filter(call: Call, arguments: methods.get_part_specs_by_filter_args) -> list[PartitionSpec]:
    name = positional(arguments)
    found = _partitions(call, PartitionQuery(name, ByFilter(arguments.filter or ""), limit(arguments.max_parts)))
    return listed_or_grouped(call.stores.reads.tables.get_table(name), found, name.as_sent)


@handlers.read("get_partitions_with_specs")
@consistent_snapshot
def get_partitions_with_specs(call: Call, arguments: methods.get_partitions_with_specs_args) -> GetPartitionsResponse:
    """Projected partitions by names, values or expressions (GetPartitionsFilterSpec; several filters are ANDed).

    The partitions are of one position (P1). Of the table, which is read before them, only the name and the directory
    are used: relative locations refer to the directory, and joined with it they are the partitions' own, wherever the
    table is by then.
    """
    request = arguments.request
    projection = None
    if request.projectionSpec is not None:
        requested = request.projectionSpec
        projection = PartitionProjection(
            tuple(requested.fieldList or ()),
            requested.includeParamKeyPattern or None,
            requested.excludeParamKeyPattern or None,
        )
    selection = _spec_selection(request.filterSpec, is_projected=projection is not None and bool(projection.fields))
    requester = grantee(request.user, request.groupNames) if request.withAuth else None
    query = partition_query(request, selection)
    try:
        table = call.stores.reads.tables.get_table(query.table, version=query.version)
        found = _partitions(call, query, requester, projection)
    except NoSuchObjectException as error:
        raise MetaException(error.message) from error
    found = call.stores.auxiliary.translation.partitions(found, lambda: table, request.processorCapabilities)
    return GetPartitionsResponse(partitionSpec=group_partitions(table, found))


def _spec_selection(specification: Any, *, is_projected: bool) -> PartitionSelection:
    """All partitions if the request has no filter. Raises MetaException for a mode without filters: an empty list of
    names must not select everything. Hive 4.0.1 checks this only if single fields are requested."""
    filters = tuple((specification.filters if specification is not None else None) or ())
    mode = specification.filterMode if specification is not None else None
    if not filters:
        if mode is not None and is_projected:
            raise MetaException("Invalid filter expressions in the filter spec")
        return AllPartitions()
    if mode == PartitionFilterMode.BY_NAMES:
        return ByNames(filters)
    if mode == PartitionFilterMode.BY_VALUES:
        return ByPartialValues(filters)
    if mode == PartitionFilterMode.BY_EXPR:
        return ByFilter(" and ".join(f"({text})" for text in filters) if len(filters) > 1 else filters[0])
    raise MetaException(f"No such partition filter mode: {mode}")
