"""Connections to metastores that speak TLS: is the server the one that was meant?

Addresses say it: `thrift+tls://host:port`. The authorities are the system's; `SSL_CERT_FILE` in the environment names
others (OpenSSL).
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

from thrift.transport.TSocket import TSocket

PLAIN_SCHEME = "thrift"
TLS_SCHEME = "thrift+tls"
SCHEMES = (PLAIN_SCHEME, TLS_SCHEME)


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
