"""Statements sent as bare packets have the same effect as through SQLAlchemy, and fail in the same way."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from hms_cache.store import schema
from hms_cache.store.engine import direct_statements
from hms_cache.store.engine.bulk_writes import insert_rows, upsert_rows
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import (
    Direct,
    DirectQuery,
    execute_directly,
    row_count,
    supports_direct_statements,
)
from hms_cache.store.engine.drivers.mysql_driver import MySqlConnection
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from tests.store.foundation.writes import event_ids, next_event_id

pytestmark = [pytest.mark.mariadb, pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)]

P = schema.METASTORE_DB_PROPERTIES.c
ADD = Direct(insert(schema.METASTORE_DB_PROPERTIES), ["PROPERTY_KEY", "PROPERTY_VALUE"])
CHANGE = Direct(
    update(schema.METASTORE_DB_PROPERTIES).where(P.PROPERTY_KEY == bindparam("key")).values(DESCRIPTION="100")
)
REMOVE = Direct(delete(schema.METASTORE_DB_PROPERTIES).where(P.PROPERTY_KEY.in_(bindparam("keys", expanding=True))))

READ = DirectQuery(
    select(P.PROPERTY_KEY, P.PROPERTY_VALUE, func.length(P.PROPERTY_VALUE).label("bytes"))
    .where(P.PROPERTY_KEY.in_(bindparam("keys", expanding=True)))
    .order_by(P.PROPERTY_KEY)
)

AWKWARD = ["it's", '"', "\\", "%", "%s %(key)s %%", ":x", "; COMMIT; ", "ä 雪", "\0\n\r\x1a", "", "x" * 900]


def row(key: str, value: str | None = "v") -> dict[str, Any]:
    return {"PROPERTY_KEY": key, "PROPERTY_VALUE": value}


def stored(database: Database) -> dict[str, str]:
    with database.checking() as connection:
        return dict(connection.execute(select(P.PROPERTY_KEY, P.PROPERTY_VALUE)).tuples().all())


def socket_of(transaction: WriteTransaction) -> socket.socket:
    driver: Any = transaction.connection.connection.dbapi_connection
    sock: socket.socket = driver._sock
    return sock


def test_values_come_as_they_are(initialized_database: Database) -> None:
    def work(transaction: WriteTransaction) -> list[Any]:
        assert supports_direct_statements(transaction.connection)
        return transaction.execute_directly([(ADD, row(f"k{at}", value)) for at, value in enumerate(AWKWARD)])

    answers = run_write(initialized_database, work)
    assert [one.rows for one in answers] == [1] * len(AWKWARD)
    found = stored(initialized_database)
    assert [found[f"k{at}"] for at in range(len(AWKWARD))] == [one.encode().decode("utf-8") for one in AWKWARD]
    gone = {"keys": ["k0", "k1", "no ' such"]}
    [removed] = run_write(initialized_database, lambda transaction: transaction.execute_directly([(REMOVE, gone)]))
    assert removed.rows == 2


def test_a_query_is_answered_between_other_statements(initialized_database: Database) -> None:
    """With the rows that SQLAlchemy would return, as the statements before it have left them; also with none."""
    keys = [f"k{at:02}" for at in range(len(AWKWARD))]
    given = dict(zip(keys, AWKWARD, strict=True))

    def work(transaction: WriteTransaction) -> list[Any]:
        before = (READ, {"keys": keys})
        add = [(ADD, row(key, value)) for key, value in given.items()]
        after = (READ, {"keys": keys})
        answers = transaction.execute_directly([before, *add, after, (REMOVE, {"keys": keys[:2]}), (READ, before[1])])
        usual = transaction.connection.execute(
            select(P.PROPERTY_KEY, P.PROPERTY_VALUE).order_by(P.PROPERTY_KEY).where(P.PROPERTY_KEY.in_(keys))
        ).all()
        assert [(one.PROPERTY_KEY, one.PROPERTY_VALUE) for one in answers[-1]] == [tuple(one) for one in usual]
        return answers

    nothing, *added, all_of_them, removed, rest = run_write(initialized_database, work)
    assert nothing == [] and [one.rows for one in added] == [1] * len(keys) and removed.rows == 2
    assert {one.PROPERTY_KEY: one.PROPERTY_VALUE for one in all_of_them} == given
    assert [one.bytes for one in all_of_them] == [len(value.encode()) for value in AWKWARD]
    assert [one.PROPERTY_KEY for one in rest] == keys[2:]


def test_a_failure_before_or_after_a_query_leaves_the_connection_in_order(initialized_database: Database) -> None:
    read = (READ, {"keys": ["a"]})
    with initialized_database.writing() as connection:
        for statements in (
            [read, (ADD, row("a")), (ADD, row("a")), read],
            [(ADD, row("a")), read, (CHANGE, {"key": 1})],
        ):
            with pytest.raises(IntegrityError):
                execute_directly(connection, statements, commits=True)
            # What follows is this statement's answer and no other's.
            [found] = execute_directly(connection, [read])
            assert [one.PROPERTY_KEY for one in found] == ["a"]
    assert stored(initialized_database) == {}, "nothing was committed"


def test_a_query_that_answers_no_rows_costs_its_connection(initialized_database: Database) -> None:
    """The answers in a packet are matched by the statements: if they do not fit, none of them is used."""
    no_query = DirectQuery(CHANGE._statement)
    with pytest.raises(OperationalError, match="has answered none"), initialized_database.writing() as connection:
        execute_directly(connection, [(no_query, {"key": "a"}), (ADD, row("a"))])
    assert stored(initialized_database) == {}


def test_rows_by_the_thousand_come_as_they_are(initialized_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several packets, none of which is longer than the limit; and again over existing rows."""
    monkeypatch.setattr(direct_statements, "CHARACTERS_OF_A_PACKET", 2_000)
    texts: list[str] = []
    sending = MySqlConnection.send_together

    def send(driver: MySqlConnection, statements: Sequence[str], **options: Any) -> Any:
        texts.extend(statements)
        return sending(driver, statements, **options)

    monkeypatch.setattr(MySqlConnection, "send_together", send)
    rows = [row(f"k{at:04}", AWKWARD[at % len(AWKWARD)]) | {"DESCRIPTION": "same"} for at in range(1_000)]
    with initialized_database.writing() as connection:
        insert_rows(connection, schema.METASTORE_DB_PROPERTIES, rows)
        connection.commit()
    assert stored(initialized_database) == {one["PROPERTY_KEY"]: one["PROPERTY_VALUE"] for one in rows}
    assert len(texts) > 50 and max(map(len, texts)) < 4_000
    other = [one | {"PROPERTY_VALUE": AWKWARD[-1 - at % len(AWKWARD)]} for at, one in enumerate(rows)]
    with initialized_database.writing() as connection:
        upsert_rows(connection, schema.METASTORE_DB_PROPERTIES, other)
        connection.commit()
    assert stored(initialized_database) == {one["PROPERTY_KEY"]: one["PROPERTY_VALUE"] for one in other}
    with initialized_database.writing() as connection, pytest.raises(IntegrityError):
        insert_rows(connection, schema.METASTORE_DB_PROPERTIES, rows[:1])


