"""What is fetched is fetched once, is complete or missing, and nobody waits for it for ever."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

from tests.downloads import FetchFailed, artifacts, kept, kept_together, run

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


def _take_together(names: list[str], ready: multiprocessing.synchronize.Barrier) -> None:
    def fetch(directory: Path, missing: list[str]) -> None:
        for name in missing:
            (directory / name).write_text("whole")

    ready.wait(60)
    assert [path.read_text() for path in kept_together(names, fetch)] == ["whole"] * len(names)


def test_processes_that_fetch_the_same_files_in_other_orders_do_not_wait_for_each_other(cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    names = [f"of/{number}" for number in range(20)]
    ready = context.Barrier(2, timeout=60)
    processes = [context.Process(target=_take_together, args=(order, ready)) for order in (names, names[::-1])]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]


def test_of_files_fetched_together_only_those_that_are_not_there_are(cache: Path) -> None:
    fetched: list[list[str]] = []

    def fetch(directory: Path, missing: list[str]) -> None:
        fetched.append(missing)
        for name in missing:
            (directory / name).touch()

    assert kept_together(["of/b"], fetch) == [cache / "of" / "b"]
    assert kept_together(["of/c", "of/b", "of/a"], fetch) == [cache / "of" / name for name in "cba"]
    assert fetched == [["b"], ["a", "c"]]


def test_of_files_fetched_together_all_are_there_or_none(cache: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kept_together(["of/a", "of/b"], lambda directory, _: (directory / "b").touch())
    assert not [path for path in (cache / "of").iterdir() if not path.name.startswith(".")]


def test_maven_runs_once_for_all_jars(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text(f"""#!{sys.executable}
import re, sys
from pathlib import Path
project = Path(sys.argv[sys.argv.index("-f") + 1])
item = "<groupId>([^<]+)</groupId><artifactId>([^<]+)</artifactId><version>([^<]+)</version>"
for group, name, version in re.findall("<artifactItem>" + item, project.read_text()):
    (project.parent / f"{{name}}-{{version}}.jar").write_text(group)
with open({str(tmp_path / "runs")!r}, "a") as runs:
    runs.write("once\\n")
""")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = artifacts(["org.one:a:1", "org.two:b:2.0", "org.one:a:1"])
    assert [(path.name, path.read_text()) for path in found] == [("a-1.jar", "org.one"), ("b-2.0.jar", "org.two")]
    assert artifacts(["org.two:b:2.0"]) == found[1:]
    assert (tmp_path / "runs").read_text() == "once\n"
