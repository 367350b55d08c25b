"""The position check on MariaDB and MySQL as bare packets, for an event loop: no thread hop, no driver code per check.

PyMySQL opens the connection and authenticates; from then on the connection carries one prepared text, `COM_QUERY` for
NEXT_EVENT_ID, and answers of five short packets. Sockets are the caller's: this class sends and parses.
"""

from __future__ import annotations

import socket
from typing import Final

import pymysql

from hms_cache.store.errors import DatabaseUnavailable

_QUERY: Final = b"\x03SELECT MAX(NEXT_EVENT_ID) FROM NOTIFICATION_SEQUENCE"
_REQUEST: Final = len(_QUERY).to_bytes(3, "little") + b"\x00" + _QUERY

_PACKETS_OF_AN_ANSWER: Final = 5
"""Column count, column, end of columns, the row, end of rows: the protocol without CLIENT_DEPRECATE_EOF."""

_READ_BYTES: Final = 4096


class PositionConnection:
    """One connection that can only ask for the position. Used by one thread; a question waits for its answer."""

    def __init__(self, connection: pymysql.connections.Connection) -> None:
        """Takes over an open connection in autocommit mode, so that every question sees the latest commit."""
        connection.autocommit(True)
        sock: socket.socket = connection._sock
        sock.setblocking(False)
        self._connection = connection
        self._socket = sock
        self._received = b""

    @staticmethod
    def can_take(connection: pymysql.connections.Connection) -> bool:
        """Whether the connection is a plain socket: TLS has state that bare packets would bypass."""
        return type(getattr(connection, "_sock", None)) is socket.socket

    def fileno(self) -> int:
        """The descriptor to watch for reading."""
        return self._socket.fileno()

    def ask(self) -> None:
        """Sends the question. Raises DatabaseUnavailable when the connection is gone."""
        self._received = b""
        try:
            if self._socket.send(_REQUEST) != len(_REQUEST):
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
        return parse_answer(received)

    def close(self) -> None:
        """Gives the connection up."""
        self._connection._force_close()


def parse_answer(data: bytes) -> int | None:
    """The last event id (NEXT_EVENT_ID - 1, 0 for an empty table) in an answer, None while it is incomplete.

    Raises DatabaseUnavailable for an error packet or anything that is no such answer.
    """
    position = 0
    row = b""
    for number in range(_PACKETS_OF_AN_ANSWER):
        if len(data) < position + 4:
            return None
        length = int.from_bytes(data[position : position + 3], "little")
        start = position + 4
        position = start + length
        if len(data) < position:
            return None
        if length and data[start] == 0xFF:
            raise DatabaseUnavailable(
                f"the position check was refused: {data[start + 3 : position].decode('utf-8', 'replace')}"
            )
        if number == 3:
            row = data[start:position]
    if row == b"\xfb":  # NULL: no row yet
        return 0
    if not row or row[0] != len(row) - 1:
        raise DatabaseUnavailable("the answer to the position check cannot be read")
    return int(row[1:]) - 1
