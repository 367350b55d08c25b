"""The partitions of a table as bytes and arrays, without a Python object per partition.

Immutable. Rows are sorted by name (by code points, which is the order of their UTF-8). What differs between partitions
is stored in byte strings, everything else in a few templates (`block_records`). The names also serve as the last part
of locations and, since they are stored encoded, as the answer to requests for names.

Answers are assembled without copying: `pieces` returns the bytes of any rows as slices and shared parts, to be joined
once.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block_records import RecordTemplate
from hms_cache.expressions import KeyColumns, PartitionKey
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.values import frozen
from hms_cache.wire.partition_parts import ACCESS_TIME_HEADER, decode_partition, values_header

Rows: TypeAlias = slice | npt.NDArray[Any]
"""Rows of a block: a slice with start and stop and without step, or indexes in the requested order."""

PIECES: Final = 8
"""Number of pieces per partition in `PartitionBlock.pieces`."""

_LENGTH_BYTES: Final = 4
_CREATE_TIME_BYTES: Final = 4
_HASH_MASK: Final = 0xFFFFFFFF


def name_hash(name: bytes) -> int:
    """Hash by which partitions are looked up; differs between processes."""
    return hash(name) & _HASH_MASK


def hashes_of_names(names: bytes, starts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """`BlockParts.hashes` and `hash_rows` for names in the format of `BlockParts.names` and `name_starts`."""
    bounds = starts.tolist()
    count = len(bounds) - 1
    hashes = np.fromiter(
        (hash(names[bounds[row] + _LENGTH_BYTES : bounds[row + 1]]) & _HASH_MASK for row in range(count)),
        np.uint32,
        count,
    )
    rows = np.argsort(hashes, kind="stable")
    return hashes[rows], rows.astype(np.uint32)


def row_count(rows: Rows) -> int:
    """Number of rows."""
    if isinstance(rows, slice):
        return max(0, int(rows.stop) - int(rows.start))
    return len(rows)


def indexes(rows: Rows) -> npt.NDArray[np.int64]:
    """The rows as indexes."""
    return np.arange(rows.start, rows.start + row_count(rows)) if isinstance(rows, slice) else rows.astype(np.int64)


def smallest_unsigned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers (none negative) in the narrowest type that fits all of them."""
    largest = int(values.max()) if len(values) else 0
    return values.astype(np.min_scalar_type(largest))


@frozen
class BlockParts:
    """The data of a block. All arrays have one row per partition, except `starts` and `name_starts`, which have one
    more.

    `data`: for each partition its encoded values, its own part of the location, and its own part of the encoded
    parameters. `names`: its name as an encoded string. `times`: creation time, 4 bytes; if access times differ, also
    the header of the access time field and the time, 11 bytes in all.
    """

    data: bytes
    starts: npt.NDArray[Any]
    value_bytes: npt.NDArray[Any]
    location_bytes: npt.NDArray[Any] | None
    """None: every location ends with the partition's name."""
    kinds: npt.NDArray[Any] | None
    """Index of each partition's template; None: there is only one."""
    templates: Sequence[RecordTemplate]
    times: bytes
    access_time: int | None
    """The last access time of all partitions; None: they differ and are in `times`."""
    names: bytes
    name_starts: npt.NDArray[Any]
    hashes: npt.NDArray[Any]
    """`name_hash` of each name, ascending."""
    hash_rows: npt.NDArray[Any]
    """The row of each of `hashes`."""


