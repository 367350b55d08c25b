"""Time as a dependency, so that tests can move it.

Waits are measured on the monotonic clock; what is written to the database or shown to people is epoch time.
"""

from __future__ import annotations

import time
from typing import Final, Protocol, runtime_checkable

_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


LATEST_STORED_S: Final = 2**31 - 1
"""The protocol, and columns of Hive's tables, hold seconds in 32 bits, which end on 19 January 2038."""


def stored_s(epoch_s: float) -> int:
    """Whole seconds as they are stored and sent: from 2038 on all the same, as times of events are in Hive."""
    return min(int(epoch_s), LATEST_STORED_S)


def elapsed_s() -> float:
    """As `Clock.monotonic_s`. `time.monotonic` stands still while the machine is suspended, so that what was true for
    some seconds before would be so again afterwards, hours later. Other systems than Linux have no other."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


@runtime_checkable
class Clock(Protocol):
    """Where a component gets its time from."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment, those among them in which the machine was suspended; never goes back."""
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
