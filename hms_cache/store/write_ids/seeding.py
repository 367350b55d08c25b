"""Ids chosen by clients: `seed_txn_id` sets the id of the next transaction (for a copy of a warehouse)."""

from __future__ import annotations

from sqlalchemy import Connection, func, insert, select, text

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store.schema import TXNS
from hms_cache.store.transactions.codes import TXN_COMMITTED
from hms_cache.store.transactions.database_values import is_postgresql, lock_all_txns_exclusive
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, SeedTxnIdRequest

T = TXNS.c


def check_seeded_id(what: str, number: int) -> None:
    """Raises MetaException if an id to continue from would leave too few ids."""
    most = input_limits().seeded_id
    if number > most:
        raise MetaException(f"Invalid {what} {number}: at most {most} ({exceeded('seeded_id')})")


def seed_txn_id(connection: Connection, request: SeedTxnIdRequest) -> None:
    """Sets the id of the next transaction. Raises MetaException unless it is above all existing ids.

    Inserts a committed row with the id before it. This advances the counter without DDL, which would end the
    transaction on MySQL, and shows readers that the ids in between are not transactions being opened.
    """
    seed = request.seedTxnId
    check_seeded_id("txnId seed", seed)
    lock_all_txns_exclusive(connection)
    highest = int(connection.execute(select(func.coalesce(func.max(T.TXN_ID), 0))).scalar_one())
    if seed <= highest:
        raise MetaException(f"Invalid txnId seed {seed}, the highWaterMark is {highest}")
    if seed - 1 > highest:
        connection.execute(
            insert(TXNS).values(
                TXN_ID=seed - 1, TXN_STATE=TXN_COMMITTED, TXN_STARTED=0, TXN_LAST_HEARTBEAT=0, TXN_USER="", TXN_HOST=""
            )
        )
    if is_postgresql(connection):
        sequence = "pg_get_serial_sequence('\"TXNS\"', 'TXN_ID')"
        connection.execute(text(f"SELECT setval({sequence}, :highest)"), {"highest": max(seed - 1, 1)})
