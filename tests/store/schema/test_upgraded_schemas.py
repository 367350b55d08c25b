"""Databases that Hive's schematool has upgraded to 4.0, which differ from new ones in some respects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.installation.check import check_schema, schema_version
from hms_cache.store.installation.foreign_key_indexes import create_indexes_beside_writers, missing_indexes
from hms_cache.store.installation.init import ensure_default_database, ensure_default_roles
from hms_cache.thrift_gen.hive_metastore.ttypes import LockType
from tests.conftest import DatabaseServer, SqliteFiles
from tests.database_kinds import SERVER_KINDS
from tests.databases import closing
from tests.store.partitions.catalog import PartitionCatalog
from tests.store.schema.distribution import load_upgraded_schema
from tests.txn.client import TxnClient, component
from tests.txn.conftest import store_of

pytestmark = [
    pytest.mark.java,
    pytest.mark.parametrize("database_kind", SERVER_KINDS),
]


@pytest.fixture(params=["1.2.0", "3.1.0"])
def upgraded(request: pytest.FixtureRequest, database_server: SqliteFiles | DatabaseServer) -> Iterator[Database]:
    url = database_server.create_database()
    load_upgraded_schema(url, request.param)
    with closing(Database(url)) as database:
        yield database
    database_server.drop_database(url)


def test_check_finds_nothing_missing(upgraded: Database) -> None:
    assert schema_version(upgraded) == "4.0.0"
    assert check_schema(upgraded) == []
    create_indexes_beside_writers(upgraded)
    with upgraded.loading() as connection:
        assert missing_indexes(connection) == []


def test_transactions(upgraded: Database) -> None:
    client = TxnClient(store_of(upgraded), upgraded)
    first, second = client.open(), client.open()
    assert client.allocate([first]) == {first: 1}
    client.lock(component(LockType.EXCLUSIVE), txn_id=first)
    client.commit(first)
    client.abort(second)
    assert client.snapshot().high_watermark == second
    [valid] = client.valid("d.t")
    assert valid.high_watermark == 1 and not valid.invalid


def test_writes(upgraded: Database, tmp_path: Path) -> None:
    features = upgraded.features

    def first_rows(transaction: WriteTransaction) -> None:
        ensure_default_roles(transaction.connection, 1)
        ensure_default_database(transaction.connection, "file:/warehouse", 1, features)

    run_write(upgraded, first_rows)
    PartitionCatalog(upgraded, tmp_path).create_table()
