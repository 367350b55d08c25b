"""Operations of `local_files` on many directories in one call.

Each handles, in order, as many as it can begin before its deadline, at least one. An error of one does not affect the
others.
"""

from __future__ import annotations

import errno
import posixpath
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypeVar

from hms_cache.store.warehouse import local_files
from hms_cache.store.warehouse.local_files import SymlinkLeadsOutside

T = TypeVar("T")
U = TypeVar("U")
Place = tuple[str, Sequence[str]]
"""A path, and the roots of which one must contain it."""


def delete_each(places: Sequence[Place], *, deadline_s: float) -> list[OSError | None]:
    """`local_files.delete` for each path that is inside its roots with links resolved; SymlinkLeadsOutside for others.

    The parent directory of consecutive paths is resolved and opened once. None is begun after `deadline_s` of
    `time.monotonic`.
    """
    opened = _OpenedParent()

    def delete(place: Place) -> OSError | None:
        path, roots = place
        directory, name = posixpath.split(path)
        try:
            parent = opened.of(directory, roots)
            if parent is not None:
                if local_files.is_link(parent, name):
                    _require_within(place)
                local_files.delete_in(parent, name)
        except OSError as error:
            return error
        return None

    try:
        return _in_time(delete, places, deadline_s)
    finally:
        opened.close()


class _OpenedParent:
    """The opened parent directory of the previous path."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._key: Place | None = None
        self._directory: int | None = None

    def of(self, directory: str, roots: Sequence[str]) -> int | None:
        """Opens the directory; None if it does not exist. Raises SymlinkLeadsOutside."""
        if self._key != (directory, roots):
            self.close()
            try:
                self._directory = self._stack.enter_context(local_files.directory_within(directory, roots))
            except (FileNotFoundError, NotADirectoryError):
                self._directory = None
            self._key = directory, roots
        return self._directory

    def close(self) -> None:
        """Closes it."""
        self._stack.close()
        self._key = None


def move_aside_each(moves: Sequence[tuple[Place, Place]], *, deadline_s: float) -> list[bool | OSError]:
    """Renames each source to its destination, with the time in milliseconds appended if that name is taken.

    True if it was renamed or did not exist; False if the destination is on another mount. None is begun after
    `deadline_s` of `time.monotonic`.
    """

    def move(pair: tuple[Place, Place]) -> bool | OSError:
        source, (goal, goal_roots) = pair
        try:
            _require_within(source)
            if not local_files.exists(*source):
                return True
            if local_files.exists(goal, goal_roots):
                # Hadoop's TrashPolicyDefault distinguishes repeated drops of one path in the same way.
                goal = posixpath.join(posixpath.dirname(goal), posixpath.basename(goal) + str(time.time_ns() // 10**6))
            return local_files.rename(source[0], goal, source[1], goal_roots, may_copy=False)
        except OSError as error:
            return error

    return _in_time(move, moves, deadline_s)


def remove_empty_each(places: Sequence[Place], *, deadline_s: float) -> list[OSError | None]:
    """`local_files.remove_empty_directory` for each. None is begun after `deadline_s` of `time.monotonic`."""

    def remove(place: Place) -> OSError | None:
        try:
            local_files.remove_empty_directory(*place)
        except OSError as error:
            return error
        return None

    return _in_time(remove, places, deadline_s)


def _in_time(operation: Callable[[U], T], items: Sequence[U], deadline_s: float) -> list[T]:
    done: list[T] = []
    for item in items:
        if done and time.monotonic() > deadline_s:
            break
        done.append(operation(item))
    return done


def _require_within(place: Place) -> None:
    path, roots = place
    if not local_files.is_within(path, roots):
        raise SymlinkLeadsOutside(errno.EPERM, "A symbolic link leads out of warehouse.allowed_locations", path)
