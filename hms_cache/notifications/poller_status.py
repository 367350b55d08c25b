"""The poller's statuses and commands, and which command is legal in which status."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from hms_cache.errors import HmsCacheError


class PollerStatus(StrEnum):
    """The poller's status. Only ``ACTIVE`` and ``NEEDS_RESYNC`` read the log."""

    ACTIVE = "ACTIVE"
    """Follows the log."""
    PAUSED = "PAUSED"
    """Suspended by an operator; what is applied stays applied."""
    NEEDS_RESYNC = "NEEDS_RESYNC"
    """Memory may be wrong (P7); the next step drops it and continues at the end of the log."""
    ERROR = "ERROR"
    """A problem was found that a resync cannot repair: a writer that logs nothing. Waits for an operator."""
    STOPPED = "STOPPED"
    """Not started yet, or stopped permanently."""
    DISABLED = "DISABLED"
    """There is no poller, because the cache is off; no poller has this status."""


class PollerCommand(StrEnum):
    """The commands to a poller."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    SEEK = "seek"
    RESYNC = "resync"
    SKIP = "skip"
    FAIL = "fail"


class StatusReport(NamedTuple):
    """The status, why, and since when (epoch seconds)."""

    status: PollerStatus
    reason: str
    since_s: float


class IllegalPollerCommand(HmsCacheError):
    """The command is not possible in the current status; nothing was changed."""

    def __init__(self, command: PollerCommand, status: PollerStatus, reason: str) -> None:
        self.command = command
        self.status = status
        super().__init__(f"cannot {command.value}: the poller is {status.value}, {reason}")


_A, _P, _N = PollerStatus.ACTIVE, PollerStatus.PAUSED, PollerStatus.NEEDS_RESYNC
_E, _S = PollerStatus.ERROR, PollerStatus.STOPPED

# The status after the command, or why it is refused. If events may have been missed, the result is NEEDS_RESYNC.
LEGAL_MOVES: Mapping[PollerCommand, Mapping[PollerStatus, PollerStatus | str]] = {
    PollerCommand.START: {
        _A: "it runs already",
        _P: "resume it instead",
        _N: "it runs already and is about to resync",
        _E: _N,
        _S: _N,
    },
    PollerCommand.STOP: {_A: _S, _P: _S, _N: _S, _E: _S, _S: "it does not run"},
    PollerCommand.PAUSE: {
        _A: _P,
        _P: "it is paused already",
        _N: "it is about to drop what may be wrong, which must not wait",
        _E: "it does not read the log",
        _S: "it does not run",
    },
    PollerCommand.RESUME: {
        _A: "it is not paused",
        _P: _A,
        _N: "it is not paused",
        _E: "resync it instead",
        _S: "start it instead",
    },
    PollerCommand.SEEK: {_A: _N, _P: _N, _N: _N, _E: _N, _S: "start it first"},
    PollerCommand.RESYNC: {_A: _N, _P: _N, _N: _N, _E: _N, _S: "start it instead"},
    PollerCommand.SKIP: {_A: _A, _P: _P, _N: _N, _E: _E, _S: "start it first"},
    PollerCommand.FAIL: {_A: _E, _P: _E, _N: _E, _E: _E, _S: "it does not run"},
}


def next_status(status: PollerStatus, command: PollerCommand) -> PollerStatus:
    """The status after the command. Raises ``IllegalPollerCommand``."""
    move = LEGAL_MOVES[command][status]
    if not isinstance(move, PollerStatus):
        raise IllegalPollerCommand(command, status, move)
    return move
