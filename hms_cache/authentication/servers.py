"""Addresses of metastores, and connections to those that use TLS, which verify the server's certificate.

The authorities are the system's; `SSL_CERT_FILE` in the environment names others (OpenSSL).
"""

from __future__ import annotations

import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from thrift.transport.TSocket import TSocket

from hms_cache.errors import ConfigurationError
from hms_cache.values import frozen

PLAIN_SCHEME = "thrift"
TLS_SCHEME = "thrift+tls"
SCHEMES = (PLAIN_SCHEME, TLS_SCHEME)

DEFAULT_PORT = 9083
"""The port that Hive's metastore listens on if nothing else is said."""


@frozen
class Address:
    """Where a metastore listens."""

    host: str
    port: int = DEFAULT_PORT
    tls: bool = False

    @classmethod
    def parse(cls, uri: str) -> Address:
        """`thrift://host:port`, or `thrift+tls://host:port`; the port 9083 if left out. Raises ConfigurationError."""
        try:
            parts = urlsplit(uri.strip())
            host, port = parts.hostname, parts.port
            (host or "").encode("idna")
        except ValueError as error:
            raise ConfigurationError(f"not the URI of a metastore: {uri!r} ({error})") from error
        if parts.scheme not in SCHEMES or not host:
            raise ConfigurationError(f"not the URI of a metastore: {uri!r}; it looks like thrift://host:9083")
        return cls(host, DEFAULT_PORT if port is None else port, parts.scheme == TLS_SCHEME)

    def __str__(self) -> str:
        return f"{TLS_SCHEME if self.tls else PLAIN_SCHEME}://{self.host}:{self.port}"


def verifying_context() -> ssl.SSLContext:
    """TLS 1.2 at least; the certificate must be of a known authority and made out to the host."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def protected(plain: socket.socket, host: str, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """The handshake over an open socket, within its time-out. Raises OSError; then the socket is closed."""
    try:
        return (context or verifying_context()).wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


class TlsSocket(TSocket):  # type: ignore[misc]  # untyped
    """Thrift's socket, with TLS."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        super().__init__(host, port)
        self._context = context
        self.handle: Any

    def open(self) -> None:
        """Connects and shakes hands. Raises TTransportException or OSError."""
        super().open()
        plain, self.handle = self.handle, None
        self.handle = protected(plain, self.host, self._context)

    def isOpen(self) -> bool:
        """Whether it was opened and not closed: a socket with TLS cannot be looked into."""
        return self.handle is not None


def thrift_socket(host: str, port: int, *, tls: bool, context: ssl.SSLContext | None = None) -> TSocket:
    """A socket of Thrift's for an address."""
    return TlsSocket(host, port, context) if tls else TSocket(host, port)
