"""Lists the files in directories."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any

from hms_cache.jobs.frame.rate_limit import RateLimit
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.store.warehouse.file_systems import OBJECT_STORE_SCHEMES, FileSystems, driver_errors, path_in
from hms_cache.store.warehouse.key_stores import key_store_of, store_listed_by_keys
from hms_cache.store.warehouse.keys import KeyStore, OrderedKeyStore, StoredObject, no_bucket
from hms_cache.store.warehouse.locations import Location
from hms_cache.store.warehouse.many_directories import objects_of
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

# Kinds of directories: named as a partition; belonging to no partition; without files; cannot be listed; a table's
# directory that does not exist. Also used for differences from the catalog.
PARTITION, ORPHAN, EMPTY, UNREADABLE, NO_ROOT = "partition", "orphan", "empty", "unreadable", "no root"
MISSING, UNREGISTERED, OUTDATED = "missing", "unregistered", "outdated"


OF_DIRECTORIES = frozenset({"file", "hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs", "o3fs"})
"""Schemes of file systems with directories; others are object stores, which have prefixes."""


@frozen
class DirectoryFiles:
    """The data files in and below a directory. Files whose names begin with a dot or an underscore are not data."""

    exists: bool
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    blocks: int = 0
    newest_us: int = 0
    """Modification time of the newest file, in microseconds since 1970; 0 if the file system does not report it."""

    depth: int = 0
    """Number of directory levels above the deepest file."""

    problem: str | None = None
    """Why it could not be listed; then nothing else is known."""

    digest: str = ""
    """Digest of each file's name, size, modification time and, if the store has one, entity tag."""


@frozen
class FoundDirectory:
    """A directory below a table's. `kind` is one of the names above; `partition` is set for a partition only."""

    kind: str
    location: str
    partition: str | None = None
    problem: str | None = None


def canonical(location: str) -> str:
    """The canonical spelling of a location; the location itself if it cannot be parsed."""
    try:
        return str(Location.parse(location, Location("file", "", "/")))
    except MetaException:
        return location


def place_of(location: str) -> str:
    """A value common to all locations of one directory: independent of the scheme of its store (``s3``, ``s3a``) and,
    on this machine, of symbolic links. The location itself if it cannot be parsed."""
    try:
        found = Location.parse(location, Location("file", "", "/"))
    except MetaException:
        return location
    path = os.path.realpath(found.path) if found.scheme == "file" and not found.authority else found.path
    return f"{_store(found.scheme, found.authority)}{path}".rstrip("/")


@lru_cache
def _store(scheme: str, authority: str) -> str:
    return str(Location(scheme, authority, "/").spellings[0]).removesuffix("/")


AWAY = (
    "neither it nor the directory above its table's, or its own, is there, or a symbolic link leads to what is not: the"
    " file system may not be mounted"
)


def anchor(location: Location, root: Location) -> Location | None:
    """The directory that must exist if a missing directory is to count as deleted, not as on a missing file system: the
    parent of the table's directory `root`, or its own parent if it is outside of that. None for an object store."""
    if location.scheme not in OF_DIRECTORIES:
        return None
    return (root if location.is_inside(root) else location).parent


def leads_nowhere(location: Location) -> bool:
    """Whether the path on this machine contains a symbolic link to something that does not exist. Then the data is not
    known to be deleted."""
    if location.scheme != "file" or location.authority:
        return False
    return any(os.path.islink(each.path) and not os.path.exists(each.path) for each in (location, *location.ancestors))


