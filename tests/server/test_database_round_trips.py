"""How often a cold read waits for the database, which matters if it is some milliseconds away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from hms_cache.config.sections import DatabaseSettings
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.log_sessions import last_event_id
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.consistency.workload import Place, new_partition, new_table
from tests.databases import closing
from tests.server.counting_relay import CountingRelay
from tests.servers import metastore_client, server_process

D = "d"
MAX_WAIT_S = 15.0

Read = Callable[[Any, str], Any]

READS: dict[str, Read] = {
    "get_table": lambda client, table: client.get_table(D, table),
    "get_partition": lambda client, table: client.get_partition(D, table, ["1"]),
    "by filter": lambda client, table: client.get_partitions_by_filter(D, table, 'p = "1"', -1),
    "by names": lambda client, table: client.get_partitions_by_names(D, table, ["p=1", "p=2"]),
    "by values": lambda client, table: client.get_partitions_ps(D, table, ["1"], -1),
    "names": lambda client, table: client.get_partition_names(D, table, -1),
    "names by values": lambda client, table: client.get_partition_names_ps(D, table, ["1"], -1),
    "count": lambda client, table: client.get_num_partitions_by_filter(D, table, 'p = "1"'),
}

WAYS: dict[str, tuple[dict[str, object], dict[str, int]]] = {
    # The position check, then the table with its fence; for partitions, the size of their table and its keys, and then
    # the requested data.
    "passes through": ({"cache.load_at_once_partitions": 0}, dict.fromkeys(READS, 3) | {"get_table": 2}),
    # The same, and then the table with all of its partitions.
    "is loaded": ({}, dict.fromkeys(READS, 3) | {"get_table": 2}),
    # The keys of the table, and then the requested data.
    "no cache": ({"cache.enabled": False}, dict.fromkeys(READS, 2) | {"get_table": 1}),
}
"""Settings, and how many round trips a read takes at most."""


MOMENTS = ("warm", "first", "second", "third")


def name(kind: str, moment: str) -> str:
    return f"{moment}_{kind.replace(' ', '_')}"


@pytest.mark.parametrize(
    "database_kind",
    [
        pytest.param("mariadb", marks=pytest.mark.soak),
        pytest.param("postgresql", marks=[pytest.mark.soak, pytest.mark.long]),
    ],
    indirect=True,
)
def test_cold_reads(database_kind: str, initialized_database_url: str, tmp_path: Path) -> None:
    settings: dict[str, object] = {"warehouse.directory": tmp_path / "warehouse", "warehouse.files": "leave"}
    with (
        server_process(tmp_path / "writer", initialized_database_url, settings) as writer,
        metastore_client(writer.port) as client,
    ):
        client.create_database(ttypes.Database(name=D))
        for table in [name(kind, moment) for kind in READS for moment in MOMENTS]:
            client.create_table(new_table(Place(D, table), "1"))
            client.add_partitions([new_partition(Place(D, table), value, "1") for value in "123"])
    settings |= {"cache.warm": "off", "events.poll_interval_s": 3600}
    too_many: dict[str, dict[str, list[bytes]]] = {}
    for way, (of_way, most) in WAYS.items():
        requested = questions(initialized_database_url, tmp_path / way, {**settings, **of_way})
        too_many[way] = {kind: found for kind, found in requested.items() if len(found) > most[kind]}
    assert too_many == {way: {} for way in WAYS}


def questions(database_url: str, directory: Path, settings: dict[str, object]) -> dict[str, list[bytes]]:
    """Round trips of a server that was just started, for each read."""
    real = make_url(database_url)
    relay = CountingRelay(str(real.host), int(real.port or 0))
    url = real.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    requested: dict[str, list[bytes]] = {}
    try:
        with server_process(directory, url, settings) as reader, metastore_client(reader.port) as client:
            for kind, ask in READS.items():
                ask(client, name(kind, "warm"))  # opens connections, compiles statements
            for kind, ask in READS.items():
                tries = []
                for moment in MOMENTS[1:]:
                    relay.begin()
                    ask(client, name(kind, moment))
                    tries.append(relay.questions())
                requested[kind] = min(tries, key=len)  # other work of the server only increases a count
    finally:
        relay.close()
    return requested


def test_a_read_does_not_wait_for_the_end_of_its_transaction(initialized_database_url: str) -> None:
    real = make_url(initialized_database_url)
    if real.get_backend_name() == "sqlite":
        pytest.skip("there is no server")
    relay = CountingRelay(str(real.host), int(real.port or 0))
    url = real.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    seen: list[int] = []
    with closing(Database(url, DatabaseSettings(pool_size=1))) as database:

        def read() -> int:
            with database.loading() as connection:
                return last_event_id(connection)

        def write() -> None:
            def add(transaction: WriteTransaction) -> None:
                transaction.append_event(EventRow("TEST", "{}", "json-0.2", "hive", "d", "t"))

            run_write(database, add)

        def read_with_answers_kept_back() -> None:
            with database.loading() as connection:
                found = last_event_id(connection)
                relay.keep_back()
            seen.append(found)

        thread = threading.Thread(target=read_with_answers_kept_back, daemon=True)
        thread.start()
        thread.join(MAX_WAIT_S)
        assert len(seen) == 1, "it waited for the answer to ROLLBACK"
        relay.deliver()
        write()
        # The connection is used again, and its old snapshot is gone.
        assert [*seen, read()] == [0, 1]
    relay.close()
