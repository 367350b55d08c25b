"""A statement with more or longer parameters than the database accepts: the request is refused; it is not an outage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_read, run_write
from hms_cache.store.schema import TBLS, VERSION
from hms_cache.thrift_gen.hive_metastore import ttypes

COUNT = 300_000
"""PostgreSQL takes 65,535, SQLite 250,000 at most."""

NAMES = [f"n{number}" for number in range(COUNT)]


def read(known: Database, work: Callable[[Connection], Any]) -> Any:
    return run_read(known, work)


def write(known: Database, work: Callable[[Connection], Any]) -> Any:
    return run_write(known, lambda transaction: work(transaction.connection))


def driver_connection(connection: Connection) -> int:
    return id(connection.connection.dbapi_connection)


@pytest.mark.parametrize("run", [read, pytest.param(write, marks=pytest.mark.soak)])
def test_it_costs_no_connection(initialized_database: Database, run: Callable[..., Any]) -> None:
    before = run(initialized_database, driver_connection)
    statement = select(TBLS.c.TBL_ID).where(TBLS.c.TBL_NAME.in_(NAMES))
    if run is write:
        statement = delete(TBLS).where(TBLS.c.TBL_NAME.in_(NAMES))  # type: ignore[assignment]
    if initialized_database.dialect != "mysql":
        with pytest.raises(ttypes.MetaException, match="names more than the database takes in one statement"):
            run(initialized_database, lambda connection: connection.execute(statement))
    else:
        run(initialized_database, lambda connection: connection.execute(statement))
    assert run(initialized_database, driver_connection) == before


def test_a_pattern_that_is_too_long_is_refused(sqlite_database: Database) -> None:
    statement = select(VERSION.c.VER_ID).where(VERSION.c.SCHEMA_VERSION.like("x" * 60_000))
    before = read(sqlite_database, driver_connection)
    with pytest.raises(ttypes.MetaException, match="The database refuses a value"):
        read(sqlite_database, lambda connection: connection.execute(statement).all())
    assert read(sqlite_database, driver_connection) == before
