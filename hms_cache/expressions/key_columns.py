"""Partition values by key, factorized: per key a sorted dictionary of distinct texts, and a small integer code per row.

Equality and ranges of text become comparisons of codes. Every other predicate is evaluated once per distinct text and
expanded to the rows by a table lookup. A dictionary is converted to typed values at first use, and the result kept.
Values are immutable, so readers need no lock while a writer creates the next version; two threads may convert the same
dictionary at the same time, with equal results.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hms_cache.expressions.key_types import DEFAULT_PARTITION_NAME, KeyKind, PartitionKey, read_text

Mask: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[Any]
"""Unsigned integers of the smallest width that fits the dictionary."""


class TextDictionary(Sequence[str]):
    """Distinct texts in code point order, stored as one UTF-8 string: a quarter of the memory of a list of `str`."""

    __slots__ = ("_data", "_offsets")

    def __init__(self, data: bytes, offsets: npt.NDArray[np.uint32] | npt.NDArray[np.uint64]) -> None:
        self._data = data
        self._offsets = offsets

    @classmethod
    def from_sorted(cls, texts: Sequence[str]) -> TextDictionary:
        """Creates a dictionary from distinct texts in code point order."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.uint64, len(encoded))
        offsets = np.zeros(len(encoded) + 1, np.uint64)
        np.cumsum(lengths, out=offsets[1:])
        small = int(offsets[-1]) < 1 << 32
        return cls(b"".join(encoded), offsets.astype(np.uint32) if small else offsets)

    def __reduce__(self) -> tuple[type[TextDictionary], tuple[Any, ...]]:
        """Pickled as bytes, whatever memory they are in."""
        return TextDictionary, (bytes(self._data), self._offsets)

    @property
    def parts(self) -> tuple[bytes, npt.NDArray[Any]]:
        """The concatenated texts in UTF-8, and their start offsets with the end of the last one."""
        return self._data, self._offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _encoded(self, index: int) -> bytes:
        return self._data[int(self._offsets[index]) : int(self._offsets[index + 1])]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._encoded(index).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        data, start = self._data, 0
        for end in self._offsets[1:].tolist():
            yield data[start:end].decode("utf-8", "surrogatepass")
            start = end

    def position(self, text: str) -> int:
        """Number of entries before `text`; its own index if it is an entry."""
        return bisect_left(range(len(self)), text.encode("utf-8", "surrogatepass"), key=self._encoded)

    def find(self, text: str) -> int | None:
        """The index of `text`, or None."""
        position = self.position(text)
        if position < len(self) and self._encoded(position) == text.encode("utf-8", "surrogatepass"):
            return position
        return None

    def memory_bytes(self) -> int:
        """Memory used."""
        return len(self._data) + int(self._offsets.nbytes)


class TypedReading:
    """A dictionary converted to another kind: `values[i]` if `valid[i]`; otherwise the value is a placeholder."""

    __slots__ = ("memory_bytes", "valid", "values")

    def __init__(self, values: npt.NDArray[Any], valid: Mask) -> None:
        self.values = values
        self.valid = valid
        self.memory_bytes = values.nbytes + valid.nbytes
        """Memory used; for an array of objects only their addresses."""
        if values.dtype == object:
            self.memory_bytes += sum(map(sys.getsizeof, values[valid]))


