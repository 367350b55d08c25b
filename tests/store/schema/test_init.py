"""Creating and checking the schema on the three databases."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import DBAPIError

from hms_cache.errors import SchemaError
from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.features import read_features
from hms_cache.store.engine.inspection import inspect_tables
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.installation.check import check_schema, schema_version
from hms_cache.store.installation.init import ensure_default_database, ensure_default_roles, init_schema
from tests.databases import closing


def test_a_new_schema_shows_no_difference(empty_database: Database) -> None:
    assert schema_version(empty_database) is None
    init_schema(empty_database)
    assert check_schema(empty_database) == []
    assert schema_version(empty_database) == "4.0.0"


def test_servers_that_start_at_once_make_one_schema(database_url: str) -> None:
    together = Barrier(3, timeout=60)

    def start() -> None:
        with closing(Database(database_url)) as database:
            together.wait()
            init_schema(database)

    with ThreadPoolExecutor(3) as threads:
        for started in [threads.submit(start) for _ in range(3)]:
            started.result()
    with closing(Database(database_url)) as database:
        assert check_schema(database) == []
        with database.loading() as connection:
            assert connection.execute(select(schema.CTLGS.c.NAME)).scalars().all() == ["hive"]


def test_an_unfinished_creation_is_completed(empty_database: Database) -> None:
    with empty_database.writing() as connection:
        schema.VERSION.create(connection)
        schema.CTLGS.create(connection)
        connection.commit()
    assert schema_version(empty_database) is None
    init_schema(empty_database)
    assert check_schema(empty_database) == []


def test_a_schema_of_another_version_is_refused(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        connection.execute(update(schema.VERSION).values(SCHEMA_VERSION="4.1.0"))
        connection.commit()
    with pytest.raises(SchemaError, match=r"version 4\.1\.0"):
        init_schema(initialized_database)


def _quoted(database: Database, name: str) -> str:
    return database.write_engine.dialect.identifier_preparer.quote(name)


def _change(database: Database, *statements: str) -> None:
    """Runs the statements, in which names are written in brackets."""
    with database.writing() as connection:
        for statement in statements:
            connection.execute(text(re.sub(r"\[(\w+)\]", lambda name: _quoted(database, name[1]), statement)))
        connection.commit()


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["DELETE FROM [VERSION]"], "hold rows: CTLGS"),
        (["DROP TABLE [VERSION]"], "hold rows: CTLGS"),
    ],
)
def test_a_metastore_that_has_lost_its_version_is_left_alone(
    empty_database: Database, statements: list[str], problem: str
) -> None:
    """It was completed by assumptions, and counted as 4.0 from then on, whichever Hive's it was."""
    init_schema(empty_database)
    _change(empty_database, *statements)
    with empty_database.loading() as connection:
        before = inspect_tables(connection)
    with pytest.raises(SchemaError, match=rf"does not say which version .* {problem}"):
        init_schema(empty_database)
    with empty_database.loading() as connection:
        assert inspect_tables(connection) == before
        assert read_features(connection).version is None


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE TABLE [DBS] ([DB_ID] BIGINT, [NAME] VARCHAR(128))", "of another version: DBS"),
        ("CREATE TABLE [tbls] ([TBL_ID] BIGINT)", "under other names: tbls"),
        ("CREATE VIEW [TBLS] AS SELECT 1 AS [TBL_ID]", "views in the place of tables of a metastore: TBLS"),
    ],
)
def test_no_schema_is_made_beside_what_another_program_has_made(
    empty_database: Database, statement: str, problem: str
) -> None:
    _change(empty_database, statement)
    with pytest.raises(SchemaError, match=problem):
        init_schema(empty_database)
    with empty_database.loading() as connection:
        assert not {"VERSION", "CTLGS"} & inspect_tables(connection).keys()


