"""Ends what takes too long on somebody else's connection: a socket's own limit is for each read, so an answer that
comes in drops never reaches it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any


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


class OpenedSockets:
    """The connections of one conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: list[socket.socket] = []
        self._is_over = False

    def connect(self, *arguments: Any) -> socket.socket:
        """As `socket.create_connection`. Raises TimeoutError where the time was over before there was a connection."""
        opened = socket.create_connection(*arguments)
        with self._lock:
            if self._is_over:
                opened.close()
                raise TimeoutError("connecting took all of the time")
            # Another socket of the same connection: TLS takes this one before its handshake, and http.client gives it
            # to an answer after which the server closes.
            self._opened.append(opened.dup())
        return opened

    def end(self) -> tuple[socket.socket, ...]:
        """The time is over: those that are open."""
        with self._lock:
            self._is_over = True
            return tuple(self._opened)

    def close(self) -> None:
        """The conversation is over."""
        for opened in self._opened:
            opened.close()


@contextlib.contextmanager
def opened_within(timeout_s: float) -> Iterator[OpenedSockets]:
    """What these open is cut after `timeout_s`, whatever it does then."""
    sockets = OpenedSockets()
    try:
        with cut_after(timeout_s, sockets.end):
            yield sockets
    finally:
        sockets.close()
