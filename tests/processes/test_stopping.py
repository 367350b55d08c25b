"""A server that is asked to stop ends in order, and soon, although its database does not answer."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, make_url

from hms_cache.app import service
from hms_cache.app.database import open_database
from hms_cache.app.service import Service
from hms_cache.store.engine.database import Database
from tests.app.test_service import configured
from tests.cache.world import table
from tests.conftest import ServerLookup, ServerStarter
from tests.consistency.observers import management_port, wait_until
from tests.consistency.proxy import proxy_to
from tests.servers import MAX_WAIT_S, metastore_client

LOCKING = {"mariadb": "LOCK TABLES TBLS WRITE", "postgresql": 'LOCK TABLE "TBLS" IN ACCESS EXCLUSIVE MODE'}
pytestmark = pytest.mark.soak

SERVERS = pytest.mark.parametrize("kind", [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in LOCKING])


@contextmanager
def silent_tables(url: str, kind: str) -> Iterator[None]:
    """A client that reads or writes a table waits for a reply meanwhile."""
    with closing(Database(url)) as database, database.write_engine.connect() as connection:
        connection.exec_driver_sql(LOCKING[kind])
        yield
        connection.invalidate()


@SERVERS
def test_calls_that_wait_for_the_database(kind: str, start_server: ServerStarter) -> None:
    """More of them than the stop could wait for one by one."""
    calls = 14
    settings = {"cache.enabled": "false", "server.drain_timeout_s": 0.1, "server.threads": calls}
    server = start_server(kind, **settings)

    def ask() -> None:
        with suppress(Exception), metastore_client(server.port) as client:
            client.get_table("default", "t")

    def in_flight() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{management_port(server)}/metrics", timeout=60) as answer:
            return f"\nhms_cache_calls_in_flight {calls}.0\n" in answer.read().decode()

    with silent_tables(server.database_url, kind), ThreadPoolExecutor(calls) as pool:
        for _ in range(calls):
            pool.submit(ask)
        wait_until(in_flight, "all wait for the database")
        status = server.stop()
    assert status == 0, server.log
    assert "Traceback" not in server.log


@SERVERS
def test_a_command_that_waits_for_the_database(kind: str, start_server: ServerStarter, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open sesame\n")
    server = start_server(kind, **{"admin.token_file": tmp_path / "token", "server.drain_timeout_s": 0.1})
    with metastore_client(server.port) as client:
        client.create_table(table("default", "t"))
    url = f"http://127.0.0.1:{management_port(server)}/commands/refresh?database=default&table=t"
    request = urllib.request.Request(url, method="POST", headers={"Authorization": "Bearer open sesame"})

    def command() -> None:
        with suppress(Exception), urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    with silent_tables(server.database_url, kind):
        commanding = threading.Thread(target=command)
        commanding.start()
        wait_until(lambda: "refresh of default.t requested" in server.log, "it has begun")
        status = server.stop()
        commanding.join()
    assert status == 0, server.log
    assert "Traceback" not in server.log


@SERVERS
def test_tasks_that_wait_for_the_database(
    kind: str, tmp_path: Path, database_servers: ServerLookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that is gone closes no connection, and a statement may take minutes: all tasks end anyway."""
    databases = database_servers(kind)
    url = databases.initialized_database()
    real = make_url(url)
    before = set(threading.enumerate())
    opened: list[Database] = []

    def opening(*arguments: Any) -> Database:
        opened.append(open_database(*arguments))
        return opened[-1]

    monkeypatch.setattr(service, "open_database", opening)
    with proxy_to(str(real.host), int(real.port or 0)) as proxy:
        through = real.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        settings = {"database__url": through, "database__check_timeout_s": 0.5, "database__connect_timeout_s": 1}
        server = Service(configured(tmp_path, **settings, transactions__housekeeping_interval_s=1))
        server.start()
        working = threading.Event()
        event.listen(opened[0].write_engine, "begin", lambda _: (proxy.stall(), working.set()), once=True)
        assert working.wait(MAX_WAIT_S), "a task writes"
        server.stop()
        alive = {one.name for one in threading.enumerate() if one not in before and one.name.startswith("hms-")}
    assert alive == set()
    databases.give_back(url)
