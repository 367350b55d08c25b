"""A forked process is equivalent to one that the system starts with the same program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.prepared.processes import PreparedPython, prepared_python

TELLS = """
import json, os, signal, sys, threading, time
print(json.dumps({
    "arguments": sys.argv,
    "path": sys.path,
    "directory": os.getcwd(),
    "environment": dict(os.environ),
    "offset": time.strftime("%z"),
    "processors": sorted(os.sched_getaffinity(0)),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "signals": {one.name: str(signal.getsignal(one)).split(" at ")[0] for one in signal.Signals},
    "name": __name__,
    "encoding": [sys.stdout.encoding, sys.stderr.encoding],
    "buffers": [sys.stdout.line_buffering, sys.stderr.line_buffering],
    "threads": threading.active_count(),
}))
"""

Start = Callable[[str, list[str], Path, Mapping[str, str]], Any]


def started(program: str, arguments: list[str], directory: Path, environment: Mapping[str, str]) -> Any:
    """By the system."""
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=directory, env=environment, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture(scope="module")
def python() -> PreparedPython:
    return prepared_python()


@pytest.fixture(params=["started", "forked"])
def start(request: pytest.FixtureRequest, python: PreparedPython) -> Start:
    return started if request.param == "started" else python.start


def test_it_finds_what_a_started_one_finds(python: PreparedPython, tmp_path: Path) -> None:
    environment = {**os.environ, "TZ": "Asia/Kolkata", "OF_THE_TEST": "ü"}
    environment.pop("PATH")
    assert python.is_like(environment)
    told = []
    for start in (started, python.start):
        output, errors = start(TELLS, ["a", "--b=ü"], tmp_path, environment).communicate(timeout=60)
        assert errors == ""
        told.append(json.loads(output))
    assert told[0] == told[1]
    assert told[1]["offset"] == "+0530" and told[1]["directory"] == str(tmp_path)


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LD_PRELOAD", "LC_ALL", "MALLOC_ARENA_MAX"])
def test_another_interpreter_is_told_from_it(python: PreparedPython, name: str) -> None:
    assert python.is_like(dict(os.environ))
    assert not python.is_like({**os.environ, name: "1"})


@pytest.mark.parametrize(
    ("program", "status", "error"),
    [
        ("print('done')", 0, ""),
        ("print('done', flush=True); import sys; sys.exit(3)", 3, ""),
        ("print('done', flush=True); raise KeyError('of the test')", 1, "KeyError: 'of the test'"),
        ("print('done', flush=True); import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("import atexit; atexit.register(print, 'done')", 0, ""),
        ("import threading; threading.Thread(target=print, args=['done']).start()", 0, ""),
    ],
)
def test_how_it_ends_is_told(start: Start, program: str, status: int, error: str, tmp_path: Path) -> None:
    process = start(program, [], tmp_path, os.environ)
    output, errors = process.communicate(timeout=60)
    assert (output, process.returncode, process.poll()) == ("done\n", status, status)
    assert error in errors
    process.kill()  # nobody any more


def test_it_is_waited_for_and_takes_signals(start: Start, tmp_path: Path) -> None:
    with_loop = "import time; print('ready', flush=True)\nwhile True: time.sleep(60)"
    for send, status in (("terminate", -signal.SIGTERM), ("kill", -signal.SIGKILL)):
        process = start(with_loop, [], tmp_path, os.environ)
        assert process.stdout.readline() == "ready\n" and process.poll() is None
        for waits in (process.wait, process.communicate):
            with pytest.raises(subprocess.TimeoutExpired):
                waits(timeout=0.01)
        getattr(process, send)()
        assert process.wait(60) == status
        process.communicate(timeout=60)


def test_a_signal_to_one_that_ends_by_itself_is_no_error(start: Start, tmp_path: Path) -> None:
    """Also between its end and the report of it."""
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    process = start(program, [], tmp_path, os.environ)
    while process.returncode is None:
        process.send_signal(0)
    assert process.returncode == -signal.SIGKILL
    process.communicate(timeout=60)


def test_more_output_than_a_pipe_takes_is_read(start: Start, tmp_path: Path) -> None:
    program = "import sys; sys.stdout.write('x' * 300_000); sys.stderr.write('y' * 300_000)"
    output, errors = start(program, [], tmp_path, os.environ).communicate(timeout=120)
    assert (output, errors) == ("x" * 300_000, "y" * 300_000)


def test_two_in_turn_hash_differently(tmp_path: Path) -> None:
    first, second, third = (
        prepared_python().start("print(hash('a'))", [], tmp_path, os.environ).communicate(timeout=60)[0]
        for _ in range(3)
    )
    assert first != second and first == third
