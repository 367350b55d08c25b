"""Transactions in which statistics of transactional tables are computed and written, like in Hive's ANALYZE.

While the transaction is open, the cleaner does not delete files that it sees. Statistics are stored with its write id,
and are valid for snapshots that include this id.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient, Metastores
from hms_cache.jobs.frame.heartbeats import GONE, UNANSWERED, timeout_s
from hms_cache.jobs.statistics.acid import Snapshot, is_insert_only
from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.system_user import system_user
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    OpenTxnRequest,
    Table,
)
from hms_cache.txn import ValidTxnList, ValidWriteIdList

_TABLES_OF_A_CALL = 500


def snapshots(client: MetastoreClient, tables: Iterable[Table], transaction: int = 0) -> dict[TableName, Snapshot]:
    """The visible state of these transactional tables of the default catalog for a transaction (0: one that begins
    now)."""
    tables = list(tables)
    if not tables:
        return {}
    transactions = ValidTxnList.from_open_txns(client.call("get_open_txns"), transaction).to_text()
    found: dict[str, str] = {}
    for some in batches(tables, _TABLES_OF_A_CALL):
        names = [f"{table.dbName}.{table.tableName}" for table in some]
        request = GetValidWriteIdsRequest(fullTableNames=names, validTxnList=transactions)
        for one in client.call("get_valid_write_ids", request).tblValidWriteIds:
            found[one.fullTableName.lower()] = ValidWriteIdList.from_thrift(one).to_text()
    return {
        name_of_table(table): Snapshot(
            transactions, found[f"{table.dbName}.{table.tableName}".lower()], not is_insert_only(table)
        )
        for table in tables
    }


class Transaction:
    """A transaction with a write id of one table. Committed at the end of the block, aborted on an error.

    A thread sends heartbeats, over a connection of its own.
    """

    def __init__(self, metastore: Metastores, table: Table) -> None:
        """Begins the transaction. Raises the errors of the metastore."""
        self._metastore = metastore
        self._ended = threading.Event()
        self._client = MetastoreClient(metastore)
        self._id = 0
        try:
            self._interval_s = max(1.0, timeout_s(self._client) / 6)
            opened = OpenTxnRequest(1, system_user(), socket.gethostname(), agentInfo="hms-cache jobs statistics")
            [self._id] = self._client.call("open_txns", opened).txn_ids
            [(_, self.snapshot)] = snapshots(self._client, [table], self._id).items()
            allocation = AllocateTableWriteIdsRequest(table.dbName, table.tableName, txnIds=[self._id])
            [allocated] = self._client.call("allocate_table_write_ids", allocation).txnToWriteIds
        except BaseException:
            if self._id:
                self._abort()
            self._client.close()
            raise
        self.write_id: int = allocated.writeId
        self._thread = threading.Thread(target=self._live, name="statistics-transaction", daemon=True)

    def __enter__(self) -> Transaction:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        try:
            if error is None:
                self._client.call("commit_txn", CommitTxnRequest(self._id))
            else:
                self._abort()
        finally:
            self._client.close()

    def _abort(self) -> None:
        # If it cannot be aborted, it times out; the reported error is the original one.
        with suppress(*UNANSWERED):
            self._client.call("abort_txn", AbortTxnRequest(self._id))

    def _live(self) -> None:
        # A metastore that does not respond must not delay the next heartbeat.
        with MetastoreClient(self._metastore, call_timeout_s=self._interval_s) as client:
            while not self._ended.wait(self._interval_s):
                try:
                    client.call("heartbeat", HeartbeatRequest(txnid=self._id))
                except GONE:
                    return  # the next write or the commit reports it
                except UNANSWERED:
                    continue  # a restarting metastore, or its database, may recover in time
