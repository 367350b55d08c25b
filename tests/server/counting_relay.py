"""A TCP relay before a database server that counts round trips for which a client waits."""

from __future__ import annotations

import contextlib
import socket
import threading


class CountingRelay:
    """Forwards connections to a port. `_lock` guards the attributes.

    A round trip is what a client sends before the next answer; several statements sent at once are one. A ROLLBACK
    counts only if another statement follows on its connection, since nobody waits for the answer to a last one; between
    `keep_back` and `deliver`, its answer is held. Preparing a statement of PostgreSQL does not count, since a driver
    does so once for a connection.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._lock = threading.Lock()
        self._delivering = threading.Event()
        self._delivering.set()
        self._questions: list[bytes] = []
        self.sent_bytes = 0
        """By clients, since `begin`."""
        self.call = 0
        """How often it has begun to count."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self) -> None:
        """Resets the counter."""
        with self._lock:
            self._questions = []
            self.sent_bytes = 0
            self.call += 1

    def questions(self) -> list[bytes]:
        """Round trips since `begin`."""
        with self._lock:
            return list(self._questions)

    def keep_back(self) -> None:
        """From now on, answers to ROLLBACK, and later ones, wait for `deliver`."""
        self._delivering.clear()

    def deliver(self) -> None:
        """Lets everything through."""
        self._delivering.set()

    def close(self) -> None:
        """Accepts no more connections."""
        self._delivering.set()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                _Way(self, client, socket.create_connection(self._target)).start()

    def sent(self, size_bytes: int) -> None:
        """A client has sent this many bytes."""
        with self._lock:
            self.sent_bytes += size_bytes

    def requested(self, question: bytes) -> None:
        """A round trip began in one of the directions."""
        with self._lock:
            self._questions.append(question)


class _Way:
    """One connection, both directions. `is_answered`: whether the database has sent something since the last round trip
    began."""

    def __init__(self, relay: CountingRelay, client: socket.socket, server: socket.socket) -> None:
        self._relay, self._client, self._server = relay, client, server
        self._is_answered = True
        self._rolls_back = False
        self._rolled_back_in = 0

    def start(self) -> None:
        for work in (self._ask, self._answer):
            threading.Thread(target=work, daemon=True).start()

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(65536):
                self._relay.sent(len(data))
                self._rolls_back = b"ROLLBACK" in data
                if self._rolls_back:
                    self._rolled_back_in = self._relay.call
                elif self._is_answered and not _only_prepares(data):
                    if self._rolled_back_in == self._relay.call:
                        self._relay.requested(b"ROLLBACK")
                    self._rolled_back_in = 0
                    self._relay.requested(data)
                    self._is_answered = False
                self._server.sendall(data)
        self._end()

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(65536):
                if self._rolls_back:
                    self._relay._delivering.wait()
                self._is_answered = True
                self._client.sendall(data)
        self._end()

    def _end(self) -> None:
        for one in (self._client, self._server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


_EXECUTE_OR_QUERY = b"EQ"


def _only_prepares(data: bytes) -> bool:
    """Whether these are messages of PostgreSQL that begin with a Parse and do not execute a statement."""
    kinds = b""
    at = 0
    while at + 5 <= len(data):
        kinds += data[at : at + 1]
        at += 1 + int.from_bytes(data[at + 1 : at + 5])
    return at == len(data) and kinds.startswith(b"P") and not any(kind in kinds for kind in _EXECUTE_OR_QUERY)
