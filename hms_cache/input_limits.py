"""How large the pieces of a request may be that cost more than their bytes: patterns, expressions, lists, names.

One object for the process: what it bounds, the processor and the memory, is the process's. The numbers with their
reasons and the settings are in the section `limits` of the configuration; here they are in force.
"""

from __future__ import annotations

import threading

from hms_cache.config.sections.limits import LimitsSettings


class _Process:
    """`lock` guards `refused`; `limits` is replaced as a whole."""

    def __init__(self) -> None:
        self.limits = LimitsSettings()
        self.lock = threading.Lock()
        self.refused = dict.fromkeys(LimitsSettings.model_fields, 0)


_process = _Process()


def input_limits() -> LimitsSettings:
    """Those in force."""
    return _process.limits


def use_input_limits(limits: LimitsSettings) -> None:
    """From now on these are in force, for all that is read in this process."""
    _process.limits = limits


def exceeded(limit: str) -> str:
    """An input is refused because of this limit: counts that, and returns the words that name it in the error."""
    with _process.lock:
        _process.refused[limit] += 1
    return f"setting limits.{limit}"


def refused_inputs() -> dict[str, int]:
    """How many were refused in this process, by limit."""
    with _process.lock:
        return dict(_process.refused)
