"""The table of members is dropped, as by restoring a dump that is older than leases, and created again by a member at
any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine, ExceptionContext

from hms_cache.store.engine.database import Database
from hms_cache.store.members import members
from hms_cache.store.schema.members import HMS_CACHE_MEMBERS
from tests.database_kinds import ALL_KINDS
from tests.databases import closing

pytestmark = pytest.mark.parametrize("database_kind", ALL_KINDS, indirect=True)


@pytest.fixture
def database(database_url: str, initialize: None) -> Iterator[Database]:
    with closing(Database(database_url)) as database:
        members.create_table(database)
        yield database


def drop(database: Database) -> None:
    with database.writing() as connection:
        HMS_CACHE_MEMBERS.drop(connection)
        connection.commit()


@contextmanager
def created_after_an_error(database_url: str) -> Iterator[None]:
    """Another member creates the table between the statement that fails and whatever follows it."""
    created: list[Database] = []

    def create(_context: ExceptionContext) -> None:
        if not created:
            with closing(Database(database_url)) as another:
                created.append(another)
                members.create_table(another)

    event.listen(Engine, "handle_error", create)
    try:
        yield
    finally:
        event.remove(Engine, "handle_error", create)
    assert created


READS: list[Callable[[Database], object]] = [
    lambda database: members.read_presence(database, is_table_known=True).has_members,
    lambda database: members.read_with_history(database).rows,
]


@pytest.mark.parametrize("read", READS, ids=["presence", "members"])
def test_a_table_that_is_dropped_has_no_members(read: Callable[[Database], object], database: Database) -> None:
    drop(database)
    assert not read(database)


@pytest.mark.parametrize("read", READS, ids=["presence", "members"])
def test_one_that_is_created_again_meanwhile_fails_no_read(
    read: Callable[[Database], object], database: Database, database_url: str
) -> None:
    """A write of a server that does not read by lease failed with "no such table" (one of many runs of the soaks)."""
    drop(database)
    with created_after_an_error(database_url):
        assert not read(database)
    assert members.has_table(database)
