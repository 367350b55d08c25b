"""Worker processes of one server: to a client that changes workers, they are one server, at any staleness (P3, P4)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_cache.store.engine.database import Database
from tests.consistency import mutants
from tests.consistency.checker import Violation, check
from tests.consistency.evicting import EvictingServer
from tests.consistency.history import RAW, History, read_log, replay
from tests.consistency.workload import Client, Size, Workload
from tests.databases import closing
from tests.servers import ServerProcess

STALENESS_S = {"10000": 10.0, "inf": float("inf")}
CI = Size(reads=1_200, writes=120)
SLICE = Size(reads=600, writes=120)
LIMIT_S = 40.0


class _NewConnections:
    """A connection of its own for each call: the kernel chooses the worker, by the client's port."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._open: Client | None = None

    def __getitem__(self, server: int) -> Any:
        self.close()
        self._open = Client([self._ports[server]])
        return self._open.connections[0]

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class ChangingClient(Client):
    """Connects anew for each call."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.connections: Any = _NewConnections(ports)

    def close(self) -> None:
        self.connections.close()


class Mutated(ServerProcess):
    program = mutants.program(mutants.workers_tell_nothing.__name__)


@contextmanager
def workers(directory: Path, url: str, setting: str, kind: type[ServerProcess]) -> Iterator[Workload]:
    """One server of two worker processes, and clients that change between them."""
    settings = {
        "server.workers": 2,
        "cache.max_staleness_ms": setting,
        "warehouse.files": "leave",
        "warehouse.directory": str(directory / "warehouse"),
    }
    server = kind(directory / "server", url, settings)
    server.start()
    try:
        workload = Workload([server.port, server.port], url, time.time_ns() % 100_000, ChangingClient)
        workload.prepare()
        yield workload
    finally:
        server.stop()


def violations(workload: Workload, url: str, setting: str) -> list[Violation]:
    """What one server, whose workers count as one, may not have answered."""
    seen = workload.history
    history = History()
    history.reads.extend(replace(read, server=0) for read in seen.reads)
    history.writes.extend(replace(write, server=write.server if write.server == RAW else 0) for write in seen.writes)
    with closing(Database(url)) as database:
        return check(history, replay(read_log(database)), STALENESS_S[setting])


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("10000", ServerProcess),
        pytest.param("inf", ServerProcess, marks=pytest.mark.soak),
        pytest.param("10000", EvictingServer, marks=pytest.mark.soak),
        pytest.param("inf", EvictingServer, marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_workers_are_one_server_to_their_clients(
    setting: str, kind: type[ServerProcess], database_url: str, initialize: None, tmp_path: Path
) -> None:
    """The evicting ones share each block, too, however small it is."""
    with workers(tmp_path, database_url, setting, kind) as workload:
        workload.run(CI)
        found = violations(workload, database_url, setting)
    assert not found, "\n".join(map(str, found[:5]))
    assert len(workload.history.reads) >= CI.reads


@pytest.mark.soak
@pytest.mark.parametrize("setting", STALENESS_S)
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_workers_that_tell_each_other_nothing_are_found_out(
    setting: str, database_url: str, initialize: None, tmp_path: Path
) -> None:
    found: list[Violation] = []
    with workers(tmp_path, database_url, setting, Mutated) as workload:
        began_s = time.monotonic()
        while not found and time.monotonic() < began_s + LIMIT_S:
            workload.run(SLICE)
            found = violations(workload, database_url, setting)
    assert {one.promise for one in found} & {"P3", "P4"}
