"""Ends what takes too long on somebody else's connection: a socket's own limit is for each read, so an answer that
comes in drops never reaches it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator


@contextlib.contextmanager
def cut_after(timeout_s: float, sockets: Callable[[], Iterable[socket.socket]]) -> Iterator[None]:
    """What runs inside finds its connections closed after `timeout_s`. `sockets` is asked then, on another thread."""
    alarm = threading.Timer(timeout_s, _cut, (sockets,))
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def _cut(sockets: Callable[[], Iterable[socket.socket]]) -> None:
    for sock in sockets():
        with contextlib.suppress(OSError):  # it is closed already
            # The plain one: that of TLS would make what is read afterwards look like text without TLS.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
