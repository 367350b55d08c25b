"""The PROXY protocol: whose header is believed, what it changes, and what malformed ones cost."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.Thrift import TApplicationException

from hms_cache.app import event_loop
from hms_cache.server.transports.proxy_headers import ProxyHeader, ProxyHeaderError, read_header
from tests.server.conftest import MAX_WAIT_S, Link, Running, Serve, request_bytes
from tests.server.haproxy import haproxy
from tests.server.test_tls import Authority, authority, handshakes, wait_for  # noqa: F401  (a fixture)

CLIENT = "192.0.2.7"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PROXIES = {"server.proxy_protocol_from": "127.0.0.1", "server.audit": "all"}


@pytest.fixture(params=["uvloop", pytest.param("asyncio", marks=pytest.mark.soak)], autouse=True)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They differ in what a protocol may do while it learns of its connection."""
    if request.param == "asyncio":
        monkeypatch.setattr(event_loop, "new_event_loop", asyncio.new_event_loop)
    else:
        pytest.importorskip("uvloop")


def text_header(client: str = CLIENT, port: int = 5000) -> bytes:
    family = "TCP6" if ":" in client else "TCP4"
    here = "::1" if ":" in client else "127.0.0.1"
    return f"PROXY {family} {client} {here} {port} 9083\r\n".encode()


def binary_header(client: str = CLIENT, port: int = 5000, more: bytes = b"", command: int = 0x21) -> bytes:
    address = ipaddress.ip_address(client)
    here = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
    rest = address.packed + here.packed + struct.pack("!HH", port, 9083) + more
    return SIGNATURE + struct.pack("!BBH", command, 0x21 if address.version == 6 else 0x11, len(rest)) + rest


def from_address(server: Running, address: str) -> socket.socket:
    """A connection of another machine: all of 127.0.0.0/8 is this one."""
    return socket.create_connection(("127.0.0.1", server.port), MAX_WAIT_S, source_address=(address, 0))


def outcomes(server: Running) -> dict[str, int]:
    return {name[0]: int(n) for name, n in server.service.metrics.server.proxy_headers.values().items() if n}


def connections(server: Running) -> int:
    (sample,) = next(iter(server.service.metrics.server.connections.collect())).samples
    return int(sample.value)


def audited_addresses(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.name == "hms_cache.audit"]
    return [found[1] for line in lines if (found := re.search(r"\tip=(\S*)\tcmd=get_all_databases", line))]


def closes(sock: socket.socket) -> bool:
    """Whether the server closes the connection without an answer."""
    sock.settimeout(MAX_WAIT_S)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


# The bytes

ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6)


@given(ADDRESSES, st.integers(0, 65535), st.binary(max_size=40), st.binary(max_size=40), st.booleans())
def test_each_header_is_read_whole_and_not_before(
    address: Any, port: int, more: bytes, behind: bytes, is_text: bool
) -> None:
    client = str(address)
    header = text_header(client, port) if is_text else binary_header(client, port, more)
    shown = str(getattr(address, "ipv4_mapped", None) or address)
    assert read_header(header + behind) == ProxyHeader(len(header), (shown, port))
    assert all(read_header(header[:length]) is None for length in range(len(header)))


@given(
    st.binary(max_size=120)
    | st.binary(max_size=120).map(SIGNATURE.__add__)
    | st.binary(max_size=120).map(b"PROXY ".__add__)
    | st.text("PROXYTCP46UNKNOWN 0123456789.:abcdef%\r\n", max_size=120).map(lambda text: f"PROXY {text}".encode())
)
def test_any_bytes_are_a_header_the_beginning_of_one_or_refused(data: bytes) -> None:
    try:
        header = read_header(data)
    except ProxyHeaderError:
        return
    if header is None:
        assert len(data) < 16 + 65535
        return
    assert header.length_bytes <= len(data)
    if header.client is not None:
        address, port = header.client
        assert str(ipaddress.ip_address(address)) == address and 0 <= port <= 65535


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ::1 ::1 1 2\r\n",
        binary_header(command=0x20),
        SIGNATURE + b"\x20\x00\x00\x00",
        SIGNATURE + b"\x21\x00\x00\x03abc",
        SIGNATURE + b"\x21\x31\x00\xd8" + b"/run/socket".ljust(216, b"\0"),
    ],
)
def test_a_header_without_an_address_leaves_that_of_the_proxy(header: bytes) -> None:
    assert read_header(header + b"x") == ProxyHeader(len(header), None)


@pytest.mark.parametrize(
    "header",
    [
        b"x",
        b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2 3\r\n",
        b"PROXY  TCP4 192.0.2.7 127.0.0.1 1 2\r\n",
        b"PROXY TCP4 192.0.2.7 127.0.0.1 1 65536\r\n",
        b"PROXY TCP4 192.0.2.7 127.0.0.1 -1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 192.0.2.7 127.0.0.1 1 2\r\n",
        b"PROXY UDP4 192.0.2.7 127.0.0.1 1 2\r\n",
        "PROXY TCP4 192.0.2.٧ 127.0.0.1 1 2\r\n".encode(),
        b"PROXY TCP4 " + b"1" * 96,
        SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
        SIGNATURE + b"\x21\x21\x00\x0c" + bytes(12),
    ],
)
def test_a_malformed_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        read_header(header)


