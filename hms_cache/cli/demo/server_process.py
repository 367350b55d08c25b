"""``hms-cache serve`` as a process of its own, to be stopped in order or killed, and started again where it was."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from hms_cache.app.child_processes import ending
from hms_cache.errors import HmsCacheError

#: How long a process may take to start or to end, on a busy machine.
PATIENCE_S = 90.0


_OWN_PORTS = range(20_000, 32_768)
"""Of servers that are started again on the same port. Above them systems give ports to clients' connections, so that
one might be taken while the server is down."""


def _port_below_those_of_clients() -> int:
    """One that is free; 0, whichever the system gives, if none is found. Not of `random`, which tests seed alike."""
    for _ in range(100):
        port = _OWN_PORTS[secrets.randbelow(len(_OWN_PORTS))]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    return 0


class ServerProcess:
    """One server. The port of its first start stays its own."""

    program = "from hms_cache.cli.main import main; main()"
    """What the process runs, in front of the command's arguments."""

    def __init__(
        self,
        directory: Path,
        database_url: str,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`directory`: its working directory, with its log and, unless `settings` say otherwise, its warehouse.
        `environment`: beside ours."""
        self._environment = dict(environment or {})
        self.directory = directory
        self.database_url = database_url
        self.warehouse = directory / "warehouse"
        self.port = _port_below_those_of_clients()
        self._settings: dict[str, object] = {"admin.port": 0, "warehouse.directory": self.warehouse, **(settings or {})}
        self._process: subprocess.Popen[str] | None = None

    @property
    def uri(self) -> str:
        """What clients connect to."""
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int:
        """The process. Only after `start`."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has logged, over all starts."""
        return (self.directory / "server.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither stopped nor killed since."""
        return self._process is not None

    def start(self) -> None:
        """Start it and wait until it is ready. Raises `HmsCacheError` with the end of its log."""
        assert self._process is None, "it runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", self.program, "serve"]
        command += ["--port", str(self.port), "--database", self.database_url]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_CACHE")}
        with (self.directory / "server.log").open("a") as log:
            self._process = self._launch(command, environment | self._environment, log)
        line = self._ready_line(self._process)
        if not line.startswith("ready thrift://"):
            self.kill()
            raise HmsCacheError(f"the server did not start: {line}{self.log[-3000:]}")
        self.port = int(line.rpartition(":")[2])

    def _launch(self, command: list[str], environment: dict[str, str], log: IO[str]) -> subprocess.Popen[str]:
        """The process: what it writes to standard output is read."""
        return subprocess.Popen(
            command, cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )

    @staticmethod
    def _ready_line(process: subprocess.Popen[str]) -> str:
        """Its first line of output, empty if it ended or was given up before."""
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE_S, process.kill)
        timer.start()
        try:
            return process.stdout.readline()
        finally:
            timer.cancel()

    def stop(self) -> int:
        """SIGTERM, and its exit status. Raises `HmsCacheError` for one that crashed, now or before."""
        status = self._end(signal.SIGTERM)
        if status < 0 and status != -signal.SIGKILL:
            raise HmsCacheError(f"the server {ending(status)}: {self.log[-3000:]}")
        return status

    def kill(self) -> None:
        """SIGKILL: nothing of it gets a chance to tidy up."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
        return process.returncode
