"""Measures how fast the notification log is followed."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from typing import Any

from sqlalchemy.engine import make_url

from benchmarks.catalog import columns
from benchmarks.client import connect
from benchmarks.comparison.context import Comparison
from benchmarks.comparison.starting import first_answer_s
from benchmarks.own_metastore import OwnMetastore
from hms_cache.thrift_gen.hive_metastore import ttypes

SKIPPED, DECODED = 40_000, 4_000
TIMEOUT_S = 60.0


def measure_events(comparison: Comparison) -> None:
    """Measures copies of one INSERT event of a table that is not cached, which are skipped by their header; then of one
    ALTER_TABLE event, each of which is decoded and applied."""
    database = f"bench_{comparison.plan.databases - 1:02d}"
    with comparison.own("own-events", CACHE__WARM="off", EVENTS__POLL_INTERVAL_S="0.2") as server:
        client = connect(server.address)
        first_answer_s(server.address)
        inserted = ttypes.FireEventRequestData(insertData=ttypes.InsertEventRequestData(filesAdded=["file:/a"]))
        client.fire_listener_event(ttypes.FireEventRequest(True, inserted, database, "table_003"))
        skipped = _rate(comparison, server, database, SKIPPED)
        changed = client.get_table(database, "table_002")
        changed.sd.cols = columns(12)
        client.alter_table(database, "table_002", changed)
        client.get_table(database, "table_002")
        decoded = _rate(comparison, server, database, DECODED)
        events = _status(server)
        if sum(events["skipped"].values()) < SKIPPED or events["applied"] < DECODED:
            raise RuntimeError(f"skipped {events['skipped']}, applied {events['applied']}")
    comparison.results.bar(
        "events",
        "≥ 10,000/s skipped by their header, ≥ 1,000/s decoded and applied",
        f"{skipped:,.0f}/s skipped, {decoded:,.0f}/s decoded and applied, fetching included",
        skipped >= 10_000 and decoded >= 1_000,
    )


def _rate(comparison: Comparison, server: OwnMetastore, database: str, count: int) -> float:
    """Returns the number of copies of the last event that are applied in a second."""
    cursor = comparison.counter.cursor()
    name = make_url(comparison.url).database
    cursor.execute(f"USE {name}")  # the table of numbers is one of whatever database is in use
    cursor.execute(f"SELECT MAX(EVENT_ID), MAX(NL_ID) FROM {name}.NOTIFICATION_LOG")
    last, last_row = cursor.fetchone()
    last_row += 1_000_000  # the server goes on with the ids below, of which it has taken a block
    cursor.execute("BEGIN")
    cursor.execute(
        f"INSERT INTO {name}.NOTIFICATION_LOG (NL_ID, EVENT_ID, EVENT_TIME, EVENT_TYPE, CAT_NAME, DB_NAME, TBL_NAME, "
        f"MESSAGE, MESSAGE_FORMAT) SELECT {last_row} + seq, {last} + seq, EVENT_TIME, EVENT_TYPE, CAT_NAME, DB_NAME, "
        f"TBL_NAME, MESSAGE, MESSAGE_FORMAT FROM {name}.NOTIFICATION_LOG JOIN seq_1_to_{count} "
        "WHERE DB_NAME = %s AND EVENT_ID = %s",
        (database, last),
    )
    cursor.execute(f"UPDATE {name}.NOTIFICATION_SEQUENCE SET NEXT_EVENT_ID = {last + count + 1}")
    cursor.execute(
        f"UPDATE {name}.SEQUENCE_TABLE SET NEXT_VAL = GREATEST(NEXT_VAL, {last_row + count + 1}) "
        "WHERE SEQUENCE_NAME LIKE '%MNotificationLog'"
    )
    cursor.execute("COMMIT")
    started = time.monotonic()
    while time.monotonic() < started + TIMEOUT_S:
        if _status(server)["position"] >= last + count:
            return count / (time.monotonic() - started)
        time.sleep(0.02)
    raise RuntimeError(f"{count} events were not applied within {TIMEOUT_S:g} s")


def _status(server: OwnMetastore) -> dict[str, Any]:
    found = re.search(r"management port on (\S+)", server.log)
    assert found is not None
    with urllib.request.urlopen(f"http://{found[1]}/status", timeout=10) as answer:
        events: dict[str, Any] = json.load(answer)["events"]
    return events
