"""Iceberg commits as the calls that Iceberg's Hive catalogs send, without an engine.

A commit replaces `metadata_location`. With locks: `lock`, `check_lock` until the lock is granted, `get_table`,
`alter_table`, `unlock` (Iceberg before 1.3, PyIceberg). Without locks: `get_table` and an `alter_table` that the
metastore refuses unless the location is still the one that was read (`expected_parameter_key`, HIVE-26882). A refused
commit is repeated. Each commit increments a counter in its table. At the end, the counter must equal the number of
acknowledged commits.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.catalog_changes import external_table, stored
from benchmarks.client import connect
from benchmarks.cycles import Cycle, Note
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE = "bench_iceberg"
SHARED = "shared"
LOCATION, PREVIOUS, COUNT = "metadata_location", "previous_metadata_location", "bench.commits"
RETRY_S = 0.005
"""Interval between two calls of `check_lock`."""

_lock = threading.Lock()
_acknowledged: Counter[tuple[str, str]] = Counter()
"""Number of acknowledged commits by address and table, guarded by `_lock`."""
_measured = ""
"""The address of the metastore that is being measured; they are measured one after the other."""


def prepare(address: str, clients: int) -> None:
    """Creates the database and the tables."""
    global _measured
    _measured = address
    client = connect(address)
    if DATABASE not in client.get_all_databases():
        client.create_database(ttypes.Database(name=DATABASE, description="bench", parameters={}))
    known = set(client.get_all_tables(DATABASE))
    for name in (SHARED, *(f"t{number}" for number in range(clients))):
        if name not in known:
            table = external_table(
                DATABASE, name, table_type="ICEBERG", **{LOCATION: f"file:/bench/{name}/0.json", COUNT: "0"}
            )
            table.partitionKeys = []
            client.create_table_req(ttypes.CreateTableRequest(table=table))


def lost_commits(address: str) -> dict[str, str]:
    """Returns the tables whose counter differs from the number of acknowledged commits, with both numbers."""
    client = connect(address)
    with _lock:
        expected = {table: count for (of, table), count in _acknowledged.items() if of == address}
    found = {table: int(stored(client, DATABASE, table).parameters[COUNT]) for table in expected}
    return {
        table: f"{expected[table]} acknowledged, {found[table]} found"
        for table in expected
        if found[table] != expected[table]
    }


def _committed(table: str) -> None:
    with _lock:
        _acknowledged[_measured, table] += 1


def _commit(client: Any, name: str, note: Note, *, expects: bool) -> bool:
    """Sends the commit. Returns whether the metastore accepted it."""
    began = time.perf_counter()
    table = stored(client, DATABASE, name)
    read = time.perf_counter()
    note("get_table", read - began)
    before, count = table.parameters[LOCATION], int(table.parameters[COUNT]) + 1
    table.parameters |= {LOCATION: f"file:/bench/{name}/{count}-{threading.get_ident()}.json", PREVIOUS: before}
    table.parameters[COUNT] = str(count)
    context = {"DO_NOT_UPDATE_STATS": "true"}
    if expects:
        context |= {"expected_parameter_key": LOCATION, "expected_parameter_value": before}
    request = ttypes.AlterTableRequest(
        dbName=DATABASE, tableName=name, table=table, environmentContext=ttypes.EnvironmentContext(context)
    )
    if expects:
        request.expectedParameterKey, request.expectedParameterValue = LOCATION, before
    try:
        client.alter_table_req(request)
    except (ttypes.MetaException, ttypes.InvalidOperationException) as error:
        if expects and "has been modified" in (error.message or ""):
            return False
        raise
    note("alter_table", time.perf_counter() - read)
    return True


def _with_lock(client: Any, name: str, note: Note) -> None:
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=DATABASE, tablename=name
    )
    began = time.perf_counter()
    answer = client.lock(ttypes.LockRequest(component=[component], user="bench", hostname="bench", agentInfo="bench"))
    while answer.state == ttypes.LockState.WAITING:
        time.sleep(RETRY_S)
        answer = client.check_lock(ttypes.CheckLockRequest(lockid=answer.lockid))
    note("lock", time.perf_counter() - began)
    _commit(client, name, note, expects=False)
    _committed(name)
    began = time.perf_counter()
    client.unlock(ttypes.UnlockRequest(lockid=answer.lockid))
    note("unlock", time.perf_counter() - began)


def _without_lock(client: Any, name: str, note: Note) -> None:
    while not _commit(client, name, note, expects=True):
        pass
    _committed(name)


def _cycle(name: str, commit: Callable[[Any, str, Note], None], *, shared: bool, locks: bool) -> Cycle:
    calls = ("lock", "get_table", "alter_table", "unlock") if locks else ("get_table", "alter_table")

    def run(client: Any, number: int, note: Note) -> None:
        commit(client, SHARED if shared else f"t{number}", note)

    return Cycle(name, calls, run, prepare)


COMMITS = (
    _cycle("Iceberg commits with locks, a table for each writer", _with_lock, shared=False, locks=True),
    _cycle("Iceberg commits with locks, one table", _with_lock, shared=True, locks=True),
    _cycle("Iceberg commits without locks, a table for each writer", _without_lock, shared=False, locks=False),
    _cycle("Iceberg commits without locks, one table", _without_lock, shared=True, locks=False),
)
