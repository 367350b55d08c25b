"""Sketches of distinct values, one for each group of rows, in Hive's own form.

Facts: `HyperLogLog.add`, `HLLSparseRegister.encodeHash`, `HLLDenseRegister.add` (Hive 4.0.1) with the size that Hive's
column statistics use: 2^10 registers, sparse up to 153 entries of 25 bits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hms_cache.jobs.statistics.hashes import Hashes
from hms_cache.store.statistics_sketch_data import PRECISION
from hms_cache.store.statistics_sketches import HyperLogLog

_KEY_BITS, _RUN_BITS = 25, 6
_MOST_SPARSE = ((1 << PRECISION) * 6 // 8) // 5


def sketches_of_groups(groups: npt.NDArray[np.int64], hashes: Hashes, count: int) -> list[bytes]:
    """The serialized sketch of each group from 0 to `count` - 1, of the hashes whose rows are in it."""
    keys = (hashes & np.uint64((1 << _KEY_BITS) - 1)).astype(np.int64)
    runs = _runs_of_zeros(hashes >> np.uint64(PRECISION))
    entries = (groups << (_KEY_BITS + _RUN_BITS)) | (keys << _RUN_BITS) | runs
    entries.sort()
    places = entries >> _RUN_BITS
    # Of one key in one group the longest run counts: the last one in this order.
    last = np.append(places[1:] != places[:-1], True) if len(places) else np.zeros(0, bool)
    entries, places = entries[last], places[last]
    bounds = np.searchsorted(places >> _KEY_BITS, np.arange(count + 1))
    keys, runs = places & ((1 << _KEY_BITS) - 1), entries & ((1 << _RUN_BITS) - 1)
    return [
        _sketch(keys[start:end], runs[start:end]).serialized()
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _runs_of_zeros(rests: Hashes) -> npt.NDArray[np.int64]:
    """Zeros at the low end of each number, and one; at most what a sparse entry holds."""
    lowest = rests & (~rests + np.uint64(1))
    exponents = np.frexp(lowest.astype(np.float64))[1].astype(np.int64)
    return np.where(rests == 0, (1 << _RUN_BITS) - 1, exponents)


def _sketch(keys: npt.NDArray[np.int64], runs: npt.NDArray[np.int64]) -> HyperLogLog:
    sketch = HyperLogLog()
    if len(keys) <= _MOST_SPARSE:
        sketch.sparse = dict(zip(keys.tolist(), runs.tolist(), strict=True))
        return sketch
    registers = np.zeros(1 << PRECISION, np.uint8)
    np.maximum.at(registers, keys & ((1 << PRECISION) - 1), runs.astype(np.uint8))
    sketch.sparse, sketch.dense = None, registers
    return sketch


def merged_sketch(sketches: Iterable[bytes]) -> HyperLogLog:
    """What all of them have seen. Raises SketchError for bytes that are no HyperLogLog."""
    merged = HyperLogLog()
    for data in sketches:
        merged.merge(HyperLogLog.read(data))
    return merged
