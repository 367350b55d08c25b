"""Server processes for the tests: real ``hms-cache serve``, to be stopped in order or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hmsclient import HMSClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

#: How long a process may take to start, to end, or to answer, on a busy machine.
PATIENCE_S = 90.0


class ServerProcess:
    """One ``hms-cache serve``. It may be started again on the port it had."""

    program = "from hms_cache.cli.main import main; main()"
    """What the process runs, in front of the command's arguments."""

    def __init__(self, directory: Path, database_url: str, *, settings: dict[str, object] | None = None) -> None:
        """`directory`: its working directory, with its log and, unless `settings` say otherwise, its warehouse."""
        self.directory = directory
        self.database_url = database_url
        self.warehouse = directory / "warehouse"
        self.port = 0
        self._settings = settings or {}
        self._process: subprocess.Popen[str] | None = None

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it has logged, over all starts."""
        return (self.directory / "server.log").read_text(errors="replace")

    def start(self) -> None:
        """Start it and wait until it is ready."""
        assert self._process is None, "it runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        settings: dict[str, object] = {"admin.port": 0, **self._settings}
        command = [sys.executable, "-c", self.program, "serve"]
        command += ["--port", str(self.port), "--database", self.database_url]
        if "warehouse.directory" not in settings:
            command += ["--warehouse", str(self.warehouse)]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_CACHE")}
        with (self.directory / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                command, cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self._ready_line(self._process)
        if not line.startswith("ready thrift://"):
            self.kill()
            raise AssertionError(f"the server did not start: {line}{self.log[-3000:]}")
        self.port = int(line.rpartition(":")[2])

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
        """SIGTERM, and its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: nothing of it gets a chance to tidy up."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
        return process.returncode

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @contextmanager
    def client(self, timeout_s: float = PATIENCE_S) -> Iterator[HMSClient]:
        """A connection of hmsclient."""
        with metastore_client(self.port, timeout_s) as client:
            yield client


@contextmanager
def metastore_client(port: int, timeout_s: float = PATIENCE_S) -> Iterator[HMSClient]:
    """A connection of hmsclient to this port of the local machine."""
    socket = TSocket("127.0.0.1", port)
    socket.setTimeout(timeout_s * 1000)
    transport = TBufferedTransport(socket)
    transport.open()
    try:
        yield HMSClient(TBinaryProtocol(transport))
    finally:
        transport.close()


@contextmanager
def server_process(
    directory: Path, database_url: str, settings: dict[str, object] | None = None
) -> Iterator[ServerProcess]:
    """A server that is ready; stopped at the end, which it must do in order."""
    server = ServerProcess(directory, database_url, settings=settings)
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            status = server.stop()
            assert status == 0, server.log[-3000:]
