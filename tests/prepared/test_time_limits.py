"""A test that never ends, or ends its process, is named, and all others are run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import MAX_WAIT_S
from tests.time_limits import LONGEST_S, refuse_too_long

CONFTEST = """
import pytest
from tests.scheduling import FilesScheduling
from tests.time_limits import ended_after_limit, note_errors

def pytest_configure(config):
    note_errors(config)

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with ended_after_limit(item, grace_s=1):
        return (yield)

def pytest_xdist_make_scheduler(config, log):
    return FilesScheduling(config, log)
"""

TESTS = """
import threading
from concurrent.futures import ThreadPoolExecutor

def test_stuck():
    with ThreadPoolExecutor() as pool:
        pool.submit(threading.Event().wait).result()

def test_after_it():
    pass
"""


@pytest.mark.soak
@pytest.mark.timeout(4 * MAX_WAIT_S)
def test_a_test_that_catches_its_time_out_ends_its_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_threads.py").write_text(TESTS)
    run = run_of(tmp_path, "--timeout=1", "-n", "2", "--dist", "loadfile")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "crashed while running 'test_threads.py::test_stuck'" in run.stdout
    assert "1 failed, 1 passed" in run.stdout
    assert "Timeout (0:00:02)!" in run.stderr and "in test_stuck" in run.stderr


CRASHING = """
import os
import pytest

@pytest.mark.parametrize("number", range(5))
def test_one(number):
    if ({file}, number) in ((2, 2), (7, 0), (9, 4)):
        os._exit(9)
"""

SCHEDULED = """
from tests.scheduling import FilesScheduling

def pytest_xdist_make_scheduler(config, log):
    return FilesScheduling(config, log)
"""


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(4 * MAX_WAIT_S)
def test_a_run_goes_on_when_processes_crash(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SCHEDULED)
    for file in range(10):
        (tmp_path / f"test_{file}.py").write_text(CRASHING.format(file=file))
    run = run_of(tmp_path, "-n", "3", "--dist", "loadfile")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "3 failed, 47 passed" in run.stdout
    for file, number in ((2, 2), (7, 0), (9, 4)):
        assert f"crashed while running 'test_{file}.py::test_one[{number}]'" in run.stdout


def run_of(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [*command, f"--rootdir={directory}", "--confcutdir", str(directory), str(directory)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=3 * MAX_WAIT_S,
    )


def test_limits_of_every_day(request: pytest.FixtureRequest) -> None:
    item = request.node
    item.add_marker(pytest.mark.timeout(LONGEST_S + 1))
    with pytest.raises(pytest.UsageError, match="mark it long"):
        refuse_too_long([item])
    item.add_marker(pytest.mark.soak)
    item.add_marker(pytest.mark.long)
    refuse_too_long([item])
