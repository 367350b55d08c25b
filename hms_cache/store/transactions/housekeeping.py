"""Rows nobody needs any more.

What may go is decided by *low-water marks*: ids below which no transaction is open, nor seen open by one that is still
open, and no reader takes a gap for a transaction. Source: Hive 4.0 `CleanTxnToWriteIdTableFunction`,
`MinOpenTxnIdWaterMarkFunction`, `CompactionTxnHandler.cleanEmptyAbortedAndCommittedTxns`. HIVE-25346 tells what
happens when TXN_TO_WRITE_ID is cleaned too early: snapshots take uncommitted writes for committed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    and_,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    union_all,
)

from hms_cache.batches import batches
from hms_cache.clock import stored_s
from hms_cache.config.quantities import whole_seconds
from hms_cache.store.engine.bulk_writes import delete_some
from hms_cache.store.engine.index_walk import is_after
from hms_cache.store.engine.text_conditions import ExactText, same_text
from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    MIN_HISTORY_LEVEL,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions.codes import TXN_ABORTED, TXN_COMMITTED, TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.delta_thresholds import LEAST_KEPT, own_delta_thresholds, writes_kept
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.write_notifications import delete_old_write_notifications
from hms_cache.values import frozen

T = TXNS.c
W = TXN_TO_WRITE_ID.c
N = NEXT_WRITE_ID.c
DONE = COMPLETED_TXN_COMPONENTS.c

_BATCH_SIZE = 10_000
"""Rows of one table deleted in one transaction: enough to keep up, little enough that nobody waits long for it."""


@frozen
class Cleaned:
    """Rows deleted by one step, by table."""

    txns: int
    write_ids: int
    write_sets: int
    completed_components: int
    write_notifications: int

    def plus(self, other: Cleaned) -> Cleaned:
        """Both added up."""
        return Cleaned(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def tables_left(self) -> Collection[str]:
        """Of which another step may find more."""
        return [table for table, rows in asdict(self).items() if rows >= _BATCH_SIZE]

    @property
    def is_complete(self) -> bool:
        """Whether another step would find nothing."""
        return not self.tables_left


def clean(connection: Connection, context: TxnContext, before: Cleaned | None = None) -> Cleaned:
    """Delete what is below the low-water marks, 10,000 rows of a table at most, in the caller's transaction.

    `before`: what the step before this one has deleted. Of tables of which it left nothing no row is looked at again:
    while the rows of one table go by the hundred thousand, those of others are not read each time.
    """
    hold_mutex(connection, Mutex.TXN_CLEANER)
    left = None if before is None else before.tables_left
    if left is None:
        _clean_histories(connection, context)
        context.housekeeper.surplus_writes.go_on(connection)
    retention_s = whole_seconds(context.events.retention_s)
    written_before = stored_s(context.clock.epoch_s()) - retention_s
    steps: Mapping[str, Callable[[], int]] = {
        "txns": lambda: _clean_txns(connection, context),
        "write_ids": lambda: _clean_write_ids(connection, context),
        "write_sets": lambda: _clean_write_sets(connection, context),
        "completed_components": lambda: _clean_completed_components(connection, context),
        "write_notifications": lambda: delete_old_write_notifications(connection, written_before, _BATCH_SIZE),
    }
    return Cleaned(**{table: step() if left is None or table in left else 0 for table, step in steps.items()})


def min_open_txn_water_mark(connection: Connection, context: TxnContext) -> int:
    """The lowest id that is open or may be one that is being opened. Above all ids when there is none."""
    is_old = T.TXN_STARTED < now_ms() - context.transactions.open_timeout_ms
    row = connection.execute(
        select(
            # Not `min`: of the ids in order the first open one is enough.
            select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN).order_by(T.TXN_ID).limit(1).scalar_subquery(),
            select(T.TXN_ID).where(is_old).order_by(T.TXN_ID.desc()).limit(1).scalar_subquery(),
        )
    ).one()
    low_boundary = int(row[1] or 0)
    return low_boundary + 1 if row[0] is None else min(int(row[0]), low_boundary + 1)


def _clean_txns(connection: Connection, context: TxnContext) -> int:
    """Committed rows, and aborted ones whose files a cleaner has removed; never the highest, which keeps the mark."""
    is_old = T.TXN_STARTED < now_ms() - context.transactions.open_timeout_ms
    low_boundary = connection.execute(select(T.TXN_ID).where(is_old).order_by(T.TXN_ID.desc()).limit(1)).scalar()
    if low_boundary is None:
        return 0
    components = TXN_COMPONENTS.c.TC_TXNID
    has_components = select(components).where(components == T.TXN_ID).exists()
    # Those of a committed one are left over: Hive leaves them when a reader commits.
    is_over = or_(T.TXN_STATE == TXN_COMMITTED, and_(T.TXN_STATE == TXN_ABORTED, ~has_components))
    rows = connection.execute(
        select(T.TXN_ID, T.TXN_STATE).where(is_over, T.TXN_ID < low_boundary).order_by(T.TXN_ID).limit(_BATCH_SIZE)
    ).all()
    for batch in batches(rows, 1000):
        ids = [row.TXN_ID for row in batch]
        for txn_id in context.histories:
            # There may be more than one step deletes; a foreign key would hold the row.
            connection.execute(delete(txn_id.table).where(txn_id.in_(ids)))
        committed = [row.TXN_ID for row in batch if row.TXN_STATE == TXN_COMMITTED]
        connection.execute(delete(TXN_COMPONENTS).where(components.in_(committed)))
        connection.execute(delete(TXNS).where(T.TXN_ID.in_(ids)))
    return len(rows)


def _clean_histories(connection: Connection, context: TxnContext) -> None:
    """What open transactions see is noted by servers with one setting; those with another end them and leave the rows,
    for which write ids and cleaners would wait for ever."""
    for txn_id in context.histories:
        is_open = select(T.TXN_ID).where(T.TXN_ID == txn_id, T.TXN_STATE == TXN_OPEN).exists()
        over = connection.execute(select(txn_id).distinct().where(~is_open).limit(_BATCH_SIZE)).scalars().all()
        for some in batches(over, 1000):
            connection.execute(delete(txn_id.table).where(txn_id.in_(some)))


def _clean_write_ids(connection: Connection, context: TxnContext) -> int:
    if context.use_min_history_level and _is_any_open_without_history(connection):
        return 0
    is_invalid = T.TXN_STATE.in_([TXN_ABORTED, TXN_OPEN])
    marks = [
        select(func.max(T.TXN_ID) + 1).scalar_subquery(),
        select(T.TXN_ID).where(is_invalid).order_by(T.TXN_ID).limit(1).scalar_subquery(),
        select(func.min(WRITE_SET.c.WS_TXNID)).scalar_subquery(),
    ]
    if any(txn_id.table is MIN_HISTORY_LEVEL for txn_id in context.histories):
        # Also where the setting is off: for who was opened when it was on, commits noted no writes but row changes.
        marks.append(select(func.min(MIN_HISTORY_LEVEL.c.MHL_MIN_OPEN_TXNID)).scalar_subquery())
    found = [value for value in connection.execute(select(*marks)).one() if value is not None]
    found.append(min_open_txn_water_mark(connection, context))
    mark = min(found)
    deleted = _delete_oldest_write_ids(connection, mark)
    return deleted + _delete_write_ids_without_table(connection, context, mark, _BATCH_SIZE - deleted)


def _is_any_open_without_history(connection: Connection) -> bool:
    """Whether a transaction is open that was opened by a server, of Hive's or ours, with `min_history_level` off.

    Nobody has noted which ones it saw open. The write sets of these would tell, but with the setting on commits note
    row changes only. So no write id is forgotten before it is over.
    """
    noted = MIN_HISTORY_LEVEL.c.MHL_TXNID
    is_noted = select(noted).where(noted == T.TXN_ID).exists()
    return connection.execute(select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN, ~is_noted).limit(1)).first() is not None


def _delete_oldest_write_ids(connection: Connection, mark: int) -> int:
    """Of transactions below the mark; how many. What stays of a table are always its latest ones.

    Whoever reads them (`write_ids.valid_write_ids`) takes the highest that is there for the end of what a snapshot may
    see, and all below the lowest invalid one for valid. A write id of a committed transaction that is forgotten before
    a lower one of the table would be above that end: what was written under it would be there no more. So it stays
    while a lower one does, which may be that of an aborted transaction, and what is deleted in several steps begins
    with the lowest.

    While a transaction stays open for long there may be millions of them, of which most stay. So only tables are looked
    at whose lowest one may go, and of these no more than may be deleted.
    """
    left = _BATCH_SIZE
    for _ in range(_PASSES):
        tables = _with_old_write_ids(connection, mark, left)
        if not tables:
            break
        # Of each table as many numbers as there may be rows.
        share = left // len(tables)
        for some in batches(tables, _TABLES_AT_ONCE):
            left -= _delete_old_write_ids_of(connection, mark, some, share)
        if left <= 0:
            break
    return _BATCH_SIZE - left


_PASSES = 10
"""Through the tables, in one step: each takes from all of them as much as is left, in equal shares."""

_TABLES_AT_ONCE = 100
"""Whose write ids one statement deletes."""


def _with_old_write_ids(connection: Connection, mark: int, most: int) -> Sequence[tuple[str, str, int]]:
    """Database, name and lowest write id of tables whose lowest one is of a transaction below the mark."""

    def of_lowest(column: Column[Any]) -> ColumnElement[int]:
        own = (W.T2W_DATABASE == N.NWI_DATABASE, W.T2W_TABLE == N.NWI_TABLE)
        lowest = select(column).where(*own).order_by(W.T2W_WRITEID).limit(1)
        return lowest.correlate(NEXT_WRITE_ID).scalar_subquery()

    query = select(N.NWI_DATABASE, N.NWI_TABLE, of_lowest(W.T2W_WRITEID)).where(of_lowest(W.T2W_TXNID) < mark)
    return [(database, table, int(lowest)) for database, table, lowest in connection.execute(query.limit(most))]


def _delete_old_write_ids_of(
    connection: Connection, mark: int, tables: Sequence[tuple[str, str, int]], most: int
) -> int:
    """From each table's lowest on, at most so many numbers, up to the first that is to stay; how many."""
    is_old = W.T2W_TXNID < mark
    ends = {(database, table): lowest + most for database, table, lowest in tables}

    def up_to_ends() -> ColumnElement[bool]:
        return or_(
            *(
                and_(W.T2W_DATABASE == database, W.T2W_TABLE == table, W.T2W_WRITEID < end)
                for (database, table), end in ends.items()
            )
        )

    kept = connection.execute(
        select(W.T2W_DATABASE, W.T2W_TABLE, func.min(W.T2W_WRITEID))
        .where(~is_old, up_to_ends())
        .group_by(W.T2W_DATABASE, W.T2W_TABLE)
    )
    ends |= {(database, table): int(first) for database, table, first in kept}
    return connection.execute(delete(TXN_TO_WRITE_ID).where(is_old, up_to_ends())).rowcount


