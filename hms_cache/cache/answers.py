"""Encoded answers by request bytes: what the event loop sends without decoding the request.

An answer belongs to the one entry it was made from and goes with the first change of it. Whoever sends one looks at
`current` after its freshness is decided: `apply` clears it before the position moves, so an answer that is current
once the position is known to be high enough is true at that position (P1).
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
"""A reply as it is written: at once, or, where copying would cost too much, in pieces."""

ASKED_KEYS = 512
"""Requests of large answers that are remembered, to keep the answer when they come again."""

LARGEST_SHARE = 8
"""No answer may take more than this part of the budget, or one would push out all others."""

OVERHEAD_BYTES = 300
"""Key, template, slots and dictionary entry of one answer."""


@dataclass(slots=True, eq=False)
class Answer:
    """One encoded reply, ready but for the sequence id."""

    method: str
    kind: str
    render: Callable[[bytes], Reply]
    """From the 4 bytes of a sequence id to the whole reply. All share the pieces of a large one."""
    size_bytes: int
    entry: Entry
    """What it was made from."""
    table: TableName | None = None
    """The table of whose struct, partitions or statistics alone it tells; see `Freshness.holds_lease`."""
    is_trusted: bool = field(default=False, kw_only=True)
    """Whether it needs no position check in the mode `trust`: the request has a list that the entry covers."""
    current: bool = field(default=True, init=False)
    uses: int = field(default=0, init=False)
    """How often it was sent. Only the event loop counts, without a lock; readers may miss the last ones."""
    seen_uses: int = field(default=0, init=False)
    """`uses` when eviction last asked."""


class Answers:
    """All encoded answers of a cache, least recently made first. Guarded by the cache's lock, but for `find`."""

    def __init__(self, budget_bytes: int, always_kept_bytes: int) -> None:
        """Answers up to `always_kept_bytes` are kept at once, larger ones when they are asked for again."""
        self.budget_bytes = budget_bytes
        self.largest_bytes = max(always_kept_bytes, budget_bytes // LARGEST_SHARE)
        self.size_bytes = 0
        self._by_key: OrderedDict[bytes, Answer] = OrderedDict()
        self.find: Callable[[bytes], Answer | None] = self._by_key.get
        """The answer to a request, if it is held. One dictionary look-up: needs no lock."""
        self._asked: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def wants_large(self, key: bytes) -> bool:
        """Whether the large answer to a request is worth keeping: it was made before, not long ago."""
        mark = hash(key)
        if mark in self._asked:
            self._asked.move_to_end(mark)
            return True
        self._asked[mark] = None
        if len(self._asked) > ASKED_KEYS:
            self._asked.popitem(last=False)
        return False

    def add(self, key: bytes, answer: Answer) -> None:
        """Keeps an answer with its entry; too large ones are not kept, old ones make room."""
        if answer.size_bytes + len(key) > self.largest_bytes:
            return
        self._remove(key)
        answer.entry.answers.add(key)
        self._by_key[key] = answer
        self.size_bytes += self._cost(key, answer)
        while self.size_bytes > self.budget_bytes:
            self._remove(next(iter(self._by_key)))

    def drop(self, entry: Entry) -> None:
        """The entry changed: its answers are answers no more."""
        for key in tuple(entry.answers):
            self._remove(key)

    def take_used(self, entry: Entry) -> bool:
        """Whether an answer of the entry was sent since this was last asked."""
        used = False
        for key in entry.answers:
            held = self._by_key.get(key)
            if held is not None and held.uses != held.seen_uses:
                held.seen_uses = held.uses
                used = True
        return used

    def uses(self, entry: Entry) -> int:
        """How often those answers of the entry that are held now were sent; `entry.reads` has those of earlier ones.

        Without the lock, so by a copy that is made in one step.
        """
        found = (self._by_key.get(key) for key in tuple(entry.answers))
        return sum(held.uses for held in found if held is not None)

    def clear(self) -> None:
        """Everything changed."""
        for answer in self._by_key.values():
            answer.current = False
            answer.entry.reads += answer.uses
            answer.entry.answers.clear()
        self._by_key.clear()
        self.size_bytes = 0

    def _remove(self, key: bytes) -> None:
        held = self._by_key.pop(key, None)
        if held is not None:
            held.current = False
            held.entry.answers.discard(key)
            held.entry.reads += held.uses
            self.size_bytes -= self._cost(key, held)

    @staticmethod
    def _cost(key: bytes, answer: Answer) -> int:
        return OVERHEAD_BYTES + len(key) + answer.size_bytes
