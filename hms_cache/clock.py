"""Clocks as a dependency, so that tests can set the time.

Durations are measured with the monotonic clock. Times that are stored in the database or shown to people are epoch
times.
"""

from __future__ import annotations

import time
from typing import Final, Protocol, runtime_checkable

_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


LATEST_STORED_S: Final = 2**31 - 1
"""The latest time that can be stored: the protocol, and columns of Hive's tables, hold seconds in 32 bits, which end on
19 January 2038."""


def stored_s(epoch_s: float) -> int:
    """Returns whole seconds as they are stored and sent. Times after 2038 become the latest time, as times of events do
    in Hive."""
    return min(int(epoch_s), LATEST_STORED_S)


def elapsed_s() -> float:
    """See `Clock.monotonic_s`.

    `time.monotonic` does not advance while the machine is suspended: after hours of suspension, a result that was valid
    for some seconds would still count as valid. Systems other than Linux only have that clock.
    """
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


@runtime_checkable
class Clock(Protocol):
    """A source of time."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment, including time during which the machine was suspended; never goes back."""
        ...

    def epoch_s(self) -> float:
        """Seconds since 1970-01-01 UTC by this machine's clock; may jump when that clock is set."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def monotonic_s(self) -> float:
        return elapsed_s()

    def epoch_s(self) -> float:
        return time.time()
