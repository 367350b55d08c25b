"""The position check on MariaDB and MySQL as bare packets, for an event loop: no thread switch and no driver code per
check.

PyMySQL opens and authenticates the connection. From then on it carries only one query, for NEXT_EVENT_ID and its
history, and replies of six short packets. The query is a prepared statement, which the database does not parse or
plan again; if it cannot be prepared (a limit of the server, a proxy), it is sent as text. The caller owns the socket;
this class sends and parses. A reply that is equal to the last one byte for byte is not parsed: server, session and
position have not changed.
"""

from __future__ import annotations

import socket
from typing import Any, Final

import pymysql

from hms_cache.notifications.event_log import UNKNOWN_HISTORY, History, LogHead
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.log_sessions import history_of


def _packet(command: bytes, body: bytes) -> bytes:
    return (len(body) + 1).to_bytes(3, "little") + b"\x00" + command + body


_TEXT: Final = b"\x03"
_PREPARE: Final = b"\x16"
_EXECUTE: Final = b"\x17"
_NO_CURSOR_ONCE: Final = b"\x00\x01\x00\x00\x00"

_PACKETS_OF_AN_ANSWER: Final = 6
"""Column count, two columns, end of columns, the row, end of rows: the protocol without CLIENT_DEPRECATE_EOF."""

_PACKETS_OF_A_STATEMENT: Final = 4
"""Statement id, two columns, end of columns."""

_NULL_ROW: Final = b"\x00\x04"
_NUMBER_ROW: Final = b"\x00\x00"
"""First bytes of a row of a prepared statement: a zero, then a bit per null column, beginning with the third bit."""

_NULL: Final = 0xFB
_TWO_LENGTH_BYTES: Final = 0xFC

_READ_BYTES: Final = 4096

PREPARE_TIMEOUT_S: Final = 5.0
"""The same limit as for a reply to the query. After it, the text is used."""


class PositionConnection:
    """A connection that only reads the position. Used by one thread; a query waits for its reply."""

    def __init__(self, connection: pymysql.connections.Connection, query: str) -> None:
        """Takes over an open connection and switches it to autocommit, so that every query sees the latest commit.

        `query`: a statement that returns NEXT_EVENT_ID and a text that identifies the history (`log_sessions`).
        Waits for the database to prepare it, and for the first reply (`first`). Raises DatabaseUnavailable.
        """
        connection.autocommit(True)
        sock: socket.socket = connection._sock
        self._connection = connection
        self._socket = sock
        self._received = b""
        self._last_answer = b""
        self._session: dict[Any, Any] = {}
        statement = self._prepare(_packet(_PREPARE, query.encode()))
        self.is_prepared = statement is not None
        """Whether the query is a prepared statement."""
        self._request = (
            _packet(_TEXT, query.encode()) if statement is None else _packet(_EXECUTE, statement + _NO_CURSOR_ONCE)
        )
        self._last = LogHead(0, UNKNOWN_HISTORY)
        self.first = self._query()
        """The result of the first query."""
        sock.setblocking(False)

    @staticmethod
    def supports(connection: pymysql.connections.Connection) -> bool:
        """Whether the connection is a plain socket: bare packets would bypass TLS."""
        return type(getattr(connection, "_sock", None)) is socket.socket

    def fileno(self) -> int:
        """The descriptor to watch for reading."""
        return self._socket.fileno()

    def send_query(self) -> None:
        """Sends the query. Raises DatabaseUnavailable if the connection is lost."""
        self._received = b""
        try:
            if self._socket.send(self._request) != len(self._request):
                raise DatabaseUnavailable("the connection of the position check does not take its question")
        except OSError as error:
            raise DatabaseUnavailable(f"the connection of the position check is lost: {error}") from error

    def receive(self) -> LogHead | None:
        """Reads what has arrived. Returns the end of the log, or None while the reply is incomplete.

        Raises DatabaseUnavailable.
        """
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise DatabaseUnavailable(f"the connection of the position check is lost: {error}") from error
        if not data:
            raise DatabaseUnavailable("the database closed the connection of the position check")
        self._received = received = self._received + data if self._received else data
        if received == self._last_answer:  # nothing has been written since: no need to parse
            return self._last
        answer = parse_answer(received)
        if answer is None:
            return None
        position, text = answer
        self._last_answer, self._last = received, LogHead(position, history_of(self._session, "mysql", text))
        return self._last

    @property
    def history(self) -> History:
        """The history in the last reply."""
        return self._last.history

    def close(self) -> None:
        """Closes the connection."""
        self._connection._force_close()

    def _query(self) -> LogHead:
        try:
            self._socket.sendall(self._request)
        except OSError as error:
            raise DatabaseUnavailable(f"the connection of the position check is lost: {error}") from error
        while (head := self.receive()) is None:
            pass
        return head

    def _prepare(self, request: bytes) -> bytes | None:
        """The statement's id in wire format; None if the database refuses to prepare it."""
        self._socket.settimeout(PREPARE_TIMEOUT_S)
        received = b""
        try:
            self._socket.sendall(request)
            while True:
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise DatabaseUnavailable("the database closed the connection of the position check")
                received += data
                packets = _packets(received, _PACKETS_OF_A_STATEMENT)
                if packets and packets[0][:1] == b"\xff":
                    return None
                if len(packets) == _PACKETS_OF_A_STATEMENT:
                    return packets[0][1:5]
        except OSError as error:
            raise DatabaseUnavailable(f"the connection of the position check is lost: {error}") from error


