"""The position check on MariaDB and MySQL as bare packets, for an event loop: no thread hop, no driver code per check.

PyMySQL opens the connection and authenticates; from then on the connection carries one question for NEXT_EVENT_ID and
answers of five short packets. The question is a prepared statement, which the database neither parses nor plans again;
where none can be had (a limit of the server, a proxy) it is the text. Sockets are the caller's: this class sends and
parses.
"""

from __future__ import annotations

import socket
from typing import Final

import pymysql

from hms_cache.store.engine.errors import DatabaseUnavailable

_QUERY: Final = b"SELECT MAX(NEXT_EVENT_ID) FROM NOTIFICATION_SEQUENCE"


def _packet(command: bytes, body: bytes) -> bytes:
    return (len(body) + 1).to_bytes(3, "little") + b"\x00" + command + body


_TEXT_REQUEST: Final = _packet(b"\x03", _QUERY)
_PREPARE_REQUEST: Final = _packet(b"\x16", _QUERY)
_EXECUTE: Final = b"\x17"
_NO_CURSOR_ONCE: Final = b"\x00\x01\x00\x00\x00"

_PACKETS_OF_AN_ANSWER: Final = 5
"""Column count, column, end of columns, the row, end of rows: the protocol without CLIENT_DEPRECATE_EOF."""

_PACKETS_OF_A_STATEMENT: Final = 3
"""Its id, its one column, end of columns."""

_NULL_ROW: Final = b"\x00\x04"
_NUMBER_ROW: Final = b"\x00\x00"
"""How rows of prepared statements begin: a zero, then a bit for the first column, from the third bit on."""

_READ_BYTES: Final = 4096

PREPARE_TIMEOUT_S: Final = 5.0
"""As long as an answer to the question may take: without a statement the text does."""


class PositionConnection:
    """One connection that can only ask for the position. Used by one thread; a question waits for its answer."""

    def __init__(self, connection: pymysql.connections.Connection) -> None:
        """Takes over an open connection in autocommit mode, so that every question sees the latest commit.

        Waits for the database to prepare the statement. Raises DatabaseUnavailable.
        """
        connection.autocommit(True)
        sock: socket.socket = connection._sock
        self._connection = connection
        self._socket = sock
        self._received = b""
        self._last_answer = b""
        self._last_position = 0
        statement = self._prepare()
        self._request = _TEXT_REQUEST if statement is None else _packet(_EXECUTE, statement + _NO_CURSOR_ONCE)
        sock.setblocking(False)

    @staticmethod
    def can_take(connection: pymysql.connections.Connection) -> bool:
        """Whether the connection is a plain socket: TLS has state that bare packets would bypass."""
        return type(getattr(connection, "_sock", None)) is socket.socket

    @property
    def is_prepared(self) -> bool:
        """Whether the question is a prepared statement."""
        return self._request is not _TEXT_REQUEST

    def fileno(self) -> int:
        """The descriptor to watch for reading."""
        return self._socket.fileno()

    def ask(self) -> None:
        """Sends the question. Raises DatabaseUnavailable when the connection is gone."""
        self._received = b""
        try:
            if self._socket.send(self._request) != len(self._request):
                raise DatabaseUnavailable("the connection of the position check does not take its question")
        except OSError as error:
            raise DatabaseUnavailable(f"the connection of the position check is lost: {error}") from error

    def receive(self) -> int | None:
        """Takes what has come: the last event id, or None while the answer is incomplete.

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
        if received == self._last_answer:  # nothing was written since: no need to read the packets
            return self._last_position
        position = parse_answer(received)
        if position is not None:
            self._last_answer, self._last_position = received, position
        return position

    def close(self) -> None:
        """Gives the connection up."""
        self._connection._force_close()

    def _prepare(self) -> bytes | None:
        """The id of the statement, as it is on the wire; None when the database refuses to prepare one."""
        self._socket.settimeout(PREPARE_TIMEOUT_S)
        received = b""
        try:
            self._socket.sendall(_PREPARE_REQUEST)
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
    """The first packets, without their headers, as many of `count` as are there whole."""
    found: list[bytes] = []
    position = 0
    while len(found) < count and len(data) >= position + 4:
        start = position + 4
        position = start + int.from_bytes(data[position : position + 3], "little")
        if len(data) < position:
            break
        found.append(data[start:position])
    return found


def parse_answer(data: bytes) -> int | None:
    """The last event id (NEXT_EVENT_ID - 1, 0 for an empty table) in an answer, None while it is incomplete.

    Takes rows of both kinds: a number of 8 bytes, and digits. Raises DatabaseUnavailable for an error packet or
    anything that is no such answer.
    """
    packets = _packets(data, _PACKETS_OF_AN_ANSWER)
    for packet in packets:
        if packet[:1] == b"\xff":
            raise DatabaseUnavailable(f"the position check was refused: {packet[3:].decode('utf-8', 'replace')}")
    if len(packets) < _PACKETS_OF_AN_ANSWER:
        return None
    row = packets[3]
    if row in (b"\xfb", _NULL_ROW):  # no row yet
        return 0
    if len(row) == 10 and row.startswith(_NUMBER_ROW):
        return int.from_bytes(row[2:], "little", signed=True) - 1
    digits = row[1:]
    if not digits or row[0] != len(digits) or not digits.isdigit():
        raise DatabaseUnavailable("the answer to the position check cannot be read")
    return int(digits) - 1
