"""Sockets of TCP ports: ones that listen, and ones that hold a port for several processes."""

from __future__ import annotations

import socket
from typing import Final

OTHER_SERVER: Final = "Is another metastore running there? Choose another port: --port 0 picks a free one."
"""What to do if a port for clients is taken."""


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """`shared`: other processes of this server may listen on the port, too. Raises OSError, UnicodeError."""
    listening = _bound_socket(host, port, shared=shared)
    listening.listen()
    return listening


def holding_socket(host: str, port: int) -> socket.socket:
    """Reserves the port for the processes of this server that will listen on it; it never listens itself.

    Raises OSError (also if another server listens there), UnicodeError.
    """
    # Every process of this user could share the port: it must not be shared with another server.
    with listening_socket(host, port):
        pass
    held = _bound_socket(host, port, shared=True)
    # With SO_REUSEADDR another server could bind the port, too, until the first worker listens.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return held


def _bound_socket(host: str, port: int, *, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    # Connections of a previous server may still be in TIME_WAIT, which must not prevent binding the port.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except (OSError, UnicodeError):
        bound.close()
        raise
    return bound
