"""Two real servers on one database, transactions on both: each read with a list shows what the list permits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hms_cache.store.engine.database import Database
from tests.consistency import mutants
from tests.consistency.checker import Violation
from tests.consistency.history import read_log
from tests.consistency.write_id_checker import Mode, check
from tests.consistency.write_id_history import ListRead, replay
from tests.consistency.write_id_workload import Size, WriteIdWorkload
from tests.databases import closing
from tests.servers import ServerProcess

KINDS = ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)]

MODES = {
    # by the values of `cache.write_id_reads` and `cache.max_staleness_ms`
    ("check", "0"): Mode(False, 0.0),
    ("trust", "0"): Mode(True, 0.0),
    ("trust", "inf"): Mode(True, float("inf")),
}
CI = Size(reads=600, rounds=30)
SOAK = Size(reads=20_000, rounds=1_500)
LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """Two servers that run, and the clients at them."""

    workload: WriteIdWorkload
    database_url: str
    mode: Mode

    def violations(self) -> list[Violation]:
        """What cannot be explained in the history so far."""
        with closing(Database(self.database_url)) as database:
            changes, write_ids = replay(read_log(database))
        return check(self.workload.history, changes, write_ids, self.mode)


@contextmanager
def two_servers(
    directory: Path, url: str, setting: tuple[str, str], seed: int, kind: type[ServerProcess] = ServerProcess
) -> Iterator[Run]:
    mode = MODES[setting]
    settings: dict[str, object] = {
        "cache.write_id_reads": setting[0],
        "cache.max_staleness_ms": setting[1],
        "warehouse.files": "leave",
        "warehouse.directory": str(directory / "warehouse"),
    }
    with ExitStack() as stack:
        servers = [kind(directory / f"server{number}", url, settings=settings) for number in range(2)]
        for server in servers:
            server.start()
            stack.callback(_stop, server)
        ports = [server.port for server in servers]
        workload = WriteIdWorkload(ports, seed, always_with_id=mode.max_staleness_s != 0)
        workload.prepare()
        yield Run(workload, url, mode)


def _stop(server: ServerProcess) -> None:
    if server.is_running:
        server.stop()


def _verdict(run: Run, size: Size, capsys: pytest.CaptureFixture[str], title: str) -> None:
    began_s = time.monotonic()
    run.workload.run(size)
    took_s = time.monotonic() - began_s
    found = run.violations()
    history = run.workload.history
    with capsys.disabled():
        print(
            f"\n{title}: {sum(isinstance(one, ListRead) for one in history.reads)} reads with a list,"
            f" {len(history.reads)} in all, {sum(one.done for one in history.writes)} writes in {took_s:.1f} s,"
            f" {len(found)} violations"
        )
    assert not found, "\n".join(map(str, found[:5]))
    assert len(history.reads) >= size.reads
    assert sum(one.done for one in history.writes if one.kind == "commit") >= size.rounds // 4


@pytest.mark.soak
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_a_short_run(database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]) -> None:
    """In the mode in which the list decides most."""
    setting = ("trust", "inf")
    seed = time.time_ns() % 100_000
    with two_servers(tmp_path, database_url, setting, seed) as run:
        _verdict(run, CI, capsys, f"write ids {setting}, seed {seed}")


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("setting", MODES, ids="-".join)
@pytest.mark.parametrize("database_kind", KINDS, indirect=True)
def test_a_long_run(
    setting: tuple[str, str], database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = time.time_ns() % 100_000
    with two_servers(tmp_path, database_url, setting, seed) as run:
        _verdict(run, SOAK, capsys, f"write ids {setting}, seed {seed}")


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize(
    "mutant", [mutants.table_id_ignored, mutants.tag_taken_from_the_request], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_the_workload_finds(mutant: Callable[..., None], database_url: str, initialize: None, tmp_path: Path) -> None:
    class Mutated(ServerProcess):
        program = mutants.program(mutant.__name__)

    with two_servers(tmp_path, database_url, ("trust", "inf"), time.time_ns() % 100_000, Mutated) as run:
        deadline_s = time.monotonic() + LIMIT_S
        found: list[Violation] = []
        while not found and time.monotonic() < deadline_s:
            run.workload.run(CI)
            found = run.violations()
        assert found, f"{mutant.__name__} was not noticed in {len(run.workload.history.reads)} reads"
        assert {one.promise for one in found} <= {"P2", "P3"}, found[:3]
