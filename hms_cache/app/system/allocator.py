"""What the C library does with memory that was freed: it goes back to the system, and soon.

Two habits of glibc's allocator let a process stay as large as it ever was. When a large block is freed, the size from
which blocks are mapped by themselves grows up to 32 MiB, so that later messages and answers of megabytes come to lie
between small objects. And each thread that allocates beside others gets an arena of its own, up to eight per processor.
A crowd of clients whose messages take 64 MiB at a time made 450 MB of that within a minute.
"""

from __future__ import annotations

import ctypes
import resource
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from hms_cache.app.background import BackgroundTask

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Names of `mallopt`, from glibc's malloc.h."""

LARGE_BYTES: Final = 256 * 1024
"""Blocks from this size on are mapped, and given back when they are freed: messages in transit, large answers."""

ARENAS: Final = 2
"""The event loop allocates while one thread decodes or encodes; more seldom run at once."""

LOOK_INTERVAL_S: Final = 5.0
GROWTH_BYTES: Final = 16 * 1024 * 1024
"""Growth since the last look from which on it is worth a look at what is free: that takes some milliseconds, on a
thread of its own and without the interpreter's lock."""


def tune_allocator() -> None:
    """Fix the size of mapped blocks and the number of arenas. Elsewhere than on glibc nothing is done."""
    library = _glibc()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        library.mallopt(_ARENA_MAX, ARENAS)


class FreedMemory:
    """Work of a `BackgroundTask`: gives the system back what is free when the process has grown."""

    def __init__(self) -> None:
        self._library = _glibc()
        self._resident_bytes = resident_bytes()

    def look(self) -> float:
        """One look; the pause until the next, seconds."""
        if self._library is not None and resident_bytes() > self._resident_bytes + GROWTH_BYTES:
            self._library.malloc_trim(0)
            self._resident_bytes = resident_bytes()
        else:
            self._resident_bytes = min(self._resident_bytes, resident_bytes())
        return LOOK_INTERVAL_S


def keep_trimmed(starting: ExitStack) -> None:
    """Look at freed memory from now on, until the stack is closed."""
    task = BackgroundTask("hms-freed-memory", FreedMemory().look)
    task.start()
    starting.callback(task.stop, 1.0)


def resident_bytes() -> int:
    """Memory of this process that is in use, as the system counts it; 0 where /proc does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _glibc() -> Any:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
