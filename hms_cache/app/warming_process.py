"""Processes that read for the prewarm: rows become partition blocks beside the server, not in its interpreter.

The server's threads share one interpreter, so a prewarm in one of them costs the hot path a turn after each of its
waits. Here it costs what the machine has to spare: the processes have the lowest priority. What they read comes back
pickled, a block of 10,000 partitions as a handful of arrays; slots, fences and installation stay the server's.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import NoReturn

from hms_cache.app.child_processes import end_with_parent, ending
from hms_cache.app.database import open_database
from hms_cache.app.signals import fork
from hms_cache.app.stores import build_database_stores
from hms_cache.cache.warming.snapshot_reads import Reader, SnapshotRead, SnapshotReads, Wanted
from hms_cache.config import Settings
from hms_cache.store.engine.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

_NICENESS = 19
"""The lowest priority: on a machine that is busy with clients it gets a hundredth of a core, on an idle one all."""

MOST_PROCESSES = 2
"""While one computes, the database works for the other. More would take turns with the database on common machines."""

_LONGEST_READ_S = 1800.0
"""A table of millions of partitions on a busy machine; each of its statements has the limits of the settings."""


class WarmingProcessLost(Exception):
    """The process is gone, or failed at what it was asked: the server reads for itself."""


class WarmingProcess:
    """The process, from the server's side. `read` is for one thread at a time, `close` for any."""

    def __init__(self, serve: Callable[[Connection], NoReturn]) -> None:
        """Forks. No other thread may run. Raises OSError."""
        self._connection, theirs = multiprocessing.Pipe()
        self._lock = threading.Lock()
        """Held while the process is ended: its number may be another's afterwards."""
        self._is_closed = False
        self._process = fork()
        if self._process == 0:
            self._connection.close()
            serve(theirs)
        theirs.close()

    @property
    def process_id(self) -> int:
        """The process."""
        return self._process

    def read(self, wanted: Sequence[Wanted]) -> SnapshotRead:
        """As `SnapshotReads.read`. Raises DatabaseUnavailable (also once it is closed), WarmingProcessLost."""
        try:
            self._connection.send(tuple(wanted))
            if not self._connection.poll(_LONGEST_READ_S):
                raise WarmingProcessLost(f"no answer within {_LONGEST_READ_S:g} s")
            answer = self._connection.recv()
        except (OSError, EOFError) as error:
            if self._is_closed:
                raise DatabaseUnavailable("the server stops") from error
            raise WarmingProcessLost(f"the process {self._ended()}") from error
        if isinstance(answer, SnapshotRead):
            return answer
        kind, text, connection_lost = answer
        if kind == "unavailable":
            raise DatabaseUnavailable(text, connection_lost=connection_lost)
        raise WarmingProcessLost(text)

    def close(self) -> None:
        """Ends the process; a `read` on its way fails. Again: nothing."""
        self._ended()

    def _ended(self) -> str:
        """Ends it, unless it has ended; how it did."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                with suppress(ProcessLookupError):
                    os.kill(self._process, signal.SIGKILL)
                with suppress(ChildProcessError):
                    return ending(os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1]))
        return "ended"


class WarmingReads:
    """A `Reader` that has the process read, and reads here once that is lost. `read` for one thread at a time."""

    def __init__(self, process: WarmingProcess, here: Reader) -> None:
        self._process = process
        self._here = here
        self._is_lost = False

    def __call__(self, wanted: Sequence[Wanted]) -> SnapshotRead:
        if not self._is_lost:
            try:
                return self._process.read(wanted)
            except WarmingProcessLost as error:
                _log.warning("warming up goes on in the server itself: %s", error)
                self._is_lost = True
                self.close()
        return self._here(wanted)

    def close(self) -> None:
        """Ends the process."""
        self._process.close()


@contextmanager
def warming_processes(settings: Settings) -> Iterator[list[WarmingProcess]]:
    """The processes while they are needed; none where the settings warm no tables, or the system forks none."""
    cache = settings.cache
    processes: list[WarmingProcess] = []
    if cache.enabled and cache.warm == "full" and hasattr(os, "fork"):
        try:
            parent = os.getpid()
            for _ in range(min(MOST_PROCESSES, os.cpu_count() or 1)):
                processes.append(WarmingProcess(lambda connection: _serve(connection, settings, parent)))
        except OSError as error:
            _log.warning("fewer processes for warming up: %s", error)
    try:
        yield processes
    finally:
        for process in processes:
            process.close()


def _serve(connection: Connection, settings: Settings, parent: int) -> NoReturn:
    """In the child, for its whole life, which ends with the parent's."""
    status = 1
    try:
        end_with_parent(parent)
        for number in (signal.SIGINT, signal.SIGHUP):  # of a terminal: they are the parent's to answer
            signal.signal(number, signal.SIG_IGN)
        os.nice(_NICENESS)
        with closing(open_database(settings)) as database:
            store = build_database_stores(settings, database).objects.reads
            _answer_all(connection, SnapshotReads(store, settings.cache.budget_bytes))
        status = 0
    except BrokenPipeError:
        pass  # the parent is gone
    except Exception:
        _log.exception("the process for warming up failed")
    finally:
        os._exit(status)


def _answer_all(connection: Connection, reads: SnapshotReads) -> None:
    while True:
        try:
            wanted = connection.recv()
        except EOFError:
            return
        try:
            answer: object = reads.read(wanted)
        except DatabaseUnavailable as error:
            answer = "unavailable", str(error), error.connection_lost
        except Exception as error:
            _log.exception("warming up with %s failed", wanted)
            answer = "failed", f"{type(error).__name__}: {error}", False
        connection.send(answer)
