"""Database servers and databases with unusual settings: stored and returned data are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from hms_cache.metadata.object_names import TableName
from hms_cache.store import schema
from hms_cache.store.contract.partitions import ByFilter, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_read, run_write
from hms_cache.store.installation.check import check_schema
from hms_cache.store.installation.init import SCHEMA_VERSION, init_schema
from hms_cache.thrift_gen.hive_metastore.ttypes import LockType, MetaException
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, ServerMissing, closing, start_mariadb
from tests.store.partitions.catalog import PartitionCatalog, partition
from tests.store.schema.distribution import load_hive_schema
from tests.txn.client import TxnClient, component
from tests.txn.conftest import store_of

ODD_TEXT = "\\ ' \" \N{CYRILLIC SMALL LETTER ZHE} \N{GRINNING FACE}"
PRECISE = 0.30000000000000004
T = TableName("hive", "d", "t")

_ODD_MARIADB = (
    "--lower-case-table-names=1",
    "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH",
    "--default-time-zone=+05:30",
    "--autocommit=OFF",
    "--transaction-isolation=SERIALIZABLE",
    "--auto-increment-increment=3",
)

_ODD_POSTGRESQL = (
    "client_encoding = 'LATIN1'",
    "default_transaction_isolation = 'serializable'",
    "extra_float_digits = -15",
    "quote_all_identifiers = on",
    "standard_conforming_strings = off",
    "bytea_output = 'escape'",
    "TimeZone = 'Asia/Kolkata'",
)


@pytest.fixture(scope="module")
def odd_mariadb() -> Iterator[DatabaseServer]:
    try:
        server = start_mariadb(*_ODD_MARIADB)
    except ServerMissing as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


def exercise(database: Database, directory: Path) -> None:
    """Writes and reads of each kind: rows, texts, figures, transactions and locks."""
    assert database.features.version == SCHEMA_VERSION
    assert check_schema(database) == []
    catalog = PartitionCatalog(database, directory)
    catalog.create_table(parameters={"k": "\\ ' \""})
    catalog.writes.add_partitions(T, [partition("a'\\\"", "1"), partition("b", "2")])
    assert catalog.reads.get_partition_names(PartitionQuery(T, ByFilter("hr > 1"))) == ["dt=b/hr=2"]
    assert catalog.reads.get_partition(T, ["a'\\\"", "1"]).values == ["a'\\\"", "1"]
    client = TxnClient(store_of(database), database)
    first, second = client.open(), client.open()
    assert client.allocate([first]) == {first: 1}
    client.lock(component(LockType.EXCLUSIVE), txn_id=first)
    client.commit(first)
    client.abort(second)
    assert client.snapshot().high_watermark == second


def keep_odd_text_and_figure(database: Database) -> None:
    """An owner of any characters and a figure of all digits are read back unchanged."""
    row = {"CS_ID": 1, "CAT_NAME": "hive", "DB_NAME": "d", "TABLE_NAME": "t", "COLUMN_NAME": "c", "COLUMN_TYPE": "x"}
    row |= {"DOUBLE_LOW_VALUE": PRECISE, "NUM_NULLS": 0, "LAST_ANALYZED": 1, "ENGINE": ODD_TEXT}

    def write(transaction: object) -> None:
        table_id = transaction.connection.execute(select(schema.TBLS.c.TBL_ID)).scalar_one()  # type: ignore[attr-defined]
        transaction.connection.execute(insert(schema.TAB_COL_STATS), {**row, "TBL_ID": table_id})  # type: ignore[attr-defined]

    run_write(database, write)
    kept = select(schema.TAB_COL_STATS.c.ENGINE, schema.TAB_COL_STATS.c.DOUBLE_LOW_VALUE)
    assert run_read(database, lambda connection: tuple(connection.execute(kept).one())) == (ODD_TEXT, PRECISE)


@pytest.mark.mariadb
@pytest.mark.parametrize("made_by", ["ours", pytest.param("hive", marks=pytest.mark.java)])
def test_a_mariadb_server_of_other_settings(odd_mariadb: DatabaseServer, made_by: str, tmp_path: Path) -> None:
    url = odd_mariadb.create_database()
    if made_by == "hive":
        load_hive_schema(url, "4.0.1")
    with closing(Database(url)) as database:
        if made_by == "ours":
            init_schema(database)
        exercise(database, tmp_path)
    odd_mariadb.drop_database(url)


@pytest.mark.postgresql
def test_a_postgresql_database_of_other_settings(database_servers: ServerLookup, tmp_path: Path) -> None:
    server = database_servers("postgresql")
    assert isinstance(server, DatabaseServer)
    url = server.create_database()
    with server.admin() as connection:
        for setting in _ODD_POSTGRESQL:
            connection.execute(text(f"ALTER DATABASE {_name(url)} SET {setting}"))
    with closing(Database(url)) as database:
        init_schema(database)
        exercise(database, tmp_path)
        keep_odd_text_and_figure(database)
    server.drop_database(url)


@pytest.mark.postgresql
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_postgresql_database_of_another_encoding(
    database_servers: ServerLookup, encoding: str, tmp_path: Path
) -> None:
    """``initdb`` chooses SQL_ASCII in the locale C; a database that lacks a character says so."""
    server = database_servers("postgresql")
    assert isinstance(server, DatabaseServer)
    url = server.create_database()
    server.drop_database(url)
    with server.admin() as connection:
        name = _name(url)
        connection.execute(
            text(f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        )
    try:
        with closing(Database(url)) as database:
            init_schema(database)
            exercise(database, tmp_path)
            if encoding == "SQL_ASCII":
                keep_odd_text_and_figure(database)
            else:
                with pytest.raises(MetaException, match="refuses a value"):
                    keep_odd_text_and_figure(database)
    finally:
        with server.admin() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def _name(url: str) -> str:
    return url.rpartition("/")[2]
