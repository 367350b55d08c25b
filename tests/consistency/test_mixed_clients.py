"""Clients like Spark, Hive and Iceberg, all at once: each sees on one server at once what it wrote on another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.consistency import mutants
from tests.consistency.mixed_run import Mixed, until
from tests.consistency.versions import MODES
from tests.lease.runs import end, free_port
from tests.servers import ServerProcess

SEED = 3
WRITES = 40
"""Of the first client, in the short run."""

LIMIT_S = 400.0
SECONDS = float(os.environ.get("MIXED_CLIENTS_S", "600"))

VARIATIONS: tuple[dict[str, object], ...] = (
    {},
    {"cache.load_at_once_partitions": 2, "events.poll_interval_s": 5, "cache.refill": "none"},
    {"cache.budget_bytes": 1_048_576, "events.batch_size": 1, "server.workers": 2},
)
"""Settings of a run."""


@contextmanager
def mixed(
    directory: Path,
    url: str,
    mode: str,
    seed: int,
    settings: dict[str, object],
    clients: int,
    kind: type[ServerProcess] = ServerProcess,
) -> Iterator[Mixed]:
    """Two servers with a cache, one without, and the clients of them."""
    common: dict[str, object] = {"warehouse.files": "leave", "warehouse.directory": str(directory / "warehouse")}
    with ExitStack() as stack:
        ports = []
        for number in range(3):
            own: dict[str, object] = {"cache.enabled": "false"}
            if number < 2:
                own = {**settings, **MODES[mode][1]}
                if mode == "lease":
                    own |= {"lease.port": free_port(), "server.workers": 1}
            server = (kind if number < 2 else ServerProcess)(directory / f"server{number}", url, {**common, **own})
            server.start()
            stack.callback(end, server)
            ports.append(server.port)
        run = Mixed(ports, seed, clients)
        stack.callback(run.close)
        yield run


@pytest.mark.soak
@pytest.mark.parametrize("mode", [pytest.param("check", marks=pytest.mark.long), "lease"])
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_each_sees_elsewhere_what_it_wrote(mode: str, database_url: str, initialize: None, tmp_path: Path) -> None:
    with mixed(tmp_path, database_url, mode, SEED, {}, clients=3) as run:
        run.run(lambda: run.clients[0].writes > WRITES)
        assert not run.wrong, "\n".join(run.wrong[:3])
        assert sum(one.refused for one in run.clients) < sum(one.writes for one in run.clients)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "mutant",
    [
        mutants.check_on_an_old_snapshot,
        mutants.header_only_rename,
        mutants.names_forgotten,
        mutants.alter_taken_for_harmless,
        mutants.statistics_of_changed_partitions_kept,
        mutants.overlapped_load_kept,
    ],
    ids=lambda one: one.__name__,
)
def test_a_rule_taken_out_is_noticed(
    mutant: Callable[..., None], database_url: str, initialize: None, tmp_path: Path
) -> None:
    class Mutated(ServerProcess):
        program = mutants.program(mutant.__name__)

    with mixed(tmp_path, database_url, "check", SEED, {}, clients=3, kind=Mutated) as run:
        is_late = until(LIMIT_S)
        run.run(lambda: bool(run.wrong) or is_late())
        assert run.wrong


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.mariadb
@pytest.mark.parametrize("variation", range(len(VARIATIONS)))
@pytest.mark.parametrize("mode", ["check", "lease"])
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_clients_of_all_kinds_see_what_they_wrote_elsewhere(
    mode: str, variation: int, database_url: str, initialize: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("MIXED_CLIENTS_SEED", time.time_ns() % 100_000))
    with mixed(tmp_path, database_url, mode, seed, VARIATIONS[variation], clients=4) as run:
        run.run(until(SECONDS))
        with capsys.disabled():
            reads, writes = (sum(getattr(one, name) for one in run.clients) for name in ("reads", "writes"))
            print(
                f"\n{mode}, settings {variation}, seed {seed}: {writes} writes, {reads} reads, {len(run.wrong)} wrong"
            )
            for name in run.clients[0].sequences:
                print("   ", name, *(sum(getattr(one, of)[name] for one in run.clients) for of in ("made", "refusals")))
        assert not run.wrong, f"seed {seed}, {len(run.wrong)}\n" + "\n".join(run.wrong[:5])
