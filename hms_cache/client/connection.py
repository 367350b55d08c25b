"""A connection to one metastore: the socket, the authentication over it, and its failures."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from hms_cache.authentication.servers import Address, thrift_socket
from hms_cache.client.authentication.values import UNAUTHENTICATED, Authentication
from hms_cache.client.transports.http import HttpTransport
from hms_cache.client.transports.sasl import SaslTransport
from hms_cache.errors import ConfigurationError
from hms_cache.socket_deadlines import shutdown_after
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore

CONNECT_TIMEOUT_S: Final = 10.0

CALL_TIMEOUT_S: Final = 600.0
"""Default of Hive's clients (`metastore.client.socket.timeout`)."""


def opened(
    address: Address,
    authentication: Authentication = UNAUTHENTICATED,
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    call_timeout_s: float = CALL_TIMEOUT_S,
    tls_context: ssl.SSLContext | None = None,
) -> Any:
    """A connected Thrift transport over which calls can be sent. With SASL, the client is authenticated by then.

    Raises TTransportException if there is no answer within `connect_timeout_s`, which applies to connecting and to the
    negotiation separately; OSError for TLS; AuthenticationRefusedError, CredentialsError, KerberosUnavailableError,
    ConfigurationError.
    """
    authentication.check(address)
    socket = thrift_socket(address.host, address.port, tls=address.tls, context=tls_context)
    socket.setTimeout(connect_timeout_s * 1000)
    try:
        socket.open()
        _require_protection(authentication, address, socket)
        transport: Any = socket
        if address.by_http:
            transport = HttpTransport(socket, address, authentication.headers, call_timeout_s)
        elif (mechanism := authentication.mechanism(address, connect_timeout_s)) is not None:
            transport = SaslTransport(socket, mechanism)
            _within(connect_timeout_s, socket, transport.open)
        socket.setTimeout(call_timeout_s * 1000)
    except BaseException:
        socket.close()
        raise
    return transport


def _within(timeout_s: float, socket: TSocket, negotiate: Callable[[], None]) -> None:
    """Limits the whole negotiation: the socket's own limit applies to each read."""
    ends_at_s = time.monotonic() + timeout_s
    try:
        with shutdown_after(timeout_s, lambda: [socket.handle] if socket.handle is not None else []):
            negotiate()
    except TTransportException as error:
        if time.monotonic() >= ends_at_s or error.type == TTransportException.TIMED_OUT:
            text = f"the SASL negotiation did not end within {timeout_s:g} s"
            raise TTransportException(TTransportException.TIMED_OUT, text) from error
        if error.type != TTransportException.END_OF_FILE:
            raise
        text = "it closed the connection during the SASL negotiation: it may authenticate no clients, or require TLS"
        raise TTransportException(TTransportException.END_OF_FILE, text) from error


def _require_protection(authentication: Authentication, address: Address, socket: TSocket) -> None:
    """Raises ConfigurationError if a secret would be sent without encryption."""
    if not authentication.sends_secret or authentication.allows_unencrypted or address.tls:
        return
    peer = ip_address(str(socket.handle.getpeername()[0]).partition("%")[0])
    mapped = getattr(peer, "ipv4_mapped", None)
    if not (mapped or peer).is_loopback:
        scheme = "https://" if address.by_http else "thrift+tls://"
        raise ConfigurationError(
            f"{address} is not encrypted, so the secret of auth={authentication} was not sent. Use a URI with {scheme},"
            " or set unencrypted=allowed if something else protects the connection"
        )


class Connection:
    """An open connection that uses the strict binary protocol, as Hive's clients do. For one thread at a time."""

    def __init__(
        self,
        address: Address,
        authentication: Authentication = UNAUTHENTICATED,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """Connects and authenticates. Raises the same exceptions as `opened`."""
        self.address = address
        self._inner = opened(
            address,
            authentication,
            connect_timeout_s=connect_timeout_s,
            call_timeout_s=call_timeout_s,
            tls_context=tls_context,
        )
        self._transport = TBufferedTransport(self._inner)
        self._client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(self._transport))

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Calls a method.

        Raises the exceptions that the method declares, TApplicationException, AuthenticationRefusedError over HTTP, or
        a failure of the connection. After an exception that is not an answer (see `is_answer`), the connection is
        unusable.
        """
        return getattr(self._client, method)(*arguments)

    @property
    def is_over(self) -> bool:
        """Whether the server closed it after the last reply, which HTTP allows between two requests."""
        return self.address.by_http and not self._inner.isOpen()

    def close(self) -> None:
        """Closes the socket; never raises."""
        self._transport.close()


def is_answer(error: BaseException) -> bool:
    """Whether the exception is the metastore's answer, in a reply that was read to its end."""
    return isinstance(error, TException) and not isinstance(error, TProtocolException | TTransportException)