class KeyColumn:
    """One key of all rows."""

    __slots__ = ("_readings", "codes", "dictionary")

    def __init__(self, codes: Codes, dictionary: TextDictionary) -> None:
        self.codes = codes
        self.dictionary = dictionary
        self._readings: dict[tuple[KeyKind, bool], TypedReading] = {}

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> KeyColumn:
        distinct = sorted(set(texts))
        code_of = dict(zip(distinct, range(len(distinct)), strict=True))
        codes = np.fromiter(map(code_of.__getitem__, texts), _code_type(len(distinct)), len(texts))
        return cls(codes, TextDictionary.from_sorted(distinct))

    @classmethod
    def from_codes(cls, codes: npt.NDArray[Any], texts: Sequence[str]) -> KeyColumn:
        """Creates a column from each row's index in `texts`, which are distinct, in any order, and all used."""
        order = sorted(range(len(texts)), key=texts.__getitem__)
        moved = np.empty(len(texts), _code_type(len(texts)))
        moved[order] = np.arange(len(texts), dtype=moved.dtype)
        return cls(moved[codes], TextDictionary.from_sorted([texts[index] for index in order]))

    def reading(self, kind: KeyKind, lenient: bool) -> TypedReading:
        """The dictionary's texts as values of `kind` (not a text kind)."""
        reading = self._readings.get((kind, lenient))
        if reading is None:
            reading = _read(self.dictionary, kind, lenient)
            self._readings[kind, lenient] = reading
        return reading

    def append(self, texts: Sequence[str]) -> KeyColumn:
        """This column with further rows appended."""
        new = sorted({text for text in set(texts) if self.dictionary.find(text) is None})
        if not new:
            added = (self.dictionary.find(text) for text in texts)
            codes = np.concatenate([self.codes, np.fromiter(added, self.codes.dtype, len(texts))])
            column = KeyColumn(codes, self.dictionary)
            column._readings = self._readings
            return column
        old = list(self.dictionary)
        merged = sorted(chain(old, new))
        code_of = dict(zip(merged, range(len(merged)), strict=True))
        code_type = _code_type(len(merged))
        moved = np.fromiter(map(code_of.__getitem__, old), code_type, len(old))
        added_codes = np.fromiter(map(code_of.__getitem__, texts), code_type, len(texts))
        return KeyColumn(np.concatenate([moved[self.codes], added_codes]), TextDictionary.from_sorted(merged))

    def take(self, rows: npt.NDArray[Any]) -> KeyColumn:
        """The given rows (indexes, or a mask), in that order. Unused entries are removed from the dictionary."""
        codes = self.codes[rows]
        used = np.zeros(len(self.dictionary), np.bool_)
        used[codes] = True
        kept = np.flatnonzero(used)
        if len(kept) == len(self.dictionary):
            column = KeyColumn(codes, self.dictionary)
            column._readings = self._readings
            return column
        moved = np.zeros(len(self.dictionary), _code_type(len(kept)))
        moved[kept] = np.arange(len(kept), dtype=moved.dtype)
        dictionary = TextDictionary.from_sorted([self.dictionary[index] for index in kept.tolist()])
        return KeyColumn(moved[codes], dictionary)

    def converted(
        self, of_bytes: Callable[[bytes], bytes], of_array: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    ) -> KeyColumn:
        """The same column in other memory: the functions copy its codes, then its texts and their offsets."""
        codes = of_array(self.codes)
        texts, offsets = self.dictionary.parts
        column = KeyColumn(codes, TextDictionary(of_bytes(texts), of_array(offsets)))
        column._readings = self._readings
        return column

    @property
    def reading_count(self) -> int:
        """Number of kept conversions."""
        return len(self._readings)

    def memory_bytes(self) -> int:
        """Memory used, including kept conversions."""
        readings = sum(reading.memory_bytes for reading in self._readings.copy().values())
        return int(self.codes.nbytes) + self.dictionary.memory_bytes() + readings


