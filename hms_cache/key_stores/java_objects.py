"""Reads the part of Java's object serialization that key stores use: objects with numbers, texts and arrays of bytes.

Format: Java Object Serialization Specification, version 6. Nothing is instantiated: an object becomes a dictionary of
its fields. Everything else is refused, so the content of a file cannot select a class to load.
"""

from __future__ import annotations

import struct
from typing import Final

from hms_cache.key_stores.errors import KeyStoreError

_MAGIC: Final = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _END_OF_BLOCK = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x78
_FIRST_HANDLE: Final = 0x7E0000
_SERIALIZABLE: Final = 0x02
_NUMBERS: Final = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}

_MAX_DEPTH: Final = 8
"""Maximum nesting of objects, classes and their ancestors. Key stores nest three levels."""

Value = int | float | str | bytes | None | dict[str, "Value"]


class _Class:
    """A class description: its fields in order, as (type code, name), and the class that it extends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[tuple[str, str]] = []
        self.parent: _Class | None = None

    def all_fields(self) -> list[tuple[str, str]]:
        """The fields of ancestors first: values are written in this order."""
        found: list[tuple[str, str]] = []
        one: _Class | None = self
        for _ in range(_MAX_DEPTH):
            if one is None:
                return found
            found[:0] = one.fields
            one = one.parent
        raise KeyStoreError("a class extends itself")


def read_object(content: bytes, start: int = 0) -> tuple[Value, int]:
    """Returns the object whose stream begins at `start`, and the position after the stream.

    :raises KeyStoreError: damaged, or something other than described in the module.
    """
    reader = _Reader(content, start)
    if reader.take(len(_MAGIC)) != _MAGIC:
        raise KeyStoreError("a serialized object is damaged")
    return reader.value(0), reader.at


class _Reader:
    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self.at = at
        self._handles: list[_Class | Value] = []
        """The targets of later references, in order of occurrence."""

    def take(self, count: int) -> bytes:
        found = self._content[self.at : self.at + count]
        if len(found) != count:
            raise KeyStoreError("a serialized object is truncated")
        self.at += count
        return found

    def value(self, depth: int) -> Value:
        if depth > _MAX_DEPTH:
            raise KeyStoreError("a serialized object is nested too deeply")
        code = self.take(1)[0]
        if code == _NULL:
            return None
        if code == _REFERENCE:
            found = self._referred()
            if isinstance(found, _Class):
                raise KeyStoreError("a serialized object is damaged")
            return found
        if code == _STRING:
            text = self._text()
            self._handles.append(text)
            return text
        if code == _ARRAY:
            return self._bytes(depth)
        if code == _OBJECT:
            return self._object(depth)
        raise KeyStoreError(f"a serialized object has a part of an unexpected kind ({code:#x})")

    def _object(self, depth: int) -> dict[str, Value]:
        kind = self._class(depth + 1)
        if kind is None:
            raise KeyStoreError("a serialized object has no class")
        values: dict[str, Value] = {"class": kind.name}
        self._handles.append(values)
        for code, name in kind.all_fields():
            if code in _NUMBERS:
                form = _NUMBERS[code]
                (values[name],) = struct.unpack(form, self.take(struct.calcsize(form)))
            else:
                values[name] = self.value(depth + 1)
        return values

    def _bytes(self, depth: int) -> bytes:
        kind = self._class(depth + 1)
        if kind is None or kind.name != "[B":
            raise KeyStoreError("a serialized object has an array that is not of bytes")
        place = len(self._handles)
        self._handles.append(None)
        found = self.take(int.from_bytes(self.take(4), "big"))
        self._handles[place] = found
        return found

    def _class(self, depth: int) -> _Class | None:
        code = self.take(1)[0]
        if code == _NULL:
            return None
        if code == _REFERENCE:
            found = self._referred()
            if not isinstance(found, _Class):
                raise KeyStoreError("a serialized object is damaged")
            return found
        if code != _CLASS or depth > _MAX_DEPTH:
            raise KeyStoreError("a serialized object has a class of an unexpected kind")
        kind = _Class(self._text())
        self.take(8)  # serialVersionUID: versions of these classes do not differ in their fields
        self._handles.append(kind)
        if self.take(1)[0] != _SERIALIZABLE:
            raise KeyStoreError(f"objects of {kind.name} are written by code of their own")
        for _ in range(int.from_bytes(self.take(2), "big")):
            type_code, name = chr(self.take(1)[0]), self._text()
            if type_code in "[L":
                self.value(depth + 1)  # the type's name, which may be a reference
            elif type_code not in _NUMBERS:
                raise KeyStoreError("a serialized object has a field of an unknown type")
            kind.fields.append((type_code, name))
        if self.take(1)[0] != _END_OF_BLOCK:
            raise KeyStoreError(f"the class {kind.name} has annotations")
        kind.parent = self._class(depth + 1)
        return kind

    def _referred(self) -> _Class | Value:
        number = int.from_bytes(self.take(4), "big") - _FIRST_HANDLE
        if not 0 <= number < len(self._handles):
            raise KeyStoreError("a serialized object is damaged")
        return self._handles[number]

    def _text(self) -> str:
        return modified_utf8(self.take(int.from_bytes(self.take(2), "big")))


def modified_utf8(content: bytes) -> str:
    """A text as Java's DataOutput writes it: a zero character as two bytes, characters beyond 16 bits as two of three
    bytes each.

    :raises KeyStoreError: it is not one.
    """
    try:
        halves = content.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        return halves.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError as error:
        raise KeyStoreError("a text is damaged") from error
