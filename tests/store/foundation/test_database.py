"""The three engines: what each sees, what it refuses, and its limits."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import string
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import QueuePool

from hms_cache.config.sections import DatabaseSettings
from hms_cache.errors import ConfigurationError, DatabaseUnavailableError
from hms_cache.metrics import Metrics
from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import (
    database_time_ms,
    reason_of_stale_reads,
    without_values_on_mysql,
    without_values_on_postgresql,
)
from hms_cache.store.engine.drivers.sessions import Sessions
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.work_units import run_read, run_write
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from tests.databases import closing, count_statements
from tests.done_once import prepare_as_servers_do
from tests.store.foundation.writes import add_database, names_of_databases


def test_a_check_sees_each_commit_and_a_load_one_moment(initialized_database: Database) -> None:
    names = select(schema.DBS.c.NAME)
    with initialized_database.checking() as check, initialized_database.loading() as load:
        assert check.execute(names).all() == []
        assert load.execute(names).all() == []
        writer = threading.Thread(target=run_write, args=(initialized_database, lambda write: add_database(write, "a")))
        writer.start()
        writer.join(60)
        assert check.execute(names).scalars().all() == ["a"]
        assert load.execute(names).all() == []
    with initialized_database.loading() as load:
        assert load.execute(names).scalars().all() == ["a"]


def test_a_loads_moment_is_that_of_its_first_statement(initialized_database: Database) -> None:
    with initialized_database.loading() as load:
        writer = threading.Thread(target=run_write, args=(initialized_database, lambda write: add_database(write, "a")))
        writer.start()
        writer.join(60)
        assert load.execute(select(schema.DBS.c.NAME)).scalars().all() == ["a"]


def test_a_load_cannot_write(initialized_database: Database) -> None:
    with initialized_database.loading() as connection, pytest.raises((DBAPIError, DatabaseUnavailable)):
        connection.execute(insert(schema.CDS).values(CD_ID=1))


def test_what_is_not_committed_is_rolled_back(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        connection.execute(insert(schema.CDS).values(CD_ID=1))
    with initialized_database.checking() as connection:
        assert connection.execute(select(schema.CDS)).all() == []


def test_a_thread_with_a_connection_gets_no_second_one(initialized_database: Database) -> None:
    with initialized_database.writing(), pytest.raises(RuntimeError, match="second"):
        run_read(initialized_database, lambda connection: None)
    with initialized_database.loading(), pytest.raises(RuntimeError, match="second"):
        run_write(initialized_database, lambda write: None)
    # It has released the first one.
    assert run_read(initialized_database, lambda connection: 1) == 1


_LIMITS = {
    "sqlite": "PRAGMA busy_timeout",
    "mysql": "SELECT 1000 * @@max_statement_time",
    "postgresql": "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'",
}
"""Statements that tell the limit of a statement, or on SQLite of a lock, in milliseconds."""
_MYSQL_LIMIT = "SELECT @@max_execution_time"


@pytest.mark.parametrize(("limit_s", "in_force_s"), [(0.75, 0.75), (1.4, 1.4), (2.5, 2.5), (90, 90), (1e9, 86_400)])
def test_a_statement_has_the_time_that_is_set(initialized_database_url: str, limit_s: float, in_force_s: float) -> None:
    """On MariaDB, it was rounded: 1.4 s became one, 2.5 s became two."""
    settings = DatabaseSettings(statement_timeout_s=limit_s, check_timeout_s=limit_s)
    with closing(Database(initialized_database_url, settings)) as database:
        for access in (database.loading, database.writing, *(() if database.is_sqlite else (database.checking,))):
            with access() as connection:
                is_mysql = database.dialect == "mysql" and not getattr(connection.dialect, "is_mariadb", False)
                told = connection.execute(text(_MYSQL_LIMIT if is_mysql else _LIMITS[database.dialect])).scalar_one()
            assert float(told) == pytest.approx(1000 * in_force_s)


def test_a_limit_below_a_millisecond_is_one() -> None:
    """Rounded to zero, it would be no limit for PostgreSQL."""
    settings = DatabaseSettings(statement_timeout_s=0.0004, connect_timeout_s=0.0004)
    with closing(Database("postgresql://localhost/d", settings)) as database:
        arguments, _ = database._sessions.arguments("write")
        limits = database._sessions.settings_on_postgresql("write")
    assert (limits["statement_timeout"], limits["lock_timeout"], arguments["connect_timeout"]) == ("1", "1", 1)


def test_reads_inside_a_snapshot_are_part_of_it(initialized_database: Database) -> None:
    def read() -> list[str]:
        return run_read(
            initialized_database, lambda connection: list(connection.execute(select(schema.DBS.c.NAME)).scalars())
        )

    with initialized_database.snapshot():
        assert read() == []
        writer = threading.Thread(target=run_write, args=(initialized_database, lambda write: add_database(write, "a")))
        writer.start()
        writer.join(60)
        assert read() == []
    assert read() == ["a"]


@pytest.mark.parametrize("late", [False, True], ids=["before", "just then"])
def test_connections_that_are_in_use_when_they_are_let_go_of_are_closed_when_they_are_given_back(
    initialized_database: Database, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Otherwise they would stay open in a pool that nobody uses, also after a failover, to the former server."""
    drivers: list[Any] = []
    if late:
        # Between the check whether the pool is in use and the moment when the connection is in it.
        give_back = QueuePool._do_return_conn

        def give_back_late(pool: QueuePool, record: Any) -> None:
            pool.dispose()
            give_back(pool, record)

        monkeypatch.setattr(QueuePool, "_do_return_conn", give_back_late)
    for use in (initialized_database.checking, initialized_database.loading, initialized_database.writing):
        with use() as connection:
            connection.execute(text("SELECT 1")).all()
            drivers.append(connection.connection.dbapi_connection)
            if not late:
                initialized_database.renew()
    assert not any(map(is_open, drivers))
    monkeypatch.undo()
    with initialized_database.loading() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1


