"""Reads of the log: a part of its events, their number, the last one's id. Both read the same log."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest, NotificationEventsCountRequest
from tests.differential.comparison import Call, Scenario, call
from tests.differential.reasons import LATER_FIELD


def after(last: int, most: int | None = None, **fields: Any) -> Call:
    differs = LATER_FIELD if fields.get("eventTypeList") else ""
    return call("get_next_notification", NotificationEventRequest(last, most, **fields), differs=differs)


def count(since: int, place: str = "d", **fields: Any) -> Call:
    return call("get_notification_events_count", NotificationEventsCountRequest(since, place, **fields))


_POSITIONS = (0, 1, 2, 5, 8, 1000, -1)

READING = Scenario.of(
    "reading the log",
    call("get_current_notificationEventId"),
    [after(last, most) for last in _POSITIONS for most in (None, 0, 1, 3, 1000, -1)],
    [
        after(0, dbName=place, catName=catalog)
        for place in (None, "d", "D", "none", "")
        for catalog in (None, "hive", "HIVE", "none", "")
    ],
    [
        after(0, dbName="d", tableNames=names)
        for names in ([], ["n0"], ["N0"], ["n0", "n1"], ["none"], ["n0", "none"], [""])
    ],
    after(0, tableNames=["n0"]),
    [
        after(0, eventTypeSkipList=kinds)
        for kinds in ([], ["CREATE_TABLE"], ["create_table"], ["CREATE_TABLE", "ALTER_TABLE"], ["none"])
    ],
    [
        after(0, eventTypeList=kinds)
        for kinds in ([], ["CREATE_TABLE"], ["create_table"], ["CREATE_TABLE", "ALTER_TABLE"], ["none"])
    ],
    after(0, eventTypeList=["CREATE_TABLE"], eventTypeSkipList=["CREATE_TABLE"]),
    after(2, 2, dbName="d", tableNames=["n1"], eventTypeSkipList=["ADD_PARTITION"]),
    [count(since, place) for since in _POSITIONS for place in ("d", "D", "none", "", "*")],
    [count(0, catName=catalog) for catalog in ("hive", "HIVE", "none", "")],
    [count(since, toEventId=last) for since in (0, 3) for last in (0, 2, 3, 6, 1000, -1)],
    [count(0, limit=limit) for limit in (0, 1, 3, 1000, -1)],
    count(1, toEventId=8, limit=2),
    [count(0, tableNames=names) for names in ([], ["n0"], ["N0"], ["n0", "n1"], ["none"])],
)
