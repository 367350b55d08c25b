"""Locks with their owners, for administrators: who holds or waits for a lock, whether the owner is alive, and the
release of locks of dead owners.

Heartbeats show that an owner is alive: on the lock if it is outside a transaction, as those of Iceberg's clients during
a commit, otherwise on the transaction. Timeouts (`time_outs.give_up_timed_out`) release both; manual release is for
what cannot wait for them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, select

from hms_cache.config.quantities import whole_milliseconds
from hms_cache.store.locks.lock_rows import without_other_spellings
from hms_cache.store.schema import HIVE_LOCKS, TXNS
from hms_cache.store.transactions.codes import LOCK_ACQUIRED, LOCK_STATES, LOCK_TYPES
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms, read_now_ms
from hms_cache.store.transactions.errors import lock_name, no_such_lock_error, txn_name
from hms_cache.thrift_gen.hive_metastore.ttypes import LockState, LockType, TxnOpenException
from hms_cache.values import frozen

L = HIVE_LOCKS.c
T = TXNS.c

MAX_LISTED_LOCKS = 1000
"""Rows in one list: about 200 KB of JSON. The lowest ids come first, among them the locks that block others."""


@frozen
class OwnedLock:
    """One component of a lock, and its owner."""

    lock_id: int
    txn_id: int
    """0: outside a transaction."""
    table: str
    """`database`, `database.table` or `database.table/partition`."""
    lock_type: str
    state: str
    owner: str
    host: str
    agent: str
    held_s: float | None
    """Seconds since it was granted; None while it waits."""
    heartbeat_age_s: float
    """Seconds since the last heartbeat of the owner (of the transaction if there is one)."""
    is_dead: bool
    """Whether there was no heartbeat for longer than `transactions.timeout_s`."""


@frozen
class OwnedLocks:
    """The locks with the lowest ids. `is_complete`: there are no others."""

    locks: tuple[OwnedLock, ...]
    is_complete: bool


class LockIsLive(Exception):
    """The lock's owner has sent a heartbeat within the timeout; the text says when."""


def read_owned_locks(connection: Connection, context: TxnContext) -> OwnedLocks:
    """Held and waiting locks by id, at most `MAX_LISTED_LOCKS` rows. One statement."""
    found = connection.execute(
        select(HIVE_LOCKS, T.TXN_LAST_HEARTBEAT, now_ms().label("NOW_MS"))
        .select_from(HIVE_LOCKS.outerjoin(TXNS, L.HL_TXNID == T.TXN_ID))
        .order_by(L.HL_LOCK_EXT_ID, L.HL_LOCK_INT_ID)
        .limit(MAX_LISTED_LOCKS + 1)
    ).all()
    rows = without_other_spellings(found[:MAX_LISTED_LOCKS])
    timeout_ms = whole_milliseconds(context.transactions.timeout_s)
    return OwnedLocks(tuple(_owned(row, timeout_ms) for row in rows), len(found) <= MAX_LISTED_LOCKS)


def _owned(row: Any, timeout_ms: float) -> OwnedLock:
    heartbeat = row.TXN_LAST_HEARTBEAT if row.HL_TXNID > 0 else row.HL_LAST_HEARTBEAT
    # If a lock's transaction does not exist any more, its owner cannot return.
    age_ms = row.NOW_MS - (heartbeat or 0)
    held_ms = row.NOW_MS - row.HL_ACQUIRED_AT if row.HL_ACQUIRED_AT and row.HL_LOCK_STATE == LOCK_ACQUIRED else None
    name = ".".join(part for part in (row.HL_DB, row.HL_TABLE) if part)
    return OwnedLock(
        lock_id=row.HL_LOCK_EXT_ID,
        txn_id=row.HL_TXNID,
        table=f"{name}/{row.HL_PARTITION}" if row.HL_PARTITION else name,
        lock_type=LockType._VALUES_TO_NAMES[LOCK_TYPES[row.HL_LOCK_TYPE]],
        state=LockState._VALUES_TO_NAMES[LOCK_STATES[row.HL_LOCK_STATE]],
        owner=row.HL_USER or "",
        host=row.HL_HOST or "",
        agent=row.HL_AGENT_INFO or "",
        held_s=None if held_ms is None else max(0, held_ms) / 1000,
        heartbeat_age_s=max(0, age_ms) / 1000,
        is_dead=age_ms > timeout_ms,
    )


def release_lock(connection: Connection, context: TxnContext, lock_id: int, force: bool) -> None:
    """Deletes a lock outside a transaction whose owner is dead; with `force`, also that of a live owner.

    Raises NoSuchLockException, LockIsLive, and TxnOpenException for a lock of a transaction, even with `force`: the
    writes of the transaction would no longer be protected.
    """
    rows = connection.execute(
        select(L.HL_TXNID, L.HL_LAST_HEARTBEAT).where(L.HL_LOCK_EXT_ID == lock_id).with_for_update()
    ).all()
    if not rows:
        raise no_such_lock_error(lock_id)
    if rows[0].HL_TXNID > 0:
        raise TxnOpenException(
            f"{lock_name(lock_id)} belongs to {txn_name(rows[0].HL_TXNID)}: abort the transaction, which releases it"
        )
    # With the rows locked: an earlier heartbeat is seen, a later one finds no lock.
    age_ms = read_now_ms(connection) - max(row.HL_LAST_HEARTBEAT for row in rows)
    if not force and age_ms <= whole_milliseconds(context.transactions.timeout_s):
        raise LockIsLive(
            f"{lock_name(lock_id)} had a heartbeat {age_ms / 1000:.0f} s ago, and owners are given"
            f" {context.transactions.timeout_s:.0f} s: wait, or force it if the owner is known to be gone"
        )
    connection.execute(delete(HIVE_LOCKS).where(L.HL_LOCK_EXT_ID == lock_id))