_MAX_LOOKED_FOR = 20
"""Tables with write ids, each found by one look at the index."""


def _delete_write_ids_without_table(connection: Connection, context: TxnContext, mark: int, most: int) -> int:
    """Those of names without a row of NEXT_WRITE_ID, by which tables are found else; how many.

    A metastore that was killed while it dropped a table may have left them: Hive does so outside of the transaction
    that drops it. There is no hurry. Of each server some names come at a time.
    """
    next_id = select(literal(1)).where(N.NWI_DATABASE == W.T2W_DATABASE, N.NWI_TABLE == W.T2W_TABLE)
    columns = (W.T2W_DATABASE, W.T2W_TABLE)
    has_none = ~next_id.correlate(TXN_TO_WRITE_ID).exists()
    query = select(*columns, W.T2W_WRITEID, has_none).order_by(*columns, W.T2W_WRITEID).limit(1)
    left, keeper = most, context.housekeeper
    for _ in range(_MAX_LOOKED_FOR if left > 0 else 0):
        last = keeper.last_with_write_ids
        found = connection.execute(query if last is None else query.where(is_after(connection, columns, last))).first()
        if found is None:
            keeper.last_with_write_ids = None
            break
        database, table, lowest, is_without_table = found
        if is_without_table:
            left -= _delete_old_write_ids_of(connection, mark, [(database, table, int(lowest))], left)
        if left <= 0:
            break  # of this one there may be more
        keeper.last_with_write_ids = (database, table)
    return most - left


