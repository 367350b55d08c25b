"""Recurring background work, each kind on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext

from hms_cache.computing import scheduler
from hms_cache.config import finite_s

_log = logging.getLogger(__name__)

#: Pause after work that raised: long enough not to flood the log, and short enough not to matter.
_AFTER_FAILURE_S = 5.0

#: Maximum length of an error's text in a log line; the trace contains all of it.
_LONGEST_FAILURE = 500


class BackgroundTask:
    """Calls ``work`` repeatedly until :meth:`stop`; its result is the pause in seconds before the next call, however
    long; after an infinite one only :meth:`wake` makes the next call.

    An exception is logged, with its trace if it differs from the last one, and does not end the task. :meth:`wake` ends
    a pause early.
    """

    def __init__(
        self, name: str, work: Callable[[], float], *, is_scheduled: bool = False, first_pause_s: float = 0.0
    ) -> None:
        """`is_scheduled`: the thread takes turns with the computing threads of reads (`hms_cache.computing`).
        `first_pause_s`: pause between the start and the first call."""
        self._is_scheduled = is_scheduled
        self._first_pause_s = first_pause_s
        self._work = work
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._last_failure = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread. The first call is made immediately, or after the first pause."""
        self._thread.start()

    def wake(self) -> None:
        """Makes the next call immediately, or after the running one."""
        self._woken.set()

    def stop(self, timeout_s: float) -> bool:
        """Stops the task: waits at most `timeout_s` for a running call and the thread to end. Returns whether it
        ended."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if self._first_pause_s:
            self._woken.wait(finite_s(self._first_pause_s))
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                with scheduler.slot() if self._is_scheduled else nullcontext():
                    pause_s = self._work()
            except Exception as error:
                self._log_failure(error)
                pause_s = _AFTER_FAILURE_S
            if not self._stopping.is_set():
                self._woken.wait(finite_s(pause_s))

    def _log_failure(self, error: Exception) -> None:
        failure = f"{type(error).__name__}: {error}"[:_LONGEST_FAILURE]
        is_new, self._last_failure = failure != self._last_failure, failure
        _log.error("%s failed; next try in %g s: %s", self._thread.name, _AFTER_FAILURE_S, failure, exc_info=is_new)
