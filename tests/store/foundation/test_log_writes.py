"""Event ids and rows of the log in one statement: the same rows as in two, without gaps, and all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, select

from hms_cache.store import schema
from hms_cache.store.engine import log_writes
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from tests.databases import count_statements
from tests.store.foundation.writes import event_ids, next_event_id

AWKWARD = 'it\'s 100 % \\ "ä" :x %s %(y)s ; END; 雪\n'
MANY = log_writes.MAX_EVENTS


def some_events(count: int, message: str = AWKWARD) -> list[EventRow]:
    return [
        EventRow(f"TYPE_{number}", "hive", f"d{number}", None if number % 2 else "t%", f"{message}{number}", "json-0.2")
        for number in range(count)
    ]


def log(database: Database, events: Sequence[EventRow]) -> None:
    def work(transaction: WriteTransaction) -> None:
        for event in events:
            transaction.append_event(event)

    run_write(database, work)


def logged(database: Database) -> list[tuple[object, ...]]:
    """The rows in the order of their ids, without times and row ids."""
    columns = ("EVENT_TYPE", "CAT_NAME", "DB_NAME", "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT")
    table = schema.NOTIFICATION_LOG
    with database.checking() as connection:
        rows = connection.execute(select(*(table.c[name] for name in columns)).order_by(table.c.EVENT_ID))
        return [tuple(row) for row in rows]


def expected(events: Sequence[EventRow]) -> list[tuple[object, ...]]:
    return [(one.event_type, one.catalog, one.database, one.table, one.message, one.message_format) for one in events]


@pytest.fixture
def database(initialized_database: Database) -> Database:
    """With reserved ids of the log."""
    log(initialized_database, some_events(1))
    return initialized_database


@pytest.mark.parametrize("count", [1, 2, MANY, MANY + 1])
def test_the_rows_are_what_was_appended(database: Database, count: int) -> None:
    log(database, some_events(count))
    log(database, some_events(1))
    assert logged(database) == expected([*some_events(1), *some_events(count), *some_events(1)])
    assert event_ids(database) == list(range(1, count + 3))
    assert next_event_id(database) == count + 3


def test_one_statement(database: Database) -> None:
    with count_statements(database) as seen:
        log(database, some_events(1))
    # On SQLite, the row's id is assigned inside of the transaction.
    assert seen.count == (3 if database.is_sqlite else 1), seen.statements


def test_long_messages_go_the_other_way(database: Database) -> None:
    long = some_events(2, "x" * log_writes.MAX_CHARACTERS)
    with count_statements(database) as seen:
        log(database, long)
    assert seen.count >= 2
    assert logged(database)[1:] == expected(long)


def test_a_sequence_without_its_row_begins(database: Database) -> None:
    """As in databases of Hive 3.1 that never logged an event."""
    with database.writing() as connection:
        connection.execute(delete(schema.NOTIFICATION_LOG))
        connection.execute(delete(schema.NOTIFICATION_SEQUENCE))
        connection.commit()
    log(database, some_events(2))
    log(database, some_events(1))
    assert event_ids(database) == [1, 2, 3]
    assert logged(database) == expected([*some_events(2), *some_events(1)])


def test_a_row_that_is_refused_is_not_overlooked(database: Database) -> None:
    """If both statements are one packet, the first one's answer says nothing about the second."""
    if database.is_sqlite:
        pytest.skip("SQLite's columns have no length")
    with pytest.raises(MetaException):
        log(database, [*some_events(1), EventRow("T" * 500, "hive", "d", "t", "m", "json-0.2")])
    log(database, some_events(1))
    assert event_ids(database) == [1, 2]
    assert next_event_id(database) == 3


def test_a_write_that_fails_after_it_takes_no_id(database: Database) -> None:
    class Refused(Exception):
        pass

    class Announced:
        def statements_under_lock(self, _connection: object) -> tuple[()]:
            return ()

        def before_commit(self, _connection: object, _answers: object = None) -> None:
            raise Refused

        def abandoned(self) -> None:
            pass

    class Guard:
        is_acknowledged = True

        def ready(self) -> None:
            pass

        def announces(self, _events: object) -> bool:
            return True

        def begin(self, _events: object) -> Announced:
            return Announced()

    database.write_guard = Guard()  # type: ignore[assignment]
    with pytest.raises(Refused):
        log(database, some_events(3))
    database.write_guard = None
    log(database, some_events(1))
    assert event_ids(database) == [1, 2]
    assert next_event_id(database) == 3


def test_many_writers(database: Database) -> None:
    counts = [1 + number % 5 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda count: log(database, some_events(count)), counts))
    assert event_ids(database) == list(range(1, sum(counts) + 2))
    found = [row[0] for row in logged(database)]
    starts = [number for number, kind in enumerate(found) if kind == "TYPE_0"]
    groups = [found[start:end] for start, end in zip(starts, [*starts[1:], len(found)], strict=True)]
    assert all(group == [f"TYPE_{number}" for number in range(len(group))] for group in groups), "not mixed"
    assert sorted(map(len, groups)) == sorted([1, *counts])
