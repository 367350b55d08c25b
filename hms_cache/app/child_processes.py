"""What the processes that this program forks have in common. Fork only while no other thread runs."""

from __future__ import annotations

import ctypes
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Has the kernel send SIGTERM when the parent is gone, however it went: nobody would watch over this process."""
    with suppress(OSError, AttributeError):  # not Linux: the parent's own signals have to do
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
