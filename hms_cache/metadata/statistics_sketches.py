"""Sketches of distinct values in the format of BIT_VECTOR: read, merged, counted, written.

Facts: `HyperLogLog`, `HyperLogLogUtils`, `FMSketch`, `FMSketchUtils` (Hive 4.0.1). Both begin with a magic text. Counts
agree with Hive's exactly; the order of a sparse sketch's entries in serialized form is not significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hms_cache.metadata.statistics_sketch_data import BIASES, PRECISION, RAW_ESTIMATES, THRESHOLD

_Registers: TypeAlias = npt.NDArray[np.uint8]

_HLL_MAGIC, _FM_MAGIC = b"HLL", b"FM"
_SPARSE_KEY_BITS, _SPARSE_VALUE_BITS = 25, 6
_LONGEST_NUMBER = 10
"""Maximum size of a 64-bit number with seven bits per byte."""

_NEIGHBOURS = 6
_PHI = 0.77351
_FM_BITS = 31
_THRESHOLDS = (10, 20, 40, 80, 220, 400, THRESHOLD, 1800, 3100, 6500, 15500, 20000, 50000, 120000, 350000)
_SMALLEST_PRECISION, _LARGEST_PRECISION = 4, 16


class SketchError(ValueError):
    """The bytes are not a sketch."""


class HyperLogLog:
    """A HyperLogLog with 2^precision registers: first sparse, then dense. Changed by `merge`."""

    __slots__ = ("dense", "precision", "sparse")

    def __init__(self, precision: int = PRECISION) -> None:
        self.precision = precision
        self.sparse: dict[int, int] | None = {}
        self.dense: _Registers | None = None

    @classmethod
    def read(cls, data: bytes) -> HyperLogLog:
        """Parses the serialized form. Raises SketchError."""
        if data[:3] != _HLL_MAGIC or len(data) < 5:
            raise SketchError("not a HyperLogLog")
        precision, width = data[3] >> 4, data[3] & 7
        if not _SMALLEST_PRECISION <= precision <= _LARGEST_PRECISION:
            raise SketchError(f"a HyperLogLog of precision {precision}")
        sketch = cls(precision)
        _, position = _read_number(data, 4)
        if width == 0:
            sketch.sparse = _read_sparse(data, position, 1 << precision)
        else:
            sketch.sparse = None
            sketch.dense = _read_dense(data, position, 1 << precision, 8 if width == 7 else width)
        return sketch

    def can_merge(self, other: Sketch) -> bool:
        """Whether `merge` accepts it: a larger sketch can be folded into a smaller one, but not vice versa."""
        return isinstance(other, HyperLogLog) and other.precision >= self.precision

    def merge(self, other: Sketch) -> None:
        """Adds the values of the other sketch."""
        if not isinstance(other, HyperLogLog) or other.precision < self.precision:
            raise SketchError("cannot merge these sketches")
        if other.precision > self.precision:
            other = other._squashed(self.precision)
        if self.sparse is not None and other.sparse is not None:
            for key, value in other.sparse.items():
                if value > self.sparse.get(key, 0):
                    self.sparse[key] = value
            # beyond this size the dense form is smaller
            if len(self.sparse) > _most_sparse(self.precision):
                self._make_dense()
            return
        self._make_dense()
        assert self.dense is not None
        np.maximum(self.dense, other._registers(), out=self.dense)

    def count(self) -> int:
        """The estimated number of distinct values, at least 1."""
        return max(1, self._count())

    def serialized(self) -> bytes:
        """The serialized form, as Hive reads it."""
        if self.sparse is not None:
            entries = sorted((key << _SPARSE_VALUE_BITS) | value for key, value in self.sparse.items())
            head = bytes([self.precision << 4]) + _number(self.count()) + _number(len(entries))
            deltas = [entry - before for before, entry in zip([0, *entries], entries, strict=False)]
            return _HLL_MAGIC + head + b"".join(_number(delta) for delta in deltas)
        assert self.dense is not None
        width = max(1, int(self.dense.max()).bit_length())
        width = 8 if width > _SPARSE_VALUE_BITS else width
        head = bytes([(self.precision << 4) | (7 if width == 8 else width)]) + _number(self.count())
        if width == 8:
            return _HLL_MAGIC + head + self.dense.tobytes()
        bits = np.unpackbits(self.dense[:, None], axis=1)[:, 8 - width :]
        return _HLL_MAGIC + head + np.packbits(bits.reshape(-1)).tobytes()

    def _count(self) -> int:
        if self.sparse is not None:
            size = 1 << _SPARSE_KEY_BITS
            return _linear_count(size, size - len(self.sparse))
        assert self.dense is not None
        size = 1 << self.precision
        # Hive computes this factor in single precision.
        factor = np.float32(np.float32(0.7213) / (np.float32(1) + np.float32(1.079) / np.float32(size)))
        factor = np.float32(np.float32(factor * np.float32(size)) * np.float32(size))
        total = float(np.ldexp(1.0, -self.dense.astype(np.int64)).sum())
        estimate = int(float(factor) * (1.0 / total))
        if estimate <= 5 * size and self.precision == PRECISION:
            estimate -= _bias(estimate)
        zeros = size - int(np.count_nonzero(self.dense))
        alternative = _linear_count(size, zeros) if zeros else estimate
        return alternative if alternative < _THRESHOLDS[self.precision - _SMALLEST_PRECISION] else estimate

    def _registers(self) -> _Registers:
        if self.sparse is None:
            assert self.dense is not None
            return self.dense
        registers = np.zeros(1 << self.precision, np.uint8)
        mask = (1 << self.precision) - 1
        for key, value in self.sparse.items():
            if value > registers[key & mask]:
                registers[key & mask] = value
        return registers

    def _make_dense(self) -> None:
        if self.sparse is not None:
            self.dense = self._registers().copy()
            self.sparse = None

    def _squashed(self, precision: int) -> HyperLogLog:
        """Folded into fewer registers, as far as the remaining bits of the hashes allow."""
        small = HyperLogLog(precision)
        small._make_dense()
        assert small.dense is not None
        if self.sparse is not None:
            hashes = [(1 << (self.precision + value - 1)) | key for key, value in self.sparse.items() if value]
        else:
            assert self.dense is not None
            # In Java this is an int shift: distances wrap at 32, and the sign bit is extended.
            hashes = [
                _as_int(1 << ((self.precision + int(value) - 1) & 31) | index)
                for index, value in enumerate(self.dense.tolist())
                if value
            ]
        for hashed in hashes:
            rest = (hashed & 0xFFFFFFFFFFFFFFFF) >> precision
            run = (rest & -rest).bit_length() if rest else 65
            index = hashed & ((1 << precision) - 1)
            if run > small.dense[index]:
                small.dense[index] = run
        return small


def _most_sparse(precision: int) -> int:
    """Maximum number of entries of a sparse sketch."""
    return ((1 << precision) * 6 // 8) // 5


def _as_int(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def _linear_count(size: int, zeros: int) -> int:
    return math.floor(size * math.log(size / zeros) + 0.5)


def _bias(estimate: int) -> int:
    """The average bias of the nearest known raw estimates; of equally near ones the last, as in Hive's tree map."""
    by_distance = {(estimate - raw) ** 2: index for index, raw in enumerate(RAW_ESTIMATES)}
    nearest = sorted(by_distance)[:_NEIGHBOURS]
    return int(sum(BIASES[by_distance[distance]] for distance in nearest) / _NEIGHBOURS + 0.5)


