"""Runs the program's commands, and programs of tests, in forked processes: see `tests.prepared.processes`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.prepared.processes import prepared_python

PROGRAM = "from hms_cache.cli.main import main; main()"


def run_command(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """``hms-cache ARGUMENTS``, as by `run_program`."""
    return run_program(PROGRAM, arguments, directory, environment, timeout_s)


def run_program(
    program: str,
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """``python -c PROGRAM ARGUMENTS`` in this directory until it has ended, with what it wrote. `environment`: ours if
    None.

    Where the environment makes another interpreter, the system starts it. A command that takes longer is killed, and
    `subprocess.TimeoutExpired` raised.
    """
    environment = os.environ if environment is None else environment
    if not (prepared := prepared_python()).is_like(environment):
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    process = prepared.start(program, arguments, directory, environment)
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode is not None
    return subprocess.CompletedProcess(list(arguments), process.returncode, output, errors or "")