class DirectoryLister:
    """Lists directories of any file system, bypassing the caches of fsspec."""

    def __init__(self, *, small_file_bytes: int = 0, block_bytes: int = 1, limit: RateLimit | None = None) -> None:
        self._file_systems = FileSystems()
        self._small_file_bytes = small_file_bytes
        self._block_bytes = block_bytes
        self._limit = limit or RateLimit(0)

    def open(self, location: Location) -> tuple[Any, str]:
        """Waits for the rate limit; returns the file system, without cached entries, and the path in it.

        Raises MetaException, OSError.
        """
        self._limit.wait(f"{location.scheme}://{location.authority}")
        with driver_errors():
            file_system, path = self._file_systems.open(location)
            file_system.invalidate_cache(path)
        return file_system, path

    def files(self, location: str) -> DirectoryFiles:
        """The files of a directory. Never raises: errors are in the result."""
        infos: list[tuple[int, Mapping[str, Any]]] = []
        try:
            here = Location.parse(location)
            start = len(here.path.rstrip("/")) + 1
            seen = False
            for path, info in self.below(here):
                if isinstance(info, Exception):
                    return DirectoryFiles(exists=False, problem=reason_of(info))
                seen = True
                if info["type"] != "directory" and not is_hidden(path[start:]):
                    infos.append((path[start:].count("/"), info))
            if not seen:
                file_system, path = self.open(here)
                with driver_errors():
                    exists = bool(file_system.exists(path))
                if not exists and _is_bucket(here):
                    raise no_bucket(path)
                return DirectoryFiles(exists)
        except FileNotFoundError:
            return DirectoryFiles(exists=False)
        except (OSError, MetaException) as error:
            return DirectoryFiles(exists=False, problem=reason_of(error))
        return self.figures(infos)

    def is_away(self, location: str, root: str) -> bool:
        """Whether a directory that is missing, or seems to have no files, may be on a missing file system.

        :param root: its table's directory, which may be missing, too; empty if it has none.
        """
        try:
            here = Location.parse(location)
            above = anchor(here, Location.parse(root) if root else here)
            return above is not None and not self._exists(here) and (leads_nowhere(here) or not self._exists(above))
        except (OSError, MetaException):
            return True

    def _exists(self, location: Location) -> bool:
        file_system, path = self.open(location)
        with driver_errors():
            return bool(file_system.exists(path))

    def data_files(self, location: Location) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Paths of the data files, by the rules of `files`. Raises the errors of `below`, also those of deeper
        directories."""
        start = len(location.path.rstrip("/")) + 1
        for path, info in self.below(location):
            if isinstance(info, Exception):
                raise info
            if info["type"] != "directory" and not is_hidden(path[start:]):
                yield path, info

    def data_files_of(
        self, locations: Sequence[Location]
    ) -> Iterator[tuple[Location, list[tuple[str, Mapping[str, Any]]] | Exception]]:
        """The same for many directories, each with its files as `data_files` yields them, or with the error; uses as
        few requests as possible. Yields only directories in stores that list in order (`OrderedKeyStore`)."""
        for some in _by_store(locations):
            try:
                file_system, _ = self.open(some[0])
                paths = {}
                for location in some:
                    with suppress(MetaException):
                        paths[path_in(file_system, location).strip("/")] = location
            except (OSError, MetaException):
                continue
            store = key_store_of(file_system)
            bucket = some[0].authority
            if not isinstance(store, OrderedKeyStore) or not store.is_in_order(bucket):
                continue
            keys = {path.removeprefix(f"{bucket}/"): path for path in paths if path.startswith(f"{bucket}/")}
            for key, objects in objects_of(store, bucket, list(keys)):
                location = paths[keys[key]]
                if isinstance(objects, Exception):
                    yield location, objects
                    continue
                start = len(location.path.rstrip("/")) + 1
                files = _described(objects, keys[key], location)
                yield (
                    location,
                    [(path, info) for path, info in files if info["type"] == "file" and not is_hidden(path[start:])],
                )

    def entries(self, location: Location) -> dict[str, Mapping[str, Any]]:
        """The entries of a directory, by name. Raises FileNotFoundError, OSError, MetaException."""
        if location.scheme == "file" and not location.authority:
            self._limit.wait("file://")
            return _local_entries(location.path)
        file_system, path = self.open(location)
        found: dict[str, Mapping[str, Any]] = {}
        store = store_listed_by_keys(file_system)
        if store is not None:
            with driver_errors():
                children = store.children(path)
                if not children and not file_system.isdir(path):
                    raise FileNotFoundError(path)
            return {name: {"type": "directory" if is_directory else "file"} for name, is_directory in children}
        with driver_errors():
            entries = file_system.ls(path, detail=True)
        for info in entries:
            full = str(info["name"]).strip("/")
            if full != path.strip("/"):  # object stores may return the marker of the directory itself
                found[full.rpartition("/")[2]] = info
        return found

    def below(self, location: Location) -> Iterator[tuple[str, Mapping[str, Any] | Exception]]:
        """Paths, in the form of locations, of everything below; for a directory that cannot be listed, the error.

        Raises FileNotFoundError if the location does not exist. For an object store also raises MetaException and
        OSError, the latter also if the bucket does not exist, as its content is then unknown.
        """
        if location.scheme not in OF_DIRECTORIES:
            file_system, path = self.open(location)
            above = location.path.rstrip("/")
            # A whole bucket has no key.
            store = key_store_of(file_system) if above else None
            if store is not None:
                yield from _objects_below(store, path, location)
                return
            start = len(path.strip("/")) + 1
            try:
                with driver_errors():
                    every = file_system.find(path, withdirs=True, detail=True)
            except FileNotFoundError as error:
                if _is_bucket(location):
                    raise no_bucket(path) from error
                raise
            for name, info in every.items():
                below = str(name).strip("/")[start:]
                if not below:
                    yield location.path, {"type": "directory"}
                elif not _has_no_path(f"/{below}"):
                    is_marker = str(name).endswith("/")
                    yield f"{above}/{below}", {**info, "type": "directory"} if is_marker else info
            return
        waiting = [location]
        while waiting:
            here = waiting.pop()
            try:
                entries = self.entries(here)
            except FileNotFoundError:
                if here is location:
                    raise
                continue  # deleted since it was found
            except (OSError, MetaException) as error:
                yield here.path, error
                continue
            if here is location:
                yield here.path, {"type": "directory"}
            for name, info in entries.items():
                yield f"{here.path.rstrip('/')}/{name}", info
                if info["type"] == "directory" and not is_hidden(name):
                    waiting.append(here.child(name))

    def figures(self, infos: Iterable[tuple[int, Mapping[str, Any]]]) -> DirectoryFiles:
        """The figures of these files, given as fsspec's descriptions with their number of directory levels."""
        files = size = small = blocks = newest_us = deepest = 0
        seen = []
        for depth, info in infos:
            deepest = max(deepest, depth)
            file_bytes = int(info["size"] or 0)
            files += 1
            size += file_bytes
            small += file_bytes < self._small_file_bytes
            blocks += -(-file_bytes // self._block_bytes)
            modified_us = _modified_us(info)
            newest_us = max(newest_us, modified_us)
            seen.append(f"{info['name']}\0{file_bytes}\0{modified_us}\0{_tag(info)}")
        digest = hashlib.blake2b("\n".join(sorted(seen)).encode(), digest_size=8).hexdigest() if seen else ""
        return DirectoryFiles(True, files, size, small, blocks, newest_us, deepest, digest=digest)


def _local_entries(path: str) -> dict[str, Mapping[str, Any]]:
    """The fields that fsspec returns for a local directory, as far as they are used here, in a fifth of the time: a
    table may have ten thousand directories with one file each, and each is listed three times."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        entries = os.scandir(path)
    except NotADirectoryError:
        os.stat(path)  # the path is a file; raises if a parent is a file
        return {}
    with entries:
        for entry in entries:
            try:
                followed = entry.stat() if entry.is_symlink() else None
                size = None if followed is None else followed.st_size
            except OSError:
                size = 0  # a broken link
            try:
                found[entry.name] = _local_info(entry.path, entry.stat(follow_symlinks=False), size)
            except FileNotFoundError:
                continue  # deleted since it was listed
    return found


def _local_info(path: str, found: os.stat_result, bytes_behind_link: int | None = None) -> dict[str, Any]:
    kind = "directory" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else "other"
    size = found.st_size if bytes_behind_link is None else bytes_behind_link
    return {"name": path, "size": size, "type": kind, "mtime": found.st_mtime}


def _objects_below(store: KeyStore, path: str, location: Location) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """See `DirectoryLister.below`. Only directories with markers are returned; others are part of files' paths."""
    try:
        with driver_errors():
            for page in store.below(path):
                yield from _described(page, path, location)
    except FileNotFoundError as error:
        raise no_bucket(path) from error


def _described(
    objects: Iterable[StoredObject], path: str, location: Location
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in objects:
        if _has_no_path(each.suffix):
            continue
        name = f"/{each.name}" if each.name else ""  # empty: the directory's own marker
        kind = "directory" if each.is_marker else "file"
        found = {"name": path + name, "type": kind, "size": each.size}
        yield location.path + name, found | {"LastModified": each.modified, "ETag": each.tag}


def _is_bucket(location: Location) -> bool:
    return location.is_root and location.scheme in OBJECT_STORE_SCHEMES


def _by_store(locations: Iterable[Location]) -> list[list[Location]]:
    stores: dict[tuple[str, str], list[Location]] = {}
    for location in locations:
        if location.scheme not in OF_DIRECTORIES:
            stores.setdefault((location.scheme, location.authority), []).append(location)
    return list(stores.values())


def _has_no_path(key: str) -> bool:
    """Whether an object's key contains an empty name. Hadoop collapses two slashes and cannot read such an object;
    listed like others, it would appear in the directory above the empty name."""
    return "//" in key


_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified")
"""Names of the modification time in fsspec's file systems: local and Arrow's, S3, Azure, Google, others."""


_TAGS = ("ETag", "etag")


def _tag(info: Mapping[str, Any]) -> str:
    """Distinguishes two contents with the same name, size and second: object stores only report whole seconds."""
    return next((str(info[name]) for name in _TAGS if info.get(name)), "")


def _modified_us(info: Mapping[str, Any]) -> int:
    value = next((info[name] for name in _MODIFIED if info.get(name) is not None), None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    if isinstance(value, datetime):
        return round(value.timestamp() * 1_000_000)
    return round(value * 1_000_000) if isinstance(value, int | float) else 0


def is_hidden(relative_path: str) -> bool:
    """Whether a name on the path begins with a dot or an underscore."""
    return any(part.startswith(("_", ".")) for part in relative_path.split("/"))
