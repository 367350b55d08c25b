"""What of the compactor runs inside a metastore and needs no files: asking for compactions, and what cleaners may do.

Hive's initiator also looks at file sizes; here the transaction tables alone decide, so it asks for a compaction after
many aborted transactions or an old one (major, to get rid of their files) or after many writes (minor), of which a
table may name the number itself. Source of the thresholds: Hive 4.0 `Initiator`,
`CompactionTxnHandler.findPotentialCompactions`, `ReadyToCleanHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from hms_cache.batches import batches
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.store.compactions.eligibility import Candidate, Place, eligible
from hms_cache.store.compactions.queue import compact_all, compactable_write_ids, info_of_queue_row
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    MIN_HISTORY_WRITE_ID,
    TXN_COMPONENTS,
    TXNS,
)
from hms_cache.store.transactions.codes import (
    COMPACTION_TYPE_CODES,
    INITIATED,
    READY_FOR_CLEANING,
    TXN_ABORTED,
    WORKING,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.delta_thresholds import own_delta_thresholds
from hms_cache.store.transactions.housekeeping import min_open_txn_water_mark
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.thrift_gen.hive_metastore.ttypes import CompactionInfoStruct, CompactionRequest, CompactionType

Q = COMPACTION_QUEUE.c
DONE = COMPLETED_TXN_COMPONENTS.c
C = TXN_COMPONENTS.c

_MAX_CANDIDATES = 100_000
"""Tables and partitions looked at in one step."""

_TABLES_IN_A_STATEMENT = 200

_MAX_INITIATED = 1000
"""Compactions asked for in one step; the rest waits for the next."""


def initiate_compactions(connection: Connection, context: TxnContext, initiator_id: str) -> list[int]:
    """Queue compactions for tables and partitions that need one; ids of the new entries, 1,000 at most.

    Left out is what waits or works already, and what `eligible` leaves out.
    """
    hold_mutex(connection, Mutex.INITIATOR)
    candidates = {candidate.place: candidate for candidate in _after_writes(connection, context)}
    # A major compaction does what a minor one does, too.
    candidates |= {candidate.place: candidate for candidate in _after_aborts(connection, context)}
    if not candidates:
        return []
    busy, ready = _places(connection, [INITIATED, WORKING]), _places(connection, [READY_FOR_CLEANING])
    waiting = [candidate for candidate in candidates.values() if candidate.place not in busy]
    # What waits for a cleaner may be asked for again: after all others, since most of it is refused.
    waiting.sort(key=lambda candidate: candidate.place in ready)
    wanted = eligible(connection, context, waiting)[:_MAX_INITIATED]
    if not wanted:
        return []
    # Once for all: where much was aborted, it takes long to read what transactions there are.
    highest = compactable_write_ids(connection, context, {(one.place.database, one.place.table) for one in wanted})
    requests = [
        CompactionRequest(
            dbname=candidate.place.database,
            tablename=candidate.place.table,
            partitionname=candidate.place.partition,
            type=candidate.compaction_type,
            initiatorId=initiator_id,
        )
        for candidate in wanted
    ]
    return compact_all(connection, requests, highest)


def _after_aborts(connection: Connection, context: TxnContext) -> list[Candidate]:
    settings = context.compactions
    rows = connection.execute(
        select(C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION)
        .join_from(TXNS, TXN_COMPONENTS, TXNS.c.TXN_ID == C.TC_TXNID)
        .where(TXNS.c.TXN_STATE == TXN_ABORTED, C.TC_TABLE.is_not(None))
        .group_by(C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION, ExactText(C.TC_PARTITION))
        .having(
            or_(
                func.count() > settings.aborted_transactions_threshold,
                func.min(TXNS.c.TXN_STARTED) < now_ms() - whole_milliseconds(settings.aborted_transaction_age_s),
            )
        )
        .limit(_MAX_CANDIDATES)
    )
    return [Candidate(_place(row), CompactionType.MAJOR) for row in rows]


def _after_writes(connection: Connection, context: TxnContext) -> list[Candidate]:
    """Of the next part of what was written to: most of it needs none, and it may be much."""
    walk = context.housekeeper.writes_to_compact
    walk.go_on(connection)
    with walk.working():
        return [one for are_of_part in walk.part for one in _written_often(connection, context, are_of_part)]


def _written_often(
    connection: Connection, context: TxnContext, are_of_part: ColumnElement[bool]
) -> Iterable[Candidate]:
    common = context.compactions.delta_count_threshold
    written = connection.execute(
        select(DONE.CTC_DATABASE, DONE.CTC_TABLE)
        .where(DONE.CTC_TABLE.is_not(None), are_of_part)
        .distinct()
        .limit(_MAX_CANDIDATES)
    )
    own = own_delta_thresholds(connection, {(database, table) for database, table in written})
    rows = list(_written(connection, common, are_of_part))
    # Those with a lower one of their own are not among these.
    lower = sorted(table for table, threshold in own.items() if threshold < common)
    for some in batches(lower, _TABLES_IN_A_STATEMENT):
        are_named = or_(*(and_(DONE.CTC_DATABASE == database, DONE.CTC_TABLE == table) for database, table in some))
        rows += _written(connection, min(own[table] for table in some), are_named)
    return [
        Candidate(_place((database, table, partition)), CompactionType.MINOR)
        for database, table, partition, writes in rows
        if writes > own.get((database, table), common)
    ]


def _written(
    connection: Connection, more_than: int, are_wanted: ColumnElement[bool]
) -> Iterable[tuple[str, str, str | None, int]]:
    """Database, table, partition of what was written to more often than that, and how often."""
    writes = func.count(DONE.CTC_WRITEID.distinct())
    query = (
        select(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, writes)
        .where(DONE.CTC_TABLE.is_not(None), are_wanted)
        .group_by(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, ExactText(DONE.CTC_PARTITION))
        .having(writes > more_than)
        .limit(_MAX_CANDIDATES)
    )
    return connection.execute(query).tuples()


def _place(row: Any) -> Place:
    database, table, partition = row
    # Hive notes what it has replayed in a table without partitions under an empty name of one.
    return Place(database, table, partition or None)


def _places(connection: Connection, states: Sequence[str]) -> set[Place]:
    """What the queue has in these states."""
    rows = connection.execute(select(Q.CQ_DATABASE, Q.CQ_TABLE, Q.CQ_PARTITION).where(Q.CQ_STATE.in_(states)))
    return {_place(row) for row in rows}


def ready_to_clean(
    connection: Connection, context: TxnContext, *, retention_ms: int = 0, limit: int = 1000
) -> list[CompactionInfoStruct]:
    """Entries whose old files nobody can be reading any more: those a cleaner may delete now, oldest first.

    Of each table or partition the one with the lowest write id comes first. Readers are waited for by transaction id,
    and by the write ids that they announced.
    """
    abort_cleanup = COMPACTION_TYPE_CODES[CompactionType.ABORT_TXN_CLEANUP]
    ready = and_(
        Q.CQ_STATE == READY_FOR_CLEANING,
        Q.CQ_TYPE != abort_cleanup,
        or_(Q.CQ_COMMIT_TIME.is_(None), Q.CQ_COMMIT_TIME < now_ms() - Q.CQ_RETRY_RETENTION - retention_ms),
        or_(Q.CQ_NEXT_TXN_ID.is_(None), Q.CQ_NEXT_TXN_ID <= min_open_txn_water_mark(connection, context)),
    )
    if context.use_min_history_write_id:
        history = MIN_HISTORY_WRITE_ID.c
        lowest_read = (
            select(func.min(history.MH_WRITEID))
            .where(history.MH_DATABASE == Q.CQ_DATABASE, history.MH_TABLE == Q.CQ_TABLE)
            .scalar_subquery()
        )
        ready = and_(ready, or_(lowest_read.is_(None), Q.CQ_HIGHEST_WRITE_ID < lowest_read))
    rows = connection.execute(select(COMPACTION_QUEUE).where(ready).order_by(Q.CQ_ID).limit(limit))
    first: dict[tuple[str, str, str | None], CompactionInfoStruct] = {}
    for row in rows:
        entry, key = info_of_queue_row(row), (row.CQ_DATABASE, row.CQ_TABLE, row.CQ_PARTITION)
        if key not in first or (entry.highestWriteId or 0) < (first[key].highestWriteId or 0):
            first[key] = entry
    return sorted(first.values(), key=lambda entry: entry.id)
