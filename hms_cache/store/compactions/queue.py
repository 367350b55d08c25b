"""Queues compactions and assigns them to workers.

The queue is a table that Hive's workers read and write through these calls; the compaction itself is a query that a
HiveServer2 runs. States: initiated, working, ready for cleaning; finished ones move to the history
(`history`). Source: Hive 4.0 `CompactFunction`, `NextCompactionFunction`, `CompactionTxnHandler`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, insert, null, or_, select, update

from hms_cache.batches import batches
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    DBS,
    NEXT_COMPACTION_QUEUE_ID,
    PART_COL_STATS,
    PARTITIONS,
    TAB_COL_STATS,
    TBLS,
    TXN_COMPONENTS,
    TXNS,
)
from hms_cache.store.transactions.codes import (
    COMPACT,
    COMPACTION_STATE_NAMES,
    COMPACTION_TYPE_CODES,
    COMPACTION_TYPES,
    INITIATED,
    READY_FOR_CLEANING,
    TXN_OPEN,
    WORKING,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import allocate_id, now_ms, read_now_ms
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.names import plain_database, plain_partition, plain_table
from hms_cache.store.transactions.queued_drops import to_counted_map
from hms_cache.store.transactions.txn_rows import lock_open_txn
from hms_cache.store.write_ids.valid_write_ids import TableKey, current_snapshot, valid_write_ids_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CompactionInfoStruct,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    FindNextCompactRequest,
    MetaException,
)

Q = COMPACTION_QUEUE.c
T = TXNS.c

_CANDIDATES = 20
"""Entries that a worker tries before the reply is "nothing to do": other workers never take more meanwhile."""

DEFAULT_POOL = "default"


_OF_CLEANERS = frozenset({"location", "ifpurge"})
"""Properties of soft drops, in lower case. Hive's cleaner (4.0) deletes any directory that an entry names in this way:
a client that may compact its own table could name any."""


def code_of_type(compaction_type: int | None) -> str:
    """The letter of a type. Raises MetaException for an unknown one."""
    code = None if compaction_type is None else COMPACTION_TYPE_CODES.get(compaction_type)
    if code is None:
        raise MetaException(f"Unexpected compaction type {compaction_type}")
    return code


def compact(
    connection: Connection, context: TxnContext, request: CompactionRequest, highest_write_id: int | None = None
) -> CompactionResponse:
    """Queues a compaction. Refused while one of the same table or partition is queued or running, or is ready for
    cleaning and covers everything up to `highest_write_id` (read if not given).

    Raises MetaException for an unknown type, a missing table, and for properties that tell a cleaner what to delete.
    """
    type_code = code_of_type(request.type)
    for key in request.properties or ():
        if key.strip().lower() in _OF_CLEANERS:
            raise MetaException(f"A compaction cannot have the property {key}, by which cleaners delete directories")
    database, table = plain_database(request.dbname), plain_table(request.tablename)
    if not table:  # Hive fails before anything is queued (`GetValidWriteIdsForTableFunction`)
        raise MetaException("A compaction needs the name of a table")
    partition = plain_partition(request.partitionname) if request.partitionname else None
    hold_mutex(connection, Mutex.COMPACTION_SCHEDULER)
    if highest_write_id is None:
        highest_write_id = compactable_write_ids(connection, context, [(database, table)])[database, table]
    known = connection.execute(
        select(Q.CQ_ID, Q.CQ_STATE)
        .where(
            Q.CQ_DATABASE == database,
            Q.CQ_TABLE == table,
            same_text(Q.CQ_PARTITION, partition),
            _covers(highest_write_id),
        )
        .limit(1)
    ).first()
    if known is not None:
        state = COMPACTION_STATE_NAMES[known.CQ_STATE]
        return CompactionResponse(
            id=-1,
            state="refused",
            accepted=False,
            errormessage=f"Compaction is already scheduled with state='{state}' and id={known.CQ_ID}",
        )
    compaction_id = enqueue(connection, request, database, table, partition, CQ_STATE=INITIATED, CQ_TYPE=type_code)
    return CompactionResponse(id=compaction_id, state="initiated", accepted=True)


def compact_replicated(
    connection: Connection, context: TxnContext, database: str, table: str, partitions: Sequence[str] | None
) -> None:
    """Queues major compactions of a replicated table, or of these partitions, to remove what the source aborted.

    Refused as in `compact`. A few statements for any number.
    """
    database, table = plain_database(database), plain_table(table)
    hold_mutex(connection, Mutex.COMPACTION_SCHEDULER)
    highest = compactable_write_ids(connection, context, [(database, table)])
    requested = [None] if partitions is None else dict.fromkeys(plain_partition(name) for name in partitions)
    requests = [
        CompactionRequest(dbname=database, tablename=table, partitionname=partition, type=CompactionType.MAJOR)
        for partition in requested
    ]
    compact_all(connection, requests, highest)


def compact_all(
    connection: Connection, requests: Sequence[CompactionRequest], highest_write_ids: Mapping[TableKey, int]
) -> list[int]:
    """Like `compact` for each of these, which are for different places with names as stored. Returns the ids of
    accepted ones. A few statements for any number, since other requests for compactions wait meanwhile."""
    hold_mutex(connection, Mutex.COMPACTION_SCHEDULER)
    known = select(Q.CQ_DATABASE, Q.CQ_TABLE, Q.CQ_PARTITION, Q.CQ_STATE, Q.CQ_HIGHEST_WRITE_ID).where(
        Q.CQ_STATE.in_([INITIATED, WORKING, READY_FOR_CLEANING])
    )
    if len(highest_write_ids) <= _TABLES_IN_A_STATEMENT:
        names = highest_write_ids.keys()
        known = known.where(or_(*((Q.CQ_DATABASE == database) & (Q.CQ_TABLE == table) for database, table in names)))
    scheduled = {
        (database, table, partition)
        for database, table, partition, state, highest in connection.execute(known)
        if state != READY_FOR_CLEANING or highest == highest_write_ids.get((database, table))
    }
    new = [one for one in requests if (one.dbname, one.tablename, one.partitionname) not in scheduled]
    if not new:
        return []
    first, now = allocate_id(connection, NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT, len(new)), read_now_ms(connection)
    rows = [
        {
            **_queue_row(first + number, request, request.dbname, request.tablename, request.partitionname),
            "CQ_STATE": INITIATED,
            "CQ_TYPE": code_of_type(request.type),
            "CQ_ENQUEUE_TIME": now,
        }
        for number, request in enumerate(new)
    ]
    _insert_rows(connection, rows)
    return [row["CQ_ID"] for row in rows]


_TABLES_IN_A_STATEMENT = 100
"""With more tables, the whole queue is read."""


def _covers(highest_write_id: int) -> ColumnElement[bool]:
    """A condition: an entry that prevents another one of the same table or partition."""
    is_cleaned = and_(Q.CQ_STATE == READY_FOR_CLEANING, Q.CQ_HIGHEST_WRITE_ID == highest_write_id)
    return or_(Q.CQ_STATE.in_([INITIATED, WORKING]), is_cleaned)


def enqueue(
    connection: Connection, request: CompactionRequest, database: str, table: str, partition: str | None, **values: Any
) -> int:
    """Inserts an entry into the queue and returns its id."""
    compaction_id = allocate_id(connection, NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT)
    row = _queue_row(compaction_id, request, database, table, partition)
    connection.execute(insert(COMPACTION_QUEUE).values(**row, CQ_ENQUEUE_TIME=now_ms(), **values))
    return compaction_id


def _queue_row(
    compaction_id: int, request: CompactionRequest, database: str, table: str, partition: str | None
) -> dict[str, Any]:
    return {
        "CQ_ID": compaction_id,
        "CQ_DATABASE": database,
        "CQ_TABLE": table,
        "CQ_PARTITION": partition,
        "CQ_POOL_NAME": request.poolName,
        "CQ_NUMBER_OF_BUCKETS": request.numberOfBuckets,
        "CQ_ORDER_BY": request.orderByClause,
        "CQ_TBLPROPERTIES": None if request.properties is None else to_counted_map(request.properties),
        "CQ_RUN_AS": request.runas,
        "CQ_INITIATOR_ID": request.initiatorId,
        "CQ_INITIATOR_VERSION": request.initiatorVersion,
    }


def compactable_write_ids(
    connection: Connection, context: TxnContext, tables: Collection[TableKey]
) -> dict[TableKey, int]:
    """The highest write id of each table that can be compacted now: below the lowest open one."""
    lists = valid_write_ids_of(connection, list(tables), current_snapshot(connection, context))
    return {
        table: found.high_watermark if found.min_open_write_id is None else found.min_open_write_id - 1
        for table, found in lists.items()
    }


def submit_for_cleanup(connection: Connection, request: CompactionRequest, highest_write_id: int, txn_id: int) -> bool:
    """Queues an entry that only needs cleaning (a soft drop, a truncate). Always returns True.

    Raises MetaException for an unknown type.
    """
    submit_all_for_cleanup(connection, [request], highest_write_id, txn_id)
    return True


_ROWS_IN_A_STATEMENT = 1000
_FOLLOWING = select(func.coalesce(func.max(T.TXN_ID), 0) + 1)


def submit_all_for_cleanup(
    connection: Connection, requests: Sequence[CompactionRequest], highest_write_id: int, txn_id: int
) -> None:
    """Like `submit_for_cleanup` for several requests of one transaction: one statement per 1,000 requests.

    A cleaner waits for transactions that may read the old files: those opened before the transaction `txn_id` commits.
    Its commit records that in the entries. Until then, or if `txn_id` is not open, they wait for those opened before
    now, since a cleaner deletes files of an entry without such an id at once. Raises MetaException for an unknown type.
    """
    types = [code_of_type(request.type) for request in requests]
    now = read_now_ms(connection)
    waits: dict[str, Any] = {}
    if txn_id > 0:
        # Locked, so that the transaction ends either after these rows are inserted, or before the next read.
        is_open = select(T.TXN_ID).where(T.TXN_ID == txn_id, T.TXN_STATE == TXN_OPEN)
        connection.execute(is_open.with_for_update()).first()
        waits["CQ_NEXT_TXN_ID"] = connection.execute(_FOLLOWING).scalar_one()
    first = allocate_id(connection, NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT, len(requests))
    rows = [
        {
            **_queue_row(
                first + number,
                request,
                plain_database(request.dbname),
                plain_table(request.tablename),
                plain_partition(request.partitionname) if request.partitionname else None,
            ),
            "CQ_STATE": READY_FOR_CLEANING,
            "CQ_TYPE": types[number],
            "CQ_HIGHEST_WRITE_ID": highest_write_id,
            "CQ_TXN_ID": txn_id,
            "CQ_ENQUEUE_TIME": now,
            **waits,
        }
        for number, request in enumerate(requests)
    ]
    _insert_rows(connection, rows)


def _insert_rows(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    for some in batches(rows, _ROWS_IN_A_STATEMENT):
        connection.execute(insert(COMPACTION_QUEUE), some)


# Workers


def find_next_compaction(
    connection: Connection, context: TxnContext, request: FindNextCompactRequest
) -> CompactionInfoStruct | None:
    """Assigns the oldest waiting entry of the worker's pool to it; None if nothing waits.

    Raises MetaException for a worker without a name.
    """
    if not request.workerId:
        raise MetaException("A worker needs an id to be given a compaction")
    in_pool = same_text(Q.CQ_POOL_NAME, request.poolName)
    if not request.poolName:
        overdue = now_ms() - whole_milliseconds(context.compactions.worker_pool_timeout_s)
        in_pool = or_(Q.CQ_POOL_NAME.is_(None), Q.CQ_ENQUEUE_TIME < overdue)
    rows = connection.execute(
        select(COMPACTION_QUEUE).where(Q.CQ_STATE == INITIATED, in_pool).order_by(Q.CQ_ID).limit(_CANDIDATES)
    ).all()
    for row in rows:
        claimed = connection.execute(
            update(COMPACTION_QUEUE)
            .where(Q.CQ_ID == row.CQ_ID, Q.CQ_STATE == INITIATED)
            .values(
                CQ_STATE=WORKING,
                CQ_WORKER_ID=request.workerId,
                CQ_WORKER_VERSION=request.workerVersion,
                CQ_START=now_ms(),
            )
        )
        if claimed.rowcount == 1:
            entry = info_of_queue_row(row)
            entry.workerId = request.workerId
            return entry
    return None


def info_of_queue_row(row: Any) -> CompactionInfoStruct:
    """The struct of a queue row for workers."""
    return CompactionInfoStruct(
        id=row.CQ_ID,
        dbname=row.CQ_DATABASE,
        tablename=row.CQ_TABLE,
        partitionname=row.CQ_PARTITION,
        type=COMPACTION_TYPES[row.CQ_TYPE],
        runas=row.CQ_RUN_AS,
        properties=row.CQ_TBLPROPERTIES,
        state=row.CQ_STATE,
        workerId=row.CQ_WORKER_ID,
        start=row.CQ_START,
        highestWriteId=row.CQ_HIGHEST_WRITE_ID,
        errorMessage=row.CQ_ERROR_MESSAGE,
        enqueueTime=row.CQ_ENQUEUE_TIME,
        retryRetention=row.CQ_RETRY_RETENTION,
        poolname=row.CQ_POOL_NAME,
        numberOfBuckets=row.CQ_NUMBER_OF_BUCKETS,
        orderByClause=row.CQ_ORDER_BY,
    )


def update_compactor_state(connection: Connection, entry: CompactionInfoStruct, txn_id: int) -> None:
    """Records the transaction, the user and the highest write id of a running compaction.

    If the transaction aborts, its component keeps it until the files are cleaned. Raises MetaException for an entry
    that is not in the queue, NoSuchTxnException and TxnAbortedException for a transaction that is not open.
    """
    lock_open_txn(connection, txn_id)
    updated = connection.execute(
        update(COMPACTION_QUEUE)
        .where(Q.CQ_ID == entry.id)
        .values(CQ_HIGHEST_WRITE_ID=entry.highestWriteId, CQ_RUN_AS=entry.runas, CQ_TXN_ID=txn_id)
    )
    if updated.rowcount != 1:
        raise MetaException(f"No record with CQ_ID={entry.id} found in COMPACTION_QUEUE")
    connection.execute(
        insert(TXN_COMPONENTS).values(
            TC_TXNID=txn_id,
            TC_DATABASE=plain_database(entry.dbname),
            TC_TABLE=plain_table(entry.tablename),
            TC_PARTITION=entry.partitionname,
            TC_WRITEID=entry.highestWriteId,
            TC_OPERATION_TYPE=COMPACT,
        )
    )


def mark_compacted(connection: Connection, entry: CompactionInfoStruct) -> None:
    """The worker has finished; the old files wait for a cleaner. Raises MetaException for an unknown entry."""
    updated = connection.execute(
        update(COMPACTION_QUEUE).where(Q.CQ_ID == entry.id).values(CQ_STATE=READY_FOR_CLEANING, CQ_WORKER_ID=null())
    )
    if updated.rowcount != 1:
        raise MetaException(f"No record with CQ_ID={entry.id} found in COMPACTION_QUEUE")


def set_hadoop_job_id(connection: Connection, job_id: str, compaction_id: int) -> None:
    """Records the job that works on an entry."""
    connection.execute(update(COMPACTION_QUEUE).where(Q.CQ_ID == compaction_id).values(CQ_HADOOP_JOB_ID=job_id))


def find_columns_with_stats(connection: Connection, entry: CompactionInfoStruct) -> list[str]:
    """Columns of the table or partition with statistics, which a compaction has to recompute; ascending."""
    is_table = and_(
        DBS.c.CTLG_NAME == DEFAULT_CATALOG,
        DBS.c.NAME == plain_database(entry.dbname),
        TBLS.c.TBL_NAME == plain_table(entry.tablename),
    )
    if entry.partitionname is None:
        column = TAB_COL_STATS.c.COLUMN_NAME
        query = select(column).join_from(TAB_COL_STATS, TBLS, TAB_COL_STATS.c.TBL_ID == TBLS.c.TBL_ID)
    else:
        column = PART_COL_STATS.c.COLUMN_NAME
        query = (
            select(column)
            .join_from(PART_COL_STATS, PARTITIONS, PART_COL_STATS.c.PART_ID == PARTITIONS.c.PART_ID)
            .join(TBLS, PARTITIONS.c.TBL_ID == TBLS.c.TBL_ID)
            .where(same_text(PARTITIONS.c.PART_NAME, entry.partitionname))
        )
    query = query.join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID).where(is_table)
    return sorted(set(connection.execute(query).scalars()))


def revoke_from_lost_workers(connection: Connection, context: TxnContext) -> int:
    """Returns entries to the queue whose worker has exceeded the time limit; returns their number."""
    too_old = now_ms() - whole_milliseconds(context.compactions.worker_timeout_s)
    return connection.execute(
        update(COMPACTION_QUEUE)
        .where(Q.CQ_STATE == WORKING, Q.CQ_START < too_old)
        .values(CQ_STATE=INITIATED, CQ_WORKER_ID=null(), CQ_START=null())
    ).rowcount
