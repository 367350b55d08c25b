"""What of the compactor runs inside a metastore and needs no files: asking for compactions, and what cleaners may do.

Hive's initiator also looks at file sizes; here the transaction tables alone decide, so it asks for a compaction after
many aborted transactions or an old one (major, to get rid of their files) or after many writes (minor). Source of the
thresholds: Hive 4.0 `Initiator`, `CompactionTxnHandler.findPotentialCompactions`, `ReadyToCleanHandler`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sqlalchemy import Connection, and_, func, or_, select

from hms_cache.config.quantities import whole_milliseconds
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.compactions.queue import compact, info_of_queue_row
from hms_cache.store.engine.text_conditions import ExactText, same_text
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    DBS,
    MIN_HISTORY_WRITE_ID,
    TABLE_PARAMS,
    TBLS,
    TXN_COMPONENTS,
    TXNS,
)
from hms_cache.store.transactions.codes import (
    ABORTED,
    COMPACTION_TYPE_CODES,
    DID_NOT_INITIATE,
    FAILED,
    READY_FOR_CLEANING,
    REFUSED,
    TXN_ABORTED,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms, read_now_ms
from hms_cache.store.transactions.housekeeping import min_open_txn_water_mark
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.thrift_gen.hive_metastore.ttypes import CompactionInfoStruct, CompactionRequest, CompactionType
from hms_cache.values import frozen

_LOGGER = logging.getLogger(__name__)

Q = COMPACTION_QUEUE.c
H = COMPLETED_COMPACTIONS.c
DONE = COMPLETED_TXN_COMPONENTS.c
C = TXN_COMPONENTS.c

_MOST_CANDIDATES = 1000
"""Tables and partitions looked at in one step; the rest waits for the next."""

_NO_AUTO_COMPACTION_KEYS = ("no_auto_compaction", "NO_AUTO_COMPACTION")


@frozen
class _Candidate:
    database: str
    table: str
    partition: str | None
    compaction_type: int


def initiate_compactions(connection: Connection, context: TxnContext, initiator_id: str) -> list[int]:
    """Queue compactions for tables and partitions that need one; ids of the new entries.

    Left out: tables that do not exist or that say `no_auto_compaction`, what is queued already, and what has failed
    too often of late.
    """
    hold_mutex(connection, Mutex.INITIATOR)
    candidates = _after_aborts(connection, context)
    known = {(candidate.database, candidate.table, candidate.partition) for candidate in candidates}
    candidates += [
        candidate
        for candidate in _after_writes(connection, context)
        if (candidate.database, candidate.table, candidate.partition) not in known
    ]
    if not candidates:
        return []
    allowed = _tables_to_compact(connection, {(candidate.database, candidate.table) for candidate in candidates})
    now, initiated = read_now_ms(connection), []
    for candidate in candidates:
        if (candidate.database, candidate.table) not in allowed or _fails(connection, context, candidate, now):
            continue
        answer = compact(
            connection,
            context,
            CompactionRequest(
                dbname=candidate.database,
                tablename=candidate.table,
                partitionname=candidate.partition,
                type=candidate.compaction_type,
                initiatorId=initiator_id,
            ),
        )
        if answer.accepted:
            initiated.append(answer.id)
    return initiated


def _after_aborts(connection: Connection, context: TxnContext) -> list[_Candidate]:
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
        .limit(_MOST_CANDIDATES)
    )
    return [_Candidate(row[0], row[1], row[2], CompactionType.MAJOR) for row in rows]


def _after_writes(connection: Connection, context: TxnContext) -> list[_Candidate]:
    rows = connection.execute(
        select(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION)
        .where(DONE.CTC_TABLE.is_not(None))
        .group_by(DONE.CTC_DATABASE, DONE.CTC_TABLE, DONE.CTC_PARTITION, ExactText(DONE.CTC_PARTITION))
        .having(func.count(DONE.CTC_WRITEID.distinct()) > context.compactions.delta_count_threshold)
        .limit(_MOST_CANDIDATES)
    )
    return [_Candidate(row[0], row[1], row[2], CompactionType.MINOR) for row in rows]


def _tables_to_compact(connection: Connection, tables: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those that exist in the default catalog and do not forbid it."""
    forbids = (
        select(TABLE_PARAMS.c.TBL_ID)
        .where(
            TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID,
            TABLE_PARAMS.c.PARAM_KEY.in_(_NO_AUTO_COMPACTION_KEYS),
            func.lower(TABLE_PARAMS.c.PARAM_VALUE) == "true",
        )
        .exists()
    )
    wanted: Sequence[tuple[str, str]] = sorted(tables)
    found: set[tuple[str, str]] = set()
    for start in range(0, len(wanted), 200):
        names = or_(
            *(and_(DBS.c.NAME == database, TBLS.c.TBL_NAME == table) for database, table in wanted[start : start + 200])
        )
        rows = connection.execute(
            select(DBS.c.NAME, TBLS.c.TBL_NAME)
            .join_from(TBLS, DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
            .where(DBS.c.CTLG_NAME == DEFAULT_CATALOG, names, ~forbids)
        )
        found.update((row.NAME, row.TBL_NAME) for row in rows)
    return found


def _fails(connection: Connection, context: TxnContext, candidate: _Candidate, now: int) -> bool:
    """Whether the last compactions all failed, the newest of them not long ago."""
    limit = context.compactions.max_failed
    rows = connection.execute(
        select(H.CC_STATE, H.CC_ENQUEUE_TIME)
        .where(
            H.CC_DATABASE == candidate.database,
            H.CC_TABLE == candidate.table,
            same_text(H.CC_PARTITION, candidate.partition),
            H.CC_STATE.not_in([DID_NOT_INITIATE, REFUSED, ABORTED]),
        )
        .order_by(H.CC_ID.desc())
        .limit(limit)
    ).all()
    if len(rows) < limit or any(row.CC_STATE != FAILED for row in rows):
        return False
    newest = rows[0].CC_ENQUEUE_TIME or 0
    if newest + whole_milliseconds(context.compactions.failed_retry_s) < now:
        return False
    _LOGGER.warning(
        "no compaction of %s.%s %s: the last %d failed",
        candidate.database,
        candidate.table,
        candidate.partition or "",
        limit,
    )
    return True


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
