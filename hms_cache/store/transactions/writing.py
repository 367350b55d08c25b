"""What an open transaction declares about its writes and reads.

`add_dynamic_partitions` (partitions that it has written), `add_write_ids_to_min_history` (write ids that it may read),
`get_latest_txnid_in_conflict` (whether its snapshot is too old for its planned changes).
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, func, insert, or_, select

from hms_cache.batches import batches
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema import MIN_HISTORY_WRITE_ID, TXN_COMPONENTS, WRITE_SET
from hms_cache.store.transactions.codes import INSERT, OPERATION_CODES, ROW_CHANGES, UPDATE
from hms_cache.store.transactions.commit_statements import is_same_partition
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.names import plain_database, plain_partition, plain_table, split_full_table_name
from hms_cache.store.transactions.txn_rows import lock_open_txn
from hms_cache.thrift_gen.hive_metastore.ttypes import AddDynamicPartitions

C = TXN_COMPONENTS.c
S = WRITE_SET.c

_TABLES_IN_A_STATEMENT = 200
"""SQLite allows at most 1,000 conditions in one expression."""


def add_dynamic_partitions(connection: Connection, request: AddDynamicPartitions) -> None:
    """Records the partitions that a write with dynamic partitions has written, and deletes the row for the whole table.

    Raises NoSuchTxnException, TxnAbortedException.
    """
    txn_id = request.txnid
    lock_open_txn(connection, txn_id)
    database, table = plain_database(request.dbname), plain_table(request.tablename)
    names = dict.fromkeys(plain_partition(name) for name in request.partitionnames or ())
    if names:
        # An unknown operation may have changed rows: a false conflict is better than a missed one.
        operation = OPERATION_CODES.get(request.operationType, UPDATE)
        connection.execute(
            insert(TXN_COMPONENTS),
            [
                {
                    "TC_TXNID": txn_id,
                    "TC_DATABASE": database,
                    "TC_TABLE": table,
                    "TC_PARTITION": name,
                    "TC_OPERATION_TYPE": operation,
                    "TC_WRITEID": request.writeid,
                }
                for name in names
            ],
        )
    connection.execute(
        delete(TXN_COMPONENTS).where(
            C.TC_TXNID == txn_id, C.TC_DATABASE == database, C.TC_TABLE == table, C.TC_PARTITION.is_(None)
        )
    )


def add_write_ids_to_min_history(
    connection: Connection, context: TxnContext, txn_id: int, write_ids: Mapping[str, int]
) -> None:
    """Records the lowest write id of each table (`db.table`) that the transaction may still need; replaces earlier
    ones.

    Raises NoSuchTxnException, TxnAbortedException; MetaException for a name without a database.
    """
    if not write_ids or not context.use_min_history_write_id:
        return
    rows = []
    for full_name, write_id in sorted(write_ids.items()):
        database, table = split_full_table_name(full_name)
        rows.append({"MH_TXNID": txn_id, "MH_DATABASE": database, "MH_TABLE": table, "MH_WRITEID": write_id})
    lock_open_txn(connection, txn_id)
    history = MIN_HISTORY_WRITE_ID.c
    for some in batches(rows, _TABLES_IN_A_STATEMENT):
        names = or_(
            *((history.MH_DATABASE == one["MH_DATABASE"]) & (history.MH_TABLE == one["MH_TABLE"]) for one in some)
        )
        connection.execute(delete(MIN_HISTORY_WRITE_ID).where(history.MH_TXNID == txn_id, names))
    connection.execute(insert(MIN_HISTORY_WRITE_ID), rows)


def latest_txn_id_in_conflict(connection: Connection, txn_id: int) -> int:
    """The latest committed transaction that wrote where this one is about to change rows, and that it may not have
    seen; 0 for none. A client whose snapshot is older takes a new one."""
    own = (
        select(C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION)
        .where(C.TC_TXNID == txn_id, C.TC_OPERATION_TYPE.in_(ROW_CHANGES))
        .group_by(C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION, ExactText(C.TC_PARTITION))
        .subquery("own")
    )
    latest = connection.execute(
        select(func.max(S.WS_TXNID))
        .join_from(
            own,
            WRITE_SET,
            (S.WS_DATABASE == own.c.TC_DATABASE)
            & (S.WS_TABLE == own.c.TC_TABLE)
            & or_(is_same_partition(S.WS_PARTITION, own.c.TC_PARTITION), own.c.TC_PARTITION.is_(None)),
        )
        .where(S.WS_COMMIT_ID >= txn_id, S.WS_TXNID != txn_id, S.WS_OPERATION_TYPE != INSERT)
    ).scalar()
    return int(latest or 0)
