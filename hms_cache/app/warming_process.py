"""Processes that read for the prewarm: rows become partition blocks beside the server, not in its interpreter.

The server's threads share one interpreter, so a prewarm in one of them costs the hot path a turn after each of its
waits. Here it costs what the machine has to spare: the processes have the lowest priority. What they read comes back
pickled, a block of 10,000 partitions as a handful of arrays, or for several workers at once as a file in memory; slots,
fences and installation stay the server's.
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
from hms_cache.cache.warming.snapshot_reads import Reader, SnapshotRead, Wanted
from hms_cache.config import Settings
from hms_cache.store.engine.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

MAX_PROCESSES: Final = 2
"""While one computes, the database works for the other. More would take turns with the database on common machines."""

_LONGEST_READ_S: Final = 1800.0
"""A table of millions of partitions on a busy machine; each of its statements has the limits of the settings."""


class WarmingProcessLost(Exception):
    """The process is gone, or failed at what it was asked: the server reads for itself."""


class WarmingProcess:
    """The process, from the side of a server process that it reads for. `read` is for one thread at a time, `close` for
    any."""

    def __init__(self, connection: Connection, process: int | None = None) -> None:
        """`process`: where it is a child of this one, its id; then it ends with `close`."""
        self._connection = connection
        self._process = process
        self._lock = threading.Lock()
        """Held while the process is ended: its number may be another's afterwards."""
        self._is_closed = False

    @property
    def process_id(self) -> int | None:
        """The process, where it is this one's child."""
        return self._process

    def read(self, wanted: Sequence[Wanted], memory: MemoryFiles | None = None) -> SnapshotRead:
        """As `SnapshotReads.read`; `memory`: where partitions are put that come in files.

        Raises DatabaseUnavailable (also once it is closed), WarmingProcessLost.
        """
        try:
            self._connection.send(tuple(wanted))
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
        """Ends the process, or its work for this one; a `read` on its way fails. Again: nothing."""
        self._ended()

    def _ended(self, error: Exception | None = None) -> str:
        """Ends it, unless it has ended; how it did, or what went wrong."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                if self._process is not None:
                    return _end(self._process)
                with suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)  # another thread waits there
        return f"is lost: {error}" if error is not None and str(error) else "ended"


def _end(process: int) -> str:
    """Kills a child of this process and waits for it; how it ended."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        return ending(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    return "ended"


class WarmingReads:
    """A `Reader` that has the process read, and reads here once that is lost. `read` for one thread at a time."""

    def __init__(self, process: WarmingProcess, here: Reader, memory: MemoryFiles | None = None) -> None:
        self._process = process
        self._here = here
        self._memory = memory
        self._is_lost = False

    def __call__(self, wanted: Sequence[Wanted]) -> SnapshotRead:
        if not self._is_lost:
            try:
                return self._process.read(wanted, self._memory)
            except WarmingProcessLost as error:
                _log.warning("the prewarm continues in the server itself: %s", error)
                self.leave()
        return self._here(wanted)

    def leave(self) -> None:
        """Ends the process, which is not needed any more; what is read all the same is read here. For the thread that
        reads."""
        self._is_lost = True
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self._process.close()


@contextmanager
def warming_processes(settings: Settings) -> Iterator[list[WarmingProcess]]:
    """Processes of this one's own while they are needed; none where the settings warm no tables, or the system forks
    none. No other thread may run."""
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
    """Processes that read for all workers of a server, each thing once; from the side of the workers' parent.

    Only the first worker in each place is read for: one that takes its place later has processes of its own.
    """

    def __init__(self, settings: Settings, workers: int, *, sends_files: bool) -> None:
        """Forks: no other thread may run. `sends_files`: the workers share memory."""
        self._processes: list[int] = []
        self._ends: list[list[Connection | None]] = []
        """By process the ends for the workers, while this process has them."""
        try:
            for _ in range(_count(settings)):
                child, ours = _forked(settings, workers, [*self._open_ends()], sends_files=sends_files)
                self._processes.append(child)
                self._ends.append(list(ours))
        except OSError as error:
            _log.warning("fewer processes for the prewarm: %s", error)

    def take(self, worker: int) -> list[WarmingProcess]:
        """In a worker: those that read for it; the ends of others are closed. None are left for a later worker in its
        place."""
        taken = [end for ends in self._ends if (end := ends[worker]) is not None]
        for end in self._open_ends():
            if end not in taken:
                end.close()
        return [WarmingProcess(one) for one in taken]

    def leave(self, worker: int) -> None:
        """In the parent: the worker has its ends, and they close with it."""
        for ends in self._ends:
            end, ends[worker] = ends[worker], None
            if end is not None:
                end.close()

    def ended(self, process: int) -> None:
        """In the parent: a child was waited for, maybe one of these. Its number may be another's from now on."""
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
    """A process that reads for so many, and our end for each of them; `others`: ends that it must not keep open.

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
