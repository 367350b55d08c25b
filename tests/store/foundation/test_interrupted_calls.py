"""A thread that waits for the database is released by another one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select

from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable, RetryableConflict
from hms_cache.store.engine.work_units import NeedMoreIds, WriteTransaction, run_again_if_lost, run_read, run_write
from tests.servers import MAX_WAIT_S
from tests.store.foundation.writes import add_database, names_of_databases

Work = Callable[[Connection], None]


def read(database: Database, work: Work) -> None:
    run_read(database, work)


def write(database: Database, work: Work) -> None:
    def add(transaction: WriteTransaction) -> None:
        add_database(transaction, "given_up")
        work(transaction.connection)

    run_write(database, add)


def read_one_moment(database: Database, work: Work) -> None:
    def begin() -> None:
        with database.snapshot():
            run_read(database, work)

    run_again_if_lost(database, begin)


WITHOUT_END = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

LONG = {"mysql": "SELECT SLEEP(3)", "postgresql": "SELECT pg_sleep(3)"}
"""Longer than a cut takes. The database goes on with it, and whoever renews the tables then waits for its end."""

WAYS = pytest.mark.parametrize("run", [read, read_one_moment, write])


def test_a_thread_that_waits_for_the_database_is_cut_off(empty_database: Database) -> None:
    database = empty_database
    holding = threading.Event()
    outcome: list[object] = []
    sleep = LONG.get(database.dialect, WITHOUT_END)

    def wait() -> None:
        try:
            with database.loading() as connection:
                connection.exec_driver_sql("SELECT 1").scalar()
                holding.set()
                outcome.append(connection.exec_driver_sql(sleep).scalar())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert holding.wait(MAX_WAIT_S)
    identifier = thread.ident
    assert identifier is not None
    while thread.is_alive() and database.thread_connections.interrupt(identifier):
        thread.join(0.2)
    thread.join(MAX_WAIT_S)
    assert not thread.is_alive()
    assert isinstance(outcome[0], Exception), outcome
    assert not database.thread_connections.interrupt(identifier), "it holds nothing any more"
    with database.loading() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1, "the pool gives no connection that was cut off"


@WAYS
def test_a_call_that_was_cut_off_is_not_begun_again(
    initialized_database: Database, run: Callable[[Database, Work], None]
) -> None:
    """Otherwise it would be treated as a lost connection: the thread would stay stuck, and an abandoned write be
    committed."""
    database = initialized_database
    sleep = LONG.get(database.dialect, WITHOUT_END)
    holding, runs, raised = threading.Event(), [], []

    def work(connection: Connection) -> None:
        runs.append(connection)
        holding.set()
        if len(runs) == 1:
            connection.exec_driver_sql(sleep).scalar()

    def call() -> None:
        try:
            run(database, work)
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert holding.wait(MAX_WAIT_S)
    while thread.is_alive() and len(runs) == 1:
        assert thread.ident is not None
        database.thread_connections.interrupt(thread.ident)  # SQLite's statement may not have begun
        thread.join(0.2)
    thread.join(MAX_WAIT_S)
    assert not thread.is_alive()
    assert len(runs) == 1
    assert [(type(one), getattr(one, "connection_lost", None)) for one in raised] == [(DatabaseUnavailable, False)]
    assert names_of_databases(database) == []


@WAYS
@pytest.mark.parametrize(
    "failure",
    [
        DatabaseUnavailable("it broke", connection_lost=True),
        RetryableConflict("a deadlock"),
        NeedMoreIds("MTable", 2),
        ValueError("a defect"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_whatever_fails_on_a_connection_that_was_cut_off_is_its_end(
    initialized_database: Database, run: Callable[[Database, Work], None], failure: Exception
) -> None:
    """It does not end the thread's other work: its next call is run again as any other. Until then, it gets no other
    connection, because of what the call might still do."""
    database, runs = initialized_database, 0

    def fail_once_cut_off(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            assert database.thread_connections.interrupt(threading.get_ident())
            raise failure

    def fail_once(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise DatabaseUnavailable("it went stale", connection_lost=True)

    with pytest.raises(DatabaseUnavailable) as raised:
        run(database, fail_once_cut_off)
    assert runs == 1
    assert not raised.value.connection_lost
    with pytest.raises(DatabaseUnavailable, match="given up"):
        run(database, fail_once)
    assert names_of_databases(database) == []
    database.thread_connections.call_ended(threading.get_ident())
    runs = 0
    run(database, fail_once)
    assert runs == 2
    assert (
        not database.thread_connections._interrupted
        and not database.thread_connections._by_thread
        and not database.thread_connections._given_up
    )


def test_a_commit_that_was_cut_off_stays_of_unknown_outcome(
    initialized_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, commits = initialized_database, 0

    def commit(transaction: Any) -> None:
        nonlocal commits
        commits += 1
        assert database.thread_connections.interrupt(threading.get_ident())
        raise DatabaseUnavailable("it broke", connection_lost=True)

    monkeypatch.setattr(WriteTransaction, "commit", commit)
    with pytest.raises(CommitOutcomeUnknown):
        run_write(database, lambda transaction: add_database(transaction, "given_up"))
    assert commits == 1


@WAYS
def test_a_call_that_was_given_up_before_it_had_a_connection_gets_none(
    initialized_database: Database, run: Callable[[Database, Work], None]
) -> None:
    """Whatever it waited for: otherwise, it would be executed after its client was told that it failed."""
    database, runs = initialized_database, []
    assert not database.thread_connections.interrupt(threading.get_ident())
    with pytest.raises(DatabaseUnavailable) as raised:
        run(database, runs.append)
    assert not raised.value.connection_lost
    assert runs == []
    assert names_of_databases(database) == []
    database.thread_connections.call_ended(threading.get_ident())
    run(database, runs.append)
    assert len(runs) == 1


@WAYS
def test_a_call_that_was_given_up_between_two_attempts_has_no_second_one(
    initialized_database: Database, run: Callable[[Database, Work], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, runs = initialized_database, []

    def lose(connection: Connection) -> None:
        runs.append(connection)
        raise RetryableConflict("a deadlock")

    monkeypatch.setattr(database.retries, "add", lambda: database.thread_connections.interrupt(threading.get_ident()))
    with pytest.raises(DatabaseUnavailable):
        run(database, lose)
    assert len(runs) == 1


@pytest.mark.parametrize("with_event", [True, False])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_write_that_was_given_up_between_two_statements_is_not_committed(
    initialized_database: Database, with_event: bool, is_last: bool
) -> None:
    """SQLite has no socket that could be closed, and only interrupts a running statement."""
    database, later = initialized_database, []

    def work(transaction: WriteTransaction) -> None:
        connection = transaction.connection
        if with_event:
            add_database(transaction, "given_up")
        else:
            connection.execute(delete(schema.VERSION))
        assert database.thread_connections.interrupt(threading.get_ident())
        if not is_last:
            later.append(connection.exec_driver_sql("SELECT 1").scalar())

    with pytest.raises(DatabaseUnavailable) as raised:
        run_write(database, work)
    assert not isinstance(raised.value, CommitOutcomeUnknown)
    assert later == []
    assert names_of_databases(database) == []
    assert version_of(database) is not None


def version_of(database: Database) -> object:
    with database.checking() as connection:
        return connection.execute(select(schema.VERSION.c.SCHEMA_VERSION)).scalar()