def test_the_name_of_an_interface_of_the_proxy_is_left_out() -> None:
    header = b"PROXY TCP6 fe80::1%x fe80::2 1 2\r\n"
    assert read_header(header) == ProxyHeader(len(header), ("fe80::1", 1))


# Connections


@pytest.mark.parametrize("header", [text_header(), binary_header(), binary_header(more=b"\x04\x00\x01x")])
@pytest.mark.parametrize("piece_bytes", [1, 7, 1000])
def test_the_clients_address_counts_in_place_of_the_proxys(
    serve: Serve, caplog: pytest.LogCaptureFixture, header: bytes, piece_bytes: int
) -> None:
    server = serve(**PROXIES)
    link = server.link()
    link.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = header + link.request("get_all_databases")
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        for start in range(0, len(data), piece_bytes):
            link.sock.sendall(data[start : start + piece_bytes])
        assert link.reply("get_all_databases") == ["default"]
        assert link.call("get_database", name="default").name == "default"
        server.service.stop()
    assert audited_addresses(caplog) == [CLIENT]
    assert outcomes(server) == {"ok": 1}


def test_hot_reads_are_answered_as_without_a_proxy(serve: Serve) -> None:
    server = serve(**PROXIES)
    link = server.link()
    link.sock.sendall(text_header())
    for _ in range(3):
        link.call("get_database", name="default")
    link.sock.sendall(b"".join(request_bytes("get_database", n, name="default") for n in range(50, 80)))
    for number in range(50, 80):
        link.sequence = number
        assert link.reply("get_database").name == "default"


def test_limits_count_each_client_of_a_proxy(serve: Serve) -> None:
    server = serve(**PROXIES, **{"server.max_connections_per_address": 2})
    for client in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
        links = [server.link() for _ in range(3)]
        for link in links:
            link.sock.sendall(binary_header(client))
        assert [link.call("getStatus") for link in links[:2]] == [2, 2]
        with pytest.raises(TApplicationException, match=f"2 are open from {client}"):
            links[2].call("getStatus")


