"""Scheduled queries."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    ScheduledQuery,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollResponse,
)

handlers = HandlerTable()


@handlers.write("scheduled_query_maintenance", about=lambda a: a.request.scheduledQuery.scheduleKey.scheduleName)
def scheduled_query_maintenance(call: Call, arguments: methods.scheduled_query_maintenance_args) -> None:
    request, queries = arguments.request, call.stores.auxiliary.scheduled_queries
    if request.type == ScheduledQueryMaintenanceRequestType.CREATE:
        queries.create(request.scheduledQuery)
    elif request.type == ScheduledQueryMaintenanceRequestType.ALTER:
        queries.alter(request.scheduledQuery)
    elif request.type == ScheduledQueryMaintenanceRequestType.DROP:
        queries.drop(request.scheduledQuery.scheduleKey)
    else:
        raise MetaException("invalid request")


@handlers.write("scheduled_query_poll", about=lambda a: a.request.clusterNamespace)
def scheduled_query_poll(call: Call, arguments: methods.scheduled_query_poll_args) -> ScheduledQueryPollResponse:
    return call.stores.auxiliary.scheduled_queries.poll(arguments.request.clusterNamespace)


@handlers.write("scheduled_query_progress", about=lambda a: a.info.scheduledExecutionId)
def scheduled_query_progress(call: Call, arguments: methods.scheduled_query_progress_args) -> None:
    call.stores.auxiliary.scheduled_queries.report_progress(arguments.info)


@handlers.read("get_scheduled_query", about=lambda a: a.scheduleKey.scheduleName)
def get_scheduled_query(call: Call, arguments: methods.get_scheduled_query_args) -> ScheduledQuery:
    return call.stores.auxiliary.scheduled_queries.get(arguments.scheduleKey)
