"""Records of moves under way, by which a repeated call finds what a server that died in between has moved already.

A directory is moved before the commit. If the process dies before its commit, the row still names the old place while
the files lie at the new one, and a repeat of the call would find its destination taken. So a hidden file beside the
destination says first what is moved; it goes when the write's fate is known. The directory's inode is in it: only the
very directory that was moved is taken for it. For local file systems; others move file by file, or have no inodes.
"""

from __future__ import annotations

import hashlib
import json

from hms_cache.store.warehouse.locations import Location
from hms_cache.values import frozen

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


def record_name(destination: Location) -> str:
    """The name of the record beside a destination; of a fixed length, as a directory's own name may be the longest."""
    return RECORD_PREFIX + _digest(destination)


def copy_name(destination: Location) -> str:
    """The name beside a destination under which its copy is made."""
    return COPY_PREFIX + _digest(destination)


def _digest(destination: Location) -> str:
    return hashlib.sha256(destination.name.encode(errors="surrogatepass")).hexdigest()[:32]
