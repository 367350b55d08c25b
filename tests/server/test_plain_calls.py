"""The error for a client that speaks plain Thrift to another kind of port: its cost is limited."""

from __future__ import annotations

import struct

import pytest

from hms_cache.server.transports.plain_calls import TLS_REQUIRED, refusal_of_plain_call
from tests.server.conftest import Serve, request_bytes

FIRST_CALLS = (
    request_bytes("getName", 1),
    request_bytes("get_database", 1, name="default"),
    request_bytes("set_ugi", 1, user_name="ann", group_names=[f"department-{number}" for number in range(200)]),
)


def call_of_structs_without_fields() -> bytes:
    """As long as the examined part. Each byte of it is an object of fourteen fields: decoding it takes some 100 ms."""
    name, count = b"add_partitions", 65_000
    head = struct.pack("!iI", -2147418111, len(name)) + name + struct.pack("!i", 1)
    return head + b"\x0f\x00\x01\x0c" + struct.pack("!I", count) + bytes(count) + b"\x00"


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_first_calls_are_told_what_the_port_speaks(call: bytes) -> None:
    # Another process may have used the processor for longer than a slice, but does not do so each time.
    refusals = (refusal_of_plain_call(call) for _ in range(100))
    assert TLS_REQUIRED.encode() in next(filter(None, refusals), b"")


def test_a_call_that_takes_long_to_decode_is_told_nothing() -> None:
    """The client has not authenticated, and all others wait meanwhile."""
    assert refusal_of_plain_call(call_of_structs_without_fields()) == b""


def test_a_server_says_no_more_to_it(serve: Serve) -> None:
    server = serve(**{"server.transport_mode": "http"})
    for call, is_told in ((FIRST_CALLS[0], True), (call_of_structs_without_fields(), False)):
        with server.connect() as sock:
            sock.sendall(call)
            assert (b"speaks HTTP" in sock.recv(1 << 16)) == is_told
