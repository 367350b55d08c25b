"""Named moments of a write at which a test lets the process die by SIGKILL, to see what is left.

Inert in a server: no setting and no environment variable switches it on. Only a program that calls `arm` itself before
it starts the server does, and then only the file that it names says where to die.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path


class CrashPoint(StrEnum):
    """Between which steps of a write. `docs/operations.md` says what is left after each."""

    DIRECTORY_MADE = "directory-made"
    FILE_WRITTEN = "file-written"
    MOVE_RECORDED = "move-recorded"
    DESTINATION_MADE = "destination-made"
    DIRECTORY_MOVED = "directory-moved"
    DIRECTORY_COPIED = "directory-copied"
    UNDO_BEGUN = "undo-begun"
    BEFORE_COMMIT = "before-commit"
    AFTER_COMMIT = "after-commit"
    SET_ASIDE = "set-aside"
    DELETED = "deleted"


_orders: Path | None = None
"""Set once by `arm`, before any thread is started."""


def arm(orders: Path) -> None:
    """For test programs: die at the point whose name is the content of this file, as soon as the file is there."""
    global _orders
    _orders = orders


def crash_point(point: CrashPoint) -> None:
    """Dies here if a test has ordered it."""
    if _orders is None:
        return
    try:
        ordered = _orders.read_text()
    except FileNotFoundError:
        return
    if ordered == point:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
