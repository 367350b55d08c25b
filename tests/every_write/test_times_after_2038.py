"""Writes after January 2038, when seconds no longer fit in the 32 bits of Hive's tables and protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Integer, func, select

from hms_cache.clock import LATEST_STORED_S
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import EventCleaner
from hms_cache.store.schema import METADATA, NOTIFICATION_LOG
from tests.every_write.requests import base_requests, write_methods
from tests.every_write.world import World
from tests.store.partitions.catalog import PartitionCatalog, partition

IN_2040_S = 2_208_988_800.0


@pytest.fixture
def in_2040(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.time
    shift_s = IN_2040_S - now_s()
    monkeypatch.setattr(time, "time", lambda: now_s() + shift_s)


@pytest.fixture
def world(in_2040: None, sqlite_database: Database, tmp_path: Path) -> Iterator[World]:
    url = sqlite_database.url.render_as_string(hide_password=False)
    with closing(World(url, tmp_path, MessageFormat.JSON)) as made:
        yield made


@pytest.mark.soak
def test_no_write_stores_more_than_its_columns_hold(world: World) -> None:
    """SQLite accepts any number; the other databases, and the protocol, refuse those with more than 32 bits."""
    narrow = [column for table in METADATA.tables.values() for column in table.columns if type(column.type) is Integer]
    problems = []
    for method in write_methods():
        outcome = world.call(method, base_requests(method, world.facts)[0])
        changed = {*outcome.changed, *(["NOTIFICATION_LOG"] if outcome.events else [])}
        with world.writer.database.loading() as connection:
            for column in narrow:
                if column.table.name in changed:
                    highest = connection.execute(select(func.max(column))).scalar()
                    if highest is not None and highest > LATEST_STORED_S:
                        problems.append(f"{method}: {column} is {highest}")
        world.set_back(outcome.changed)
    assert problems == []


def test_writes_go_on_and_their_events_stay(in_2040: None, initialized_database: Database, tmp_path: Path) -> None:
    """The age of such an event is unknown, and a reader of the log would miss it."""
    catalog = PartitionCatalog(initialized_database, tmp_path)
    catalog.create_table()
    catalog.writes.add_partitions(TableName("hive", "d", "t"), [partition("a", "1")])
    catalog.writes.add_partitions(TableName("hive", "d", "t"), [partition("a", "2")])
    rows = catalog.rows(NOTIFICATION_LOG, NOTIFICATION_LOG.c.EVENT_TIME)
    assert [time_s for (time_s,) in rows] == [LATEST_STORED_S] * 2
    assert EventCleaner(initialized_database).clean_events(60.0, 10) == 0
