"""Points of a write at which a test can kill the process by SIGKILL, to examine what is left.

Without effect in a server: no setting and no environment variable enables them. Only a test program that calls `arm`
before it starts the server does. The file named in that call then says at which point to die.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path


class CrashPoint(StrEnum):
    """The step of a write after which the process dies. `docs/operations.md` lists what each leaves behind."""

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
"""Set once by `arm`, before any thread starts."""


def arm(orders: Path) -> None:
    """For test programs: the process dies at the point that the file `orders` names, once that file exists."""
    global _orders
    _orders = orders


def crash_point(point: CrashPoint) -> None:
    """Kills the process if a test has armed this point."""
    if _orders is None:
        return
    try:
        ordered = _orders.read_text()
    except FileNotFoundError:
        return
    if ordered == point:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
