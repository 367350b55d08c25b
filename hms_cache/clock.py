"""Time as a dependency, so that tests can move it.

Waits are measured on the monotonic clock; what is written to the database or shown to people is epoch time.
"""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """Where a component gets its time from."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    def epoch_s(self) -> float:
        """Seconds since 1970-01-01 UTC by this machine's clock; may jump when that clock is set."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def monotonic_s(self) -> float:
        return time.monotonic()

    def epoch_s(self) -> float:
        return time.time()
