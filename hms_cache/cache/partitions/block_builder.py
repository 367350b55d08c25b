"""Builds partition blocks from rows as the store reads them or from structs, optionally together with rows of a block.

Rows are added in pages, in any order. Each is held as the bytes that it will have in the block, and a few numbers.
Common parts are determined while rows are added: kinds by what their partitions share, and the longest common prefix
and suffix of all encoded parameters of a kind.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block import BlockParts, PartitionBlock, Rows, indexes, name_hash, smallest_unsigned
from hms_cache.cache.partitions.block_records import WHOLE, RecordTemplate
from hms_cache.expressions import KeyColumns, PartitionKey
from hms_cache.expressions.key_columns import KeyColumn
from hms_cache.metadata.name_ranges import split_positions
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.partitions.reads import PartitionRows
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.wire.partition_parts import (
    ACCESS_TIME_HEADER,
    VALUES_HEADER_BYTES,
    bytes_after_parameters,
    encode_descriptor,
    encode_owner,
    encode_parameters,
    encode_partition,
    encode_values,
    is_regular,
)

MAX_SHAPES: Final = 1_000
"""With more kinds than this, sets of parameter names do not create further ones: each costs as much as an encoded
descriptor."""

MAX_KINDS: Final = 20_000
"""With more kinds than this, no further ones are created: partitions without a kind are stored as a whole."""

MAX_BASES: Final = 16
"""Location prefixes that create kinds of their own: the table's directory and its former ones."""

_LEAST_BYTES: Final = 28
"""Minimum size of one partition: length and start of its name, start of its data, creation time, hash and row, codes of
values."""

_ROWS_AT_ONCE: Final = 8_192
"""Rows whose bytes are joined at once: some megabytes of short-lived objects."""

_TIMES = np.dtype([("create", ">i4"), ("header", "S3"), ("access", ">i4")])


@dataclass(slots=True)
class _Draft:
    """A template while partitions are added. `is_fixed`: it belongs to a block, so that prefix and suffix do not
    change."""

    template: RecordTemplate
    prefix: bytes | None = None
    suffix: bytes = b""
    shortest: int = 0
    is_fixed: bool = False
    count: int = 0
    total_bytes: int = 0
    """Size of the encoded parameters of all `count` partitions."""

    def take(self, parameters: bytes) -> None:
        """Adds a partition of this kind."""
        self.count += 1
        self.total_bytes += len(parameters)
        if self.prefix is None:
            self.prefix = self.suffix = parameters
            self.shortest = len(parameters)
            return
        if not parameters.startswith(self.prefix):
            self.prefix = self.prefix[: _common_length(self.prefix, parameters)]
        if not parameters.endswith(self.suffix):
            common = _common_length(self.suffix[::-1], parameters[::-1])
            self.suffix = self.suffix[len(self.suffix) - common :]
        self.shortest = min(self.shortest, len(parameters))

    @property
    def least_bytes(self) -> int:
        """Lower bound of the bytes that its partitions cannot share: prefix and suffix only get shorter."""
        return max(0, self.total_bytes - self.count * (len(self.prefix or b"") + len(self.suffix)))

    def fits(self, parameters: bytes) -> bool:
        """Whether a partition with these encoded parameters can be of this kind."""
        template = self.template
        return not self.is_fixed or (
            len(parameters) >= len(template.prefix) + len(template.suffix)
            and parameters.startswith(template.prefix)
            and parameters.endswith(template.suffix)
        )

    def finished(self) -> RecordTemplate:
        """The template, with everything that its partitions have in common."""
        if self.is_fixed or self.prefix is None:
            return self.template
        before = self.template
        suffix_bytes = min(len(self.suffix), self.shortest - len(self.prefix))
        return RecordTemplate(
            before.owner,
            before.before_location,
            before.location_base,
            before.ends_with_name,
            before.after_location,
            before.parameter_names,
            self.prefix,
            self.suffix[len(self.suffix) - suffix_bytes :],
            before.after_parameters,
            before.is_whole,
        )


