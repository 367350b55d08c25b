"""The directories of a table's partitions: one listing per directory above the last level, none per partition.

The rules are those of Hive's `HiveMetaStoreChecker` (4.0.1): a directory ``key=value`` for each key in order, with
case-insensitive keys. Names that begin with a dot or an underscore are ignored; other entries are skipped and reported
(`hive.msck.path.validation` = skip). A partition's directory may be empty.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from hms_cache.jobs.frame.key_values import value_reader
from hms_cache.jobs.frame.rate_limit import RateLimit
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.metadata.partition_names import escape_path_name
from hms_cache.store.warehouse import remote_files
from hms_cache.store.warehouse.file_systems import FileSystems, driver_errors
from hms_cache.store.warehouse.key_stores import key_store_of, store_listed_by_keys
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, MetaException
from hms_cache.values import frozen

NO_PARTITION, UNREADABLE, NO_ROOT = "no partition", "unreadable", "no directory"
"""Kinds of `Problem`: a name that is not a partition's, a failed listing, a missing table directory."""

_WAITING_LISTINGS = 64
"""Maximum number of pending listings of a level: their results wait in memory."""


class Entries(NamedTuple):
    """The entries of a directory, without hidden names."""

    directories: list[str]
    others: list[str]


class Directories:
    """Lists directories of any file system, with limited rate. Thread-safe."""

    def __init__(self, requests_per_s: float = 0) -> None:
        self._file_systems = FileSystems()
        self._limit = RateLimit(requests_per_s)

    def entries(self, location: Location) -> Entries:
        """The names in the directory, in any order. Raises FileNotFoundError, OSError, MetaException."""
        self._limit.wait(f"{location.scheme}://{location.authority}")
        found = Entries([], [])
        if location.scheme == "file":
            # fsspec reads the size of each entry, which takes most of the time.
            with os.scandir(location.path) as entries:
                for entry in entries:
                    if not _is_hidden(entry.name):
                        found[not entry.is_dir()].append(entry.name)
            return found
        with driver_errors():
            file_system, path = self._file_systems.open(location)
            file_system.invalidate_cache(path)
            store = store_listed_by_keys(file_system)
            if store is not None:
                children = store.children(path)
                if not children and not file_system.isdir(path):
                    raise FileNotFoundError(path)
                for name, is_directory in children:
                    if not _is_hidden(name):
                        found[not is_directory].append(name)
                return found
            every = file_system.ls(path, detail=True)
        for info in every:
            name = info["name"].rstrip("/").rpartition("/")[2]
            if info["name"].strip("/") != path.strip("/") and not _is_hidden(name):
                found[info["type"] != "directory"].append(name)
        return found

    def exists(self, location: Location) -> bool:
        """Whether the directory exists now. Raises OSError or MetaException if this cannot be determined."""
        self._limit.wait(f"{location.scheme}://{location.authority}")
        if location.scheme == "file":
            try:
                return stat.S_ISDIR(os.stat(location.path).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False
        try:
            with driver_errors():
                file_system, path = self._file_systems.open(location)
                file_system.invalidate_cache(path)
                if remote_files.is_directory(file_system, path):
                    return True
                store = key_store_of(file_system) if not location.is_root else None
                if store is not None:
                    store.require_bucket(path)
                return False
        except FileNotFoundError:
            return False


@frozen
class Problem:
    """An entry that is not a partition; for `kind` see the names above."""

    kind: str
    location: str
    reason: str


@dataclass(slots=True)
class LeafDirectory:
    """A directory that contains partitions: names of the partitions, and of their directories in the same order."""

    location: Location
    partitions: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    name: str = ""
    """Common prefix of the names of its partitions; empty for the table's own directory."""


class PartitionTree:
    """The directories below a table's."""

    def __init__(self, directories: Directories, location: Location, keys: Sequence[FieldSchema]) -> None:
        self._directories = directories
        self._location = location
        self._keys = [(key.name.lower(), f"{escape_path_name(key.name.lower())}=") for key in keys]
        self._readers = [value_reader(key.type) for key in keys]
        self.listings = 0
        """Number of directories listed."""

    def walk(self, pool: ThreadPoolExecutor) -> Iterator[LeafDirectory]:
        """Walks level by level, with as many parallel listings as the pool has threads. Errors are reported, not
        raised."""
        level: list[tuple[Location, str]] = [(self._location, "")]
        for depth in range(len(self._keys)):
            below: list[tuple[Location, str]] = []
            for leaf in self._listed(pool, level, depth):
                self.listings += 1
                if depth == len(self._keys) - 1:
                    yield leaf
                    continue
                if leaf.problems:
                    yield LeafDirectory(leaf.location, problems=leaf.problems, name=leaf.name)
                below += zip(map(leaf.location.child, leaf.directories), leaf.partitions, strict=True)
            level = below

    def _listed(
        self, pool: ThreadPoolExecutor, level: Sequence[tuple[Location, str]], depth: int
    ) -> Iterator[LeafDirectory]:
        waiting: list[Future[LeafDirectory]] = []
        for location, name in level:
            waiting.append(pool.submit(self._read, location, name, depth))
            if len(waiting) == _WAITING_LISTINGS:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()

    def _read(self, location: Location, above: str, depth: int) -> LeafDirectory:
        leaf = LeafDirectory(location, name=above)
        try:
            entries = self._directories.entries(location)
        except FileNotFoundError as error:
            if depth == 0:
                leaf.problems.append(Problem(NO_ROOT, str(location), str(error)))
            return leaf  # dropped meanwhile
        except (OSError, MetaException) as error:
            leaf.problems.append(Problem(UNREADABLE, str(location), reason_of(error)))
            return leaf
        key, prefix = self._keys[depth]
        prefix = f"{above}/{prefix}" if above else prefix
        read = self._readers[depth]
        above_it = str(location).rstrip("/")  # the location of a bucket ends with a slash
        for name in entries.directories:
            found, _, text = name.partition("=")
            if found.lower() != key or not text or "=" in text:
                reason = f"not {key}=value"
            else:
                try:
                    leaf.partitions.append(prefix + escape_path_name(read(text)))
                    leaf.directories.append(name)
                    continue
                except ValueError as error:
                    reason = str(error)
            leaf.problems.append(Problem(NO_PARTITION, f"{above_it}/{name}", reason))
        for name in entries.others:
            leaf.problems.append(Problem(NO_PARTITION, f"{above_it}/{name}", "a file above the last level"))
        return leaf


def _is_hidden(name: str) -> bool:
    # Hadoop's old S3 file systems created a file next to each directory.
    return name.startswith((".", "_")) or name.endswith("_$folder$")
