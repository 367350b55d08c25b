"""Records of moves in progress, with which a repeated call recognizes a directory that a server moved before it died.

A directory is moved before the commit. If the process dies before its commit, the row still has the old location while
the files are at the new one, and a repeated call would find its destination occupied. So a hidden file beside the
destination first records the move; it is deleted when the outcome of the write is known. It contains the directory's
inode number, so that only the moved directory itself is recognized. Used on local file systems; others move file by
file, or have no inodes.
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
"""Prefix of these files, which readers of tables ignore."""

COPY_PREFIX = ".hms-cache-copy-"
"""Prefix of copies in progress; each is renamed when it is complete."""

RECORD_MAX_BYTES = 64 * 1024
"""More than two paths of maximum length on any file system of this machine."""


@frozen
class MoveRecord:
    """Source and destination of a move."""

    source: str
    destination: str
    inode: int

    def encode(self) -> bytes:
        """The content of the file."""
        return json.dumps({"source": self.source, "destination": self.destination, "inode": self.inode}).encode()

    @classmethod
    def decode(cls, content: bytes) -> MoveRecord | None:
        """None if the content is not a record, or is truncated."""
        try:
            found = json.loads(content)
            return cls(str(found["source"]), str(found["destination"]), int(found["inode"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


class MoveRecords:
    """Writes and finds records, with the file operations of a `Warehouse`."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    def location_of_copy(self, destination: AllowedLocation) -> AllowedLocation | None:
        """The temporary location for a copy to this destination, which is then renamed; None where renaming would copy
        again."""
        parent = destination.parent
        return parent.child(copy_name(destination.location)) if destination.is_local and parent is not None else None

    def begin(
        self, source: AllowedLocation, destination: AllowedLocation, origin: AllowedLocation | None = None
    ) -> AllowedLocation | None:
        """Records beside the destination that the source is about to be moved there. Returns the file, or None where no
        records are kept.

        `origin`: the location in the row, if an interrupted move has already moved the directory to the source. Raises
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
        """The record of exactly this move if it was interrupted, otherwise None.

        It is valid if the destination is the directory that was moved, or an empty one created for it while the source
        is still at its place. Raises MetaException.
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
        """The location to which an interrupted move has taken this directory, and the move's record; None if there is
        none.

        Reads the records of moves inside the directory's parent. Raises MetaException.
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
                continue  # the record of a move that has ended meanwhile
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
    """The name of the record beside a destination. It has a fixed length, since a directory's name may have the maximum
    length."""
    return RECORD_PREFIX + _digest(destination)


def copy_name(destination: Location) -> str:
    """The name beside a destination under which its copy is made."""
    return COPY_PREFIX + _digest(destination)


def _digest(destination: Location) -> str:
    return hashlib.sha256(destination.name.encode(errors="surrogatepass")).hexdigest()[:32]