def is_open(driver: Any) -> bool:
    if not isinstance(driver, sqlite3.Connection):
        return not driver.closed if hasattr(driver, "closed") else bool(driver.open)
    try:
        driver.total_changes  # noqa: B018
    except sqlite3.ProgrammingError:
        return False
    return True


def test_who_waits_too_long_for_a_connection_is_told(initialized_database_url: str) -> None:
    options = DatabaseSettings(pool_size=1, pool_timeout_s=0.02)
    with closing(Database(initialized_database_url, options)) as database:
        taken, done = threading.Event(), threading.Event()

        def hold() -> None:
            with database.loading():
                taken.set()
                done.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        assert taken.wait(60)
        with pytest.raises(DatabaseUnavailable, match=r"within 0\.02 s") as raised:
            run_read(database, lambda connection: None)
        assert raised.value.retriable and not raised.value.connection_lost
        assert database.connections_in_use() == 1
        # Position checks have connections of their own.
        assert names_of_databases(database) == []
        done.set()
        holder.join(60)
        assert run_read(database, lambda connection: 1) == 1
        assert database.connections_in_use() == 0


@pytest.mark.parametrize("kind", ["check", "load", "write"])
def test_nobody_waits_for_a_connection_that_renewing_has_closed(initialized_database_url: str, kind: str) -> None:
    options = DatabaseSettings(pool_size=1, check_pool_size=2, pool_timeout_s=60)
    with closing(Database(initialized_database_url, options)) as database, ThreadPoolExecutor(3) as threads:
        engine = {"check": database.check_engine, "load": database.load_engine, "write": database.write_engine}[kind]
        held = [engine.connect() for _ in range(engine.pool.size())]  # type: ignore[attr-defined]
        waiting = [threads.submit(lambda: engine.connect().close()) for _ in range(3)]
        # SQLAlchemy's own queue: waiting threads are in no public list of it.
        in_line = engine.pool._pool.not_empty._waiters  # type: ignore[attr-defined]
        end_s = time.monotonic() + 60
        while len(in_line) < 3:
            assert time.monotonic() < end_s
            time.sleep(0.001)
        database.renew()
        database.renew()
        try:
            for one in waiting:
                one.result(timeout=30)
        finally:
            for connection in held:
                connection.close()
        with closing(engine.connect()) as connection:
            assert connection.scalar(select(1)) == 1


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_writers_in_line_leave_the_readers_their_places(initialized_database_url: str) -> None:
    with closing(Database(initialized_database_url, DatabaseSettings(pool_size=2, pool_timeout_s=60))) as database:
        writers = [
            threading.Thread(target=run_write, args=(database, lambda write, n=n: add_database(write, f"w{n}")))
            for n in range(4)
        ]
        with database.writing() as connection:
            connection.execute(insert(schema.CDS).values(CD_ID=1))
            for writer in writers:
                writer.start()
            found = [names_read_in_a_thread(database) for _ in range(3)]
        for writer in writers:
            writer.join(60)
        assert found == [[], [], []]
        assert len(names_of_databases(database)) == 4


