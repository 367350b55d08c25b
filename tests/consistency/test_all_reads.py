"""Each kind of read that memory may answer, beside a writer of each kind: each answer was correct at its time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.consistency import mutants
from tests.consistency.versions import MODES, beside_one_writer
from tests.servers import ServerProcess

SEED = 12
"""Of the run that is the same each time; another one is `ALL_READS_SEED`."""

LIMIT_S = 60.0


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["check", "lease"])
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_each_answer_is_one_that_the_database_gave(
    mode: str, database_url: str, initialize: None, tmp_path: Path
) -> None:
    with beside_one_writer(tmp_path, database_url, mode, SEED, kinds=24) as run:
        with run.reading():
            run.write(20)
        wrong = run.versions.wrong(run.seen, MODES[mode][0])
        assert not wrong, "\n".join(wrong[:3])
        assert len({one.label for one in run.seen}) == 24
        assert sum(server is not None for server in run.versions.servers) > 5


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("database_kind", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
def test_each_answer_is_one_that_the_database_gave_whatever_happens(
    mode: str, database_url: str, initialize: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Servers stop now and then for longer than a lease, and are commanded to drop their cache."""
    seed = int(os.environ.get("ALL_READS_SEED", time.time_ns() % 100_000))
    with beside_one_writer(tmp_path, database_url, mode, seed, kinds=40) as run:
        with run.reading(disturbs=True):
            run.write(300)
        wrong = run.versions.wrong(run.seen, MODES[mode][0])
        made = sum(server is not None for server in run.versions.servers)
        with capsys.disabled():
            print(f"\n{mode}, seed {seed}: {len(run.seen)} reads, {made} writes, {len(wrong)} wrong")
        assert not wrong, f"seed {seed}\n" + "\n".join(wrong[:3])


class Mutated(ServerProcess):
    program = mutants.program(mutants.statistics_of_changed_partitions_kept.__name__)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_statistics_that_stay_are_noticed(database_url: str, initialize: None, tmp_path: Path) -> None:
    """A rule that the reads of the other workload do not test."""
    wrong: list[str] = []
    with beside_one_writer(tmp_path, database_url, "check", SEED, kinds=60, kind=Mutated) as run:
        run.draw_only("w_partition_statistics", "w_alter_partition", "w_delete_statistics")
        began_s = time.monotonic()
        while not wrong and time.monotonic() < began_s + LIMIT_S:
            with run.reading():
                run.write(15)
            wrong = run.versions.wrong(run.seen, 0.0)
    assert wrong
