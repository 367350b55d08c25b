"""Processes that read for the prewarm: they build partition blocks outside the server's interpreter.

The server's threads share one interpreter, so a prewarm in one of them delays the hot path after each of its waits.
These processes use only spare processor time: they have the lowest priority. Results are sent pickled, a block of
10,000 partitions as a few arrays, or for several workers at once as a file in memory. Slots, fences and installation
remain with the server.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Final

from hms_cache.app.child_processes import ending
from hms_cache.app.signals import fork
from hms_cache.app.warming_reader import receive_files, serve_reads
from hms_cache.cache.memory_files import MemoryFiles
from hms_cache.cache.warming.sent_reads import SentRead, received_read
from hms_cache.cache.warming.snapshot_reads import LoadRequest, Reader, SnapshotRead
from hms_cache.config import Settings
from hms_cache.store.engine.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

MAX_PROCESSES: Final = 2
"""While one computes, the database works for the other. On common machines, more would compete with the database."""

_LONGEST_READ_S: Final = 1800.0
"""Enough for a table of millions of partitions on a busy machine; its statements also have the limits of the
settings."""


class WarmingProcessLost(Exception):
    """The process has ended, or its work has failed: the server reads itself."""


class WarmingProcess:
    """The process, as seen by a server process for which it reads. `read` may be called by one thread at a time,
    `close` by any."""

    def __init__(self, connection: Connection, process: int | None = None) -> None:
        """`process`: its id if it is a child of this process; then `close` ends it."""
        self._connection = connection
        self._process = process
        self._lock = threading.Lock()
        """Held while the process is being ended: afterwards its id may belong to another process."""
        self._is_closed = False

    @property
    def process_id(self) -> int | None:
        """The process id, if it is a child of this process."""
        return self._process

    def read(self, requested: Sequence[LoadRequest], memory: MemoryFiles | None = None) -> SnapshotRead:
        """Like `SnapshotReads.read`; `memory`: where partitions that arrive as files are mapped.

        Raises DatabaseUnavailable (also after `close`), WarmingProcessLost.
        """
        try:
            self._connection.send(tuple(requested))
            if not self._connection.poll(_LONGEST_READ_S):
                raise WarmingProcessLost(f"no answer within {_LONGEST_READ_S:g} s")
            answer = self._connection.recv()
            if isinstance(answer, SentRead):
                answer = received_read(answer, receive_files(self._connection, len(answer.names)), memory)
        except (OSError, EOFError, ValueError) as error:
            if self._is_closed:
                raise DatabaseUnavailable("the server stops") from error
            raise WarmingProcessLost(f"the process {self._ended(error)}") from error
        if isinstance(answer, SnapshotRead):
            return answer
        kind, text, connection_lost = answer
        if kind == "unavailable":
            raise DatabaseUnavailable(text, connection_lost=connection_lost)
        raise WarmingProcessLost(text)

    def close(self) -> None:
        """Ends the process, or its work for this one; a running `read` fails. Can be called again."""
        self._ended()

    def _ended(self, error: Exception | None = None) -> str:
        """Ends the process unless it has ended; returns how it ended, or what went wrong."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                if self._process is not None:
                    return _end(self._process)
                with suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)  # wakes another thread that waits there
        return f"is lost: {error}" if error is not None and str(error) else "ended"


def _end(process: int) -> str:
    """Kills a child of this process and waits for it; returns how it ended."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        return ending(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    return "ended"


class WarmingReads:
    """A `Reader` that lets the process read, and reads itself after the process is lost. For one thread at a time."""

    def __init__(self, process: WarmingProcess, here: Reader, memory: MemoryFiles | None = None) -> None:
        self._process = process
        self._here = here
        self._memory = memory
        self._is_lost = False

    def __call__(self, requested: Sequence[LoadRequest]) -> SnapshotRead:
        if not self._is_lost:
            try:
                return self._process.read(requested, self._memory)
            except WarmingProcessLost as error:
                _log.warning("the prewarm continues in the server itself: %s", error)
                self.retire()
        return self._here(requested)

    def retire(self) -> None:
        """Ends the process because it is not needed any more; further reads are made here. For the thread that
        reads."""
        self._is_lost = True
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self._process.close()


@contextmanager
def warming_processes(settings: Settings) -> Iterator[list[WarmingProcess]]:
    """Processes for this process only, as long as they are needed. Empty if the settings warm no tables, or fork fails.
    No other thread may run."""
    processes: list[WarmingProcess] = []
    try:
        for _ in range(_count(settings)):
            child, (ours,) = _forked(settings, 1, sends_files=False)
            processes.append(WarmingProcess(ours, child))
    except OSError as error:
        _log.warning("fewer processes for the prewarm: %s", error)
    try:
        yield processes
    finally:
        for process in processes:
            process.close()


class SharedWarming:
    """Processes that read for all workers of a server, everything once, as seen by the workers' parent.

    Only the first worker in each place uses them; a successor creates its own.
    """

    def __init__(self, settings: Settings, workers: int, *, sends_files: bool) -> None:
        """Forks: no other thread may run. `sends_files`: the workers share memory."""
        self._processes: list[int] = []
        self._ends: list[list[Connection | None]] = []
        """For each process, the workers' ends of its connections, while this process holds them."""
        try:
            for _ in range(_count(settings)):
                child, ours = _forked(settings, workers, [*self._open_ends()], sends_files=sends_files)
                self._processes.append(child)
                self._ends.append(list(ours))
        except OSError as error:
            _log.warning("fewer processes for the prewarm: %s", error)

    def take(self, worker: int) -> list[WarmingProcess]:
        """Called in a worker: returns the processes that read for it, and closes the ends of others. None are left for
        a successor of this worker."""
        own_ends = [end for ends in self._ends if (end := ends[worker]) is not None]
        for end in self._open_ends():
            if end not in own_ends:
                end.close()
        return [WarmingProcess(one) for one in own_ends]

    def close_ends_of(self, worker: int) -> None:
        """Called in the parent: closes its copies of the worker's ends, which then close with the worker."""
        for ends in self._ends:
            end, ends[worker] = ends[worker], None
            if end is not None:
                end.close()

    def ended(self, process: int) -> None:
        """Called in the parent: a child has been waited for, possibly one of these. Its id may be reused from now
        on."""
        if process in self._processes:
            self._processes.remove(process)

    def close(self) -> None:
        """Ends the processes."""
        for process in self._processes:
            _end(process)

    def _open_ends(self) -> Iterator[Connection]:
        return (end for ends in self._ends for end in ends if end is not None)


def _count(settings: Settings) -> int:
    cache = settings.cache
    is_needed = cache.enabled and cache.warm == "full" and hasattr(os, "fork")
    return min(MAX_PROCESSES, os.cpu_count() or 1) if is_needed else 0


def _forked(
    settings: Settings, callers: int, others: Sequence[Connection] = (), *, sends_files: bool
) -> tuple[int, list[Connection]]:
    """Forks a process that reads for this many callers; returns the caller's end for each. `others`: ends that it must
    not keep open.

    Raises OSError.
    """
    pipes = [multiprocessing.Pipe() for _ in range(callers)]
    parent = os.getpid()
    process = fork()
    if process == 0:
        for end in (*others, *(ours for ours, _ in pipes)):
            end.close()
        serve_reads([theirs for _, theirs in pipes], settings, parent, sends_files=sends_files)
    for _, theirs in pipes:
        theirs.close()
    return process, [ours for ours, _ in pipes]
