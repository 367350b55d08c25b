"""Options of sources, which are all texts."""

from __future__ import annotations

from collections.abc import Mapping

from hms_cache.errors import ConfigurationError


def positive(options: Mapping[str, str], name: str, default: int) -> int:
    """A whole number of at least 1. Raises ConfigurationError."""
    number = optional_number(options, name)
    if number is None:
        return default
    if number < 1:
        raise ConfigurationError(f"{name} must be at least 1: {number}")
    return number


def optional_number(options: Mapping[str, str], name: str) -> int | None:
    """A whole number, None if the option is not given. Raises ConfigurationError."""
    text = options.get(name)
    if text is None or not str(text).strip():
        return None
    try:
        return int(str(text).strip())
    except ValueError as error:
        raise ConfigurationError(f"{name} must be a whole number: {text!r}") from error
