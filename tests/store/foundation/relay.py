"""A TCP relay before a database server that can cut a connection at its COMMIT, or within an answer."""

from __future__ import annotations

import contextlib
import re
import socket
import threading

#: Not the isolation level READ COMMITTED.
_COMMIT = re.compile(rb"COMMIT(?!TED)")


class Relay:
    """Forwards connections of 127.0.0.1 to a port.

    When armed, it cuts the next connection over which a client sends a COMMIT: ``deliver`` determines whether the
    database still gets it. ``cut`` is set once the database has closed its side, after it has finished.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut = threading.Event()
        self._deliver: bool | None = None
        self._was_armed = False
        self._bytes_left: int | None = None
        self.answered = 0
        """Bytes that have come from the database."""
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, *, deliver: bool) -> None:
        """Cuts at the next COMMIT."""
        self.cut.clear()
        self._was_armed, self._deliver = True, deliver

    def cut_answers_after(self, size: int) -> None:
        """Cuts after this many more bytes from the database."""
        self.cut.clear()
        self._bytes_left = size

    def close(self) -> None:
        """Accepts no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target_port))
                threading.Thread(target=self._from_client, args=(client, server), daemon=True).start()
                threading.Thread(target=self._from_server, args=(client, server), daemon=True).start()

    def _from_client(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self._deliver is not None and _COMMIT.search(data):
                    deliver, self._deliver = self._deliver, None
                    client.shutdown(socket.SHUT_RDWR)
                    if deliver:
                        server.sendall(data)
                    break
                server.sendall(data)
        # The server answers what it got, reads the end of the conversation and closes its half.
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _from_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                self.answered += len(data)
                if self._bytes_left is not None:
                    if self._bytes_left < len(data):
                        data, self._bytes_left = data[: self._bytes_left], None
                        with contextlib.suppress(OSError):
                            client.sendall(data)
                            client.shutdown(socket.SHUT_RDWR)
                        self.cut.set()
                        break
                    self._bytes_left -= len(data)
                # A client that was cut off gets nothing any more.
                with contextlib.suppress(OSError):
                    client.sendall(data)
        client.close()
        server.close()
        if self._was_armed and self._deliver is None:
            self.cut.set()
