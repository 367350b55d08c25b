"""Limits on parts of a request whose processing costs more than their size: patterns, expressions, lists, names.

There is one object per process, because processor and memory belong to the process. The values, their reasons and the
settings are in the section `limits` of the configuration; this module holds the values in force.
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
    """Returns the limits in force."""
    return _process.limits


def use_input_limits(limits: LimitsSettings) -> None:
    """Puts these limits in force for this process."""
    _process.limits = limits


def exceeded(limit: str) -> str:
    """Counts an input that is refused because of this limit, and returns the name of the setting for the error's
    text."""
    with _process.lock:
        _process.refused[limit] += 1
    return f"setting limits.{limit}"


def refused_inputs() -> dict[str, int]:
    """Returns the number of inputs refused in this process, by limit."""
    with _process.lock:
        return dict(_process.refused)
