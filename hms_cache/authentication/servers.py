"""Addresses of metastores, and TLS connections to them, which verify the server's certificate.

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

DEFAULT_PORT = 9083
"""The default port of Hive's metastore."""

_PORTS = {"thrift": DEFAULT_PORT, "thrift+tls": DEFAULT_PORT, "http": 80, "https": 443}
"""By scheme: the port if none is said."""

_TLS_SCHEMES = ("thrift+tls", "https")
_HTTP_SCHEMES = ("http", "https")

DEFAULT_PATH = "/metastore"
"""Where a metastore takes calls over HTTP (Hive's `metastore.server.thrift.http.path`)."""


@frozen
class Address:
    """The address of a metastore."""

    host: str
    port: int = DEFAULT_PORT
    tls: bool = False
    path: str = ""
    """The path of a metastore that is called over HTTP; empty if it is called by Thrift over TCP."""

    @classmethod
    def parse(cls, uri: str) -> Address:
        """`thrift://host:port`, `thrift+tls://host:port`, `http://host:port/metastore` or `https://…`.

        The default port is 9083, or that of HTTP or HTTPS. Raises ConfigurationError.
        """
        try:
            parts = urlsplit(uri.strip())
            host, port = parts.hostname, parts.port
            (host or "").encode("idna")
        except ValueError as error:
            raise ConfigurationError(f"not the URI of a metastore: {uri!r} ({error})") from error
        if parts.username is not None or parts.password is not None:
            raise ConfigurationError("the URI of a metastore has no user and no password in it: see docs/security.md")
        if parts.scheme not in _PORTS or not host:
            raise ConfigurationError(f"not the URI of a metastore: {uri!r}; it looks like thrift://host:9083")
        by_http = parts.scheme in _HTTP_SCHEMES
        if by_http and (parts.query or parts.fragment):
            raise ConfigurationError(f"not the URI of a metastore: {uri!r}; nothing follows its path")
        path = (parts.path.rstrip("/") or DEFAULT_PATH) if by_http else ""
        if not path.isascii() or not path.isprintable() or " " in path:
            raise ConfigurationError(f"not the URI of a metastore: {uri!r}; its path is in ASCII, without blanks")
        return cls(host, _PORTS[parts.scheme] if port is None else port, parts.scheme in _TLS_SCHEMES, path)

    @property
    def by_http(self) -> bool:
        """Whether calls go over HTTP."""
        return bool(self.path)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.by_http:
            return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"
        return f"{'thrift+tls' if self.tls else 'thrift'}://{host}:{self.port}"


def verifying_context() -> ssl.SSLContext:
    """Requires TLS 1.2 and a certificate of a known authority for the host."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def protected(plain: socket.socket, host: str, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """Performs the handshake over an open socket, within its timeout. Raises OSError after closing the socket."""
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
        """Connects and performs the handshake. Raises TTransportException or OSError."""
        super().open()
        plain, self.handle = self.handle, None
        self.handle = protected(plain, self.host, self._context)

    def isOpen(self) -> bool:
        """Whether it was opened and not closed: the state of a TLS socket cannot be inspected."""
        return self.handle is not None


def thrift_socket(host: str, port: int, *, tls: bool, context: ssl.SSLContext | None = None) -> TSocket:
    """A Thrift socket for an address."""
    return TlsSocket(host, port, context) if tls else TSocket(host, port)
