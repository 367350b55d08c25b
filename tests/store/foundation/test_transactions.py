"""Writes as units: all or nothing with their events, repeated on conflicts, never if the outcome is unknown."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from sqlalchemy import insert, make_url, select, text, update
from sqlalchemy.exc import IntegrityError

from hms_cache.clock import SystemClock
from hms_cache.config import Settings
from hms_cache.config.sections import DatabaseSettings, WarehouseSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store import schema
from hms_cache.store.contract.metadata import MetadataReads
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable, RetryableConflict
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.work_units import NeedMoreIds, WriteTransaction, run_read, run_write
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.warehouse import Warehouse
from tests.databases import closing, count_statements
from tests.servers import MAX_WAIT_S
from tests.store.foundation.relay import Relay
from tests.store.foundation.writes import (
    add_database,
    add_databases,
    an_event,
    event_ids,
    names_of_databases,
    next_event_id,
)

server_kinds = pytest.mark.parametrize(
    "database_kind",
    [
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ],
)


class Failure(Exception):
    """Raised by the tests' own work."""


class Listener:
    """Records the notifications."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int | None]] = []

    def committed(self, events: tuple[EventRow, ...], last_event_id: int | None) -> None:
        self.told.append(("committed", len(events), last_event_id))

    def outcome_unknown(self, events: tuple[EventRow, ...]) -> None:
        self.told.append(("unknown", len(events), None))


def test_a_write_and_its_events_arrive_together(initialized_database: Database) -> None:
    listener = Listener()
    initialized_database.commit_listeners.append(listener)
    done: list[object] = []

    def work(write: WriteTransaction) -> str:
        write.after_commit(lambda: done.append(("first", write.last_event_id)))
        write.after_commit(lambda: done.append("second"))
        write.on_rollback(lambda: done.append("never"))
        add_database(write, "a")
        write.append_event(an_event("b"))
        assert write.last_event_id is None
        return "result"

    assert run_write(initialized_database, work, ids={"MDatabase": 1}) == "result"
    assert names_of_databases(initialized_database) == ["a"]
    assert done == [("first", 2), "second"]
    assert listener.told == [("committed", 2, 2)]
    with initialized_database.checking() as connection:
        log = schema.NOTIFICATION_LOG.c
        rows = connection.execute(select(schema.NOTIFICATION_LOG).order_by(log.EVENT_ID)).mappings().all()
    assert [(row["EVENT_ID"], row["DB_NAME"], row["MESSAGE"]) for row in rows] == [
        (1, "a", '{"db":"a"}'),
        (2, "b", '{"db":"b"}'),
    ]
    assert {row["EVENT_TYPE"] for row in rows} == {"CREATE_DATABASE"}
    assert rows[0]["CAT_NAME"] == "hive" and rows[0]["TBL_NAME"] is None and rows[0]["MESSAGE_FORMAT"] == "json-0.2"
    assert next_event_id(initialized_database) == 3


def test_a_write_that_fails_leaves_nothing(initialized_database: Database) -> None:
    done: list[str] = []

    def work(write: WriteTransaction) -> None:
        write.on_rollback(lambda: done.append("undo first"))
        write.on_rollback(lambda: done.append("undo second"))
        write.after_commit(lambda: done.append("never"))
        add_database(write, "a")
        raise Failure

    with pytest.raises(Failure):
        run_write(initialized_database, work, ids={"MDatabase": 1})
    assert done == ["undo second", "undo first"]
    assert names_of_databases(initialized_database) == []
    assert event_ids(initialized_database) == []
    assert next_event_id(initialized_database) == 1


def test_a_violated_key_is_the_works_own_affair(initialized_database: Database) -> None:
    run_write(initialized_database, lambda write: add_database(write, "a"))
    with pytest.raises(IntegrityError):
        run_write(initialized_database, lambda write: add_database(write, "a"))
    assert event_ids(initialized_database) == [1]


def test_errors_after_the_commit_do_not_undo_it(
    initialized_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def fail() -> None:
        raise Failure("the directory is gone")

    def work(write: WriteTransaction) -> int:
        write.after_commit(fail)
        write.after_commit(lambda: done.append("next"))
        return add_database(write, "a")

    assert run_write(initialized_database, work) == 1
    assert done == ["next"]
    assert "the directory is gone" in caplog.text


def test_event_ids_have_no_gap_at_any_moment(initialized_database: Database, initialized_database_url: str) -> None:
    """8 threads and 2 processes write, a fifth of the threads' writes fails; a reader reads all the time."""
    writers_done = threading.Event()
    looks: list[tuple[int, int]] = []
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")

    def write_some(number: int) -> int:
        chance = random.Random(seed + number)
        written = 0

        def work(write: WriteTransaction) -> int:
            for _ in range(chance.randint(1, 3)):
                write.append_event(an_event(f"{number}"))
            if chance.random() < 0.2:
                raise Failure
            return len(write.events)

        for _ in range(15):
            with contextlib.suppress(Failure):
                written += run_write(initialized_database, work)
        return written

    def look() -> None:
        log = schema.NOTIFICATION_LOG.c
        while not writers_done.is_set():
            with initialized_database.loading() as connection:
                ids = connection.execute(select(log.EVENT_ID).order_by(log.EVENT_ID)).scalars().all()
                following = connection.execute(select(schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)).scalar_one()
            assert ids == list(range(1, len(ids) + 1))
            looks.append((len(ids), following))

    with (
        ThreadPoolExecutor(9) as threads,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes,
    ):
        reader = threads.submit(look)
        others = [
            processes.submit(add_databases, initialized_database_url, [f"p{process}_{n}" for n in range(15)])
            for process in range(2)
        ]
        try:
            written = sum(threads.map(write_some, range(8)))
            for other in others:
                other.result(timeout=120)
        finally:
            writers_done.set()
        reader.result(timeout=60)
    ids = event_ids(initialized_database)
    assert ids == list(range(1, written + 30 + 1))
    assert next_event_id(initialized_database) == len(ids) + 1
    # One snapshot shows the counter and the rows of the same commits, and no later read shows fewer.
    assert all(following == count + 1 for count, following in looks)
    assert looks == sorted(looks)
    with initialized_database.checking() as connection:
        row_ids = connection.execute(select(schema.NOTIFICATION_LOG.c.NL_ID)).scalars().all()
    assert len(set(row_ids)) == len(row_ids) == len(ids)


