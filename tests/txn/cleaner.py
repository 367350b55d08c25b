"""The database queries of Hive's cleaner (Hive 4.0, `ReadyToCleanHandler`); cleaners run only in Hive."""

from __future__ import annotations

from sqlalchemy import Connection, and_, func, or_, select

from hms_cache.store.compactions.queue import info_of_queue_row
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.schema import COMPACTION_QUEUE, MIN_HISTORY_WRITE_ID
from hms_cache.store.transactions.codes import COMPACTION_TYPE_CODES, READY_FOR_CLEANING
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.housekeeping import min_open_txn_water_mark
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import CompactionInfoStruct, CompactionType

Q = COMPACTION_QUEUE.c


def ready_to_clean(store: TxnStore, retention_ms: int = 0) -> list[CompactionInfoStruct]:
    """Entries whose old files nobody can be reading any more: those a cleaner may delete now, oldest first.

    For each table or partition, the one with the lowest write id comes first. Cleaners wait for readers by transaction
    id, and by the write ids that they announced.
    """
    return run_read(store._database, lambda connection: _ready_to_clean(connection, store._context, retention_ms))


def _ready_to_clean(connection: Connection, context: TxnContext, retention_ms: int) -> list[CompactionInfoStruct]:
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
    rows = connection.execute(select(COMPACTION_QUEUE).where(ready).order_by(Q.CQ_ID))
    first: dict[tuple[str, str, str | None], CompactionInfoStruct] = {}
    for row in rows:
        entry, key = info_of_queue_row(row), (row.CQ_DATABASE, row.CQ_TABLE, row.CQ_PARTITION)
        if key not in first or (entry.highestWriteId or 0) < (first[key].highestWriteId or 0):
            first[key] = entry
    return sorted(first.values(), key=lambda entry: entry.id)
