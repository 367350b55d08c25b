"""The clock for leases."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def lease_clock_s() -> float:
    """Seconds since the machine started, including those in which it was suspended: a lease must not outlive a
    suspension."""
    return time.clock_gettime(_CLOCK)
