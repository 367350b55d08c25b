"""Lists all files below a table, with one recursive listing per prefix, and assigns them to partitions by path.

An object store (S3, GCS, ABFS) lists a prefix with everything below it, a thousand objects per answer. There, a prefix
is the directory of a value of the first key, or the table's directory if there is one key. A file system with
directories lists each of them once, in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_cache.jobs.files.directories import (
    EMPTY,
    NO_ROOT,
    OF_DIRECTORIES,
    ORPHAN,
    PARTITION,
    UNREADABLE,
    DirectoryFiles,
    DirectoryLister,
    FoundDirectory,
    is_hidden,
)
from hms_cache.jobs.frame.key_values import value_reader
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.warehouse import remote_files
from hms_cache.store.warehouse.file_systems import driver_errors
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen


@frozen
class ListedDirectory:
    """A directory below a table's, with the data files in and below it; `files` is None if it was not listed."""

    found: FoundDirectory
    files: DirectoryFiles | None = None


@dataclass(slots=True)
class _Directory:
    """What was found in a directory above the last level."""

    has_files: bool = False
    has_directories: bool = False


class TreeLister(DirectoryLister):
    """Lists trees of partitions."""

    def prefixes(self, location: str, keys: Sequence[str]) -> Iterator[FoundDirectory]:
        """The prefixes for `tree`, which together cover everything below the table's directory. Never raises."""
        try:
            root = Location.parse(location)
            if root.scheme not in OF_DIRECTORIES and len(keys) == 1:
                file_system, path = self.open(root)
                with driver_errors():
                    kind = PARTITION if remote_files.is_directory(file_system, path) else NO_ROOT
                yield FoundDirectory(kind, location)
                return
            entries = self.entries(root)
        except FileNotFoundError:
            yield FoundDirectory(NO_ROOT, location)
            return
        except (OSError, MetaException) as error:
            yield FoundDirectory(UNREADABLE, location, problem=reason_of(error))
            return
        for name in sorted(name for name, info in entries.items() if info["type"] == "directory"):
            if not is_hidden(name):
                yield FoundDirectory(PARTITION, str(root.child(name)))

    def tree(
        self, prefix: str, location: str, keys: Sequence[str], types: Sequence[str] = ()
    ) -> Iterator[ListedDirectory]:
        """Directories of partitions at and below `prefix`, of the table at `location`, with their files; and other
        directories, which belong to no partition. Never raises.

        :param types: of the keys; all texts by default.
        """
        root = Location.parse(location)
        start = len(root.path.rstrip("/")) + 1
        above = str(root).rstrip("/")
        seen = _Tree(tuple(keys), tuple(types))
        try:
            for path, info in self.below(Location.parse(prefix)):
                if isinstance(info, Exception):
                    seen.unread.append(path[start:])
                    yield ListedDirectory(
                        FoundDirectory(UNREADABLE, f"{above}/{path[start:]}", problem=reason_of(info))
                    )
                elif path[start:] and not is_hidden(path[start:]):
                    seen.add(path[start:].split("/"), info)
        except FileNotFoundError:
            return  # deleted since it was found
        except (OSError, MetaException) as error:
            yield ListedDirectory(FoundDirectory(UNREADABLE, prefix, problem=reason_of(error)))
            return
        for directory, (name, infos) in seen.known():
            yield ListedDirectory(FoundDirectory(PARTITION, f"{above}/{directory}", name), self.figures(infos))
        for directory, kind in seen.others():
            yield ListedDirectory(FoundDirectory(kind, f"{above}/{directory}"))


class _Tree:
    """Entries below a table's directory, sorted into partitions and others."""

    def __init__(self, keys: tuple[str, ...], types: tuple[str, ...] = ()) -> None:
        self._keys = tuple(key.lower() for key in keys)
        self._readers = [value_reader(kind) for kind in types or ("string",) * len(keys)]
        self.partitions: dict[str, tuple[str, list[tuple[int, Mapping[str, Any]]]]] = {}
        """By directory: the partition's name, and its files with their depths."""

        self.unread: list[str] = []
        """Directories that could not be listed."""

        self._orphans: set[str] = set()
        self._above: dict[str, _Directory] = {}

    def add(self, parts: list[str], info: Mapping[str, Any]) -> None:
        """Adds an entry, given the names on its path from the table's directory."""
        is_directory = info["type"] == "directory"
        directories = parts if is_directory else parts[:-1]
        depth = len(self._keys)
        values = self._values(directories)
        for level in range(1, min(len(values), depth - 1) + 1):
            above = self._above.setdefault("/".join(directories[:level]), _Directory())
            above.has_directories |= len(directories) > level
            above.has_files |= not is_directory and len(directories) == level
        if len(values) == depth:
            directory = "/".join(directories[:depth])
            if directory not in self.partitions:
                self.partitions[directory] = (make_partition_name(self._keys, values), [])
            if not is_directory:
                self.partitions[directory][1].append((len(directories) - depth, info))
        elif len(values) < len(directories):
            self._orphans.add("/".join(directories[: len(values) + 1]))

    def _values(self, directories: Sequence[str]) -> list[str]:
        """Values of the first directories, as far as they are named by the keys and are valid for their types."""
        values: list[str] = []
        for key, read, directory in zip(self._keys, self._readers, directories, strict=False):
            name, equals, value = directory.partition("=")
            if not equals or name.lower() != key:
                break
            try:
                values.append(read(value))
            except ValueError:
                break
        return values

    def known(self) -> Iterator[tuple[str, tuple[str, list[tuple[int, Mapping[str, Any]]]]]]:
        """The partitions that were listed completely."""
        for directory, partition in self.partitions.items():
            if not any(f"{path}/".startswith(f"{directory}/") for path in self.unread):
                yield directory, partition

    def others(self) -> Iterator[tuple[str, str]]:
        """Directories that belong to no partition, with their kinds."""
        for directory in self._orphans:
            yield directory, ORPHAN
        for directory, seen in self._above.items():
            if not seen.has_directories and directory not in self.unread:
                yield directory, ORPHAN if seen.has_files else EMPTY
