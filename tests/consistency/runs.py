"""A run: two servers on one database, a workload, and the check of its history and of the database itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hms_cache.store.engine.database import Database
from tests.consistency.checker import Violation, check
from tests.consistency.history import VERSION, Change, Place, State, TableState, read_log, replay
from tests.consistency.workload import DATABASES, Client, Workload
from tests.databases import closing
from tests.servers import ServerProcess

STALENESS_S = {"0": 0.0, "500": 0.5, "inf": float("inf")}
"""By the value of `cache.max_staleness_ms`."""


@dataclass(frozen=True, slots=True)
class Run:
    """Two running servers, and their clients."""

    servers: tuple[ServerProcess, ServerProcess]
    workload: Workload
    database_url: str
    max_staleness_s: float

    def log(self) -> list[Change]:
        """The catalog after each event, read from the database."""
        with closing(Database(self.database_url)) as database:
            return replay(read_log(database))

    def violations(self) -> list[Violation]:
        """What cannot be explained in the history so far."""
        return check(self.workload.history, self.log(), self.max_staleness_s)


@contextmanager
def two_servers(
    directory: Path,
    database_url: str,
    setting: str,
    seed: int,
    *,
    kind: type[ServerProcess] = ServerProcess,
    settings: dict[str, object] | None = None,
    second_url: str | None = None,
) -> Iterator[Run]:
    """Two servers on the database with `cache.max_staleness_ms` as set, and the tables of the workload in it.

    `second_url`: at which the second server reaches the same database.
    """
    chosen: dict[str, object] = {
        "cache.max_staleness_ms": setting,
        "warehouse.files": "leave",
        "warehouse.directory": str(directory / "warehouse"),
        **(settings or {}),
    }
    with ExitStack() as stack:
        servers = []
        for number in range(2):
            url = second_url if number and second_url else database_url
            server = kind(directory / f"server{number}", url, settings=chosen)
            server.start()
            stack.callback(_stop, server)
            servers.append(server)
        workload = Workload([server.port for server in servers], database_url, seed)
        workload.prepare()
        yield Run((servers[0], servers[1]), workload, database_url, STALENESS_S[setting])


def _stop(server: ServerProcess) -> None:
    if server.is_running:
        server.stop()


def state_by_server(run: Run, server: int) -> State:
    """The whole catalog as a server shows it now."""
    client = Client([one.port for one in run.servers])
    connection = client.connections[server]
    state: dict[Place, TableState] = {}
    for database in DATABASES:
        for name in connection.get_all_tables(database):
            partitions = connection.get_partitions(database, name, -1)
            state[Place(database, name)] = TableState(
                connection.get_table(database, name).parameters[VERSION],
                {one.values[0]: one.parameters[VERSION] for one in partitions},
            )
    client.close()
    return state