class KeyColumns:
    """The partition values of a table's partitions: one `KeyColumn` per partition key."""

    __slots__ = ("_size", "columns", "keys")

    def __init__(self, keys: Sequence[PartitionKey], columns: Sequence[KeyColumn], size: int) -> None:
        self.keys = tuple(keys)
        self.columns = tuple(columns)
        self._size = size

    @classmethod
    def from_values(
        cls,
        keys: Sequence[PartitionKey],
        values: Sequence[Sequence[str | None]],
        default_partition_name: str = DEFAULT_PARTITION_NAME,
    ) -> KeyColumns:
        """Creates columns from the stored texts of each partition (row), in key order. None counts as the default
        partition.

        Raises `ValueError` if a row does not have one value per key.
        """
        columns = [KeyColumn.from_texts(texts) for texts in _by_key(keys, values, default_partition_name)]
        return cls(keys, columns, len(values))

    def __len__(self) -> int:
        return self._size

    def append(
        self, values: Sequence[Sequence[str | None]], default_partition_name: str = DEFAULT_PARTITION_NAME
    ) -> KeyColumns:
        """These rows with further ones appended.

        Copies the codes (1 to 4 bytes per row and key), and for a key with new texts the dictionary (some 1 µs per
        distinct text): many rows at once are cheaper than one by one.
        """
        added = _by_key(self.keys, values, default_partition_name)
        columns = [column.append(texts) for column, texts in zip(self.columns, added, strict=True)]
        return KeyColumns(self.keys, columns, self._size + len(values))

    def take(self, rows: npt.NDArray[Any] | Sequence[int]) -> KeyColumns:
        """The given rows (indexes in any order, or a mask of all rows), in that order."""
        selected = np.asarray(rows)
        if selected.dtype != np.bool_:
            selected = selected.astype(np.int64)
        size = int(np.count_nonzero(selected)) if selected.dtype == np.bool_ else len(selected)
        return KeyColumns(self.keys, [column.take(selected) for column in self.columns], size)

    def row(self, index: int) -> list[str]:
        """The stored texts of one row."""
        return [column.dictionary[int(column.codes[index])] for column in self.columns]

    @property
    def reading_count(self) -> int:
        """Number of kept conversions of all keys."""
        return sum(column.reading_count for column in self.columns)

    def memory_bytes(self) -> int:
        """Memory used by codes, dictionaries and kept conversions."""
        return sum(column.memory_bytes() for column in self.columns)


def _by_key(
    keys: Sequence[PartitionKey], values: Sequence[Sequence[str | None]], default_partition_name: str
) -> list[Sequence[str]]:
    if any(len(row) != len(keys) for row in values):
        raise ValueError(f"every partition needs {len(keys)} values")
    columns: list[Sequence[str]] = []
    for column in zip(*values, strict=True) if values else ((),) * len(keys):
        if None in column:
            column = tuple(default_partition_name if text is None else text for text in column)
        columns.append(column)
    return columns


def _code_type(size: int) -> type[np.unsignedinteger[Any]]:
    if size <= 1 << 8:
        return np.uint8
    return np.uint16 if size <= 1 << 16 else np.uint32


def _read(texts: TextDictionary, kind: KeyKind, lenient: bool) -> TypedReading:
    if kind is KeyKind.INTEGER:
        quick = _read_plain_integers(texts)
        if quick is not None:
            return quick
    read = [read_text(kind, text, lenient) for text in texts]
    valid = np.fromiter((value is not None for value in read), np.bool_, len(read))
    if kind in (KeyKind.DECIMAL, KeyKind.TIMESTAMP):
        # Exact decimals, and nanoseconds of years beyond 2262, do not fit into a machine number.
        values: npt.NDArray[Any] = np.empty(len(read), object)
        values[:] = [0 if value is None else value for value in read]
    else:
        number_type = np.float64 if kind in (KeyKind.FLOAT, KeyKind.DOUBLE) else np.int64
        values = np.fromiter((0 if value is None else value for value in read), number_type, len(read))
    return TypedReading(values, valid)


def _read_plain_integers(texts: TextDictionary) -> TypedReading | None:
    """Converts all texts at once, if none needs the slow method."""
    strings = list(texts)
    if not all(map(str.isdecimal, strings)) or not all(map(str.isascii, strings)):
        return None
    if max(map(len, strings), default=0) > 18:
        return None
    values = np.fromiter(map(int, strings), np.int64, len(strings))
    return TypedReading(values, np.ones(len(strings), np.bool_))
