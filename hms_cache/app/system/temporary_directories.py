"""Directories through which the processes of a server find each other, and which are removed even after a kill."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_LOCK = ".in-use"
"""Locked as long as a process lives for which the directory was created: its creator and the processes that it
forked."""


@contextmanager
def temporary_directory(prefix: str, parent: str) -> Iterator[Path]:
    """A new directory for this user only. Removes directories of killed servers. Raises OSError.

    Processes forked meanwhile keep it in use.
    """
    with ExitStack() as stack:
        _remove_leftovers(parent, prefix)
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)
        directory = Path(stack.enter_context(made))
        with suppress(OSError):  # on a file system without locks, such directories stay
            _lock(directory, stack)
        yield directory


def _lock(directory: Path, stack: ExitStack) -> None:
    """The file never exists unlocked under its name: an unlocked file belongs to no process."""
    unnamed = directory / f"{_LOCK}.new"
    file = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
    stack.callback(os.close, file)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(directory / _LOCK)


def _remove_leftovers(parent: str, prefix: str) -> None:
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                if found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077:
                    _remove_unless_in_use(entry.path)


def _remove_unless_in_use(directory: str) -> None:
    with suppress(OSError):  # without the file: of another program, or being created
        file = os.open(os.path.join(directory, _LOCK), os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(file)
