"""What is fetched is fetched once, is complete or missing, and nobody waits for it for ever."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

from tests.downloads import FetchFailed, kept, run

PROCESSES = 4


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hms-cache"


def _fetch(path: Path) -> None:
    with (path.parent.parent / "fetched").open("a") as log:
        log.write("once\n")
    path.mkdir()
    for number in range(200):
        (path / str(number)).touch()


def _take(ready: multiprocessing.synchronize.Barrier, found: multiprocessing.queues.Queue[int]) -> None:
    ready.wait(60)
    found.put(len(list(kept("of/many", _fetch).iterdir())))


def test_of_processes_that_ask_at_the_same_moment_one_fetches(cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, found = context.Barrier(PROCESSES, timeout=60), context.Queue()
    processes = [context.Process(target=_take, args=(ready, found)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    assert [found.get(timeout=60) for _ in processes] == [200] * PROCESSES
    for process in processes:
        process.join(60)
    assert (cache / "of" / "fetched").read_text() == "once\n"


def test_what_failed_leaves_nothing_and_is_tried_again(cache: Path) -> None:
    def breaks_off(path: Path) -> None:
        path.mkdir()
        (path / "part").touch()
        raise FetchFailed("the registry is silent")

    with pytest.raises(FetchFailed, match="silent"):
        kept("program", breaks_off)
    assert [path.name for path in cache.iterdir()] == [".program.lock"]
    assert (kept("program", Path.mkdir)).is_dir()


def test_a_program_that_fails_says_what_it_wrote() -> None:
    with pytest.raises(FetchFailed, match="exit code 3: no such release"):
        run([sys.executable, "-c", "print('no such release'); raise SystemExit(3)"])


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(FetchFailed, match="needs no-such-program"):
        run(["no-such-program"])


def test_a_program_that_never_ends_is_ended() -> None:
    with pytest.raises(FetchFailed, match="took longer than 1 s"):
        run([sys.executable, "-c", "import time; time.sleep(600)"], limit_s=1)
