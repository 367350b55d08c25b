"""Sketches of distinct values, one per group of rows, in Hive's format.

Facts: `HyperLogLog.add`, `HLLSparseRegister.encodeHash`, `HLLDenseRegister.add` (Hive 4.0.1) with the size used for
Hive's column statistics: 2^10 registers, sparse up to 153 entries of 25 bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hms_cache.jobs.statistics.hashes import Hashes
from hms_cache.metadata.statistics_sketch_data import PRECISION
from hms_cache.metadata.statistics_sketches import HyperLogLog

_KEY_BITS, _RUN_BITS = 25, 6
_BYTES_OF_AN_ENTRY = -(-(_KEY_BITS + _RUN_BITS) // 7)
_MAX_SPARSE = ((1 << PRECISION) * 6 // 8) // 5


def sketches_of_groups(groups: npt.NDArray[np.int64], hashes: Hashes, count: int) -> list[bytes]:
    """The serialized sketch of each group from 0 to `count` - 1, computed from the hashes of its rows."""
    keys = (hashes & np.uint64((1 << _KEY_BITS) - 1)).astype(np.int64)
    runs = _runs_of_zeros(hashes >> np.uint64(PRECISION))
    entries = (groups << (_KEY_BITS + _RUN_BITS)) | (keys << _RUN_BITS) | runs
    entries.sort()
    places = entries >> _RUN_BITS
    # For a key in a group, the longest run counts: the last one in this order.
    last = np.append(places[1:] != places[:-1], True) if len(places) else np.zeros(0, bool)
    entries, places = entries[last], places[last]
    bounds = np.searchsorted(places >> _KEY_BITS, np.arange(count + 1)).tolist()
    entries &= (1 << (_KEY_BITS + _RUN_BITS)) - 1
    deltas, ends = _encoded_deltas(entries, bounds[:-1])
    found = []
    for start, end in itertools.pairwise(bounds):
        if end - start > _MAX_SPARSE:
            found.append(_dense_sketch(entries[start:end]).serialized())
        else:
            head, first = _sparse_head(end - start), ends[start - 1] if start else 0
            found.append(head + deltas[first : ends[end - 1] if end else 0])
    return found


def _encoded_deltas(entries: npt.NDArray[np.int64], starts: Sequence[int]) -> tuple[bytes, list[int]]:
    """Differences of consecutive entries, restarting from 0 at each start, in seven bits per byte; and the end of each
    in these bytes. Computed for all at once: a sketch with few entries takes less time than Python needs for one
    entry."""
    deltas = np.diff(entries, prepend=0)
    first = np.array([start for start in starts if start < len(entries)], np.int64)
    deltas[first] = entries[first]
    lengths = np.ones(len(deltas), np.int64)
    for more in range(1, _BYTES_OF_AN_ENTRY):
        lengths += deltas >> (7 * more) > 0
    ends = np.cumsum(lengths)
    encoded = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for number in range(_BYTES_OF_AN_ENTRY):
        reaching = lengths > number
        continued = np.where(lengths[reaching] > number + 1, 0x80, 0)
        at = ends[reaching] - lengths[reaching] + number
        encoded[at] = ((deltas[reaching] >> (7 * number)) & 0x7F) | continued
    return encoded.tobytes(), ends.tolist()


@lru_cache(maxsize=_MAX_SPARSE + 1)
def _sparse_head(entries: int) -> bytes:
    """The header for this number of entries."""
    sketch = HyperLogLog()
    # The entries 0, 64, 128, …: one byte each.
    sketch.sparse = dict.fromkeys(range(entries), 0)
    whole = sketch.serialized()
    return whole[: len(whole) - entries]


def _runs_of_zeros(rests: Hashes) -> npt.NDArray[np.int64]:
    """Number of trailing zeros of each number, plus one; at most the maximum of a sparse entry."""
    lowest = rests & (~rests + np.uint64(1))
    exponents = np.frexp(lowest.astype(np.float64))[1].astype(np.int64)
    return np.where(rests == 0, (1 << _RUN_BITS) - 1, exponents)


def _dense_sketch(entries: npt.NDArray[np.int64]) -> HyperLogLog:
    registers = np.zeros(1 << PRECISION, np.uint8)
    keys, runs = entries >> _RUN_BITS, entries & ((1 << _RUN_BITS) - 1)
    np.maximum.at(registers, keys & ((1 << PRECISION) - 1), runs.astype(np.uint8))
    sketch = HyperLogLog()
    sketch.sparse, sketch.dense = None, registers
    return sketch


def merged_data(sketches: Sequence[bytes]) -> bytes:
    """`merged_sketch`, serialized; a single sketch is returned unchanged."""
    return sketches[0] if len(sketches) == 1 else merged_sketch(sketches).serialized()


def merged_sketch(sketches: Iterable[bytes]) -> HyperLogLog:
    """The union of the sketches. Raises SketchError for bytes that are not a HyperLogLog."""
    merged = HyperLogLog()
    for data in sketches:
        merged.merge(HyperLogLog.read(data))
    return merged
