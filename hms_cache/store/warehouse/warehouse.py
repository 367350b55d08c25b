"""`Warehouse`: default locations, and the file operations behind the store.

Facts: `Warehouse` and `MetaStoreServerUtils.populateQuickStats` of Hive 3.1 and 4.0.
"""

from __future__ import annotations

import errno
import getpass
import logging
import os
import posixpath
import pwd
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from hms_cache.metadata.names import DEFAULT_CATALOG, DEFAULT_DATABASE, database_directory_name, table_directory_name
from hms_cache.store.warehouse.changes import TransactionOutcome, WarehouseChanges
from hms_cache.store.warehouse.file_systems import FileSystems
from hms_cache.store.warehouse.locations import Location
from hms_cache.store.warehouse.settings import WarehouseSettings
from hms_cache.thrift_gen.hive_metastore.ttypes import Catalog, Database, MetaException

_LOG = logging.getLogger(__name__)


#: Each is cut short by another deletion inside or around it; partitions of a table are dropped at once by this many.
_DELETION_ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class DirectoryStatistics:
    """Visible files below a directory, and their size."""

    file_count: int
    total_size_bytes: int


@contextmanager
def _translated(text: str) -> Iterator[None]:
    """Turns errors of the file system into MetaException with this text in front."""
    try:
        yield
    except MetaException:
        raise
    except Exception as error:
        # Drivers raise classes of their own besides OSError (botocore, pyarrow, …).
        raise MetaException(f"{text}: {error}") from error


def _rename_local(source: str, destination: str) -> None:
    """Renames a directory, or moves it between mounts. Raises FileExistsError for a destination that came meanwhile.

    The destination is made first: `mkdir` fails for all but one, where a plain move into a directory that another call
    made after the last look would put this one *inside* of it.
    """
    os.mkdir(destination)
    try:
        os.rename(source, destination)
    except OSError as error:
        os.rmdir(destination)
        if error.errno != errno.EXDEV:
            raise
        shutil.move(source, destination)


def _delete_local(path: str) -> None:
    """Deletes a file or a directory with all in it, but nothing that is made at its path from now on.

    A table of the same name may be created as soon as the drop is committed: were the directory emptied where it is,
    the new table's partitions would go with it. So it is taken out of the way first, by one atomic step.
    """
    aside = os.path.join(os.path.dirname(path), f".deleted-{uuid.uuid4().hex}")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    except OSError:
        aside = path  # a mount point, or a parent that may not be written
    for attempt in range(_DELETION_ATTEMPTS):
        if not os.path.lexists(aside):
            return  # it went with a directory around it
        try:
            if os.path.isdir(aside) and not os.path.islink(aside):
                shutil.rmtree(aside)
            else:
                os.remove(aside)
        except OSError as error:
            # Another call deletes a directory inside or around this one: what it left is still to go.
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or attempt == _DELETION_ATTEMPTS - 1:
                raise


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