def _clean_write_sets(connection: Connection, context: TxnContext) -> int:
    water_mark = min_open_txn_water_mark(connection, context)
    return delete_some(connection, WRITE_SET, WRITE_SET.c.WS_COMMIT_ID < water_mark, _BATCH_SIZE)


def _clean_completed_components(connection: Connection, context: TxnContext) -> int:
    """Of each table or partition the newest write, and the newest that changed rows, tell all that the others tell;
    but not of writes that were open when later ones were committed: see `write_ids.materializations`. And the initiator
    of compactions counts them. Writes without a write id, of clients that allocate none, count for nobody: they tell
    that their transactions were committed, as others do, and the newest of these stay. All are counted part by part,
    since most of them stay."""
    common = writes_kept(context.compactions.delta_count_threshold)
    has_write_id = DONE.CTC_WRITEID.is_not(None)
    left, walk = _BATCH_SIZE, context.housekeeper.surplus_writes
    with walk.working():
        for are_of_part in walk.part:
            for number, condition in ((DONE.CTC_WRITEID, has_write_id), (DONE.CTC_TXNID, ~has_write_id)):
                often = _written_often(connection, number, condition, are_of_part, common)
                for some in batches(often, _GROUPS_AT_ONCE):
                    if left > 0:
                        surplus = _surplus(connection, number, some)
                        left -= delete_some(connection, COMPLETED_TXN_COMPONENTS, surplus, left)
    return _BATCH_SIZE - left


