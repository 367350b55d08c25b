"""Directories as they are: the files in one, and those below a table that look like partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.warehouse.file_systems import FileSystems
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

# Kinds of directories: a partition's by its name, nobody's, without files, one that cannot be listed, a table's that is
# not there; and of differences from the catalog.
PARTITION, ORPHAN, EMPTY, UNREADABLE, NO_ROOT = "partition", "orphan", "empty", "unreadable", "no root"
MISSING, UNREGISTERED, OUTDATED = "missing", "unregistered", "outdated"


@dataclass(frozen=True, slots=True)
class DirectoryFiles:
    """The data files in a directory and below it. Names that begin with a dot or an underscore are none."""

    exists: bool
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    blocks: int = 0
    newest_us: int = 0
    """Last modification of the newest, in microseconds since 1970; 0 where the file system does not say."""

    problem: str | None = None
    """Why it could not be listed; then nothing is known."""


@dataclass(frozen=True, slots=True)
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


class DirectoryLister:
    """Lists directories of any file system, never from what fsspec remembers."""

    def __init__(self, *, small_file_bytes: int = 0, block_bytes: int = 1) -> None:
        self._file_systems = FileSystems()
        self._small_file_bytes = small_file_bytes
        self._block_bytes = block_bytes

    def files(self, location: str) -> DirectoryFiles:
        """The files of a directory. Never raises: what goes wrong is told."""
        try:
            file_system, path = self._file_systems.open(Location.parse(location))
            file_system.invalidate_cache(path)
            found = file_system.find(path, detail=True)
            if not found and not file_system.exists(path):
                return DirectoryFiles(exists=False)
        except FileNotFoundError:
            return DirectoryFiles(exists=False)
        except (OSError, MetaException) as error:
            return DirectoryFiles(exists=False, problem=_told(error))
        start = len(path.rstrip("/")) + 1
        infos = [info for name, info in found.items() if not _is_hidden(name[start:])]
        sizes = [int(info["size"] or 0) for info in infos]
        return DirectoryFiles(
            exists=True,
            files=len(sizes),
            bytes=sum(sizes),
            small_files=sum(1 for size in sizes if size < self._small_file_bytes),
            blocks=sum(-(-size // self._block_bytes) for size in sizes),
            newest_us=max(map(_modified_us, infos), default=0),
        )

    def below(self, location: str, keys: Sequence[str], depth: int | None = None) -> Iterator[FoundDirectory]:
        """Directories of partitions below a directory whose own partition keys, if any, are not among `keys`.

        With `depth` only so many levels down; what is found there may have levels of its own. Never raises.
        """
        yield from self._below(location, tuple(keys), (), depth)

    def rest(self, location: str, table_location: str, keys: Sequence[str]) -> Iterator[FoundDirectory]:
        """Directories of partitions at and below a directory that `below` found under the table's."""
        parts = location[len(table_location.rstrip("/")) + 1 :].split("/")
        values = tuple(unescape_path_name(part.partition("=")[2]) for part in parts)
        if len(values) == len(keys):
            yield FoundDirectory(PARTITION, location, make_partition_name(keys, values))
        else:
            yield from self._below(location, tuple(keys), values, None)

    def _below(
        self, location: str, keys: tuple[str, ...], values: tuple[str, ...], depth: int | None
    ) -> Iterator[FoundDirectory]:
        if depth == 0 or len(values) == len(keys):
            yield FoundDirectory(PARTITION, location, make_partition_name(keys[: len(values)], values))
            return
        try:
            here = Location.parse(location)
            file_system, path = self._file_systems.open(here)
            file_system.invalidate_cache(path)
            entries = file_system.ls(path, detail=True)
        except FileNotFoundError:
            yield FoundDirectory(EMPTY if values else NO_ROOT, location)
            return
        except (OSError, MetaException) as error:
            yield FoundDirectory(UNREADABLE, location, problem=_told(error))
            return
        names = [entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory"]
        names = [name for name in names if not _is_hidden(name)]
        if values and not names:
            files = [entry["name"] for entry in entries if not _is_hidden(entry["name"].rpartition("/")[2])]
            yield FoundDirectory(ORPHAN if files else EMPTY, location)
        for name in sorted(names):
            key, equals, value = name.partition("=")
            below = str(here.child(name))
            if equals and key.lower() == keys[len(values)].lower():
                deeper = None if depth is None else depth - 1
                yield from self._below(below, keys, (*values, unescape_path_name(value)), deeper)
            else:
                yield FoundDirectory(ORPHAN, below)


_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified")
"""What fsspec's file systems call it: local and Arrow's, S3, Azure, Google, others."""


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


def _is_hidden(relative_path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in relative_path.split("/"))


def _told(error: Exception) -> str:
    return str(getattr(error, "message", None) or error) or type(error).__name__