@server_kinds
def test_the_loser_of_a_deadlock_is_run_again(initialized_database: Database) -> None:
    run_write(initialized_database, lambda write: [add_database(write, name) for name in ("a", "b")])
    both_hold_one = threading.Barrier(2, timeout=60)
    attempts = {"a": 0, "b": 0}
    undone: list[str] = []

    def change(first: str, second: str) -> None:
        def work(write: WriteTransaction) -> None:
            attempts[first] += 1
            write.on_rollback(lambda: undone.append(first))
            for name in (first, second):
                write.connection.execute(
                    update(schema.DBS).where(schema.DBS.c.NAME == name).values(OWNER_NAME=f"{first}{attempts[first]}")
                )
                if name == first and attempts[first] == 1:
                    both_hold_one.wait()
            write.append_event(an_event(first))

        run_write(initialized_database, work)

    with ThreadPoolExecutor(2) as threads:
        for changed in [threads.submit(change, "a", "b"), threads.submit(change, "b", "a")]:
            changed.result(timeout=120)
    assert sorted(attempts.values()) == [1, 2]
    assert undone == [name for name in attempts if attempts[name] == 2]
    assert event_ids(initialized_database) == [1, 2, 3, 4]
    assert initialized_database.retries.value() == 1


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_a_locked_file_is_waited_for_and_then_reported(initialized_database_url: str) -> None:
    options = DatabaseSettings(statement_timeout_s=0.02, retry_attempts=3)
    with closing(Database(initialized_database_url, options)) as database:
        other = sqlite3.connect(make_url(initialized_database_url).database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RetryableConflict, match="locked"):
            run_write(database, lambda write: add_database(write, "a"))
        assert database.retries.value() == 2
        # Readers do not block a writer.
        assert names_of_databases(database) == []
        other.execute("ROLLBACK")
        other.close()
        assert run_write(database, lambda write: add_database(write, "a")) == 1


