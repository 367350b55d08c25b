"""Directories as they are: the files in one."""

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

# Kinds of directories: a partition's by its name, nobody's, without files, one that cannot be listed, a table's that is
# not there; and of differences from the catalog.
PARTITION, ORPHAN, EMPTY, UNREADABLE, NO_ROOT = "partition", "orphan", "empty", "unreadable", "no root"
MISSING, UNREGISTERED, OUTDATED = "missing", "unregistered", "outdated"


OF_DIRECTORIES = frozenset({"file", "hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs", "o3fs"})
"""Schemes of file systems with directories; others are stores of objects, which have prefixes."""


@frozen
class DirectoryFiles:
    """The data files in a directory and below it. Names that begin with a dot or an underscore are none."""

    exists: bool
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    blocks: int = 0
    newest_us: int = 0
    """Last modification of the newest, in microseconds since 1970; 0 where the file system does not say."""

    depth: int = 0
    """Directories between it and its deepest file."""

    problem: str | None = None
    """Why it could not be listed; then nothing is known."""

    digest: str = ""
    """Of each file's name, size, modification and, where the store has one, entity tag."""


@frozen
class FoundDirectory:
    """A directory below a table's: `kind` is one of the names above. `partition`: its name, of a partition's only."""

    kind: str
    location: str
    partition: str | None = None
    problem: str | None = None


def canonical(location: str) -> str:
    """A location as all of its spellings are written; as it is if it cannot be understood."""
    try:
        return str(Location.parse(location, Location("file", "", "/")))
    except MetaException:
        return location


def place_of(location: str) -> str:
    """What all locations of one directory have in common: whatever scheme of its store they have (``s3``, ``s3a``), and
    on this machine whatever symbolic links they lead through. As it is if it cannot be understood."""
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
    """What has to be there of a file system where a directory is not: the directory above that of its table, `root`, or
    above its own if it lies elsewhere. Else it may be the file system that is missing. None in a store of objects."""
    if location.scheme not in OF_DIRECTORIES:
        return None
    return (root if location.is_inside(root) else location).parent


def leads_nowhere(location: Location) -> bool:
    """Whether a symbolic link on the way to a place of this machine leads to what is not there: nobody has deleted what
    is behind it, as far as can be seen."""
    if location.scheme != "file" or location.authority:
        return False
    return any(os.path.islink(each.path) and not os.path.exists(each.path) for each in (location, *location.ancestors))


class DirectoryLister:
    """Lists directories of any file system, never from what fsspec remembers."""

    def __init__(self, *, small_file_bytes: int = 0, block_bytes: int = 1, limit: RateLimit | None = None) -> None:
        self._file_systems = FileSystems()
        self._small_file_bytes = small_file_bytes
        self._block_bytes = block_bytes
        self._limit = limit or RateLimit(0)

    def open(self, location: Location) -> tuple[Any, str]:
        """The file system and the path in it, when its turn has come, without what was remembered of it.

        Raises MetaException, OSError.
        """
        self._limit.wait(f"{location.scheme}://{location.authority}")
        with driver_errors():
            file_system, path = self._file_systems.open(location)
            file_system.invalidate_cache(path)
        return file_system, path

    def files(self, location: str) -> DirectoryFiles:
        """The files of a directory. Never raises: what goes wrong is told."""
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
        """Whether a directory that is not there, or not seen to have files, may be on a file system that is not there.
        `root`: its table's directory, which may be missing, too; empty if it has none."""
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
        """Paths of the files that count, as `files` counts them. Raises as `below`, also for what lies deeper."""
        start = len(location.path.rstrip("/")) + 1
        for path, info in self.below(location):
            if isinstance(info, Exception):
                raise info
            if info["type"] != "directory" and not is_hidden(path[start:]):
                yield path, info

    def data_files_of(
        self, locations: Sequence[Location]
    ) -> Iterator[tuple[Location, list[tuple[str, Mapping[str, Any]]] | Exception]]:
        """The same of many directories, as `data_files` tells them, or why a directory could not be listed; by as few
        requests as that takes. Only of directories in stores that list in order (`OrderedKeyStore`); of the others
        nothing is told."""
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
        """What is in a directory, by name. Raises FileNotFoundError, OSError, MetaException."""
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
            if full != path.strip("/"):  # stores of objects may tell the marker of the directory itself
                found[full.rpartition("/")[2]] = info
        return found

    def below(self, location: Location) -> Iterator[tuple[str, Mapping[str, Any] | Exception]]:
        """Paths, as locations have them, of all that is below; for a directory that cannot be listed, the error.

        Raises FileNotFoundError if the location is not there; of a store of objects, MetaException and OSError, too,
        the latter also where the bucket is not there: then nobody knows what is in it.
        """
        if location.scheme not in OF_DIRECTORIES:
            file_system, path = self.open(location)
            above = location.path.rstrip("/")
            # A bucket as a whole has no key.
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
                continue  # it went since it was found
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
        """Of these files, as fsspec describes them, each with the number of directories above it."""
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
    """What fsspec tells of a local directory, as far as it is looked at here, in a fifth of the time: a table has ten
    thousand directories of one file, and each is listed three times."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        entries = os.scandir(path)
    except NotADirectoryError:
        os.stat(path)  # it is a file; if one above it is, this tells
        return {}
    with entries:
        for entry in entries:
            try:
                followed = entry.stat() if entry.is_symlink() else None
                size = None if followed is None else followed.st_size
            except OSError:
                size = 0  # it leads nowhere
            try:
                found[entry.name] = _local_info(entry.path, entry.stat(follow_symlinks=False), size)
            except FileNotFoundError:
                continue  # it went since it was listed
    return found


def _local_info(path: str, found: os.stat_result, bytes_behind_link: int | None = None) -> dict[str, Any]:
    kind = "directory" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else "other"
    size = found.st_size if bytes_behind_link is None else bytes_behind_link
    return {"name": path, "size": size, "type": kind, "mtime": found.st_mtime}


def _objects_below(store: KeyStore, path: str, location: Location) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """As `DirectoryLister.below`. Directories are told by their markers only: others are in the paths of files."""
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
        name = f"/{each.name}" if each.name else ""  # empty: its own marker
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
    """Whether an object's key has an empty name in it: Hadoop has one slash for two, and reads no such object. Listed
    like others it would look as if it were in the directory above the empty name."""
    return "//" in key


_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified")
"""What fsspec's file systems call it: local and Arrow's, S3, Azure, Google, others."""


_TAGS = ("ETag", "etag")


def _tag(info: Mapping[str, Any]) -> str:
    """What tells two contents of one name, size and second apart: object stores know whole seconds only."""
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
