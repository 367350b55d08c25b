"""`ValidWriteIdList`: which write ids of one table a reader may see, and what follows from comparing two of them.

Text form `table:hwm:minOpen:open,open:aborted,aborted` (Hive's ValidReaderWriteIdList). Two questions are kept apart:

* `covers` decides whether an entry tagged with one list may answer a request that carries another (P2): is every write
  id valid in the request valid in the tag? A subset test.
* `compare` is Hive's three-way order (HIVE-24975), which calls one of two lists fresher although each may have a write
  the other lacks. It is here because clients speak of it, and never decides what is served.

The last part are the rules by which a tag follows the event log: `after_allocate` and `after_commit`.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache

from hms_cache.call_context import call_context
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.thrift_gen.hive_metastore.ttypes import TableValidWriteIds
from hms_cache.txn.id_lists import (
    LONG_MAX,
    IdListFormatError,
    bits_from_bytes,
    bits_of_flags,
    bits_to_bytes,
    first_clear_bit,
    flags_of_bits,
    format_ids,
    in_order,
    parse_ids,
    parse_number,
    remove_bit,
    split_fields,
)
from hms_cache.values import frozen

_MAX_NEW_IDS = 10_000
"""Number of write ids above a list's mark for which it is checked whether all are open or aborted."""

_FEW = 20
"""Looking up one id in a sorted list takes about as long as adding this number of ids to a set."""


