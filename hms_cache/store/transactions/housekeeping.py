"""Rows nobody needs any more.

What may go is decided by *low-water marks*: ids below which no transaction is open, nor seen open by one that is still
open, and no reader takes a gap for a transaction. Source: Hive 4.0 `CleanTxnToWriteIdTableFunction`,
`MinOpenTxnIdWaterMarkFunction`, `CompactionTxnHandler.cleanEmptyAbortedAndCommittedTxns`. HIVE-25346 tells what
happens when TXN_TO_WRITE_ID is cleaned too early: snapshots take uncommitted writes for committed ones.
"""

from __future__ import annotations

from collections import deque
from dataclasses import astuple

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, or_, select

from hms_cache.batches import batches
from hms_cache.clock import stored_s
from hms_cache.config.quantities import whole_seconds
from hms_cache.store.engine.bulk_writes import delete_some
from hms_cache.store.engine.text_conditions import ExactText, same_text
from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    MIN_HISTORY_LEVEL,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions.codes import TXN_ABORTED, TXN_COMMITTED, TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.delta_thresholds import own_delta_thresholds, writes_kept
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.write_notifications import delete_old_write_notifications
from hms_cache.values import frozen

T = TXNS.c
W = TXN_TO_WRITE_ID.c
DONE = COMPLETED_TXN_COMPONENTS.c

_BATCH_SIZE = 10_000
"""Rows of one table deleted in one transaction: enough to keep up, little enough that nobody waits long for it."""

_TABLES_AT_ONCE = 100
"""Whose write ids one statement deletes."""


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
    def is_complete(self) -> bool:
        """Whether another step would find nothing."""
        return all(rows < _BATCH_SIZE for rows in astuple(self))


def clean(connection: Connection, context: TxnContext) -> Cleaned:
    """Delete what is below the low-water marks, 10,000 rows of a table at most, in the caller's transaction."""
    hold_mutex(connection, Mutex.TXN_CLEANER)
    _clean_histories(connection, context)
    retention_s = whole_seconds(context.events.retention_s)
    return Cleaned(
        txns=_clean_txns(connection, context),
        write_ids=_clean_write_ids(connection, context),
        write_sets=_clean_write_sets(connection, context),
        completed_components=_clean_completed_components(connection, context),
        write_notifications=delete_old_write_notifications(
            connection, stored_s(context.clock.epoch_s()) - retention_s, _BATCH_SIZE
        ),
    )


