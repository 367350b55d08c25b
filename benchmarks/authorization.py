"""Measures what authorization costs a hot `get_table`: one client calls servers in turns that differ only in it.

``python -m benchmarks.authorization`` prints a table. SQLite, loopback, one connection, byte-for-byte equal requests.
"""

from __future__ import annotations

import socket
import statistics
import struct
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from thrift.protocol import fastbinary

from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS

ROUNDS, REQUESTS = 9, 200
POLICY = '[[grants]]\nusers = ["ann"]\nactions = ["all"]\ndatabases = ["*"]\n'
KINDS: dict[str, dict[str, Any]] = {
    "off": {},
    "policy": {"authorization.provider": "policy"},
    "sql, decisions up to 10 s old": {"authorization.provider": "sql", "authorization.sql_max_age_s": 10},
    "sql, changes logged": {"authorization.provider": "sql", "authorization.sql_grants": "logged"},
    "sql, each call": {"authorization.provider": "sql"},
}


def request_bytes(method: str, **arguments: Any) -> bytes:
    """Returns a call in strict binary encoding."""
    spec, name = METHODS[method], method.encode()
    body: bytes = fastbinary.encode_binary(spec.args_class(**arguments), spec.args_table)
    return struct.pack("!iI", -2147418111, len(name)) + name + struct.pack("!i", 1) + body


def call(link: socket.socket, request: bytes) -> bytes:
    """Sends a call and reads the reply with one read, since replies here are short."""
    link.sendall(request)
    return link.recv(1 << 20)


def start(stack: ExitStack, directory: Path, settings: dict[str, Any]) -> socket.socket:
    """Starts a server with one table that belongs to ann; returns it and her connection."""
    directory.mkdir()
    policy = directory / "policy.toml"
    policy.write_text(POLICY)
    given = {
        "server.port": 0,
        "admin.enabled": False,
        "database.url": f"sqlite:///{directory / 'metastore.db'}",
        "warehouse.directory": str(directory / "warehouse"),
        "security.accept_insecure": True,
        "authorization.policy_file": str(policy),
        **settings,
    }
    service = Service(load(command_line=given, environment={}))
    port = int(service.start().rpartition(":")[2])
    stack.callback(service.stop)
    link = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
    call(link, request_bytes("set_ugi", user_name="ann", group_names=[]))
    descriptor = t.StorageDescriptor(
        cols=[t.FieldSchema(f"c{n}", "int") for n in range(20)], serdeInfo=t.SerDeInfo(None, "l", {})
    )
    table = t.Table("t", "default", "ann", sd=descriptor, ownerType=t.PrincipalType.USER)
    call(link, request_bytes("create_table", tbl=table))
    return link


def main() -> None:
    """Measures and prints."""
    request = request_bytes("get_table", dbname="default", tbl_name="t")
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        links = {kind: start(stack, root / str(n), given) for n, (kind, given) in enumerate(KINDS.items())}
        sizes = {}
        for kind, link in links.items():
            reply = call(link, request)
            assert b"c19" in reply, "the table is shown"
            sizes[kind] = len(reply)
        rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(ROUNDS):
            for kind, link in links.items():
                started = time.perf_counter()
                for _ in range(REQUESTS):
                    assert len(call(link, request)) == sizes[kind], "a reply came in pieces"
                rates[kind].append(REQUESTS / (time.perf_counter() - started))
    print("| authorization | requests/s (median) | of off, round by round (median) |\n|---|---|---|")
    for kind, found in rates.items():
        shares = [one / off for one, off in zip(found, rates["off"], strict=True)]
        print(f"| {kind} | {statistics.median(found):.0f} | {statistics.median(shares):.0%} |")


if __name__ == "__main__":
    main()
