"""The position check as bare packets, on a real MariaDB; split answers and refusals from bytes."""

from __future__ import annotations

import select
from typing import Any

import pytest
from sqlalchemy import text

from hms_cache.notifications.event_log import LogHead
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.position_wire import PositionConnection, parse_answer

ON_MARIADB = pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)

ASK = "SELECT MAX(NEXT_EVENT_ID) FROM NOTIFICATION_SEQUENCE"
QUESTION = "SELECT MAX(NEXT_EVENT_ID), 'server|read_only:0|7|d' FROM NOTIFICATION_SEQUENCE"


def driver(database: Database) -> Any:
    """An open connection of the driver, taken out of its pool."""
    pooled = database.check_engine.raw_connection()
    connection = pooled.driver_connection
    pooled.detach()
    return connection


def answer(connection: PositionConnection) -> int:
    return fetch(connection).last_event_id


def fetch(connection: PositionConnection) -> LogHead:
    connection.send_query()
    while select.select([connection.fileno()], [], [], 30)[0]:
        head = connection.receive()
        if head is not None:
            return head
    raise TimeoutError


def set_position(database: Database, statement: str) -> None:
    with database.check_engine.begin() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "text"])
@ON_MARIADB
def test_every_question_sees_the_latest_commit(prepared: bool, initialized_database: Database) -> None:
    opened = driver(initialized_database)
    if not prepared:  # as on a server that has too many statements, or a proxy that has none
        set_position(initialized_database, "SET GLOBAL max_prepared_stmt_count = 0")
    try:
        connection = PositionConnection(opened, QUESTION)
    finally:
        if not prepared:
            set_position(initialized_database, "SET GLOBAL max_prepared_stmt_count = DEFAULT")
    assert connection.is_prepared == prepared
    try:
        for next_id in (1, 2, 300, 2**31, 2**62):
            set_position(initialized_database, f"UPDATE NOTIFICATION_SEQUENCE SET NEXT_EVENT_ID = {next_id}")
            assert answer(connection) == next_id - 1
        set_position(initialized_database, "DELETE FROM NOTIFICATION_SEQUENCE")
        assert answer(connection) == 0
        set_position(initialized_database, "INSERT INTO NOTIFICATION_SEQUENCE (NNI_ID, NEXT_EVENT_ID) VALUES (1, 8)")
        set_position(initialized_database, "ALTER TABLE NOTIFICATION_SEQUENCE COMMENT 'changed'")
        assert answer(connection) == 7, "a statement outlives a change of its table"
    finally:
        connection.close()


@ON_MARIADB
def test_a_refused_question_says_why(initialized_database: Database) -> None:
    connection = PositionConnection(driver(initialized_database), QUESTION)
    try:
        set_position(initialized_database, "RENAME TABLE NOTIFICATION_SEQUENCE TO ELSEWHERE")
        try:
            with pytest.raises(DatabaseUnavailable, match="NOTIFICATION_SEQUENCE"):
                answer(connection)
        finally:
            set_position(initialized_database, "RENAME TABLE ELSEWHERE TO NOTIFICATION_SEQUENCE")
        assert answer(connection) >= 0
    finally:
        connection.close()


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "text"])
@ON_MARIADB
def test_an_answer_may_come_in_pieces(prepared: bool, initialized_database: Database) -> None:
    opened = driver(initialized_database)
    try:
        data = raw_answer(opened, prepared=prepared)
        with initialized_database.check_engine.connect() as connection:
            expected = connection.execute(text(ASK)).scalar_one() - 1
        for length in range(len(data)):
            assert parse_answer(data[:length]) is None
        assert parse_answer(data) == (expected, "server|read_only:0|7|d")
    finally:
        opened.close()


def raw_answer(opened: Any, *, prepared: bool) -> bytes:
    """The bytes of one answer, as they arrive."""
    opened.autocommit(True)
    connection = PositionConnection(opened, QUESTION)
    if not prepared:
        connection._request = (len(QUESTION) + 1).to_bytes(3, "little") + b"\0\x03" + QUESTION.encode()
    connection.send_query()
    data = b""
    while parse_answer(data) is None:
        assert select.select([connection.fileno()], [], [], 30)[0]
        data += opened._sock.recv(4096)
    return data


@pytest.mark.parametrize(
    "row",
    [b"\x05abcde", b"\x00\x00\x01", b"\x03\x31", b"", b"\x00\x00" + bytes(8) + b"\x05abc", b"\x0217\xfb"],
    ids=["words", "short", "cut", "none", "text cut", "no text"],
)
def test_what_is_no_answer_is_no_position(row: bytes) -> None:
    packets = [b"\x02", b"column", b"column", b"\xfe\0\0\2\0", row, b"\xfe\0\0\2\0"]
    data = b"".join(len(one).to_bytes(3, "little") + b"\0" + one for one in packets)
    with pytest.raises(DatabaseUnavailable, match="cannot be read"):
        parse_answer(data)
