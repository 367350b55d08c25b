"""Readers of a large table: connections of a separate process that read days by filter, one after the other.

One thread serves all connections, and reads only the length and kind of each reply. Clients that decode replies, or
wait to do so, would measure themselves, and take processor time from the server.
"""

from __future__ import annotations

import json
import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from benchmarks.generator import RECEIVE_BYTES, encode_request, is_answer
from benchmarks.scale import DATABASE, TABLE, day_of
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore

MAX_WAIT_S: Final = 600.0
_LENGTH: Final = struct.Struct("!I")
"""The length before each framed message."""


@contextmanager
def reading(address: str, count: int, partitions: int, *, rest_s: float) -> Iterator[Callable[[], list[float]]]:
    """Runs this many readers during the block, each with a pause after each reply; yields a function that returns the
    milliseconds of their reads, to be called after the block.

    The block begins when each reader has had a first reply, which does not count.

    :param rest_s: the mean pause. With equal pauses, all readers would send their requests at the same moment.
    """
    if not count:
        yield list
        return
    arguments = [sys.executable, "-m", __name__, address, *map(str, (count, partitions, rest_s))]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    took_ms: list[float] = []
    try:
        if not process.stdout.readline():
            raise RuntimeError("the readers ended")
        yield took_ms.copy
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        took_ms += json.loads(process.stdout.readline() or "[]")
        process.wait()


class _Reader:
    def __init__(self, address: str, number: int) -> None:
        host, port = address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout=MAX_WAIT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.chance = random.Random(number)
        self.due_s = 0.0
        self.sent_s: float | None = None
        self.replies = 0
        self._reply = bytearray()

    def send(self, request: bytes) -> None:
        self.sent_s = time.perf_counter()
        self.sock.sendall(request)

    def receive(self, buffer: bytearray, rest_s: float) -> float | None:
        """Takes received bytes. Returns the milliseconds since the request if the reply is complete."""
        taken = self.sock.recv_into(buffer)
        if not taken:
            raise ConnectionError("the server closed a connection")
        self._reply += memoryview(buffer)[:taken]
        if len(self._reply) < _LENGTH.size or len(self._reply) < _LENGTH.size + _LENGTH.unpack_from(self._reply)[0]:
            return None
        now_s = time.perf_counter()
        if not is_answer(self._reply[_LENGTH.size :]):
            raise RuntimeError(f"the call failed: {bytes(self._reply[:200])!r}")
        assert self.sent_s is not None
        took_ms = (now_s - self.sent_s) * 1000
        self._reply.clear()
        self.sent_s, self.due_s = None, now_s + 2 * rest_s * self.chance.random()
        self.replies += 1
        return took_ms


def read_days(address: str, count: int, partitions: int, rest_s: float) -> None:
    """The readers' process: reads until its input ends, then prints the milliseconds of all reads."""
    buffer = bytearray(RECEIVE_BYTES)
    readers = [_Reader(address, number) for number in range(count)]
    by_descriptor = {one.sock.fileno(): one for one in readers}
    took_ms: list[float] = []
    begun = False
    with select.epoll() as epoll:
        for descriptor in (*by_descriptor, sys.stdin.fileno()):
            epoll.register(descriptor, select.EPOLLIN)
        while True:
            now_s = time.perf_counter()
            wait_s = MAX_WAIT_S
            for one in readers:
                if one.sent_s is None and one.due_s <= now_s:
                    one.send(_request(day_of(one.chance.randrange(partitions))))
                elif one.sent_s is None:
                    wait_s = min(wait_s, one.due_s - now_s)
            for descriptor, _ in epoll.poll(wait_s):
                if descriptor == sys.stdin.fileno():
                    print(json.dumps(took_ms))
                    return
                took = by_descriptor[descriptor].receive(buffer, rest_s)
                if took is not None and begun:
                    took_ms.append(took)
            if not begun and all(one.replies for one in readers):
                begun = True
                print("reading", flush=True)


def _request(day: str) -> bytes:
    arguments = ThriftHiveMetastore.get_partitions_by_filter_args(DATABASE, TABLE, f'dt = "{day}"', -1)
    message = encode_request("get_partitions_by_filter", arguments)
    return _LENGTH.pack(len(message)) + message


if __name__ == "__main__":
    read_days(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
