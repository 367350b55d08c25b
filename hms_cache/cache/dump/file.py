"""The file of a dump: sections with a checksum each, the last of which says that it is whole.

    section  kind (4 bytes), length of the tree, length of the runs of bytes, CRC-32 of both, the tree (JSON, with the
             lengths of the runs), the runs
    kinds    HEAD, once, first · ENTR, small entries · PART, the partitions of one table · LAST, once

A file is written beside its name and takes it when it is whole, so that a reader never sees a half of one, whatever
ends the writer. Only its owner may write to it: what stands in it is answered to clients.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from hms_cache.cache.dump.values import UNREADABLE, BadDump
from hms_cache.values import frozen

HEAD: Final = b"HMSD"
ENTRIES: Final = b"ENTR"
PARTITIONS: Final = b"PART"
LAST: Final = b"LAST"

_FRAME: Final = struct.Struct("<4sIQI")

MAX_TREE_BYTES: Final = 512 * 1024 * 1024
"""Of one section's tree: a table with 20,000 changed partitions has 10 MB. A longer one is no dump of ours."""

_PIECE_BYTES: Final = 1024 * 1024
"""Written between two looks at the clock."""

_ELEMENTS_AT_ONCE: Final = 100
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class NotADump(BadDump):
    """Somebody else's file: it must not be replaced."""


@frozen
class Section:
    """Where a section stands in the file."""

    kind: bytes
    offset: int
    tree_bytes: int
    body_bytes: int
    checksum: int


class DumpWriter:
    """Writes one file. `rest` is told after each piece how many bytes it had. Use as a context manager: leaving it with
    an error removes what was written."""

    def __init__(self, path: Path, rest: Callable[[int], None] = lambda written: None) -> None:
        """Raises OSError.

        Somebody else who writes a dump of this name meanwhile puts another file in the place of the new one.
        """
        self._path = path
        self._rest = rest
        self._new = path.with_name(path.name + ".new")
        self._new.unlink(missing_ok=True)
        opened = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(opened, "wb", buffering=0)
        self.bytes = 0
        self._sections = 0

    def __enter__(self) -> DumpWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        is_ours = self._is_there()
        self._file.close()
        if error is not None and is_ours:
            self._new.unlink(missing_ok=True)

    def write(self, kind: bytes, tree: Any, blobs: Sequence[bytes] = ()) -> None:
        """One section. Raises OSError."""
        text = "".join(_json({"tree": tree, "lengths": [len(blob) for blob in blobs]})).encode()
        checksum = zlib.crc32(text)
        for blob in blobs:
            checksum = zlib.crc32(blob, checksum)
        self._put(_FRAME.pack(kind, len(text), sum(map(len, blobs)), checksum))
        self._put(text)
        for blob in blobs:
            self._put(blob)
        self._sections += 1

    def finish(self) -> None:
        """Writes the last section; all of it is on the disk then. Raises OSError."""
        self.write(LAST, {"sections": self._sections})
        os.fsync(self._file.fileno())

    def take_name(self) -> None:
        """Puts the finished file in the place of the one before. Raises OSError."""
        if not self._is_there():
            raise OSError("another server writes to it: each needs a file of its own")
        os.replace(self._new, self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _is_there(self) -> bool:
        """Whether the new file is still the one that was made. Only while that is open, which keeps its number."""
        try:
            found = os.lstat(self._new)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self._file.fileno()))

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = self._file.write(view[:_PIECE_BYTES]) or 0
            view = view[written:]
            self.bytes += written
            self._rest(written)


def _json(value: Any) -> Iterator[str]:
    """Like `json.dumps`, but in one go for some elements of a long list at a time: the other threads stand still
    meanwhile, for a second where it is the statistics of thousands of partitions."""
    if type(value) is dict:
        for number, (name, one) in enumerate(value.items()):
            yield f"{',' if number else '{'}{_encode(name)}:"
            yield from _json(one)
        yield "}" if value else "{}"
    elif type(value) is list and len(value) > _ELEMENTS_AT_ONCE:
        for start in range(0, len(value), _ELEMENTS_AT_ONCE):
            yield f"{',' if start else '['}{_encode(value[start : start + _ELEMENTS_AT_ONCE])[1:-1]}"
        yield "]"
    elif type(value) is list:
        for number, one in enumerate(value):
            yield "," if number else "["
            yield from _json(one)
        yield "]" if value else "[]"
    else:
        yield _encode(value)


class DumpReader:
    """Reads one file. Not for two threads."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Finds the sections and reads none. Raises BadDump, NotADump, OSError (FileNotFoundError: there is none)."""
        # Not to wait for a writer where somebody put a pipe, nor to follow a link to another's file.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._file: BinaryIO = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
        try:
            self.bytes = _size_of_own_file(self._file, max_bytes)
            self.sections = tuple(self._find_sections())
            if self.sections[-1].kind != LAST:
                raise BadDump("the file is cut")
            last, _ = self.read(self.sections[-1])
            if last != {"sections": len(self.sections) - 1}:
                raise BadDump("sections are missing")
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Again: nothing."""
        self._file.close()

    def _find_sections(self) -> Iterator[Section]:
        offset = 0
        while offset < self.bytes or not offset:
            self._file.seek(offset)
            frame = self._file.read(_FRAME.size)
            if len(frame) < _FRAME.size:
                raise BadDump("the file is cut") if offset else NotADump("it is no dump")
            kind, tree_bytes, body_bytes, checksum = _FRAME.unpack(frame)
            if not offset and kind != HEAD:
                raise NotADump("it is no dump")
            start = offset + _FRAME.size
            if start + tree_bytes + body_bytes > self.bytes or tree_bytes > MAX_TREE_BYTES:
                raise BadDump("the file is cut")
            yield Section(kind, start, tree_bytes, body_bytes, checksum)
            offset = start + tree_bytes + body_bytes

    def read(self, section: Section) -> tuple[Any, list[bytes]]:
        """(the tree, the runs of bytes) of a section. Raises BadDump, OSError."""
        self._file.seek(section.offset)
        text = self._file.read(section.tree_bytes)
        checksum = zlib.crc32(text)
        try:
            outer = json.loads(text)
            tree, lengths = outer["tree"], outer["lengths"]
            if sum(lengths) != section.body_bytes or min(lengths, default=0) < 0:
                raise BadDump("lengths that do not add up")
        except (*UNREADABLE, RecursionError) as error:
            raise BadDump(f"a section cannot be read: {error}") from error
        blobs = []
        for length in lengths:
            blobs.append(self._file.read(length))
            checksum = zlib.crc32(blobs[-1], checksum)
        if checksum != section.checksum:
            raise BadDump("a checksum is wrong")
        return tree, blobs


def _size_of_own_file(file: BinaryIO, max_bytes: int) -> int:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise NotADump("it is no ordinary file")
    if found.st_size > max_bytes:
        raise BadDump(f"it has {found.st_size} bytes, more than {max_bytes}: it is not a dump of this program")
    if hasattr(os, "geteuid"):
        if found.st_uid not in (os.geteuid(), 0):
            raise BadDump("it belongs to another user")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise BadDump("others may write to it: its mode must be 0600")
    return found.st_size
