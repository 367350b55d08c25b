"""`ValidTxnList`: which transactions a reader may see, for all tables at once.

Text form `hwm:minOpen:open,open:aborted,aborted` (Hive's ValidReadTxnList). Hive 4.x writes five or more consecutive
ids as `a-b`; 3.1 cannot read that, so ranges are read always and printed only when asked for.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field
from itertools import compress

from hms_cache.thrift_gen.hive_metastore.ttypes import GetOpenTxnsResponse
from hms_cache.txn.id_lists import (
    LONG_MAX,
    IdListFormatError,
    bits_from_bytes,
    bits_of_flags,
    first_clear_bit,
    flags_of_bits,
    format_ids,
    in_order,
    parse_ids,
    parse_number,
    split_fields,
)
from hms_cache.values import frozen


@frozen
class ValidTxnList:
    """A snapshot of transactions; a value, never changed.

    A transaction is valid (committed, visible) when its id is at most `high_watermark` and not among `exceptions`.
    `exceptions` keeps the order in which it was given (Hive does not sort here); bit *i* of `aborted_bits` says that
    exception *i* is aborted, otherwise it is open. They are held in arrays: a client names a million in a few
    characters (`1-1000000`), and as objects of Python they would take 40 MB.
    """

    high_watermark: int = LONG_MAX
    exceptions: Sequence[int] = ()
    aborted_bits: int = 0
    min_open: int = LONG_MAX
    _ascending: "array[int]" = field(init=False, repr=False, compare=False)
    _ascending_aborted: "array[int]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exceptions = self.exceptions if isinstance(self.exceptions, array) else array("q", self.exceptions)
        aborted = array("q")
        if self.aborted_bits:
            aborted.extend(compress(exceptions, flags_of_bits(self.aborted_bits, len(exceptions))))
        object.__setattr__(self, "exceptions", exceptions)
        object.__setattr__(self, "_ascending", in_order(exceptions))
        object.__setattr__(self, "_ascending_aborted", in_order(aborted))

    @classmethod
    def parse(cls, text: str | None, max_ids: int | None = None) -> "ValidTxnList":
        """Read the text form; empty or None is the list with everything valid.

        Raises `IdListFormatError` where Hive's reader fails: no minOpen, or something that is no number.
        """
        if not text:
            return cls()
        fields = split_fields(text, ":")
        if len(fields) < 2:
            raise IdListFormatError(f'transaction list without minOpen: "{text[:200]}"')
        high_watermark = parse_number(fields[0], "high-water mark")
        min_open = parse_number(fields[1], "minOpen")
        open_ids = parse_ids(fields[2], "open transactions", max_ids) if len(fields) > 2 else array("q")
        aborted_ids = parse_ids(fields[3], "aborted transactions", max_ids) if len(fields) > 3 else array("q")
        exceptions, aborted_bits = merge_open_and_aborted(open_ids, aborted_ids)
        return cls(high_watermark, exceptions, aborted_bits, min_open)

    @classmethod
    def from_open_txns(cls, response: GetOpenTxnsResponse, current_txn_id: int = 0) -> "ValidTxnList":
        """The snapshot a client builds from `get_open_txns`, as transaction `current_txn_id` sees it (0 = none).

        The current transaction and those above it are left out, so that its own writes are valid to it
        (Hive 4.0 TxnCommonUtils.createValidReadTxnList).
        """
        high_watermark = response.txn_high_water_mark
        if current_txn_id > 0:
            high_watermark = min(current_txn_id, high_watermark)
        bits = bits_from_bytes(response.abortedBits or b"")
        ids = response.open_txns
        flags = flags_of_bits(bits, len(ids))
        kept = [
            (txn_id, aborted)
            for txn_id, aborted in zip(ids, flags, strict=True)
            if current_txn_id <= 0 or txn_id < current_txn_id
        ]
        kept.sort()
        min_open = next((txn_id for txn_id, aborted in kept if not aborted), LONG_MAX)
        return cls(
            high_watermark, tuple(txn_id for txn_id, _ in kept), bits_of_flags([flag for _, flag in kept]), min_open
        )

    def to_text(self, ranges: bool = False) -> str:
        """The text form; `ranges` only for a client known to be 4.x."""
        flags = flags_of_bits(self.aborted_bits, len(self.exceptions))
        open_ids = [txn_id for txn_id, aborted in zip(self.exceptions, flags, strict=True) if not aborted]
        aborted_ids = [txn_id for txn_id, aborted in zip(self.exceptions, flags, strict=True) if aborted]
        return f"{self.high_watermark}:{self.min_open}:{format_ids(open_ids, ranges)}:{format_ids(aborted_ids, ranges)}"

    def __str__(self) -> str:
        return self.to_text()

    def is_valid(self, txn_id: int) -> bool:
        """Whether the transaction is committed and visible."""
        return txn_id <= self.high_watermark and not _is_in(self._ascending, txn_id)

    def is_aborted(self, txn_id: int) -> bool:
        """Whether the transaction is listed as aborted."""
        return _is_in(self._ascending_aborted, txn_id)

    @property
    def invalid_ids(self) -> Sequence[int]:
        """All exceptions, ascending."""
        return self._ascending

    def without(self, txn_id: int) -> "ValidTxnList":
        """This list with the transaction no longer an exception (the aborted marks of the others stay theirs)."""
        flags = flags_of_bits(self.aborted_bits, len(self.exceptions))
        kept = [pair for pair in zip(self.exceptions, flags, strict=True) if pair[0] != txn_id]
        bits = bits_of_flags([aborted for _, aborted in kept])
        position = first_clear_bit(bits)
        min_open = kept[position][0] if position < len(kept) else LONG_MAX
        return ValidTxnList(self.high_watermark, tuple(listed for listed, _ in kept), bits, min_open)


def _is_in(ascending: "array[int]", txn_id: int) -> bool:
    position = bisect_left(ascending, txn_id)
    return position < len(ascending) and ascending[position] == txn_id


def merge_open_and_aborted(open_ids: "array[int]", aborted_ids: "array[int]") -> tuple["array[int]", int]:
    """Two lists merged as if each were ascending, with the bit set that marks those of the second."""
    if not aborted_ids:
        return open_ids, 0
    merged = array("q")
    flags: list[bool] = []
    next_open, next_aborted = 0, 0
    while next_open < len(open_ids) or next_aborted < len(aborted_ids):
        take_open = next_aborted >= len(aborted_ids) or (
            next_open < len(open_ids) and open_ids[next_open] <= aborted_ids[next_aborted]
        )
        if take_open:
            merged.append(open_ids[next_open])
            next_open += 1
        else:
            merged.append(aborted_ids[next_aborted])
            next_aborted += 1
        flags.append(not take_open)
    return merged, bits_of_flags(flags)