_GROUPS_LOOKED_AT = 100_000
"""Tables and partitions of a part with many completed writes; most of them may keep what they have."""

_GROUPS_AT_ONCE = 50
"""Tables or partitions in one statement: SQLite ends at 500 SELECTs in one."""


class _Written(NamedTuple):
    """A table or partition that was written to more often than is kept."""

    are_its: ColumnElement[bool]
    kept: int
    """How many writes stay, the newest of them."""
    newest: int
    newest_change: int | None
    """Of rows."""


def _written_often(
    connection: Connection,
    number: Column[Any],
    are_meant: ColumnElement[bool],
    are_of_part: ColumnElement[bool],
    common: int,
) -> list[_Written]:
    """`number` tells writes apart, and which is newer. `common`: how many are kept of most tables."""
    place = (DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION)
    changed = case((DONE.CTC_UPDATE_DELETE == "Y", number))
    rows = connection.execute(
        select(*place, func.max(number), func.max(changed), writes := func.count(number.distinct()))
        .where(are_meant, are_of_part)
        .group_by(*place, ExactText(DONE.CTC_PARTITION))
        .having(writes > LEAST_KEPT + 1)
        .limit(_GROUPS_LOOKED_AT)
    ).all()
    # Hive notes writers' locks on whole databases, too.
    own = own_delta_thresholds(connection, {(row[0], row[1]) for row in rows if row[1] is not None})
    found: list[_Written] = []
    for database, table, partition, newest, newest_change, count in rows:
        threshold = own.get((database, table))
        kept = common if threshold is None else writes_kept(threshold)
        if count > kept + 1:
            of_table = (DONE.CTC_DATABASE == database, DONE.CTC_TABLE == table)
            are_its = and_(*of_table, same_text(DONE.CTC_PARTITION, partition), are_meant)
            found.append(_Written(are_its, kept, newest, newest_change))
    return found


def _surplus(connection: Connection, number: Column[Any], written: Sequence[_Written]) -> ColumnElement[bool]:
    """The writes to these that may go."""
    of_each = [
        select(literal(place).label("PLACE"), number.label("NUMBER"))
        .where(one.are_its)
        .distinct()
        .order_by(number.desc())
        .offset(one.kept - 1)
        .limit(1)
        .subquery(f"written{place}")
        for place, one in enumerate(written)
    ]
    query = union_all(*map(select, of_each)) if len(of_each) > 1 else select(of_each[0])
    oldest_kept = {int(place): int(oldest) for place, oldest in connection.execute(query)}
    conditions = []
    for place, one in enumerate(written):
        are_surplus = and_(one.are_its, number < min(oldest_kept.get(place, one.newest), one.newest))
        if one.newest_change is not None:
            are_surplus = and_(are_surplus, number != one.newest_change)
        conditions.append(are_surplus)
    return or_(*conditions)
