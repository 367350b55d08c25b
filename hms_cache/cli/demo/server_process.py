"""``hms-cache serve`` as a separate process that can be stopped or killed, and restarted on the same port."""

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

#: Time limit for the start and the end of a process, on a busy machine.
MAX_WAIT_S = 90.0


_OWN_PORTS = range(20_000, 32_768)
"""Ports of servers that are restarted on the same port. Systems assign higher ports to connections of clients, which
could take the port while the server is down."""


def _port_below_those_of_clients() -> int:
    """Returns a free port, or 0 (any port of the system) if none is found. Does not use `random`, because tests set the
    same seed."""
    for _ in range(100):
        port = _OWN_PORTS[secrets.randbelow(len(_OWN_PORTS))]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    return 0


class ServerProcess:
    """One server. It keeps the port of its first start."""

    program = "from hms_cache.cli.main import main; main()"
    """The program that the process runs; the command's arguments follow it."""

    def __init__(
        self,
        directory: Path,
        database_url: str,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Stores the configuration without starting the process.

        :param directory: the working directory, which contains the log and, unless `settings` contains another one, the
          warehouse.
        :param environment: variables in addition to those of this process.
        """
        self._environment = dict(environment or {})
        self.directory = directory
        self.database_url = database_url
        self.warehouse = directory / "warehouse"
        self.port = _port_below_those_of_clients()
        self._settings: dict[str, object] = {"admin.port": 0, "warehouse.directory": self.warehouse, **(settings or {})}
        self._process: subprocess.Popen[str] | None = None

    @property
    def uri(self) -> str:
        """The URI for clients."""
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int:
        """The id of the process. Only after `start`."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """The log of all starts."""
        return (self.directory / "server.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not been stopped or killed since."""
        return self._process is not None

    def start(self) -> None:
        """Starts the server and waits until it is ready. Raises `HmsCacheError` with the end of its log if it fails."""
        assert self._process is None, "the server is running already"
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
        """Starts the process with standard output connected to a pipe."""
        return subprocess.Popen(
            command, cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )

    @staticmethod
    def _ready_line(process: subprocess.Popen[str]) -> str:
        """Returns its first line of output; empty if it ended, or did not print a line in time."""
        assert process.stdout is not None
        timer = threading.Timer(MAX_WAIT_S, process.kill)
        timer.start()
        try:
            return process.stdout.readline()
        finally:
            timer.cancel()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit status. Raises `HmsCacheError` if the process crashed, now or earlier."""
        status = self._end(signal.SIGTERM)
        if status < 0 and status != -signal.SIGKILL:
            raise HmsCacheError(f"the server {ending(status)}: {self.log[-3000:]}")
        return status

    def kill(self) -> None:
        """Sends SIGKILL: the process has no chance to clean up."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None, "the server is not running"
        process.send_signal(number)
        process.communicate(timeout=MAX_WAIT_S)
        return process.returncode
