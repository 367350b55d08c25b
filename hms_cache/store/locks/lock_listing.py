"""`show_locks`: held and waiting locks."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.locks.lock_rows import without_other_spellings
from hms_cache.store.schema import HIVE_LOCKS
from hms_cache.store.transactions.codes import (
    EXCLUSIVE,
    EXCLUSIVE_WRITE,
    LOCK_ACQUIRED,
    LOCK_STATES,
    LOCK_TYPES,
    SHARED_READ,
    SHARED_WRITE,
)
from hms_cache.store.transactions.names import plain_database, plain_partition, plain_table
from hms_cache.thrift_gen.hive_metastore.ttypes import ShowLocksRequest, ShowLocksResponse, ShowLocksResponseElement

L = HIVE_LOCKS.c

_STRENGTH = {SHARED_READ: 0, SHARED_WRITE: 1, EXCLUSIVE_WRITE: 2, EXCLUSIVE: 3}


def show_locks(connection: Connection, request: ShowLocksRequest) -> ShowLocksResponse:
    """Locks of a database, a table, a partition, a transaction (0: outside transactions) or all; held ones first, then
    by type and age. Raises MetaException if there are more than `limits.listed_rows`."""
    query = select(HIVE_LOCKS)
    if request.txnid is not None:
        query = query.where(L.HL_TXNID == request.txnid)
    if request.dbname:
        query = query.where(L.HL_DB == plain_database(request.dbname))
    if request.tablename:
        query = query.where(L.HL_TABLE == plain_table(request.tablename))
    if request.partname:
        query = query.where(same_text(L.HL_PARTITION, plain_partition(request.partname)))
    found = listed(connection.execute(limited(query)).all(), "locks")
    rows = sorted(without_other_spellings(found), key=_order)
    return ShowLocksResponse(locks=[_element(row) for row in rows])


def _order(row: Any) -> tuple[bool, int, int, int]:
    return row.HL_LOCK_STATE != LOCK_ACQUIRED, _STRENGTH[row.HL_LOCK_TYPE], row.HL_LOCK_EXT_ID, row.HL_LOCK_INT_ID


def _element(row: Any) -> ShowLocksResponseElement:
    return ShowLocksResponseElement(
        lockid=row.HL_LOCK_EXT_ID,
        dbname=row.HL_DB,
        tablename=row.HL_TABLE,
        partname=row.HL_PARTITION,
        state=LOCK_STATES[row.HL_LOCK_STATE],
        type=LOCK_TYPES[row.HL_LOCK_TYPE],
        txnid=row.HL_TXNID or None,
        lastheartbeat=row.HL_LAST_HEARTBEAT,
        acquiredat=row.HL_ACQUIRED_AT,
        user=row.HL_USER,
        hostname=row.HL_HOST,
        heartbeatCount=row.HL_HEARTBEAT_COUNT or 0,
        agentInfo=row.HL_AGENT_INFO,
        blockedByExtId=row.HL_BLOCKEDBY_EXT_ID,
        blockedByIntId=row.HL_BLOCKEDBY_INT_ID,
        lockIdInternal=row.HL_LOCK_INT_ID,
        catname="hive",
    )
