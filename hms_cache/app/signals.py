"""Signals of a process, waited for by its main thread: stop (SIGTERM, SIGINT), reload (SIGHUP), end of a child."""

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
    """The C handler writes each signal to a pipe (`set_wakeup_fd`), on whatever thread the kernel interrupts: while one
    signal is being delivered to the main thread, the next goes to another thread, and would not end the main thread's
    wait. Python handlers would run only in the main thread, between any two instructions of a wait that may hold a
    lock."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def install(self, *others: signal.Signals) -> None:
        """Handles these signals from now on: stop, reload, and `others`, including a reload that was blocked. Only in
        the main thread."""
        # If the pipe is full, thousands of signals are waiting already.
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (*STOP, RELOAD, *others):
            signal.signal(number, _note_only)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOP, RELOAD))

    def received(self, timeout_s: float | None = None) -> frozenset[int]:
        """Waits for signals, at most `timeout_s`; returns those received."""
        ready, _, _ = select.select([self._reading], [], [], timeout_s)
        return frozenset(os.read(self._reading, select.PIPE_BUF)) if ready else frozenset()

    def received_or_readable(self, file: int, timeout_s: float) -> tuple[bool, frozenset[int]]:
        """Waits for the file or signals, at most `timeout_s`; returns whether the file is readable, and the signals
        received."""
        ready, _, _ = select.select([self._reading, file], [], [], timeout_s)
        received = frozenset(os.read(self._reading, select.PIPE_BUF)) if self._reading in ready else frozenset()
        return file in ready, received

    def wait(self) -> bool:
        """Waits for a stop (True) or a reload (False). Several reloads count as one, and a stop takes precedence."""
        while True:
            received = self.received()
            if received & STOP:
                return True
            if RELOAD in received:
                return False

    def close(self) -> None:
        """The handlers stay, but signals are ignored from now on: the process is stopping already."""
        signal.set_wakeup_fd(-1)
        reading, writing, self._reading, self._writing = self._reading, self._writing, -1, -1
        os.close(reading)
        os.close(writing)


def hold_reloads() -> None:
    """Blocks SIGHUP until `take`: by default it ends a process, and nothing has started yet."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (RELOAD,))


def fork() -> int:
    """`os.fork`. In the child, stop signals have their default action again, and a reload is blocked until it takes
    signals itself.

    No signal is lost or received by the wrong process meanwhile. Only in the main thread. Raises OSError.
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
    """Signals without a Python handler are not written to the pipe."""
