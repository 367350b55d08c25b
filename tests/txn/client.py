"""A short way to write requests to a `TxnStore`, and to read its database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Table, event, func, insert, select, update

from hms_cache.notifications.messages import decode_message
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import (
    DBS,
    HIVE_LOCKS,
    NOTIFICATION_LOG,
    PARTITION_KEYS,
    PARTITIONS,
    TABLE_PARAMS,
    TBLS,
    TXNS,
)
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    DataOperationType,
    GetValidWriteIdsRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockType,
    OpenTxnRequest,
    TxnType,
)
from hms_cache.txn import ValidTxnList, ValidWriteIdList


def component(
    lock_type: int,
    table: str | None = "t",
    partition: str | None = None,
    *,
    database: str = "d",
    operation: int = DataOperationType.SELECT,
    transactional: bool | None = True,
    dynamic: bool = False,
) -> LockComponent:
    """A lock component; its level follows from the given names."""
    level = LockLevel.DB if table is None else LockLevel.TABLE if partition is None else LockLevel.PARTITION
    return LockComponent(
        type=lock_type,
        level=level,
        dbname=database,
        tablename=table,
        partitionname=partition,
        operationType=operation,
        isTransactional=transactional,
        isDynamicPartitionWrite=dynamic,
    )


def write_component(operation: int = DataOperationType.INSERT, table: str = "t", **other: Any) -> LockComponent:
    """The locks that Hive 4 requests for an INSERT, UPDATE or DELETE."""
    lock_type = LockType.SHARED_READ if operation == DataOperationType.INSERT else LockType.EXCL_WRITE
    return component(lock_type, table, operation=operation, **other)


class TxnClient:
    """Calls of one client."""

    def __init__(self, store: TxnStore, database: Database) -> None:
        self.store = store
        self.database = database

    def open(self, txn_type: int = TxnType.DEFAULT) -> int:
        return self.open_many(1, txn_type)[0]

    def open_many(self, count: int, txn_type: int = TxnType.DEFAULT) -> list[int]:
        request = OpenTxnRequest(num_txns=count, user="u", hostname="h", agentInfo="a", txn_type=txn_type)
        return self.store.open_txns(request).txn_ids

    def commit(self, txn_id: int, **options: Any) -> None:
        self.store.commit_txn(CommitTxnRequest(txnid=txn_id, **options))

    def abort(self, txn_id: int) -> None:
        self.store.abort_txn(AbortTxnRequest(txnid=txn_id))

    def lock(self, *components: LockComponent, txn_id: int | None = None, **options: Any) -> LockResponse:
        request = LockRequest(component=list(components), txnid=txn_id, user="u", hostname="h", **options)
        return self.store.lock(request)

    def check(self, lock_id: int) -> int:
        return self.store.check_lock(CheckLockRequest(lockid=lock_id)).state

    def allocate(self, txn_ids: Sequence[int], table: str = "t", database: str = "d", **options: Any) -> dict[int, int]:
        request = AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=list(txn_ids), **options)
        pairs = self.store.allocate_table_write_ids(request).txnToWriteIds
        return {pair.txnId: pair.writeId for pair in pairs}

    def snapshot(self, txn_id: int = 0) -> ValidTxnList:
        return ValidTxnList.from_open_txns(self.store.get_open_txns(), txn_id)

    def valid(self, *tables: str, snapshot: ValidTxnList | None = None) -> list[ValidWriteIdList]:
        request = GetValidWriteIdsRequest(
            fullTableNames=list(tables), validTxnList=None if snapshot is None else snapshot.to_text()
        )
        return [ValidWriteIdList.from_thrift(one) for one in self.store.get_valid_write_ids(request).tblValidWriteIds]

    def write(self, operation: int = DataOperationType.INSERT, table: str = "t", **other: Any) -> tuple[int, int]:
        """Opens a transaction that has written to the table. Returns its id and its write id."""
        txn_id = self.open()
        write_id = self.allocate([txn_id], table)[txn_id]
        self.lock(write_component(operation, table, **other), txn_id=txn_id)
        return txn_id, write_id

    # The contents of the database

    def rows(self, table: Table, *columns: str) -> list[tuple[Any, ...]]:
        with self.database.checking() as connection:
            chosen = [table.c[name] for name in columns] or list(table.c)
            return sorted((tuple(row) for row in connection.execute(select(*chosen))), key=repr)

    def count(self, table: Table) -> int:
        with self.database.checking() as connection:
            return int(connection.execute(select(func.count()).select_from(table)).scalar_one())

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Returns type and message of all events, in order; their ids must be 1, 2, …"""
        log = NOTIFICATION_LOG.c
        with self.database.checking() as connection:
            rows = connection.execute(select(NOTIFICATION_LOG).order_by(log.EVENT_ID)).all()
        assert [row.EVENT_ID for row in rows] == list(range(1, len(rows) + 1))
        found = []
        for row in rows:
            message = decode_message(row.MESSAGE, row.MESSAGE_FORMAT)
            found.append((row.EVENT_TYPE, message if isinstance(message, dict) else json.loads(message)))
        return found

    def age(self, milliseconds: int) -> None:
        """Makes each transaction and lock this much older."""
        with self.database.writing() as connection:
            connection.execute(
                update(TXNS)
                .where(TXNS.c.TXN_ID > 0)
                .values(
                    TXN_STARTED=TXNS.c.TXN_STARTED - milliseconds,
                    TXN_LAST_HEARTBEAT=TXNS.c.TXN_LAST_HEARTBEAT - milliseconds,
                )
            )
            connection.execute(
                update(HIVE_LOCKS).values(HL_LAST_HEARTBEAT=HIVE_LOCKS.c.HL_LAST_HEARTBEAT - milliseconds)
            )
            connection.commit()

    def make_table(self, parameters: Mapping[str, str] | None = None) -> int:
        """Creates a database `d` and a table `t` with these parameters. Returns the table's id."""
        with self.database.writing() as connection:
            connection.execute(insert(DBS).values(DB_ID=7, DB_LOCATION_URI="x", NAME="d", CTLG_NAME="hive"))
            connection.execute(
                insert(TBLS).values(TBL_ID=70, DB_ID=7, TBL_NAME="t", CREATE_TIME=0, LAST_ACCESS_TIME=0, RETENTION=0)
            )
            for key, value in (parameters or {}).items():
                connection.execute(insert(TABLE_PARAMS).values(TBL_ID=70, PARAM_KEY=key, PARAM_VALUE=value))
            connection.commit()
        return 70

    def make_partitions(self, *names: str) -> None:
        """Adds the key `p` to the table `t`, and creates these partitions of it."""
        key = {"TBL_ID": 70, "PKEY_NAME": "p", "PKEY_TYPE": "string", "INTEGER_IDX": 0}
        with self.database.writing() as connection:
            connection.execute(insert(PARTITION_KEYS).values(key))
            for number, name in enumerate(names):
                values = {"PART_ID": 700 + number, "TBL_ID": 70, "PART_NAME": name}
                connection.execute(insert(PARTITIONS).values(**values, CREATE_TIME=0, LAST_ACCESS_TIME=0))
            connection.commit()

    def change(self, statement: Any) -> None:
        with self.database.writing() as connection:
            connection.execute(statement)
            connection.commit()


@contextmanager
def counted_statements(database: Database) -> Iterator[list[str]]:
    """The statements sent meanwhile."""
    statements: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    for engine in database.engines:
        event.listen(engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        for engine in database.engines:
            event.remove(engine, "before_cursor_execute", record)
