"""Files in memory that the processes of one directory share, so that equal data is held once.

A file is named by a digest of its contents, found by a symbolic link of that name, and sealed: nobody can change it any
more, not even its creator. The kernel frees it when the last process closes it, however that process ended, so nothing
is left behind and nothing is counted here.

Names are not trusted: a process that finds a file compares it, byte by byte, with its own data, and uses it only if
both are equal. A file that another process hands over as an open file (`adopt`) needs no name: its contents are what
was read.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import mmap
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from hms_cache.values import frozen

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)

ALIGNMENT_BYTES: Final = 64
"""Alignment of each run: arrays of any numbers are aligned, and begin with a cache line of their own."""

OPEN_FILES_EACH: Final = 2
"""Open files that a file costs a process at most: its own, and one that a mapping keeps."""

RETRY_PAUSE_S: Final = 60.0
"""How long none is requested after the system gave no file. Looking for one takes some milliseconds a block, and memory
is not freed at once."""

_LOOSE_LINKS: Final = 1_000
"""Links to closed files that are kept until the next file is needed. Beyond them, the oldest are left behind, which
does no harm."""

_IN_MEMORY: Final = "/memfd:"
"""Prefix of Linux's names for such files."""

_PIECE_BYTES: Final = 1024 * 1024
"""Bytes compared at a time: a copy of this size is made meanwhile."""


