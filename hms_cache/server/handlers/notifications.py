"""The notification log as clients read it, and events that clients write."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import table_name
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CmRecycleResponse,
    CurrentNotificationEventId,
    FireEventResponse,
    MetaException,
    NotificationEventResponse,
    NotificationEventsCountResponse,
)

handlers = HandlerTable()


@handlers.read("get_next_notification")
def get_next_notification(call: Call, arguments: methods.get_next_notification_args) -> NotificationEventResponse:
    found = call.stores.notifications.get_next_notification(arguments.rqst)
    if found.events:
        call.stores.reads.record_other_answer(found.events[-1].eventId)
    return found


@handlers.read("get_current_notificationEventId")
def get_current_notification_event_id(
    call: Call, arguments: methods.get_current_notificationEventId_args
) -> CurrentNotificationEventId:
    event_id = call.stores.notifications.current_event_id()
    call.stores.reads.record_other_answer(event_id)
    return CurrentNotificationEventId(eventId=event_id)


@handlers.read("get_notification_events_count")
def get_notification_events_count(
    call: Call, arguments: methods.get_notification_events_count_args
) -> NotificationEventsCountResponse:
    count = call.stores.notifications.get_notification_events_count(arguments.rqst)
    call.stores.reads.record_other_answer()
    return count


@handlers.write("fire_listener_event")
def fire_listener_event(call: Call, arguments: methods.fire_listener_event_args) -> FireEventResponse:
    """INSERT events: one, or one for each element of `insertDatas`, which name their partitions. RELOAD events: one, or
    one for each partition in `batchPartitionValsForRefresh`. Either all or none are written: a client whose call is
    refused sends it again."""
    request = arguments.rqst
    name = table_name(request.dbName or "default", request.tableName, request.catName)
    data = request.data
    tables = call.stores.writes.tables
    if data is not None and data.insertData is not None:
        event_ids = tables.fire_insert_events(name, [(request.partitionVals or None, data.insertData)])
    elif data is not None and data.insertDatas is not None:
        event_ids = tables.fire_insert_events(name, [(one.partitionVal or None, one) for one in data.insertDatas])
    elif data is not None and data.refreshEvent is not None:
        places = request.batchPartitionValsForRefresh or [request.partitionVals or []]
        event_ids = tables.fire_reload_events(
            name,
            [values or None for values in places],
            is_refresh=bool(data.refreshEvent),
            parameters=request.tblParams,
        )
    else:
        raise MetaException("A fired event must say what was inserted, or that something was reloaded")
    return FireEventResponse(eventIds=event_ids)


@handlers.write("cm_recycle")
def cm_recycle(call: Call, arguments: methods.cm_recycle_args) -> CmRecycleResponse:
    """Keeps replaced files for replication.

    Without change management (`hive.repl.cm.enabled`, off by default and not supported here), Hive's server recycles
    nothing and returns the same answer.
    """
    return CmRecycleResponse()
