"""`show_compact`: compactions that wait, work or are over."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, literal, null, select, union_all

from hms_cache.store.compactions.queue import DEFAULT_POOL, code_of_type
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.schema import COMPACTION_QUEUE, COMPLETED_COMPACTIONS
from hms_cache.store.transactions.codes import COMPACTION_STATE_NAMES, COMPACTION_TYPES
from hms_cache.store.transactions.names import plain_database, plain_partition, plain_table
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    ShowCompactRequest,
    ShowCompactResponse,
    ShowCompactResponseElement,
)

_SHARED = (
    *("ID", "DATABASE", "TABLE", "PARTITION", "STATE", "TYPE", "WORKER_ID", "START", "RUN_AS", "HADOOP_JOB_ID"),
    *("ERROR_MESSAGE", "ENQUEUE_TIME", "WORKER_VERSION", "INITIATOR_ID", "INITIATOR_VERSION", "POOL_NAME"),
    *("TXN_ID", "NEXT_TXN_ID", "COMMIT_TIME", "HIGHEST_WRITE_ID"),
)

_ORDER_ITEM = re.compile(r'\s*+"?(?:CC_)?(?P<column>[A-Za-z_]+)"?\s*+(?P<direction>asc|desc)?\s*', re.IGNORECASE)


def show_compactions(connection: Connection, request: ShowCompactRequest) -> ShowCompactResponse:
    """Compactions that meet all given conditions, in the order asked for, else the latest activity first.

    Raises MetaException for an order by something that is no column of the list.
    """
    queue, history = COMPACTION_QUEUE.c, COMPLETED_COMPACTIONS.c
    waiting = select(
        *(queue[f"CQ_{name}"].label(name) for name in _SHARED),
        literal(-1).label("END"),
        queue.CQ_CLEANER_START.label("CLEANER_START"),
    )
    over = select(*(history[f"CC_{name}"] for name in _SHARED), history.CC_END, null().label("CLEANER_START"))
    found = union_all(waiting, over).subquery("found")
    query = select(found)
    if request.id:
        query = query.where(found.c.ID == request.id)
    if request.dbName:
        query = query.where(found.c.DATABASE == plain_database(request.dbName))
    if request.tbName:
        query = query.where(found.c.TABLE == plain_table(request.tbName))
    if request.partName:
        query = query.where(same_text(found.c.PARTITION, plain_partition(request.partName)))
    if request.state:
        query = query.where(same_text(found.c.STATE, _state_code(request.state)))
    if request.type is not None:
        query = query.where(found.c.TYPE == code_of_type(request.type))
    if request.poolName:
        pool = found.c.POOL_NAME
        query = query.where(same_text(pool, None if request.poolName == DEFAULT_POOL else request.poolName))
    rows = list(connection.execute(query))
    _sort(rows, request.order)
    if request.limit is not None and request.limit > 0:
        rows = rows[: request.limit]
    return ShowCompactResponse(compacts=[_element(row) for row in rows])


def _state_code(state: str) -> str:
    names = {name: code for code, name in COMPACTION_STATE_NAMES.items()}
    return names.get(state.lower(), state)


def _sort(rows: list[Any], order: str | None) -> None:
    rows.sort(key=lambda row: row.ID)
    if not order or not order.strip():
        rows.sort(key=lambda row: row.ENQUEUE_TIME or 0)
        rows.sort(key=lambda row: max(row.END or -1, row.START or -1, row.COMMIT_TIME or -1), reverse=True)
        return
    columns: dict[str, bool] = {}
    for item in order.split(","):
        match = _ORDER_ITEM.fullmatch(item)
        column = match["column"].upper() if match else ""
        if column not in (*_SHARED, "END", "CLEANER_START"):
            raise MetaException(f"Compactions cannot be ordered by {item.strip()[:200]}")
        # A column that is named again orders nothing more: a text of any length means no more than each of them once.
        columns.setdefault(column, bool(match and (match["direction"] or "").lower() == "desc"))
    for column, descending in reversed(columns.items()):
        rows.sort(key=lambda row, column=column: _sort_key(getattr(row, column)), reverse=descending)  # type: ignore[misc]


def _sort_key(value: Any) -> tuple[bool, Any]:
    return value is not None, "" if value is None else value


def _element(row: Any) -> ShowCompactResponseElement:
    return ShowCompactResponseElement(
        dbname=row.DATABASE,
        tablename=row.TABLE,
        partitionname=row.PARTITION,
        type=COMPACTION_TYPES[row.TYPE],
        state=COMPACTION_STATE_NAMES.get(row.STATE, row.STATE),
        workerid=row.WORKER_ID,
        start=row.START,
        runAs=row.RUN_AS,
        endTime=row.END if row.END is not None and row.END > 0 else None,
        hadoopJobId=row.HADOOP_JOB_ID,
        id=row.ID,
        errorMessage=row.ERROR_MESSAGE,
        enqueueTime=row.ENQUEUE_TIME,
        workerVersion=row.WORKER_VERSION,
        initiatorId=row.INITIATOR_ID,
        initiatorVersion=row.INITIATOR_VERSION,
        cleanerStart=row.CLEANER_START if row.CLEANER_START is not None and row.CLEANER_START > 0 else None,
        poolName=row.POOL_NAME or DEFAULT_POOL,
        # 0 for what is not known yet, which Hive's SHOW COMPACTIONS prints (`ShowCompactHandler`, 4.0.1).
        nextTxnId=row.NEXT_TXN_ID or 0,
        txnId=row.TXN_ID or 0,
        commitTime=row.COMMIT_TIME or 0,
        # Where 4.0 writes it, and where later releases do.
        hightestTxnId=row.HIGHEST_WRITE_ID or 0,
        hightestWriteId=row.HIGHEST_WRITE_ID,
    )
