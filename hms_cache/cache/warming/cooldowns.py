"""How often a table that changes all the time is loaded.

The next event drops what a load in the background has filled in, while reads go to the database anyway. So a table has
a cooldown after each such load: it is not loaded for a multiple of the load's duration. A table that changes rarely is
refilled at once; one that a job writes continuously takes a small part of the processor's time, however large it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from hms_cache.metadata.object_names import DatabaseName, TableName

MAX_REMEMBERED: Final = 10_000
"""Tables with a cooldown that runs or has ended, about 2 MB. The oldest are forgotten."""

LENGTHENING: Final = 4
"""Each cooldown is this many times as long as the one before, if the table is to be loaded again soon after that."""

SOON_TIMES: Final = 16
"""Soon: within this many times the duration of the last load. Loads that are further apart take a sixteenth of the
time."""


Subject = DatabaseName | TableName


class _Cooldown(NamedTuple):
    until_s: float
    duration_s: float
    """Duration of the load before it."""
    times: int
    evictions: int
    """Number of evictions by then: a table that may have been evicted since has no cooldown, because it is needed."""


class Cooldowns:
    """When each table may be loaded again. Not thread-safe."""

    def __init__(self, shortest_times: int, longest_times: int) -> None:
        """Bounds of a cooldown, as multiples of the duration of the load before it."""
        self._shortest_times = shortest_times
        self._longest_times = longest_times
        self._cooldowns: OrderedDict[Subject, _Cooldown] = OrderedDict()

    def begin(
        self, subject: Subject, began_s: float, now_s: float, *, evictions_before: int = 0, evictions: int = 0
    ) -> None:
        """A load of it has ended (monotonic seconds). `evictions`: number of evictions in the cache, at its beginning
        and now."""
        before = self._cooldowns.pop(subject, None)
        times = self._shortest_times
        is_soon = before is not None and began_s - before.until_s < SOON_TIMES * before.duration_s
        if before is not None and is_soon and before.evictions == evictions_before:
            times = min(before.times * LENGTHENING, self._longest_times)
        duration_s = now_s - began_s
        self._cooldowns[subject] = _Cooldown(now_s + times * duration_s, duration_s, times, evictions)
        if len(self._cooldowns) > MAX_REMEMBERED:
            self._cooldowns.popitem(last=False)

    def is_over(self, subject: Subject, now_s: float, evictions: int = 0) -> bool:
        """Whether it may be loaded."""
        cooldown = self._cooldowns.get(subject)
        return cooldown is None or now_s >= cooldown.until_s or cooldown.evictions != evictions
