"""Records what a client sends to Hive 4.0.1's metastore.

    python -m tests.recordings.record [CLIENT…]

Each client runs its statements through a tap. Its calls are then sent one after the other to a second metastore of Hive
on an empty database, without the tables' files, and the answers of that one are kept: what another metastore answers to
the same calls is to be the same. Needs Java, Maven and MariaDB; Trino its own Java (see `tests.clients.trino`).
"""

from __future__ import annotations

import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.databases import start_mariadb
from tests.recordings.clients import hive, iceberg, pyiceberg, spark, trino
from tests.recordings.metastores import Metastore, hives_metastore
from tests.recordings.recording import DIRECTORY, RecordedCall, write_recording
from tests.recordings.replay import Replay
from tests.recordings.tap import Tap

#: Client to what runs its statements: (address of the metastore, root of all tables' files, directory for the rest).
CLIENTS: dict[str, Callable[[str, Path, Path], None]] = {
    "hive": hive.run,
    "hive-replication": hive.run_replication,
    "iceberg": iceberg.run,
    "pyiceberg": pyiceberg.run,
    "spark": spark.run,
    "spark-4.0.1": spark.run_with_client_of_hive_4,
    "trino": trino.run,
}
#: The same for those that also reach into the metastore's database: its address comes last.
CLIENTS_WITH_DATABASE: dict[str, Callable[[str, Path, Path, str], None]] = {"hive-compaction": hive.run_compaction}


def recorded(client: str, metastore: Metastore, directory: Path) -> list[RecordedCall]:
    """The calls that the client sends for its statements."""
    host, _, port = metastore.uri.removeprefix("thrift://").rpartition(":")
    with Tap(host, int(port)) as tap:
        if client in CLIENTS_WITH_DATABASE:
            CLIENTS_WITH_DATABASE[client](tap.uri, metastore.root, directory, metastore.database_url)
        else:
            CLIENTS[client](tap.uri, metastore.root, directory)
        calls, unanswered = tap.calls, tap.unanswered
    if unanswered:
        print(f"not answered, and left out: {unanswered}")
    names = {socket.gethostname(), socket.getfqdn(), socket.gethostbyname(socket.gethostname())}
    names -= {"localhost", "127.0.0.1", "127.0.1.1"}
    return [call.without(str(metastore.root), sorted(names, key=len, reverse=True)) for call in calls]


def answered(calls: list[RecordedCall], metastore: Metastore) -> list[RecordedCall]:
    """The same calls with this metastore's answers, as far as they need one."""
    found = []
    with Replay(metastore) as replay:
        for call in calls:
            request, reply = replay.exchange(call)
            found.append(RecordedCall(call.connection, request, reply).without(str(metastore.root), ()))
    return found


def main(clients: list[str]) -> None:
    databases = start_mariadb()
    try:
        for client in clients or sorted(CLIENTS | CLIENTS_WITH_DATABASE):
            with tempfile.TemporaryDirectory() as scratch:
                with hives_metastore(databases, Path(scratch) / "recorded") as metastore:
                    calls = recorded(client, metastore, Path(scratch) / "client")
                with hives_metastore(databases, Path(scratch) / "answering") as metastore:
                    calls = answered(calls, metastore)
            path = DIRECTORY / f"{client}.xz"
            write_recording(path, calls)
            print(f"{client}: {sum(1 for call in calls if call.request)} calls, {path.stat().st_size} bytes")
    finally:
        databases.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
