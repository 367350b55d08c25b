"""The file of a dump: a sequence of sections with checksums. The last section marks a complete file.

    section  kind (4 bytes), length of the tree, length of the byte strings, CRC-32 of both, the tree (JSON, with the
             lengths of the byte strings), the byte strings
    kinds    HEAD, once, first · ENTR, small entries · PART, the partitions of one table · LAST, once

The file is written under another name and renamed when it is complete. So a reader never sees an incomplete one,
however the writer ends. Only its owner may be able to write to it, because clients get its contents as answers.
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
"""Maximum length of one section's tree; a table with 20,000 changed partitions has 10 MB. This program writes no longer
ones."""

_PIECE_BYTES: Final = 1024 * 1024
"""Maximum number of bytes per write; `pause` is called after each one."""

_ELEMENTS_AT_ONCE: Final = 100
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class NotADump(BadDump):
    """The file is not a dump, and must not be replaced."""


@frozen
class Section:
    """The place of a section in the file."""

    kind: bytes
    offset: int
    tree_bytes: int
    body_bytes: int
    checksum: int


class DumpWriter:
    """Writes one file. Use it as a context manager: if it is left with an error, it removes what was written.

    :param pause: is called after each write with its number of bytes; it may sleep, which limits the rate.
    """

    def __init__(self, path: Path, pause: Callable[[int], None] = lambda written: None) -> None:
        """Raises OSError. If another process writes a dump of the same name meanwhile, it replaces the new file, and
        `replace_previous` fails."""
        self._path = path
        self._pause = pause
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
        """Writes one section. Raises OSError."""
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
        """Writes the last section, and waits until the whole file is on disk. Raises OSError."""
        self.write(LAST, {"sections": self._sections})
        os.fsync(self._file.fileno())

    def replace_previous(self) -> None:
        """Replaces the previous file by the finished one. Raises OSError."""
        if not self._is_there():
            raise OSError("another server writes to it: give each server a file of its own")
        os.replace(self._new, self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _is_there(self) -> bool:
        """Whether the new file is still the one that this writer created. Only valid while that is open: its inode
        number cannot be reused until then."""
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
            self._pause(written)


def _json(value: Any) -> Iterator[str]:
    """Like `json.dumps`, but encodes a long list some elements at a time. Other threads cannot run during one call of
    the encoder, which would take a second for the statistics of thousands of partitions."""
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
    """Reads one file. Not thread-safe."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Finds the sections and checks that the file is complete. Raises BadDump, NotADump, OSError
        (FileNotFoundError: there is no file)."""
        # Does not wait for a writer if the path is a pipe, and does not follow a link to a file of another user.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._file: BinaryIO = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
        try:
            self.bytes = _size_of_own_file(self._file, max_bytes)
            self.sections = tuple(self._find_sections())
            if self.sections[-1].kind != LAST:
                raise BadDump("the file is truncated")
            last, _ = self.read(self.sections[-1])
            if last != {"sections": len(self.sections) - 1}:
                raise BadDump("sections are missing")
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Closes the file; further calls do nothing."""
        self._file.close()

    def _find_sections(self) -> Iterator[Section]:
        offset = 0
        while offset < self.bytes or not offset:
            self._file.seek(offset)
            frame = self._file.read(_FRAME.size)
            if len(frame) < _FRAME.size:
                raise BadDump("the file is truncated") if offset else NotADump("it is not a dump")
            kind, tree_bytes, body_bytes, checksum = _FRAME.unpack(frame)
            if not offset and kind != HEAD:
                raise NotADump("it is not a dump")
            start = offset + _FRAME.size
            if start + tree_bytes + body_bytes > self.bytes or tree_bytes > MAX_TREE_BYTES:
                raise BadDump("the file is truncated")
            yield Section(kind, start, tree_bytes, body_bytes, checksum)
            offset = start + tree_bytes + body_bytes

    def read(self, section: Section) -> tuple[Any, list[bytes]]:
        """Returns (the tree, the byte strings) of a section. Raises BadDump, OSError."""
        self._file.seek(section.offset)
        text = self._file.read(section.tree_bytes)
        checksum = zlib.crc32(text)
        try:
            outer = json.loads(text)
            tree, lengths = outer["tree"], outer["lengths"]
            if sum(lengths) != section.body_bytes or min(lengths, default=0) < 0:
                raise BadDump("the lengths do not add up")
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
        raise NotADump("it is not a regular file")
    if found.st_size > max_bytes:
        raise BadDump(f"it has {found.st_size} bytes, more than {max_bytes}: it is not a dump of this program")
    if hasattr(os, "geteuid"):
        if found.st_uid not in (os.geteuid(), 0):
            raise BadDump("it belongs to another user")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise BadDump("other users can write to it: set its mode to 0600")
    return found.st_size
