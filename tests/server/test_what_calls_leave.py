"""A call leaves nothing in memory when it is over: no cycles that wait for their collector, no large values."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.app.housekeeping import Housekeeping
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve, request_bytes
from tests.server.test_heard_refusals import head
from tests.server.test_http import open_connections
from tests.server.test_tls import Authority, wait_for

LARGE = "x" * 100_000

FAILING: dict[str, Callable[[Link], object]] = {
    "declared": lambda link: link.call("get_table", dbname="d", tbl_name=LARGE),
    "of a write": lambda link: link.call("drop_database", name=LARGE, deleteData=False, cascade=False),
    "about a session": lambda link: link.call("setOption", key="k", value=LARGE),
    "about a user": lambda link: link.call("set_ugi", user_name=LARGE, group_names=[]),
    "a field that is lacking": lambda link: link.call("create_table", tbl=ttypes.Table(tableName=LARGE)),
    "a bad filter": lambda link: link.call(
        "get_partitions_by_filter", db_name="d", tbl_name="t", filter=f"'{LARGE}", max_parts=-1
    ),
    "a method that is unknown": lambda link: link.sock.sendall(
        request_bytes("getName", 1).replace(b"getName", b"getNone")
    ),
    "of a transaction": lambda link: link.call("commit_txn", rqst=ttypes.CommitTxnRequest(txnid=77, replPolicy=LARGE)),
    "undeclared": lambda link: link.call("heartbeat", ids=ttypes.HeartbeatRequest(lockid=99)),
    "rubbish": lambda link: link.sock.sendall(b"\xde\xad\xbe\xef" * 4096),
    "left unfinished": lambda link: link.sock.sendall(
        request_bytes("get_table", 1, dbname=LARGE, tbl_name="t")[:90_000]
    ),
}


@contextmanager
def cyclic_garbage() -> Iterator[list[Any]]:
    """What only the cycle collector would free of what was created meanwhile."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[Any] = []
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("what", FAILING)
def test_a_call_that_fails_leaves_no_cycle(serve: Serve, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Background work of the server creates statements, too.
    monkeypatch.setattr(Housekeeping, "start", lambda self, stack: None)
    server = serve()

    def fail() -> None:
        link = server.link()
        with suppress(TException, OSError, EOFError):
            FAILING[what](link)
        with suppress(OSError):
            link.sock.shutdown(socket.SHUT_RDWR)
        link.sock.close()
        # A call on a new connection is answered after the same loop has noticed the other connection's end.
        server.link().call("getName")

    for _ in range(3):  # Objects created once (statements, caches) exist then.
        fail()
    with cyclic_garbage() as found:
        fail()
    frames = [
        one.f_code.co_qualname for one in found if isinstance(one, FrameType) and is_ours(one.f_globals["__name__"])
    ]
    ours = [type(one).__qualname__ for one in found if is_ours(type(one).__module__)]
    assert (frames, ours) == ([], [])


@pytest.mark.parametrize("mode", ["binary", "http"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_connection_leaves_no_cycle(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, tls: bool
) -> None:
    """The cycle collector does not count OpenSSL's memory of a connection."""
    monkeypatch.setattr(Housekeeping, "start", lambda self, stack: None)
    authority = Authority(tmp_path)
    server = serve(**{"server.transport_mode": mode}, **(authority.settings() if tls else {}))
    context = authority.client()
    request = request_bytes("getName", 1)
    if mode == "http":
        request = head(**{"Content-Length": str(len(request))}) + request

    def call_and_leave() -> None:
        sock = server.connect()
        if tls:
            sock = context.wrap_socket(sock, server_hostname="localhost")
        with sock:
            sock.sendall(request)
            assert sock.recv(65536)
        wait_for(lambda: open_connections(server) == 0)

    call_and_leave()
    with cyclic_garbage() as found:
        call_and_leave()
    assert [type(one).__qualname__ for one in found if is_ours(type(one).__module__)] == []


def is_ours(module: str) -> bool:
    """Of the server. The client's structs belong to the generated package, and its errors create cycles of their
    own."""
    return module.startswith("hms_cache.") and not module.startswith("hms_cache.thrift_gen.")
