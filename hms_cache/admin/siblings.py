"""The other processes of this server (``server.workers``), each reached through its socket file.

A command is forwarded to all workers. Pages are those of the first worker, or of the one in ``?worker=N``. ``/metrics``
contains all of them, with a label ``worker``. Workers that cannot be reached are reported, never left out.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from hms_cache.admin.access import requester
from hms_cache.admin.threads import on_own_thread
from hms_cache.values import frozen

#: A sibling that does not accept a connection or return a page within this time counts as unreached.
ANSWER_TIMEOUT_S = 10.0

#: The same for metrics: Prometheus waits ten seconds for all workers together.
METRICS_TIMEOUT_S = 3.0

#: Maximum silence of a running command: it reports its progress, but a single load may take as long as a statement.
SILENCE_TIMEOUT_S = 600.0

#: Header of a request from a sibling, which is not forwarded again.
PASSED_ON = "x-passed-on"


@frozen
class Sibling:
    """A worker's index and its socket file; None if the file could not be created."""

    index: int
    path: Path | None


@frozen
class Siblings:
    """This worker and the others. A single process is number 0 of 1."""

    own_index: int = 0
    count: int = 1
    directory: Path | None = None
    """The directory of the socket files, accessible only to this user."""

    management_port: int | None = None
    """The shared management port; None: the configured one."""

    memory_directory: Path | None = None
    """The directory with links to files in memory that the workers share, accessible only to this user; None: no
    sharing."""

    lost_before: int = 0
    """Number of previous workers with this index that ended unexpectedly."""

    @property
    def own_path(self) -> Path | None:
        """The socket file of this worker; None if it is the only one, or without a directory."""
        return self._path(self.own_index) if self.count > 1 else None

    def _path(self, index: int) -> Path | None:
        return self.directory / f"worker-{index}.sock" if self.directory is not None else None

    def others(self) -> list[Sibling]:
        """All workers except this one."""
        return [Sibling(index, self._path(index)) for index in range(self.count) if index != self.own_index]

    def other(self, index: int) -> Sibling | None:
        """The other worker with this index, or None."""
        return next((one for one in self.others() if one.index == index), None)

    def stream_command(self, request: Request) -> list[AsyncIterator[dict[str, Any]]]:
        """Forwards the request to every other worker. Yields the lines of each, or why it was not reached."""
        if PASSED_ON in request.headers:
            return []
        return [_stream(one, target_of(request), _headers(request)) for one in self.others()]

    async def query_all(self, request: Request, timeout_s: float = ANSWER_TIMEOUT_S) -> dict[int, tuple[int, str]]:
        """Forwards the request to every other worker. Returns status and text by worker; status 0 for one not
        reached."""
        if PASSED_ON in request.headers:
            return {}
        others = self.others()
        target, headers = target_of(request), _headers(request)
        answers = await asyncio.gather(
            *(run_in_threadpool(answer_of, one, request.method, target, headers, timeout_s) for one in others)
        )
        return {one.index: (status, text) for one, (status, text, _) in zip(others, answers, strict=True)}


def _headers(request: Request) -> dict[str, str]:
    # Quoted: a user name may contain any characters, and headers only Latin-1.
    headers = {PASSED_ON: "1", "x-commanded-by": quote(requester(request), safe=" :@")}
    for name in ("authorization", "accept"):
        if name in request.headers:
            headers[name] = request.headers[name]
    return headers


def target_of(request: Request) -> str:
    """Path and query as received: decoded characters of a name could be misinterpreted, or not be sendable."""
    scope = request.scope
    raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()  # raw_path is optional in ASGI
    path, query = raw_path.decode("latin-1"), scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


class _SocketFileConnection(http.client.HTTPConnection):
    def __init__(self, path: Path | None, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Raises OSError."""
        if self._path is None:
            raise OSError("there is no directory for the workers' socket files")
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def answer_of(
    sibling: Sibling, method: str, target: str, headers: Mapping[str, str], timeout_s: float = ANSWER_TIMEOUT_S
) -> tuple[int, str, str]:
    """Status, text and content type of a sibling's reply; status 0 and the reason if it cannot be reached."""
    connection = _SocketFileConnection(sibling.path, timeout_s)
    try:
        connection.request(method, target, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers.get("content-type", "text/plain")
    except (OSError, http.client.HTTPException) as error:
        return 0, f"{error}", "text/plain"
    finally:
        connection.close()


async def _stream(sibling: Sibling, target: str, headers: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    """The sibling's lines without its summary. The sibling ends the command if this reader stops."""
    connection = _SocketFileConnection(sibling.path, ANSWER_TIMEOUT_S)
    answered = False
    try:
        answer = await on_own_thread(_open, connection, target, headers)
        if answer.status != 200:
            yield {"worker": sibling.index, "unreached": (await on_own_thread(answer.read)).decode().strip()}
            return
        if connection.sock is not None:
            connection.sock.settimeout(SILENCE_TIMEOUT_S)
        while line := await on_own_thread(answer.readline):
            found: dict[str, Any] = json.loads(line)
            if "finished" not in found:
                answered = answered or "result" in found
                yield found
        if not answered:
            yield {"worker": sibling.index, "unreached": "it ended before it answered"}
    except (OSError, http.client.HTTPException, ValueError) as error:
        if not answered:
            yield {"worker": sibling.index, "unreached": str(error)}
    finally:
        connection.close()


def _open(connection: _SocketFileConnection, target: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    connection.request("POST", target, headers=dict(headers))
    return connection.getresponse()
