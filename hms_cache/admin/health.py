"""Liveness and readiness, for load balancers and Kubernetes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from hms_cache.admin.sources import AdminSources
from hms_cache.clock import Clock
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.limited_log import LimitedLog
from hms_cache.values import frozen

_log = LimitedLog(logging.getLogger(__name__))

#: A result is reused for this long: probes of several load balancers together cost one statement per second.
PROBE_VALID_S = 1.0

#: A database that has not answered within this time counts as unavailable; it is shorter than the usual timeout of a
#: probe.
PROBE_TIMEOUT_S = 3.0


@frozen
class Readiness:
    """Whether clients should be sent here, and the reason."""

    ready: bool
    reason: str
    details: str = ""
    """Text of the database's driver, which may contain hosts and accounts: only for clients that may read the port."""

    @property
    def text(self) -> str:
        """The reason with its details."""
        return f"{self.reason}: {self.details}" if self.details else self.reason


class DatabaseProbe:
    """Queries the database at most once per :data:`PROBE_VALID_S`, with one query at a time, and never waits long for
    it.

    It reads the end of the notification log, so that the lag is known even if the poller does not run. ``_lock`` guards
    the fields below it and is not held during the query.
    """

    def __init__(
        self, read_position: Callable[[], int], clock: Clock, start_thread: Callable[[Callable[[], None]], None]
    ) -> None:
        self._read_position = read_position
        self._clock = clock
        self._start_thread = start_thread
        self._lock = threading.Lock()
        self._answered = threading.Condition(self._lock)
        self._requested_at_s = float("-inf")
        self._finished_at_s = float("-inf")
        self._probing = False
        self._error: str | None = "not queried yet"
        self._traced: str | None = None
        """The failure whose trace was logged last. Used only by the probing thread."""
        self._log_end = 0

    @property
    def log_end(self) -> int:
        """The last event's id at the last successful probe; 0 before."""
        return self._log_end

    def forget(self) -> None:
        """Makes the next call query again, whatever the age of the last result."""
        with self._lock:
            self._finished_at_s = float("-inf")

    def last_error(self) -> str | None:
        """Like :meth:`error`, but without waiting: the last known result. Starts a probe if that is too old."""
        with self._lock:
            self._begin_if_due()
            return self._error

    def _begin_if_due(self) -> None:
        """Called under the lock."""
        now_s = self._clock.monotonic_s()
        if not self._probing and now_s - self._finished_at_s > PROBE_VALID_S:
            self._probing = True
            self._requested_at_s = now_s
            try:
                self._start_thread(self._probe)
            except RuntimeError as error:  # the system has no more threads at the moment: the next call tries again
                self._probing = False
                self._error = str(error)

    def error(self) -> str | None:
        """Why the database cannot be used now; None if it answers. Waits at most :data:`PROBE_TIMEOUT_S`."""
        with self._lock:
            self._begin_if_due()
            if not self._answered.wait_for(lambda: not self._probing, PROBE_TIMEOUT_S):
                return f"the database has not answered for {self._clock.monotonic_s() - self._requested_at_s:.0f} s"
            return self._error

    def _probe(self) -> None:
        error: str | None = None
        log_end: int | None = None
        try:
            log_end = self._read_position()
        except DatabaseUnavailableError as failure:
            error = str(failure)
        except Exception as failure:
            # For example an expired password, for which each probe would log a trace.
            error = f"{type(failure).__name__}: {failure}"
            is_new, self._traced = error != self._traced, error
            _log.error("the readiness probe failed: %s", error, exc_info=failure if is_new else None)
        with self._lock:
            self._error = error
            if log_end is not None:
                self._log_end = log_end
            self._probing = False
            self._finished_at_s = self._clock.monotonic_s()
            self._answered.notify_all()


def readiness(sources: AdminSources, probe: DatabaseProbe) -> Readiness:
    """Ready if the database answers, or if serving known data meanwhile is configured (``admin.serve_stale``)."""
    error = probe.error()
    if error is None:
        return Readiness(True, "the database answers")
    settings = sources.configuration.settings
    if settings.admin.serve_stale and sources.cache is not None and settings.cache.max_staleness_ms > 0:
        return Readiness(True, "serving what is known within cache.max_staleness_ms", error)
    return Readiness(False, "the database cannot be used now", error)
