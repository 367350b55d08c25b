"""Parameters of databases that replication depends on. Source: `HMSHandler.alter_database` (4.0.1)."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hms_cache.store.replication_marks import LAST_REPLICATED_ID_KEY
from hms_cache.store.schema import NOTIFICATION_SEQUENCE

TARGET_LAST_ID_KEY = "repl.target.last.id"
"""The last event here when an event of the source was last applied: a replication in the other direction begins
there."""

RESUME_STARTED_KEY = "repl.resume.started"
"""Set while a replication is resumed: the target's id must not change."""


def with_target_id(
    connection: Connection, before: dict[str, str] | None, after: dict[str, str] | None
) -> dict[str, str] | None:
    """The new parameters; if they change `repl.last.id`, with the id of the last event in this log."""
    if not after or after.get(RESUME_STARTED_KEY, "").lower() == "true":
        return after
    replicated = after.get(LAST_REPLICATED_ID_KEY)
    known = (before or {}).get(LAST_REPLICATED_ID_KEY)
    if replicated is None or (known is not None and replicated.lower() == known.lower()):
        return after
    next_id = connection.execute(select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)).scalar()
    return {**after, TARGET_LAST_ID_KEY: str(next_id - 1 if next_id else 0)}