class RangeAnswer(Enum):
    """How much of a range of write ids has a property."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


class WriteIdGapTooLargeError(ValueError):
    """Raising a list would make it contain more invalid ids than allowed; the caller should drop the list."""


@frozen
class ValidWriteIdList:
    """A snapshot of one table's write ids; a value, never changed.

    A write id is valid when it is at most `high_watermark` and not in `invalid`. `invalid` is ascending (duplicates of
    the input kept) and holds open and aborted ids; bit *i* of `aborted_bits` tells which. `min_open` is carried as it
    was given and decides nothing but `is_valid_base`. `table_name` is None where the text said `null`.
    """

    table_name: str | None
    high_watermark: int
    invalid: tuple[int, ...] = ()
    aborted_bits: int = 0
    min_open: int = LONG_MAX

    @classmethod
    def of(
        cls, table_name: str | None, high_watermark: int, open_ids: Iterable[int] = (), aborted_ids: Iterable[int] = ()
    ) -> "ValidWriteIdList":
        """The list with these open and aborted ids, in any order; `min_open` is the lowest open id."""
        pairs = sorted([(write_id, False) for write_id in open_ids] + [(write_id, True) for write_id in aborted_ids])
        min_open = next((write_id for write_id, aborted in pairs if not aborted), LONG_MAX)
        return cls(
            table_name,
            high_watermark,
            tuple(write_id for write_id, _ in pairs),
            bits_of_flags([aborted for _, aborted in pairs]),
            min_open,
        )

    @classmethod
    def parse(cls, text: str | None, max_ids: int | None = None) -> "ValidWriteIdList":
        """Read the text form. Empty or None gives the list without a name (`is_no_list`).

        Raises `IdListFormatError` where Hive's reader fails: fewer than three parts, or something that is no number.
        Parts after the fifth are ignored; ids above the high-water mark, a `minOpen` that fits no id and a negative
        mark are accepted, as Hive does.
        """
        if not text:
            return cls(None, LONG_MAX)
        fields = split_fields(text, ":")
        if len(fields) < 3:
            raise IdListFormatError(f'write-id list without minOpen: "{text[:200]}"')
        table_name = None if fields[0].lower() == "null" else fields[0]
        high_watermark = parse_number(fields[1], "high-water mark")
        min_open = parse_number(fields[2], "minOpen")
        open_ids = parse_ids(fields[3], "open write ids", max_ids) if len(fields) > 3 else array("q")
        aborted_ids = parse_ids(fields[4], "aborted write ids", max_ids) if len(fields) > 4 else array("q")
        if not aborted_ids:
            return cls(table_name, high_watermark, tuple(in_order(open_ids)), 0, min_open)
        pairs = sorted([(write_id, False) for write_id in open_ids] + [(write_id, True) for write_id in aborted_ids])
        bits = bits_of_flags([aborted for _, aborted in pairs])
        return cls(table_name, high_watermark, tuple(write_id for write_id, _ in pairs), bits, min_open)

    @classmethod
    def from_thrift(cls, answer: TableValidWriteIds) -> "ValidWriteIdList":
        """The list in an answer of `get_valid_write_ids`."""
        invalid = tuple(answer.invalidWriteIds)
        min_open = answer.minOpenWriteId
        if not invalid or min_open is None:
            min_open = LONG_MAX
        return cls(
            answer.fullTableName, answer.writeIdHighWaterMark, invalid, bits_from_bytes(answer.abortedBits), min_open
        )

    def to_thrift(self) -> TableValidWriteIds:
        """The form for answers of `get_valid_write_ids`; `minOpenWriteId` is left out if no id is open."""
        return TableValidWriteIds(
            fullTableName=self.table_name,
            writeIdHighWaterMark=self.high_watermark,
            invalidWriteIds=list(self.invalid),
            minOpenWriteId=None if self.min_open == LONG_MAX else self.min_open,
            abortedBits=bits_to_bytes(self.aborted_bits),
        )

    def to_text(self, ranges: bool = False) -> str:
        """The text form. `ranges` shortens runs of ids and is only for a client known to be 4.x."""
        name = "null" if self.table_name is None else self.table_name
        if not self.aborted_bits:
            return f"{name}:{self.high_watermark}:{self.min_open}:{format_ids(self.invalid, ranges)}:"
        open_text, aborted_text = format_ids(self.open_ids, ranges), format_ids(self.aborted_ids, ranges)
        return f"{name}:{self.high_watermark}:{self.min_open}:{open_text}:{aborted_text}"

    def __str__(self) -> str:
        return self.to_text()

    # What the list says

    @property
    def is_no_list(self) -> bool:
        """Whether this stands for "no list given": no table name, or the mark of a list built from an empty text.

        Such a list must never be read as "everything is valid".
        """
        return self.table_name is None or self.high_watermark == LONG_MAX

    @property
    def min_open_write_id(self) -> int | None:
        """The lowest open id as given, None when the list says there is none."""
        return None if self.min_open == LONG_MAX else self.min_open

    @property
    def open_ids(self) -> tuple[int, ...]:
        """Invalid ids that are not marked aborted, ascending."""
        flags = flags_of_bits(self.aborted_bits, len(self.invalid))
        return tuple(write_id for write_id, aborted in zip(self.invalid, flags, strict=True) if not aborted)

    @property
    def aborted_ids(self) -> tuple[int, ...]:
        """Invalid ids that are marked aborted, ascending."""
        flags = flags_of_bits(self.aborted_bits, len(self.invalid))
        return tuple(write_id for write_id, aborted in zip(self.invalid, flags, strict=True) if aborted)

    def is_for_table(self, full_table_name: str) -> bool:
        """Whether the list is that of table `db.table`, upper and lower case alike."""
        return self.table_name is not None and self.table_name.lower() == full_table_name.lower()

    def is_valid(self, write_id: int) -> bool:
        """Whether the write id is committed and visible; id 0 (data older than write ids) always is."""
        return write_id <= self.high_watermark and not self._lists(write_id)

    def is_aborted(self, write_id: int) -> bool:
        """Whether the write id is listed as aborted."""
        position = bisect_left(self.invalid, write_id)
        while position < len(self.invalid) and self.invalid[position] == write_id:
            if self.aborted_bits >> position & 1:
                return True
            position += 1
        return False

    def is_range_valid(self, first: int, last: int) -> RangeAnswer:
        """How many of the write ids `first`..`last` (both included) are valid."""
        listed_from, listed_to = bisect_left(self.invalid, first), bisect_right(self.invalid, last)
        listed = {write_id for write_id in self.invalid[listed_from:listed_to] if write_id <= self.high_watermark}
        above = max(0, last - max(self.high_watermark, first - 1))
        return _answer(last - first + 1 - len(listed) - above, last - first + 1)

    def is_valid_base(self, write_id: int) -> bool:
        """Whether a base directory of this write id may be read: nothing at or below it is open."""
        return write_id < self.min_open and write_id <= self.high_watermark

    def _lists(self, write_id: int) -> bool:
        position = bisect_left(self.invalid, write_id)
        return position < len(self.invalid) and self.invalid[position] == write_id

    # Two lists

    def covers(self, request: "ValidWriteIdList") -> bool:
        """Whether every write id valid in `request` is valid here, so that data of this age may answer the request
        (P2).

        False for lists of different tables (names are compared without case), if either list has no name, and if the
        request's mark is far above this one. The time taken grows with this list, and hardly with the request's, in
        which a range of a few characters may stand for a million ids.
        """
        if self.table_name is None or request.table_name is None:
            return False
        if self.table_name != request.table_name and self.table_name.lower() != request.table_name.lower():
            return False
        mine, theirs = self.invalid, request.invalid
        gap = request.high_watermark - self.high_watermark
        if gap <= 0 and (not mine or mine == theirs):
            return True
        if gap > _MAX_NEW_IDS:
            return False
        if gap > 0:
            above_from = bisect_right(theirs, self.high_watermark)
            above_to = bisect_right(theirs, request.high_watermark)
            if above_to - above_from < gap or len(set(theirs[above_from:above_to])) < gap:
                return False
        relevant = mine[: bisect_right(mine, request.high_watermark)]
        if _FEW * len(relevant) < len(theirs):
            return all(request._lists(write_id) for write_id in relevant)
        return frozenset(theirs).issuperset(relevant)

    def compare(self, other: "ValidWriteIdList") -> int:
        """Hive's order: 0 equivalent, 1 this list is fresher, -1 it is staler (Hive 4.x TxnIdUtils.compare).

        Fresher is the list in which the smallest write id whose validity differs is valid. For lists of different
        tables the result is the order of their lower-case names, any integer. A list without a name cannot be
        compared: ValueError.
        """
        if self.table_name is None or other.table_name is None:
            raise ValueError("a write-id list without a table name cannot be compared")
        names = _compare_as_java(self.table_name.lower(), other.table_name.lower())
        if names != 0:
            return names
        mine, theirs = self._invalid_below_mark(), other._invalid_below_mark()
        shared = 0
        for my_id, their_id in zip(mine, theirs, strict=False):
            if my_id != their_id:
                break
            shared += 1
        common_mark = max(min(self.high_watermark, other.high_watermark), 0)
        my_next = mine[shared] if shared < len(mine) else LONG_MAX
        their_next = theirs[shared] if shared < len(theirs) else LONG_MAX
        if min(my_next, their_next) <= common_mark and my_next != their_next:
            return -1 if my_next < their_next else 1
        if self._has_valid_above(common_mark):
            return 1
        return -1 if other._has_valid_above(common_mark) else 0

    def _invalid_below_mark(self) -> Sequence[int]:
        """Invalid ids from 1 to the mark, each once, ascending."""
        ids = self.invalid[bisect_left(self.invalid, 1) : bisect_right(self.invalid, self.high_watermark)]
        return ids if len(set(ids)) == len(ids) else sorted(set(ids))

    def _has_valid_above(self, mark: int) -> bool:
        listed = self.invalid[bisect_right(self.invalid, mark) : bisect_right(self.invalid, self.high_watermark)]
        return self.high_watermark - mark > len(set(listed))

    # Following the event log

    def after_allocate(self, write_id: int) -> "ValidWriteIdList":
        """The list after `write_id` was allocated: it, and ids skipped below it, are open.

        An id at or below the mark that was valid becomes open, too: it cannot have been committed before it was
        allocated, and too few valid ids only cost a database read.
        """
        if write_id > self.high_watermark:
            return self._extended_to(write_id, write_id)
        if self._lists(write_id):
            return self
        return self._with_open(write_id)

    def after_commit(self, write_id: int) -> "ValidWriteIdList":
        """The list after the transaction that owns `write_id` committed: it is valid, ids skipped below it are open."""
        if write_id > self.high_watermark:
            return self._extended_to(write_id, write_id - 1)
        invalid, bits = self.invalid, self.aborted_bits
        position = bisect_left(invalid, write_id)
        if position == len(invalid) or invalid[position] != write_id:
            return self
        while position < len(invalid) and invalid[position] == write_id:
            invalid = invalid[:position] + invalid[position + 1 :]
            bits = remove_bit(bits, position)
        return self._replaced(self.high_watermark, invalid, bits)

    def with_own(self, write_id: int) -> "ValidWriteIdList":
        """The list as the owner of `write_id` reads: its own, uncommitted id is valid."""
        return self.after_commit(write_id)

    def _extended_to(self, high_watermark: int, last_open: int) -> "ValidWriteIdList":
        first_new = max(self.high_watermark, 0) + 1
        added = last_open - first_new + 1
        most = input_limits().listed_ids
        if added + len(self.invalid) > most:
            raise WriteIdGapTooLargeError(
                f"write ids of {self.table_name} jump from {self.high_watermark} to {high_watermark}: "
                f"more than {most} ids to list ({exceeded('listed_ids')})"
            )
        kept = bisect_right(self.invalid, self.high_watermark)
        bits = self.aborted_bits & ((1 << kept) - 1)
        return self._replaced(high_watermark, self.invalid[:kept] + tuple(range(first_new, last_open + 1)), bits)

    def _with_open(self, write_id: int) -> "ValidWriteIdList":
        position = bisect_left(self.invalid, write_id)
        low = self.aborted_bits & ((1 << position) - 1)
        high = (self.aborted_bits >> position) << (position + 1)
        invalid = (*self.invalid[:position], write_id, *self.invalid[position:])
        return self._replaced(self.high_watermark, invalid, low | high)

    def _replaced(self, high_watermark: int, invalid: tuple[int, ...], bits: int) -> "ValidWriteIdList":
        position = first_clear_bit(bits)
        min_open = invalid[position] if position < len(invalid) else LONG_MAX
        return ValidWriteIdList(self.table_name, high_watermark, invalid, bits, min_open)


def _answer(count: int, size: int) -> RangeAnswer:
    if count <= 0:
        return RangeAnswer.NONE
    return RangeAnswer.ALL if count >= size else RangeAnswer.SOME


def _compare_as_java(first: str, second: str) -> int:
    """Java's String.compareTo: difference of the first differing UTF-16 unit, else of the lengths."""
    left, right = first.encode("utf-16-be"), second.encode("utf-16-be")
    for position in range(0, min(len(left), len(right)), 2):
        difference = int.from_bytes(left[position : position + 2]) - int.from_bytes(right[position : position + 2])
        if difference:
            return difference
    return (len(left) - len(right)) // 2


