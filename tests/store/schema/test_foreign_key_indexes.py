"""For each deleted row, SQLite and PostgreSQL search the rows that refer to it: each foreign key needs an index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, inspect, text

from hms_cache.store.engine.database import Database
from hms_cache.store.installation.foreign_key_indexes import create_indexes_beside_writers, missing_indexes
from hms_cache.store.installation.init import init_schema
from tests.conftest import DatabaseServer, SqliteFiles
from tests.databases import closing
from tests.store.schema.distribution import load_hive_schema

postgresql_only = pytest.mark.parametrize(
    "database_kind", [pytest.param("postgresql", marks=pytest.mark.postgresql)], scope="session"
)

SKEWED = ("SKEWED_COL_VALUE_LOC_MAP", "STRING_LIST_ID_KID"), ("SKEWED_VALUES", "STRING_LIST_ID_EID")


def unindexed(connection: Connection) -> set[tuple[str, ...]]:
    """Tables and columns of foreign keys without an index that begins with their columns, as SQLAlchemy reads the
    database."""
    found = set()
    inspected = inspect(connection)
    for table in inspected.get_table_names():
        indexed = [inspected.get_pk_constraint(table)["constrained_columns"]]
        indexed += [one["column_names"] for one in inspected.get_indexes(table)]
        indexed += [one["column_names"] for one in inspected.get_unique_constraints(table)]
        for key in inspected.get_foreign_keys(table):
            columns = key["constrained_columns"]
            if not any(set(one[: len(columns)]) == set(columns) for one in indexed):
                found.add((table, *columns))
    return found


def test_each_foreign_key_has_an_index(initialized_database: Database) -> None:
    with initialized_database.loading() as connection:
        assert unindexed(connection) == set()
        assert missing_indexes(connection) == []


@pytest.fixture
def database(database_server: SqliteFiles | DatabaseServer) -> Iterator[Database]:
    url = database_server.create_database()
    with closing(Database(url)) as made:
        yield made
    database_server.drop_database(url)


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_an_embedded_database_that_was_made_before_gets_them_at_the_next_start(database: Database) -> None:
    init_schema(database)
    with database.writing() as connection:
        for table, column in SKEWED:
            connection.execute(text(f'DROP INDEX "IDX_{table}_{column}"'))
        assert unindexed(connection) == set(SKEWED)
        connection.commit()
    init_schema(database)  # as a server does at each start
    with database.writing() as connection:
        assert unindexed(connection) == set()


@pytest.mark.java
@postgresql_only
def test_what_hives_script_leaves_out_is_named_and_made(database: Database) -> None:
    load_hive_schema(str(database.url.render_as_string(hide_password=False)), "4.0.1")
    with database.loading() as connection:
        missing = missing_indexes(connection)
        assert {(one.table, *one.columns) for one in missing} == unindexed(connection) >= set(SKEWED)
    assert create_indexes_beside_writers(database) == missing
    with database.loading() as connection:
        assert unindexed(connection) == set()
    assert create_indexes_beside_writers(database) == []


@postgresql_only
def test_an_index_that_was_left_unfinished_is_made_anew(database: Database) -> None:
    init_schema(database)
    name = "IDX_{}_{}".format(*SKEWED[0])
    with database.writing() as connection:
        connection.execute(text(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '\"{name}\"'::regclass"))
        connection.commit()
    assert [(one.table, *one.columns) for one in create_indexes_beside_writers(database)] == [SKEWED[0]]
    with database.loading() as connection:
        assert missing_indexes(connection) == []
