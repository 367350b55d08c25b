"""Earlier locks that may block several requests: read once, and checked in memory for each request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from typing import Any

from sqlalchemy import Connection, Select, bindparam, or_, select

from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.locks.lock_rules import LOCK_COLUMNS, LockRow, LockTarget, blocking_types, first_conflict
from hms_cache.store.schema import HIVE_LOCKS

L = HIVE_LOCKS.c

MAX_EARLIER_LOCKS = 1000
"""Maximum number of locks read for all requests together: some 200 KB. If there are more, each request is a query of
its own, which returns the oldest conflict."""

_MAX_NAMES = 300
"""With more different names of databases or tables, names are compared in memory only."""


class EarlierLocks:
    """Locks in the order of their ids, indexed by database and table. Not thread-safe."""

    def __init__(self, rows: Iterable[LockRow] = ()) -> None:
        self._of: dict[str, dict[str | None, list[LockRow]]] = defaultdict(lambda: defaultdict(list))
        self.add(rows)

    def add(self, rows: Iterable[LockRow]) -> None:
        """Adds locks. None may be older than those added before."""
        for row in rows:
            self._of[row.target.database][row.target.table].append(row)

    def conflict_of(self, external_id: int, txn_id: int, targets: Sequence[LockTarget]) -> tuple[int, LockRow] | None:
        """Like `first_conflict`, among the locks older than `external_id` of transactions other than `txn_id`."""
        earlier = (
            row
            for row in self._overlapping(targets)
            if row.external_id < external_id and (txn_id == 0 or row.txn_id != txn_id)
        )
        return first_conflict(targets, earlier)

    def _overlapping(self, targets: Sequence[LockTarget]) -> Iterator[LockRow]:
        """Locks that have a database or table in common with the targets, oldest first."""
        lists: list[list[LockRow]] = []
        requested: dict[str, set[str | None]] = defaultdict(set)
        for target in targets:
            requested[target.database].add(target.table)
        for database, tables in requested.items():
            if (of_database := self._of.get(database)) is None:
                continue
            # A lock on a database conflicts with those on its tables, and a lock on a table with those on its database.
            names = of_database.keys() if None in tables else (*tables, None)
            lists += [of_database[name] for name in names if name in of_database]
        return merge(*lists, key=_age) if len(lists) > 1 else iter(lists[0] if lists else ())


def _age(row: LockRow) -> tuple[int, int]:
    return row.external_id, row.internal_id


def read_earlier_locks(connection: Connection, below: int, targets: Iterable[LockTarget]) -> EarlierLocks | None:
    """The locks with ids below `below` that may block any of the targets.

    None if there are more than `MAX_EARLIER_LOCKS`. One statement.
    """
    (by_database, by_table), parameters = earlier_locks_parameters(below, targets)
    return earlier_locks(connection.execute(_query(by_database, by_table), parameters).all())


def earlier_locks(found: Sequence[Any]) -> EarlierLocks | None:
    """Like `read_earlier_locks`, for rows that were read with `earlier_locks_parameters`."""
    if len(found) > MAX_EARLIER_LOCKS:
        return None
    return EarlierLocks(
        LockRow(external_id, internal_id, txn_id, LockTarget(lock_type, database, table, partition), state)
        for external_id, internal_id, txn_id, lock_type, database, table, partition, state in found
    )


def earlier_locks_parameters(below: int, targets: Iterable[LockTarget]) -> tuple[tuple[bool, bool], dict[str, Any]]:
    """The form of the query (by names of databases, of tables), and its parameters."""
    targets = list(targets)
    databases = {target.database for target in targets}
    tables = {target.table for target in targets}
    parameters: dict[str, Any] = {"below": below, "types": sorted(blocking_types(targets))}
    by_database = len(databases) <= _MAX_NAMES
    by_table = None not in tables and len(tables) <= _MAX_NAMES
    if by_database:
        parameters["databases"] = sorted(databases)
    if by_table:
        parameters["tables"] = sorted(table for table in tables if table is not None)
    return (by_database, by_table), parameters


@lru_cache
def direct_query(by_database: bool, by_table: bool) -> DirectQuery:
    """The same query, for a packet with other statements."""
    return DirectQuery(_query(by_database, by_table))


@lru_cache
def _query(by_database: bool, by_table: bool) -> Select[Any]:
    query = (
        select(*LOCK_COLUMNS)
        .where(L.HL_LOCK_EXT_ID < bindparam("below"), L.HL_LOCK_TYPE.in_(bindparam("types", expanding=True)))
        .order_by(L.HL_LOCK_EXT_ID, L.HL_LOCK_INT_ID)
        .limit(MAX_EARLIER_LOCKS + 1)
    )
    if by_database:
        query = query.where(L.HL_DB.in_(bindparam("databases", expanding=True)))
    if by_table:
        query = query.where(or_(L.HL_TABLE.is_(None), L.HL_TABLE.in_(bindparam("tables", expanding=True))))
    return query
