"""The version of this program."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def program_version() -> str:
    """The installed version; looked up once."""
    return metadata.version("hms-cache")
