"""Locks on a table's row, held until the transaction ends.

If a write reads a table and then logs an event with its name, a rename or drop in between would make the event name a
missing or a different table. So every write that concerns a table first locks its row, and reads after that. SQLite has
one writer at a time and needs no lock.
"""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, bindparam, select

from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import PlannedQuery, execute_plan, fetch, side_by_side
from hms_cache.store.rows.table_rows import TableRow, read_table, table_plan
from hms_cache.store.schema import DBS, TBLS

_ROW = select(TBLS.c.TBL_ID).where(
    TBLS.c.TBL_NAME == bindparam("table"),
    TBLS.c.DB_ID
    == select(DBS.c.DB_ID)
    .where(DBS.c.NAME == bindparam("database"), DBS.c.CTLG_NAME == bindparam("catalog"))
    .scalar_subquery(),
)
_LOCK = DirectQuery(_ROW.with_for_update())
_SHARE = DirectQuery(_ROW.with_for_update(read=True))


def lock_table(connection: Connection, catalog: str, database: str, table: str) -> TableRow | None:
    """Locks the table's row, then reads the table; None if it does not exist.

    For changes of the table and of existing partitions: otherwise two concurrent changes would both be logged.
    """
    return _read_locked(connection, _LOCK, catalog, database, table)


def share_table(connection: Connection, catalog: str, database: str, table: str) -> TableRow | None:
    """Takes a shared lock on the table's row, then reads the table; None if it does not exist.

    For additions to a table: several may run at the same time, but not together with a rename or drop.
    """
    if connection.dialect.name == "sqlite":
        return read_table(connection, catalog, database, table)
    return _read_locked(connection, _SHARE, catalog, database, table)


def _read_locked(
    connection: Connection, locking: DirectQuery, catalog: str, database: str, table: str
) -> TableRow | None:
    """In one round trip: each statement sees what was committed before it began, so the table is read in its state
    after the lock was acquired. The row cannot be dropped or renamed between the statements."""
    names = {"catalog": catalog, "database": database, "table": table}
    locked, found = execute_plan(
        connection,
        side_by_side(
            fetch(PlannedQuery(locking, names, compares_texts=True)), table_plan(connection, catalog, database, table)
        ),
    )
    return cast("TableRow | None", found) if locked else None
