"""The lock of what Hive's schema has no unique key for (SerDes, scheduled queries, global privileges): of two that add
the same one at the same time, the second finds it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hms_cache.store.schema import VERSION

_LOCK = select(VERSION.c.VER_ID).with_for_update()
"""A row that every schema has, and that nobody changes but an upgrade."""


def hold_names(connection: Connection) -> None:
    """Waits for others that add such a name, and lets others wait until the transaction ends."""
    # SQLite has one writer at a time.
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK).all()
