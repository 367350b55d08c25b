"""Alive and ready: what a load balancer and Kubernetes ask."""

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

#: An answer this young is given again: probes of several balancers cost one statement a second together.
PROBE_VALID_S = 1.0

#: A database that has not answered by then counts as away, below the usual patience of a probe.
PROBE_TIMEOUT_S = 3.0


@frozen
class Readiness:
    """Whether clients shall be sent here, and why not (or why all the same)."""

    ready: bool
    reason: str
    details: str = ""
    """What the database's driver says, which may name hosts and accounts: for those who may read the port."""

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.reason}: {self.details}" if self.details else self.reason


class DatabaseProbe:
    """Asks the database at most once per :data:`PROBE_VALID_S`, one probe at a time, and never waits long for it.

    It asks for the end of the notification log, so that the lag is known while the poller stands still, too.
    ``_lock`` guards what follows it and is not held while the database is asked.
    """

    def __init__(
        self, ask: Callable[[], int], clock: Clock, start_thread: Callable[[Callable[[], None]], None]
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._start_thread = start_thread
        self._lock = threading.Lock()
        self._answered = threading.Condition(self._lock)
        self._asked_at_s = float("-inf")
        self._finished_at_s = float("-inf")
        self._asking = False
        self._error: str | None = "not asked yet"
        self._traced: str | None = None
        """The failure whose trace was logged last. Of the one thread that probes."""
        self._log_end = 0

    @property
    def log_end(self) -> int:
        """The last event's id as of the last probe that was answered; 0 before."""
        return self._log_end

    def forget(self) -> None:
        """The next question is asked anew, however young the last answer is."""
        with self._lock:
            self._finished_at_s = float("-inf")

    def known_error(self) -> str | None:
        """As :meth:`error`, as far as it is known: waits for nothing. A probe is begun when the last one is too old."""
        with self._lock:
            self._begin_if_due()
            return self._error

    def _begin_if_due(self) -> None:
        """Under the lock."""
        now_s = self._clock.monotonic_s()
        if not self._asking and now_s - self._finished_at_s > PROBE_VALID_S:
            self._asking = True
            self._asked_at_s = now_s
            try:
                self._start_thread(self._probe)
            except RuntimeError as error:  # the system has no more threads now: the next question tries again
                self._asking = False
                self._error = str(error)

    def error(self) -> str | None:
        """Why the database cannot be used now, None when it answers. Waits :data:`PROBE_TIMEOUT_S` at most."""
        with self._lock:
            self._begin_if_due()
            if not self._answered.wait_for(lambda: not self._asking, PROBE_TIMEOUT_S):
                return f"the database has not answered for {self._clock.monotonic_s() - self._asked_at_s:.0f} s"
            return self._error

    def _probe(self) -> None:
        error: str | None = None
        log_end: int | None = None
        try:
            log_end = self._ask()
        except DatabaseUnavailableError as failure:
            error = str(failure)
        except Exception as failure:
            # A password that is good no more, for instance: each probe of a balancer would write a trace.
            error = f"{type(failure).__name__}: {failure}"
            is_new, self._traced = error != self._traced, error
            _log.error("the readiness probe failed: %s", error, exc_info=failure if is_new else None)
        with self._lock:
            self._error = error
            if log_end is not None:
                self._log_end = log_end
            self._asking = False
            self._finished_at_s = self._clock.monotonic_s()
            self._answered.notify_all()


def readiness(sources: AdminSources, probe: DatabaseProbe) -> Readiness:
    """Ready when the database answers, or when serving what is known meanwhile was chosen (``admin.serve_stale``)."""
    error = probe.error()
    if error is None:
        return Readiness(True, "the database answers")
    settings = sources.configuration.settings
    if settings.admin.serve_stale and sources.cache is not None and settings.cache.max_staleness_ms > 0:
        return Readiness(True, "serving what is known within cache.max_staleness_ms", error)
    return Readiness(False, "the database cannot be used now", error)
