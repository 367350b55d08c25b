"""Writes that the tests of this folder make, also in other processes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select

from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from tests.databases import closing


def an_event(name: str = "d") -> EventRow:
    """An event of a database."""
    return EventRow("CREATE_DATABASE", "hive", name, None, f'{{"db":"{name}"}}', "json-0.2")


def add_database(transaction: WriteTransaction, name: str) -> int:
    """A row of DBS and its event."""
    database_id = transaction.id("MDatabase")
    transaction.connection.execute(
        insert(schema.DBS).values(DB_ID=database_id, NAME=name, DB_LOCATION_URI="file:/w", CTLG_NAME="hive")
    )
    transaction.append_event(an_event(name))
    return database_id


def names_of_databases(database: Database) -> list[str]:
    """The contents of DBS, sorted."""
    with database.checking() as connection:
        return list(connection.execute(select(schema.DBS.c.NAME).order_by(schema.DBS.c.NAME)).scalars())


def event_ids(database: Database) -> list[int]:
    """Ids of the notification log in order."""
    with database.checking() as connection:
        return list(
            connection.execute(
                select(schema.NOTIFICATION_LOG.c.EVENT_ID).order_by(schema.NOTIFICATION_LOG.c.EVENT_ID)
            ).scalars()
        )


def next_event_id(database: Database) -> int:
    """NOTIFICATION_SEQUENCE.NEXT_EVENT_ID."""
    with database.checking() as connection:
        value: int = connection.execute(select(schema.NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)).scalar_one()
        return value


def add_databases(url: str, names: Sequence[str]) -> list[int]:
    """One write for each name. Returns the ids. For a process of its own."""
    with closing(Database(url)) as database:
        return [run_write(database, lambda transaction, name=name: add_database(transaction, name)) for name in names]


def take_table_ids(url: str, amounts: Sequence[int]) -> list[int]:
    """Ids of MTable in blocks of this size. For a process of its own."""
    with closing(Database(url)) as database:
        return [
            each
            for amount in amounts
            for each in run_write(database, lambda transaction, amount=amount: transaction.ids("MTable", amount))
        ]