@server_kinds
@pytest.mark.parametrize("deliver", [True, False], ids=["delivered", "not delivered"])
def test_a_commit_with_unknown_outcome_is_not_run_again(initialized_database_url: str, deliver: bool) -> None:
    url = make_url(initialized_database_url)
    relay = Relay(url.port or 0)
    # The relay looks for COMMIT in what it passes on, which TLS would hide: newer servers have it by default.
    plain = {"ssl_mode": "DISABLED"} if url.get_backend_name() == "mysql" else {"sslmode": "disable"}
    relayed = url.set(port=relay.port).update_query_dict(plain).render_as_string(hide_password=False)
    done: list[str] = []
    attempts: list[int] = []

    def work(write: WriteTransaction) -> int:
        attempts.append(1)
        write.after_commit(lambda: done.append("after commit"))
        write.on_rollback(lambda: done.append("on rollback"))
        return add_database(write, "doubtful")

    with closing(Database(relayed)) as database:
        listener = Listener()
        database.commit_listeners.append(listener)
        run_write(database, lambda write: add_database(write, "sure"))
        relay.arm(deliver=deliver)
        with pytest.raises(CommitOutcomeUnknown) as raised:
            run_write(database, work)
        assert raised.value.retriable
        assert relay.cut.wait(60)
        assert (attempts, done) == ([1], [])
        assert listener.told == [("committed", 1, 1), ("unknown", 1, None)]
        # The pool has recovered, and an id that may be in use is not assigned again.
        run_write(database, lambda write: add_database(write, "next"))
    with closing(Database(initialized_database_url)) as database:
        expected = ["doubtful", "next", "sure"] if deliver else ["next", "sure"]
        assert names_of_databases(database) == expected
        assert event_ids(database) == list(range(1, len(expected) + 1))
    relay.close()


def cut_all_others(database: Database) -> None:
    """Ends all connections of the database except one, so the connections in the pools are stale."""
    with database.checking() as connection:
        if database.dialect == "mysql":
            mine = connection.execute(text("SELECT CONNECTION_ID()")).scalar_one()
            others = "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> :mine"
            for number in connection.execute(text(others), {"mine": mine}).scalars().all():
                connection.execute(text(f"KILL {number}"))
        else:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            ).all()


@server_kinds
def test_connections_that_went_stale_are_not_noticed(initialized_database: Database) -> None:
    run_write(initialized_database, lambda write: add_database(write, "a"))
    assert run_read(initialized_database, lambda connection: connection.execute(select(schema.DBS.c.NAME)).all())
    cut_all_others(initialized_database)
    run_write(initialized_database, lambda write: add_database(write, "b"))
    cut_all_others(initialized_database)
    found = run_read(initialized_database, lambda connection: connection.execute(select(schema.DBS.c.NAME)).all())
    assert sorted(tuple(row) for row in found) == [("a",), ("b",)]


