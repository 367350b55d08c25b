"""A TCP proxy in front of a database server, that can be cut and mended: an outage without stopping the server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Forwards connections to a port. `_lock` guards the list of what is open."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listening: socket.socket | None = None
        self.port = 0
        self.mend()

    def mend(self) -> None:
        """Accepts connections, on the port it had."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(200)
        self.port = listening.getsockname()[1]
        self._listening = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def cut(self) -> None:
        """Breaks every connection and accepts no other one."""
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        with self._lock:
            broken, self._open = self._open, []
        for one in broken:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                if self._listening is not listening:
                    client.close()
                    server.close()
                    return
                self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=_forward, args=(source, sink), daemon=True).start()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_to(host: str, port: int) -> Iterator[Proxy]:
    """A proxy, cut at the end."""
    proxy = Proxy(host, port)
    try:
        yield proxy
    finally:
        proxy.cut()
