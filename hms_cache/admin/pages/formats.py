"""Formats numbers for people."""

from __future__ import annotations

import time


def size(value: float | None) -> str:
    """A number of bytes with a unit."""
    if value is None:
        return "unknown"
    if value < 1024:
        return f"{value:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            return f"{value:.1f} {unit}"
    return f"{value:.1f} TiB"


def duration(seconds: float | None) -> str:
    """A duration with a suitable unit."""
    if seconds is None:
        return "unknown"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} d"


def timestamp(epoch_s: float | None) -> str:
    """A time in UTC, to the second."""
    return "never" if epoch_s is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(epoch_s))


def percent(share: float | None) -> str:
    """A share from 0 to 1 as a percentage."""
    return "no reads yet" if share is None else f"{share:.1%}"


def number(value: float | None) -> str:
    """A number with thousands separators, and with a fraction only if it is small."""
    if value is None:
        return "unknown"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