class PartitionBlock:
    """See the module's docstring."""

    __slots__ = (
        "__dict__",
        "_hash_rows",
        "_hashes",
        "_header",
        "_name_starts",
        "_starts",
        "_time_bytes",
        "columns",
        "keys",
        "parts",
        "size",
    )

    def __init__(self, keys: Sequence[PartitionKey], columns: KeyColumns, parts: BlockParts) -> None:
        self.keys = tuple(keys)
        self.columns = columns
        self.parts = parts
        self.size = len(columns)
        self._header = values_header(len(self.keys))
        self._time_bytes = _CREATE_TIME_BYTES if parts.access_time is not None else 11
        # Elements of a memoryview are plain numbers, and faster to read than those of an array.
        self._starts = parts.starts.data
        self._name_starts = parts.name_starts.data
        self._hashes = parts.hashes.data
        self._hash_rows = parts.hash_rows.data

    def __reduce__(self) -> tuple[type[PartitionBlock], tuple[Any, ...]]:
        """Blocks are sent between processes (pickle). Views of arrays and memory shared by processes cannot be."""
        parts = self.parts
        if not isinstance(parts.data, bytes):
            parts = replace(parts, data=bytes(parts.data), names=bytes(parts.names), times=bytes(parts.times))
        return PartitionBlock, (self.keys, self.columns, parts)

    def __len__(self) -> int:
        return self.size

    @property
    def every_row(self) -> Rows:
        """All rows."""
        return slice(0, self.size)

    # Names

    def name_bytes(self, row: int) -> bytes:
        """The name of one row in UTF-8."""
        return self.parts.names[self._name_starts[row] + _LENGTH_BYTES : self._name_starts[row + 1]]

    def name(self, row: int) -> str:
        """The name of one row."""
        return self.name_bytes(row).decode("utf-8")

    def names(self, rows: Rows) -> list[str]:
        """The names of rows."""
        starts, ends = _bounds(self.parts.name_starts, rows)
        data = self.parts.names
        return [
            data[start + _LENGTH_BYTES : end].decode("utf-8")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def encoded_names(self, rows: Rows) -> bytes:
        """The names of rows as consecutive encoded strings."""
        names = self.parts.names
        if isinstance(rows, slice):
            return (
                names[self._name_starts[rows.start] : self._name_starts[rows.stop]] if rows.stop > rows.start else b""
            )
        return b"".join(self.encoded_name_pieces(rows))

    def encoded_name_pieces(self, rows: Rows) -> list[bytes]:
        """The name of each row as an encoded string."""
        starts, ends = _bounds(self.parts.name_starts, rows)
        names = self.parts.names
        return [names[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def find(self, name: str) -> int | None:
        """The row of the partition with this name, or None."""
        return self._find(name.encode("utf-8", "surrogatepass"))

    def find_all(self, names: Sequence[str]) -> list[int]:
        """The rows of those names that exist, in the order of the given names."""
        rows = []
        for name in names:
            row = self._find(name.encode("utf-8", "surrogatepass"))
            if row is not None:
                rows.append(row)
        return rows

    def _find(self, name: bytes) -> int | None:
        requested = name_hash(name)
        hashes = self._hashes
        position = bisect_left(hashes, requested)
        while position < self.size and hashes[position] == requested:
            row: int = self._hash_rows[position]
            if self.name_bytes(row) == name:
                return row
            position += 1
        return None

    def insertion_point(self, name: str) -> int:
        """Number of rows with smaller names."""
        return bisect_left(range(self.size), name.encode("utf-8"), key=self.name_bytes)

    # Partitions

    def pieces(self, rows: Rows) -> list[bytes]:
        """The encoded partitions of rows, `PIECES` for each, *without* the header of the values at the start of each.

        Each partition's last piece ends with the header of the next one, including the last partition's. So `header`
        followed by all pieces are the elements of a list, plus one header at the end.
        """
        count = row_count(rows)
        parts = self.parts
        starts, ends = _bounds(parts.starts, rows)
        value_ends = starts + parts.value_bytes[rows]
        own_ends = value_ends if parts.location_bytes is None else value_ends + parts.location_bytes[rows]
        data, width = parts.data, self._time_bytes
        first, second, third, last = starts.tolist(), value_ends.tolist(), own_ends.tolist(), ends.tolist()
        pieces: list[bytes] = [b""] * (count * PIECES)
        pieces[0::PIECES] = [data[start:end] for start, end in zip(first, second, strict=True)]
        pieces[2::PIECES] = [parts.times[at : at + width] for at in (indexes(rows) * width).tolist()]
        pieces[6::PIECES] = [data[start:end] for start, end in zip(third, last, strict=True)]
        if parts.kinds is None:
            self._fill_from_one_template(pieces, rows, second, third)
        else:
            self._fill_from_templates(pieces, rows, parts.kinds[rows], second, third)
        return pieces

    def _fill_from_one_template(
        self, pieces: list[bytes], rows: Rows, own_starts: list[int], own_ends: list[int]
    ) -> None:
        parts = self.parts
        template = parts.templates[0]
        data = parts.data
        count = row_count(rows)
        pieces[1::PIECES] = [template.owner] * count
        starts, ends = _bounds(parts.name_starts, rows)
        if template.ends_with_name:
            lengths = (ends - starts).tolist()
            heads = {length: self._head(template, length - _LENGTH_BYTES) for length in set(lengths)}
            pieces[3::PIECES] = [heads[length] for length in lengths]
            names = parts.names
            pieces[4::PIECES] = [
                names[start:end] for start, end in zip((starts + _LENGTH_BYTES).tolist(), ends.tolist(), strict=True)
            ]
        elif not template.is_whole:
            own = [data[start:end] for start, end in zip(own_starts, own_ends, strict=True)]
            heads = {length: self._head(template, length) for length in {len(one) for one in own}}
            pieces[3::PIECES] = [heads[len(one)] for one in own]
            pieces[4::PIECES] = own
        else:
            pieces[2::PIECES] = [b""] * count
        pieces[5::PIECES] = [template.after_location + template.prefix] * count
        pieces[7::PIECES] = [template.suffix + self._header] * count

    def _fill_from_templates(
        self,
        pieces: list[bytes],
        rows: Rows,
        kinds: npt.NDArray[Any],
        own_starts: list[int],
        own_ends: list[int],
    ) -> None:
        parts = self.parts
        templates = parts.templates
        kind_list = kinds.tolist()
        owners = [template.owner for template in templates]
        after = [template.after_location + template.prefix for template in templates]
        end = [template.suffix + self._header for template in templates]
        pieces[1::PIECES] = [owners[kind] for kind in kind_list]
        pieces[5::PIECES] = [after[kind] for kind in kind_list]
        pieces[7::PIECES] = [end[kind] for kind in kind_list]
        starts, ends = _bounds(parts.name_starts, rows)
        data, names = parts.data, parts.names
        heads: dict[tuple[int, int], bytes] = {}
        position = 0
        for kind, start, stop, own_start, own_end in zip(
            kind_list, starts.tolist(), ends.tolist(), own_starts, own_ends, strict=True
        ):
            template = templates[kind]
            if template.is_whole:
                pieces[position + 2] = b""
            else:
                if template.ends_with_name:
                    own = names[start + _LENGTH_BYTES : stop]
                else:
                    own = data[own_start:own_end]
                head = heads.get((kind, len(own)))
                if head is None:
                    head = heads[kind, len(own)] = self._head(template, len(own))
                pieces[position + 3] = head
                pieces[position + 4] = own
            position += PIECES

    def _head(self, template: RecordTemplate, own_length: int) -> bytes:
        """The bytes between the times and the partition's own part of its location."""
        length = len(template.location_base) + own_length
        return b"".join(
            (self.access_field, template.before_location, length.to_bytes(4, "big"), template.location_base)
        )

    @property
    def header(self) -> bytes:
        """The first bytes of every encoded partition of the block."""
        return self._header

    @cached_property
    def access_field(self) -> bytes:
        """The access time as a field, if it is the same for all partitions."""
        time = self.parts.access_time
        return b"" if time is None else ACCESS_TIME_HEADER + time.to_bytes(4, "big", signed=True)

    def encoded(self, row: int) -> bytes:
        """One partition in Thrift's binary protocol."""
        joined = b"".join(self.pieces(slice(row, row + 1)))
        return self._header + joined[: len(joined) - len(self._header)]

    def decode(self, row: int) -> Partition:
        """One partition as a separate struct."""
        return decode_partition(self.encoded(row))

    def decode_all(self, rows: Rows) -> list[Partition]:
        """The partitions of rows as structs. Equal descriptors share their parts, as in the store."""
        pieces = self.pieces(rows)
        kinds = self.parts.kinds
        kind_list = [0] * row_count(rows) if kinds is None else kinds[rows].tolist()
        models: dict[int, Partition] = {}
        decoded = []
        for at, kind in zip(range(0, len(pieces), PIECES), kind_list, strict=True):
            own = pieces[at : at + PIECES]
            own[-1] = own[-1][: -len(self._header)]
            model = models.get(kind)
            if model is not None:
                decoded.append(self._decode_like(model, self.parts.templates[kind], own))
                continue
            one = decode_partition(self._header + b"".join(own))
            if not self.parts.templates[kind].is_whole:
                models[kind] = one
            decoded.append(one)
        return decoded

    def _decode_like(self, model: Partition, template: RecordTemplate, pieces: list[bytes]) -> Partition:
        """A partition of the model's kind; only its own fields are decoded."""
        own_fields = (self._header, pieces[0], template.prefix, pieces[6], template.suffix)
        one = decode_partition(b"".join(own_fields))
        one.dbName, one.tableName = model.dbName, model.tableName
        one.createTime = int.from_bytes(pieces[2][:_CREATE_TIME_BYTES], "big", signed=True)
        if self.parts.access_time is not None:
            one.lastAccessTime = self.parts.access_time
        else:
            one.lastAccessTime = int.from_bytes(pieces[2][-4:], "big", signed=True)
        one.sd = copy.copy(model.sd)
        one.sd.location = (template.location_base + pieces[4]).decode()
        return one

    def memory_bytes(self) -> int:
        """Memory used."""
        parts = self.parts
        arrays = (parts.starts, parts.value_bytes, parts.name_starts, parts.hashes, parts.hash_rows)
        optional = (parts.location_bytes, parts.kinds)
        return (
            _OBJECT_BYTES
            + len(parts.data)
            + len(parts.times)
            + len(parts.names)
            + sum(array.nbytes for array in arrays)
            + sum(array.nbytes for array in optional if array is not None)
            + sum(template.memory_bytes() for template in parts.templates)
            + self.columns.memory_bytes()
        )


_OBJECT_BYTES: Final = 2_000
"""The block itself, the objects of its arrays and views, and those of its columns."""


def _bounds(offsets: npt.NDArray[Any], rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Start and end offsets of the rows' parts."""
    if isinstance(rows, slice):
        return offsets[rows.start : rows.stop], offsets[rows.start + 1 : rows.stop + 1]
    return offsets[rows], offsets[1:][rows]
