"""Time limits for whole conversations. A socket's own limit applies to each read, so a peer that sends its answer a few
bytes at a time would never reach it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any


@contextlib.contextmanager
def shutdown_after(timeout_s: float, sockets: Callable[[], Iterable[socket.socket]]) -> Iterator[None]:
    """Shuts down connections if the block takes longer than `timeout_s`.

    :param sockets: returns the sockets to shut down; called on another thread when the time is up.
    """
    alarm = threading.Timer(timeout_s, _shut_down, (sockets,))
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def _shut_down(sockets: Callable[[], Iterable[socket.socket]]) -> None:
    for sock in sockets():
        with contextlib.suppress(OSError):  # it is closed already
            # The plain socket's method: after that of a TLS socket, data read later would look like text without TLS.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


class OpenedSockets:
    """The sockets opened for one conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: list[socket.socket] = []
        self._is_over = False

    def connect(self, *arguments: Any) -> socket.socket:
        """See `socket.create_connection`. Raises TimeoutError if the time was up before the connection was made."""
        opened = socket.create_connection(*arguments)
        with self._lock:
            if self._is_over:
                opened.close()
                raise TimeoutError("connecting took all of the time")
            # A duplicate, because TLS takes over this socket before its handshake, and http.client passes it to an
            # answer after # which the server closes.
            self._opened.append(opened.dup())
        return opened

    def end(self) -> tuple[socket.socket, ...]:
        """Refuses further connections, and returns the open ones: the time is up."""
        with self._lock:
            self._is_over = True
            return tuple(self._opened)

    def close(self) -> None:
        """Closes the duplicates at the end of the conversation."""
        for opened in self._opened:
            opened.close()


@contextlib.contextmanager
def opened_within(timeout_s: float) -> Iterator[OpenedSockets]:
    """Provides sockets for a conversation that are shut down after `timeout_s`."""
    sockets = OpenedSockets()
    try:
        with shutdown_after(timeout_s, sockets.end):
            yield sockets
    finally:
        sockets.close()
