"""`Warehouse`: checks which locations may be changed, and performs the store's file operations."""

from __future__ import annotations

import logging
import pwd
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from hms_cache.batches import batches
from hms_cache.config.sections import WarehouseSettings
from hms_cache.metrics import TallyFamily
from hms_cache.metrics.registry import WarehouseMetrics
from hms_cache.store.warehouse import local_files, remote_files
from hms_cache.store.warehouse.allowed import AllowedLocation, allow_by_names
from hms_cache.store.warehouse.changes import TransactionOutcome, WarehouseChanges
from hms_cache.store.warehouse.deadlines import DIRECTORIES_AT_ONCE, MOVE_TIMEOUT, TIMEOUT, FileThreads
from hms_cache.store.warehouse.deletions import Deletions, raise_first
from hms_cache.store.warehouse.file_systems import OBJECT_STORE_SCHEMES, FileSystems
from hms_cache.store.warehouse.layout import WarehouseLayout
from hms_cache.store.warehouse.listings import DirectoryStatistics, Listings
from hms_cache.store.warehouse.local_files import SymlinkLeadsOutside, is_hidden
from hms_cache.store.warehouse.locations import Location
from hms_cache.store.warehouse.mounts import file_system_of, mount_of
from hms_cache.store.warehouse.move_records import MoveRecords
from hms_cache.store.warehouse.object_moves import ObjectMove
from hms_cache.store.warehouse.waits import MOVE_WAITS, StillWaiting, current_waits
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


@contextmanager
def _translated(text: str) -> Iterator[None]:
    """Converts errors of the file system to MetaException, with this text in front."""
    try:
        yield
    except (MetaException, StillWaiting):
        raise
    except Exception as error:
        # Drivers raise their own exception classes besides OSError (botocore, pyarrow, …).
        raise MetaException(f"{text}: {error}") from error


