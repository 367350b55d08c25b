"""Server processes for the tests: real ``hms-cache serve``, to be stopped in order or killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hmsclient import HMSClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_cache.cli.demo.server_process import MAX_WAIT_S
from hms_cache.cli.demo.server_process import ServerProcess as StartedServer
from tests.prepared.processes import prepared_python

__all__ = ["MAX_WAIT_S", "ServerProcess", "metastore_client", "server_process"]


class ServerProcess(StartedServer):
    """A server process, forked by an interpreter that has imported what servers import, unless that makes a
    difference."""

    is_forked = True
    """False: started by the system, with all of its memory its own."""

    is_program_late = False
    """Whether a `program` of its own does the same after everything was imported."""

    def _launch(self, command: list[str], environment: dict[str, str], log: IO[str]) -> Any:
        is_usual = self.program == StartedServer.program or self.is_program_late
        if self.is_forked and is_usual and (prepared := prepared_python()).is_like(environment):
            return prepared.start(self.program, command[3:], self.directory, environment, log)
        return super()._launch(command, environment, log)


@contextmanager
def metastore_client(port: int, timeout_s: float = MAX_WAIT_S) -> Iterator[HMSClient]:
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
    directory: Path,
    database_url: str,
    settings: dict[str, object] | None = None,
    is_forked: bool = True,
) -> Iterator[ServerProcess]:
    """Yields a server that is ready. At the end it is stopped, and must stop in order. `is_forked`: as in
    `ServerProcess`."""
    server = ServerProcess(directory, database_url, settings)
    server.is_forked = is_forked
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            status = server.stop()
            assert status == 0, f"exit status {status}: {server.log[-3000:]}"
