"""Deletes directories, or moves them to the trash, many at once.

Running an operation in a thread with a time limit costs more than deleting a directory on a local disk. So one
operation handles up to 250 directories of one file system. It also checks, directly before the deletion, that no
symbolic link leads out of the roots.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hms_cache.store.warehouse import local_batches, remote_files
from hms_cache.store.warehouse.allowed import AllowedLocation
from hms_cache.store.warehouse.deadlines import MOVE_TIMEOUT, TIMEOUT
from hms_cache.store.warehouse.locations import Location
from hms_cache.store.warehouse.mounts import file_system_of
from hms_cache.system_user import system_user
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

if TYPE_CHECKING:
    from hms_cache.store.warehouse.warehouse import Warehouse

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

AT_ONCE = 250
"""Maximum number of directories in one operation. An operation that has begun is completed, even if its caller gives
up."""

Failures = dict[AllowedLocation, Exception]
"""The directories that could not be deleted, and the errors."""


class Deletions:
    """Deletes directories of a warehouse. Thread-safe; holds no lock."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._settings = warehouse.settings
        self._file_systems = warehouse.file_systems

    def delete(self, locations: Sequence[AllowedLocation], *, skip_trash: bool) -> Failures:
        """Deletes the directories with their contents, or moves them to the trash. Missing directories are no error.

        The root of a file system, or a directory that is itself an allowed location, fails. So does one from which a
        symbolic link leads out of its roots (`SymlinkLeadsOutside`).
        """
        failures: Failures = {}
        by_file_system: dict[str, list[AllowedLocation]] = {}
        for location in dict.fromkeys(locations):
            if location.location.is_root:
                failures[location] = MetaException(f"Refusing to delete the root of a file system: {location}")
            elif not location.is_below_root:
                failures[location] = MetaException(
                    f"Refusing to delete a directory of the warehouse itself: {location}"
                )
            else:
                by_file_system.setdefault(file_system_of(location), []).append(location)
        for file_system, some in by_file_system.items():
            try:
                # Has the short time limit, so that an unresponsive file system is detected quickly.
                is_first_there = self._warehouse.exists(some[0])
            except MetaException as error:
                failures.update(dict.fromkeys(some, error))
                continue
            requested = some if is_first_there else some[1:]
            if self._settings.trash_interval_min > 0 and not skip_trash:
                requested = self._put_into_trash(file_system, requested, failures)
            self._delete(file_system, requested, failures)
        return failures

    def remove_empty(self, locations: Sequence[AllowedLocation]) -> None:
        """Removes those of the directories that are empty, in order. Failures are logged."""
        failures: Failures = {}
        by_file_system: dict[str, list[AllowedLocation]] = {}
        for location in dict.fromkeys(locations):
            by_file_system.setdefault(file_system_of(location), []).append(location)
        for file_system, requested in by_file_system.items():
            self._in_batches(file_system, "remove", "Cannot remove", requested, self._remove_some, failures)
        for location, error in failures.items():
            _LOG.warning("cannot remove the empty directory %s: %s", location, _text(error))

    def _delete(self, file_system: str, requested: Sequence[AllowedLocation], failures: Failures) -> None:
        self._in_batches(
            file_system,
            "delete",
            "Failed to delete directory:",
            requested,
            self._delete_some,
            failures,
            timeout_s=self._settings.file_move_timeout_s,
            setting=MOVE_TIMEOUT,
        )

    def _delete_some(self, some: Sequence[AllowedLocation], deadline_s: float) -> Sequence[Exception | None]:
        if some[0].is_local:
            return local_batches.delete_each(_places(some), deadline_s=deadline_s)
        return self._remote_each(remote_files.delete_each, some, deadline_s)

    def _remove_some(self, some: Sequence[AllowedLocation], deadline_s: float) -> Sequence[Exception | None]:
        if some[0].is_local:
            return local_batches.remove_empty_each(_places(some), deadline_s=deadline_s)
        return self._remote_each(remote_files.remove_empty_each, some, deadline_s)

    def _remote_each(
        self, operation: remote_files.BatchOperation, some: Sequence[AllowedLocation], deadline_s: float
    ) -> list[Exception | None]:
        """Applies the operation to each. If the driver does not accept a path, the result is that error."""
        file_system: Any = None
        answers: list[Exception | None] = []
        numbers: list[int] = []
        paths: list[str] = []
        for number, each in enumerate(some):
            answers.append(None)
            try:
                file_system, path = self._file_systems.open(each.location)
            except MetaException as error:
                answers[number] = error
            else:
                numbers.append(number)
                paths.append(path)
        found = operation(file_system, paths, deadline_s=deadline_s) if paths else []
        for number, answer in zip(numbers, found, strict=False):
            answers[number] = answer
        return answers if len(found) == len(paths) else answers[: numbers[len(found)]]

    def _in_batches(
        self,
        file_system: str,
        operation: str,
        failure: str,
        requested: Sequence[AllowedLocation],
        work: Callable[[Sequence[AllowedLocation], float], Sequence[T | Exception]],
        failures: Failures,
        *,
        timeout_s: float | None = None,
        setting: str = TIMEOUT,
    ) -> list[tuple[AllowedLocation, T]]:
        """Runs the work in batches and returns its results, without those that failed.

        No directory is begun after `file_timeout_s` or half of the time limit; the rest is left to the next batch.
        """
        found: list[tuple[AllowedLocation, T]] = []
        limit_s = timeout_s or self._settings.file_timeout_s
        slice_s = min(self._settings.file_timeout_s, limit_s / 2)
        start = 0
        while start < len(requested):
            some = requested[start : start + AT_ONCE]
            try:
                answers = self._warehouse.run_operation(
                    file_system,
                    operation,
                    f"{failure} {some[0]}",
                    partial(_within, work, some, slice_s),
                    timeout_s=limit_s,
                    setting=setting,
                )
            except MetaException as error:
                failures.update(dict.fromkeys(some, error))
                start += len(some)
                continue
            for location, answer in zip(some, answers, strict=False):
                if isinstance(answer, Exception):
                    failures[location] = answer
                else:
                    found.append((location, answer))
            start += len(answers)
        return found

    # The trash

    def _put_into_trash(
        self, file_system: str, requested: Sequence[AllowedLocation], failures: Failures
    ) -> list[AllowedLocation]:
        """Moves the directories to the trash. Returns those that lie in it already, which are to be deleted."""
        in_trash: list[AllowedLocation] = []
        goals: dict[AllowedLocation, AllowedLocation] = {}
        for location in requested:
            try:
                goal = self._location_in_trash(location)
            except MetaException as error:
                failures[location] = error
                continue
            if goal is None:
                in_trash.append(location)
            else:
                goals[location] = goal
        others = list(goals)
        if others and others[0].is_local:
            moved = self._in_batches(
                file_system,
                "move",
                "Unable to move to the trash:",
                others,
                lambda some, deadline_s: local_batches.move_aside_each(
                    list(zip(_places(some), _places([goals[each] for each in some]), strict=True)),
                    deadline_s=deadline_s,
                ),
                failures,
            )
            others = [location for location, is_moved in moved if not is_moved]
        for location in others:
            try:
                if self._warehouse.exists(location):
                    self._warehouse.move(location, self._free_location(goals[location]))
            except MetaException as error:
                failures[location] = error
        return in_trash

    def trash_directory(self, location: Location) -> Location:
        """The trash directory on the location's file system."""
        if self._settings.trash_directory:
            return Location.parse(self._settings.trash_directory, location)
        home = str(Path.home()) if location.scheme == "file" else f"/user/{system_user()}"
        return Location(location.scheme, location.authority, home).child(".Trash")

    def _location_in_trash(self, location: AllowedLocation) -> AllowedLocation | None:
        """The location in the trash to which it is moved; None if it is in the trash already."""
        trash = self.trash_directory(location.location)
        if location.location.is_inside(trash):
            return None
        if trash.is_inside(location.location):
            raise MetaException(f"Cannot move {location} to the trash, as it contains the trash")
        return AllowedLocation(trash.child("Current").resolve(location.location.path.lstrip("/")), (trash,))

    def _free_location(self, place: AllowedLocation) -> AllowedLocation:
        if not self._warehouse.exists(place):
            return place
        # Hadoop's TrashPolicyDefault appends the time in milliseconds to distinguish repeated drops of one path.
        name = place.location.name + str(time.time_ns() // 1_000_000)
        return AllowedLocation(place.location.parent.child(name), place.roots)


def raise_first(failures: Failures) -> None:
    """Raises a MetaException with the first failure and the number of others, if there is any."""
    for location, error in failures.items():
        others = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
        if isinstance(error, MetaException):
            raise MetaException(f"{error.message}{others}") from error
        raise MetaException(f"Failed to delete directory: {location}: {error}{others}") from error


def _within(
    work: Callable[[Sequence[AllowedLocation], float], Sequence[T]], some: Sequence[AllowedLocation], slice_s: float
) -> Sequence[T]:
    return work(some, time.monotonic() + slice_s)


def _places(locations: Sequence[AllowedLocation]) -> list[local_batches.Place]:
    return [(each.location.path, each.root_paths) for each in locations]


def _text(error: Exception) -> str:
    return str(error.message if isinstance(error, MetaException) else error)