def test_a_health_check_of_the_proxy_is_a_client_with_its_address(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(**PROXIES)
    link = server.link()
    link.sock.sendall(binary_header(command=0x20))
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        link.call("get_all_databases")
        server.service.stop()
    assert audited_addresses(caplog) == ["127.0.0.1"]
    assert outcomes(server) == {"local": 1}


def test_others_send_no_header_and_cannot_claim_an_address(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(**PROXIES)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        with from_address(server, "127.0.0.2") as direct:
            Link(direct).call("get_all_databases")
        for header in (text_header(), binary_header()):
            with from_address(server, "127.0.0.2") as claiming:
                claiming.sendall(header + request_bytes("get_all_databases", 1))
                assert CLIENT.encode() not in received(claiming)
        server.service.stop()
    assert audited_addresses(caplog) == ["127.0.0.2"]
    assert outcomes(server) == {}


def received(sock: socket.socket) -> bytes:
    data = b""
    with sock:
        sock.settimeout(MAX_WAIT_S)
        try:
            while piece := sock.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
    return data


@pytest.mark.parametrize("data", [request_bytes("getStatus", 1), b"PROXY TCP4 x\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_proxy_without_a_valid_header_is_closed(serve: Serve, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    server = serve(**PROXIES)
    for _ in range(3):
        sock = server.connect()
        sock.sendall(data)
        assert closes(sock)
    assert outcomes(server) == {"invalid": 3}
    lines = [record.getMessage() for record in caplog.records if "PROXY header" in record.getMessage()]
    assert len(lines) == 1 and "127.0.0.1" in lines[0]
    assert connections(server) == 0


def test_connections_without_a_header_end_in_time_and_are_limited(serve: Serve) -> None:
    server = serve(**PROXIES, **{"server.first_call_timeout_s": 1.0, "server.max_connections": 3})
    silent = [server.connect() for _ in range(4)]
    assert closes(silent[0]), "the oldest one makes room"
    link = server.link()
    link.sock.sendall(text_header())
    assert link.call("getStatus") == 2
    assert all(map(closes, silent[1:]))
    assert outcomes(server) == {"ok": 1, "timeout": 4}


@pytest.mark.parametrize("begun", [b"", b"PROXY TCP4"])
def test_the_server_closes_connections_without_a_header_when_it_stops(serve: Serve, begun: bytes) -> None:
    server = serve(**PROXIES)
    sock, after = server.connect(), server.link()
    sock.sendall(begun)
    after.sock.sendall(text_header())
    assert after.call("getStatus") == 2
    server.service.stop()
    assert closes(sock)
    assert outcomes(server) == {"ok": 1, "closed": 1}


def test_a_proxy_that_connects_and_leaves_writes_no_line(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(**PROXIES)
    caplog.clear()
    for number in range(20):
        sock = server.connect()
        if number % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    link = server.link()
    link.sock.sendall(text_header())
    assert link.call("getStatus") == 2
    wait_for(lambda: outcomes(server)["closed"] >= 10)  # a reset one may never be accepted
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_health_check_of_a_port_with_tls_writes_no_line_either(
    serve: Serve,
    authority: Authority,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = serve(**authority.settings())
    caplog.clear()
    for _ in range(3):
        server.connect().close()
    wait_for(lambda: handshakes(server) == {"closed": 3})
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    sock = server.connect()
    sock.sendall(b"\x16")
    sock.close()
    wait_for(lambda: handshakes(server) == {"closed": 4})
    assert [record for record in caplog.records if "ended in the handshake" in record.getMessage()]


@pytest.mark.parametrize("header", [text_header(), binary_header()])
def test_the_header_precedes_tls(
    serve: Serve,
    authority: Authority,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
    header: bytes,
) -> None:
    server = serve(**authority.settings(**PROXIES))
    sock = server.connect()
    sock.sendall(header)
    link = Link(authority.client().wrap_socket(sock, server_hostname="localhost"))
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        assert link.call("get_all_databases") == ["default"]
        link.sock.close()
        server.service.stop()
    assert audited_addresses(caplog) == [CLIENT]


# A real proxy

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def configuration_of_the_page() -> str:
    """The configuration of HAProxy that the page shows."""
    blocks = PAGE.read_text().split("```")[1::2]
    (found,) = [block for block in blocks if "send-proxy-v2" in block]
    return found


def through(port: int, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), MAX_WAIT_S, source_address=(address, 0))


@pytest.mark.parametrize("version", ["send-proxy", "send-proxy-v2"])
@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "tls"])
def test_haproxy_names_its_clients(
    serve: Serve,
    authority: Authority,  # noqa: F811
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    version: str,
    is_secure: bool,
) -> None:
    server = serve(**authority.settings(**PROXIES)) if is_secure else serve(**PROXIES)
    configuration = f"""
listen metastore
    bind 127.0.0.1:PORT
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    server one 127.0.0.1:{server.port} {version} check check-send-proxy inter 100ms
"""
    with haproxy(tmp_path, configuration) as port, caplog.at_level(logging.INFO, "hms_cache.audit"):
        wait_for(lambda: "local" in outcomes(server) or "ok" in outcomes(server))  # its health check
        for address in ("127.0.0.5", "127.0.0.6"):
            sock = through(port, address)
            with authority.client().wrap_socket(sock, server_hostname="localhost") if is_secure else sock as used:
                assert Link(used).call("get_all_databases") == ["default"]
        server.service.stop()
    assert audited_addresses(caplog) == ["127.0.0.5", "127.0.0.6"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_configuration_of_the_page_balances_and_leaves_out_a_server_that_is_not_ready(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    servers = [serve(**PROXIES, **{"admin.host": "127.0.0.1"}) for _ in range(2)]
    configuration = configuration_of_the_page().replace("bind :9083", "bind 127.0.0.1:PORT")
    for number, server in enumerate(servers, 1):
        configuration = configuration.replace(f"metastore-{number}.example:9083", f"127.0.0.1:{server.port}").replace(
            "check port 9085", f"check port {management_port(server)} inter 100ms", 1
        )
    with haproxy(tmp_path, configuration) as port, caplog.at_level(logging.INFO, "hms_cache.audit"):
        socks = [through(port, f"127.0.0.{number}") for number in range(5, 9)]
        for sock in socks:
            assert Link(sock).call("get_all_databases") == ["default"]
        used = [connections(server) for server in servers]
        for sock in socks:
            sock.close()
        servers[0].service.stop()
        retrying(lambda: Link(through(port, "127.0.0.9")).call("get_all_databases"), times=3)
        servers[1].service.stop()
    assert used == [2, 2]
    assert sorted(audited_addresses(caplog))[:4] == [f"127.0.0.{number}" for number in range(5, 9)]
    assert audited_addresses(caplog)[-1] == "127.0.0.9"


def management_port(server: Running) -> int:
    address = server.service.management_address
    assert address is not None
    return address[1]


def retrying(call: Callable[[], object], times: int) -> None:
    """Succeeds `times` in a row, after HAProxy has noticed that a server is gone."""
    end_s = time.monotonic() + MAX_WAIT_S
    succeeded = 0
    while succeeded < times:
        try:
            call()
            succeeded += 1
        except (EOFError, OSError):
            assert time.monotonic() < end_s
            succeeded = 0
