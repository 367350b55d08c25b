"""Two real servers on one database, writers on both and one beside them: each read has its place in the log."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.consistency.evicting import EvictingServer
from tests.consistency.runs import STALENESS_S, state_by_server, two_servers
from tests.consistency.workload import Size

KINDS = {"sqlite": [], "mariadb": [pytest.mark.mariadb]}

LONG = [pytest.mark.soak, pytest.mark.long]
WHEN = {("sqlite", "0"): [], ("sqlite", "500"): [pytest.mark.soak], ("mariadb", "0"): [pytest.mark.soak]}
"""The others have their turn in the long soaks."""

CI = Size(reads=4_000, writes=240)
"""By setting and database: 24,000 reads and some 600 writes that are made (of those tried, a third is refused)."""

EVICTING = Size(reads=6_000, writes=360)
"""Beside random evictions, with every table taken for a large one."""

SOAK = Size(reads=40_000, writes=2_400)
"""Of each setting: six in ten writes lose to another writer, so that the six settings do 5,000 and more."""


@pytest.mark.parametrize(
    "size", [pytest.param(CI, id="short"), pytest.param(SOAK, id="long", marks=[pytest.mark.soak, pytest.mark.long])]
)
@pytest.mark.parametrize(
    ("database_kind", "setting"),
    [
        pytest.param(kind, setting, marks=[*marks, *WHEN.get((kind, setting), LONG)])
        for kind, marks in KINDS.items()
        for setting in STALENESS_S
    ],
    indirect=["database_kind"],
)
def test_every_read_has_its_place_in_the_log(
    size: Size, setting: str, database_url: str, tmp_path: Path, initialize: None, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = time.time_ns() % 100_000
    with two_servers(tmp_path, database_url, setting, seed) as run:
        began_s = time.monotonic()
        run.workload.run(size)
        took_s = time.monotonic() - began_s
        found = run.violations()
        history = run.workload.history
        with capsys.disabled():
            print(
                f"\n{tmp_path.name}: max_staleness {setting} ms, seed {seed}: {len(history.reads)} reads,"
                f" {sum(one.done for one in history.writes)} writes ({len(history.writes)} tried) in {took_s:.1f} s,"
                f" {len(found)} violations"
            )
        assert not found, "\n".join(map(str, found[:5]))
        assert len(history.reads) >= size.reads
        assert sum(one.done for one in history.writes) >= size.writes // 3
        if setting == "0":
            # The check depends on the replay of the log: both servers must have the same catalog in the end.
            for server in range(2):
                assert state_by_server(run, server) == run.log()[-1].state


@pytest.mark.soak
@pytest.mark.parametrize("at_once", [pytest.param(0, marks=pytest.mark.long), 3], ids=["pass-through", "small-at-once"])
@pytest.mark.parametrize(
    ("database_kind", "setting"),
    [("sqlite", "0"), pytest.param("sqlite", "500", marks=pytest.mark.long)],
    indirect=["database_kind"],
)
def test_every_read_has_its_place_whatever_is_evicted(
    at_once: int, setting: str, database_url: str, tmp_path: Path, initialize: None
) -> None:
    """Reads go to the database or wait for a load, tables are loaded in the background, and random parts are
    evicted."""
    settings: dict[str, object] = {"cache.load_at_once_partitions": at_once}
    seed = time.time_ns() % 100_000
    with two_servers(tmp_path, database_url, setting, seed, kind=EvictingServer, settings=settings) as run:
        run.workload.run(EVICTING)
        found = run.violations()
        assert not found, f"seed {seed}\n" + "\n".join(map(str, found[:5]))
        assert len(run.workload.history.reads) >= EVICTING.reads
        if setting == "0":
            for server in range(2):
                assert state_by_server(run, server) == run.log()[-1].state