@pytest.mark.usefixtures("database_kind")
def test_a_row_with_what_never_changes() -> None:
    fixed = "INSERT INTO t (a, b) VALUES (LAST_INSERT_ID() + 1, '),(') ON DUPLICATE KEY UPDATE b = VALUES(b)"
    assert direct_statements._parts_of_insert(fixed) == (
        *("INSERT INTO t (a, b) VALUES ", "(LAST_INSERT_ID() + 1, '),(')", " ON DUPLICATE KEY UPDATE b = VALUES(b)"),
    )
    for text in ("INSERT INTO t VALUES (1", "UPDATE t SET a = 1", "INSERT INTO t VALUES (1) WHERE a = %(a)s"):
        with pytest.raises(TypeError):
            direct_statements._parts_of_insert(text)


def test_a_later_statement_hears_of_an_earlier_one(initialized_database: Database) -> None:
    taking = Direct(
        update(schema.NOTIFICATION_SEQUENCE).values(
            NEXT_EVENT_ID=func.last_insert_id(schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID) + 70_000
        )
    )
    noting = Direct(
        insert(schema.METASTORE_DB_PROPERTIES).from_select(
            ["PROPERTY_KEY", "PROPERTY_VALUE"], select(bindparam("key"), func.last_insert_id()).where(row_count() == 1)
        )
    )

    def take(key: str) -> list[Any]:
        statements = [(taking, {}), (noting, {"key": key})]
        return run_write(initialized_database, lambda transaction: transaction.execute_directly(statements))

    first, second = take("a"), take("b")
    assert [first[0].last_id, second[0].last_id] == [1, 70_001], "a number of more than two bytes"
    assert stored(initialized_database) == {"a": "1", "b": "70001"}
    # Without a row, no id was assigned, and the number is an older one.
    [changed, noted] = run_write(
        initialized_database,
        lambda transaction: transaction.execute_directly([(CHANGE, {"key": "?"}), (noting, {"key": "c"})]),
    )
    assert (changed.rows, noted.rows) == (0, 0)


