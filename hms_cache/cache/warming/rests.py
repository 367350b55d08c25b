"""How often a table is loaded that changes all the time.

What a load in the background fills in, the next event takes out again, while reads go to the database anyway. So a
table rests after each such load, for some times as long as the load took: one that changes once in a while is filled in
at once, one that a job writes as fast as it can takes a small part of the processor, however large it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from hms_cache.metadata.object_names import DatabaseName, TableName

MAX_REMEMBERED: Final = 10_000
"""Tables that rest or have rested, some 2 MB: the oldest begin anew."""

LENGTHENING: Final = 4
"""A rest is so many times as long as the one before it, if the table is to be loaded again soon after that."""

SOON_TIMES: Final = 16
"""Soon: before so many times as long as the last load took. Loads further apart take a sixteenth of the time."""


Subject = DatabaseName | TableName


class _Rest(NamedTuple):
    until_s: float
    took_s: float
    """The load before it."""
    times: int
    evictions: int
    """Of the cache until then: a table that may have been evicted since does not rest, it is wanted."""


class Rests:
    """When each table may be loaded again. For one thread, or under its owner's lock."""

    def __init__(self, shortest_times: int, longest_times: int) -> None:
        """A rest is at least, and at most, so many times as long as the load before it."""
        self._shortest_times = shortest_times
        self._longest_times = longest_times
        self._rests: OrderedDict[Subject, _Rest] = OrderedDict()

    def begin(
        self, subject: Subject, began_s: float, now_s: float, *, evictions_before: int = 0, evictions: int = 0
    ) -> None:
        """A load of it has ended (monotonic seconds). `evictions`: of the cache, when it began and now."""
        before = self._rests.pop(subject, None)
        times = self._shortest_times
        is_soon = before is not None and began_s - before.until_s < SOON_TIMES * before.took_s
        if before is not None and is_soon and before.evictions == evictions_before:
            times = min(before.times * LENGTHENING, self._longest_times)
        took_s = now_s - began_s
        self._rests[subject] = _Rest(now_s + times * took_s, took_s, times, evictions)
        if len(self._rests) > MAX_REMEMBERED:
            self._rests.popitem(last=False)

    def is_over(self, subject: Subject, now_s: float, evictions: int = 0) -> bool:
        """Whether it may be loaded."""
        rest = self._rests.get(subject)
        return rest is None or now_s >= rest.until_s or rest.evictions != evictions
