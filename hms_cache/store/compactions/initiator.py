"""The initiator: queues compactions of tables and partitions that need one.

Hive's initiator also considers file sizes; here only the transaction tables decide. So it queues a compaction after
many aborted transactions or an old one (major, to remove their files) or after many writes (minor); a table may set the
number of writes itself. Source of the thresholds: Hive 4.0 `Initiator`,
`CompactionTxnHandler.findPotentialCompactions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, and_, func, literal, or_, select

from hms_cache.batches import batches
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.store.compactions.eligibility import Candidate, CompactionTarget, eligible
from hms_cache.store.compactions.queue import compact_all, compactable_write_ids
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXNS,
)
from hms_cache.store.transactions.codes import (
    INITIATED,
    READY_FOR_CLEANING,
    TXN_ABORTED,
    WORKING,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.delta_thresholds import own_delta_thresholds
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.thrift_gen.hive_metastore.ttypes import CompactionRequest, CompactionType

Q = COMPACTION_QUEUE.c
DONE = COMPLETED_TXN_COMPONENTS.c
C = TXN_COMPONENTS.c

_MAX_CANDIDATES = 100_000
"""Tables and partitions examined in one step."""

_TABLES_IN_A_STATEMENT = 200

_MAX_INITIATED = 1000
"""Compactions queued in one step; the rest is left for the next step."""


def initiate_compactions(connection: Connection, context: TxnContext, initiator_id: str) -> list[int]:
    """Queues compactions for tables and partitions that need one; returns at most 1,000 ids of new entries.

    Excluded are those that are queued or running already, and those that `eligible` excludes.
    """
    hold_mutex(connection, Mutex.INITIATOR)
    candidates = {candidate.target: candidate for candidate in _after_writes(connection, context)}
    # A major compaction includes a minor one.
    candidates |= {candidate.target: candidate for candidate in _after_aborts(connection, context)}
    if not candidates:
        return []
    busy, ready = _targets(connection, [INITIATED, WORKING]), _targets(connection, [READY_FOR_CLEANING])
    waiting = [candidate for candidate in candidates.values() if candidate.target not in busy]
    # Those that wait for a cleaner may be queued again, but after all others, since most of them are refused.
    waiting.sort(key=lambda candidate: candidate.target in ready)
    selected = eligible(connection, context, waiting)[:_MAX_INITIATED]
    if not selected:
        return []
    # Read once for all: with many aborted transactions, reading the snapshot takes long.
    highest = compactable_write_ids(connection, context, {(one.target.database, one.target.table) for one in selected})
    requests = [
        CompactionRequest(
            dbname=candidate.target.database,
            tablename=candidate.target.table,
            partitionname=candidate.target.partition,
            type=candidate.compaction_type,
            initiatorId=initiator_id,
        )
        for candidate in selected
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
                func.count() > literal(settings.aborted_transactions_threshold, BigInteger()),
                func.min(TXNS.c.TXN_STARTED) < now_ms() - whole_milliseconds(settings.aborted_transaction_age_s),
            )
        )
        .limit(_MAX_CANDIDATES)
    )
    return [Candidate(_target(row), CompactionType.MAJOR) for row in rows]


def _after_writes(connection: Connection, context: TxnContext) -> list[Candidate]:
    """Candidates among the next part of the completed writes: most need no compaction, and there may be many."""
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
    # Tables with a lower threshold of their own are not among these.
    lower = sorted(table for table, threshold in own.items() if threshold < common)
    for some in batches(lower, _TABLES_IN_A_STATEMENT):
        are_named = or_(*(and_(DONE.CTC_DATABASE == database, DONE.CTC_TABLE == table) for database, table in some))
        rows += _written(connection, min(own[table] for table in some), are_named)
    return [
        Candidate(_target((database, table, partition)), CompactionType.MINOR)
        for database, table, partition, writes in rows
        if writes > own.get((database, table), common)
    ]


def _written(
    connection: Connection, more_than: int, condition: ColumnElement[bool]
) -> Iterable[tuple[str, str, str | None, int]]:
    """Database, table and partition of those with more writes than that, and their number of writes."""
    writes = func.count(DONE.CTC_WRITEID.distinct())
    query = (
        select(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, writes)
        .where(DONE.CTC_TABLE.is_not(None), condition)
        .group_by(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, ExactText(DONE.CTC_PARTITION))
        .having(writes > literal(more_than, BigInteger()))
        .limit(_MAX_CANDIDATES)
    )
    return connection.execute(query).tuples()


def _target(row: Any) -> CompactionTarget:
    database, table, partition = row
    # Hive records replayed writes in a table without partitions with an empty partition name.
    return CompactionTarget(database, table, partition or None)


def _targets(connection: Connection, states: Sequence[str]) -> set[CompactionTarget]:
    """The tables and partitions that are in the queue in these states."""
    rows = connection.execute(select(Q.CQ_DATABASE, Q.CQ_TABLE, Q.CQ_PARTITION).where(Q.CQ_STATE.in_(states)))
    return {_target(row) for row in rows}
