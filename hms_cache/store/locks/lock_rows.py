"""Reads and changes rows of HIVE_LOCKS, of one lock or several. Statements are compiled once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from hms_cache.store.locks.lock_rules import LockRow, LockTarget
from hms_cache.store.schema import HIVE_LOCKS
from hms_cache.store.transactions.codes import LOCK_ACQUIRED
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.names import partition_escaped_again

L = HIVE_LOCKS.c

ROWS = (
    select(
        L.HL_LOCK_EXT_ID,
        L.HL_LOCK_INT_ID,
        L.HL_TXNID,
        L.HL_LOCK_TYPE,
        L.HL_DB,
        L.HL_TABLE,
        L.HL_PARTITION,
        L.HL_LOCK_STATE,
        L.HL_BLOCKEDBY_EXT_ID,
        L.HL_BLOCKEDBY_INT_ID,
    )
    .where(L.HL_LOCK_EXT_ID.in_(bindparam("lock_ids", expanding=True)))
    .order_by(L.HL_LOCK_EXT_ID, L.HL_LOCK_INT_ID)
)


def rows_of_locks(connection: Connection, lock_ids: Collection[int]) -> dict[int, list[Any]]:
    """The rows of these locks in the order of their internal ids. Locks that do not exist are left out."""
    return rows_by_lock(connection.execute(ROWS, {"lock_ids": sorted(lock_ids)}))


def rows_by_lock(rows: Iterable[Any]) -> dict[int, list[Any]]:
    """Groups rows of `ROWS` by lock."""
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.HL_LOCK_EXT_ID, []).append(row)
    return found


def without_other_spellings(rows: Iterable[Any]) -> list[Any]:
    """Rows of HIVE_LOCKS without those for the other spelling of a partition's name (`locking`)."""
    rows = list(rows)
    others = {
        (row.HL_LOCK_EXT_ID, row.HL_DB, row.HL_TABLE, again)
        for row in rows
        if row.HL_PARTITION and (again := partition_escaped_again(row.HL_PARTITION)) is not None
    }
    return [row for row in rows if (row.HL_LOCK_EXT_ID, row.HL_DB, row.HL_TABLE, row.HL_PARTITION) not in others]


def lock_row(row: Any) -> LockRow:
    """Parses a row of HIVE_LOCKS."""
    target = LockTarget(row.HL_LOCK_TYPE, row.HL_DB, row.HL_TABLE, row.HL_PARTITION)
    return LockRow(row.HL_LOCK_EXT_ID, row.HL_LOCK_INT_ID, row.HL_TXNID, target, row.HL_LOCK_STATE)


_OF_LOCKS = L.HL_LOCK_EXT_ID.in_(bindparam("ids", expanding=True))
_GRANT = (
    update(HIVE_LOCKS)
    .where(_OF_LOCKS)
    .values(HL_LOCK_STATE=LOCK_ACQUIRED, HL_ACQUIRED_AT=now_ms(), HL_BLOCKEDBY_EXT_ID=None, HL_BLOCKEDBY_INT_ID=None)
)
_RECORD_BLOCKER = (
    update(HIVE_LOCKS)
    .where(_OF_LOCKS, L.HL_LOCK_INT_ID == bindparam("internal_id"))
    .values(HL_BLOCKEDBY_EXT_ID=bindparam("by_external"), HL_BLOCKEDBY_INT_ID=bindparam("by_internal"))
)
_BEAT_LOCKS = update(HIVE_LOCKS).where(_OF_LOCKS).values(HL_LAST_HEARTBEAT=now_ms())


def grant(connection: Connection, lock_ids: Collection[int]) -> int:
    """Marks these locks as held; returns the number of rows."""
    return connection.execute(_GRANT, {"ids": sorted(lock_ids)}).rowcount


def record_blocker(
    connection: Connection, lock_ids: Collection[int], internal_id: int, by_external: int, by_internal: int
) -> None:
    """Records that this component of these locks waits for that lock."""
    parameters = {"internal_id": internal_id, "by_external": by_external, "by_internal": by_internal}
    connection.execute(_RECORD_BLOCKER, {"ids": sorted(lock_ids), **parameters})


def beat_locks(connection: Connection, lock_ids: Collection[int]) -> int:
    """Records heartbeats of these locks; returns the number of rows."""
    return connection.execute(_BEAT_LOCKS, {"ids": sorted(lock_ids)}).rowcount
