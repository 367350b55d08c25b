"""How a step of the poller ended, and when the next one is due."""

from __future__ import annotations

import math
import random
from enum import StrEnum
from typing import NamedTuple

RENEWAL_INTERVAL_S = 1.0
"""Between two times that all connections are opened anew: a proxy in front of two servers shall not make it a storm."""

_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.1, 30.0
"""Waits double from the first to the longest while the database is unavailable: short after a brief failure, and not
too frequent in an outage."""

_JITTER = 0.1
"""Servers that were started together shall not poll together."""


class StepOutcome(StrEnum):
    CAUGHT_UP = "caught_up"
    MORE = "more"
    """A full batch was applied; there may be more."""
    RESYNCED = "resynced"
    """Everything was dropped, and the position set anew."""
    DATABASE_AWAY = "database_away"
    NOT_PRIMARY = "not_primary"
    """What answers may miss commits (a replica); the status stays ``NEEDS_RESYNC`` until it does not."""
    SINK_FAILED = "sink_failed"
    """The sink could not be reset; the status stays ``NEEDS_RESYNC``."""
    BUSY = "busy"
    """Another thread is stepping."""
    IDLE = "idle"
    """The status does not allow reading the log."""


class StepResult(NamedTuple):
    """``next_step_in_s``: when to call ``step`` again."""

    outcome: StepOutcome
    position: int
    received: int
    next_step_in_s: float


def next_step_in_s(outcome: StepOutcome, poll_interval_s: float, failures: int, *, begins_anew: bool) -> float:
    """`failures`: fetches that failed in a row. `begins_anew`: the log is to be followed from another place."""
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
