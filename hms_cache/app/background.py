"""Work that is done again and again beside the calls, each on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext

from hms_cache.computing import turns

_log = logging.getLogger(__name__)

#: After work that failed outright: long enough not to fill the log, short enough that nobody waits for it.
_AFTER_FAILURE_S = 5.0

#: Of an error's text on a line of the log; the trace has all of it.
_LONGEST_FAILURE = 500

#: Work that asks for a longer pause, or an endless one, is asked again after this.
_LONGEST_PAUSE_S = 3600.0


class BackgroundTask:
    """Calls ``work`` until :meth:`stop`; what it returns is the pause in seconds before the next call.

    An error is logged, with its trace where it is another one than the last, and never ends the task. :meth:`wake` ends
    a pause early.
    """

    def __init__(
        self, name: str, work: Callable[[], float], *, takes_turns: bool = False, first_pause_s: float = 0.0
    ) -> None:
        """`takes_turns`: the thread computes by turns with those of reads (`hms_cache.computing`). `first_pause_s`:
        after the start, before the first call."""
        self._takes_turns = takes_turns
        self._first_pause_s = first_pause_s
        self._work = work
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; the first call is made at once, or after the first pause."""
        self._thread.start()

    def wake(self) -> None:
        """Make the next call now; during a call, directly after it."""
        self._woken.set()

    def stop(self, timeout_s: float) -> bool:
        """Let a running call end and wait for the thread at most so long; whether it ended."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if self._first_pause_s:
            self._woken.wait(min(self._first_pause_s, _LONGEST_PAUSE_S))
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                with turns.taken() if self._takes_turns else nullcontext():
                    pause_s = self._work()
            except Exception as error:
                self._tell(error)
                pause_s = _AFTER_FAILURE_S
            if not self._stopping.is_set():
                self._woken.wait(min(pause_s, _LONGEST_PAUSE_S))

    def _tell(self, error: Exception) -> None:
        told = f"{type(error).__name__}: {error}"[:_LONGEST_FAILURE]
        is_new, self._told = told != self._told, told
        _log.error("%s failed; next try in %g s: %s", self._thread.name, _AFTER_FAILURE_S, told, exc_info=is_new)