def _packets(data: bytes, count: int) -> list[bytes]:
    """The bodies of the first packets, at most `count`, as far as they are complete."""
    found: list[bytes] = []
    position = 0
    while len(found) < count and len(data) >= position + 4:
        start = position + 4
        position = start + int.from_bytes(data[position : position + 3], "little")
        if len(data) < position:
            break
        found.append(data[start:position])
    return found


def parse_answer(data: bytes) -> tuple[int, str] | None:
    """The last event id in a reply (NEXT_EVENT_ID - 1, or 0 for an empty table), and the text next to it; None while
    the reply is incomplete.

    Accepts rows of both protocols: a number of 8 bytes, or digits. Raises DatabaseUnavailable for an error packet or an
    unexpected reply.
    """
    packets = _packets(data, _PACKETS_OF_AN_ANSWER)
    for packet in packets:
        if packet[:1] == b"\xff":
            raise DatabaseUnavailable(f"the position check was refused: {packet[3:].decode('utf-8', 'replace')}")
    if len(packets) < _PACKETS_OF_AN_ANSWER:
        return None
    row = packets[4]
    if row.startswith(_NUMBER_ROW) and len(row) > 10:
        return int.from_bytes(row[2:10], "little", signed=True) - 1, _text(row, 10)
    if row.startswith(_NULL_ROW):  # no row yet
        return 0, _text(row, 2)
    if row[:1] == bytes((_NULL,)):
        return 0, _text(row, 1)
    digits = row[1 : 1 + row[0]] if row else b""
    if not digits.isdigit():
        raise _unreadable()
    return int(digits) - 1, _text(row, 1 + len(digits))


def _unreadable() -> DatabaseUnavailable:
    return DatabaseUnavailable("the answer to the position check cannot be read")


def _text(row: bytes, start: int) -> str:
    """Decodes a text with a length prefix at the end of a row."""
    if len(row) <= start:
        raise _unreadable()
    length, begin = row[start], start + 1
    if length == _TWO_LENGTH_BYTES:
        length, begin = int.from_bytes(row[start + 1 : start + 3], "little"), start + 3
    elif length >= _NULL:
        raise _unreadable()
    if len(row) != begin + length:
        raise _unreadable()
    return row[begin:].decode("utf-8", "replace")
