"""The audit log contains, for each event, the call that logged it."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter

import pytest

from hms_cache.call_context import CallContext
from hms_cache.client import MetastoreClient
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Serve, database, table

USERS = 3
ROUNDS = 5


def work(uri: str, user: str) -> None:
    """Calls that log one event, several, and none, on tables that have the user's name."""
    with MetastoreClient(uri) as client:
        client.call("set_ugi", user, [])
        client.call("create_database", database(user))
        for number in range(ROUNDS):
            name = f"t{number}"
            client.call("create_table", table(user, name))
            made = client.call("get_table", user, name)
            parts = [ttypes.Partition([str(value)], user, name, sd=made.sd) for value in range(3)]
            client.call("add_partitions", parts)
            found = client.call("get_partitions", user, name, -1)
            client.call("alter_partitions", user, name, found)
            with pytest.raises(ttypes.AlreadyExistsException):
                client.call("create_table", table(user, name))
            client.call("drop_table", user, name, False)
        client.call("drop_database", user, False, True)


def test_each_event_is_of_one_call(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(**{"server.audit_format": "json"})
    uri = f"thrift://127.0.0.1:{server.port}"
    with MetastoreClient(uri) as client:
        begin = client.call("get_current_notificationEventId").eventId
        with caplog.at_level(logging.INFO, "hms_cache.audit"):
            users = [threading.Thread(target=work, args=(uri, f"user{number}")) for number in range(USERS)]
            for one in users:
                one.start()
            for one in users:
                one.join()
            request = ttypes.NotificationEventRequest(lastEvent=begin, maxEvents=10_000)
            logged = client.call("get_next_notification", request).events
            server.service.stop()
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "hms_cache.audit"]
    told = [
        (event, line) for line in lines for first, last in line.get("events", ()) for event in range(first, last + 1)
    ]
    assert Counter(event for event, _ in told) == Counter(event.eventId for event in logged)
    lines_of = dict(told)
    for event in logged:
        line = lines_of[event.eventId]
        assert (line["ugi"], line["outcome"]) == (event.dbName, "ok")
    assert {"events" in line for line in lines if line["outcome"] == "fault"} == {False}
    kinds = {(lines_of[event.eventId]["method"], event.eventType) for event in logged}
    assert {("alter_partitions", "ALTER_PARTITION"), ("drop_table", "DROP_TABLE")} <= kinds


def test_events_that_follow_each_other_are_one_range() -> None:
    trace = CallContext()
    trace.record_events(1, 2)  # no call, but a background task's
    assert trace.events == []
    trace.begin(1)
    for first, last in ((3, 4), (5, 5), (9, 9), (10, 12)):
        trace.record_events(first, last)
    assert trace.events == [(3, 5), (9, 12)]
    trace.begin(1)
    assert trace.events == []