def test_a_second_version_is_told(empty_database: Database) -> None:
    """Hive's own server does not start with two."""
    init_schema(empty_database)
    columns = "[VER_ID], [SCHEMA_VERSION], [VERSION_COMMENT]"
    _change(empty_database, f"INSERT INTO [VERSION] ({columns}) VALUES (2, '3.1.0', 'older')")
    [found] = check_schema(empty_database)
    assert found.kind == "version" and found.found == "2"
    assert schema_version(empty_database) == "4.0.0"


def test_tables_of_transactions_in_a_schema_of_hive_3_are_of_an_upgrade_that_was_cut_short(
    empty_database: Database,
) -> None:
    init_schema(empty_database)
    _change(empty_database, "UPDATE [VERSION] SET [SCHEMA_VERSION] = '3.2.0'")
    assert not empty_database.read_features().has_transaction_lock_table


@pytest.mark.parametrize("database_kind", [pytest.param("postgresql", marks=pytest.mark.postgresql)], scope="session")
def test_tables_in_another_schema_of_the_search_path_are_found(empty_database: Database) -> None:
    """A schema with the account's name comes first in it, and may be empty."""
    init_schema(empty_database)
    with empty_database.writing() as connection:
        account = connection.execute(text("SELECT current_user")).scalar_one()
        connection.execute(text(f'CREATE SCHEMA "{account}"'))
        connection.commit()
    assert check_schema(empty_database) == []
    assert schema_version(empty_database) == "4.0.0"


def test_check_names_what_is_missing_or_other(empty_database: Database) -> None:
    init_schema(empty_database)
    quote = empty_database.write_engine.dialect.identifier_preparer.quote
    with empty_database.writing() as connection:
        for statement in (
            f"DROP TABLE {quote('RUNTIME_STATS')}",
            f"ALTER TABLE {quote('ROLES')} RENAME COLUMN {quote('OWNER_NAME')} TO {quote('MAKER')}",
            f"DROP INDEX {quote('NEXT_WRITE_ID_IDX')}"
            + (f" ON {quote('NEXT_WRITE_ID')}" if empty_database.dialect == "mysql" else ""),
        ):
            connection.execute(text(statement))
        connection.commit()
    found = [str(difference) for difference in check_schema(empty_database)]
    assert found == [
        "unique key NEXT_WRITE_ID: expected NWI_DATABASE, NWI_TABLE, found none",
        "column ROLES.OWNER_NAME: expected varchar(128), found none",
        "table RUNTIME_STATS: expected RUNTIME_STATS, found none",
    ]


def test_default_database_and_roles_are_made_once(initialized_database: Database) -> None:
    def ensure(transaction: WriteTransaction) -> bool:
        ensure_default_roles(transaction.connection, now_s=5)
        return ensure_default_database(transaction.connection, "file:/warehouse", now_s=5)

    assert run_write(initialized_database, ensure) is True
    assert run_write(initialized_database, ensure) is False
    with initialized_database.loading() as connection:
        row = connection.execute(select(schema.DBS)).mappings().one()
        assert row["NAME"] == "default" and row["OWNER_NAME"] == "public" and row["OWNER_TYPE"] == "ROLE"
        assert row["DB_LOCATION_URI"] == "file:/warehouse" and row["CTLG_NAME"] == "hive"
        assert connection.execute(select(schema.CTLGS.c.LOCATION_URI)).scalar_one() == "file:/warehouse"
        roles = connection.execute(select(schema.ROLES.c.ROLE_NAME).order_by(schema.ROLES.c.ROLE_ID)).scalars().all()
        assert roles == ["admin", "public"]
        assert connection.execute(select(schema.GLOBAL_PRIVS.c.USER_PRIV)).scalars().all() == ["All"]


