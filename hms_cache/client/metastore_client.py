"""A client with several metastores to turn to."""

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
"""Methods that change something although they are called `get`."""


def is_read(method: str) -> bool:
    """Whether the method changes nothing, so that it may be asked twice."""
    return method.startswith(_READ_PREFIXES) and method not in _NO_READS


class MetastoreClient:
    """Calls metastores by the names of their Thrift methods, over the first one that can be reached.

    A read that a broken connection interrupts is asked again of the next metastore, each of them at most once more. A
    write is sent once: if its connection breaks, nobody knows what became of it (`OutcomeUnknownError`).

    Each connection authenticates anew. When a metastore refuses a ticket or a delegation token, the next one is asked:
    its clock, its key or its tokens may be the reason. A wrong password is wrong at all of them.

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
        """`uris`: `thrift://host:port`, several in a list or separated by commas, in the order they are tried.

        `thrift+tls://host:port` speaks TLS: by `tls_context`, or with the system's authorities (or `SSL_CERT_FILE`) and
        the name checked. `http://host:port/metastore` and `https://…`: calls go over HTTP. `Metastores` have all of it
        in one value, how to authenticate included.

        `authentication`: see `authentication_of`; None: that of `Metastores`, else none.

        `fills_cache` False: the server is asked not to load what is read into its memory, for who reads much once. A
        server that does not know this is as it is.

        `connect_timeout_s` limits connecting, and so long again the negotiation with the wait for a KDC in it.
        `call_timeout_s` limits the wait for an answer (Hive's `metastore.client.socket.timeout`, 600 s). Connects at
        the first call. Raises ConfigurationError.
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
        """The metastore of the open connection, None when there is none."""
        return None if self._connection is None else self._connection.address

    def call(self, method: str, *arguments: Any) -> Any:
        """One call, e.g. `call("get_table_req", GetTableRequest(…))`; the value it answers.

        Raises the exceptions that the method declares; TApplicationException (thrift) for a method the metastore does
        not know; MetastoreUnavailableError; OutcomeUnknownError (writes); AuthenticationRefusedError and
        CredentialsError, after which nothing has happened. AttributeError: there is no such method.
        """
        if method not in METHODS:
            raise AttributeError(f"the metastore's protocol has no method {method!r}")
        attempts = len(self.addresses) + 1 if is_read(method) else 1
        for attempt in range(1, attempts + 1):
            connection = self._connected()
            try:
                return connection.call(method, arguments)
            except CONNECTION_FAILURES as error:
                self._leave(connection)
                if not is_read(method):
                    raise OutcomeUnknownError(
                        f"the connection to {connection.address} broke during {method}; whether it happened is unknown"
                    ) from error
                if attempt == attempts:
                    raise MetastoreUnavailableError(
                        f"no metastore answered {method}; last: {connection.address}"
                    ) from error
            except AuthenticationRefusedError as error:  # over HTTP, which asks at each call
                self._leave(connection)
                raise AuthenticationRefusedError(f"{connection.address}: {error}", retriable=error.retriable) from error
            except BaseException as error:
                if not is_answer(error):
                    # Cut in the middle, by Ctrl-C or an argument of another type: what is left of this call, a part of
                    # the request or the reply, must not be the next one's.
                    self._leave(connection)
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
                with suppress(MetaException, TApplicationException):  # a server of another kind
                    connection.call("setMetaConf", (FILL_CACHE, "false"))
            except BaseException:
                connection.close()
                raise
        return connection

    def _turn(self) -> None:
        self._next = (self._next + 1) % len(self.addresses)

    def _leave(self, connection: Connection) -> None:
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
