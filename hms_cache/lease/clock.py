"""The clock that leases are counted by."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def lease_clock_s() -> float:
    """Seconds since the machine started, those in which it was suspended among them: a lease must not outlive a nap."""
    return time.clock_gettime(_CLOCK)
