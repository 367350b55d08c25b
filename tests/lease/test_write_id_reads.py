"""Real servers that read by lease, with transactions on all of them: each read with a list shows what the list
permits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hms_cache.store.engine.database import Database
from tests.consistency import mutants
from tests.consistency.checker import Violation
from tests.consistency.history import read_log
from tests.consistency.write_id_checker import Mode, check
from tests.consistency.write_id_history import ListRead, replay
from tests.consistency.write_id_workload import Size, WriteIdWorkload
from tests.database_kinds import SERVER_KINDS
from tests.databases import closing
from tests.lease.runs import Run, members
from tests.lease.test_linearizability import reads_by_outcome
from tests.servers import ServerProcess

EXACT = Mode(False, 0.0)
SHORT = Size(reads=1_200, rounds=60)
SOAK = Size(reads=20_000, rounds=1_500)
SLICE = Size(reads=400, rounds=30)
LIMIT_S = 120.0
FAULTS = ("stop", "break", "swallow")

LATE = {"events.poll_interval_s": 5}
"""Memory comes to events of transactions by checks alone, so that much is answered without them."""


def workload_of(run: Run, seed: int) -> WriteIdWorkload:
    made = WriteIdWorkload([server.port for server in run.servers], seed, always_with_id=False)
    made.prepare()
    return made


def violations(run: Run, workload: WriteIdWorkload) -> list[Violation]:
    """What cannot be explained in the history so far."""
    with closing(Database(run.database_url)) as database:
        changes, write_ids = replay(read_log(database))
    return check(workload.history, changes, write_ids, EXACT)


def report(run: Run, workload: WriteIdWorkload, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints what was done, and asserts that nothing is wrong."""
    found, history = violations(run, workload), workload.history
    told = [reads_by_outcome(server) for server in run.servers]
    with capsys.disabled():
        print(
            f"\nseed {seed}: {sum(isinstance(one, ListRead) for one in history.reads)} reads with a list,"
            f" {len(history.reads)} in all, {sum(one.done for one in history.writes)} writes, {dict(run.faults)},"
            f" {len(found)} violations"
        )
        print(*told, sep="\n")
    assert not found, f"seed {seed}\n" + "\n".join(map(str, found[:5]))
    assert all(one["lease"]["alarm"] == "" for one in told)


@pytest.mark.soak
@pytest.mark.parametrize(
    "database_kind", ["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.long])], indirect=True
)
def test_two_servers_without_faults(
    database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = time.time_ns() % 100_000
    with members(tmp_path, database_url, seed, count=2, is_prepared=False, more=LATE) as run:
        workload = workload_of(run, seed)
        workload.run(SHORT)
        report(run, workload, seed, capsys)
        assert len(workload.history.reads) >= SHORT.reads
        assert sum(one.done for one in workload.history.writes if one.kind == "commit") >= SHORT.rounds // 4


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("size", [pytest.param(SHORT, id="short"), pytest.param(SOAK, id="long")])
@pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)
def test_two_servers_with_faults(
    size: Size, database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = time.time_ns() % 100_000
    with members(tmp_path, database_url, seed, count=2, is_prepared=False, more=LATE) as run:
        workload = workload_of(run, seed)
        with run.beside(seed, FAULTS):
            workload.run(size)
        report(run, workload, seed, capsys)
        assert run.faults


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_writes_that_are_taken_for_transactions_are_noticed(
    database_url: str, initialize: None, tmp_path: Path
) -> None:
    class Mutated(ServerProcess):
        program = mutants.program(mutants.writes_taken_for_nothing.__name__)

    seed = time.time_ns() % 100_000
    with members(tmp_path, database_url, seed, count=2, kind=Mutated, is_prepared=False, more=LATE) as run:
        workload = workload_of(run, seed)
        deadline_s = time.monotonic() + LIMIT_S
        found: list[Violation] = []
        while not found and time.monotonic() < deadline_s:
            workload.run(SLICE)
            found = violations(run, workload)
        assert found, f"nothing was noticed in {len(workload.history.reads)} reads"
        assert {one.promise for one in found} <= {"P1", "P2", "P3", "P6"}, found[:3]
