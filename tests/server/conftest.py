"""A whole server in this process, on SQLite, and raw sockets to it."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from thrift.protocol import fastbinary

from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS

MAX_WAIT_S = 30.0


class Running:
    """A started service, and connections that end with the test."""

    def __init__(self, service: Service, uri: str, stack: ExitStack) -> None:
        self.service = service
        self.port = int(uri.rpartition(":")[2])
        self._stack = stack

    def connect(self) -> socket.socket:
        """A TCP connection."""
        link = socket.create_connection(("127.0.0.1", self.port), timeout=MAX_WAIT_S)
        self._stack.callback(link.close)
        return link

    def link(self) -> Link:
        """A connection that speaks strict, unframed binary."""
        return Link(self.connect())


class Link:
    """One raw connection: requests are encoded by hand, so that their bytes are known."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sequence = 0

    def request(self, method: str, **arguments: Any) -> bytes:
        """Returns the bytes of a call with the next sequence id."""
        self.sequence += 1
        return request_bytes(method, self.sequence, **arguments)

    def call(self, method: str, **arguments: Any) -> Any:
        """Sends a call and waits for its result. Raises the fault or the declared exception."""
        self.sock.sendall(self.request(method, **arguments))
        return self.reply(method)

    def reply(self, method: str) -> Any:
        """Reads one reply. Returns the value of `success`."""
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.Thrift import TApplicationException, TMessageType
        from thrift.transport.TTransport import TTransportBase

        class Source(TTransportBase):
            def read(source, size: int) -> bytes:
                data = self.sock.recv(size)
                if not data:
                    raise EOFError("the server closed the connection")
                return data

        protocol = TBinaryProtocol(Source())
        name, kind, sequence = protocol.readMessageBegin()
        assert (name, sequence) == (method, self.sequence)
        if kind == TMessageType.EXCEPTION:
            fault = TApplicationException()
            fault.read(protocol)
            protocol.readMessageEnd()
            raise fault
        result = METHODS[method].result_class()
        result.read(protocol)
        protocol.readMessageEnd()
        for entry in filter(None, result.thrift_spec):
            raised = getattr(result, entry[2])
            if isinstance(raised, Exception):
                raise raised
        return getattr(result, "success", None)


def request_bytes(method: str, sequence: int, **arguments: Any) -> bytes:
    """A strict binary call."""
    name = method.encode()
    spec = METHODS[method]
    header = struct.pack("!iI", -2147418111, len(name)) + name + struct.pack("!i", sequence)
    return header + fastbinary.encode_binary(spec.args_class(**arguments), spec.args_table)


Serve = Callable[..., Running]


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@pytest.fixture(autouse=True)
def no_callback_fails() -> Iterator[None]:
    """A failing callback of a loop ends only itself, and its remaining work is never done: a time limit, or the end of
    a connection. The loop only logs it."""
    errors = _Errors()
    logging.getLogger("asyncio").addHandler(errors)
    yield
    logging.getLogger("asyncio").removeHandler(errors)
    assert not errors.texts


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server: `serve(**{"server.max_connections": 3})`. It is stopped at the end. It has a management port,
    which takes a sixth of the processor time of a start, if a setting of ``admin`` is given."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Running:
            given = {
                "server.port": 0,
                "admin.port": 0,
                "admin.enabled": any(name.startswith("admin.") for name in settings),
                "database.url": f"sqlite:///{tmp_path / 'metastore.db'}",
                "warehouse.directory": str(tmp_path / "warehouse"),
                **settings,
            }
            service = Service(load(command_line=given, environment={}))
            uri = service.start()
            stack.callback(service.stop)
            return Running(service, uri, stack)

        yield start


def database(name: str) -> ttypes.Database:
    """A database to create."""
    return ttypes.Database(name=name, description="d", parameters={})


def table(database_name: str, name: str, **parameters: str) -> ttypes.Table:
    """A table to create."""
    return ttypes.Table(
        tableName=name,
        dbName=database_name,
        owner="o",
        sd=ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("a", "int", None)],
            inputFormat="i",
            outputFormat="o",
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(None, "lib", {}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[ttypes.FieldSchema("p", "string", None)],
        parameters=dict(parameters),
        tableType="MANAGED_TABLE",
    )