class Warehouse:
    """The directories of databases, tables and partitions. Safe for use by many threads; holds no lock.

    Every file operation raises MetaException when the file system does; with `files = leave` every one does nothing.
    """

    def __init__(self, settings: WarehouseSettings | None = None) -> None:
        self.settings = settings or WarehouseSettings()
        self._file_systems = FileSystems(self.settings.options)
        self._default = Location.parse(self.settings.default_file_system)
        self._managed_root = self.location(self.settings.directory)
        self._external_root = (
            self.location(self.settings.external_directory) if self.settings.external_directory else None
        )

    @property
    def manages_files(self) -> bool:
        """Whether directories are made, moved and deleted at all."""
        return self.settings.files == "manage"

    # Locations

    @property
    def managed_root(self) -> Location:
        """Below it lie managed tables."""
        return self._managed_root

    @property
    def external_root(self) -> Location | None:
        """Below it lie external tables; None if there is no directory of their own for them."""
        return self._external_root

    def location(self, text: str) -> Location:
        """The location a client wrote, completed by the default file system. Raises MetaException."""
        return Location.parse(text, self._default)

    def database_location(self, database: Database, catalog: Catalog | None = None) -> Location:
        """Where a database goes: what it says itself, else the default of its catalog."""
        if database.locationUri:
            return self.location(database.locationUri)
        name = database.name
        if catalog is None or catalog.name.lower() == DEFAULT_CATALOG:
            root = self._external_root or self._managed_root
            return root if name.lower() == DEFAULT_DATABASE else root.child(database_directory_name(name))
        return self.location(catalog.locationUri).child(database_directory_name(name))

    def default_table_location(self, database: Database, table: str, *, external: bool) -> Location:
        """Where a table goes whose creator names no location.

        Managed tables: the database's managed location, else below the managed root. External ones: below the
        database's location unless that lies in the managed root while an external root is configured.
        """
        root = self.external_database_location(database) if external else self.managed_database_location(database)
        return root.child(table_directory_name(table))

    def managed_database_location(self, database: Database) -> Location:
        """The directory of the database's managed tables."""
        if database.managedLocationUri:
            return self.location(database.managedLocationUri)
        own = self._own_location(database)
        if self._external_root is None or not self._is_default_catalog(database):
            return own
        if own == self._managed_root or own.is_inside(self._managed_root):
            return own
        return self._default_child(self._managed_root, database.name)

    def external_database_location(self, database: Database) -> Location:
        """The directory of the database's external tables."""
        own = self._own_location(database)
        if (
            self._external_root is not None
            and self._is_default_catalog(database)
            and (own == self._managed_root or own.is_inside(self._managed_root))
        ):
            return self._default_child(self._external_root, database.name)
        return own

    def _own_location(self, database: Database) -> Location:
        if database.locationUri:
            return self.location(database.locationUri)
        return self._default_child(self._external_root or self._managed_root, database.name)

    @staticmethod
    def _is_default_catalog(database: Database) -> bool:
        return (database.catalogName or DEFAULT_CATALOG).lower() == DEFAULT_CATALOG

    @staticmethod
    def _default_child(root: Location, database: str) -> Location:
        return root if database.lower() == DEFAULT_DATABASE else root.child(database_directory_name(database))

    # File operations

    def changes(self, transaction: TransactionOutcome) -> WarehouseChanges:
        """File changes that share the fate of this attempt of a transaction."""
        return WarehouseChanges(self, transaction)

    def is_directory(self, location: Location) -> bool:
        """Whether there is a directory."""
        file_system, path = self._open(location)
        with _translated(f"Cannot look at {location}"):
            return bool(file_system.isdir(path))

    def exists(self, location: Location) -> bool:
        """Whether there is a file or directory."""
        file_system, path = self._open(location)
        with _translated(f"Cannot look at {location}"):
            return bool(file_system.exists(path))

    def owner(self, location: Location) -> str | None:
        """Who owns the directory; None when it is not there or its file system has no owners."""
        file_system, path = self._open(location)
        with _translated(f"Cannot look at {location}"):
            try:
                information = file_system.info(path)
            except FileNotFoundError:
                return None
        if information.get("owner"):
            return str(information["owner"])
        if information.get("uid") is None:
            return None
        try:
            return pwd.getpwuid(int(information["uid"])).pw_name
        except KeyError:
            return None

    def make_directory(self, location: Location) -> bool:
        """Makes the directory and its parents; False when it was there already."""
        if not self.manages_files:
            return False
        file_system, path = self._open(location)
        with _translated(f"{location} is not a directory or unable to create one"):
            if file_system.isdir(path):
                return False
            try:
                file_system.makedirs(path, exist_ok=False)
            except FileExistsError:
                if not file_system.isdir(path):
                    raise
                return False  # another call made it in between: it is that call's to undo
        return True

    def remove_empty_directory(self, location: Location) -> None:
        """Removes a directory without anything in it; one that has files or is gone stays as it is."""
        file_system, path = self._open(location)
        try:
            if file_system.isdir(path) and not file_system.ls(path, detail=False):
                file_system.rmdir(path)
        except OSError as error:
            _LOG.warning("cannot remove the empty directory %s: %s", location, error)

    def rename_directory(self, source: Location, destination: Location) -> None:
        """Moves a directory. Raises MetaException when the destination is there, or lies on another file system."""
        if not source.is_same_file_system(destination):
            raise MetaException(f"Cannot move {source} to another file system: {destination}")
        file_system, source_path = self._open(source)
        _, destination_path = self._open(destination)
        with _translated(f"Unable to rename: {source} to: {destination}"):
            if file_system.exists(destination_path):
                raise MetaException(f"Destination already exists: {destination}")
            file_system.makedirs(posixpath.dirname(destination_path), exist_ok=True)
            if isinstance(file_system, LocalFileSystem):
                _rename_local(source_path, destination_path)
            else:
                file_system.mv(source_path, destination_path, recursive=True)

    def delete_directory(self, location: Location, *, skip_trash: bool) -> None:
        """Deletes a directory with all in it, or moves it to the trash. Nothing there is fine; the root never goes."""
        if not self.manages_files:
            return
        if location.is_root:
            raise MetaException(f"Refusing to delete the root of a file system: {location}")
        file_system, path = self._open(location)
        with _translated(f"Failed to delete directory: {location}"):
            if not file_system.exists(path):
                return
            if self.settings.trash_interval_min > 0 and not skip_trash:
                self._move_to_trash(file_system, path, location)
            elif isinstance(file_system, LocalFileSystem):
                _delete_local(path)
            else:
                file_system.rm(path, recursive=True)

    def delete_contents(self, location: Location, *, skip_trash: bool) -> None:
        """Deletes all visible entries of a directory (not those that begin with `_` or `.`), as TRUNCATE does."""
        if not self.manages_files:
            return
        file_system, path = self._open(location)
        with _translated(f"Failed to delete the files of {location}"):
            if not file_system.isdir(path):
                return
            names = [posixpath.basename(entry.rstrip("/")) for entry in file_system.ls(path, detail=False)]
        for name in names:
            if name and not _is_hidden(name):
                self.delete_directory(location.child(name), skip_trash=skip_trash)

    def write_file(self, location: Location, content: bytes) -> None:
        """Writes a file, replacing one that is there."""
        file_system, path = self._open(location)
        with _translated(f"Cannot write {location}"):
            file_system.pipe_file(path, content)

    def read_file(self, location: Location, limit_bytes: int) -> bytes:
        """The content of one file. Raises MetaException, also for a file larger than the limit."""
        file_system, path = self._open(location)
        with _translated(f"Cannot read {location}"), file_system.open(path, "rb") as opened:
            content: bytes = opened.read(limit_bytes + 1)
        if len(content) > limit_bytes:
            raise MetaException(f"Cannot read {location}: it is larger than {limit_bytes} bytes")
        return content

    def delete_file(self, location: Location) -> None:
        """Deletes one file; nothing there is fine."""
        file_system, path = self._open(location)
        with _translated(f"Cannot delete {location}"):
            if file_system.isfile(path):
                file_system.rm_file(path)

    def directory_statistics(self, location: Location) -> DirectoryStatistics:
        """Number and size of the visible files below a directory; none when it is absent."""
        file_system, path = self._open(location)
        count = size = 0
        with _translated(f"Cannot list {location}"):
            if not file_system.exists(path):
                return DirectoryStatistics(0, 0)
            for found in file_system.find(path, detail=True).values():
                relative = posixpath.relpath(str(found["name"]), path)
                if not any(_is_hidden(part) for part in relative.split("/")):
                    count += 1
                    size += int(found.get("size") or 0)
        return DirectoryStatistics(count, size)

    def _open(self, location: Location) -> tuple[Any, str]:
        return self._file_systems.open(location)

    def _trash_directory(self, location: Location) -> Location:
        if self.settings.trash_directory:
            return Location.parse(self.settings.trash_directory, location)
        home = str(Path.home()) if location.scheme == "file" else f"/user/{getpass.getuser()}"
        return Location(location.scheme, location.authority, home).child(".Trash")

    def _move_to_trash(self, file_system: Any, path: str, location: Location) -> None:
        trash = self._trash_directory(location)
        if location.is_inside(trash):
            file_system.rm(path, recursive=True)
            return
        if trash.is_inside(location):
            raise MetaException(f"Cannot move {location} to the trash, as it contains the trash")
        goal = trash.child("Current", location.path.lstrip("/"))
        _, goal_path = self._open(goal)
        file_system.makedirs(posixpath.dirname(goal_path), exist_ok=True)
        if file_system.exists(goal_path):
            # Hadoop's TrashPolicyDefault tells repeated drops of one path apart by the time in milliseconds.
            goal_path += str(time.time_ns() // 1_000_000)
        file_system.mv(path, goal_path, recursive=True)
