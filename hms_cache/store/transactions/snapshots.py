"""Lists transactions: `get_open_txns`, `get_open_txns_req`, `get_open_txns_info`.

Source of the rule for gaps: Hive 4.0 `GetOpenTxnsListHandler`, see `opening`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, literal, or_, select

from hms_cache.store.schema import TXNS
from hms_cache.store.transactions.codes import TXN_ABORTED, TXN_COMMITTED, TXN_OPEN, TXN_STATES
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetOpenTxnsInfoResponse,
    GetOpenTxnsRequest,
    GetOpenTxnsResponse,
    TxnInfo,
    TxnState,
    TxnType,
)
from hms_cache.txn.id_lists import bits_of_flags, bits_to_bytes
from hms_cache.values import frozen

T = TXNS.c

_WITHOUT_READERS = frozenset({TxnType.READ_ONLY})


class ListedTxn(NamedTuple):
    """An open or aborted transaction. `row` is None for a gap, which may be a transaction being opened."""

    txn_id: int
    state: str
    txn_type: int
    row: Any


@frozen
class TxnSnapshot:
    """Open and aborted transactions up to a high-water mark, ascending."""

    high_watermark: int
    txns: list[ListedTxn]


def read_snapshot(connection: Connection, open_txn_timeout_ms: int, with_details: bool = False) -> TxnSnapshot:
    """All transactions that are not committed, and the highest id. One statement.

    Of the committed rows, only the youngest are read: they distinguish gaps from transactions.
    """
    is_old = T.TXN_STARTED <= now_ms() - open_txn_timeout_ms
    newest_old = select(T.TXN_ID).where(is_old).order_by(T.TXN_ID.desc()).limit(1).scalar_subquery()
    boundary = func.coalesce(newest_old, literal(0))
    columns = [T.TXN_ID, T.TXN_STATE, T.TXN_TYPE]
    if with_details:
        columns += [T.TXN_STARTED, T.TXN_LAST_HEARTBEAT, T.TXN_USER, T.TXN_HOST, T.TXN_META_INFO]
        columns += [T.TXN_AGENT_INFO, T.TXN_HEARTBEAT_COUNT]
    rows = connection.execute(
        select(*columns, boundary.label("BOUNDARY"))
        .where(or_(T.TXN_STATE != TXN_COMMITTED, T.TXN_ID >= boundary))
        .order_by(T.TXN_ID)
    ).all()
    return TxnSnapshot(rows[-1].TXN_ID if rows else 0, list(_listed(rows)))


def _listed(rows: Sequence[Any]) -> Iterator[ListedTxn]:
    previous = rows[0].BOUNDARY if rows else 0
    for row in rows:
        # By position: there may be 100,000 rows, and access by name takes several times as long.
        txn_id, state, txn_type = row[0], row[1], row[2]
        if txn_id > previous:
            for missing in range(previous + 1, txn_id):
                yield ListedTxn(missing, TXN_OPEN, TxnType.DEFAULT, None)
            previous = txn_id
        if state != TXN_COMMITTED:
            yield ListedTxn(txn_id, state, txn_type or TxnType.DEFAULT, row)


def excluded_types(request: Any) -> Collection[int]:
    """The transaction types that the reply leaves out. `get_open_txns`, which has no such argument, leaves out
    READ_ONLY."""
    if isinstance(request, GetOpenTxnsRequest):
        return frozenset(request.excludeTxnTypes or ())
    return _WITHOUT_READERS


def open_txns_response(snapshot: TxnSnapshot, excluded_types: Collection[int] = ()) -> GetOpenTxnsResponse:
    """The reply of `get_open_txns(_req)`; transactions of excluded types count as committed."""
    listed = [txn for txn in snapshot.txns if txn.txn_type not in excluded_types]
    return GetOpenTxnsResponse(
        txn_high_water_mark=snapshot.high_watermark,
        open_txns=[txn.txn_id for txn in listed],
        min_open_txn=next((txn.txn_id for txn in snapshot.txns if txn.state == TXN_OPEN), None),
        abortedBits=bits_to_bytes(bits_of_flags([txn.state == TXN_ABORTED for txn in listed])),
    )


def open_txns_info_response(snapshot: TxnSnapshot) -> GetOpenTxnsInfoResponse:
    """The reply of `get_open_txns_info`; the snapshot must have been read with details."""
    return GetOpenTxnsInfoResponse(
        txn_high_water_mark=snapshot.high_watermark, open_txns=[_info(txn) for txn in snapshot.txns]
    )


def _info(txn: ListedTxn) -> TxnInfo:
    if txn.row is None:
        return TxnInfo(id=txn.txn_id, state=TxnState.OPEN, user="", hostname="")
    row = txn.row
    return TxnInfo(
        id=txn.txn_id,
        state=TXN_STATES[txn.state],
        user=row.TXN_USER,
        hostname=row.TXN_HOST,
        agentInfo=row.TXN_AGENT_INFO,
        heartbeatCount=row.TXN_HEARTBEAT_COUNT or 0,
        metaInfo=row.TXN_META_INFO,
        startedTime=row.TXN_STARTED,
        lastHeartbeatTime=row.TXN_LAST_HEARTBEAT,
    )