def is_available() -> bool:
    """Whether this system has such files: Linux has."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS") and os.path.exists("/proc/self/fd")


def places_of(runs: Sequence[memoryview]) -> tuple[list[int], int]:
    """Start and length of each run in a file that contains all of them."""
    places, end = [], 0
    for run in runs:
        places.append(end)
        end = -(-(end + run.nbytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return places, max(end, 1)


@frozen
class NewFile:
    """A sealed file in memory that has no name yet."""

    file: int
    """Its descriptor in this process."""
    name: str
    """A digest of its contents."""
    size: int


def make_file(runs: Sequence[memoryview]) -> NewFile:
    """A file with these runs of bytes at their places (`places_of`). Raises OSError or ValueError if there is no
    memory."""
    places, size = places_of(runs)
    name = _name_of(runs)
    file = os.memfd_create(name[:16], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size)
        for place, run in zip(places, runs, strict=True):
            _write(file, place, run)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(file)
        raise
    return NewFile(file, name, size)


class MemoryFiles:
    """The files of one process. Thread-safe, except that two threads which hold the same data at once may create two
    files."""

    def __init__(self, directory: Path, max_files: int, now_s: Callable[[], float] = time.monotonic) -> None:
        """`directory`: only this user may enter it. `max_files`: number of files that this process holds at once."""
        self._now_s = now_s
        self._paused_until_s = float("-inf")
        self._directory = directory
        self._max_files = max_files
        self._loose: deque[str] = deque(maxlen=_LOOSE_LINKS)
        """Names of files that this process has closed."""
        self._mappings: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._lock = threading.Lock()
        """Guards `_mappings`."""
        self.created = 0
        self.reused = 0
        """Files created by this process, and files that another one had created."""
        self.failed = 0
        """How often no file was available: too many are held, or the system gave no memory."""

    @property
    def is_paused(self) -> bool:
        """Whether no file is available now: the maximum is held, or the system refused one a moment ago."""
        return len(self._mappings) >= self._max_files or self._now_s() < self._paused_until_s

    @property
    def bytes(self) -> int:
        """Bytes of the files that it holds. Other processes that hold them count them as well."""
        with self._lock:
            return sum(map(len, self._mappings))

    def hold(self, runs: Sequence[memoryview]) -> mmap.mmap | None:
        """A mapping of a file with these runs of bytes at their places (`places_of`); None: no file is available.

        A page that is written to is copied for this process. The mapping lives as long as anything refers to it.
        """
        self._remove_loose_links()
        if self.is_paused:
            self.failed += 1
            return None
        places, size = places_of(runs)
        path = self._directory / _name_of(runs)
        mapped = self._find(path, runs, places, size)
        if mapped is None:
            try:
                mapped = self._make(path, runs, places, size)
            except (OSError, ValueError) as error:
                _log.warning("no memory is shared for %g s: %s", RETRY_PAUSE_S, error)
                self._paused_until_s = self._now_s() + RETRY_PAUSE_S
                self.failed += 1
                return None
        with self._lock:
            self._mappings.add(mapped)
        return mapped

    def _find(self, path: Path, runs: Sequence[memoryview], places: list[int], size: int) -> mmap.mmap | None:
        """The same data in a file of this process or of another one."""
        try:
            file = _open_in_memory(path)
        except OSError:
            return None
        try:
            if not _is_sealed(file) or os.fstat(file).st_size != size:
                return None
            mapped = mmap.mmap(file, size, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            return None
        finally:
            os.close(file)
        if not all(_is_at(mapped, place, run) for place, run in zip(places, runs, strict=True)):
            return None
        self.reused += 1
        return mapped

    def adopt(self, new: NewFile) -> mmap.mmap | None:
        """A mapping, as from `hold`, of a file that another process created and that this one must close; None: this
        process may hold no more files, or the file is not sealed or does not have the expected length.

        Other processes with the same data find it by its name from now on. The caller must not use the open file any
        more.
        """
        self._remove_loose_links()
        try:
            if self.is_paused or not _is_sealed(new.file) or os.fstat(new.file).st_size != new.size:
                self.failed += 1
                os.close(new.file)
                return None
            mapped = mmap.mmap(new.file, new.size, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            self.failed += 1
            os.close(new.file)
            return None
        path = self._directory / new.name
        try:
            os.symlink(_target_of(new.file), path)
        except OSError:
            if os.path.exists(path):  # another process publishes it
                os.close(new.file)
                new = replace(new, file=-1)
            else:
                self._replace_link(path, _target_of(new.file))
        if new.file >= 0:
            self._keep_open(mapped, new.file, new.name)
        self.reused += 1
        with self._lock:
            self._mappings.add(mapped)
        return mapped

    def _make(self, path: Path, runs: Sequence[memoryview], places: list[int], size: int) -> mmap.mmap:
        """Raises OSError, ValueError."""
        file = make_file(runs).file
        try:
            mapped = mmap.mmap(file, size, access=mmap.ACCESS_COPY)
        except BaseException:
            os.close(file)
            raise
        target = _target_of(file)
        try:
            os.symlink(target, path)
        except FileExistsError:
            # Another process was faster, or has ended and left the link.
            found = self._find(path, runs, places, size)
            if found is not None:
                mapped.close()
                os.close(file)
                return found
            self._replace_link(path, target)
        except OSError as error:  # it belongs to this process alone
            _log.debug("a file in memory is not shared: %s", error)
        self.created += 1
        self._keep_open(mapped, file, path.name)
        return mapped

    def _keep_open(self, mapped: mmap.mmap, file: int, name: str) -> None:
        """While the mapping lives, others can open it by its number."""
        weakref.finalize(mapped, _let_go, file, name, self._loose).atexit = False

    def _replace_link(self, path: Path, target: str) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):
            new.unlink(missing_ok=True)
            os.symlink(target, new)
            os.replace(new, path)

    def _remove_loose_links(self) -> None:
        """Removes links to a file of this process that is closed. A link that leads elsewhere belongs to another
        process by now."""
        while self._loose:
            try:
                name = self._loose.popleft()
            except IndexError:  # another thread was faster
                return
            path = self._directory / name
            with suppress(OSError):
                if os.readlink(path).startswith(f"/proc/{os.getpid()}/") and not os.path.exists(path):
                    path.unlink()


_SEALS: Final = (
    (fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    if hasattr(fcntl, "F_ADD_SEALS")
    else 0
)


def _open_in_memory(path: Path) -> int:
    """A file in memory that a link leads to, open for reading. Raises OSError if it leads to something else.

    It may lead to anything: its creator may have ended, or closed the file and opened another one under the same
    number. Nothing else is opened, since a pipe would wait for a writer, and closing a SQLite database again would
    release this process's locks on it.
    """
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)  # not opened yet: only its kind can be read
    try:
        itself = f"/proc/self/fd/{found}"
        if not os.readlink(itself).startswith(_IN_MEMORY):
            raise OSError(errno.EBADF, "no file in memory", str(path))
        return os.open(itself, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(found)


def _target_of(file: int) -> str:
    """The target of a link by which others find an open file of this process."""
    return f"/proc/{os.getpid()}/fd/{file}"


def _let_go(file: int, name: str, loose: deque[str]) -> None:
    """Called when nothing refers to a mapping any more: the memory is freed at once. The cache's lock may be held.
    Removing the link is deferred, since it may be on a disk."""
    os.close(file)
    loose.append(name)


def _name_of(runs: Sequence[memoryview]) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for run in runs:
        digest.update(run.nbytes.to_bytes(8, "big"))
        digest.update(run)
    return digest.hexdigest()


def _is_sealed(file: int) -> bool:
    """Whether nobody can change it any more. Raises OSError if it is not a file in memory."""
    return fcntl.fcntl(file, fcntl.F_GET_SEALS) & _SEALS == _SEALS


def _is_at(mapped: mmap.mmap, place: int, run: memoryview) -> bool:
    for first in range(0, run.nbytes, _PIECE_BYTES):
        piece = run[first : first + _PIECE_BYTES]
        if mapped[place + first : place + first + piece.nbytes] != piece:
            return False
    return True


def _write(file: int, place: int, run: memoryview) -> None:
    while run:
        written = os.pwrite(file, run[:_PIECE_BYTES], place)
        run, place = run[written:], place + written