SHORT_CHARACTERS = 4 * 1024
"""Characters of a text whose parsed list is kept. A client may send any text."""

SHORT_IDS = 1_000
"""Ids in such a list: as many open or aborted ids as fit into so many characters one by one. A range may contain any
number."""

LONG_CHARACTERS = 256 * 1024
LONG_IDS = 100_000
"""A few longer lists are kept. Still longer ones are kept for the call that reads them."""


def parsed_write_ids(text: str) -> ValidWriteIdList:
    """The list of a text. Recent lists are kept, in about 70 MB at most, since a request uses one list for each of many
    partitions. Raises IdListFormatError."""
    size = len(text)
    if size <= SHORT_CHARACTERS:
        ids = _ids_named(text)
        if ids <= SHORT_IDS:
            return _short_list(text)
    else:
        ids = 0  # finding that out takes as long as reading it
    found = _long_list(text) if size <= LONG_CHARACTERS and ids <= LONG_IDS else None
    return _of_this_call(text) if found is None else found


@lru_cache(maxsize=1024)
def _ids_named(text: str) -> int:
    """Upper bound for the number of ids in the list, without reading it."""
    of_ranges = sum(max(0, int(last) - int(first)) for first, last in _RANGE_OF_IDS.findall(text))
    return text.count(",") + text.count(":") + of_ranges


_RANGE_OF_IDS = re.compile(r"(?<![0-9])([0-9]++)-([0-9]++)", re.ASCII)

_short_list = lru_cache(maxsize=1024)(ValidWriteIdList.parse)


@lru_cache(maxsize=8)
def _long_list(text: str) -> ValidWriteIdList | None:
    """None for a list that is too long to be kept."""
    found = ValidWriteIdList.parse(text)
    return found if len(found.invalid) <= LONG_IDS else None


def _of_this_call(text: str) -> ValidWriteIdList:
    kept = call_context.long_list
    if kept is not None and kept[0] == text:
        found: ValidWriteIdList = kept[1]
        return found
    found = ValidWriteIdList.parse(text)
    if call_context.call:
        call_context.long_list = text, found
    return found
