"""A tap between clients and a metastore: it keeps the bytes of every request, in the order of their answers."""

from __future__ import annotations

import select
import socket
import threading
from types import TracebackType


class Tap:
    """Listens on a port of its own and passes everything on. Clients have one call in flight on a connection."""

    def __init__(self, host: str, port: int) -> None:
        """Where the metastore is."""
        self._target = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._calls: list[tuple[int, bytes]] = []
        self._connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def uri(self) -> str:
        """The address for clients."""
        return f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def calls(self) -> list[tuple[int, bytes]]:
        """Number of the connection, and the request's bytes, of every call that was answered."""
        with self._lock:
            return list(self._calls)

    def __enter__(self) -> Tap:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            self._connections += 1
            threading.Thread(target=self._pass_on, args=(client, self._connections), daemon=True).start()

    def _pass_on(self, client: socket.socket, number: int) -> None:
        request = b""
        with client, socket.create_connection(self._target) as server:
            while True:
                for source in select.select([client, server], [], [])[0]:
                    try:
                        data = source.recv(65536)
                    except OSError:
                        return
                    if not data:
                        return
                    if source is client:
                        request += data
                        server.sendall(data)
                        continue
                    if request:
                        with self._lock:
                            self._calls.append((number, request))
                        request = b""
                    client.sendall(data)
