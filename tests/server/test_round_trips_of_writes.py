"""How often a write waits for the database, as a server sends it: including the agreement of other members."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from benchmarks.client import connect
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.consistency.workload import Place, new_partition, new_table
from tests.databases import KINDS
from tests.server.counting_relay import CountingRelay
from tests.servers import server_process

D = "d"
ROUNDS = 6

MOST = {
    # A statement of a transaction, the event's id and the question whether others have to agree are one packet; the row
    # of the log is sent with COMMIT. open_txns first reads what is to be aborted.
    "mysql": {
        "open_txns": 4,
        "allocate_table_write_ids": 2,
        "commit_txn": 2,
        "create_table": 6,
        "alter_table": 9,
        "add_partition": 8,
        "drop_partition": 12,
        "drop_table": 12,
    },
    # With BEGIN and COMMIT.
    "postgresql": {
        "open_txns": 7,
        "allocate_table_write_ids": 5,
        "commit_txn": 5,
        "create_table": 12,
        "alter_table": 10,
        "add_partition": 12,
        "drop_partition": 17,
        "drop_table": 23,
    },
}
MORE_BY_LEASE = {"mysql": 2, "postgresql": 4}
"""The own row and the members. On MySQL they go with the event's id, which is not taken early then; on PostgreSQL each
is a question. What renews the lease may be counted, too: it is another thread's, and on PostgreSQL it has no text."""

HISTORY = re.compile(rb"CONCAT_WS|pg_control")


def cycle(client: Any, number: int) -> dict[str, Callable[[], object]]:
    """Calls in their order, by name."""
    opened: list[int] = []
    table = new_table(Place(D, f"t{number}"), "1")
    changed = new_table(Place(D, f"t{number}"), "2")

    def open_txns() -> None:
        opened.extend(client.open_txns(t.OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids)

    def allocate() -> None:
        client.allocate_table_write_ids(t.AllocateTableWriteIdsRequest(D, "written", txnIds=opened))

    return {
        "open_txns": open_txns,
        "allocate_table_write_ids": allocate,
        "commit_txn": lambda: client.commit_txn(t.CommitTxnRequest(opened[0])),
        "create_table": lambda: client.create_table(table),
        "alter_table": lambda: client.alter_table(D, f"t{number}", changed),
        "add_partition": lambda: client.add_partition(new_partition(Place(D, f"t{number}"), "x", "1")),
        "drop_partition": lambda: client.drop_partition(D, f"t{number}", ["x"], False),
        "drop_table": lambda: client.drop_table(D, f"t{number}", False),
    }


def is_of_the_server(question: bytes) -> bool:
    """Whether it follows the log or renews a lease, on a thread of its own, rather than belonging to the write."""
    text = question.replace(b"`", b"").replace(b'"', b"")
    return b"SELECT NOTIFICATION_LOG" in text or (
        b"HMS_CACHE_MEMBERS.ADDRESS" in text and HISTORY.search(text) is not None
    )


def requested(client: Any, relay: CountingRelay) -> dict[str, list[bytes]]:
    """The round trips of each call, the minimum of several runs: other work of the server never decreases them."""
    least: dict[str, list[bytes]] = {}
    for number in range(ROUNDS):
        for name, call in cycle(client, number).items():
            relay.begin()
            call()
            found = [one for one in relay.questions() if not is_of_the_server(one)]
            if number and len(found) <= len(least.get(name, found)):  # the first run compiles statements
                least[name] = found
    return least


@pytest.mark.soak
@pytest.mark.short
@pytest.mark.parametrize("exactness", ["check", "lease"])
@pytest.mark.parametrize("database_kind", [kind for kind in KINDS if kind != "sqlite"], indirect=True)
def test_each_write(exactness: str, initialized_database_url: str, tmp_path: Path) -> None:
    real = make_url(initialized_database_url)
    relay = CountingRelay(str(real.host), int(real.port or 0))
    settings: dict[str, object] = {
        "warehouse.directory": tmp_path / "warehouse",
        "warehouse.files": "leave",
        "cache.warm": "off",
        "cache.exactness": exactness,
        "events.poll_interval_s": 3600,
    }
    if exactness == "lease":
        settings |= {"lease.secret": "a secret of this test", "lease.length_s": 60}
    url = real.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    try:
        with server_process(tmp_path / "server", url, settings) as server:
            client = connect(f"127.0.0.1:{server.port}")
            client.create_database(t.Database(name=D))
            found = requested(client, relay)
    finally:
        relay.close()
    backend = real.get_backend_name()
    more = MORE_BY_LEASE[backend] if exactness == "lease" else 0
    counted = {name: len(questions) for name, questions in found.items()}
    assert {name: count for name, count in counted.items() if count > MOST[backend][name] + more} == {}, found
