"""Common functions of processes that this program forks. Fork only while no other thread runs."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1

_WRITE_OUT_S = 5.0
"""Time limit for writing the last log lines: a disk or a pipe may be blocked."""


def end_with_parent(parent: int) -> None:
    """Makes the kernel send SIGTERM when the parent ends, for whatever reason: an orphan would not be supervised.

    `parent`: its process id, determined before the fork. A parent that has ended before this call causes no signal,
    which is checked.
    """
    with suppress(OSError, AttributeError):  # not Linux: only the parent's own signals end this process
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def show_crashes() -> None:
    """Writes the stacks of all threads to standard error if a hardware signal (such as SIGSEGV) ends this process or
    one that it forks: otherwise the location would be unknown."""
    with suppress(RuntimeError, ValueError, OSError, AttributeError):  # standard error is closed, or no file
        faulthandler.enable()


def ending(code: int) -> str:
    """Describes how a process ended, by its exit code; a negative one is the number of a signal."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"


def exit_process(status: int) -> NoReturn:
    """Ends this process immediately, after the log has been written as far as its reader accepts it.

    Skips Python's own shutdown, which would wait for threads that are blocked in a database or a directory, and would
    destroy the interpreter under threads for which it does not wait.
    """
    with suppress(RuntimeError):  # the system has no more threads
        writing = threading.Thread(target=_write_out, daemon=True)
        writing.start()
        writing.join(_WRITE_OUT_S)
    os._exit(status)


def _write_out() -> None:
    with suppress(Exception):
        logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # standard error is closed or missing
            stream.flush()
