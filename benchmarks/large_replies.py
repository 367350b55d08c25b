"""Clients that all read a whole large table, and one with small reads: measures how long it waits."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from benchmarks.client import connect
from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import resident_bytes
from benchmarks.scale import DATABASE, TABLE, day_of
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore

WITHOUT, WITH = "without a limit", "with the default"
SETTINGS: Mapping[str, Mapping[str, str]] = {WITHOUT: {"SERVER__LARGE_REPLY_BYTES": "0"}, WITH: {}}

_QUIET_S = 2.0
"""Replies have no length; one has ended when nothing has arrived for this long."""


@dataclass(frozen=True, slots=True)
class Round:
    """The measurements of one server."""

    name: str
    large_bytes: int
    large_replies: int
    small_ms: list[float]
    """Milliseconds of each small read."""
    resident_before_bytes: int
    max_resident_bytes: int


def measure(
    url: str, directory: Path, *, clients: int, seconds: float, is_cached: bool, report: Callable[[str], None]
) -> Iterator[Round]:
    """Measures each setting in turn, on a separate server."""
    for name, settings in SETTINGS.items():
        cached = {} if is_cached else {"CACHE__EXCLUDE": f"{DATABASE}.*"}
        server = OwnMetastore(url, directory / name.replace(" ", "-"), **settings, **cached)
        try:
            yield _round(name, server.start(), server, clients, seconds)
        finally:
            server.stop()
        report(name)


def _round(name: str, address: str, server: OwnMetastore, clients: int, seconds: float) -> Round:
    request = _request()
    size = _size_of_reply(address, request)
    before = most = resident_bytes(server.pid)
    small = connect(address)
    small_ms: list[float] = []
    with _asking(address, request, size, clients) as replies:
        end_s = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end_s:
            began_s = time.perf_counter()
            # From the database: nothing of it is in memory.
            small.get_partitions_by_filter(DATABASE, TABLE, f'dt = "{day_of(number % 100)}" and hour < 3', -1)
            small_ms.append((time.perf_counter() - began_s) * 1000)
            most = max(most, resident_bytes(server.pid))
            number += 1
            time.sleep(0.05)
        answered = sum(replies)
    return Round(name, size, answered, small_ms, before, most)


def _request() -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin("get_partitions", TMessageType.CALL, 1)
    ThriftHiveMetastore.get_partitions_args(db_name=DATABASE, tbl_name=TABLE, max_parts=-1).write(protocol)
    protocol.writeMessageEnd()
    content: bytes = buffer.getvalue()
    return content


def _open(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)))


def _size_of_reply(address: str, request: bytes) -> int:
    size = 0
    with _open(address) as link:
        link.sendall(request)
        size += len(link.recv(1 << 16))
        link.settimeout(_QUIET_S)
        try:
            while piece := link.recv(1 << 20):
                size += len(piece)
        except TimeoutError:
            return size
    raise RuntimeError("the server closed the connection")


@contextmanager
def _asking(address: str, request: bytes, size: int, clients: int) -> Iterator[list[int]]:
    """Runs clients that repeat their read, and receive each reply as fast as possible. Yields the number of replies of
    each."""
    replies = [0] * clients
    ending = threading.Event()

    def ask(number: int) -> None:
        with _open(address) as link:
            link.settimeout(1.0)
            while not ending.is_set():
                link.sendall(request)
                left = size
                while left and not ending.is_set():
                    try:
                        left -= len(link.recv(min(left, 1 << 20)))
                    except TimeoutError:
                        continue
                replies[number] += not left

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield replies
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def render(rounds: list[Round]) -> str:
    """A table in Markdown."""
    lines = [
        "| | large reply, MB | large replies | small reads | p50 ms | p95 ms | most ms | memory, MB | most, MB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in rounds:
        cuts = statistics.quantiles(one.small_ms, n=20, method="inclusive")
        cells = [
            f"{one.large_bytes / 1e6:.1f}",
            f"{one.large_replies}",
            f"{len(one.small_ms)}",
            f"{statistics.median(one.small_ms):.0f}",
            f"{cuts[18]:.0f}",
            f"{max(one.small_ms):.0f}",
            f"{one.resident_before_bytes / 1e6:.0f}",
            f"{one.max_resident_bytes / 1e6:.0f}",
        ]
        lines.append(f"| {one.name} | {' | '.join(cells)} |")
    return "\n".join(lines)
