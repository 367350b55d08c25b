"""Databases that may miss a commit acknowledged elsewhere: real replicas, and a real Galera cluster of one.

There the cache stays off and the doctor says why (P1): a position that was read on a replica proves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from hms_cache.app.caching import reason_against_caching
from hms_cache.app.checks import run_checks
from hms_cache.config.settings import Settings
from hms_cache.store.engine.database import Database
from tests.app.test_service import configured
from tests.databases import (
    DatabaseServer,
    ServerMissing,
    closing,
    start_galera,
    start_mariadb,
    start_postgresql,
    start_postgresql_standby,
)

pytestmark = pytest.mark.soak


@pytest.fixture
def start() -> Iterator[Callable[..., DatabaseServer]]:
    """Starts servers that are stopped at the end, the last first; skips where one is not installed."""
    with ExitStack() as stack:

        def started(how: Callable[..., DatabaseServer], *arguments: object) -> DatabaseServer:
            try:
                server = how(*arguments)
            except ServerMissing as error:
                if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
                    pytest.fail(str(error))
                pytest.skip(str(error))
            stack.callback(server.stop)
            return server

        yield started


def tell(server: DatabaseServer, statement: str) -> None:
    """Sends a statement to the server as its administrator."""
    engine = create_engine(server.admin_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


def why_not(settings: Settings) -> str | None:
    with closing(Database(settings.database.url)) as database:
        return reason_against_caching(settings, database)


def findings(settings: Settings) -> list[str]:
    return [one.problem for one in run_checks(settings).found if "the cache would stay off" in one.problem]


@pytest.mark.mariadb
def test_a_galera_cluster_is_cached_once_its_reads_wait(start: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    server = start(start_galera)
    settings = configured(tmp_path, database__url=server.initialized_database()).settings
    reason = "the database is a Galera cluster whose reads do not wait for it (wsrep_sync_wait has no bit 1)"
    assert why_not(settings) == reason
    assert findings(settings) == [f"the cache would stay off: {reason}"]
    tell(server, "SET GLOBAL wsrep_sync_wait = 1")
    assert why_not(settings) is None
    assert findings(settings) == []


@pytest.mark.mariadb
def test_a_read_only_server_is_not_cached(start: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    server = start(start_mariadb)
    settings = configured(tmp_path, database__url=server.initialized_database()).settings
    assert why_not(settings) is None
    tell(server, "SET GLOBAL read_only = ON")
    assert why_not(settings) == "the database is read-only: a replica, most likely"
    assert findings(settings) == ["the cache would stay off: the database is read-only: a replica, most likely"]


@pytest.mark.postgresql
def test_a_hot_standby_is_not_cached(start: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    primary = start(start_postgresql)
    url = primary.initialized_database()
    standby = start(start_postgresql_standby, primary)
    following = standby.admin_url.set(database=make_url(url).database).render_as_string(hide_password=False)
    assert why_not(configured(tmp_path, database__url=url).settings) is None
    settings = configured(tmp_path, database__url=following).settings
    assert why_not(settings) == "the database is in recovery: a replica"
    assert findings(settings) == ["the cache would stay off: the database is in recovery: a replica"]
