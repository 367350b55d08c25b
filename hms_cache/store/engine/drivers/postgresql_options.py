"""Settings of PostgreSQL's sessions: the parameter ``options`` of a URL, and the statement that sets them.

libpq would send ``options`` at the start of a session, and poolers of connections refuse that (PgBouncer, except with
``ignore_startup_parameters``, which drops them). So each session sets them itself.
"""

from __future__ import annotations

import re
from typing import Any

from hms_cache.errors import ConfigurationError

_PART = re.compile(r"(?:\\.|[^\\\s])+", re.DOTALL)
"""A backslash keeps the character after it, for example a blank."""
_REFUSED = ("22", "42", "55P02")
"""SQLSTATE: invalid values, settings that do not exist or that the account or a session may not change."""
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


def set_for_session(connection: Any, settings: dict[str, str]) -> None:
    """Sets them for the session of this psycopg connection, in one round trip.

    Raises ConfigurationError if the database refuses one, and what the driver does; then the connection must not be
    used.
    """
    import psycopg  # optional

    calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
    before = connection.autocommit
    connection.autocommit = True  # in a transaction, a rollback would undo them
    try:
        connection.execute(f"SELECT {calls}", [text for setting in settings.items() for text in setting], prepare=False)
    except psycopg.Error as error:
        if (error.sqlstate or "").startswith(_REFUSED):
            raise ConfigurationError(
                f"database.url: PostgreSQL refuses options: {error.diag.message_primary}"
            ) from error
        raise
    connection.autocommit = before
