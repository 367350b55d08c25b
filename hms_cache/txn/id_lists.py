"""Text pieces shared by transaction lists and write-id lists: numbers, runs of ids, and bit sets over a list.

Both lists keep their exceptions as one tuple of ids plus an integer used as a bit set (bit *i* set = the *i*-th
exception is aborted). That is the form of the wire (`abortedBits`, little-endian) and costs one bit per exception.
"""

import re
from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from hms_cache.input_limits import exceeded, input_limits

LONG_MAX = 2**63 - 1
"""High-water mark of a list built from nothing, and the `minOpen` of a list with no open id."""

_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_RANGE = re.compile(r"([0-9]+)-([0-9]+)", re.ASCII)
_COMPACT_RUN_LENGTH = 5


class IdListFormatError(ValueError):
    """A list's text cannot be read: a part is missing, is no 64-bit number, or lists too many ids."""


_LONGEST_NUMBER = 1_000
"""Characters of a number, including zeros at its beginning."""


def parse_number(text: str, what: str) -> int:
    """The 64-bit number in `text`; `what` names the part in the error."""
    if not _NUMBER.fullmatch(text):
        raise IdListFormatError(f'{what} is not a number: "{text[:200]}"')
    # There may be leading zeros. Python refuses to read a number of thousands of digits, with an error of its own.
    value = int(text) if len(text) <= _LONGEST_NUMBER else None
    if value is None or not -(2**63) <= value <= LONG_MAX:
        raise IdListFormatError(f"{what} does not fit into 64 bits: {text[:200]}")
    return value


def split_fields(text: str, separator: str) -> list[str]:
    """Split as Java does: empty fields at the end do not count."""
    fields = text.split(separator)
    while fields and not fields[-1]:
        fields.pop()
    return fields


def parse_ids(text: str, what: str, max_ids: int | None = None) -> "array[int]":
    """Ids of a comma-separated text, in its order, 8 bytes each; `a-b` is the run a..b and a reversed one is empty.

    A comma at the end is accepted, one at the start or two in a row are not (as Hive's readers behave).
    `max_ids`: most that are listed, the ranges spelled out; None: the setting `limits.listed_ids`.
    """
    most = input_limits().listed_ids if max_ids is None else max_ids
    ids = array("q")
    for piece in _pieces(text):
        run = _RANGE.fullmatch(piece)
        if run is None:
            ids.append(parse_number(piece, what))
        else:
            first, last = parse_number(run[1], what), parse_number(run[2], what)
            if last - first >= most - len(ids):
                raise _too_many(what, most)
            ids.extend(range(first, last + 1))
        if len(ids) > most:
            raise _too_many(what, most)
    return ids


_PIECES_CHARACTERS = 64 * 1024


def _pieces(text: str) -> Iterator[str]:
    """The texts between commas, as `split_fields` returns them; in portions, since each takes many times its length."""
    text = text.rstrip(",")
    start = 0 if text else 1
    while start <= len(text):
        comma = text.find(",", start + _PIECES_CHARACTERS)
        end = len(text) if comma < 0 else comma
        yield from text[start:end].split(",")
        start = end + 1


def in_order(ids: "array[int]") -> "array[int]":
    """The ids in ascending order; the same array if they already are."""
    values = np.asarray(ids)
    if len(ids) < 2 or bool((values[1:] >= values[:-1]).all()):
        return ids
    return array("q", np.sort(values).tobytes())


def _too_many(what: str, most: int) -> IdListFormatError:
    return IdListFormatError(f"{what}: more than {most} ids in one list ({exceeded('listed_ids')})")


def format_ids(ids: Sequence[int], ranges: bool) -> str:
    """Comma-separated ids; with `ranges`, five or more consecutive ones are written `a-b` (Hive 4.x)."""
    if not ranges or len(ids) < _COMPACT_RUN_LENGTH:
        return ",".join(map(str, ids))
    pieces: list[str] = []
    start = 0
    for position in range(1, len(ids) + 1):
        if position < len(ids) and ids[position] == ids[position - 1] + 1:
            continue
        if position - start >= _COMPACT_RUN_LENGTH:
            pieces.append(f"{ids[start]}-{ids[position - 1]}")
        else:
            pieces.extend(map(str, ids[start:position]))
        start = position
    return ",".join(pieces)


def bits_of_flags(flags: Sequence[bool]) -> int:
    """The bit set of a list of flags, in time linear in its length."""
    data = bytearray((len(flags) + 7) // 8)
    for position, flag in enumerate(flags):
        if flag:
            data[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(data, "little")


def flags_of_bits(bits: int, length: int) -> list[bool]:
    """The first `length` bits as flags."""
    data = bits.to_bytes(max((bits.bit_length() + 7) // 8, (length + 7) // 8), "little")
    return [bool(data[position >> 3] & (1 << (position & 7))) for position in range(length)]


def bits_to_bytes(bits: int) -> bytes:
    """The bit set as `abortedBits` carries it: little-endian, no zero bytes at the end (Java's BitSet.toByteArray)."""
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def bits_from_bytes(data: bytes) -> int:
    """The bit set from its wire form."""
    return int.from_bytes(data, "little")


def remove_bit(bits: int, position: int) -> int:
    """The bit set after the element at `position` left the list: later bits move down by one."""
    return (bits & ((1 << position) - 1)) | ((bits >> (position + 1)) << position)


def first_clear_bit(bits: int) -> int:
    """Position of the lowest bit that is not set."""
    return ((~bits) & (bits + 1)).bit_length() - 1
