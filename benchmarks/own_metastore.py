"""This project's server as a process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path


class OwnMetastore:
    """`hms-cache serve` on a database."""

    def __init__(self, url: str, directory: Path, **settings: str) -> None:
        self._url = url
        self._directory = directory
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self.program: Path | None = None
        """The command `hms-cache` of another program; None: of this one."""
        self.address = ""

    def set(self, **settings: str) -> None:
        """Changes settings before the start."""
        self._settings.update(settings)

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Its log so far."""
        return (self._directory / "hms-cache.log").read_text(errors="replace")

    def seconds_until(self, text: str, started_s: float) -> float:
        """Returns the seconds from `started_s` (monotonic) to the log line that contains `text`, by the time in that
        line."""
        line = next(one for one in self.log.splitlines() if text in one)
        logged = datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").astimezone()
        return time.monotonic() - started_s - (datetime.now().astimezone() - logged).total_seconds()

    def start(self) -> str:
        """Starts it and waits for its `ready` line. Returns HOST:PORT. Raises RuntimeError if it ends before."""
        self._directory.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **{f"HMS_CACHE__{k.upper()}": v for k, v in self._settings.items()}}
        program = self.program or Path(sys.executable).with_name("hms-cache")
        command = [str(program), "serve", "--port", "0", "--database", self._url]
        log = (self._directory / "hms-cache.log").open("w")
        self._process = subprocess.Popen(
            [*command, "--warehouse", str(self._directory / "warehouse")],
            cwd=self._directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("ready thrift://"):
                self.address = line.split("//", 1)[1].strip()
                return self.address
        tail = (self._directory / "hms-cache.log").read_text()[-2000:]
        raise RuntimeError(f"the server ended: {tail}")

    def stop(self) -> None:
        """Ends the process with SIGTERM."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
