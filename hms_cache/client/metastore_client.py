"""A client that can use several metastores."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from thrift.Thrift import TApplicationException

from hms_cache.authentication.servers import Address
from hms_cache.call_context import FILL_CACHE
from hms_cache.client.authentication.values import UNAUTHENTICATED, Authentication
from hms_cache.client.connection import CALL_TIMEOUT_S, CONNECT_TIMEOUT_S, Connection, is_answer
from hms_cache.client.errors import (
    CONNECTION_FAILURES,
    AuthenticationRefusedError,
    MetastoreUnavailableError,
    OutcomeUnknownError,
)
from hms_cache.client.metastores import Metastores
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.wire.methods import METHODS

_READ_PREFIXES = ("get_", "getMetaConf", "list_", "show_", "fetch_partition_names", "partition_name_", "aliveSince")
_NO_READS = frozenset(
    {"get_lock_materialization_rebuild", "get_lock_materialization_rebuild_req", "get_delegation_token"}
)
"""Methods that change something although their names begin like those of reads."""


def is_read(method: str) -> bool:
    """Whether the method changes nothing, so that it can be repeated safely."""
    return method.startswith(_READ_PREFIXES) and method not in _NO_READS


class MetastoreClient:
    """Calls methods of the first metastore that can be reached, by their Thrift names.

    If the connection breaks during a read, the client repeats the read at the next metastore, at most once more at each
    of them. A write is sent once: if its connection breaks, its outcome is unknown (`OutcomeUnknownError`).

    Each connection is authenticated separately. If a metastore refuses a ticket or a delegation token, the client tries
    the next one, because the cause may be that metastore's clock, its key or its tokens. A wrong password is not tried
    elsewhere.

    For one thread at a time.
    """

    def __init__(
        self,
        uris: str | Sequence[str] | Metastores,
        authentication: Authentication | None = None,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        tls_context: ssl.SSLContext | None = None,
        fills_cache: bool = True,
    ) -> None:
        """Stores the configuration; the client connects at the first call. Raises ConfigurationError.

        :param uris: `thrift://host:port`, several in a list or separated by commas, in the order in which they are
          tried. With `thrift+tls://host:port` the client uses TLS, with `tls_context` or with the system's
          authorities (or `SSL_CERT_FILE`), and checks the host name. With `http://host:port/metastore` and
          `https://…`, calls are sent over HTTP. A `Metastores` contains the URIs and the authentication.
        :param authentication: see `authentication_of`; None: that of `Metastores`, or none.
        :param connect_timeout_s: limits connecting and, separately, the negotiation, including the wait for a KDC.
        :param call_timeout_s: limits the wait for an answer (Hive's `metastore.client.socket.timeout`, 600 s).
        :param fills_cache: False for a client that reads a lot once: asks the server not to load these reads into its
          memory. Servers that do not know this request ignore it.
        """
        if not isinstance(uris, Metastores):
            uris = Metastores(uris if isinstance(uris, str) else ",".join(uris), authentication or UNAUTHENTICATED)
        elif authentication is not None:
            uris = Metastores(uris.uris, authentication)
        self.addresses: tuple[Address, ...] = uris.addresses
        self._authentication = uris.authentication
        for address in self.addresses:
            self._authentication.check(address)
        self._connect_timeout_s = connect_timeout_s
        self._call_timeout_s = call_timeout_s
        self._tls_context = tls_context
        self._fills_cache = fills_cache
        self._next = 0
        self._connection: Connection | None = None

    @property
    def connected_to(self) -> Address | None:
        """The metastore to which the client is connected; None if it is not."""
        return None if self._connection is None else self._connection.address

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method, as in `call("get_table_req", GetTableRequest(…))`, and returns its value.

        Raises the exceptions that the method declares; TApplicationException (thrift) for a method that the metastore
        does not know; MetastoreUnavailableError; OutcomeUnknownError (writes); AuthenticationRefusedError and
        CredentialsError, after which nothing has happened; AttributeError for a method that does not exist.
        """
        if method not in METHODS:
            raise AttributeError(f"the metastore's protocol has no method {method!r}")
        attempts = len(self.addresses) + 1 if is_read(method) else 1
        for attempt in range(1, attempts + 1):
            connection = self._connected()
            try:
                return connection.call(method, arguments)
            except CONNECTION_FAILURES as error:
                self._disconnect(connection)
                if not is_read(method):
                    raise OutcomeUnknownError(
                        f"the connection to {connection.address} broke during {method}; whether it happened is unknown"
                    ) from error
                if attempt == attempts:
                    raise MetastoreUnavailableError(
                        f"no metastore answered {method}; last: {connection.address}"
                    ) from error
            except AuthenticationRefusedError as error:  # over HTTP, each call is authenticated
                self._disconnect(connection)
                raise AuthenticationRefusedError(f"{connection.address}: {error}", retriable=error.retriable) from error
            except BaseException as error:
                if not is_answer(error):
                    # Interrupted by Ctrl-C, or by an argument of a wrong type: the rest of this call, a part of the
                    # request or of the reply, must not be used for the next one.
                    self._disconnect(connection)
                raise
        raise AssertionError("not reached")

    def _connected(self) -> Connection:
        if self._connection is not None and self._connection.is_over:
            self.close()
        if self._connection is not None:
            return self._connection
        failures: list[str] = []
        refused = 0
        cause: Exception | None = None
        for _ in self.addresses:
            address = self.addresses[self._next]
            try:
                self._connection = self._opened(address)
                return self._connection
            except CONNECTION_FAILURES as error:
                cause = error
            except AuthenticationRefusedError as error:
                if not (self._authentication.tries_elsewhere or error.retriable):
                    raise AuthenticationRefusedError(f"{address}: {error}") from error
                refused += not error.retriable
                cause = error
            failures.append(f"{address}: {cause}")
            self._turn()
        if refused == len(self.addresses):
            raise AuthenticationRefusedError("; ".join(failures)) from cause
        raise MetastoreUnavailableError("no metastore can be reached: " + "; ".join(failures)) from cause

    def _opened(self, address: Address) -> Connection:
        connection = Connection(
            address,
            self._authentication,
            connect_timeout_s=self._connect_timeout_s,
            call_timeout_s=self._call_timeout_s,
            tls_context=self._tls_context,
        )
        if not self._fills_cache:
            try:
                with suppress(MetaException, TApplicationException):  # a server that does not know it
                    connection.call("setMetaConf", (FILL_CACHE, "false"))
            except BaseException:
                connection.close()
                raise
        return connection

    def _turn(self) -> None:
        self._next = (self._next + 1) % len(self.addresses)

    def _disconnect(self, connection: Connection) -> None:
        connection.close()
        self._connection = None
        self._turn()

    def close(self) -> None:
        """Closes the connection; a later call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> MetastoreClient:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
