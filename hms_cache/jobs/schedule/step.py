"""Runs one step of a plan in a process of its own: input, result, and termination."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hms_cache.jobs.schedule.lease import is_running
from hms_cache.jobs.schedule.plan import Step

_GRACE_S = 20.0
"""Time between SIGTERM and SIGKILL, in which Spark removes its files."""

_CHECK_INTERVAL_S = 0.2
_TAIL_CHARACTERS = 2_000


class StepProcess:
    """Runs a step; terminates all its processes on request, or if the process that runs the plan ends."""

    def __init__(self, step: Step, *, dry_run: bool) -> None:
        """Starts the step. Raises OSError if its command cannot be started."""
        self._directory = tempfile.TemporaryDirectory(prefix="hms-cache-job-")
        place = Path(self._directory.name)
        self._answer, self._log = place / "answer.json", place / "log"
        order = place / "order.json"  # options may contain passwords: not readable by other users
        content = {
            "job": step.job.name,
            "options": dict(step.options),
            "master": step.master,
            "conf": dict(step.conf),
            "dry_run": dry_run,
            "answer": str(self._answer),
            "runner": [socket.gethostname(), os.getpid()],
        }
        order.write_text(json.dumps(content), encoding="utf-8")
        command = [*(step.command or (sys.executable, "-m", "hms_cache.cli")), "jobs", "step", str(order)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self, limit_s: float | None, stop: Callable[[], bool]) -> bool:
        """Waits for the step; terminates it at the limit, or when `stop` returns true. Returns whether it ended by
        itself."""
        waited_s = 0.0
        while limit_s is None or waited_s < limit_s:
            try:
                self._process.wait(_CHECK_INTERVAL_S)
                return True
            except subprocess.TimeoutExpired:
                waited_s += _CHECK_INTERVAL_S
            if stop():
                break
        self.end()
        return False

    def end(self) -> None:
        """Sends SIGTERM to all of its processes, then SIGKILL."""
        for number, max_wait_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            try:
                self._process.wait(max_wait_s)
            except subprocess.TimeoutExpired:
                continue

    def result(self) -> tuple[int, dict[str, Any], str]:
        """Exit status, report (empty if there is none), and end of its log; removes its files."""
        report: dict[str, Any] = {}
        if self._answer.exists():
            report = json.loads(self._answer.read_text(encoding="utf-8"))
        tail = self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARACTERS:]
        self._directory.cleanup()
        return self._process.returncode, report, tail


def run_step(order: Path) -> int:
    """In the step's own process: runs the job that the file names and writes its result. Returns the exit status."""
    from contextlib import nullcontext

    from hms_cache.jobs.frame.session import job_session
    from hms_cache.jobs.registry import JOBS

    content = json.loads(order.read_text(encoding="utf-8"))
    host, pid = content["runner"]
    if host == socket.gethostname():
        threading.Thread(target=_watch, args=(pid,), daemon=True).start()
    job = JOBS[content["job"]]
    options = content["options"]
    needed = job.spark_settings(options) if job.spark_settings is not None else {}
    session: Any = nullcontext()
    if job.needs_spark:
        session = job_session(job.name, content["master"], {**needed, **content["conf"]})
    with session as spark:
        result = job.run(spark, options, dry_run=content["dry_run"])
    answer = Path(content["answer"])
    unfinished = answer.with_suffix(".new")
    unfinished.write_text(json.dumps(result.as_json(content["dry_run"]), default=str), encoding="utf-8")
    unfinished.replace(answer)
    return result.exit_status


def _watch(pid: int) -> None:
    """Exits when the process that runs the plan ends, because the lease ends with it."""
    while is_running(pid):
        threading.Event().wait(1.0)
    os._exit(1)
