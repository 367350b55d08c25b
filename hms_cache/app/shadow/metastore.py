"""A metastore that is asked with a struct of arguments and answers in plain values."""

from __future__ import annotations

import socket
from typing import Any, Final

from hms_cache.app.shadow.comparing import Answer, Rules
from hms_cache.app.shadow.reply_reader import ReplyReader
from hms_cache.authentication.servers import Address, protected
from hms_cache.errors import HmsCacheError
from hms_cache.wire import CALL, METHODS, WireError
from hms_cache.wire.encodings import BINARY, write_header

_CONNECT_TIMEOUT_S: Final = 10.0
#: As Hive's clients wait (metastore.client.socket.timeout).
_ANSWER_TIMEOUT_S: Final = 600.0
_READ_BYTES: Final = 256 * 1024


class NoAnswer(HmsCacheError):
    """The metastore cannot be reached, broke off, or said something that is no reply."""

    retriable = True


class Metastore:
    """One connection, opened at the first call and after a failure again. For one thread."""

    def __init__(self, address: Address, rules: Rules) -> None:
        self.address = address
        self._rules = rules
        self._socket: socket.socket | None = None
        self._sequence = 0

    def ask(self, method: str, arguments: Any) -> Answer:
        """The answer to one read. A connection that broke meanwhile is opened once more. Raises NoAnswer."""
        fresh = self._socket is None
        try:
            return self._ask(method, arguments)
        except (OSError, WireError) as error:
            self.close()
            if fresh or isinstance(error, TimeoutError):
                raise NoAnswer(f"{self.address}: {error}") from error
        try:
            return self._ask(method, arguments)
        except (OSError, WireError) as error:
            self.close()
            raise NoAnswer(f"{self.address}: {error}") from error

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, method: str, arguments: Any) -> Answer:
        spec = METHODS[method]
        connection = self._connected()
        self._sequence = self._sequence % 0x7FFFFFFF + 1
        header = write_header(BINARY, CALL, spec.wire_name, self._sequence)
        connection.sendall(header + BINARY.encode(arguments, spec.args_table))
        reader = ReplyReader(BINARY, lambda: spec, self._rules)
        while True:
            data = connection.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the connection was closed before the answer")
            reader.feed(data)
            answer = reader.next_reply()
            if answer is not None:
                return answer

    def _connected(self) -> socket.socket:
        if self._socket is None:
            address = (self.address.host, self.address.port)
            plain = socket.create_connection(address, timeout=_CONNECT_TIMEOUT_S)
            self._socket = protected(plain, self.address.host) if self.address.tls else plain
            self._socket.settimeout(_ANSWER_TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket
