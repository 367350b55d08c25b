"""Fixtures of the transaction tests."""

from __future__ import annotations

import pytest

from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.txn_store import TxnStore
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient


@pytest.fixture
def client(initialized_database: Database) -> TxnClient:
    """A client of a transaction store on an empty catalog, on each kind of database in turn."""
    return TxnClient(store_of(initialized_database), initialized_database)


@pytest.fixture
def sqlite_client(sqlite_database: Database) -> TxnClient:
    """The same on SQLite only."""
    return TxnClient(store_of(sqlite_database), sqlite_database)


def store_of(database: Database) -> TxnStore:
    """A transaction store on the database."""
    # A constant clock: on a busy machine, no transaction takes too long to open.
    return TxnStore(database, MessageBuilder(), clock=ManualClock())