class Warehouse(WarehouseLayout):
    """The directories of databases, tables and partitions. Thread-safe; holds no lock.

    Every file operation takes a location that `allow` has checked, and raises MetaException if the file system fails or
    does not respond in time. With `files = leave` no location is allowed.
    """

    def __init__(self, settings: WarehouseSettings | None = None, *, metrics: WarehouseMetrics | None = None) -> None:
        super().__init__(settings)
        self.file_systems = FileSystems(self.settings.options)
        """Used by the parts of the warehouse."""
        self._threads = FileThreads(self.settings.file_threads, max_wait_s=self.settings.file_wait_with_locks_s)
        self._operations: TallyFamily = (
            metrics.operations
            if metrics
            else TallyFamily("hms_cache_file_operations_total", "", ("operation", "outcome"))
        )
        if metrics is not None:
            metrics.threads_in_use.set_function(self._threads.in_use)
        self._deletions = Deletions(self)
        self._listings = Listings(self, self._operations)
        self.move_records = MoveRecords(self)

    # Which locations may be changed

    def allow(self, location: Location, declared: Iterable[Location] = ()) -> AllowedLocation | None:
        """The location for file operations; None if this server must not change files there.

        Allowed are the two directories of the warehouse, `warehouse.allowed_locations`, and what databases and catalogs
        of the metastore declare (`declared`), provided that the configuration names another place on the same file
        system.
        """
        return self.allow_all((location,), declared)[0]

    def allow_all(
        self, locations: Sequence[Location], declared: Iterable[Location] = ()
    ) -> list[AllowedLocation | None]:
        """Like `allow` for many locations: symbolic links in the paths of each mount are checked within one time limit.

        Raises MetaException if a file system does not respond.
        """
        found = self.allow_by_names(locations, declared)
        by_mount: dict[str, list[int]] = {}
        for index, each in enumerate(found):
            if each is not None and each.is_local:
                by_mount.setdefault(mount_of(each.location.path), []).append(index)
        for mount, indexes in by_mount.items():
            requested = [
                (each.location.path, each.root_paths) for index in indexes if (each := found[index]) is not None
            ]
            what = f"Cannot look at {locations[indexes[0]]}"
            answers = self.run_operation(
                mount,
                "inspect",
                what,
                lambda requested=requested: [local_files.is_within(path, paths) for path, paths in requested],  # type: ignore[misc]
                key=("is_within", tuple(requested)),
            )
            for index, is_within in zip(indexes, answers, strict=True):
                if not is_within:
                    found[index] = None
        return found

    def claim(self, location: Location) -> AllowedLocation | None:
        """The location of a new database outside the allowed locations, if nothing exists there: then its files will be
        this server's own.

        None if something exists there, or if the location is out of bounds: on a host or in a bucket in which the
        configuration names no directory, at the root, or reached by a symbolic link. Raises MetaException.
        """
        return self.claim_all((location,))[0]

    def claim_all(self, locations: Sequence[Location]) -> list[AllowedLocation | None]:
        """Like `claim` for many locations: one operation and time limit per mount; on an object store one per
        location."""
        found: list[AllowedLocation | None] = [None] * len(locations)
        by_mount: dict[str, list[tuple[int, AllowedLocation]]] = {}
        for index, location in enumerate(locations):
            is_ours = any(root.is_same_file_system(location) for root in self._roots)
            if not self.may_be_declared(location) or not is_ours:
                continue
            # Below the directories of the configuration, links are checked against those, as in `allow_all`.
            roots = self._roots if self._is_in_own_roots(location) else (*self._roots, location)
            claimed = allow_by_names([location], roots)[0]
            if claimed is None:
                continue
            if claimed.is_local:
                by_mount.setdefault(mount_of(claimed.location.path), []).append((index, claimed))
            elif self.is_vacant(claimed):
                found[index] = claimed
        for mount, claims in by_mount.items():
            requested = [(claimed.location.path, claimed.root_paths) for _, claimed in claims]
            answers = self.run_operation(
                mount,
                "inspect",
                f"Cannot look at {locations[claims[0][0]]}",
                lambda requested=requested: [  # type: ignore[misc]
                    local_files.is_within(path, paths) and local_files.is_vacant(path, paths)
                    for path, paths in requested
                ],
                key=("claim", tuple(requested)),
            )
            for (index, claimed), is_free in zip(claims, answers, strict=True):
                found[index] = claimed if is_free else None
        return found

    # File operations

    def changes(self, transaction: TransactionOutcome) -> WarehouseChanges:
        """The file changes of this attempt of a transaction."""
        return WarehouseChanges(self, transaction)

    def is_directory(self, location: AllowedLocation) -> bool:
        """Whether there is a directory."""
        return self._inspect(location, "is_directory", local_files.is_directory, remote_files.is_directory)

    def is_vacant(self, location: AllowedLocation) -> bool:
        """Whether nothing exists there, or only an empty directory."""
        return self._inspect(location, "is_vacant", local_files.is_vacant, remote_files.is_vacant)

    def exists(self, location: AllowedLocation) -> bool:
        """Whether there is a file or directory."""
        return self._inspect(
            location, "exists", local_files.exists, lambda file_system, path: bool(file_system.exists(path))
        )

    def owner(self, location: AllowedLocation) -> str | None:
        """The owner of the directory; None if it does not exist or its file system has no owners."""

        def owner_of(file_system: Any, path: str) -> str | int | None:
            try:
                information = file_system.info(path)
            except FileNotFoundError:
                return None
            found: str | int | None = information.get("owner") or information.get("uid")
            return found

        found = self._inspect(location, "owner", local_files.owner_id, owner_of)
        if found is None or isinstance(found, str):
            return found
        try:
            return pwd.getpwuid(found).pw_name
        except KeyError:
            return None

    def make_directory(self, location: AllowedLocation) -> bool:
        """Creates the directory and its parents. Returns False if it existed."""
        if not self.manages_files:
            return False
        return self._do(
            "create",
            f"{location} is not a directory or unable to create one",
            location,
            local_files.make_directory,
            remote_files.make_directory,
            key="make_directory",
            if_late=lambda made: self.remove_empty_directory(location) if made else None,
        )

    def make_directories(self, locations: Sequence[AllowedLocation]) -> list[bool | MetaException]:
        """Like `make_directory` for each, in order; the result is the bool or its error. Many of one file system within
        one time limit."""
        if not self.manages_files:
            return [False] * len(locations)
        made: list[bool | MetaException] = [False] * len(locations)
        by_file_system: dict[str, list[int]] = {}
        for index, location in enumerate(locations):
            by_file_system.setdefault(file_system_of(location), []).append(index)
        for file_system, indexes in by_file_system.items():
            for some in batches(indexes, DIRECTORIES_AT_ONCE):
                answers: Sequence[bool | Exception]
                try:
                    answers = self._make_some(file_system, [locations[index] for index in some])
                except MetaException as error:  # for all of them: what was created before still has to be undone
                    answers = [error] * len(some)
                for index, answer in zip(some, answers, strict=True):
                    if isinstance(answer, MetaException):
                        made[index] = answer
                    elif isinstance(answer, Exception):
                        failed = MetaException(
                            f"{locations[index]} is not a directory or unable to create one: {answer}"
                        )
                        failed.__cause__ = answer
                        made[index] = failed
                    else:
                        made[index] = answer
        return made

    def _make_some(self, file_system: str, locations: list[AllowedLocation]) -> Sequence[bool | Exception]:
        def undo(made: Sequence[bool | Exception]) -> None:
            self.remove_empty_directories(
                [location for location, is_made in zip(locations, made, strict=True) if is_made is True]
            )

        def work() -> Sequence[bool | Exception]:
            if locations[0].is_local:
                return local_files.make_directories(
                    [(location.location.path, location.root_paths) for location in locations]
                )
            answers: list[bool | Exception] = [False] * len(locations)
            opened: dict[int, tuple[Any, str]] = {}
            for number, location in enumerate(locations):
                try:
                    opened[number] = self.file_systems.open(location.location)
                except MetaException as error:
                    answers[number] = error
            if opened:
                driver = next(iter(opened.values()))[0]
                found = remote_files.make_directories(driver, [path for _, path in opened.values()])
                for number, answer in zip(opened, found, strict=True):
                    answers[number] = answer
            return answers

        return self.run_operation(
            file_system,
            "create",
            f"{locations[0]} is not a directory or unable to create one",
            work,
            key=("make_directories", tuple(map(str, locations))),
            if_late=undo,
        )

    def remove_empty_directory(self, location: AllowedLocation) -> None:
        """Removes an empty directory. If it has contents or does not exist, nothing happens."""
        self.remove_empty_directories((location,))

    def remove_empty_directories(self, locations: Sequence[AllowedLocation]) -> None:
        """Like `remove_empty_directory` for many directories, in order. Failures are logged."""
        if self.manages_files:
            self._deletions.remove_empty(locations)

    def rename_directory(
        self, source: AllowedLocation, destination: AllowedLocation, *, is_undone_late: bool = True
    ) -> None:
        """Moves a directory. Raises MetaException if the destination exists, or is on another file system.

        A move that completes after its time limit is undone, unless it is itself the undoing of a move.
        """
        self.require_free(source, destination)
        self.move(source, destination, is_undone_late=is_undone_late)

    def require_free(self, source: AllowedLocation, destination: AllowedLocation) -> None:
        """Raises MetaException unless the directory may be moved there and the destination does not exist."""
        if not source.location.is_same_file_system(destination.location):
            raise MetaException(f"Cannot move {source} to another file system: {destination}")
        if not source.is_below_root or not destination.is_below_root:
            raise MetaException(f"Refusing to move a directory of the warehouse itself: {source} to {destination}")
        if self.exists(destination):
            raise MetaException(f"Destination already exists: {destination}")

    def is_moved_by_copying(self, location: AllowedLocation) -> bool:
        """Whether a directory there is moved by `object_move`."""
        return location.location.scheme in OBJECT_STORE_SCHEMES

    def object_move(self, source: AllowedLocation, destination: AllowedLocation) -> ObjectMove:
        """The move of a directory of an object store, for one write."""
        return ObjectMove(self, source, destination)

    def copy_directory(self, source: AllowedLocation, destination: AllowedLocation) -> None:
        """Copies a directory. Raises MetaException if the destination exists, or is on another file system. After an
        error, files copied so far stay."""
        if not source.location.is_same_file_system(destination.location):
            raise MetaException(f"Cannot copy {source} to another file system: {destination}")
        if not destination.is_below_root or destination.location.is_inside(source.location):
            raise MetaException(f"Refusing to copy {source} to {destination}")

        def copy_remote(file_system: Any, path: str) -> None:
            remote_files.copy(file_system, path, self.file_systems.open(destination.location)[1])

        self._do(
            "copy",
            f"Unable to copy: {source} to: {destination}",
            source,
            lambda path, roots: local_files.copy(path, destination.location.path, roots, destination.root_paths),
            copy_remote,
            timeout_s=self.settings.file_move_timeout_s,
            setting=MOVE_TIMEOUT,
            if_late=lambda _: self.delete_directory(destination, skip_trash=True),
        )

    def modified_s(self, location: AllowedLocation) -> float | None:
        """Last change of a directory itself (epoch seconds); None if its file system does not report it."""
        return self._inspect(location, "modified_s", local_files.modified_s, lambda _file_system, _path: None)

    def inode(self, location: AllowedLocation) -> int | None:
        """The inode number of a directory; None if it does not exist or the file system has no inodes."""
        return self._inspect(location, "inode", local_files.inode, lambda _file_system, _path: None)

    def delete_directory(self, location: AllowedLocation, *, skip_trash: bool) -> None:
        """Deletes a directory with its contents, or moves it to the trash. It is no error if it does not exist.

        Raises MetaException for the root of a file system and for a directory that is itself an allowed location.
        """
        if self.manages_files:
            raise_first(self._deletions.delete((location,), skip_trash=skip_trash))

    def delete_directories(self, locations: Sequence[AllowedLocation], *, skip_trash: bool) -> None:
        """Like `delete_directory` for each, with a few operations per file system for thousands.

        All are tried. Directories from which a link leads out of the allowed locations stay, which is logged. Raises a
        MetaException with the first other failure and the number of failures.
        """
        if not self.manages_files:
            return
        failures = self._deletions.delete(locations, skip_trash=skip_trash)
        led = [location for location, error in failures.items() if isinstance(error, SymlinkLeadsOutside)]
        if led:
            others = f" and {len(led) - 1} more" if len(led) > 1 else ""
            _LOG.warning("the files at %s%s stay: %s", led[0], others, failures[led[0]])
        raise_first({location: error for location, error in failures.items() if location not in led})

    def delete_contents(self, location: AllowedLocation, *, skip_trash: bool) -> None:
        """Deletes all visible entries of a directory (those that do not begin with `_` or `.`), as TRUNCATE does."""
        if not self.manages_files:
            return
        requested = [location.child(name) for name in self.names(location) if not is_hidden(name)]
        self.delete_directories(requested, skip_trash=skip_trash)

    def names(self, location: AllowedLocation) -> list[str]:
        """The entries of a directory; empty if it does not exist."""
        return self._do(
            "list",
            f"Cannot list {location}",
            location,
            local_files.names,
            remote_files.names,
        )

    def read_file(self, location: AllowedLocation, limit_bytes: int) -> bytes:
        """The content of a file. Raises MetaException, also if it is larger than the limit."""

        def read(file_system: Any, path: str) -> bytes:
            with file_system.open(path, "rb") as opened:
                found: bytes = opened.read(limit_bytes + 1)
            return found

        content = self._do(
            "read",
            f"Cannot read {location}",
            location,
            lambda path, roots: local_files.read_file(path, roots, limit_bytes + 1),
            read,
            key="read_file",
        )
        if len(content) > limit_bytes:
            raise MetaException(f"Cannot read {location}: it is larger than {limit_bytes} bytes")
        return content

    def write_file(self, location: AllowedLocation, content: bytes) -> bool:
        """Writes a file, replacing an existing one, and creates its directory if necessary; returns whether it did.

        Both are one operation: if it fails, its remains are deleted.
        """

        def undo(is_directory_made: bool) -> None:
            self.delete_file(location)
            if is_directory_made and location.parent is not None:
                self.remove_empty_directory(location.parent)

        return self._do(
            "write",
            f"Cannot write {location}",
            location,
            lambda path, roots: local_files.write_file(path, content, roots),
            lambda file_system, path: remote_files.write_file(file_system, path, content),
            key="write_file",
            if_late=undo,
        )

    def delete_file(self, location: AllowedLocation) -> None:
        """Deletes one file, if it exists."""
        self._do(
            "delete",
            f"Cannot delete {location}",
            location,
            local_files.delete_file,
            remote_files.delete_file,
        )

    def directory_statistics(self, location: AllowedLocation) -> DirectoryStatistics | None:
        """Number and size of the visible files below a directory; zeros if it does not exist.

        None if it has more than `listing_max_entries` entries or the listing takes longer than `listing_timeout_s`:
        callers continue without statistics.
        """
        return self.directory_statistics_all((location,))[0]

    def directory_statistics_all(self, locations: Sequence[AllowedLocation]) -> list[DirectoryStatistics | None]:
        """Like `directory_statistics` for each, in order; on this machine many within one time limit."""
        return self._listings.directory_statistics(locations)

    def unexpected_file(self, locations: Sequence[AllowedLocation], expected: re.Pattern[str]) -> str | None:
        """A visible file below one of the directories whose name does not match entirely; None if all match.

        Raises MetaException, also if a directory has too many files, or its listing takes too long.
        """
        return self._listings.unexpected_file(locations, expected)

    def files_in(self, locations: Sequence[AllowedLocation]) -> list[list[str]]:
        """The names of the visible files directly in each of the directories, in order.

        Raises MetaException, also if directories have too many files, or their listing takes too long.
        """
        return self._listings.files_in(locations)

    def move(self, source: AllowedLocation, destination: AllowedLocation, *, is_undone_late: bool = True) -> None:
        def rename(path: str, roots: Sequence[str], *, may_copy: bool) -> bool:
            return local_files.rename(path, destination.location.path, roots, destination.root_paths, may_copy=may_copy)

        def move_remote(file_system: Any, path: str) -> bool:
            remote_files.move(file_system, path, self.file_systems.open(destination.location)[1])
            return True

        def undo(is_moved: bool) -> None:
            if is_moved and is_undone_late:
                self.move(destination, source, is_undone_late=False)

        failure = f"Unable to rename: {source} to: {destination}"
        long_s = self.settings.file_move_timeout_s
        waits = current_waits()
        holds_locks = waits is not None and waits.holds_locks
        if waits is not None:
            waits.has_moved = holds_locks
        if source.is_local:
            short_s = self.settings.file_timeout_s
            if holds_locks:
                short_s = min(short_s, self.settings.file_wait_with_locks_s * MOVE_WAITS)
            if self._do(
                "move", failure, source, partial(rename, may_copy=False), move_remote, timeout_s=short_s, if_late=undo
            ):
                return
        self._do(
            "move",
            failure,
            source,
            partial(rename, may_copy=True),
            move_remote,
            timeout_s=long_s,
            setting=MOVE_TIMEOUT,
            if_late=undo,
        )

    def _inspect(
        self,
        location: AllowedLocation,
        key: str,
        local: Callable[[str, Sequence[str]], T],
        remote: Callable[[Any, str], T],
    ) -> T:
        """A read-only operation; `key` identifies it (see `_do`)."""
        return self._do("inspect", f"Cannot look at {location}", location, local, remote, key=key)

    def _do(
        self,
        operation: str,
        failure: str,
        location: AllowedLocation,
        local: Callable[[str, Sequence[str]], T],
        remote: Callable[[Any, str], T],
        *,
        timeout_s: float | None = None,
        setting: str = TIMEOUT,
        key: str | None = None,
        if_late: Callable[[T], object] | None = None,
    ) -> T:
        """Runs one file operation in a thread of its file system, with a time limit.

        `key`: identifies it if a write that holds locks may run again because of it (`StillWaiting`).
        """

        def work() -> T:
            if location.is_local:
                return local(location.location.path, location.root_paths)
            return remote(*self.file_systems.open(location.location))

        return self.run_operation(
            file_system_of(location),
            operation,
            failure,
            work,
            timeout_s=timeout_s,
            setting=setting,
            key=None if key is None else (key, str(location)),
            if_late=if_late,
        )

    def run_operation(
        self,
        file_system: str,
        operation: str,
        failure: str,
        work: Callable[[], T],
        *,
        timeout_s: float | None = None,
        setting: str = TIMEOUT,
        key: Hashable = None,
        if_late: Callable[[T], object] | None = None,
    ) -> T:
        """Runs the work in a thread of its file system within the time limit, counts it, and returns its result.

        See `FileThreads.run`. Raises MetaException with a text that begins with `failure`, and StillWaiting.
        """
        outcome = "error"
        try:
            with _translated(failure):
                found = self._threads.run(
                    file_system,
                    failure,
                    work,
                    timeout_s or self.settings.file_timeout_s,
                    setting=setting,
                    key=key,
                    if_late=if_late,
                )
            outcome = "ok"
        except StillWaiting:
            outcome = "waiting"
            raise
        finally:
            self._operations.add((operation, outcome))
        return found
