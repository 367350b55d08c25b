"""Which lock waits for which: one rule, as a function of two locks and as an SQL condition on HIVE_LOCKS.

Source: the query of Hive 4.0's `TxnHandler.checkLock`. An earlier lock (with a smaller external id) blocks a later one
if it belongs to another transaction, is on the same database, on the same table (or one of both is on the whole
database), likewise for partitions, and if their types conflict:

| requested         | waits for                     | but not for                                            |
|-------------------|-------------------------------|--------------------------------------------------------|
| r shared read     | e                             | e on a table, when the request is on the database      |
| w shared write    | x, e                          |                                                        |
| x exclusive write | w, x, e                       |                                                        |
| e exclusive       | r, w, x, e                    | r on the database, when the request is below it        |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, select

from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.schema import HIVE_LOCKS
from hms_cache.store.transactions.codes import EXCLUSIVE, EXCLUSIVE_WRITE, SHARED_READ, SHARED_WRITE
from hms_cache.values import frozen

L = HIVE_LOCKS.c

_WAITS_FOR = {
    SHARED_READ: (EXCLUSIVE,),
    SHARED_WRITE: (EXCLUSIVE_WRITE, EXCLUSIVE),
    EXCLUSIVE_WRITE: (SHARED_WRITE, EXCLUSIVE_WRITE, EXCLUSIVE),
    EXCLUSIVE: (SHARED_READ, SHARED_WRITE, EXCLUSIVE_WRITE, EXCLUSIVE),
}

_MAX_PARTITIONS_IN_SQL = 300
"""With more partitions of a table than this, a query names only the table, and the rule is applied in memory: databases
limit the parameters of a statement (SQLite 32,766), and long lists cost more than some superfluous rows."""


_MAX_GROUPS_IN_SQL = 100
"""With more tables and lock types than this, a query names only databases: SQLite allows 1,000 conditions in one
expression, and combining the conditions takes longer than reading the rows."""


@frozen
class LockTarget:
    """The object of a lock, and the lock's type code. Names are normalized; None below the lock's level."""

    lock_type: str
    database: str
    table: str | None = None
    partition: str | None = None


@frozen
class LockRow:
    """A lock as stored in HIVE_LOCKS."""

    external_id: int
    internal_id: int
    txn_id: int
    target: LockTarget
    state: str
    """Its code: whether it is held, or waits itself."""


def must_wait(requested: LockTarget, earlier: LockTarget) -> bool:
    """Whether the lock `requested` must wait for the lock `earlier` of another transaction."""
    if earlier.lock_type not in _WAITS_FOR[requested.lock_type] or not _overlap(requested, earlier):
        return False
    if requested.lock_type == SHARED_READ:
        return not (requested.table is None and earlier.table is not None)
    if requested.lock_type == EXCLUSIVE and earlier.lock_type == SHARED_READ:
        return not (requested.table is not None and earlier.table is None)
    return True


def blocking_types(requested: Iterable[LockTarget]) -> set[str]:
    """The type codes of locks for which one of these may have to wait."""
    return {code for lock_type in {target.lock_type for target in requested} for code in _WAITS_FOR[lock_type]}


def _overlap(first: LockTarget, second: LockTarget) -> bool:
    if first.database != second.database:
        return False
    if first.table is None or second.table is None:
        return True
    if first.table != second.table:
        return False
    return first.partition is None or second.partition is None or first.partition == second.partition


def earlier_locks_query(
    external_id: int, txn_id: int, targets: Iterable[LockTarget], limit: int | None
) -> tuple[Select[Any], dict[str, Any]]:
    """The statement, and its parameters, for earlier locks that may block `targets`, oldest first.

    It finds all that do. With very many tables or partitions it also finds some that do not (`must_wait` decides).
    `limit` applies only if the condition is exact.
    """
    groups: dict[tuple[str, str, str | None], set[str | None]] = defaultdict(set)
    for target in targets:
        groups[target.lock_type, target.database, target.table].add(target.partition)
    is_exact = len(groups) <= _MAX_GROUPS_IN_SQL
    parameters: dict[str, Any] = {"below": external_id}
    if txn_id > 0:
        parameters["txn_id"] = txn_id
    if not is_exact:
        databases = sorted({database for _, database, _ in groups})
        if len(databases) > _MAX_PARTITIONS_IN_SQL:
            return _locks_below(of_txn=txn_id > 0), parameters
        query = _locks_below(of_txn=txn_id > 0).where(L.HL_DB.in_(bindparam("databases", expanding=True)))
        return query, {**parameters, "databases": databases}
    shapes: list[_Shape] = []
    for number, ((lock_type, database, table), partitions) in enumerate(groups.items()):
        named = sorted(partition for partition in partitions if partition is not None)
        by_partition = table is not None and None not in partitions and len(named) <= _MAX_PARTITIONS_IN_SQL
        shapes.append((lock_type, table is not None, by_partition))
        parameters[f"database_{number}"] = database
        if table is not None:
            parameters[f"table_{number}"] = table
        if by_partition:
            parameters[f"partitions_{number}"] = named
    if any(by_partition for _, _, by_partition in shapes) or any(
        len(partitions) > _MAX_PARTITIONS_IN_SQL for partitions in groups.values()
    ):
        # The first row may be for a different partition: databases ignore trailing blanks, and tables of Hive's script
        # for MySQL also case and accents.
        limit = None
    build = _query_of if len(shapes) <= _MAX_GROUPS_KEPT else _query_of.__wrapped__
    return build(tuple(shapes), txn_id > 0, limit), parameters


_Shape = tuple[str, bool, bool]
"""Form of a group of targets: the lock type, whether it names a table, whether it names partitions."""

_MAX_GROUPS_KEPT = 3
"""For requests on up to this many tables, which most are, the condition is compiled once: compiling takes as long as
the query."""


@lru_cache(512)
def _query_of(shapes: tuple[_Shape, ...], of_txn: bool, limit: int | None) -> Select[Any]:
    conditions = (_group_condition(number, *shape) for number, shape in enumerate(shapes))
    query = _locks_below(of_txn).where(or_(*conditions))
    return query if limit is None else query.limit(limit)


LOCK_COLUMNS = (
    *(L.HL_LOCK_EXT_ID, L.HL_LOCK_INT_ID, L.HL_TXNID, L.HL_LOCK_TYPE, L.HL_DB, L.HL_TABLE, L.HL_PARTITION),
    L.HL_LOCK_STATE,
)
"""What a `LockRow` is made of."""


def _locks_below(of_txn: bool) -> Select[Any]:
    query = (
        select(*LOCK_COLUMNS).where(L.HL_LOCK_EXT_ID < bindparam("below")).order_by(L.HL_LOCK_EXT_ID, L.HL_LOCK_INT_ID)
    )
    return query.where(L.HL_TXNID != bindparam("txn_id")) if of_txn else query


def _group_condition(number: int, lock_type: str, has_table: bool, by_partition: bool) -> ColumnElement[bool]:
    # A lock may be on a name that does not exist but that the database considers equal to a table's: the oldest lock
    # found would then hide the one that blocks.
    conditions: list[ColumnElement[bool]] = [
        same_text(L.HL_DB, bindparam(f"database_{number}")),
        L.HL_LOCK_TYPE.in_(_WAITS_FOR[lock_type]),
    ]
    if not has_table:
        if lock_type == SHARED_READ:
            conditions.append(L.HL_TABLE.is_(None))
        return and_(*conditions)
    conditions.append(or_(L.HL_TABLE.is_(None), same_text(L.HL_TABLE, bindparam(f"table_{number}"))))
    if lock_type == EXCLUSIVE:
        conditions.append(or_(L.HL_TABLE.is_not(None), L.HL_LOCK_TYPE != SHARED_READ))
    if by_partition:
        # A lock on a whole table or database has no partition.
        named = L.HL_PARTITION.in_(bindparam(f"partitions_{number}", expanding=True))
        conditions.append(or_(L.HL_PARTITION.is_(None), named))
    return and_(*conditions)


def first_conflict(requests: Sequence[LockTarget], earlier: Iterable[LockRow]) -> tuple[int, LockRow] | None:
    """Position of the first request that must wait, and the oldest lock that it waits for; None if all can be granted.

    The work is linear in both: whether a request waits depends on its kind and on the names that both have in common,
    so for each row only the first request of each kind is examined.
    """
    kinds = _FirstOfEachKind(requests)
    for row in earlier:
        for candidates in kinds.beside(row.target):
            waiting = [position for position in candidates if must_wait(requests[position], row.target)]
            if waiting:
                return min(waiting), row
    return None


class _FirstOfEachKind:
    """The first position of each lock type among the requests, by the names that a lock may have in common with
    them."""

    def __init__(self, requests: Sequence[LockTarget]) -> None:
        self._of: dict[tuple[object, ...], dict[tuple[str, bool], int]] = defaultdict(dict)
        for position, one in enumerate(requests):
            kind = one.lock_type, one.table is None
            places: list[tuple[object, ...]] = [("all of", one.database)]
            if one.table is None:
                places.append(("database", one.database))
            else:
                places.append(("all of", one.database, one.table))
                places.append(("exactly", one.database, one.table, one.partition))
            for place in places:
                self._of[place].setdefault(kind, position)

    def beside(self, target: LockTarget) -> Iterator[Iterable[int]]:
        """Positions that may have to wait for a lock on this target: for its table, then for its whole database."""
        database, table, partition = target.database, target.table, target.partition
        if table is None:
            yield self._at("all of", database)
            return
        if partition is None:
            yield self._at("all of", database, table)
        else:
            yield (*self._at("exactly", database, table, partition), *self._at("exactly", database, table, None))
        yield self._at("database", database)

    def _at(self, *place: object) -> Iterable[int]:
        found = self._of.get(place)
        return found.values() if found is not None else ()