def test_servers_that_start_at_once_make_one_default_database(initialized_database_url: str) -> None:
    together = Barrier(3, timeout=60)

    def start() -> bool:
        def ensure(transaction: WriteTransaction) -> bool:
            ensure_default_roles(transaction.connection, now_s=5)
            return ensure_default_database(transaction.connection, "file:/warehouse", now_s=5)

        with closing(Database(initialized_database_url)) as database:
            together.wait()
            return run_write(database, ensure)

    with ThreadPoolExecutor(3) as threads:
        made = [started.result() for started in [threads.submit(start) for _ in range(3)]]
    assert sorted(made) == [False, False, True]


def test_there_is_one_row_of_the_next_event_id(initialized_database: Database) -> None:
    with initialized_database.writing() as connection, pytest.raises(DBAPIError):
        connection.execute(insert(schema.NOTIFICATION_SEQUENCE).values(NNI_ID=2, NEXT_EVENT_ID=1))


def test_any_text_comes_back_as_it_was(initialized_database: Database) -> None:
    comment = "città 城市 🐘 'quoted' \\ 100%"
    with initialized_database.writing() as connection:
        connection.execute(insert(schema.CDS).values(CD_ID=1))
        for position, name in enumerate(("Größe", "größe")):
            connection.execute(
                insert(schema.COLUMNS_V2).values(
                    CD_ID=1, COLUMN_NAME=name, COMMENT=comment, TYPE_NAME="int", INTEGER_IDX=position
                )
            )
        connection.commit()
    columns = schema.COLUMNS_V2.c
    with initialized_database.loading() as connection:
        found = connection.execute(select(columns.COMMENT).where(columns.COLUMN_NAME == "größe")).scalars().all()
    assert found == [comment]


def test_flags_are_booleans(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        connection.execute(
            insert(schema.SDS).values(SD_ID=1, IS_COMPRESSED=True, IS_STOREDASSUBDIRECTORIES=False, NUM_BUCKETS=-1)
        )
        connection.execute(
            insert(schema.TBLS).values(TBL_ID=1, CREATE_TIME=1, LAST_ACCESS_TIME=0, RETENTION=0, SD_ID=1, TBL_NAME="t")
        )
        connection.commit()
    with initialized_database.loading() as connection:
        flags = schema.SDS.c
        row = connection.execute(select(flags.IS_COMPRESSED, flags.IS_STOREDASSUBDIRECTORIES)).one()
        assert tuple(row) == (True, False) and type(row[0]) is bool
        rewrite, write_id = connection.execute(select(schema.TBLS.c.IS_REWRITE_ENABLED, schema.TBLS.c.WRITE_ID)).one()
        assert rewrite is False and write_id == 0
        assert connection.execute(select(flags.SD_ID).where(flags.IS_COMPRESSED)).scalars().all() == [1]


def test_features_of_a_database_of_hive_4_1(empty_database: Database) -> None:
    init_schema(empty_database)
    quote = empty_database.write_engine.dialect.identifier_preparer.quote
    with empty_database.writing() as connection:
        connection.execute(
            text(
                f"DROP INDEX {quote('TAB_COL_STATS_IDX')}"
                + (f" ON {quote('TAB_COL_STATS')}" if empty_database.dialect == "mysql" else "")
            )
        )
        for name in ("CAT_NAME", "DB_NAME", "TABLE_NAME"):
            connection.execute(text(f"ALTER TABLE {quote('TAB_COL_STATS')} DROP COLUMN {quote(name)}"))
        connection.execute(update(schema.VERSION).values(SCHEMA_VERSION="4.1.0"))
        connection.commit()
    empty_database.forget_features()
    features = empty_database.features
    assert features.version == "4.1.0"
    assert features.has(schema.TAB_COL_STATS.c.COLUMN_NAME) and not features.has(schema.TAB_COL_STATS.c.DB_NAME)
    values = {"CS_ID": 1, "DB_NAME": "d", "COLUMN_NAME": "c"}
    assert features.writable(schema.TAB_COL_STATS, values) == {"CS_ID": 1, "COLUMN_NAME": "c"}
