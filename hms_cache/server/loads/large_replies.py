"""Which calls have had large replies lately: others like them are likely to have, too."""

from __future__ import annotations

import threading
from collections import OrderedDict

REMEMBERED_CALLS = 1000
"""Kinds of calls that are remembered, the latest. One takes some 300 bytes."""

FORGOTTEN_AFTER = 8
"""Replies in a row that are not large: a call of the same kind may ask for a part of a table, or for all of it."""

_Key = tuple[str, str, int]


class LargeReplies:
    """By method, table, and the size of the request to within a factor of two: one with ten names is not like one with
    ten thousand. Used by many threads; ``_lock`` guards what is remembered.
    """

    def __init__(self, large_bytes: int) -> None:
        """`large_bytes`: from that size on a reply is large; 0: none is."""
        self._large_bytes = large_bytes
        self._left: OrderedDict[_Key, int] = OrderedDict()
        """How many replies that are not large a kind may still have before it is forgotten."""
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Whether anything is remembered."""
        return bool(self._left)

    def expects(self, method: str, table: str, request_bytes: int) -> bool:
        """Whether the reply is likely to be large."""
        return (method, table, request_bytes.bit_length()) in self._left

    def is_of_interest(self, size_bytes: int) -> bool:
        """Whether a reply of that size changes what is known."""
        return bool(self._left) or 0 < self._large_bytes <= size_bytes

    def note(self, method: str, table: str, request_bytes: int, size_bytes: int) -> None:
        """A reply was encoded."""
        key = (method, table, request_bytes.bit_length())
        with self._lock:
            if 0 < self._large_bytes <= size_bytes:
                self._left[key] = FORGOTTEN_AFTER
                self._left.move_to_end(key)
                if len(self._left) > REMEMBERED_CALLS:
                    self._left.popitem(last=False)
            elif key in self._left:
                self._left[key] -= 1
                if not self._left[key]:
                    del self._left[key]
