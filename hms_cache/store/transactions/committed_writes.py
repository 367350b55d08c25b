"""The write ids of committed transactions, for a cache that has not seen them being allocated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select, tuple_

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database, features_of
from hms_cache.store.schema import NEXT_WRITE_ID, TXN_TO_WRITE_ID

W = TXN_TO_WRITE_ID.c

# Searches by the tables that have write ids, since there is no index by transaction: while one transaction stays open
# for long, all later write ids are kept, and reads wait for this query.
_IS_OF_A_TABLE = tuple_(W.T2W_DATABASE, W.T2W_TABLE).in_(
    select(NEXT_WRITE_ID.c.NWI_DATABASE, NEXT_WRITE_ID.c.NWI_TABLE)
)

#: Ids in one statement: far below every database's limit of parameters.
_BATCH_SIZE = 500


def read_committed_writes(database: Database, txn_ids: Sequence[int]) -> Mapping[int, Sequence[tuple[TableName, int]]]:
    """(table, write id) pairs by transaction, in the latest state of the database.

    A transaction without rows is left out: either it wrote nothing, or its rows have been deleted; it is unknown which.

    :raises DatabaseUnavailable: the database does not answer.
    """
    found: dict[int, list[tuple[TableName, int]]] = {}
    with database.checking() as connection:
        if not features_of(connection).has(TXN_TO_WRITE_ID):
            return found  # in a schema of Hive 3.1 on PostgreSQL the table has another name
        for batch in batches(txn_ids, _BATCH_SIZE):
            rows = connection.execute(
                select(W.T2W_TXNID, W.T2W_DATABASE, W.T2W_TABLE, W.T2W_WRITEID)
                .where(_IS_OF_A_TABLE, W.T2W_TXNID.in_(batch))
                .order_by(W.T2W_TXNID, W.T2W_DATABASE, W.T2W_TABLE)
            )
            for txn_id, database_name, table, write_id in rows:
                name = TableName(DEFAULT_CATALOG, database_name.lower(), table.lower())
                found.setdefault(txn_id, []).append((name, write_id))
    return found