@server_kinds
def test_connections_that_went_stale_are_not_noticed_by_reads_of_one_moment(
    initialized_database: Database, tmp_path: Path
) -> None:
    """Nested calls must not start a new snapshot; so the call that opened it does, once."""
    warehouse = Warehouse(WarehouseSettings(directory=f"file:{tmp_path}"))
    clock = SystemClock()
    context = StoreContext(initialized_database, MessageBuilder(clock=clock), warehouse, Settings(), clock)
    store = ObjectStore(context)
    run_write(initialized_database, lambda write: add_database(write, "a"))
    requested = 0

    def fetch(reads: MetadataReads) -> list[list[str]]:
        nonlocal requested
        requested += 1
        if requested > 3:  # in the middle each time
            reads.databases.get_database_names("hive", "a")
            cut_from_elsewhere()
        return [reads.databases.get_database_names("hive", pattern) for pattern in ("a", "*")]

    def cut_from_elsewhere() -> None:
        with ThreadPoolExecutor(1) as other:
            other.submit(cut_all_others, initialized_database).result(MAX_WAIT_S)

    assert store.reads.in_one_snapshot(fetch) == [["a"], ["a"]]
    cut_all_others(initialized_database)
    assert store.reads.in_one_snapshot(fetch) == [["a"], ["a"]]
    assert requested == 3
    # A missing database is reported after the second attempt.
    with pytest.raises(DatabaseUnavailable):
        store.reads.in_one_snapshot(fetch)
    assert requested == 5


@server_kinds
def test_a_write_with_one_event_costs_one_statement_more(initialized_database: Database) -> None:
    def work(write: WriteTransaction) -> None:
        write.connection.execute(insert(schema.CDS).values(CD_ID=write.id("MColumnDescriptor")))
        write.append_event(an_event())

    run_write(initialized_database, work, ids={"MColumnDescriptor": 1})
    with count_statements(initialized_database) as sent:
        run_write(initialized_database, work, ids={"MColumnDescriptor": 1})
    work_itself, of_the_event = sent.statements
    assert work_itself.startswith("INSERT")
    assert "NOTIFICATION_SEQUENCE" in of_the_event
    assert "NOTIFICATION_LOG" in of_the_event


def test_a_work_that_needs_more_ids_is_run_again_with_them(initialized_database: Database) -> None:
    runs: list[int] = []

    def work(write: WriteTransaction) -> int:
        runs.append(len(runs))
        add_database(write, "a")
        return len(write.ids("MPartition", 5000))

    assert run_write(initialized_database, work) == 5000
    assert len(runs) == (1 if initialized_database.is_sqlite else 3)
    assert names_of_databases(initialized_database) == ["a"]
    assert event_ids(initialized_database) == [1]
    runs.clear()
    with pytest.raises(IntegrityError):
        run_write(initialized_database, work, ids={"MDatabase": 1, "MPartition": 5000})
    assert len(runs) == 1


def test_need_more_ids_is_no_error_that_work_might_catch_by_accident() -> None:
    assert not issubclass(NeedMoreIds, RetryableConflict | DatabaseUnavailable | LookupError)


def test_a_missing_event_counter_begins_at_one(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        connection.execute(schema.NOTIFICATION_SEQUENCE.delete())
        connection.commit()
    run_write(initialized_database, lambda write: write.append_event(an_event()))
    assert event_ids(initialized_database) == [1]
    assert next_event_id(initialized_database) == 2


@pytest.mark.parametrize("database_kind", [pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_a_counter_whose_row_id_the_database_computes(empty_database: Database) -> None:
    """As created by Hive's 4.0 alphas on MySQL."""
    from hms_cache.store.installation.init import init_schema

    init_schema(empty_database)
    with empty_database.writing() as connection:
        connection.execute(text("DROP TABLE NOTIFICATION_SEQUENCE"))
        connection.execute(
            text(
                "CREATE TABLE NOTIFICATION_SEQUENCE (NNI_ID BIGINT GENERATED ALWAYS AS (1) STORED UNIQUE,"
                " NEXT_EVENT_ID BIGINT NOT NULL)"
            )
        )
        connection.commit()
    assert ("NOTIFICATION_SEQUENCE", "NNI_ID") in empty_database.features.generated_columns
    for _ in range(2):
        run_write(empty_database, lambda write: write.append_event(an_event()))
    assert event_ids(empty_database) == [1, 2]
