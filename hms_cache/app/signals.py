"""Signals of a process, waited for by its main thread: stop (SIGTERM, SIGINT), reload (SIGHUP), the end of a child."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType
from typing import Final

STOP: Final = frozenset({signal.SIGTERM, signal.SIGINT})
RELOAD: Final = signal.SIGHUP
CHILD_ENDED: Final = signal.SIGCHLD


class Signals:
    """Each is noted in a pipe by the handler in C (`set_wakeup_fd`), on whatever thread the kernel interrupts: when one
    signal is on its way to the main thread, the next goes to another one, and does not end the main thread's wait.
    Handlers in Python would run in the main thread only, between any two instructions of a wait that may hold a lock.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def take(self, *others: signal.Signals) -> None:
        """From now on these are noted: stop, reload, and `others`; a reload that was held, too. Only by the main
        thread."""
        # A full pipe: thousands of signals wait to be heard already.
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (*STOP, RELOAD, *others):
            signal.signal(number, _note_only)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOP, RELOAD))

    def heard(self, timeout_s: float | None = None) -> frozenset[int]:
        """Waits for some, at most so long; which there were."""
        ready, _, _ = select.select([self._reading], [], [], timeout_s)
        return frozenset(os.read(self._reading, select.PIPE_BUF)) if ready else frozenset()

    def heard_beside(self, file: int, timeout_s: float) -> tuple[bool, frozenset[int]]:
        """(whether the file is readable, which signals there were); waits for either, at most so long."""
        ready, _, _ = select.select([self._reading, file], [], [], timeout_s)
        heard = frozenset(os.read(self._reading, select.PIPE_BUF)) if self._reading in ready else frozenset()
        return file in ready, heard

    def wait(self) -> bool:
        """Waits for a stop (True) or a reload; several reloads are one, and a stop comes before all."""
        while True:
            heard = self.heard()
            if heard & STOP:
                return True
            if RELOAD in heard:
                return False

    def close(self) -> None:
        """The handlers stay, and nothing is noted any more: the process is stopping already."""
        signal.set_wakeup_fd(-1)
        reading, writing, self._reading, self._writing = self._reading, self._writing, -1, -1
        os.close(reading)
        os.close(writing)


def hold_reloads() -> None:
    """SIGHUP waits until the signals are taken: by default it ends a process, and nothing has started yet."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (RELOAD,))


def fork() -> int:
    """`os.fork`; in the child, stop signals end the process again, and a reload waits until it takes signals itself.

    None is lost or noted by the wrong one of the two meanwhile. Only by the main thread. Raises OSError.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*STOP, RELOAD))
    try:
        process = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process
    signal.set_wakeup_fd(-1)
    for number in (*STOP, RELOAD, CHILD_ENDED):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)
    return 0


def _note_only(_number: int, _frame: FrameType | None) -> None:
    """Signals without a handler in Python are not noted."""
