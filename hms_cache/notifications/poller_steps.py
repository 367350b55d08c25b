"""The outcome of a poller's step, and when the next one is due."""

from __future__ import annotations

import math
import random
from enum import StrEnum
from typing import NamedTuple

RENEWAL_INTERVAL_S = 1.0
"""Minimum time between two renewals of all connections, so that a proxy in front of two servers does not cause a
storm."""

_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.1, 30.0
"""Waits double from the first to the longest while the database is unavailable: short after a brief failure, and
infrequent in an outage."""

_JITTER = 0.1
"""Random variation, so that servers that were started together do not poll together."""


class StepOutcome(StrEnum):
    CAUGHT_UP = "caught_up"
    MORE = "more"
    """A full batch was applied; there may be more."""
    RESYNCED = "resynced"
    """Everything was dropped, and a new position was set."""
    DATABASE_AWAY = "database_away"
    NOT_PRIMARY = "not_primary"
    """The server may miss commits (a replica); the status stays ``NEEDS_RESYNC`` until it does not."""
    SINK_FAILED = "sink_failed"
    """The sink could not be reset; the status stays ``NEEDS_RESYNC``."""
    BUSY = "busy"
    """Another thread is making a step."""
    IDLE = "idle"
    """The status does not allow reading the log."""


class StepResult(NamedTuple):
    """``next_step_in_s``: seconds until ``step`` should be called again."""

    outcome: StepOutcome
    position: int
    received: int
    next_step_in_s: float


def next_step_in_s(outcome: StepOutcome, poll_interval_s: float, failures: int, *, begins_anew: bool) -> float:
    """`failures`: number of consecutive failed fetches. `begins_anew`: the log is to be followed from another
    position."""
    if outcome in (StepOutcome.MORE, StepOutcome.RESYNCED):
        return 0.0
    if outcome is StepOutcome.NOT_PRIMARY:
        return min(_LONGEST_BACKOFF_S, RENEWAL_INTERVAL_S) * random.uniform(0.9, 1.1)
    if outcome in (StepOutcome.DATABASE_AWAY, StepOutcome.SINK_FAILED):
        exponent = min(30, max(0, failures - 1))
        wait_s = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * float(2**exponent))
        return wait_s * random.uniform(0.5, 1.0)
    if begins_anew:
        return _FIRST_BACKOFF_S
    return poll_interval_s * random.uniform(1 - _JITTER, 1 + _JITTER) if poll_interval_s else math.inf
