"""If several processes collect the same tests, one compiles them."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest

from tests.collecting import after_the_first, are_compiled

PROCESSES = 4
MAX_WAIT_S = 60


def _collect(directory: Path, ends: bool, ready: multiprocessing.synchronize.Barrier) -> None:
    ready.wait(MAX_WAIT_S)
    with after_the_first(directory):
        compiled = directory / "compiled"
        if not compiled.exists():
            if ends:
                sys.exit(1)
            with (directory / "log").open("a") as log:
                log.write("compiles\n")
            compiled.touch()


@pytest.mark.parametrize("end", [0, 1], ids=["all", "one ends at once"])
def test_of_processes_that_begin_at_the_same_moment_one_compiles(tmp_path: Path, end: int) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(PROCESSES, timeout=MAX_WAIT_S)
    processes = [context.Process(target=_collect, args=(tmp_path, n < end, ready)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(MAX_WAIT_S)
    assert (tmp_path / "log").read_text() == "compiles\n"


def test_what_is_compiled_by_this_pytest_is_known(tmp_path: Path) -> None:
    caches = tmp_path / "folder" / "__pycache__"
    caches.mkdir(parents=True)
    for name in ("test_one", "test_other"):
        (caches.parent / f"{name}.py").touch()
    (caches / f"test_one.{sys.implementation.cache_tag}-pytest-0.1.pyc").touch()
    assert not are_compiled(tmp_path)
    (caches / f"test_one.{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc").touch()
    assert are_compiled(tmp_path)
