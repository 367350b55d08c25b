"""What tests do once has the same result as what a server does each time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hms_cache.app.database import ensure_first_rows, require_schema
from hms_cache.config import Settings
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from tests.app.test_service import configured
from tests.databases import closing as closing_database
from tests.manual_clock import ManualClock


def contents(directory: Path, make: Callable[[Database, Settings], object]) -> list[str]:
    """The contents of the database of a started server; roles and their grants without their creation times."""
    directory.mkdir()
    settings = configured(directory, warehouse__directory="/warehouse").settings
    with closing_database(Database(settings.database.url, clock=ManualClock())) as database:
        make(database, settings)
        ensure_first_rows(database, settings)
        name = database.url.database
        assert name is not None
    with closing(sqlite3.connect(name)) as made:
        assert made.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert made.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert made.execute("PRAGMA page_size").fetchone() == (4096,)
        for table in ("ROLES", "GLOBAL_PRIVS"):
            made.execute(f"UPDATE {table} SET CREATE_TIME = 0")
        return list(made.iterdump())


def test_a_copied_database_is_as_a_server_makes_it(tmp_path: Path) -> None:
    copied = [contents(tmp_path / name, require_schema) for name in ("first", "second")]
    made = contents(tmp_path / "made", lambda database, settings: init_schema(database))
    assert copied == [made, made]


def test_what_is_there_is_never_copied_over(tmp_path: Path) -> None:
    contents(tmp_path / "first", require_schema)

    def make_twice(database: Database, settings: Settings) -> None:
        with database.writing() as connection:
            connection.exec_driver_sql("CREATE TABLE KEPT (ID INTEGER)")
            connection.commit()
        require_schema(database, settings)

    assert any("KEPT" in line for line in contents(tmp_path / "second", make_twice))