def names_read_in_a_thread(database: Database) -> list[str]:
    with ThreadPoolExecutor(1) as thread:
        read = thread.submit(run_read, database, lambda each: list(each.execute(select(schema.DBS.c.NAME)).scalars()))
        return read.result(timeout=60)


@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
def test_a_server_that_is_not_there_is_unavailable(scheme: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        with closing(Database(f"{scheme}://nobody@127.0.0.1:{port}/hive")) as database:
            for use in (database.checking, database.loading, database.writing):
                with pytest.raises(DatabaseUnavailableError) as raised, use() as connection:
                    connection.execute(text("SELECT 1"))
                assert isinstance(raised.value, DatabaseUnavailable) and not raised.value.connection_lost


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "oracle://host/db", "hive.db", "jdbc:derby:;databaseName=x"]
)
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Database(url)


@pytest.mark.parametrize("database_kind", [pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_more_parameters_than_the_driver_sends_are_no_outage(initialized_database: Database) -> None:
    """All connections were dropped for it, also those of other calls, and the client's error asked for a retry."""

    def backend() -> int:
        return run_read(
            initialized_database, lambda connection: connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        )

    before = backend()
    names = select(schema.DBS.c.NAME).where(schema.DBS.c.NAME.in_([f"n{number}" for number in range(66_000)]))
    with pytest.raises(MetaException, match="The request names more than the database takes in one statement"):
        run_read(initialized_database, lambda connection: connection.execute(names).all())
    assert backend() == before


@pytest.mark.parametrize("are_logged", [False, True])
def test_values_of_a_statement_that_fails_are_in_the_log_if_a_setting_says_so(
    initialized_database_url: str, are_logged: bool
) -> None:
    """PostgreSQL's text contains the values of the row that it refuses, and SQLAlchemy's those of the statement."""
    row = {"DB_ID": 1, "NAME": "known by heart", "DESC": "known by heart", "DB_LOCATION_URI": None}
    with (
        closing(Database(initialized_database_url, DatabaseSettings(log_values=are_logged))) as database,
        database.writing() as connection,
        pytest.raises(IntegrityError) as raised,
    ):
        connection.execute(insert(schema.DBS).values(row))
    logged = "".join(traceback.format_exception(raised.value))
    assert ("known by heart" in logged) is are_logged
    assert "DB_LOCATION_URI" in logged and "[SQL: INSERT INTO" in logged


@pytest.mark.parametrize("are_logged", [False, True])
def test_a_value_that_is_there_already_is_in_the_log_if_a_setting_says_so(
    initialized_database_url: str, are_logged: bool
) -> None:
    """MySQL's own text contains it."""
    row = {"DB_ID": 1, "NAME": "known'by heart", "DB_LOCATION_URI": "file:/x", "CTLG_NAME": "hive"}
    with (
        closing(Database(initialized_database_url, DatabaseSettings(log_values=are_logged))) as database,
        database.writing() as connection,
    ):
        connection.execute(insert(schema.DBS).values(row))
        with pytest.raises(IntegrityError) as raised:
            connection.execute(insert(schema.DBS).values({**row, "DB_ID": 2}))
    logged = "".join(traceback.format_exception(raised.value))
    assert ("by heart" in logged) is are_logged
    assert "unique" in logged.lower()


MYSQL_TEXTS = {
    (1062, "Duplicate entry 'a'b-hive' for key 'UNIQUE_DATABASE'"): "Duplicate entry '…' for key 'UNIQUE_DATABASE'",
    (1062, "Duplicate entry '' for key 'PRIMARY'"): "Duplicate entry '…' for key 'PRIMARY'",
    (1062, "Duplicate entry 'x' for key 'y' for key 'DBS.PRIMARY'"): "Duplicate entry '…' for key 'DBS.PRIMARY'",
    (1366, r"Incorrect string value: '\xF0' for column `h`.`DBS`.`DESC` at row 1"): (
        "Incorrect string value: '…' for column `h`.`DBS`.`DESC` at row 1"
    ),
    (1064, "You have an error; near 'SELECT 'a' at line 1' at line 1"): "You have an error; near '…'",
    (1292, "Truncated incorrect DOUBLE value: 'a'"): "Truncated incorrect DOUBLE value: '…'",
    (1406, "Data too long for column 'NAME' at row 1"): "Data too long for column 'NAME' at row 1",
    (1045, "Access denied for user 'u'@'h'"): "Access denied for user 'u'@'h'",
}


@pytest.mark.parametrize(("told", "shown"), MYSQL_TEXTS.items())
def test_texts_of_mysql_without_values(told: tuple[int, str], shown: str) -> None:
    """As worded by MySQL 8 and MariaDB. What tells an operator what to do remains."""
    assert without_values_on_mysql(*told) == shown


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ('invalid input syntax for type numeric: "a"', 'invalid input syntax for type numeric: "…"'),
        ('value "9" is out of range for type "integer"', 'value "…"'),
        ("ungültige Eingabesyntax für Typ numeric: »a«", 'ungültige Eingabesyntax für Typ numeric: "…"'),
        (
            "syntaxe en entrée invalide pour le type numeric : « a »",
            'syntaxe en entrée invalide pour le type numeric : "…"',
        ),
        ("la sintaxis no es válida para tipo numeric: «a»", 'la sintaxis no es válida para tipo numeric: "…"'),
    ],
)
def test_texts_of_postgresql_without_values(told: str, shown: str) -> None:
    assert without_values_on_postgresql(told) == shown


