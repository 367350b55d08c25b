"""Two servers with a cache and a reference server without one, over Thrift: after each write, all three answer equally.

Writes are generated from the requests of all write methods, with one field varied (`tests/every_write`); reads from all
read methods with any of their fields. The same requests are repeated, so that answers cached before a write would be
detected, too.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.cache.world import Server
from tests.consistency import mutants
from tests.consistency.all_reads import outcome
from tests.consistency.any_request import Requests, ask, read_methods
from tests.consistency.versions import MODES
from tests.consistency.workload import Client
from tests.every_write.catalog import ACID, PARTITIONED, SOURCE, Facts, fill
from tests.every_write.requests import base_requests, write_methods
from tests.every_write.values import Values
from tests.lease.runs import end, free_port
from tests.servers import ServerProcess

OF_OTHER_THINGS = frozenset(
    {
        *("get_delegation_token", "renew_delegation_token", "cancel_delegation_token", "cm_recycle"),
        *("find_next_compact", "find_next_compact2", "add_replication_metrics"),
    }
)
"""Writes that are not drawn: they have nothing to do with the catalog, or take from the compaction queue."""

SEED = 5
LIMIT_S = 300.0

VARIATIONS: tuple[dict[str, object], ...] = (
    {},
    {"cache.load_at_once_partitions": 2, "events.poll_interval_s": 5},
    {"cache.budget_bytes": 1_048_576, "cache.refill": "none", "events.batch_size": 1},
    {"catalog.metadata_translation": "hive4", "catalog.partition_request_limit": 2},
)
"""Settings of a run."""

_JUDGED = frozenset({"catalog.metadata_translation", "catalog.partition_request_limit"})
"""Those that decide answers: the judge has them, too."""


class Judged:
    """Two servers with a cache, a reference server without one, and clients of them."""

    def __init__(self, servers: list[ServerProcess], judge: ServerProcess, facts: Facts, seed: int) -> None:
        self._chance = random.Random(seed)
        self._client = Client([*(server.port for server in servers), judge.port])
        self._facts, self._values = facts, Values(facts)
        self._requests = Requests(self._chance, facts)
        self._methods = [name for name in write_methods() if name not in OF_OTHER_THINGS]
        self._pool: list[tuple[str, Any]] = []
        self._written: list[str] = []
        self.reads = self.answered = 0

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def draw_writes(self, *methods: str) -> None:
        """From now on, only requests of these methods."""
        self._methods = list(methods)

    def draw_reads(self, count: int) -> None:
        """The number of requests from now on; one in ten is replaced each time."""
        methods = read_methods()
        self._chance.shuffle(methods)
        self._pool = [self._requests.draw(methods[number % len(methods)]) for number in range(count)]

    def _ask(self, connection: int, method: str, arguments: Any) -> Any:
        return outcome(lambda c: ask(c, method, deepcopy(arguments)), self._client.connections[connection])

    def differences(self) -> Iterator[str]:
        """Reads that a server answers differently than the reference server."""
        for number in range(0, len(self._pool), 10):
            self._pool[number] = self._requests.draw()
        self._chance.shuffle(self._pool)
        for method, arguments in self._pool:
            expected = self._ask(2, method, arguments)
            self.reads += 1
            self.answered += not isinstance(expected, tuple)
            for server in range(2):
                answer = self._ask(server, method, arguments)
                if answer != expected:
                    yield (
                        f"server {server}: {method} {arguments!s:.900}:\n  {answer!s:.900}\n  {expected!s:.900}\n"
                        f"  after {self._written[-3:]}"
                    )

    def write(self) -> None:
        """One request of any method; what it removed from the catalog is restored now and then."""
        method = self._chance.choice(self._methods)
        arguments, field = self._chance.choice(base_requests(method, self._facts)), ""
        if self._chance.random() < 0.6:
            varied = list(self._values.variations(arguments))
            field, arguments = self._chance.choice(varied) if varied else (field, arguments)
        server = self._chance.randrange(2)
        answer = self._ask(server, method, arguments)
        self._written.append(f"{method} {field} by {server}: {answer!s:.100}")
        if self._chance.random() < 0.25:
            self._put_back(self._chance.randrange(2))

    def _put_back(self, server: int) -> None:
        connection = self._client.connections[server]
        for database in self._facts.databases.values():
            outcome(lambda c, one=database: c.create_database(deepcopy(one)), connection)
        for name in self._facts.tables:
            table = self._facts.table(name)
            table.id = None
            outcome(lambda c, one=table: c.create_table(one), connection)
        for name in (PARTITIONED, SOURCE, ACID):
            for value in ("8", "9") if name == SOURCE else ("1", "2", "3"):
                partition = self._facts.partition(name)
                partition.values, partition.sd.location = [value], None
                outcome(lambda c, one=partition: c.add_partition(one), connection)


@contextmanager
def judged(
    directory: Path,
    url: str,
    mode: str,
    seed: int,
    settings: dict[str, object] | None = None,
    kind: type[ServerProcess] = ServerProcess,
) -> Iterator[Judged]:
    """A filled catalog, two servers and a reference server on it."""
    settings = settings or {}
    inside = Server(url, directory / "warehouse")
    try:
        facts = fill(inside.objects, inside.transactions)
    finally:
        inside.close()
    common: dict[str, object] = {"warehouse.files": "leave", "warehouse.directory": str(directory / "warehouse")}
    of_judge = {name: value for name, value in settings.items() if name in _JUDGED}
    with ExitStack() as stack:

        def started(name: str, own: dict[str, object], of: type[ServerProcess]) -> ServerProcess:
            server = of(directory / name, url, {**common, **own})
            server.start()
            stack.callback(end, server)
            return server

        judge = started("judge", {"cache.enabled": "false", **of_judge}, ServerProcess)
        servers = []
        for number in range(2):
            of_mode = {**MODES[mode][1], **({"lease.port": free_port()} if mode == "lease" else {})}
            servers.append(started(f"server{number}", {**settings, **of_mode}, kind))
        run = Judged(servers, judge, facts, seed)
        stack.callback(run.close)
        yield run


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["check", "lease"])
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_all_servers_answer_alike_after_each_write(
    mode: str, database_url: str, initialize: None, tmp_path: Path
) -> None:
    with judged(tmp_path, database_url, mode, SEED) as run:
        run.draw_reads(100)
        for _ in range(8):
            assert not list(run.differences())
            run.write()
        assert not list(run.differences())
        assert run.answered > run.reads / 2


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("variation", range(len(VARIATIONS)))
@pytest.mark.parametrize("mode", ["check", "lease"])
def test_all_servers_answer_alike_with_any_settings(
    mode: str, variation: int, database_url: str, initialize: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("ANY_REQUEST_SEED", time.time_ns() % 100_000))
    with judged(tmp_path, database_url, mode, seed, VARIATIONS[variation]) as run:
        run.draw_reads(250)
        wrong: list[str] = []
        for _ in range(60):
            wrong += run.differences()
            run.write()
        wrong += run.differences()
        with capsys.disabled():
            print(f"\n{mode}, settings {variation}, seed {seed}: {run.reads} reads, {len(wrong)} wrong")
        assert not wrong, f"seed {seed}\n" + "\n".join(wrong[:3])


class Mutated(ServerProcess):
    program = mutants.program(mutants.alter_taken_for_harmless.__name__)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_what_stays_after_an_alter_is_noticed(database_url: str, initialize: None, tmp_path: Path) -> None:
    with judged(tmp_path, database_url, "check", SEED, kind=Mutated) as run:
        run.draw_reads(150)
        run.draw_writes("alter_table_req", "alter_table_with_environment_context")
        began_s = time.monotonic()
        wrong: list[str] = []
        while not wrong and time.monotonic() < began_s + LIMIT_S:
            wrong += run.differences()
            run.write()
        assert wrong
