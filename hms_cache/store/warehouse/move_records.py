"""Records of moves under way, by which a repeated call finds what a server that died in between has moved already.

A directory is moved before the commit. If the process dies before its commit, the row still names the old place while
the files lie at the new one, and a repeat of the call would find its destination taken. So a hidden file beside the
destination says first what is moved; it goes when the write's fate is known. The directory's inode is in it: only the
very directory that was moved is taken for it. For local file systems; others move file by file, or have no inodes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from hms_cache.store.warehouse.allowed import AllowedLocation
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

if TYPE_CHECKING:
    from hms_cache.store.warehouse.warehouse import Warehouse

RECORD_PREFIX = ".hms-cache-move-"
"""Begin of the names of such files; hidden from all that read tables."""

COPY_PREFIX = ".hms-cache-copy-"
"""Begin of the names of copies that are being made; each is renamed when it is whole."""

RECORD_MAX_BYTES = 64 * 1024
"""Longer than two paths can be on any file system of this machine."""


@frozen
class MoveRecord:
    """What was to be moved where."""

    source: str
    destination: str
    inode: int

    def encode(self) -> bytes:
        """As it is written."""
        return json.dumps({"source": self.source, "destination": self.destination, "inode": self.inode}).encode()

    @classmethod
    def decode(cls, content: bytes) -> MoveRecord | None:
        """None for what is no record, or was cut short."""
        try:
            found = json.loads(content)
            return cls(str(found["source"]), str(found["destination"]), int(found["inode"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


class MoveRecords:
    """Writes and finds them, with the file operations of a `Warehouse`."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    def place_of_copy(self, destination: AllowedLocation) -> AllowedLocation | None:
        """Where a copy for this destination is made before it is renamed; None where that would copy it once more."""
        parent = destination.parent
        return parent.child(copy_name(destination.location)) if destination.is_local and parent is not None else None

    def begin(
        self, source: AllowedLocation, destination: AllowedLocation, origin: AllowedLocation | None = None
    ) -> AllowedLocation | None:
        """Writes beside the destination that the source is about to be moved there: the file, None where none is kept.

        `origin`: where the row says that it is, if it was moved to the source by a move that was cut short. Raises
        MetaException.
        """
        parent = destination.parent
        if not source.is_local or not destination.is_local or parent is None:
            return None
        inode = self._warehouse.inode(source)
        if inode is None:
            return None
        record = parent.child(record_name(destination.location))
        self._warehouse.write_file(record, MoveRecord(str(origin or source), str(destination), inode).encode())
        return record

    def interrupted(self, source: AllowedLocation, destination: AllowedLocation) -> AllowedLocation | None:
        """The record of exactly this move that was cut short, None if there is none.

        It counts when the destination is the very directory that was moved, or an empty one made for it while the
        source is where it was. Raises MetaException.
        """
        parent = destination.parent
        if not source.is_local or not destination.is_local or parent is None:
            return None
        file = parent.child(record_name(destination.location))
        if not self._warehouse.exists(file):
            return None
        record = MoveRecord.decode(self._warehouse.read_file(file, RECORD_MAX_BYTES))
        if record is None or (record.source, record.destination) != (str(source), str(destination)):
            return None
        there = self._warehouse.inode(source)
        if there is None:
            return file if self._warehouse.inode(destination) == record.inode else None
        return (
            file
            if there == record.inode and self._warehouse.exists(destination) and self._warehouse.is_vacant(destination)
            else None
        )

    def moved_beside(self, source: AllowedLocation) -> tuple[AllowedLocation, AllowedLocation] | None:
        """Where a move that was cut short has taken this directory, and the record of that; None if there is none.

        Looks at the records of moves within the directory that it was in. Raises MetaException.
        """
        parent = source.parent
        if not source.is_local or parent is None:
            return None
        for name in self._warehouse.names(parent):
            if not name.startswith(RECORD_PREFIX):
                continue
            file = parent.child(name)
            try:
                record = MoveRecord.decode(self._warehouse.read_file(file, RECORD_MAX_BYTES))
            except MetaException:
                continue  # of a move that has ended meanwhile
            if record is None or record.source != str(source):
                continue
            last = record.destination.rpartition("/")[2]
            if last in ("", ".", ".."):
                continue
            place = parent.child(last)
            if str(place) == record.destination and self._warehouse.inode(place) == record.inode:
                return place, file
        return None


def record_name(destination: Location) -> str:
    """The name of the record beside a destination; of a fixed length, as a directory's own name may be the longest."""
    return RECORD_PREFIX + _digest(destination)


def copy_name(destination: Location) -> str:
    """The name beside a destination under which its copy is made."""
    return COPY_PREFIX + _digest(destination)


def _digest(destination: Location) -> str:
    return hashlib.sha256(destination.name.encode(errors="surrogatepass")).hexdigest()[:32]
