"""Two servers on one MariaDB create and drop at the same time; a third process follows the log."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
)
from tests.conftest import ServerLookup
from tests.processes.catalog_history import catalog_by_events, catalog_by_tables, last_event_id, snapshot
from tests.processes.writers import DATABASE, connected, create_database, new_partition, new_table
from tests.servers import MAX_WAIT_S, ServerProcess, server_process

WRITERS_OF_EACH = 4
FIGHT_S = 60
#: Names that all writers use.
SHARED_NAMES = 6

#: Possible results of losing a race: another client was first. Anything else is a defect.
LOST_RACES = (AlreadyExistsException, NoSuchObjectException, InvalidOperationException, InvalidObjectException)


@contextmanager
def following(url: str) -> Iterator[list[str]]:
    """A process that reads the log; its output is in the list afterwards."""
    root = Path(__file__).parents[2]
    reader = subprocess.Popen(
        [sys.executable, "-m", "tests.processes.event_reader", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    printed: list[str] = []
    try:
        yield printed
    except BaseException:
        reader.kill()
        raise
    finally:
        printed += reader.communicate(timeout=MAX_WAIT_S)[0].splitlines()


class Fight:
    """One client's calls until the time is over."""

    def __init__(self, name: str, seed: int) -> None:
        self._name = name
        self._random = random.Random(seed)
        self._number = 0
        self.table_ids: list[int] = []
        self.outcomes = Counter[str]()

    def run(self, port: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        with connected(port) as client:
            while time.monotonic() < end:
                table = f"shared_{self._random.randrange(SHARED_NAMES)}"
                call = self._random.choice([self._own_table, self._create, self._drop, self._add, self._rename])
                try:
                    call(client, table)
                    self.outcomes[call.__name__] += 1
                except LOST_RACES as error:
                    self.outcomes[type(error).__name__] += 1

    def _new_name(self) -> str:
        self._number += 1
        return f"{self._name}_{self._number}"

    def _own_table(self, client: Any, _table: str) -> None:
        name = self._new_name()
        client.create_table(new_table(name))
        self.table_ids.append(client.get_table(DATABASE, name).id)
        client.add_partitions([new_partition(name, str(value)) for value in range(3)])
        client.drop_table(DATABASE, name, True)

    def _create(self, client: Any, table: str) -> None:
        client.create_table(new_table(table))

    def _drop(self, client: Any, table: str) -> None:
        client.drop_table(DATABASE, table, True)

    def _add(self, client: Any, table: str) -> None:
        client.add_partitions([new_partition(table, self._new_name()) for _ in range(3)])
        for name in client.get_partition_names(DATABASE, table, 5):
            client.drop_partition_by_name(DATABASE, table, name, True)

    def _rename(self, client: Any, table: str) -> None:
        renamed = client.get_table(DATABASE, table)
        renamed.tableName = f"shared_{self._random.randrange(SHARED_NAMES)}"
        client.alter_table(DATABASE, table, renamed)


@pytest.mark.mariadb
@pytest.mark.timeout(600)
@pytest.mark.soak
@pytest.mark.long
def test_ids_are_unique_and_events_come_in_commit_order(tmp_path: Path, database_servers: ServerLookup) -> None:
    databases = database_servers("mariadb")
    url = databases.initialized_database()
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choices = random.Random(seed)
    with ExitStack() as stack:
        warehouse: dict[str, object] = {"warehouse.directory": tmp_path / "warehouse"}
        servers: list[ServerProcess] = [
            stack.enter_context(server_process(tmp_path / name, url, warehouse)) for name in ("a", "b")
        ]
        create_database(servers[0].port)
        fights = [
            (server, Fight(f"{name}{number}", choices.randrange(1 << 32)))
            for server, name in zip(servers, "ab", strict=True)
            for number in range(WRITERS_OF_EACH)
        ]
        with following(url) as printed, ThreadPoolExecutor(len(fights)) as pool:
            for future in [pool.submit(fight.run, server.port, FIGHT_S) for server, fight in fights]:
                future.result()
        with snapshot(url) as connection:
            assert catalog_by_tables(connection) == catalog_by_events(connection)
            last = last_event_id(connection)
        assert printed == [f"read {last}"]
        with connected(servers[0].port) as one, connected(servers[1].port) as other:
            assert one.get_all_tables(DATABASE) == other.get_all_tables(DATABASE)
            assert one.get_current_notificationEventId().eventId == last
    table_ids = [table_id for _, fight in fights for table_id in fight.table_ids]
    assert len(set(table_ids)) == len(table_ids)
    outcomes = sum((fight.outcomes for _, fight in fights), Counter[str]())
    print(dict(outcomes), f"{last} events")
    assert all(outcomes[name] for name in ("_own_table", "_create", "_drop", "_add")), outcomes
    for server in servers:
        for word in ("Traceback", "Deadlock"):
            before, found, after = server.log.partition(word)
            assert not found, before[-2000:] + found + after[:4000]
    databases.give_back(url)
