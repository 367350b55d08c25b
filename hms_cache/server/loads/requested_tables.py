"""The table that a request is about, for counting: the first that it names."""

from __future__ import annotations

from typing import Any

from hms_cache.metrics.loads import MAX_NAME_CHARACTERS
from hms_cache.server.authorization.objects import DATABASES, TABLES

_PlainNames = tuple[str, str, str]
"""The field of the request within the arguments (empty: the arguments themselves), then those of database and table."""

_plans: dict[type, _PlainNames | None] = {}
"""By class of arguments, so no more than the protocol has methods. All threads write equal values."""


def requested_table(arguments: Any) -> str:
    """``database.table``, in lower case; empty where the request does not name one plainly."""
    kind = type(arguments)
    try:
        plan = _plans[kind]
    except KeyError:
        plan = _plans[kind] = _plan_of(arguments)
    if plan is None:
        return ""
    source = getattr(arguments, plan[0], None) if plan[0] else arguments
    database, table = getattr(source, plan[1], None), getattr(source, plan[2], None)
    if not isinstance(database, str) or not isinstance(table, str):
        return ""
    # Cut first: both may be as long as a message.
    return f"{database[:MAX_NAME_CHARACTERS]}.{table[:MAX_NAME_CHARACTERS]}".lower()


def _plan_of(arguments: Any) -> _PlainNames | None:
    found = _names_in(arguments.thrift_spec, type(arguments).__name__)
    if found is not None:
        return ("", *found)
    for field in filter(None, arguments.thrift_spec):
        if isinstance(field[3], list) and isinstance(field[3][0], type) and hasattr(field[3][0], "thrift_spec"):
            found = _names_in(field[3][0].thrift_spec, field[3][0].__name__)
            if found is not None:
                return (field[2], *found)
    return None


def _names_in(spec: Any, struct: str) -> tuple[str, str] | None:
    names = [field[2] for field in filter(None, spec)]
    database = next((name for name in names if name in DATABASES), None)
    table = next((name for name in names if name in TABLES), None)
    if table is None and (struct.startswith("drop_table") or struct == "Table"):
        table = next((name for name in names if name == "name"), None)
    return None if database is None or table is None else (database, table)
