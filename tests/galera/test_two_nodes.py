"""Servers whose database is a Galera cluster, each on another node: slower than on one node, and as right.

Galera does not know row locks of other nodes. Before `hms_cache.store.engine.active_node`, each seventh pair of
conflicting transactions was committed whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.consistency.runs import state_by_server, two_servers
from tests.consistency.workload import Size
from tests.galera.conftest import Cluster
from tests.galera.contests import Contests, reads_after_writes
from tests.lease.runs import members
from tests.servers import server_process

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.mariadb]

SECONDS = 3.0


@contextmanager
def contests(
    cluster: Cluster, directory: Path, addresses: list[str] | None = None, seconds: float = SECONDS
) -> Iterator[Contests]:
    """A server on each node, or at each of these addresses."""
    urls = addresses or cluster.urls()
    settings: dict[str, object] = {"warehouse.files": "leave", "warehouse.directory": str(directory / "warehouse")}
    with ExitStack() as stack:
        ports = [
            stack.enter_context(server_process(directory / f"server{number}", url, settings)).port
            for number, url in enumerate(urls)
        ]
        found = Contests(ports, urls[0], seconds)
        stack.callback(found.close)
        found.prepare()
        yield found


@pytest.mark.parametrize("of", ["compare_and_set", "exclusive_locks", "write_conflicts", "snapshots", "creations"])
def test_row_locks_are_valid_on_all_nodes(
    of: str, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contests(cluster, tmp_path) as between:
        problems = getattr(between, of)()
        problems += between.invariants()
        with capsys.disabled():
            print(f"\n{of}: {dict(between.done)}, failed: {dict(between.failed)}")
        assert not problems, "\n".join(problems[:5])
        assert between.done.total() > 5


def test_what_one_server_acknowledged_the_other_shows(cluster: Cluster, tmp_path: Path) -> None:
    with contests(cluster, tmp_path) as between:
        problems = reads_after_writes(between.ports, SECONDS) + between.invariants()
        assert not problems, "\n".join(problems[:5])


def test_every_read_has_its_place_in_the_log(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urls = cluster.urls()
    with two_servers(tmp_path, urls[0], "0", time.time_ns() % 100_000, second_url=urls[1]) as run:
        run.workload.run(Size(reads=1_500, writes=90, raw=False))
        found = run.violations()
        history = run.workload.history
        with capsys.disabled():
            print(f"\n{len(history.reads)} reads, {sum(one.done for one in history.writes)} writes")
        assert not found, "\n".join(map(str, found[:5]))
        for server in range(2):
            assert state_by_server(run, server) == run.log()[-1].state


def test_reads_by_lease_have_their_place_in_the_log(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members come and go, are suspended and unreachable, while others write through another node."""
    urls = cluster.urls()
    seed = time.time_ns() % 100_000
    with members(tmp_path, urls[0], seed, urls=urls) as run:
        with run.beside(seed, ("stop", "break", "come_and_go")):
            run.workload.run(Size(reads=1_500, writes=90, raw=False))
        # The log must end with a write that the checker knows.
        run.workload.run(Size(reads=120, writes=24, raw=False))
        found = run.violations()
        history = run.workload.history
        with capsys.disabled():
            print(
                f"\nseed {seed}: {len(history.reads)} reads, {sum(one.done for one in history.writes)} writes,"
                f" {dict(run.faults)}"
            )
        assert not found, "\n".join(map(str, found[:5]))
