"""How large the pieces of a request may be that cost more than their bytes: patterns, expressions, lists, names.

One object for the process: what it bounds, the processor and the memory, is the process's. The numbers with their
reasons and the settings are in the section `limits` of the configuration; here they are in force.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class InputLimits:
    """The settings of the section `limits`, by the same names; the defaults are its defaults."""

    name_pattern_alternatives: int = 100
    name_pattern_characters: int = 4096
    regex_characters: int = 1_000
    regex_states: int = 2_000
    regex_steps: int = 5_000_000
    expression_bytes: int = 1024 * 1024
    expression_memory_bytes: int = 64 * 1024 * 1024
    expression_nodes: int = 100_000
    table_filter_parameters: int = 1_000
    listed_ids: int = 1_000_000
    properties_expression_characters: int = 10_000
    properties_text_characters: int = 1_000_000
    heartbeat_range_txns: int = 1_000_000
    sasl_message_bytes: int = 128 * 1024
    bearer_token_bytes: int = 16 * 1024
    session_variables: int = 64
    session_name_characters: int = 256


class _Process:
    """`lock` guards `refused`; `limits` is replaced as a whole."""

    def __init__(self) -> None:
        self.limits = InputLimits()
        self.lock = threading.Lock()
        self.refused = {field.name: 0 for field in fields(InputLimits)}


_process = _Process()


def input_limits() -> InputLimits:
    """Those in force."""
    return _process.limits


def use_input_limits(limits: InputLimits) -> None:
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