def _read_number(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise SketchError("a HyperLogLog that ends too early")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _number(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(0x80 | (value & 0x7F))
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_sparse(data: bytes, position: int, most: int) -> dict[int, int]:
    """`most`: maximum number of entries, that of registers. Hive switches to the dense form long before."""
    size, position = _read_number(data, position)
    if size > most:
        raise SketchError(f"a sparse HyperLogLog of {size} entries")
    entries: dict[int, int] = {}
    entry = 0
    for _ in range(size):
        delta, position = _read_number(data, position)
        # Deltas of unsorted entries wrap around as in Java's int.
        entry = (entry + delta) & 0xFFFFFFFF
        key, value = entry >> _SPARSE_VALUE_BITS, entry & 0x3F
        if value > entries.get(key, -1):
            entries[key] = value
    return entries


def _read_dense(data: bytes, position: int, size: int, width: int) -> _Registers:
    if (len(data) - position) * 8 < size * width:
        raise SketchError("a HyperLogLog that ends too early")
    octets = np.frombuffer(data, np.uint8, size * width // 8, position)  # sizes are powers of two, from 16
    if width == 8:
        return octets.copy()
    bits = np.unpackbits(octets).reshape(size, width)
    registers: _Registers = np.packbits(np.pad(bits, ((0, 0), (8 - width, 0))), axis=1).reshape(size)
    return registers


def merged_at_once(vectors: Sequence[bytes]) -> HyperLogLog | None:
    """All of these HyperLogLogs merged, with the same result as one after the other.

    None if one has another kind or size than Hive's columns. Ten times as fast per entry.
    """
    bodies: list[bytes] = []
    sizes: list[int] = []
    registers = None
    for data in vectors:
        if data[:3] != _HLL_MAGIC or len(data) < 5 or data[3] >> 4 != PRECISION:
            return None
        try:
            _, position = _read_number(data, 4)
            if width := data[3] & 7:
                dense = _read_dense(data, position, 1 << PRECISION, 8 if width == 7 else width)
                registers = dense if registers is None else np.maximum(registers, dense)
                continue
            size, position = _read_number(data, position)
        except SketchError:
            return None
        if size > 1 << PRECISION or len(data) - position > size * _LONGEST_NUMBER:
            return None
        sizes.append(size)
        bodies.append(data[position:])
    entries = _entries(bodies, sizes)
    if entries is None:
        return None
    keys, values = entries >> np.int64(_SPARSE_VALUE_BITS), (entries & np.int64((1 << _SPARSE_VALUE_BITS) - 1))
    merged = HyperLogLog()
    # Of the entries with one key, the largest value counts, which is the last one in this order.
    last = np.append(keys[1:] != keys[:-1], True) if len(keys) else np.zeros(0, bool)
    if registers is None and int(last.sum()) <= _most_sparse(PRECISION):
        merged.sparse = dict(zip(keys[last].tolist(), values[last].tolist(), strict=True))
        return merged
    merged.sparse = None
    merged.dense = np.zeros(1 << PRECISION, np.uint8) if registers is None else registers
    np.maximum.at(merged.dense, keys & np.int64((1 << PRECISION) - 1), values.astype(np.uint8))
    return merged


def _entries(bodies: Sequence[bytes], sizes: Sequence[int]) -> npt.NDArray[np.int64] | None:
    """The entries of sparse HyperLogLogs, concatenated; None if one has another number of entries than it states."""
    octets = np.frombuffer(b"".join(bodies), np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    of_bodies = np.searchsorted(ends, np.cumsum([len(body) for body in bodies]))
    if not np.array_equal(np.diff(of_bodies, prepend=0), sizes) or (len(octets) and octets[-1] >= 0x80):
        return None
    starts = np.zeros(len(ends), np.int64)
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts + 1
    longest = int(lengths.max(initial=0))
    if longest > _LONGEST_NUMBER:
        return None
    deltas = np.zeros(len(ends), np.uint64)
    for number in range(longest):
        reaching = np.flatnonzero(lengths > number)
        parts = (octets[starts[reaching] + number] & 0x7F).astype(np.uint64)
        deltas[reaching] |= parts << np.uint64(7 * number)
    # Each body begins with 0. Deltas of unsorted entries wrap around as in Java's int.
    sums = np.append(np.zeros(1, np.uint64), np.cumsum(deltas))
    firsts = of_bodies - np.asarray(sizes, np.int64)
    wrapped = (sums[1:] - np.repeat(sums[firsts], sizes)) & np.uint64(0xFFFFFFFF)
    entries = np.sort(wrapped.astype(np.int64))
    return entries[(entries & np.int64((1 << _SPARSE_VALUE_BITS) - 1)) > 0]


class FmSketch:
    """A Flajolet-Martin sketch: bit vectors of 31 bits. Changed by `merge`."""

    __slots__ = ("vectors",)

    def __init__(self, vectors: Sequence[int]) -> None:
        self.vectors = list(vectors)

    @classmethod
    def read(cls, data: bytes) -> FmSketch:
        """Parses the serialized form. Raises SketchError."""
        if data[:2] != _FM_MAGIC or len(data) < 4:
            raise SketchError("not an FM sketch")
        count = int.from_bytes(data[2:4], "little")
        if len(data) < 4 + 4 * count:
            raise SketchError("an FM sketch that ends too early")
        return cls([int.from_bytes(data[4 + 4 * n : 8 + 4 * n], "little") for n in range(count)])

    def can_merge(self, other: Sketch) -> bool:
        """Whether both have the same number of vectors."""
        return isinstance(other, FmSketch) and len(self.vectors) == len(other.vectors)

    def merge(self, other: Sketch) -> None:
        """Adds the values of the other sketch."""
        if not isinstance(other, FmSketch) or len(self.vectors) != len(other.vectors):
            raise SketchError("cannot merge these sketches")
        self.vectors = [mine | theirs for mine, theirs in zip(self.vectors, other.vectors, strict=True)]

    def count(self) -> int:
        """The estimated number of distinct values."""
        if not self.vectors:
            return 0
        lowest_zeros = sum((~vector & (vector + 1)).bit_length() - 1 for vector in self.vectors)
        return int(2.0 ** (lowest_zeros / len(self.vectors) - math.log(_PHI) / math.log(2.0)))

    def serialized(self) -> bytes:
        """The serialized form, as Hive reads it."""
        mask = (1 << _FM_BITS) - 1
        vectors = b"".join((vector & mask).to_bytes(4, "little") for vector in self.vectors)
        return _FM_MAGIC + len(self.vectors).to_bytes(2, "little") + vectors


Sketch: TypeAlias = HyperLogLog | FmSketch


def read_sketch(data: bytes | None) -> Sketch | None:
    """The sketch in a BIT_VECTOR; None if there is none or it is invalid."""
    if not data:
        return None
    try:
        return FmSketch.read(data) if data[:2] == _FM_MAGIC else HyperLogLog.read(data)
    except SketchError:
        return None


def written_count(data: bytes) -> int:
    """The estimate stored in a serialized HyperLogLog (the result of `count`). Raises SketchError."""
    if data[:3] != _HLL_MAGIC:
        raise SketchError("not a HyperLogLog")
    return _read_number(data, 4)[0]


def empty_like(sketch: Sketch) -> Sketch:
    """An empty sketch into which those of this kind are merged; a HyperLogLog has Hive's own size."""
    return FmSketch([0] * len(sketch.vectors)) if isinstance(sketch, FmSketch) else HyperLogLog()
