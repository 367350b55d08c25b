"""A TCP proxy in front of a database server that can be cut and repaired: an outage without stopping the server.

It can also forward new connections to another server, and stop forwarding on open ones without closing them. This
simulates an address that moves to another machine.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Forwards connections to a port. `_lock` guards the list of open connections, and their shared state."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._flowing = threading.Event()
        """Whether the connections opened since the last `stall` are forwarded."""
        self._flowing.set()
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

    def switch(self, host: str, port: int) -> None:
        """Forwards new connections to this server; open ones keep theirs."""
        self._target = host, port

    def stall(self) -> None:
        """Stops forwarding on the open connections for good, without closing them."""
        with self._lock:
            stopped, self._flowing = self._flowing, threading.Event()
            self._flowing.set()
        stopped.clear()

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
                flowing = self._flowing
            for source, sink in ((client, server), (server, client)):
                with suppress(OSError):  # broken meanwhile, which the thread detects, too
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=_forward, args=(source, sink, flowing), daemon=True).start()


def _forward(source: socket.socket, sink: socket.socket, flowing: threading.Event) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            flowing.wait()
            sink.sendall(data)
    flowing.wait()
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
