"""Remembers which calls have had large replies recently: similar calls are likely to have large replies, too."""

from __future__ import annotations

import threading
from collections import OrderedDict

REMEMBERED_CALLS = 1000
"""Number of kinds of calls that are remembered, the most recent ones. One takes about 300 bytes."""

FORGOTTEN_AFTER = 8
"""After this many replies in a row that are not large, a kind is forgotten: calls of one kind may read a part of a
table, or all of it."""

_Key = tuple[str, str, int]


class LargeReplies:
    """Kinds of calls by method, table, and size of the request to within a factor of two: a request with ten names is
    not like one with ten thousand. Used by many threads; ``_lock`` guards the kinds."""

    def __init__(self, large_bytes: int) -> None:
        """`large_bytes`: from this size on, a reply is large; 0: no reply is."""
        self._large_bytes = large_bytes
        self._left: OrderedDict[_Key, int] = OrderedDict()
        """By kind: how many replies that are not large may still come before the kind is forgotten."""
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Whether any kind is remembered."""
        return bool(self._left)

    def expects(self, method: str, table: str, request_bytes: int) -> bool:
        """Whether the reply is likely to be large."""
        return (method, table, request_bytes.bit_length()) in self._left

    def is_of_interest(self, size_bytes: int) -> bool:
        """Whether a reply of this size changes what is remembered."""
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
