"""Locks on a table's row, held until the transaction ends.

A write that reads a table and then logs an event under its name must not be overtaken by a rename or a drop: its event
would name a table that is not there any more, or another one. So every write that concerns a table takes a lock on its
row first, and reads after that. SQLite has one writer at a time and needs none of it.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.rows.table_rows import TableRow, read_table
from hms_cache.store.schema import DBS, TBLS

_ROW = select(TBLS.c.TBL_ID).where(
    TBLS.c.TBL_NAME == bindparam("table"),
    TBLS.c.DB_ID
    == select(DBS.c.DB_ID)
    .where(DBS.c.NAME == bindparam("database"), DBS.c.CTLG_NAME == bindparam("catalog"))
    .scalar_subquery(),
)
_LOCK = _ROW.with_for_update()
_SHARE = _ROW.with_for_update(read=True)


def lock_table(connection: Connection, catalog: str, database: str, table: str) -> TableRow | None:
    """Locks the table's row, then reads the table; None when there is none.

    For changes of the table, and of partitions that are there: two that change the same one would both log it.
    """
    names = {"catalog": catalog, "database": database, "table": table}
    if not comparable_rows(connection, _LOCK, names):
        return None
    return read_table(connection, catalog, database, table)


def share_table(connection: Connection, catalog: str, database: str, table: str) -> TableRow | None:
    """Shares a lock of the table's row with other additions, then reads the table; None when there is none.

    For what adds to a table: many may at the same time, but nobody may rename or drop it meanwhile.
    """
    if connection.dialect.name != "sqlite":
        names = {"catalog": catalog, "database": database, "table": table}
        if not comparable_rows(connection, _SHARE, names):
            return None
    return read_table(connection, catalog, database, table)
