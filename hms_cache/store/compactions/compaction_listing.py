"""`show_compact`: compactions that wait, run or have ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, func, literal, null, select, union_all

from hms_cache.input_limits import input_limits
from hms_cache.store.compactions.queue import DEFAULT_POOL, code_of_type
from hms_cache.store.engine.listing import limited, listed
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

_NUMBERS = frozenset(
    {"ID", "START", "END", "ENQUEUE_TIME", "COMMIT_TIME", "CLEANER_START", "TXN_ID", "NEXT_TXN_ID", "HIGHEST_WRITE_ID"}
)
"""Columns by which the database can determine the first rows: a history may have hundreds of thousands."""

_ACTIVITIES = ("END", "START", "COMMIT_TIME")
"""The latest of these times determines the default order."""

_ORDER_ITEM = re.compile(r'\s*+"?(?:CC_)?(?P<column>[A-Za-z_]+)"?\s*+(?P<direction>asc|desc)?\s*', re.IGNORECASE)


def show_compactions(connection: Connection, request: ShowCompactRequest) -> ShowCompactResponse:
    """Compactions that match all given conditions, in the requested order, by default the latest activity first.

    An empty text is a condition that nothing matches, as in Hive.

    Raises MetaException for an order by an unknown column, and if more than `limits.listed_rows` would have to be
    returned or sorted.
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
    if request.dbName is not None:
        query = query.where(found.c.DATABASE == plain_database(request.dbName))
    if request.tbName is not None:
        query = query.where(found.c.TABLE == plain_table(request.tbName))
    if request.partName is not None:
        query = query.where(same_text(found.c.PARTITION, plain_partition(request.partName)))
    if request.state is not None:
        query = query.where(same_text(found.c.STATE, _state_code(request.state)))
    if request.type is not None:
        query = query.where(found.c.TYPE == code_of_type(request.type))
    if request.poolName is not None:
        pool = found.c.POOL_NAME
        query = query.where(same_text(pool, None if request.poolName == DEFAULT_POOL else request.poolName))
    columns = _columns_of(request.order)
    limit = request.limit if request.limit is not None and request.limit > 0 else None
    if limit is not None and _NUMBERS.issuperset(columns):
        query = query.order_by(*_sql_order(found.c, columns))
        # More rows than this are never needed.
        rows = list(connection.execute(query.limit(min(limit, input_limits().listed_rows + 1))))
    else:
        rows = list(connection.execute(limited(query)))
    listed(rows, "compactions")
    _sort(rows, columns)
    return ShowCompactResponse(compacts=[_element(row) for row in rows[:limit]])


def _state_code(state: str) -> str:
    names = {name: code for code, name in COMPACTION_STATE_NAMES.items()}
    return names.get(state.lower(), state)


def _columns_of(order: str | None) -> dict[str, bool]:
    """The columns of an order, and whether each is descending; empty for the default order. Raises MetaException."""
    columns: dict[str, bool] = {}
    for item in order.split(",") if order and order.strip() else ():
        match = _ORDER_ITEM.fullmatch(item)
        column = match["column"].upper() if match else ""
        if column not in (*_SHARED, "END", "CLEANER_START"):
            raise MetaException(f"Compactions cannot be ordered by {item.strip()[:200]}")
        # A repeated column has no effect on the order, so that a text of any length costs no more than each column
        # once.
        columns.setdefault(column, bool(match and (match["direction"] or "").lower() == "desc"))
    return columns


def _sort(rows: list[Any], columns: Mapping[str, bool]) -> None:
    rows.sort(key=lambda row: row.ID)
    if not columns:
        rows.sort(key=lambda row: row.ENQUEUE_TIME or 0)
        rows.sort(key=lambda row: max(getattr(row, name) or -1 for name in _ACTIVITIES), reverse=True)
    for column, descending in reversed(list(columns.items())):
        rows.sort(key=lambda row, column=column: _sort_key(getattr(row, column)), reverse=descending)  # type: ignore[misc]


def _sql_order(found: Any, columns: Mapping[str, bool]) -> list[ColumnElement[Any]]:
    """The order of `_sort` for numeric columns only: databases sort these alike, but not texts."""
    keys: list[tuple[ColumnElement[Any], bool]] = []
    if not columns:
        first, second, third = (func.coalesce(func.nullif(found[name], 0), -1) for name in _ACTIVITIES)
        latest = case(
            (and_(first >= second, first >= third), first),
            (and_(second >= third, second >= first), second),
            else_=third,
        )
        keys = [(latest, True), (func.coalesce(found.ENQUEUE_TIME, 0), False)]
    for name, descending in columns.items():
        keys += [(case((found[name].is_(None), 0), else_=1), descending), (found[name], descending)]
    return [*(key.desc() if descending else key.asc() for key, descending in keys), found.ID]


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
        # 0 for an unknown id, as Hive's SHOW COMPACTIONS prints it (`ShowCompactHandler`, 4.0.1).
        nextTxnId=row.NEXT_TXN_ID or 0,
        txnId=row.TXN_ID or 0,
        commitTime=row.COMMIT_TIME or 0,
        # In the field of 4.0, and in that of later releases.
        hightestTxnId=row.HIGHEST_WRITE_ID or 0,
        hightestWriteId=row.HIGHEST_WRITE_ID,
    )
