"""The poller's statuses, the commands it takes, and which of them is legal when."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from hms_cache.errors import HmsCacheError


class PollerStatus(StrEnum):
    """What the poller does. Only ``ACTIVE`` and ``NEEDS_RESYNC`` read the log."""

    ACTIVE = "ACTIVE"
    """Follows the log."""
    PAUSED = "PAUSED"
    """An operator stopped it for a while; what is applied stays applied."""
    NEEDS_RESYNC = "NEEDS_RESYNC"
    """What is held may be wrong (P7); the next step drops it and begins anew at the end of the log."""
    ERROR = "ERROR"
    """Something was found that following the log cannot repair, a writer that logs nothing. Waits for an operator."""
    STOPPED = "STOPPED"
    """Not started yet, or stopped for good."""
    DISABLED = "DISABLED"
    """Switched off by configuration."""


class PollerCommand(StrEnum):
    """What may be asked of a poller; imperative."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    SEEK = "seek"
    RESYNC = "resync"
    SKIP = "skip"
    FAIL = "fail"
    ENABLE = "enable"
    DISABLE = "disable"


class StatusReport(NamedTuple):
    """The status, why, and since when (epoch seconds)."""

    status: PollerStatus
    reason: str
    since_s: float


class IllegalPollerCommand(HmsCacheError):
    """The command is not possible in the present status; nothing changed."""

    def __init__(self, command: PollerCommand, status: PollerStatus, reason: str) -> None:
        self.command = command
        self.status = status
        super().__init__(f"cannot {command.value}: the poller is {status.value}, {reason}")


_A, _P, _N = PollerStatus.ACTIVE, PollerStatus.PAUSED, PollerStatus.NEEDS_RESYNC
_E, _S, _D = PollerStatus.ERROR, PollerStatus.STOPPED, PollerStatus.DISABLED

# The status after the command, or why it is refused. Whatever may have passed unseen ends in NEEDS_RESYNC.
LEGAL_MOVES: Mapping[PollerCommand, Mapping[PollerStatus, PollerStatus | str]] = {
    PollerCommand.START: {
        _A: "it runs already",
        _P: "resume it instead",
        _N: "it runs already and is about to begin anew",
        _E: _N,
        _S: _N,
        _D: "enable it first",
    },
    PollerCommand.STOP: {_A: _S, _P: _S, _N: _S, _E: _S, _S: "it does not run", _D: "it does not run"},
    PollerCommand.PAUSE: {
        _A: _P,
        _P: "it is paused already",
        _N: "it is about to drop what may be wrong, which must not wait",
        _E: "it does not read the log",
        _S: "it does not run",
        _D: "it does not run",
    },
    PollerCommand.RESUME: {
        _A: "it is not paused",
        _P: _A,
        _N: "it is not paused",
        _E: "resync it instead",
        _S: "start it instead",
        _D: "enable it first",
    },
    PollerCommand.SEEK: {_A: _N, _P: _N, _N: _N, _E: _N, _S: "start it first", _D: "enable it first"},
    PollerCommand.RESYNC: {_A: _N, _P: _N, _N: _N, _E: _N, _S: "start it instead", _D: "enable it first"},
    PollerCommand.SKIP: {_A: _A, _P: _P, _N: _N, _E: _E, _S: "start it first", _D: "enable it first"},
    PollerCommand.FAIL: {_A: _E, _P: _E, _N: _E, _E: _E, _S: "it does not run", _D: "it does not run"},
    PollerCommand.ENABLE: {_A: "it is enabled", _P: "it is enabled", _N: "it is enabled", _E: "it is enabled"}
    | {_S: "it is enabled", _D: _S},
    PollerCommand.DISABLE: {_A: _D, _P: _D, _N: _D, _E: _D, _S: _D, _D: "it is disabled already"},
}


def next_status(status: PollerStatus, command: PollerCommand) -> PollerStatus:
    """The status that the command leads to. Raises ``IllegalPollerCommand``."""
    move = LEGAL_MOVES[command][status]
    if not isinstance(move, PollerStatus):
        raise IllegalPollerCommand(command, status, move)
    return move
