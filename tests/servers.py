"""Server processes for the tests: real ``hms-cache serve``, to be stopped in order or killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hmsclient import HMSClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_cache.cli.demo.server_process import PATIENCE_S, ServerProcess

__all__ = ["PATIENCE_S", "ServerProcess", "metastore_client", "server_process"]


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
    server = ServerProcess(directory, database_url, settings)
    server.start()
    try:
        yield server
    finally:
        if server.is_running:
            status = server.stop()
            assert status == 0, f"exit status {status}: {server.log[-3000:]}"
