"""A server killed in the middle of writes: each is there with its event, or neither is (P10)."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import ServerLookup
from tests.processes.catalog_history import Catalog, catalog_by_events, catalog_by_tables, last_event_id, snapshot
from tests.processes.writers import DATABASE, Writer, connected, create_database
from tests.servers import MAX_WAIT_S, ServerProcess

WRITERS = 4


class Acknowledgements:
    """Counts the acknowledgements of writers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def add(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._count >= count, MAX_WAIT_S), "writers do not get on"


@pytest.fixture
def server(tmp_path: Path, kind: str, database_servers: ServerLookup) -> Iterator[ServerProcess]:
    databases = database_servers(kind)
    url = databases.initialized_database()
    server = ServerProcess(tmp_path / "server", url)
    server.start()
    yield server
    if server.is_running:
        server.stop()
    databases.give_back(url)


@pytest.mark.parametrize(
    "kills", [5, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(3600)])]
)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("sqlite", marks=pytest.mark.soak),
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak]),
    ],
)
def test_object_and_event_are_both_there_or_neither(server: ServerProcess, kills: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choices = random.Random(seed)
    create_database(server.port)
    for number in range(kills):
        if not server.is_running:
            server.start()
        seen = Acknowledgements()
        before = read_both(server)
        writers = [Writer(f"k{number}w{index}", choices.randrange(1 << 32), seen.add) for index in range(WRITERS)]
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [pool.submit(writer.run, server.port) for writer in writers]
            try:
                seen.wait_for(choices.randint(5, 60))
            finally:
                server.kill()
            for future in running:
                future.result()
        after = read_both(server)
        for writer in writers:
            own = {name: found for name, found in after.items() if name[1].startswith(f"{writer.name}_")}
            assert own in (writer.sure, writer.doubtful)
            for name in own:
                del after[name]
        assert after == before, "what nobody touched has changed"
    server.start()
    with connected(server.port) as client, snapshot(server.database_url) as connection:
        assert set(client.get_all_tables(DATABASE)) == {table for _, table in catalog_by_tables(connection)}


def read_both(server: ServerProcess) -> Catalog:
    """The catalog, which the log must agree with."""
    with snapshot(server.database_url) as connection:
        by_events, by_tables = catalog_by_events(connection), catalog_by_tables(connection)
        last = last_event_id(connection)
        assert by_tables == by_events
        assert last == len(connection.exec_driver_sql("SELECT EVENT_ID FROM NOTIFICATION_LOG").all())
    return by_tables