def _common_length(one: bytes, other: bytes) -> int:
    """Length of the longest common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class ForeignNameError(Exception):
    """A partition's name is not the one that Hive derives from its values.

    Events name partitions by values, so it would be unclear which row they concern; and the database finds such a
    partition by its name or a prefix of it only in the stored spelling.
    """


class BlockBuilder:
    """Collects partitions with distinct names and builds one or several blocks. Not thread-safe."""

    def __init__(self, keys: Sequence[PartitionKey], base: PartitionBlock | None = None) -> None:
        """`base`: a block whose rows are to be included in the result (`build`)."""
        self._keys = tuple(keys)
        self._base = base
        self.naming = PartitionNaming([name for name, _ in keys])
        self._drafts: list[_Draft] = []
        self._numbers: dict[Any, int] = {}
        self._bases: dict[bytes, None] = {}
        for template in base.parts.templates if base is not None else ():
            self._numbers.setdefault(_kind(template), len(self._drafts))
            self._drafts.append(_Draft(template, is_fixed=True))
            if template.ends_with_name and len(self._bases) < MAX_BASES:
                self._bases[template.location_base] = None
        self._data = bytearray()
        self._ends = array("Q")
        self._value_bytes = array("I")
        self._location_bytes = array("I")
        self._kinds = array("I")
        self._create_times = array("i")
        self._access_times = array("i")
        self._names: list[bytes] = []
        self._own_bytes = 0
        """Size of names, values, and locations that do not end with the name."""
        self._texts: list[dict[str, int]] = [{} for _ in keys]
        self._codes = [array("I") for _ in keys]

    def __len__(self) -> int:
        return len(self._names)

    @property
    def least_bytes(self) -> int:
        """Lower bound of the block's size."""
        own = sum(draft.least_bytes for draft in self._drafts)
        return own + self._own_bytes + len(self._names) * _LEAST_BYTES

    def add_rows(self, rows: PartitionRows) -> None:
        """Adds partitions as the store reads them, without creating structs.

        Raises ForeignNameError, UnencodableReply, MetaException (a name without the table's number of keys).
        """
        table = rows.table
        is_own_name = self.naming.makes
        scratch = Partition(dbName=table.database, tableName=table.name, catName=table.catalog)
        owner = encode_owner(scratch)
        descriptors = [encode_descriptor(template) for template in rows.templates]
        for row, name in enumerate(rows.names):
            if not is_own_name(name):
                raise ForeignNameError(name)
            values = rows.values(row)
            scratch.values = values
            scratch.parameters = rows.parameters[row]
            scratch.writeId = rows.write_ids[row]
            number, location = rows.template_numbers[row], rows.locations[row]
            scratch.createTime, scratch.lastAccessTime = rows.create_times[row], rows.last_access_times[row]
            if number is None or location is None:
                scratch.sd = None  # type: ignore[assignment]  # left out of the message
                if number is not None:
                    scratch.sd = rows.templates[number]
                self._add_whole(name.encode(), values, encode_partition(scratch))
                scratch.sd = None  # type: ignore[assignment]  # left out of the message
            else:
                self._add_regular(name.encode(), scratch, owner, descriptors[number], location.encode())

    def add_structs(self, partitions: Iterable[Partition]) -> None:
        """Adds partitions. Raises UnencodableReply, MetaException (wrong number of values)."""
        for partition in partitions:
            name = self.naming.name(partition.values).encode()
            if is_regular(partition, len(self._keys)):
                descriptor = encode_descriptor(partition.sd)
                self._add_regular(name, partition, encode_owner(partition), descriptor, partition.sd.location.encode())
            else:
                self._add_whole(name, partition.values, encode_partition(partition))

    def _add_regular(
        self, name: bytes, partition: Partition, owner: bytes, descriptor: tuple[bytes, bytes], location: bytes
    ) -> None:
        base, own = self._split_location(location, name)
        parameters = encode_parameters(partition)
        names: tuple[str, ...] | None = tuple(partition.parameters) if partition.parameters is not None else None
        if len(self._drafts) > MAX_SHAPES:
            names = None
        kind = (owner, *descriptor, base, own is None, names, bytes_after_parameters(partition))
        number = self._numbers.get(kind)
        if number is None or not self._drafts[number].fits(parameters):
            number = self._new_kind(kind, number is not None)
            if number is None:
                self._add_whole(name, partition.values, encode_partition(partition))
                return
        draft = self._drafts[number]
        if not draft.is_fixed:
            draft.take(parameters)
        encoded_values = encode_values(partition)
        self._data += encoded_values
        if own is not None:
            self._data += own
        self._data += parameters
        times = (partition.createTime, partition.lastAccessTime)
        self._finish(name, partition.values, number, len(encoded_values), len(own or b""), times)

    def _split_location(self, location: bytes, name: bytes) -> tuple[bytes, bytes | None]:
        """Splits a location into the part shared with others and the rest; None as the rest stands for the name."""
        if location.endswith(name):
            base = location[: len(location) - len(name)]
            if base in self._bases or len(self._bases) < MAX_BASES:
                self._bases[base] = None
                return base, None
        for base in self._bases:
            if location.startswith(base):
                return base, location[len(base) :]
        return b"", location

    def _new_kind(self, kind: Any, is_in_use: bool) -> int | None:
        """Adds a template. `is_in_use`: the existing template of the kind belongs to a block, and this partition does
        not fit."""
        if is_in_use:
            kind = (*kind, "not of the block")
            number = self._numbers.get(kind)
            if number is not None:
                return number
        if len(self._drafts) >= MAX_KINDS:
            return None
        owner, before, after, base, ends_with_name, names, after_parameters = kind[:7]
        shared = self._shared(before), self._shared(after)
        template = RecordTemplate(
            owner, shared[0], base, ends_with_name, shared[1], names, b"", b"", after_parameters, is_whole=False
        )
        number = self._numbers[kind] = len(self._drafts)
        self._drafts.append(_Draft(template))
        return number

    def _shared(self, part: bytes) -> bytes:
        """Returns the same bytes from an existing template, if there are any, so that they are stored once."""
        for draft in self._drafts[:50]:
            for existing in (draft.template.before_location, draft.template.after_location):
                if existing == part:
                    return existing
        return part

    def _add_whole(self, name: bytes, values: Sequence[str], encoded: bytes) -> None:
        number = self._numbers.get("whole")
        if number is None:
            number = self._numbers["whole"] = len(self._drafts)
            self._drafts.append(_Draft(WHOLE, is_fixed=True))
        self._data += encoded[VALUES_HEADER_BYTES:]
        self._finish(name, values, number, 0, 0, (0, 0))

    def _finish(
        self,
        name: bytes,
        values: Sequence[str],
        kind: int,
        value_bytes: int,
        location_bytes: int,
        times: tuple[int, int],
    ) -> None:
        self._ends.append(len(self._data))
        self._value_bytes.append(value_bytes)
        self._location_bytes.append(location_bytes)
        self._kinds.append(kind)
        self._create_times.append(times[0])
        self._access_times.append(times[1])
        self._names.append(name)
        self._own_bytes += len(name) + value_bytes + location_bytes
        for value, texts, codes in zip(values, self._texts, self._codes, strict=True):
            codes.append(texts.setdefault(value, len(texts)))

    # The result

    def build(self, kept: Rows | None = None) -> PartitionBlock:
        """The block of the added partitions and of the base block's rows `kept` (ascending; None: none)."""
        base = self._base if kept is not None else None
        old = indexes(kept) if base is not None and kept is not None else np.zeros(0, np.int64)
        return self._build(_Added(self), base, old, self._order())

    def build_apart(self, most: int) -> list[PartitionBlock]:
        """Blocks of only the added partitions, of about `most` each, in the order of their names; at least one."""
        order = self._order()
        added = _Added(self)
        cuts = [*split_positions(len(order), most, lambda at: self._names[order[at]].decode()), len(order)]
        return [self._build(added, None, np.zeros(0, np.int64), order[low:high]) for low, high in pairwise(cuts)]

    def _order(self) -> list[int]:
        return sorted(range(len(self._names)), key=self._names.__getitem__)

    def _build(
        self, added: _Added, base: PartitionBlock | None, old: npt.NDArray[Any], order: list[int]
    ) -> PartitionBlock:
        """`old`: rows of the base; `order`: added rows, by name."""
        new = np.array(order, np.int64)
        before_new = self._places(base, old, order)
        # Where each row of the result comes from: rows of the base, then rows added.
        sources = np.insert(np.arange(len(old)), before_new, len(old) + np.arange(len(new)))
        kinds, templates = _used_kinds(_merged_kinds(added, base, old, new)[sources], added.templates)
        values, locations = _merged_lengths(added, base, old, new, sources)
        data, sizes = self._merged_data(added, base, old, order, sources)
        names, name_sizes = self._merged_names(base, old, order, sources)
        times, access_time = _merged_times(added, base, old, new, sources)
        hashes = self._merged_hashes(base, old, order)[sources]
        hash_rows = np.argsort(hashes, kind="stable")
        columns = self._merged_columns(added, base, old, new, sources)
        parts = BlockParts(
            data=data,
            starts=_starts(sizes),
            value_bytes=smallest_unsigned(values),
            location_bytes=smallest_unsigned(locations) if locations.any() else None,
            kinds=None if len(templates) == 1 else smallest_unsigned(kinds),
            templates=tuple(templates),
            times=times,
            access_time=access_time,
            names=names,
            name_starts=_starts(name_sizes),
            hashes=hashes[hash_rows],
            hash_rows=hash_rows.astype(np.uint32),
        )
        return PartitionBlock(self._keys, columns, parts)

    def _places(self, base: PartitionBlock | None, old: npt.NDArray[Any], order: list[int]) -> npt.NDArray[Any]:
        """For each added row, by name: the number of kept rows before it."""
        if base is None:
            return np.zeros(len(order), np.int64)
        points = [base.insertion_point(self._names[row].decode()) for row in order]
        return np.asarray(np.searchsorted(old, np.array(points, np.int64)))

    def _merged_data(
        self,
        added: _Added,
        base: PartitionBlock | None,
        old: npt.NDArray[Any],
        order: list[int],
        sources: npt.NDArray[Any],
    ) -> tuple[bytes, npt.NDArray[Any]]:
        ends = self._ends
        cuts = added.cuts
        raw = memoryview(self._data)

        def of_added(row: int) -> tuple[memoryview, memoryview]:
            start, end = (ends[row - 1] if row else 0), ends[row]
            prefix, suffix = cuts[self._kinds[row]]
            own = start + self._value_bytes[row] + self._location_bytes[row]
            return raw[start:own], raw[own + prefix : end - suffix]

        kept = len(old)
        chunks: list[bytes] = []
        sizes = np.zeros(len(sources), np.int64)
        for first in range(0, len(sources), _ROWS_AT_ONCE):
            chosen = sources[first : first + _ROWS_AT_ONCE]
            rows = chosen.tolist()
            if base is not None:
                existing, starts = base.parts.data, base.parts.starts
                low = starts[old[chosen[chosen < kept]]].tolist()
                high = starts[1:][old[chosen[chosen < kept]]].tolist()
                bounds = iter(zip(low, high, strict=True))
                pairs = [
                    (existing[slice(*next(bounds))], b"") if row < kept else of_added(order[row - kept]) for row in rows
                ]
            else:
                pairs = [of_added(order[row]) for row in rows]
            sizes[first : first + len(rows)] = [len(one) + len(other) for one, other in pairs]
            chunks.append(b"".join(chain.from_iterable(pairs)))
        raw.release()
        return b"".join(chunks), sizes

    def _merged_names(
        self, base: PartitionBlock | None, old: npt.NDArray[Any], order: list[int], sources: npt.NDArray[Any]
    ) -> tuple[bytes, npt.NDArray[Any]]:
        kept = len(old)
        names = self._names
        chunks: list[bytes] = []
        sizes = np.zeros(len(sources), np.int64)
        for first in range(0, len(sources), _ROWS_AT_ONCE):
            chosen = sources[first : first + _ROWS_AT_ONCE]
            existing = iter(base.encoded_name_pieces(old[chosen[chosen < kept]]) if base is not None else ())
            encoded = [
                next(existing)
                if row < kept
                else b"".join((_length(names[order[row - kept]]), names[order[row - kept]]))
                for row in chosen.tolist()
            ]
            sizes[first : first + len(encoded)] = list(map(len, encoded))
            chunks.append(b"".join(encoded))
        return b"".join(chunks), sizes

    def _merged_hashes(
        self, base: PartitionBlock | None, old: npt.NDArray[Any], order: list[int]
    ) -> npt.NDArray[np.uint32]:
        added = np.fromiter((name_hash(self._names[row]) for row in order), np.uint32, len(order))
        if base is None:
            return added
        by_row = np.empty(len(base), np.uint32)
        by_row[base.parts.hash_rows] = base.parts.hashes
        return np.concatenate([by_row[old], added])

    def _merged_columns(
        self,
        added: _Added,
        base: PartitionBlock | None,
        old: npt.NDArray[Any],
        new: npt.NDArray[Any],
        sources: npt.NDArray[Any],
    ) -> KeyColumns:
        columns = []
        for texts, codes in zip(added.texts, added.codes, strict=True):
            used, positions = np.unique(codes[new], return_inverse=True)
            columns.append(KeyColumn.from_codes(positions, [texts[code] for code in used.tolist()]))
        own = KeyColumns(self._keys, columns, len(new))
        if base is None:
            return own
        values = [own.row(row) for row in range(len(new))]
        return base.columns.take(old).append(values).take(sources)


