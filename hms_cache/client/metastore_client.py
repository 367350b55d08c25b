"""A client with several metastores to turn to."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from thrift.Thrift import TApplicationException

from hms_cache.authentication.servers import Address
from hms_cache.call_context import FILL_CACHE
from hms_cache.client.connection import (
    CONNECTION_FAILURES,
    Connection,
    MetastoreUnavailableError,
    OutcomeUnknownError,
    is_answer,
)
from hms_cache.errors import ConfigurationError
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

    For one thread at a time.
    """

    def __init__(
        self,
        uris: str | Sequence[str],
        *,
        connect_timeout_s: float = 10.0,
        call_timeout_s: float = 600.0,
        tls_context: ssl.SSLContext | None = None,
        fills_cache: bool = True,
    ) -> None:
        """`uris`: `thrift://host:port`, several in a list or separated by commas, in the order they are tried.

        `thrift+tls://host:port` speaks TLS: by `tls_context`, or with the system's authorities (or `SSL_CERT_FILE`) and
        the name checked.

        `fills_cache` False: the server is asked not to load what is read into its memory, for who reads much once. A
        server that does not know this is as it is.

        `call_timeout_s` limits the wait for an answer (Hive's `metastore.client.socket.timeout`, 600 s). Connects at
        the first call. Raises ConfigurationError.
        """
        texts = uris.split(",") if isinstance(uris, str) else list(uris)
        self.addresses: tuple[Address, ...] = tuple(Address.parse(uri) for uri in texts if uri.strip())
        if not self.addresses:
            raise ConfigurationError("a metastore client needs the URI of at least one metastore")
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
        not know; MetastoreUnavailableError; OutcomeUnknownError (writes). AttributeError: there is no such method.
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
            except BaseException as error:
                if not is_answer(error):
                    # Cut in the middle, by Ctrl-C or an argument of another type: what is left of this call, a part of
                    # the request or the reply, must not be the next one's.
                    self._leave(connection)
                raise
        raise AssertionError("not reached")

    def _connected(self) -> Connection:
        if self._connection is not None:
            return self._connection
        failures: list[str] = []
        cause: Exception | None = None
        for _ in self.addresses:
            address = self.addresses[self._next]
            try:
                self._connection = self._opened(address)
                return self._connection
            except CONNECTION_FAILURES as error:
                failures.append(f"{address}: {error}")
                cause = error
                self._turn()
        raise MetastoreUnavailableError("no metastore can be reached: " + "; ".join(failures)) from cause

    def _opened(self, address: Address) -> Connection:
        connection = Connection(
            address,
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
