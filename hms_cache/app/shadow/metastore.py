"""Sends reads to a metastore as argument structs, and returns its answers in plain values."""

from __future__ import annotations

from typing import Any, Final

from thrift.transport.TTransport import TTransportException

from hms_cache.app.shadow.comparing import Answer, Rules
from hms_cache.app.shadow.reply_reader import ReplyReader
from hms_cache.authentication.servers import Address
from hms_cache.client import Authentication
from hms_cache.client.authentication.values import UNAUTHENTICATED
from hms_cache.client.connection import opened
from hms_cache.client.errors import (
    CONNECTION_FAILURES,
    AuthenticationRefusedError,
    CredentialsError,
    MetastoreUnavailableError,
)
from hms_cache.errors import ConfigurationError, HmsCacheError
from hms_cache.values import frozen
from hms_cache.wire import CALL, METHODS, WireError
from hms_cache.wire.encodings import BINARY, write_header

_READ_BYTES: Final = 256 * 1024


_FAILURES: Final = (*CONNECTION_FAILURES, MetastoreUnavailableError, WireError)
#: Failures that another try does not repair. A wrong password is not sent for each read, because directories count
#: failed attempts.
_REFUSALS: Final = (AuthenticationRefusedError, CredentialsError, ConfigurationError)


@frozen
class Endpoint:
    """A metastore's address, and how to authenticate to it."""

    address: Address
    authentication: Authentication = UNAUTHENTICATED

    def __str__(self) -> str:
        return str(self.address)


def require_access(*endpoints: Endpoint | None) -> None:
    """Checks before any read that the metastores accept the credentials. Raises the error of one that refuses them, or
    of credentials that are missing. One that does not answer now is not an error."""
    for endpoint in filter(None, endpoints):
        try:
            opened(endpoint.address, endpoint.authentication).close()
        except _FAILURES:
            continue
        except AuthenticationRefusedError as error:
            if not error.retriable:
                raise AuthenticationRefusedError(f"{endpoint}: {error}") from error


class NoAnswer(HmsCacheError):
    """The metastore cannot be reached, refuses the credentials, closed the connection, or sent an invalid reply."""

    retriable = True


class Metastore:
    """One connection, opened at the first call, and again after a failure. Not thread-safe."""

    def __init__(self, endpoint: Endpoint, rules: Rules) -> None:
        self.endpoint = endpoint
        self._rules = rules
        self._transport: Any = None
        self._refusal = ""
        self._sequence = 0

    def call(self, method: str, arguments: Any) -> Answer:
        """Returns the answer to one read. If an open connection has broken since the last call, it is opened again
        once. Raises NoAnswer."""
        if self._refusal:
            raise NoAnswer(self._refusal)
        try:
            return self._call_again(method, arguments)
        except _REFUSALS as error:
            self.close()
            if not getattr(error, "retriable", False):
                self._refusal = f"{self.endpoint}: {error}"
            raise NoAnswer(f"{self.endpoint}: {error}") from error

    def _call_again(self, method: str, arguments: Any) -> Answer:
        fresh = self._transport is None
        try:
            return self._call_once(method, arguments)
        except _FAILURES as error:
            self.close()
            if fresh or _is_late(error):
                raise NoAnswer(f"{self.endpoint}: {error}") from error
        try:
            return self._call_once(method, arguments)
        except _FAILURES as error:
            self.close()
            raise NoAnswer(f"{self.endpoint}: {error}") from error

    def close(self) -> None:
        """Closes the connection; the next call opens another one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _call_once(self, method: str, arguments: Any) -> Answer:
        spec = METHODS[method]
        connection = self._connected()
        self._sequence = self._sequence % 0x7FFFFFFF + 1
        header = write_header(BINARY, CALL, spec.wire_name, self._sequence)
        connection.write(header + BINARY.encode(arguments, spec.args_table))
        connection.flush()
        reader = ReplyReader(BINARY, lambda: spec, self._rules)
        while True:
            data = connection.read(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the connection was closed before the answer")
            reader.feed(data)
            answer = reader.next_reply()
            if answer is not None:
                return answer

    def _connected(self) -> Any:
        if self._transport is not None and self.endpoint.address.by_http and not self._transport.isOpen():
            self.close()
        if self._transport is None:
            self._transport = opened(self.endpoint.address, self.endpoint.authentication)
        return self._transport


def _is_late(error: Exception) -> bool:
    is_timeout = isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT
    return is_timeout or isinstance(error, TimeoutError)
