"""A transaction that changed rows in many places is compared with others in memory: the result is the same."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import delete, insert

from hms_cache.store.engine.database import Database
from hms_cache.store.schema import WRITE_SET
from hms_cache.thrift_gen.hive_metastore.ttypes import DataOperationType, LockType, TxnAbortedException
from tests.txn.client import TxnClient, component
from tests.txn.conftest import store_of
from tests.txn.test_rows_read import steps_of_sqlite

MANY = 30
"""Further places, with which one commit is no longer compared by the database."""

PARTITIONS = (None, "p=a", "p=A", "p=a ", "p=á", "p=10%3A00", "p=10%253A00", "p=10%25253A00", "p=1")
OTHERS = [
    *({"WS_PARTITION": partition} for partition in PARTITIONS),
    {"WS_PARTITION": "p=a", "WS_OPERATION_TYPE": "i"},
    {"WS_PARTITION": "p=a", "WS_COMMIT_ID": 0},
    {"WS_PARTITION": "p=a", "WS_TABLE": "u"},
    {"WS_PARTITION": "p=a", "WS_DATABASE": "e"},
]


@pytest.fixture
def client(database_of_any_schema: Database) -> TxnClient:
    return TxnClient(store_of(database_of_any_schema), database_of_any_schema)


def changed(client: TxnClient, partition: str | None, further: int) -> int:
    """A transaction that changed rows there, and in this many partitions of another table."""
    txn_id = client.open()
    places = [("t", partition), *(("other", f"p={number}") for number in range(further))]
    locks = (
        component(LockType.SHARED_WRITE, table, name, operation=DataOperationType.UPDATE) for table, name in places
    )
    client.lock(*locks, txn_id=txn_id)
    return txn_id


def outcome(client: TxnClient, txn_id: int) -> str:
    """The statements of its commit, without ids."""
    try:
        client.commit(txn_id, exclWriteEnabled=False)
    except TxnAbortedException as error:
        return re.sub("[0-9]+(?=[],])", "#", error.message)
    return "committed"


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_outcome_does_not_depend_on_their_number(client: TxnClient, partition: str | None) -> None:
    found: dict[int, list[str]] = {0: [], MANY: []}
    for other in OTHERS:
        for further, outcomes in found.items():
            txn_id = changed(client, partition, further)
            row = {"WS_DATABASE": "d", "WS_TABLE": "t", "WS_TXNID": 10**6, "WS_COMMIT_ID": 10**6}
            client.change(delete(WRITE_SET))
            client.change(insert(WRITE_SET).values({**row, "WS_OPERATION_TYPE": "d", **other}))
            outcomes.append(outcome(client, txn_id))
    assert found[0] == found[MANY]
    assert 0 < found[0].count("committed") < len(found[0])


def test_many_places_are_not_compared_with_each_write_of_others(sqlite_client: TxnClient) -> None:
    """A hundred places and a hundred thousand writes took MariaDB seven seconds, in which no transaction could be
    opened. SQLite counts its work for each pair."""
    client = sqlite_client
    measure = steps_of_sqlite(client.database)

    def commit() -> None:
        assert outcome(client, changed(client, "q=0", 100)) == "committed"

    before = measure(commit)
    row = {"WS_DATABASE": "d", "WS_TABLE": "other", "WS_COMMIT_ID": 10**6, "WS_OPERATION_TYPE": "u"}
    rows = [{**row, "WS_PARTITION": f"q={number}", "WS_TXNID": 10**5 + number} for number in range(1_000)]
    client.change(insert(WRITE_SET).values(rows))
    assert measure(commit) < before + 10_000
