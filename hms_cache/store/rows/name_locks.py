"""A lock for names that are not unique in Hive's schema (SerDes, scheduled queries, global privileges): of two calls
that add the same name at the same time, the second one sees the first one's row."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hms_cache.store.schema import VERSION

_LOCK = select(VERSION.c.VER_ID).with_for_update()
"""A row that every schema has and that only an upgrade changes."""


def hold_names(connection: Connection) -> None:
    """Waits for other calls that add such a name, and blocks them until the transaction ends."""
    # SQLite has one writer at a time.
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK).all()
