"""Hive's 64-bit hash of column values, computed on whole arrays.

Facts: `Murmur3.hash64` (hive-storage-api 4.0.1), one half of MurmurHash3 x64 128 with a fixed seed. `HyperLogLog`
hashes a long by its bytes in big-endian order, a double by the bits of `doubleToLongBits`, a text by its UTF-8 bytes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

_SEED = np.uint64(104729)
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M, _N = np.uint64(5), np.uint64(0x52DCE729)
_F1, _F2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_NAN_BITS = 0x7FF8000000000000
_BLOCK = 8


def hash_longs(values: npt.NDArray[np.int64]) -> Hashes:
    """`HyperLogLog.addLong` of each value."""
    return _hash_words(np.ascontiguousarray(values, np.int64).view(np.uint64).byteswap())


def hash_doubles(values: npt.NDArray[np.float64]) -> Hashes:
    """`HyperLogLog.addDouble` of each value; all NaN are one value, 0.0 and -0.0 are two."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64).copy()
    bits[np.isnan(values)] = _NAN_BITS
    return _hash_words(bits.byteswap())


def hash_bytes(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    """`HyperLogLog.addBytes` of each piece of the data, given by its start and its length."""
    count = len(starts)
    if not count:
        return np.empty(0, np.uint64)
    blocks = lengths // _BLOCK
    # Longest first: then those with an n-th block are a prefix.
    order = np.argsort(-blocks, kind="stable")
    blocks, starts, sizes = blocks[order], starts[order], lengths[order]
    # Reading the last block may exceed the end; the excess is masked.
    padded = np.concatenate([data, np.zeros(_BLOCK, np.uint8)])
    hashes = np.full(count, _SEED, np.uint64)
    with np.errstate(over="ignore"):
        for block in range(int(blocks[0])):
            reached = int(np.searchsorted(-blocks, -block, side="left"))
            words = _words(padded, starts[:reached] + block * _BLOCK)
            hashes[:reached] = _rotated(hashes[:reached] ^ _mixed(words), 27) * _M + _N
        rest = sizes - blocks * _BLOCK
        masks = np.left_shift(np.uint64(1), (rest * 8).astype(np.uint64)) - np.uint64(1)
        # Without bytes, the mixed word is 0 and changes nothing.
        hashes ^= _mixed(_words(padded, starts + blocks * _BLOCK) & masks)
        hashes = _finished(hashes, sizes.astype(np.uint64))
    answer = np.empty(count, np.uint64)
    answer[order] = hashes
    return answer


def _words(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> Hashes:
    """The eight bytes from each start on, in little-endian order."""
    gathered = data[starts[:, None] + np.arange(_BLOCK)]
    words: Hashes = gathered.view("<u8").reshape(len(starts))
    return words


def _hash_words(words: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        hashes = _rotated(_SEED ^ _mixed(words), 27) * _M + _N
        return _finished(hashes, np.uint64(_BLOCK))


def _mixed(words: Hashes) -> Hashes:
    return _rotated(words * _C1, 31) * _C2


def _rotated(words: Hashes, bits: int) -> Hashes:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finished(hashes: Hashes, lengths: Hashes | np.uint64) -> Hashes:
    hashes = hashes ^ lengths
    hashes ^= hashes >> np.uint64(33)
    hashes = hashes * _F1
    hashes ^= hashes >> np.uint64(33)
    hashes = hashes * _F2
    hashes ^= hashes >> np.uint64(33)
    return hashes
