"""Bad bytes affect their sender only: no crash, no delay for others, but an error or a closed connection."""

from __future__ import annotations

import contextlib
import random
import resource
import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.conftest import Serve, request_bytes, table

REQUESTS = [
    request_bytes("get_table", 1, dbname="default", tbl_name="t"),
    request_bytes("create_table", 2, tbl=table("default", "t")),
    request_bytes("get_partitions_by_names", 3, db_name="default", tbl_name="t", names=["a", "b"]),
]

hostile = st.one_of(
    st.binary(max_size=400),
    st.builds(lambda r, n: r[:n], st.sampled_from(REQUESTS), st.integers(0, 200)),
    st.builds(
        lambda r, edits: _mutated(r, edits),
        st.sampled_from(REQUESTS),
        st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), min_size=1, max_size=6),
    ),
    st.builds(
        lambda n: b"\x80\x01\x00\x01\x00\x00\x00\x09get_table\0\0\0\1" + b"\x0c\x00\x01" * n, st.integers(1, 5000)
    ),
    st.builds(lambda n: struct.pack("!i", n), st.integers(-(2**31), 2**31 - 1)),
)


def _mutated(request: bytes, edits: list[tuple[int, int]]) -> bytes:
    data = bytearray(request)
    for position, value in edits:
        data[position % len(data)] = value
    return bytes(data)


def test_hostile_connections_disturb_nobody(serve: Serve) -> None:
    server = serve(**{"server.max_message_bytes": 1_000_000})
    good = server.link()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=hostile)
    def attack(data: bytes) -> None:
        bad = server.connect()
        with contextlib.suppress(OSError):
            bad.sendall(data)
            bad.shutdown(socket.SHUT_WR)
        assert good.call("getStatus") == 2
        assert good.call("get_database", name="default").name == "default"
        bad.close()

    attack()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000, "kilobytes"


@pytest.mark.parametrize("size", [0x7FFFFFFF, -1, 200_000_000])
def test_an_absurd_size_is_refused_at_once(serve: Serve, size: int) -> None:
    server = serve()
    link = server.connect()
    link.sendall(
        b"\x80\x01\x00\x01\x00\x00\x00\x0cget_database\0\0\0\1\x0b\x00\x01" + struct.pack("!i", size) + b"x" * 100
    )
    data = b""
    with contextlib.suppress(OSError):
        while more := link.recv(65536):
            data += more
    assert data == b"" or data[:4] == b"\x80\x01\x00\x03", "closed, with a fault or without"
    assert server.link().call("getStatus") == 2


def test_random_garbage_from_many_connections(serve: Serve) -> None:
    server = serve()
    chance = random.Random(5)
    for _ in range(100):
        link = server.connect()
        with contextlib.suppress(OSError):
            link.sendall(chance.randbytes(chance.randint(1, 3000)))
    assert server.link().call("getStatus") == 2
