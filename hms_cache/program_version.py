"""The version of this program."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def program_version() -> str:
    """Returns the installed version, which is looked up once."""
    return metadata.version("hms-cache")
