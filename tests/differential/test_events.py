"""Hive 4.0.1 and ours log the same events for the same calls: kinds, order, names in rows, fields of messages."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import pytest
from sqlalchemy import text

from benchmarks.java_metastore import fetch
from hms_cache.notifications import tjson
from hms_cache.notifications.messages import decode_message
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, NotificationEventRequest
from tests.conftest import ServerLookup
from tests.differential.comparison import Comparison, compare
from tests.differential.metastores import Side, Sides, java_metastore, our_metastore, own_database
from tests.differential.scenarios import (
    constraints,
    databases,
    functions,
    partition_changes,
    statistics,
    tables,
    transactions,
    writers,
)

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]

SCENARIOS = {
    f"{module.__name__.rpartition('.')[2]}.{scenario.name}": scenario
    for module in (
        databases,
        tables,
        partition_changes,
        statistics,
        constraints,
        functions,
        transactions,
        writers,
    )
    for scenario in module.SCENARIOS
}

Event = tuple[str, str, str, str, tuple[str, ...]]
"""Type, catalog, database and table in lower case, and the names of the message's fields."""

Rule = Callable[[Sequence[Event], Sequence[Event]], bool]


def log_more(java: Sequence[Event], ours: Sequence[Event]) -> bool:
    """Ours are Java's with others in between."""
    left = iter(ours)
    return len(ours) > len(java) and all(event in left for event in java)


def log_nothing(java: Sequence[Event], ours: Sequence[Event]) -> bool:
    return not ours


def log_once(java: Sequence[Event], ours: Sequence[Event]) -> bool:
    """Java repeats what ours contain once."""
    return [event for event, _ in groupby(java)] == [event for event, _ in groupby(ours)] and len(ours) < len(java)


DIFFERENCES: dict[str, tuple[Rule, str]] = {
    **dict.fromkeys(
        ("update_creation_metadata", "alter_function", "create_catalog", "alter_catalog", "drop_catalog"),
        (log_more, "Java logs nothing of the change: no other server could know."),
    ),
    "commit_txn": (log_more, "Java does not log that it aborts a transaction that has a conflict."),
    "repl_tbl_writeid_state": (log_more, "Java logs transactions that it opens, and not that it aborts them."),
    **dict.fromkeys(
        ("truncate_table", "truncate_table_req"),
        (log_once, "Java logs the truncation, and once more the change of the parameters with it."),
    ),
    "exchange_partition": (log_once, "An event may name several partitions; Java logs one for each that goes."),
    **dict.fromkeys(
        ("delete_table_column_statistics", "delete_partition_column_statistics", "add_partitions_pspec"),
        (log_nothing, "Java logs this although there was nothing to do."),
    ),
    "allocate_table_write_ids": (log_nothing, "Java failed on the call before, and has yet to do what ours has done."),
}
"""By method: how ours may differ, and why. Calls that are answered differently are left out: `test_scenarios`."""

_USED: set[str] = set()
_DONE: set[str] = set()
"""Methods whose rule was needed, and scenarios that were run to their end."""


@pytest.fixture(scope="module")
def logging_sides(tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup) -> Iterator[Sides]:
    """Both metastores, empty, each with a log of its own."""
    classes = _compiled(tmp_path_factory.mktemp("classes"))
    listener = {"metastore.transactional.event.listeners": "EveryEventListener"}
    servers = database_servers("mariadb")
    with ExitStack() as stack:
        directories: list[Path] = [tmp_path_factory.mktemp(name) for name in ("java", "ours")]
        java = stack.enter_context(
            java_metastore(own_database(servers, stack), directories[0], classes=[classes], **listener)
        )
        ours = stack.enter_context(our_metastore(own_database(servers, stack), directories[1]))
        yield Sides(java, ours)
    if _DONE == SCENARIOS.keys():
        assert DIFFERENCES.keys() - _USED == set(), "No call of these methods differs any more"


def _compiled(directory: Path) -> Path:
    home = fetch()
    path = f"{home / 'lib'}/*:{home.parent / 'jars'}/*"
    source = Path(__file__).parent / "java" / "EveryEventListener.java"
    command = ["javac", "-nowarn", "-proc:none", "-cp", path, "-d", str(directory), str(source)]
    subprocess.run(command, check=True, timeout=120)
    return directory


class LogReader:
    """Continues to read the log of one side."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._last = 0

    def events(self) -> list[Event]:
        """Those since the last call, in their order."""
        columns = "EVENT_ID, EVENT_TYPE, CAT_NAME, DB_NAME, TBL_NAME, MESSAGE, MESSAGE_FORMAT"
        statement = text(f"SELECT {columns} FROM NOTIFICATION_LOG WHERE EVENT_ID > :last ORDER BY EVENT_ID")
        with self._side.engine.connect() as connection:
            rows = connection.execute(statement, {"last": self._last}).all()
        found: list[Event] = []
        for row in rows:
            self._last = row.EVENT_ID
            names = [str(name or "").lower() for name in (row.CAT_NAME, row.DB_NAME, row.TBL_NAME)]
            fields = tuple(sorted(decode_message(row.MESSAGE, row.MESSAGE_FORMAT)))
            found.append((row.EVENT_TYPE, names[0], names[1], names[2], fields))
        return found


def unexplained(comparison: Comparison, java: Sequence[Event], ours: Sequence[Event]) -> bool:
    if java == ours or not comparison.is_equal:
        return False
    method = comparison.call.method
    rule, _ = DIFFERENCES.get(method, (None, ""))
    if rule is None or not rule(java, ours):
        return True
    _USED.add(method)
    return False


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_events_are_equal(logging_sides: Sides, name: str) -> None:
    java, ours = logging_sides.java, logging_sides.ours
    java.empty()
    ours.empty()
    logs = LogReader(java), LogReader(ours)
    for log in logs:
        log.events()
    differing = []
    for step in SCENARIOS[name].calls:
        comparison = compare(step, java, ours)
        told = [log.events() for log in logs]
        if unexplained(comparison, *told):
            differing.append(f"{comparison}\n  java: {told[0]}\n  ours: {told[1]}")
    assert not differing, "\n".join(differing)
    _DONE.add(name)


def test_a_replica_is_told_no_properties_of_replication(logging_sides: Sides) -> None:
    """What a source stores in its database during a dump, and the other names in `ReplConst`, are its own."""
    mine = {
        "bootstrap.dump.state.1": "ACTIVE",
        "repl.source.for": "p",
        "repl.target.for": "true",
        "repl.last.id": "5",
        "hive.repl.ckpt.key": "file:/d",
        "hive.repl.first.inc.pending": "true",
        "repl.failover.endpoint": "SOURCE",
        "repl.background.enable": "true",
    }
    told = []
    for side in (logging_sides.java, logging_sides.ours):
        side.empty()
        side.call("create_database", Database(name="d", parameters={"k": "1"}))
        before = side.call("get_current_notificationEventId").eventId
        altered = side.call("get_database", "d")
        altered.parameters = {"k": "2", "other": "3", **mine}
        side.call("alter_database", "d", altered)
        (event,) = side.call("get_next_notification", NotificationEventRequest(before)).events
        message = decode_message(event.message, event.messageFormat)
        images = [tjson.read_struct(message[f"dbObj{which}Json"], Database) for which in ("Before", "After")]
        told.append([image.parameters for image in images])
        altered.parameters |= dict.fromkeys(mine, "")  # a source cannot be dropped
        side.call("alter_database", "d", altered)
    assert told == [[{"k": "1"}, {"k": "2", "other": "3"}]] * 2
