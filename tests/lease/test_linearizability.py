"""Real servers that read by lease: each read has its place in the log, whatever happens to them."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.consistency.workload import Size
from tests.database_kinds import SERVER_KINDS
from tests.lease.member import wait_until
from tests.lease.runs import FAKETIME, members
from tests.servers import ServerProcess

QUIET = Size(reads=3_000, writes=80, raw=False)
SHORT = Size(reads=4_000, writes=240, raw=False)
AFTERWARDS = Size(reads=120, writes=24, raw=False)
SOAK = Size(reads=120_000, writes=2_400, raw=False)
"""A run; the databases and the faults of the soak make it a million reads in nine runs."""

FAULTS = ("stop", "break", "swallow", "come_and_go")
FAULTS_OF_SOAK = FAULTS * 4 + ("stop_long",)


def reads_by_outcome(server: ServerProcess) -> dict[str, Any]:
    """From the server's own status."""
    port = next(
        line.rpartition(":")[2] for line in reversed(server.log.splitlines()) if "management port on 127.0.0.1:" in line
    )
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=30) as answer:
        status = json.load(answer)
    return {**status["cache"]["reads"], "checks": status["cache"]["position_checks"], "lease": status["lease"]}


@pytest.mark.soak
@pytest.mark.parametrize(
    "database_kind",
    [
        "sqlite",
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.long]),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.long]),
    ],
    indirect=True,
)
def test_two_servers_without_faults(
    database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with members(tmp_path, database_url, seed := time.time_ns() % 100_000, count=2) as run:
        # A server that has just joined first reads by position checks.
        wait_until(lambda: all(reads_by_outcome(server)["lease"]["held"] for server in run.servers))
        run.workload.run(QUIET)
        found = run.violations()
        assert not found, f"seed {seed}\n" + "\n".join(map(str, found[:5]))
        told = [reads_by_outcome(server) for server in run.servers]
        with capsys.disabled():
            print(f"\n{told}")
        # Most reads were by lease: fewer checks were sent than there were reads.
        assert all(one["lease"]["alarm"] == "" for one in told)
        assert sum(one["checks"] for one in told) < sum(one.get("hit", 0) for one in told)


@pytest.mark.soak
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(SHORT, id="short", marks=pytest.mark.long),
        pytest.param(SOAK, id="long", marks=[pytest.mark.long, pytest.mark.timeout(1500)]),
    ],
)
@pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)
def test_every_read_has_its_place_in_the_log_whatever_happens(
    size: Size, database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = time.time_ns() % 100_000
    with members(tmp_path, database_url, seed) as run:
        began_s = time.monotonic()
        with run.beside(seed, FAULTS_OF_SOAK if size is SOAK else FAULTS):
            run.workload.run(size)
        # The checker treats events after the last known write as older than the run: the visitor's may be the last.
        run.workload.run(AFTERWARDS)
        took_s = time.monotonic() - began_s
        found = run.violations()
        history = run.workload.history
        told = [reads_by_outcome(server) for server in run.servers]
        with capsys.disabled():
            print(
                f"\nseed {seed}: {len(history.reads)} reads, {sum(one.done for one in history.writes)} writes"
                f" ({len(history.writes)} tried) in {took_s:.1f} s, {dict(run.faults)}, {len(found)} violations"
            )
            print(*told, sep="\n")
        assert not found, f"seed {seed}\n" + "\n".join(map(str, found[:5]))
        assert len(history.reads) >= size.reads
        assert sum(one.done for one in history.writes) >= size.writers
        assert run.faults
        assert all(one["lease"]["alarm"] == "" for one in told)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.skipif(not FAKETIME.exists(), reason="needs libfaketime")
@pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)
def test_wall_clocks_that_are_set_change_nothing(
    database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A day and half a second, forward and back."""
    seed = time.time_ns() % 100_000
    with members(tmp_path, database_url, seed, has_stepping_clock=True) as run:
        with run.beside(seed, ("step_clock", "step_clock", "stop")):
            run.workload.run(SHORT)
        run.workload.run(AFTERWARDS)
        found = run.violations()
        history = run.workload.history
        with capsys.disabled():
            print(f"\nseed {seed}: {len(history.reads)} reads, {dict(run.faults)}, {len(found)} violations")
        assert not found, f"seed {seed}\n" + "\n".join(map(str, found[:5]))
        assert run.faults["step_clock"]
        told = [reads_by_outcome(server) for server in run.servers]
        assert all(one["lease"]["alarm"] == "" and one["lease"]["held"] for one in told), told
