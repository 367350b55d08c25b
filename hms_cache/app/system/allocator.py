"""Makes the C library return freed memory to the system.

Two features of glibc's allocator keep a process at its maximum size. When a large block is freed, the threshold from
which blocks are mapped separately grows up to 32 MiB, so that later messages and answers of megabytes are placed
between small objects. And each thread that allocates concurrently gets an arena of its own, up to eight per processor.
With many clients whose messages take 64 MiB at a time, this kept 450 MB within a minute.
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
"""Constants of `mallopt`, from glibc's malloc.h."""

LARGE_BYTES: Final = 256 * 1024
"""Blocks of this size and above are mapped, and returned when freed: messages in transit, large answers."""

ARENAS: Final = 2
"""The event loop allocates while one thread decodes or encodes; more concurrency is rare."""

CHECK_INTERVAL_S: Final = 5.0
GROWTH_BYTES: Final = 16 * 1024 * 1024
"""Growth since the last check from which on free memory is returned, which takes some milliseconds on a thread of its
own, without the interpreter's lock."""


def tune_allocator() -> None:
    """Sets the size of mapped blocks and the number of arenas. Without glibc nothing is done."""
    library = _glibc()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        library.mallopt(_ARENA_MAX, ARENAS)


class FreedMemory:
    """Work of a `BackgroundTask`: returns free memory to the system if the process has grown."""

    def __init__(self) -> None:
        self._library = _glibc()
        self._resident_bytes = resident_bytes()

    def check(self) -> float:
        """Checks once; returns the pause until the next check in seconds."""
        if self._library is not None and resident_bytes() > self._resident_bytes + GROWTH_BYTES:
            self._library.malloc_trim(0)
            self._resident_bytes = resident_bytes()
        else:
            self._resident_bytes = min(self._resident_bytes, resident_bytes())
        return CHECK_INTERVAL_S


def keep_trimmed(starting: ExitStack) -> None:
    """Returns freed memory from now on, until the stack is closed."""
    task = BackgroundTask("hms-freed-memory", FreedMemory().check)
    task.start()
    starting.callback(task.stop, 1.0)


def resident_bytes() -> int:
    """Resident memory of this process; 0 if /proc does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _glibc() -> Any:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
