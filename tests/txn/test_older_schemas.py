"""Databases created by Hive 3.1, which stores committed writes and counts ids in other tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import insert, text

from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.store.schema import HIVE_LOCKS, NEXT_WRITE_ID, TXN_TO_WRITE_ID
from hms_cache.store.transactions.committed_writes import read_committed_writes
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    CompactionRequest,
    CompactionType,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    LockState,
    LockType,
    MetaException,
    OpenTxnRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.conftest import DatabaseServer, SqliteFiles
from tests.database_kinds import SERVER_KINDS
from tests.databases import closing
from tests.store.schema.distribution import load_hive_schema
from tests.txn.client import TxnClient, component

pytestmark = [
    pytest.mark.java,
    pytest.mark.parametrize("database_kind", SERVER_KINDS),
]


@pytest.fixture
def client(database_server: SqliteFiles | DatabaseServer) -> Iterator[TxnClient]:
    url = database_server.create_database()
    load_hive_schema(url, "3.1.3")
    with closing(Database(url)) as database:
        yield TxnClient(TxnStore(database, MessageBuilder(), features=database.features), database)
    database_server.drop_database(url)


CALLS: dict[str, Callable[[TxnStore], object]] = {
    "open_txns": lambda store: store.open_txns(OpenTxnRequest(1, "u", "h")),
    "get_open_txns": lambda store: store.get_open_txns(),
    "commit_txn": lambda store: store.commit_txn(CommitTxnRequest(1)),
    "allocate_table_write_ids": lambda store: store.allocate_table_write_ids(
        AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[1])
    ),
    "get_valid_write_ids": lambda store: store.get_valid_write_ids(GetValidWriteIdsRequest(["d.t"])),
    "compact2": lambda store: store.compact2(CompactionRequest("d", "t", type=CompactionType.MAJOR)),
    "show_compact": lambda store: store.show_compact(ShowCompactRequest()),
    "add_write_notifications": lambda store: store.add_write_notifications([]),
}


def test_transactions_are_refused(client: TxnClient) -> None:
    """On MariaDB, the valid write ids contained none of what Hive 3.1 has committed."""
    if client.database.dialect == "mysql":
        client.change(insert(NEXT_WRITE_ID).values(NWI_DATABASE="d", NWI_TABLE="t", NWI_NEXT=2))
        client.change(insert(TXN_TO_WRITE_ID).values(T2W_TXNID=1, T2W_DATABASE="d", T2W_TABLE="t", T2W_WRITEID=1))
    assert client.store.combined == {}
    for name, call in CALLS.items():
        with pytest.raises(MetaException, match=r"schema 3\.1\.0 has no transactions as Hive 4.0 has them") as raised:
            call(client.store)
        assert raised.type is MetaException, name


def test_housekeeping_has_nothing_to_do(client: TxnClient) -> None:
    """It failed at each run."""
    assert client.store.give_up_timed_out().txns == 0
    assert client.store.clean().is_complete
    assert client.store.keep_compactions() == 0
    assert client.store.initiate_compactions("here") == []


def test_what_transactions_wrote_is_unknown_where_the_table_is(client: TxnClient) -> None:
    assert read_committed_writes(client.database, [1, 2]) == {}


def test_locks_outside_of_transactions(client: TxnClient) -> None:
    """As Iceberg takes them. On PostgreSQL, the tables have other names."""
    if client.database.dialect != "mysql":
        with pytest.raises(MetaException, match="upgrade it with Hive's schematool"):
            client.lock(component(LockType.EXCLUSIVE))
        assert client.store.owned_locks().locks == ()
        return
    first, second = client.lock(component(LockType.EXCLUSIVE)), client.lock(component(LockType.EXCLUSIVE))
    assert (first.state, second.state) == (LockState.ACQUIRED, LockState.WAITING)
    client.store.heartbeat(HeartbeatRequest(lockid=first.lockid))
    assert len(client.store.show_locks(ShowLocksRequest()).locks) == len(client.store.owned_locks().locks) == 2
    client.store.unlock(UnlockRequest(lockid=first.lockid))
    assert client.check(second.lockid) == LockState.ACQUIRED
    client.age(24 * 3_600_000)
    assert client.store.give_up_timed_out().locks == 1
    assert client.count(HIVE_LOCKS) == 0


def test_compactions_are_refused_where_their_queue_lacks_columns(empty_database: Database) -> None:
    """Schemas of 4.0's first releases, and incomplete upgrades: calls failed with internal errors."""
    init_schema(empty_database)
    quote = empty_database.write_engine.dialect.identifier_preparer.quote
    with empty_database.writing() as connection:
        connection.execute(text(f"ALTER TABLE {quote('COMPACTION_QUEUE')} DROP COLUMN {quote('CQ_ORDER_BY')}"))
        connection.commit()
    empty_database.forget_features()
    client = TxnClient(TxnStore(empty_database, MessageBuilder(), features=empty_database.features), empty_database)
    for name in ("compact2", "show_compact"):
        with pytest.raises(MetaException, match=r"has no COMPACTION_QUEUE\.CQ_ORDER_BY: upgrade it"):
            CALLS[name](client.store)
    assert client.store.keep_compactions() == 0
    client.commit(client.open())
