"""Databases that may miss a commit acknowledged elsewhere: real replicas, and a real Galera cluster of one.

There, nothing is answered from memory, and status and `hms-cache check` give the reason (P1): a position that was read
on a replica proves nothing. Once the database is a primary, memory answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from hms_cache.app.checks import run_checks
from hms_cache.app.service import Service
from hms_cache.config import Configuration
from hms_cache.config.settings import Settings
from hms_cache.notifications.poller_status import PollerStatus
from tests.app.test_service import client, configured
from tests.consistency.observers import wait_until
from tests.databases import (
    DatabaseServer,
    ServerMissing,
    start_galera,
    start_mariadb,
    start_postgresql,
    start_postgresql_standby,
)

pytestmark = pytest.mark.soak


@pytest.fixture
def start() -> Iterator[Callable[..., DatabaseServer]]:
    """Starts servers, which are stopped at the end, the last first; skips the test if one is not installed."""
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


def served(directory: Path, url: str) -> Configuration:
    """A server's configuration on this database."""
    return configured(directory, database__url=url, admin__enabled=True, admin__port=0)


def why_not(configuration: Configuration) -> str | None:
    """Why a server started on the database does not answer from memory; None if it does after the first read."""
    service = Service(configuration)
    uri = service.start()
    try:
        assert service.admin_sources is not None
        poller = service.admin_sources.poller
        assert poller is not None
        with client(uri) as metastore:
            if not poller.ensure_applied(0, 1):
                assert metastore.get_all_databases() == ["default"]
                assert not service.reads_by_outcome().get("hit")
                return poller.status_report().reason
            for _ in range(2):
                assert metastore.get_all_databases() == ["default"]
        assert service.reads_by_outcome()["hit"]
        return None
    finally:
        service.stop()


def findings(settings: Settings) -> list[str]:
    return [one.problem for one in run_checks(settings).found if "the cache would stay off" in one.problem]


@pytest.mark.mariadb
def test_a_galera_cluster_is_cached_once_its_reads_wait(start: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    server = start(start_galera)
    configuration = served(tmp_path, server.initialized_database())
    settings = configuration.settings
    reason = "the database is a Galera cluster whose reads do not wait for it (wsrep_sync_wait has no bit 1)"
    assert why_not(configuration) == reason
    assert findings(settings) == [f"the cache would stay off: {reason}"]
    tell(server, "SET GLOBAL wsrep_sync_wait = 1")
    assert why_not(configuration) is None
    assert findings(settings) == []


@pytest.mark.mariadb
def test_a_read_only_server_is_not_cached(start: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    server = start(start_mariadb)
    configuration = served(tmp_path, server.initialized_database())
    settings = configuration.settings
    assert why_not(configuration) is None
    tell(server, "SET GLOBAL read_only = ON")
    assert why_not(configuration) == "the database is read-only: a replica, most likely"
    assert findings(settings) == ["the cache would stay off: the database is read-only: a replica, most likely"]


@pytest.mark.postgresql
def test_a_hot_standby_is_not_cached(start: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    primary = start(start_postgresql)
    url = primary.initialized_database()
    assert why_not(served(tmp_path, url)) is None  # makes the database `default`, which the standby then begins with
    standby = start(start_postgresql_standby, primary)
    following = standby.admin_url.set(database=make_url(url).database).render_as_string(hide_password=False)
    configuration = served(tmp_path, following)
    settings = configuration.settings
    assert why_not(configuration) == "the database is in recovery: a replica"
    assert findings(settings) == ["the cache would stay off: the database is in recovery: a replica"]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("mariadb", "postgresql")]
)
def test_a_server_on_a_replica_uses_its_cache_once_that_is_promoted(
    kind: str, start: Callable[..., DatabaseServer], tmp_path: Path
) -> None:
    server = start(start_mariadb if kind == "mariadb" else start_postgresql)
    url = server.initialized_database()
    if kind == "mariadb":
        tell(server, "SET GLOBAL read_only = ON")
    else:
        assert why_not(served(tmp_path, url)) is None  # makes the database `default`
        database = make_url(url).database
        server = start(start_postgresql_standby, server)
        url = server.admin_url.set(database=database).render_as_string(hide_password=False)
    service = Service(served(tmp_path, url))
    uri = service.start()
    try:
        assert service.admin_sources is not None and service.admin_sources.poller is not None
        poller = service.admin_sources.poller
        assert not poller.ensure_applied(0, 1)
        assert poller.status is PollerStatus.NEEDS_RESYNC
        with client(uri) as metastore:
            for _ in range(3):
                assert metastore.get_all_databases() == ["default"]
            assert not service.reads_by_outcome().get("hit")
            tell(server, "SET GLOBAL read_only = OFF" if kind == "mariadb" else "SELECT pg_promote()")
            wait_until(lambda: poller.ensure_applied(0, 1), "it follows the log")
            for _ in range(3):
                assert metastore.get_all_databases() == ["default"]
            assert service.reads_by_outcome()["hit"]
    finally:
        service.stop()


@pytest.mark.mariadb
@pytest.mark.parametrize("staleness_ms", [0, "inf"])
def test_a_running_server_notices_that_its_database_is_no_primary_any_more(
    staleness_ms: object, start: Callable[..., DatabaseServer], tmp_path: Path
) -> None:
    """Its connections stay open and continue to be answered. What was committed on the new primary is missing there."""
    database = start(start_mariadb)
    configuration = configured(
        tmp_path,
        database__url=database.initialized_database(),
        admin__enabled=True,
        admin__port=0,
        cache__max_staleness_ms=staleness_ms,
        events__poll_interval_s=0.1,
    )
    service = Service(configuration)
    uri = service.start()
    try:
        assert service.admin_sources is not None and service.admin_sources.poller is not None
        poller = service.admin_sources.poller

        def hits() -> int:
            return service.reads_by_outcome().get("hit", 0)

        with client(uri) as metastore:

            def is_answered_from_memory() -> bool:
                before = hits()
                assert metastore.get_all_databases() == ["default"]
                return hits() > before

            wait_until(is_answered_from_memory, "memory answers")
            for _ in range(2):
                tell(database, "SET GLOBAL read_only = ON")
                wait_until(lambda: poller.status is PollerStatus.NEEDS_RESYNC, "it is noticed")
                assert poller.status_report().reason == "the database is read-only: a replica, most likely"
                assert not is_answered_from_memory()
                tell(database, "SET GLOBAL read_only = OFF")
                wait_until(is_answered_from_memory, "memory answers again")
    finally:
        service.stop()
