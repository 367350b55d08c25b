"""Settings of PostgreSQL's sessions in the parameter ``options`` of a URL.

libpq would send ``options`` at the start of a session, and poolers of connections refuse that (PgBouncer, except with
``ignore_startup_parameters``, which drops them). So each session sets them itself
(`LimitedConnection.set_for_session`).
"""

from __future__ import annotations

import re

_PART = re.compile(r"(?:\\.|[^\\\s])+", re.DOTALL)
"""A backslash keeps the character after it, for example a blank."""
_SETTING = re.compile(r"(?P<name>[\w.-]+)=(?P<value>.*)", re.DOTALL)


def settings_of(options: str) -> dict[str, str] | None:
    """The settings in libpq's ``options``, by name; None if they contain anything else.

    Each is ``-c NAME=VALUE``, ``-cNAME=VALUE`` or ``--NAME=VALUE``; names may have hyphens instead of underscores.
    """
    found: dict[str, str] = {}
    parts = iter([re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in _PART.findall(options)])
    for part in parts:
        text = next(parts, "") if part == "-c" else part[2:] if part.startswith(("-c", "--")) else ""
        setting = _SETTING.fullmatch(text)
        if setting is None:
            return None
        found[setting["name"].replace("-", "_")] = setting["value"]
    return found