def test_what_follows_a_statement_that_fails_is_not_carried_out(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        with pytest.raises(IntegrityError):
            execute_directly(connection, [(ADD, row("a")), (ADD, row("a")), (ADD, row("b"))], commits=True)
        assert connection.execute(select(P.PROPERTY_KEY)).scalars().all() == ["a"]
    assert stored(initialized_database) == {}, "nor committed"


def test_commit_goes_with_the_statements(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        execute_directly(connection, [(ADD, row("a"))], commits=True)
        assert stored(initialized_database) == {"a": "v"}
        connection.commit()
    with initialized_database.writing() as connection:
        execute_directly(connection, [(ADD, row("b"))])
    assert stored(initialized_database) == {"a": "v"}, "rolled back"
    with initialized_database.writing() as connection:
        execute_directly(connection, [(ADD, row("c"))], commits=True)
        execute_directly(connection, [(ADD, row("d"))])
        connection.commit()
    assert stored(initialized_database).keys() == {"a", "c", "d"}


def test_a_statement_that_answers_rows_is_refused(initialized_database: Database) -> None:
    asking = Direct(select(P.PROPERTY_KEY))
    with pytest.raises((DatabaseUnavailable, OperationalError)), initialized_database.writing() as connection:
        execute_directly(connection, [(asking, {})])
    assert run_write(initialized_database, lambda transaction: transaction.execute_directly([(ADD, row("a"))]))
    assert stored(initialized_database) == {"a": "v"}, "the next one has another connection"


def test_a_value_in_the_text_must_be_a_plain_one(initialized_database: Database) -> None:
    statement = Direct(delete(schema.METASTORE_DB_PROPERTIES).where(P.PROPERTY_KEY == "it's"))
    with initialized_database.writing() as connection, pytest.raises(TypeError):
        execute_directly(connection, [(statement, {})])


def log_early(transaction: WriteTransaction, taken: int, events: list[EventRow]) -> None:
    transaction.execute_and_allocate_event_ids([(ADD, row(f"k{next_key()}"))], taken)
    for event in events:
        transaction.append_event(event)


_keys = iter(range(1_000_000))


def next_key() -> int:
    return next(_keys)


def an_event(kind: str = "T") -> EventRow:
    return EventRow(kind, "hive", "d", "t", "m", "json-0.2")


@pytest.mark.parametrize("taken", [1, 2, 3])
@pytest.mark.parametrize("logged", [0, 1, 2, 3])
def test_ids_that_are_taken_early_leave_no_gap(initialized_database: Database, taken: int, logged: int) -> None:
    for _ in range(2):
        run_write(
            initialized_database, lambda transaction: log_early(transaction, taken, [an_event() for _ in range(logged)])
        )
    assert event_ids(initialized_database) == list(range(1, 2 * logged + 1))
    assert next_event_id(initialized_database) == 2 * logged + 1
    assert len(stored(initialized_database)) == 2


def test_rows_of_the_log_that_are_refused_are_no_unknown_outcome(initialized_database: Database) -> None:
    with pytest.raises(MetaException):
        run_write(initialized_database, lambda transaction: log_early(transaction, 1, [an_event("T" * 500)]))
    assert (event_ids(initialized_database), stored(initialized_database)) == ([], {})
    run_write(initialized_database, lambda transaction: log_early(transaction, 1, [an_event()]))
    assert event_ids(initialized_database) == [1]


def test_a_connection_that_breaks_before_is_replaced_and_with_the_log_it_is_unknown(
    initialized_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def break_first(transaction: WriteTransaction) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            socket_of(transaction).shutdown(socket.SHUT_RDWR)
        log_early(transaction, 1, [an_event()])

    run_write(initialized_database, break_first)
    assert len(attempts) == 2

    def break_last(transaction: WriteTransaction) -> None:
        log_early(transaction, 1, [an_event()])
        socket_of(transaction).shutdown(socket.SHUT_RDWR)

    with pytest.raises(CommitOutcomeUnknown):
        run_write(initialized_database, break_last)
    run_write(initialized_database, lambda transaction: log_early(transaction, 1, [an_event()]))
    assert event_ids(initialized_database) == [1, 2]
