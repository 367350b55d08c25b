"""What the processes that this program forks have in common. Fork only while no other thread runs."""

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
"""How long the last lines may take: a disk or a pipe may not take them at all."""


def end_with_parent(parent: int) -> None:
    """Has the kernel send SIGTERM when the parent is gone, however it went: nobody would watch over this process.

    `parent`: its process id, asked for before the fork. One that is gone already sends nothing any more.
    """
    with suppress(OSError, AttributeError):  # not Linux: the parent's own signals have to do
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def show_crashes() -> None:
    """Has the stacks of all threads written to standard error when a signal of the hardware ends this process, or one
    that it forks: nothing else would tell where that was."""
    with suppress(RuntimeError, ValueError, OSError, AttributeError):  # standard error is closed, or no file
        faulthandler.enable()


def ending(code: int) -> str:
    """How a process ended, in words, from its exit code: below 0 it is the number of a signal."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"


def leave(status: int) -> NoReturn:
    """Ends this process at once; what was logged is written, unless whoever takes it does not.

    Without Python's own end, which waits for threads that still wait for a database or a directory, and takes the
    interpreter down under those that it does not wait for.
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
        with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()