class _Added:
    """The partitions added to a builder, as arrays. Nothing may be added while this is in use."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.templates = [draft.finished() for draft in builder._drafts]
        self.cuts = [(len(template.prefix), len(template.suffix)) for template in self.templates]
        """Numbers of bytes of the encoded parameters that are in the template."""
        self.kinds = np.frombuffer(builder._kinds, np.uint32)
        self.value_bytes = np.frombuffer(builder._value_bytes, np.uint32)
        self.location_bytes = np.frombuffer(builder._location_bytes, np.uint32)
        self.create_times = np.frombuffer(builder._create_times, np.int32)
        self.access_times = np.frombuffer(builder._access_times, np.int32)
        self.texts = [list(texts) for texts in builder._texts]
        self.codes = [np.frombuffer(codes, np.uint32) for codes in builder._codes]


def _merged_kinds(
    added: _Added, base: PartitionBlock | None, old: npt.NDArray[Any], new: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    own: npt.NDArray[Any] = added.kinds[new].astype(np.int64)
    if base is None:
        return own
    kinds = base.parts.kinds
    return np.concatenate([np.zeros(len(old), np.int64) if kinds is None else kinds[old].astype(np.int64), own])


def _merged_lengths(
    added: _Added, base: PartitionBlock | None, old: npt.NDArray[Any], new: npt.NDArray[Any], sources: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    values = added.value_bytes[new].astype(np.int64)
    locations = added.location_bytes[new].astype(np.int64)
    if base is not None:
        own = base.parts.location_bytes
        values = np.concatenate([base.parts.value_bytes[old].astype(np.int64), values])
        kept = np.zeros(len(old), np.int64) if own is None else own[old].astype(np.int64)
        locations = np.concatenate([kept, locations])
    return values[sources], locations[sources]


def _merged_times(
    added: _Added, base: PartitionBlock | None, old: npt.NDArray[Any], new: npt.NDArray[Any], sources: npt.NDArray[Any]
) -> tuple[bytes, int | None]:
    create = added.create_times[new]
    access = added.access_times[new]
    if base is not None:
        existing = base.parts
        if existing.access_time is not None:
            base_create = np.frombuffer(existing.times, ">i4")[old]
            base_access = np.full(len(old), existing.access_time, np.int32)
        else:
            both = np.frombuffer(existing.times, _TIMES)[old]
            base_create, base_access = both["create"], both["access"]
        create = np.concatenate([base_create.astype(np.int32), create])
        access = np.concatenate([base_access.astype(np.int32), access])
    create, access = create[sources], access[sources]
    if not len(access):
        return b"", 0
    if int(access.min()) == int(access.max()):
        return create.astype(">i4").tobytes(), int(access[0])
    times = np.empty(len(create), _TIMES)
    times["create"], times["header"], times["access"] = create, ACCESS_TIME_HEADER, access
    return times.tobytes(), None


def _kind(template: RecordTemplate) -> Any:
    """What partitions of a template have in common, except the prefix and suffix of their parameters."""
    if template.is_whole:
        return "whole"
    return (
        template.owner,
        template.before_location,
        template.after_location,
        template.location_base,
        template.ends_with_name,
        template.parameter_names,
        template.after_parameters,
    )


def _used_kinds(
    kinds: npt.NDArray[Any], templates: list[RecordTemplate]
) -> tuple[npt.NDArray[Any], list[RecordTemplate]]:
    """The kinds and templates without templates that no partition uses."""
    used = np.unique(kinds)
    if not len(used):
        return kinds, [WHOLE]
    moved = np.zeros(len(templates), np.int64)
    moved[used] = np.arange(len(used))
    return moved[kinds], [templates[number] for number in used.tolist()]


def _starts(sizes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Offsets of parts with these sizes, and the end of the last one."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts.astype(np.uint32 if int(starts[-1]) < 1 << 32 else np.uint64)


def _length(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big")
