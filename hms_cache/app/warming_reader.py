"""The process that reads for the prewarm, from its own side: it serves one server process, or all workers of a server.

Workers ask for the same tables in the same order, so these are read once: the process waits briefly until all of them
have asked, and answers equal requests from one snapshot. The snapshot began after each of them had taken its slots, so
it is as valid as a read of its own; each worker checks that itself (`Loader`).
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NoReturn

from hms_cache.app.child_processes import end_with_parent
from hms_cache.app.database import open_database
from hms_cache.app.stores import build_database_stores
from hms_cache.batches import batches
from hms_cache.cache.warming.sent_reads import sent_read
from hms_cache.cache.warming.snapshot_reads import LoadRequest, Reader, SnapshotReads
from hms_cache.config import Settings
from hms_cache.store.engine.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

NICENESS: Final = 19
"""The lowest priority: on a machine busy with clients the process gets a hundredth of a core, on an idle one a whole
core."""

FIRST_MAX_WAIT_S: Final = 30.0
"""How long the first worker waits until all others have started as well: they start one after the other, in a second or
two each, plus the time of reading a dump."""

MAX_WAIT_S: Final = 2.0
"""How long callers wait for one that has not asked yet: installing a result takes tenths of a second, unless it is busy
with clients. After that it is not waited for again until it asks."""

SEND_TIMEOUT_S: Final = 30.0
"""How long an answer waits for a process that does not receive it; that process then reads itself."""

FILES_AT_ONCE: Final = 64
"""Open files in one message; Linux allows 253."""


def serve_reads(connections: Sequence[Connection], settings: Settings, parent: int, *, sends_files: bool) -> NoReturn:
    """The child's main function. It ends with the parent, or when no caller is left.

    `sends_files`: partitions are sent as files in memory.
    """
    status = 1
    try:
        end_with_parent(parent)
        for number in (signal.SIGINT, signal.SIGHUP):  # from a terminal: the parent handles them
            signal.signal(number, signal.SIG_IGN)
        os.nice(NICENESS)
        with closing(open_database(settings)) as database:
            store = build_database_stores(settings, database).objects.reads
            AnswerLoop(connections, SnapshotReads(store, settings.cache.budget_bytes).read, sends_files).run()
        status = 0
    except Exception:
        _log.exception("the process for the prewarm failed")
    finally:
        os._exit(status)


class _Caller:
    """A process that asks for one thing at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requested: Sequence[LoadRequest] | None = None
        """The current request, or None."""
        self.since_s = 0.0
        self.answers = 0
        self.is_late = False
        """Whether the others have continued without it."""
        _limit_sending(connection)


class AnswerLoop:
    """Answers all requests on these connections, equal ones together, until all callers have gone."""

    def __init__(
        self,
        connections: Sequence[Connection],
        read: Reader,
        sends_files: bool,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._callers = [_Caller(one) for one in connections]
        self._read = read
        self._sends_files = sends_files
        self._now_s = now_s
        self._first_requested_s: float | None = None
        self.reads = 0
        """Number of reads of the database."""

    def run(self) -> None:
        """Runs until all callers have gone."""
        while self._callers:
            group, pause_s = self._next_group()
            if group:
                self._answer(group)
            else:
                self._receive(pause_s)

    def _next_group(self) -> tuple[list[_Caller], float | None]:
        """The callers to answer next; if there are none, how long to wait for more (None: until one asks)."""
        waiting = [one for one in self._callers if one.requested is not None]
        if not waiting:
            return [], None
        awaited = [one for one in self._callers if one.requested is None and not one.is_late]
        if awaited:
            end_s = min(one.since_s for one in waiting) + MAX_WAIT_S
            if self._first_requested_s is not None and not all(one.answers for one in awaited):
                end_s = max(end_s, self._first_requested_s + FIRST_MAX_WAIT_S)
            remaining_s = end_s - self._now_s()
            if remaining_s > 0:
                return [], remaining_s
            for one in awaited:
                one.is_late = True
        # The caller that is furthest behind comes first, until it has caught up with the others.
        behind = min(waiting, key=lambda one: one.answers)
        return [one for one in waiting if one.requested == behind.requested], None

    def _receive(self, pause_s: float | None) -> None:
        silent = {one.connection: one for one in self._callers if one.requested is None}
        for ready in wait(list(silent), pause_s):
            caller = silent[ready]  # type: ignore[index]
            try:
                caller.requested = caller.connection.recv()
            except (EOFError, OSError):
                self._callers.remove(caller)
                caller.connection.close()
                continue
            caller.since_s, caller.is_late = self._now_s(), False
            if self._first_requested_s is None:
                self._first_requested_s = caller.since_s

    def _answer(self, group: Sequence[_Caller]) -> None:
        requested = group[0].requested
        assert requested is not None
        answer, files = self._answer_to(requested)
        try:
            message = ForkingPickler.dumps(answer)
            for caller in group:
                caller.requested = None
                caller.answers += 1
                try:
                    caller.connection.send_bytes(message)
                    _send_files(caller.connection, files)
                except OSError as error:
                    _log.warning("a process does not take what was read for it: %s", error)
                    self._callers.remove(caller)
                    caller.connection.close()
        finally:
            for file in files:
                os.close(file)
        for caller in self._callers:
            caller.since_s = self._now_s()

    def _answer_to(self, requested: Sequence[LoadRequest]) -> tuple[object, list[int]]:
        """The message to send, and the open files to send with it."""
        self.reads += 1
        files: list[int] = []
        try:
            found = self._read(requested)
            return (sent_read(found, files) if self._sends_files else found), files
        except DatabaseUnavailable as error:
            return ("unavailable", str(error), error.connection_lost), files
        except Exception as error:
            _log.exception("warming up with %s failed", requested)
            return ("failed", f"{type(error).__name__}: {error}", False), files


def receive_files(connection: Connection, count: int) -> list[int]:
    """Receives the open files that were sent after a message. Raises OSError if some are missing."""
    files: list[int] = []
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as wire:
            while len(files) < count:
                expected = min(FILES_AT_ONCE, count - len(files))
                data, some, _, _ = socket.recv_fds(wire, 1, expected, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
                files += some
                # At its limit of open files, the system delivers only some of them, and the rest is lost.
                if not data or len(some) < expected:
                    raise OSError("open files were lost on their way: this process may open no more")
    except BaseException:
        for file in files:
            os.close(file)
        raise
    return files


def _send_files(connection: Connection, files: Sequence[int]) -> None:
    if files:
        with socket.socket(fileno=os.dup(connection.fileno())) as wire:
            for some in batches(files, FILES_AT_ONCE):
                socket.send_fds(wire, [b"+"], list(some))


def _limit_sending(connection: Connection) -> None:
    limit: Any = struct.pack("@ll", int(SEND_TIMEOUT_S), 0)
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
