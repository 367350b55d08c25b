"""Whose transactions and locks are named. An id is never given twice, so that an answer stays true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Select, select

from hms_cache.batches import batches
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema import HIVE_LOCKS, TXNS

MAX_IDS = 1000
"""In one statement."""


def users_of_txns(connection: Connection, txn_ids: Sequence[int]) -> dict[int, str]:
    """Who opened each; those that are over and forgotten are left out. A statement for each thousand."""
    found: dict[int, str] = {}
    for some in batches(txn_ids, MAX_IDS):
        rows = connection.execute(select(TXNS.c.TXN_ID, TXNS.c.TXN_USER).where(TXNS.c.TXN_ID.in_(some)))
        found.update((txn_id, user) for txn_id, user in rows)
    return found


def users_of_range(connection: Connection, first: int, last: int) -> set[str]:
    """Who opened the transactions from one id to another."""
    statement = _each(TXNS.c.TXN_USER).where(TXNS.c.TXN_ID >= first, TXNS.c.TXN_ID <= last)
    return set(connection.execute(statement).scalars())


def users_of_lock(connection: Connection, lock_id: int) -> set[str]:
    """Who took a lock; nobody, if it is not there."""
    statement = _each(HIVE_LOCKS.c.HL_USER).where(HIVE_LOCKS.c.HL_LOCK_EXT_ID == lock_id)
    return {user or "" for user in connection.execute(statement).scalars()}


def _each(user: Column[Any]) -> Select[Any]:
    """Every user once: `Ada` is not `ada`, whose transactions and locks are no business of hers."""
    return select(user).group_by(user, ExactText(user))
