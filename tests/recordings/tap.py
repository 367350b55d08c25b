"""A tap between clients and a metastore: it records each request with its answer, in the order of the answers.

Each connection is followed separately: messages are recognized by their own structure, so a client may send several
before the first is answered, in frames or not. A metastore answers the calls of a connection in their order. Calls that
only older releases have reach Hive 4.0.1 under the names that it has, see `tests.recordings.spellings`.
"""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from types import TracebackType

from tests.recordings.messages import ONEWAY, Message, Splitter
from tests.recordings.recording import RecordedCall
from tests.recordings.spellings import for_hive_4, of_hive_4


class Tap:
    """Listens on a port of its own and forwards everything; answers once they are recorded."""

    def __init__(self, host: str, port: int) -> None:
        """The address of the metastore."""
        self._target = host, port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._lock = threading.Lock()
        self._calls: list[RecordedCall] = []
        self._unanswered: list[str] = []
        self._faults: list[str] = []
        self._connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def uri(self) -> str:
        """The address for clients."""
        return f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def calls(self) -> list[RecordedCall]:
        """Returns each call that was answered or needs no answer, and the end of each connection that ended.

        Raises RuntimeError if a connection could not be followed.
        """
        with self._lock:
            if self._faults:
                raise RuntimeError("; ".join(self._faults))
            return list(self._calls)

    @property
    def unanswered(self) -> list[str]:
        """Methods of the calls whose connection ended before the answer. They are not among `calls`."""
        with self._lock:
            return list(self._unanswered)

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
            threading.Thread(target=self._follow, args=(client, self._connections), daemon=True).start()

    def _follow(self, client: socket.socket, number: int) -> None:
        waiting: deque[Message] = deque()
        with client:
            try:
                with socket.create_connection(self._target) as server:
                    self._pass_on(client, server, number, waiting)
            except OSError:
                pass  # either end is gone
            except Exception as error:
                with self._lock:
                    self._faults.append(f"connection {number}: {type(error).__name__}: {error}")
            with self._lock:  # before the client sees the end
                self._unanswered += [message.method for message in waiting]
                self._calls.append(RecordedCall(number, b"", b""))

    def _pass_on(self, client: socket.socket, server: socket.socket, number: int, waiting: deque[Message]) -> None:
        requests, replies = Splitter(), Splitter()
        while True:
            for source in select.select([client, server], [], [])[0]:
                data = source.recv(1 << 18)
                if not data:
                    return
                if source is client:
                    for message in requests.feed(data):
                        waiting.append(message)
                        self._keep_without_answer(number, waiting)
                        server.sendall(for_hive_4(message.data))
                    continue
                for reply in replies.feed(data):
                    request = waiting.popleft()
                    if reply.sequence_id != request.sequence_id:
                        raise ValueError(f"{request.method} {request.sequence_id} was answered as {reply}")
                    answer = of_hive_4(request.method, reply.data)
                    self._keep(number, request.data, answer)
                    self._keep_without_answer(number, waiting)
                    client.sendall(answer)

    def _keep_without_answer(self, connection: int, waiting: deque[Message]) -> None:
        """The pending one-way calls: the metastore reads them when it has answered those before."""
        while waiting and waiting[0].kind == ONEWAY:
            self._keep(connection, waiting.popleft().data, b"")

    def _keep(self, connection: int, request: bytes, reply: bytes) -> None:
        with self._lock:
            self._calls.append(RecordedCall(connection, request, reply))
