"""`cache.dump_file` of a server: read when it starts, written while it runs and when it stops."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hms_cache.app.background import BackgroundTask
from hms_cache.app.warming import pause_s, processor_time_of_calls_s
from hms_cache.cache.dump.capture import capture
from hms_cache.cache.dump.restore import Restore
from hms_cache.cache.dump.writing import Identity, write_dump
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.config import Settings
from hms_cache.metrics.registry import CacheMetrics
from hms_cache.notifications.event_log import LogPosition
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.program_version import program_version

_log = logging.getLogger(__name__)

#: Time limit for the last write when the server stops; after it, the previous dump stays. A GiB takes two seconds.
_LAST_WRITE_S = 10.0

_STOP_TIMEOUT_S = 5.0

#: Pause after everything has been read.
_DONE_PAUSE_S = 3600.0


class _WriteCancelled(Exception):
    """The server stops, or the write takes too long."""


class Dumping:
    """The dump of one cache. Call `begin` before the poller starts, and `start` after it.

    With several worker processes each reads the dump, and one of them writes it.
    """

    def __init__(
        self, settings: Settings, cache: SharedCache, poller: Poller, metrics: CacheMetrics, *, writes: bool = True
    ) -> None:
        self._path = Path(settings.cache.dump_file)
        self._settings = settings.cache
        self._cache = cache
        self._poller = poller
        self._metrics = metrics
        self._writes = writes
        self._stopping = threading.Event()
        self._identity = Identity(build_of_this_program(), _rules(settings))
        self._lock = threading.Lock()
        """Guards the file's name and `_removals`: data captured before something was dropped must not be renamed to the
        file's name after that."""
        self._removals = 0
        self._is_ours = True
        """Whether the file is a dump, or does not exist."""
        cache.forgetting_listener = self._remove
        self._restore = Restore(cache, self._path, self._identity)
        self._written: tuple[int, int, int] | None = None
        """Generation, position and weight at the last write."""

    def begin(self) -> LogPosition | None:
        """Reads the part that the start waits for. Returns the position from which the poller starts; None without a
        usable dump."""
        place = self._restore.begin()
        if self._restore.outcome == "foreign":
            self._is_ours = False
            _log.error("no dump is written: %s is another file, and stays as it is", self._path)
        self._metrics.dump_discarded.set(self._restore.outcome in ("discarded", "foreign"))
        self._metrics.dump_restored_bytes.set_function(lambda: self._restore.bytes)
        return place

    def reload(self, settings: Settings) -> None:
        """Records that entries from now on follow these settings."""
        self._identity = replace(self._identity, settings=_rules(settings))

    def _remove(self) -> None:
        """Removes the dump after something was dropped without an event: its old state must not return after a restart.
        Other entries are written again at the next interval."""
        with self._lock:
            self._removals += 1
            self._written = None
            if not self._is_ours:
                return
            try:
                self._path.unlink(missing_ok=True)
            except OSError as error:
                _log.error("the dump %s cannot be removed; remove it before a restart: %s", self._path, error)

    @property
    def is_reading(self) -> bool:
        """Whether a part of the dump has not been read yet."""
        return not self._restore.is_done

    def start(self, stack: ExitStack) -> None:
        """Reads the rest of the dump, and writes at intervals. Actions for the shutdown are pushed onto the stack."""
        stack.callback(self._restore.close)
        reading = BackgroundTask("hms-dump-read", self._read)
        reading.start()
        if self._writes:
            stack.callback(self._write_last)
            writing = BackgroundTask("hms-dump-write", self._write_again, first_pause_s=self._settings.dump_interval_s)
            writing.start()
            stack.callback(writing.stop, _STOP_TIMEOUT_S)
        stack.callback(reading.stop, _STOP_TIMEOUT_S)
        stack.callback(self._stopping.set)

    def _read(self) -> float:
        """Reads one table. Then pauses as the prewarm does, so that calls get their share of the processor."""
        started_s, before_s = time.monotonic(), processor_time_of_calls_s()
        if not self._restore.step():
            return _DONE_PAUSE_S
        return pause_s(time.monotonic() - started_s, processor_time_of_calls_s() - before_s)

    def _write_again(self) -> float:
        bytes_per_s = self._settings.dump_bytes_per_s

        def pause(written: int) -> None:
            if self._stopping.wait(written / bytes_per_s):
                raise _WriteCancelled

        self._write(pause, self._stopping)
        return self._settings.dump_interval_s

    def _write_last(self) -> None:
        end_s = time.monotonic() + _LAST_WRITE_S

        def pause(written: int) -> None:
            if time.monotonic() > end_s:
                raise _WriteCancelled

        self._write(pause, threading.Event())

    def _write(self, pause: Callable[[int], None], wait: threading.Event) -> None:
        """Writes the dump unless nothing has changed. A failure is counted, and the previous dump stays."""
        if not self._is_ours or self.is_reading or self._poller.status is not PollerStatus.ACTIVE:
            return
        now = self._cache.generation, self._cache.position, self._cache.weight
        # Another worker that shares the file may have removed it.
        if now == self._written and self._path.exists():
            return
        began_s = time.monotonic()
        with self._lock:
            removals, identity = self._removals, self._identity
        captured = capture(self._cache, self._poller.position, wait)
        if captured is None:
            self._metrics.dump_writes.add(("unproven",))
            return
        try:
            size = write_dump(
                self._path, captured, identity, pause, lambda take: self._replace_previous(take, removals)
            )
        except _WriteCancelled:
            return
        except OSError as error:
            self._metrics.dump_writes.add(("failed",))
            _log.warning("the dump %s cannot be written: %s", self._path, error)
            return
        self._written = now
        self._metrics.dump_writes.add(("written",))
        self._metrics.dump_bytes.set(size)
        self._metrics.dump_written.set(time.time())
        duration_s = time.monotonic() - began_s
        _log.info("a dump of %d bytes at event %d was written in %.1f s", size, captured.place.event_id, duration_s)

    def _replace_previous(self, take: Callable[[], None], removals: int) -> None:
        with self._lock:
            if self._removals != removals:
                raise _WriteCancelled
            take()


def _rules(settings: Settings) -> str:
    """A digest of the settings that determine which answers are cached and their contents."""
    cache = settings.cache
    text = repr((cache.include, cache.exclude, cache.peers, settings.catalog.model_dump_json()))
    return hashlib.sha256(text.encode()).hexdigest()


def build_of_this_program() -> str:
    """Version and digest of the program's source: another build may write a different format."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{program_version()} {digest.hexdigest()}"
