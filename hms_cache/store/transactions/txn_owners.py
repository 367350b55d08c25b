"""The users of transactions and locks. Ids are never reused, so the result stays valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Select, select

from hms_cache.batches import batches
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema import HIVE_LOCKS, TXNS

MAX_IDS = 1000
"""Ids in one statement."""


def users_of_txns(connection: Connection, txn_ids: Sequence[int]) -> dict[int, str]:
    """The user of each transaction; those that have ended and been deleted are left out. One statement per 1,000."""
    found: dict[int, str] = {}
    for some in batches(txn_ids, MAX_IDS):
        rows = connection.execute(select(TXNS.c.TXN_ID, TXNS.c.TXN_USER).where(TXNS.c.TXN_ID.in_(some)))
        found.update((txn_id, user) for txn_id, user in rows)
    return found


def users_of_range(connection: Connection, first: int, last: int) -> set[str]:
    """The users of the transactions with ids in this range."""
    statement = _each(TXNS.c.TXN_USER).where(TXNS.c.TXN_ID >= first, TXNS.c.TXN_ID <= last)
    return set(connection.execute(statement).scalars())


def users_of_lock(connection: Connection, lock_id: int) -> set[str]:
    """The users of a lock; empty if it does not exist."""
    statement = _each(HIVE_LOCKS.c.HL_USER).where(HIVE_LOCKS.c.HL_LOCK_EXT_ID == lock_id)
    return {user or "" for user in connection.execute(statement).scalars()}


def _each(user: Column[Any]) -> Select[Any]:
    """Each user once. `Ada` and `ada` are different users."""
    return select(user).group_by(user, ExactText(user))
