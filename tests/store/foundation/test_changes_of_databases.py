"""Two that change one database at the same time do so one after the other, and the log says in which order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.metadata.object_names import DatabaseName
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, NoSuchObjectException
from tests.cache.world import CATALOG, Server, create_database

D = DatabaseName(CATALOG, "d")
PATIENCE_S = 30.0
SOON_S = 0.3
"""Within which the other one would be through, if it did not wait."""


def altered(server: Server, **changes: Any) -> None:
    before = server.objects.reads.databases.get_database(D)
    for name, value in changes.items():
        setattr(before, name, value)
    server.objects.writes.databases.alter_database(D, before)


@pytest.mark.parametrize("other", ["alter", "drop"])
def test_a_change_waits_for_the_one_under_way(
    initialized_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    build = MessageBuilder.build_alter_database
    reached, proceed = threading.Event(), threading.Event()

    def held(self: MessageBuilder, before: Database, after: Database) -> Any:
        if after.description == "first":
            reached.set()
            assert proceed.wait(PATIENCE_S)
        return build(self, before, after)

    monkeypatch.setattr(MessageBuilder, "build_alter_database", held)
    with (
        closing(Server(initialized_database_url, tmp_path / "here")) as here,
        closing(Server(initialized_database_url, tmp_path / "there")) as there,
        ThreadPoolExecutor(2) as pool,
    ):
        if here.database.is_sqlite:
            pytest.skip("it has one writer at a time")
        create_database(here.objects, "d")
        second = (
            (lambda: altered(there, description=None, parameters={"b": "2"}))
            if other == "alter"
            else (lambda: there.objects.writes.databases.drop_database(D, delete_data=False, cascade=False))
        )
        first = pool.submit(altered, here, description="first", parameters={"a": "1"})
        assert reached.wait(PATIENCE_S)
        later = pool.submit(second)
        with pytest.raises(TimeoutError):
            later.result(SOON_S)
        proceed.set()
        first.result(PATIENCE_S)
        later.result(PATIENCE_S)
        with here.database.loading() as connection:
            events = [
                str(row[0])
                for row in connection.exec_driver_sql(
                    'SELECT "EVENT_TYPE" FROM "NOTIFICATION_LOG" ORDER BY "EVENT_ID"'
                    if here.database.dialect == "postgresql"
                    else "SELECT EVENT_TYPE FROM NOTIFICATION_LOG ORDER BY EVENT_ID"
                )
            ]
        assert events[-2:] == ["ALTER_DATABASE", f"{other.upper()}_DATABASE"]
        if other == "drop":
            with pytest.raises(NoSuchObjectException):
                here.objects.reads.databases.get_database(D)
        else:
            found = here.objects.reads.databases.get_database(D)
            assert (found.description, found.parameters) == ("first", {"b": "2"})