def test_values_that_a_database_refuses_are_not_in_the_log(initialized_database: Database) -> None:
    """Also if one of our errors replaces SQLAlchemy's."""
    long = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
    with pytest.raises(MetaException) as raised:
        run_write(initialized_database, lambda write: add_database(write, long))
    assert long[:20] not in "".join(traceback.format_exception(raised.value))


def test_jdbc_urls_choose_the_driver() -> None:
    mysql = Database("jdbc:mysql://db.example:3307/hive?user=u&useSSL=false")
    assert (mysql.dialect, mysql.url.drivername, mysql.url.port) == ("mysql", "mysql+pymysql", 3307)
    postgresql = Database("jdbc:postgresql://db.example/hive")
    assert (postgresql.dialect, postgresql.url.drivername) == ("postgresql", "postgresql+psycopg")
    assert Database("mariadb://db.example/hive").dialect == "mysql"


def test_an_embedded_database_loses_nothing_at_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sessions, "_prepare_sqlite", prepare_as_servers_do)
    with closing(Database(f"sqlite:///{tmp_path / 'm.db'}")) as database:
        for use in (database.checking, database.loading, database.writing):
            with use() as connection:
                assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
                assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
                assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_statements_are_counted(initialized_database_url: str) -> None:
    metrics = Metrics()
    with closing(Database(initialized_database_url, metrics=metrics.database)) as database:
        assert database.features.version == "4.0.0"
        before = metrics.database.statements.value()
        with count_statements(database) as sent:
            names_of_databases(database)
            run_read(database, lambda connection: connection.execute(select(schema.DBS)).all())
        assert sent.count == 2
        assert metrics.database.statements.value() == before + 2


def test_the_databases_clock_is_in_milliseconds(initialized_database: Database) -> None:
    with initialized_database.checking() as connection:
        first, second = database_time_ms(connection), database_time_ms(connection)
    assert 1_600_000_000_000 < first <= second < 10_000_000_000_000


def test_a_primary_has_no_stale_reads(initialized_database: Database) -> None:
    with initialized_database.checking() as connection:
        assert reason_of_stale_reads(connection) is None


@pytest.mark.parametrize("database_kind", [pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_a_read_only_server_is_taken_for_a_replica(initialized_database: Database) -> None:
    with initialized_database.checking() as connection:
        try:
            connection.execute(text("SET GLOBAL read_only=ON"))
            assert "read-only" in str(reason_of_stale_reads(connection))
        finally:
            connection.execute(text("SET GLOBAL read_only=OFF"))


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o660), (0o022, 0o640), (0o077, 0o600)])
def test_a_new_embedded_database_is_closed_to_others(umask: int, mode: int, tmp_path: Path) -> None:
    """It contains the keys that sign delegation tokens."""
    before = os.umask(umask)
    try:
        with closing(Database(f"sqlite:///{tmp_path / 'hms.db'}")) as database, database.writing() as connection:
            connection.execute(text("CREATE TABLE T (A INT)"))
            connection.commit()
            found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert found == dict.fromkeys(("hms.db", "hms.db-shm", "hms.db-wal"), mode)
