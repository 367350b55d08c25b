"""Encoded answers by the bytes of their requests, which the event loop sends without decoding the request.

An answer belongs to the entry it was made from, and is dropped with the first change of the entry. Before an answer is
sent, and after its freshness is decided, `current` is checked: `apply` clears it before the position moves, so an
answer that is current once the position is known to be high enough is true at that position (P1).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hms_cache.cache.entries import Entry
    from hms_cache.metadata.object_names import TableName

Reply = bytes | tuple[bytes, ...]
"""A reply as it is written: in one piece, or in several if copying would cost too much."""

MAX_REMEMBERED_REQUESTS = 512
"""Requests with large answers that are remembered, so that the answer is kept when the request comes again."""

LARGEST_SHARE = 8
"""No answer may take more than this part of the budget: it would evict all others."""

OVERHEAD_BYTES = 300
"""Bytes for the key, template, slots and dictionary entry of one answer."""


@dataclass(slots=True, eq=False)
class Answer:
    """One encoded reply, complete except for the sequence id."""

    method: str
    kind: str
    render: Callable[[bytes], Reply]
    """Makes the whole reply for the 4 bytes of a sequence id. All replies share the pieces of a large one."""
    size_bytes: int
    entry: Entry
    """The entry that it was made from."""
    table: TableName | None = None
    """The table, if the answer depends on nothing but its struct, partitions and statistics; see
    `Freshness.holds_lease`."""
    is_trusted: bool = field(default=False, kw_only=True)
    """Whether it needs no position check in the mode `trust`: the request has a write-id list that the entry covers."""
    current: bool = field(default=True, init=False)
    uses: int = field(default=0, init=False)
    """How often it was sent. Only the event loop counts, without a lock; readers may miss the latest."""
    seen_uses: int = field(default=0, init=False)
    """The value of `uses` at the last check by eviction."""


class Answers:
    """All encoded answers of a cache, in the order in which they were made. Guarded by the cache's lock, except
    `find`."""

    def __init__(self, budget_bytes: int, always_kept_bytes: int) -> None:
        """Answers up to `always_kept_bytes` are kept at once, larger ones if they are requested again."""
        self.budget_bytes = budget_bytes
        self.largest_bytes = max(always_kept_bytes, budget_bytes // LARGEST_SHARE)
        self.size_bytes = 0
        self._by_key: OrderedDict[bytes, Answer] = OrderedDict()
        self.find: Callable[[bytes], Answer | None] = self._by_key.get
        """The answer to a request, if it is held. One dictionary look-up: needs no lock."""
        self._recent_requests: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def wants_large(self, key: bytes) -> bool:
        """Whether the large answer to a request is worth keeping: it was requested before, recently."""
        mark = hash(key)
        if mark in self._recent_requests:
            self._recent_requests.move_to_end(mark)
            return True
        self._recent_requests[mark] = None
        if len(self._recent_requests) > MAX_REMEMBERED_REQUESTS:
            self._recent_requests.popitem(last=False)
        return False

    def add(self, key: bytes, answer: Answer) -> None:
        """Keeps an answer with its entry. Answers that are too large are not kept; the oldest ones make room."""
        if answer.size_bytes + len(key) > self.largest_bytes:
            return
        self._remove(key)
        answer.entry.answers.add(key)
        self._by_key[key] = answer
        self.size_bytes += self._cost(key, answer)
        while self.size_bytes > self.budget_bytes:
            self._remove(next(iter(self._by_key)))

    def drop(self, entry: Entry) -> None:
        """The entry changed: its answers are dropped."""
        for key in tuple(entry.answers):
            self._remove(key)

    def collect_used(self, entry: Entry) -> bool:
        """Whether an answer of the entry was sent since the last call."""
        used = False
        for key in entry.answers:
            cached = self._by_key.get(key)
            if cached is not None and cached.uses != cached.seen_uses:
                cached.seen_uses = cached.uses
                used = True
        return used

    def uses(self, entry: Entry) -> int:
        """How often the present answers of the entry were sent; `entry.reads` counts those of earlier answers.

        Used without the lock, so on a copy that is made in one step.
        """
        found = (self._by_key.get(key) for key in tuple(entry.answers))
        return sum(cached.uses for cached in found if cached is not None)

    def clear(self) -> None:
        """Drops all answers."""
        for answer in self._by_key.values():
            answer.current = False
            answer.entry.reads += answer.uses
            answer.entry.answers.clear()
        self._by_key.clear()
        self.size_bytes = 0

    def _remove(self, key: bytes) -> None:
        cached = self._by_key.pop(key, None)
        if cached is not None:
            cached.current = False
            cached.entry.answers.discard(key)
            cached.entry.reads += cached.uses
            self.size_bytes -= self._cost(key, cached)

    @staticmethod
    def _cost(key: bytes, answer: Answer) -> int:
        return OVERHEAD_BYTES + len(key) + answer.size_bytes
