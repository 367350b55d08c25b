"""Files in memory that the processes of one directory share: what is equal is held once.

A file is named by a digest of what is in it, found by a symbolic link of that name, and sealed: nobody can change it
any more, not even who made it. The kernel frees it when the last process has let go of it, however that ended, so
nothing is left behind and nothing is counted here.

Nobody trusts a name: whoever finds a file compares it with what it holds itself, byte by byte, and takes it only where
both are equal. A file that another process hands over as an open file (`adopt`) is no name: it is what was read.
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
"""Where each run begins: arrays of any number are aligned so, and lie in cache lines of their own."""

OPEN_FILES_EACH: Final = 2
"""Open files of the process that a file costs at most: its own, and the one that a mapping keeps for itself."""

REST_S: Final = 60.0
"""After the system gave no file: to look for one costs some milliseconds a block, and memory is not found at once."""

_LOOSE_LINKS: Final = 1_000
"""Links of files that are gone, kept until the next file is wanted; beyond them the oldest stay behind, and mislead
nobody."""

_IN_MEMORY: Final = "/memfd:"
"""What Linux calls such files begins so."""

_PIECE_BYTES: Final = 1024 * 1024
"""Compared at once: a copy of so much is made meanwhile."""


def is_available() -> bool:
    """Whether this system has such files: Linux does."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS") and os.path.exists("/proc/self/fd")


def places_of(runs: Sequence[memoryview]) -> tuple[list[int], int]:
    """Where each run begins in a file of all of them, and how long it is."""
    places, end = [], 0
    for run in runs:
        places.append(end)
        end = -(-(end + run.nbytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return places, max(end, 1)


@frozen
class NewFile:
    """A sealed file in memory that nobody has a name for yet."""

    file: int
    """Open in this process."""
    name: str
    """A digest of what is in it."""
    size: int


def make_file(runs: Sequence[memoryview]) -> NewFile:
    """A file with these runs of bytes at their places (`places_of`). Raises OSError, ValueError: there is no memory."""
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
    """The files of one process. Thread-safe, but for two threads that hold the same at once: both then have a file."""

    def __init__(self, directory: Path, max_files: int, now_s: Callable[[], float] = time.monotonic) -> None:
        """`directory`: only this user may enter it. `max_files`: that this process holds at once."""
        self._now_s = now_s
        self._rests_until_s = float("-inf")
        self._directory = directory
        self._max_files = max_files
        self._loose: deque[str] = deque(maxlen=_LOOSE_LINKS)
        """Names whose files this process has let go of."""
        self._held: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._lock = threading.Lock()
        """Guards `_held`."""
        self.made = 0
        self.found = 0
        """Files that this process made, and those that another one had made."""
        self.refused = 0
        """Times that none was to be had: too many are held, or the system gave no memory."""

    @property
    def is_at_rest(self) -> bool:
        """Whether no file is to be had now: as many are held as may be, or the system gave none a moment ago."""
        return len(self._held) >= self._max_files or self._now_s() < self._rests_until_s

    @property
    def bytes(self) -> int:
        """What the files that it holds take; whoever holds them, too, counts them as well."""
        with self._lock:
            return sum(map(len, self._held))

    def hold(self, runs: Sequence[memoryview]) -> mmap.mmap | None:
        """A mapping of a file with these runs of bytes at their places (`places_of`); None: there is none to be had.

        Each page that is written to is copied for this process alone. The mapping lives as long as anything that looks
        into it.
        """
        self._remove_loose_links()
        if self.is_at_rest:
            self.refused += 1
            return None
        places, size = places_of(runs)
        path = self._directory / _name_of(runs)
        mapped = self._find(path, runs, places, size)
        if mapped is None:
            try:
                mapped = self._make(path, runs, places, size)
            except (OSError, ValueError) as error:
                _log.warning("no memory is shared for %g s: %s", REST_S, error)
                self._rests_until_s = self._now_s() + REST_S
                self.refused += 1
                return None
        with self._lock:
            self._held.add(mapped)
        return mapped

    def _find(self, path: Path, runs: Sequence[memoryview], places: list[int], size: int) -> mmap.mmap | None:
        """What another process, or this one, made of the same."""
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
        self.found += 1
        return mapped

    def adopt(self, new: NewFile) -> mmap.mmap | None:
        """A mapping, as `hold` gives it, of a file that another process made and that is this one's to close; None:
        this process may hold no more, or the file is not sealed or not as long as it should be.

        Others that hold the same find it by its name from now on. Ends the caller's use of the open file.
        """
        self._remove_loose_links()
        try:
            if self.is_at_rest or not _is_sealed(new.file) or os.fstat(new.file).st_size != new.size:
                self.refused += 1
                os.close(new.file)
                return None
            mapped = mmap.mmap(new.file, new.size, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            self.refused += 1
            os.close(new.file)
            return None
        path = self._directory / new.name
        try:
            os.symlink(_target_of(new.file), path)
        except OSError:
            if os.path.exists(path):  # another process shows it to all
                os.close(new.file)
                new = replace(new, file=-1)
            else:
                self._replace_link(path, _target_of(new.file))
        if new.file >= 0:
            self._keep_open(mapped, new.file, new.name)
        self.found += 1
        with self._lock:
            self._held.add(mapped)
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
            # Somebody was faster, or has ended and left the link.
            found = self._find(path, runs, places, size)
            if found is not None:
                mapped.close()
                os.close(file)
                return found
            self._replace_link(path, target)
        except OSError as error:  # it is this process's alone
            _log.debug("a file in memory is not shared: %s", error)
        self.made += 1
        self._keep_open(mapped, file, path.name)
        return mapped

    def _keep_open(self, mapped: mmap.mmap, file: int, name: str) -> None:
        """As long as the mapping lives, so that others can open it by its number."""
        weakref.finalize(mapped, _let_go, file, name, self._loose).atexit = False

    def _replace_link(self, path: Path, target: str) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):
            new.unlink(missing_ok=True)
            os.symlink(target, new)
            os.replace(new, path)

    def _remove_loose_links(self) -> None:
        """Those that lead to a file of this process which is gone. What leads elsewhere is another one's by now."""
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
    """A file in memory that a link leads to, open for reading. Raises OSError: it leads to something else.

    It may lead to anything by now, as its maker may have ended, or let go of the file and opened another one under the
    same number. Nothing else is opened: a pipe would wait for a writer, and closing a database of SQLite again would
    take away the locks that this process has on it.
    """
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)  # not opened yet: what it is can be asked, no more
    try:
        itself = f"/proc/self/fd/{found}"
        if not os.readlink(itself).startswith(_IN_MEMORY):
            raise OSError(errno.EBADF, "no file in memory", str(path))
        return os.open(itself, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(found)


def _target_of(file: int) -> str:
    """What a link leads to that shows an open file of this process to others."""
    return f"/proc/{os.getpid()}/fd/{file}"


def _let_go(file: int, name: str, loose: deque[str]) -> None:
    """When the last that looked into a mapping is gone: the memory is given back at once. It may be under the cache's
    lock; the link waits, as it may be on a disk."""
    os.close(file)
    loose.append(name)


def _name_of(runs: Sequence[memoryview]) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for run in runs:
        digest.update(run.nbytes.to_bytes(8, "big"))
        digest.update(run)
    return digest.hexdigest()


def _is_sealed(file: int) -> bool:
    """Whether nobody can change it any more. Raises OSError for what is no file in memory."""
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
