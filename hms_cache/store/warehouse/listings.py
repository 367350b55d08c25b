"""Lists directories: number, size and names of their files.

As for deletions, one operation handles up to 250 directories of one file system. Listings have their own limits.

Facts: `MetaStoreServerUtils.populateQuickStats` of Hive 3.1 and 4.0.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from hms_cache.batches import batches
from hms_cache.metrics import TallyFamily
from hms_cache.store.warehouse import local_files, remote_files
from hms_cache.store.warehouse.allowed import AllowedLocation
from hms_cache.store.warehouse.deadlines import DIRECTORIES_AT_ONCE
from hms_cache.store.warehouse.local_files import ListingTooLong
from hms_cache.store.warehouse.mounts import file_system_of, mount_of
from hms_cache.store.warehouse.waits import MOVE_WAITS, current_waits
from hms_cache.values import frozen

if TYPE_CHECKING:
    from hms_cache.store.warehouse.warehouse import Warehouse

_LOG = logging.getLogger(__name__)


@frozen
class DirectoryStatistics:
    """Number and total size of the visible files below a directory."""

    file_count: int
    total_size_bytes: int


Files = Generator[tuple[str, int], None, None]
"""Path below the directory, and size, of each visible file."""


class _Limits(TypedDict):
    max_entries: int
    deadline_s: float


class Listings:
    """Lists directories of a warehouse. Thread-safe; holds no lock."""

    def __init__(self, warehouse: Warehouse, operations: TallyFamily) -> None:
        self._warehouse = warehouse
        self._settings = warehouse.settings
        self._file_systems = warehouse.file_systems
        self._operations = operations

    def directory_statistics(self, locations: Sequence[AllowedLocation]) -> list[DirectoryStatistics | None]:
        """Like `Warehouse.directory_statistics` for each, in order; on this machine many within one time limit."""
        found: list[DirectoryStatistics | None] = [None] * len(locations)
        by_mount: dict[str, list[int]] = {}
        for index, location in enumerate(locations):
            if location.is_local:
                by_mount.setdefault(mount_of(location.location.path), []).append(index)
            else:
                found[index] = self._count([location])[0]
        for indexes in by_mount.values():
            while indexes:
                counted = self._count([locations[index] for index in indexes[:DIRECTORIES_AT_ONCE]])
                for index, each in zip(indexes, counted, strict=False):
                    found[index] = each
                indexes = indexes[len(counted) :]
        return found

    def unexpected_file(self, locations: Sequence[AllowedLocation], expected: re.Pattern[str]) -> str | None:
        """See `Warehouse.unexpected_file`."""
        by_system: dict[str, list[AllowedLocation]] = {}
        for location in locations:
            by_system.setdefault(file_system_of(location), []).append(location)
        for file_system, some in by_system.items():
            found = self._warehouse.run_operation(
                file_system,
                "list",
                f"Cannot list {some[0]}",
                partial(self._unexpected_file, some, expected),
                timeout_s=max(self._settings.file_timeout_s, self._settings.listing_timeout_s),
                key=("unexpected_file", tuple(map(str, some))),
            )
            if found is not None:
                return found
        return None

    def files_in(self, locations: Sequence[AllowedLocation]) -> list[list[str]]:
        """See `Warehouse.files_in`."""
        by_system: dict[str, list[int]] = {}
        for index, location in enumerate(locations):
            by_system.setdefault(file_system_of(location), []).append(index)
        found: list[list[str]] = [[]] * len(locations)
        for file_system, indexes in by_system.items():
            for some in batches(indexes, DIRECTORIES_AT_ONCE):
                requested = [locations[index] for index in some]
                answers = self._warehouse.run_operation(
                    file_system,
                    "list",
                    f"Cannot list {requested[0]}",
                    partial(self._files_in, requested),
                    timeout_s=max(self._settings.file_timeout_s, self._settings.listing_timeout_s),
                    key=("files_in", tuple(map(str, requested))),
                )
                for index, names in zip(some, answers, strict=True):
                    found[index] = names
        return found

    def _files_in(self, locations: Sequence[AllowedLocation]) -> list[list[str]]:
        found = []
        for _, files in self._visible_files(locations):
            with closing(files):
                found.append(sorted(name for name, _ in files if name and "/" not in name))
        return found

    def _visible_files(self, locations: Sequence[AllowedLocation]) -> Iterator[tuple[AllowedLocation, Files]]:
        """Each location with its listing, all within the time limit of one."""
        limits = self._limits(self._settings.listing_timeout_s)
        for location in locations:
            yield location, self._listing(location, limits)

    def _limits(self, timeout_s: float) -> _Limits:
        return {"max_entries": self._settings.listing_max_entries, "deadline_s": time.monotonic() + timeout_s}

    def _listing(self, location: AllowedLocation, limits: _Limits) -> Files:
        if location.is_local:
            return local_files.visible_files(location.location.path, location.root_paths, **limits)
        return remote_files.visible_files(*self._file_systems.open(location.location), **limits)

    def _unexpected_file(self, locations: Sequence[AllowedLocation], expected: re.Pattern[str]) -> str | None:
        for location, files in self._visible_files(locations):
            with closing(files):
                for name, _ in files:
                    if expected.fullmatch(name.rpartition("/")[2]) is None:
                        return f"{location}/{name}" if name else str(location)
        return None

    def _count(self, locations: Sequence[AllowedLocation]) -> list[DirectoryStatistics | None]:
        """One operation for these directories of one file system. Returns results for the first of them, at least
        one."""
        listing_s = self._settings.listing_timeout_s
        waits = current_waits()
        if waits is not None and waits.holds_locks and waits.has_moved:
            listing_s = min(listing_s, self._settings.file_wait_with_locks_s * (MOVE_WAITS - 1))
        limits = self._limits(listing_s)
        first = locations[0]
        answers = self._warehouse.run_operation(
            file_system_of(first),
            "count",
            f"Cannot list {first}",
            lambda: self._count_within(limits, locations),
            timeout_s=max(self._settings.file_timeout_s, self._settings.listing_timeout_s),
            key=("directory_statistics", tuple(map(str, locations))),
        )
        found: list[DirectoryStatistics | None] = []
        for location, answer in zip(locations, answers, strict=False):
            if isinstance(answer, ListingTooLong):
                self._operations.add(("count", "too_long"))
                _LOG.warning(
                    "the files of %s are not counted: %s (warehouse.listing_max_entries, warehouse.listing_timeout_s)",
                    location,
                    answer,
                )
                found.append(None)
            else:
                found.append(answer)
        return found

    def _count_within(
        self, limits: _Limits, locations: Sequence[AllowedLocation]
    ) -> list[DirectoryStatistics | ListingTooLong]:
        """Results in order until the time limit, at least one. If a directory was begun late and not completed in time,
        it has no result yet: with the full time limit it may get one."""
        found: list[DirectoryStatistics | ListingTooLong] = []
        for location in locations:
            if found and time.monotonic() > limits["deadline_s"]:
                break
            try:
                files = size_bytes = 0
                for _, file_size_bytes in self._listing(location, limits):
                    files += 1
                    size_bytes += file_size_bytes
                found.append(DirectoryStatistics(files, size_bytes))
            except ListingTooLong as error:
                if found and time.monotonic() > limits["deadline_s"]:
                    break
                found.append(error)
        return found