def min_open_txn_water_mark(connection: Connection, context: TxnContext) -> int:
    """The lowest id that is open or may be one that is being opened. Above all ids when there is none."""
    is_old = T.TXN_STARTED < now_ms() - context.transactions.open_timeout_ms
    row = connection.execute(
        select(
            select(func.min(T.TXN_ID)).where(T.TXN_STATE == TXN_OPEN).scalar_subquery(),
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
    ids = list(
        connection.execute(
            select(T.TXN_ID)
            .where(
                T.TXN_STATE.in_([TXN_ABORTED, TXN_COMMITTED]),
                T.TXN_ID < low_boundary,
                ~select(components).where(components == T.TXN_ID).exists(),
            )
            .order_by(T.TXN_ID)
            .limit(_BATCH_SIZE)
        ).scalars()
    )
    for batch in batches(ids, 1000):
        for txn_id in context.histories:
            # There may be more than one step deletes; a foreign key would hold the row.
            connection.execute(delete(txn_id.table).where(txn_id.in_(batch)))
        connection.execute(delete(TXNS).where(T.TXN_ID.in_(batch)))
    return len(ids)


def _clean_histories(connection: Connection, context: TxnContext) -> None:
    """What open transactions see is noted by servers with one setting; those with another end them and leave the rows,
    for which write ids and cleaners would wait for ever."""
    for txn_id in context.histories:
        is_open = select(T.TXN_ID).where(T.TXN_ID == txn_id, T.TXN_STATE == TXN_OPEN).exists()
        over = connection.execute(select(txn_id).distinct().where(~is_open).limit(_BATCH_SIZE)).scalars().all()
        for some in batches(over, 1000):
            connection.execute(delete(txn_id.table).where(txn_id.in_(some)))


def _clean_write_ids(connection: Connection, context: TxnContext) -> int:
    marks = [
        select(func.max(T.TXN_ID) + 1).scalar_subquery(),
        select(func.min(T.TXN_ID)).where(T.TXN_STATE.in_([TXN_ABORTED, TXN_OPEN])).scalar_subquery(),
        select(func.min(WRITE_SET.c.WS_TXNID)).scalar_subquery(),
    ]
    if any(txn_id.table is MIN_HISTORY_LEVEL for txn_id in context.histories):
        # Also where the setting is off: for who was opened when it was on, commits noted no writes but row changes.
        marks.append(select(func.min(MIN_HISTORY_LEVEL.c.MHL_MIN_OPEN_TXNID)).scalar_subquery())
    found = [value for value in connection.execute(select(*marks)).one() if value is not None]
    found.append(min_open_txn_water_mark(connection, context))
    return _delete_oldest_write_ids(connection, min(found))


def _delete_oldest_write_ids(connection: Connection, mark: int) -> int:
    """Of transactions below the mark; how many. What stays of a table are always its latest ones.

    Whoever reads them (`write_ids.valid_write_ids`) takes the highest that is there for the end of what a snapshot may
    see, and all below the lowest invalid one for valid. A write id of a committed transaction that is forgotten before
    a lower one of the table would be above that end: what was written under it would be there no more. So it stays
    while a lower one does, which may be that of an aborted transaction, and what is deleted in several steps begins
    with the lowest.
    """
    is_old = W.T2W_TXNID < mark
    kept_from = func.min(case((~is_old, W.T2W_WRITEID)))
    waiting = deque(
        connection.execute(
            select(
                W.T2W_DATABASE,
                W.T2W_TABLE,
                func.coalesce(kept_from, func.max(W.T2W_WRITEID) + 1),
                func.sum(case((is_old, 1), else_=0)),
            )
            .group_by(W.T2W_DATABASE, W.T2W_TABLE)
            .having(func.min(W.T2W_WRITEID) < func.coalesce(kept_from, func.max(W.T2W_WRITEID) + 1))
            .limit(_BATCH_SIZE)
        ).tuples()
    )
    left = _BATCH_SIZE
    while waiting and left > 0:
        planned = 0
        of_tables: list[ColumnElement[bool]] = []
        while waiting and planned < left and len(of_tables) < _TABLES_AT_ONCE:
            database, table, end, at_most = waiting.popleft()
            of_table = and_(W.T2W_DATABASE == database, W.T2W_TABLE == table)
            if at_most > left - planned:
                in_order = select(W.T2W_WRITEID).where(of_table).order_by(W.T2W_WRITEID)
                end = min(end, connection.execute(in_order.offset(left - planned).limit(1)).scalar() or end)
            of_tables.append(and_(of_table, W.T2W_WRITEID < end))
            planned += int(at_most)
        left -= connection.execute(delete(TXN_TO_WRITE_ID).where(is_old, or_(*of_tables))).rowcount
    return _BATCH_SIZE - left


def _clean_write_sets(connection: Connection, context: TxnContext) -> int:
    water_mark = min_open_txn_water_mark(connection, context)
    return delete_some(connection, WRITE_SET, WRITE_SET.c.WS_COMMIT_ID < water_mark, _BATCH_SIZE)


def _clean_completed_components(connection: Connection, context: TxnContext) -> int:
    """Of each table or partition the newest write, and the newest that changed rows, tell all that the others tell;
    but not of writes that were open when later ones were committed: see `write_ids.materializations`. And the initiator
    of compactions counts them."""
    common = writes_kept(context.compactions.delta_count_threshold)
    own = {table: writes_kept(threshold) for table, threshold in own_delta_thresholds(connection).items()}
    newest = func.max(DONE.CTC_WRITEID)
    newest_change = func.max(case((DONE.CTC_UPDATE_DELETE == "Y", DONE.CTC_WRITEID)))
    writes = func.count(DONE.CTC_WRITEID.distinct())
    groups = connection.execute(
        select(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, newest, newest_change, writes)
        .where(DONE.CTC_WRITEID.is_not(None))
        .group_by(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, ExactText(DONE.CTC_PARTITION))
        .having(writes > min([common, *own.values()]) + 1)
        .limit(_GROUPS_LOOKED_AT)
    ).all()
    deleted = thinned = 0
    for database, table, partition, highest, highest_change, count in groups:
        kept = own.get((database, table), common)
        if count <= kept + 1:
            continue
        of_group = and_(
            DONE.CTC_DATABASE == database,
            DONE.CTC_TABLE == table,
            same_text(DONE.CTC_PARTITION, partition),
        )
        kept_from = connection.execute(
            select(DONE.CTC_WRITEID)
            .where(of_group, DONE.CTC_WRITEID.is_not(None))
            .distinct()
            .order_by(DONE.CTC_WRITEID.desc())
            .offset(kept - 1)
            .limit(1)
        ).scalar()
        condition = and_(of_group, DONE.CTC_WRITEID < min(kept_from or highest, highest))
        if highest_change is not None:
            condition = and_(condition, DONE.CTC_WRITEID != highest_change)
        deleted += connection.execute(delete(COMPLETED_TXN_COMPONENTS).where(condition)).rowcount
        thinned += 1
        if thinned == _GROUPS_THINNED:
            break
    return deleted


_GROUPS_LOOKED_AT = 100_000
"""Tables and partitions with many completed writes; most of them may keep what they have."""

_GROUPS_THINNED = 1_000
"""Of these, in one step."""
