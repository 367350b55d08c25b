"""The schema compared with the scripts of Hive's own distributions, on MariaDB and PostgreSQL."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Table, insert, select, text
from sqlalchemy.exc import DataError, OperationalError

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.events import TableCreated
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.inspection import IndexShape, TableShape, inspect_tables
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.events.notification_log import EventCleaner
from hms_cache.store.installation.check import check_schema, schema_version
from hms_cache.store.installation.foreign_key_indexes import create_indexes_beside_writers
from hms_cache.store.installation.init import ensure_default_database, ensure_default_roles, init_schema
from hms_cache.store.installation.required_parts import lacking_parts
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from tests.cache import world
from tests.conftest import DatabaseServer, SqliteFiles
from tests.databases import closing
from tests.manual_clock import ManualClock
from tests.store.schema.distribution import load_hive_schema

pytestmark = pytest.mark.java

server_kinds = pytest.mark.parametrize(
    "database_kind",
    [
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ],
)
mariadb_only = pytest.mark.parametrize("database_kind", [pytest.param("mariadb", marks=pytest.mark.mariadb)])

#: Where our own schema differs on MySQL on purpose: text is utf8mb4 and case-sensitive. Columns of unique keys that
#: would exceed InnoDB's 3072 bytes for a key are narrower, all others are not.
NARROW_TEXT = {
    ("PARTITIONS", "PART_NAME"): "utf8mb3_bin",
    ("COLUMNS_V2", "COLUMN_NAME"): "utf8mb3_bin",
    ("TAB_COL_STATS", "COLUMN_NAME"): "utf8mb3_bin",
    ("PART_COL_STATS", "COLUMN_NAME"): "utf8mb3_bin",
    ("WM_POOL", "PATH"): "utf8mb3_bin",
    ("TXN_WRITE_NOTIFICATION_LOG", "WNL_PARTITION"): "utf8mb3_bin",
    ("TXN_WRITE_NOTIFICATION_LOG", "WNL_DATABASE"): "latin1_bin",
    ("TXN_WRITE_NOTIFICATION_LOG", "WNL_TABLE"): "latin1_bin",
}

#: The grant tables have six or seven names in one unique key; types and privileges among them are ASCII words.
GRANT_TABLES = {"GLOBAL_PRIVS", "DB_PRIVS", "DC_PRIVS", "TBL_PRIVS", "TBL_COL_PRIVS", "PART_PRIVS", "PART_COL_PRIVS"}

#: Indexes that are not unique and would exceed the limit only contain the beginning of their long columns.
PREFIXED_INDEXES = {
    "COMPLETED_COMPACTIONS_RES",
    "COMPLETED_TXN_COMPONENTS_IDX",
    "PARTITIONCOLUMNPRIVILEGEINDEX",
    "PCS_STATS_IDX",
    "TABLECOLUMNPRIVILEGEINDEX",
    "TAB_COL_STATS_IDX",
}


@pytest.fixture
def new_database(database_server: SqliteFiles | DatabaseServer) -> Iterator[Callable[[], str]]:
    """Creates empty databases."""
    made: list[str] = []

    def make() -> str:
        made.append(database_server.create_database())
        return made[-1]

    yield make
    for url in made:
        database_server.drop_database(url)


def tables_of(url: str) -> dict[str, TableShape]:
    with closing(Database(url)) as database, database.loading() as connection:
        return inspect_tables(connection)


def without_character_sets(tables: dict[str, TableShape]) -> dict[str, object]:
    """Everything except collations and index prefixes, as plain values that pytest can show side by side."""
    return {
        name: {
            "columns": {c.name: (c.type, c.nullable, c.default, c.generated) for c in shape.columns.values()},
            "primary key": (shape.primary_key, shape.primary_key_name),
            "indexes": {i.name: (i.columns, i.unique, i.method) for i in shape.indexes.values()},
            "foreign keys": shape.foreign_keys,
        }
        for name, shape in tables.items()
    }


@server_kinds
def test_our_schema_is_the_one_of_hives_script(new_database: Callable[[], str]) -> None:
    theirs, ours = new_database(), new_database()
    load_hive_schema(theirs, "4.0.1")
    with closing(Database(theirs)) as database:
        create_indexes_beside_writers(database)  # all differences
    with closing(Database(ours)) as database:
        init_schema(database)
    expected, actual = without_character_sets(tables_of(theirs)), without_character_sets(tables_of(ours))
    assert len(expected) == 83
    assert actual.keys() == expected.keys()
    for name in expected:
        assert actual[name] == expected[name], name


@server_kinds
def test_our_first_rows_are_those_of_hives_script(new_database: Callable[[], str]) -> None:
    theirs, ours = new_database(), new_database()
    load_hive_schema(theirs, "4.0.1")
    with closing(Database(ours)) as database:
        init_schema(database)
    rows = []
    for url in (theirs, ours):
        with closing(Database(url)) as database, database.loading() as connection:
            rows.append(
                {
                    name: sorted(map(repr, connection.execute(select(table)).tuples()))
                    for name, table in schema.METADATA.tables.items()
                }
            )
    assert rows[1] == rows[0]
    assert sum(map(len, rows[0].values())) == 9


@mariadb_only
def test_text_is_unicode_and_case_sensitive_wherever_keys_allow(new_database: Callable[[], str]) -> None:
    url = new_database()
    with closing(Database(url)) as database:
        init_schema(database)
    tables = tables_of(url)
    collations = {
        (table.name, column.name): column.collation
        for table in tables.values()
        for column in table.columns.values()
        if column.collation is not None
    }
    expected = {
        key: NARROW_TEXT.get(
            key, "latin1_bin" if key[0] in GRANT_TABLES and key[1].endswith(("_TYPE", "_PRIV")) else "utf8mb4_bin"
        )
        for key in collations
    }
    assert collations == expected
    indexes: list[IndexShape] = [index for table in tables.values() for index in table.indexes.values()]
    assert {index.name for index in indexes if any(index.prefixes)} == PREFIXED_INDEXES
    assert not any(any(index.prefixes) for index in indexes if index.unique)


@mariadb_only
def test_no_key_passes_the_3072_bytes_of_mysql(new_database: Callable[[], str]) -> None:
    url = new_database()
    with closing(Database(url)) as database:
        init_schema(database)
    width = {"utf8mb4_bin": 4, "utf8mb3_bin": 3, "latin1_bin": 1}
    for table in tables_of(url).values():
        keys = [(index.name, index.columns, index.prefixes) for index in table.indexes.values()]
        for name, columns, prefixes in (*keys, ("PRIMARY", table.primary_key, (None,) * len(table.primary_key))):
            size = 0
            for column, prefix in zip((table.columns[each] for each in columns), prefixes, strict=True):
                length = re.search(r"\((\d+)\)", column.type)
                size += 8 if column.collation is None else (prefix or int(length[1])) * width[column.collation]
            assert size <= 3072, (table.name, name)


@server_kinds
@pytest.mark.parametrize(
    ("table", "columns", "is_unique"),
    [
        (schema.TAB_COL_STATS, ("TBL_ID", "COLUMN_NAME"), False),
        (schema.PART_COL_STATS, ("PART_ID", "COLUMN_NAME"), False),
        (schema.TBLS, ("DB_ID", "TBL_NAME"), True),
        (schema.TXNS, ("TXN_STATE", "TXN_ID"), True),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_the_indexes_of_hive_4_1_can_be_made_in_our_schema(
    new_database: Callable[[], str], table: Table, columns: tuple[str, ...], is_unique: bool
) -> None:
    """Its upgrade ended at the first: the key was too long on MariaDB, and the schema remained between two versions."""
    with closing(Database(new_database())) as database:
        init_schema(database)
        with database.writing() as connection:
            quote = connection.dialect.identifier_preparer.quote
            names = ", ".join(map(quote, columns))
            connection.execute(text(f"CREATE {'UNIQUE ' * is_unique}INDEX later ON {quote(table.name)} ({names})"))


@server_kinds
def test_check_finds_nothing_missing_in_a_database_of_hive_4(new_database: Callable[[], str]) -> None:
    url = new_database()
    load_hive_schema(url, "4.0.1")
    with closing(Database(url)) as database:
        assert check_schema(database) == []
        assert schema_version(database) == "4.0.0"
        assert database.features.missing_columns == frozenset()
        assert database.features.single_byte_text == (database.dialect == "mysql")


@server_kinds
def test_a_database_of_hive_3_is_opened_as_it_is(new_database: Callable[[], str]) -> None:
    url = new_database()
    load_hive_schema(url, "3.1.3")
    with closing(Database(url)) as database:
        features = database.features
        assert features.version == "3.1.0"
        assert lacking_parts(features) == []
        assert not features.has_write_ids_of_tables
        assert not features.has(schema.TAB_COL_STATS.c.ENGINE)
        assert not features.has_min_history_write_id
        assert not features.has_transaction_lock_table
        assert features.has(schema.TAB_COL_STATS.c.DB_NAME)
        assert ("TXNS" in features.folded_tables) == (database.dialect == "postgresql")
        differences = {str(difference) for difference in check_schema(database)}
        assert "column TBLS.WRITE_ID: expected bigint, found none" in differences
        assert "version VERSION: expected 4.0.0, found 3.1.0" in differences

        def write(transaction: WriteTransaction) -> None:
            ensure_default_roles(transaction.connection, 1)
            ensure_default_database(transaction.connection, "file:/warehouse", 1, features)
            transaction.append_event(EventRow("CREATE_DATABASE", "hive", "d", None, "{}", "json-0.2"))

        run_write(database, write)
        with database.loading() as connection:
            row = connection.execute(
                select(features.column(schema.DBS.c.TYPE, "NATIVE"), schema.DBS.c.NAME, schema.DBS.c.DB_LOCATION_URI)
            ).one()
            assert tuple(row) == ("NATIVE", "default", "file:/warehouse")
            assert connection.execute(select(schema.NOTIFICATION_LOG.c.EVENT_ID)).scalars().all() == [1]


@server_kinds
@pytest.mark.parametrize("release", ["3.1.3", "4.0.1"])
def test_old_events_are_deleted_in_databases_of_hive(new_database: Callable[[], str], release: str) -> None:
    """In those of Hive 3.1 on PostgreSQL they remained: the table by which servers take turns has another name
    there."""
    url = new_database()
    load_hive_schema(url, release)
    clock = ManualClock()
    with closing(Database(url, clock=clock)) as database:
        for name in ("a", "b", "c"):
            run_write(
                database,
                lambda transaction, name=name: transaction.append_event(
                    EventRow("CREATE_DATABASE", "hive", name, None, "{}", "json-0.2")
                ),
            )
        clock.advance(1_000_000)
        assert EventCleaner(database, clock).clean_events(10.0, 100) == 2
        with database.loading() as connection:
            assert connection.execute(select(schema.NOTIFICATION_LOG.c.EVENT_ID)).scalars().all() == [3]


@mariadb_only
def test_text_that_a_latin1_database_cannot_keep_is_refused(new_database: Callable[[], str]) -> None:
    url = new_database()
    load_hive_schema(url, "4.0.1")
    with closing(Database(url)) as database, database.writing() as connection:
        connection.execute(insert(schema.CDS).values(CD_ID=1))
        with pytest.raises((DataError, OperationalError), match="Incorrect string value"):
            connection.execute(
                insert(schema.COLUMNS_V2).values(CD_ID=1, COLUMN_NAME="город", TYPE_NAME="int", INTEGER_IDX=0)
            )


@mariadb_only
def test_columns_that_are_changed_as_documented_keep_any_text(new_database: Callable[[], str], tmp_path: Path) -> None:
    page = Path("docs/decisions/0021-texts-that-a-column-has-no-characters-for-are-refused.md").read_text("utf-8")
    changes = [line.rstrip(";") for line in page.splitlines() if line.startswith("ALTER TABLE")]
    url, any_text = new_database(), "名称 é 😀"
    load_hive_schema(url, "4.0.1")

    def write(server: world.Server, name: str) -> None:
        made = world.table("d", name)
        made.parameters = {**made.parameters, "comment": any_text}
        made.sd.cols[0].comment = any_text
        server.objects.writes.tables.create_table(made)

    with contextlib.closing(world.Server(url, tmp_path)) as server:
        world.create_database(server.objects, "d")
        with pytest.raises(MetaException, match=r"Incorrect string value: \\*'…\\*' for column"):
            write(server, "refused")
    with closing(Database(url)) as database, database.checking() as connection:
        for change in changes:
            connection.exec_driver_sql(change)
    with contextlib.closing(world.Server(url, tmp_path)) as server:
        described = server.objects.reads.databases.get_database(DatabaseName("hive", "d"))
        described.description = any_text
        server.objects.writes.databases.alter_database(DatabaseName("hive", "d"), described)
        assert server.objects.reads.databases.get_database(DatabaseName("hive", "d")).description == any_text
        write(server, "t")
        found = server.objects.reads.tables.get_table(TableName("hive", "d", "t"))
        assert (found.parameters["comment"], found.sd.cols[0].comment) == (any_text, any_text)


@mariadb_only
@pytest.mark.parametrize("message_format", MessageFormat)
def test_comments_that_the_log_has_no_characters_for_are_logged(
    new_database: Callable[[], str], tmp_path: Path, message_format: MessageFormat
) -> None:
    """Sites with comments in Chinese change the columns of comments and, with Hive 4, whose messages are in base64, not
    that of messages."""
    url, comment = new_database(), "名称 é 😀"
    load_hive_schema(url, "4.0.1")
    with closing(Database(url)) as database, database.checking() as connection:
        wide = "VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        connection.exec_driver_sql(f"ALTER TABLE COLUMNS_V2 MODIFY COMMENT {wide}")
    with contextlib.closing(world.Server(url, tmp_path, message_format=message_format)) as server:
        world.create_database(server.objects, "d")
        owner = world.table("d", "t")
        owner.sd.cols[0].comment = comment
        server.objects.writes.tables.create_table(owner)
        event = read_event(server.log.fetch(0, 10).rows[-1])
        assert isinstance(event, TableCreated)
        assert event.table().sd.cols[0].comment == comment
