"""X-Forwarded-For: whose header is believed, which of its addresses counts, and what it changes."""

from __future__ import annotations

import http.client
import ipaddress
import logging
import re
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from hms_cache.config import load
from hms_cache.errors import ConfigurationError
from hms_cache.server.transports.http_requests import forwarded_address
from hms_cache.server.transports.trusted_networks import TrustedNetworks
from tests.server.conftest import MAX_WAIT_S, Running, Serve, request_bytes
from tests.server.haproxy import haproxy
from tests.server.test_http import HTTP, HttpClient

FORWARDED = {**HTTP, "server.http_forwarded_from": "127.0.0.1", "server.audit": "all"}
ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6).filter(lambda address: address.ipv4_mapped is None)


def written(address: Any, port: int | None) -> str:
    """An address as proxies write it."""
    if port is None:
        return str(address)
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


@given(
    claimed=st.lists(st.text("0123456789abcdef:.[]%x, ", max_size=20), max_size=3),
    client=ADDRESSES,
    proxies=st.lists(ADDRESSES, max_size=4),
    port=st.none() | st.integers(0, 65535),
    lines=st.integers(1, 3),
)
def test_the_last_address_that_is_no_proxys_counts_whatever_a_client_claims(
    claimed: list[str], client: Any, proxies: list[Any], port: int | None, lines: int
) -> None:
    """Each proxy adds the address of the one before it. A proxy may begin a new line for it."""
    proxies = [one for one in proxies if one != client]
    named = [*claimed, written(client, port), *map(str, proxies)]
    headers: Iterable[tuple[bytes, bytes]]
    if lines == 1:
        headers = [(b"x-forwarded-for", ", ".join(named).encode())]
    else:
        headers = [(b"x-forwarded-for", name.encode()) for name in named]
    trusted = TrustedNetworks([*map(str, proxies), "10.255.0.0/24"] if proxies else [])
    if not proxies or client not in ipaddress.ip_network("10.255.0.0/24"):
        assert forwarded_address(headers, trusted) == str(client)


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("192.0.2.1, 127.0.0.1", "192.0.2.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2,127.0.0.1", "127.0.0.2"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("x, 192.0.2.1,", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("", None),
    ],
)
def test_addresses_of_headers(header: str, address: str | None) -> None:
    headers = [(b"x-forwarded-for", header.encode()), (b"x-real-ip", b"192.0.2.99")]
    assert forwarded_address(headers, TrustedNetworks(["127.0.0.0/31"])) == address


@pytest.mark.parametrize("header", ["unknown", "192.0.2.1, x", "[192.0.2.1", "192.0.2.1:x", "1.2.3", "٣.1.1.1"])
def test_what_is_no_address_is_an_error(header: str) -> None:
    with pytest.raises(ValueError, match="is not an IP address"):
        forwarded_address([(b"x-forwarded-for", header.encode())], TrustedNetworks([]))


def call(server: Running, method: str = "get_all_databases", source: str = "127.0.0.1", **headers: str) -> int:
    """Sends a request on a new socket. Returns the status."""
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=MAX_WAIT_S, source_address=(source, 0))
    with closing(link):
        link.request("POST", "/metastore", request_bytes(method, 1), headers)
        return link.getresponse().status


def audited(caplog: pytest.LogCaptureFixture, server: Running) -> list[tuple[str, str]]:
    """Users and addresses of calls, when all lines are written."""
    server.service.stop()
    lines = [record.getMessage() for record in caplog.records if record.name == "hms_cache.audit"]
    return [(m[1], m[2]) for one in lines if (m := re.search(r"ugi=(\S*)\tip=(\S*)\tcmd=get_all_databases", one))]


def test_requests_of_one_socket_have_their_own_addresses_and_users(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(**FORWARDED)
    requests = [("ann", "192.0.2.1"), ("ann", "192.0.2.2"), ("bob", "192.0.2.2"), ("bob", ""), ("bob", "192.0.2.2")]
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=MAX_WAIT_S)
    with closing(link), caplog.at_level(logging.INFO, "hms_cache.audit"):
        for user, address in requests:
            headers = {"x-actor-username": user, **({"X-Forwarded-For": address} if address else {})}
            link.request("POST", "/metastore", request_bytes("get_all_databases", 1), headers)
            answer = link.getresponse()
            assert answer.status == 200 and answer.read()
        assert audited(caplog, server) == [(user, address or "127.0.0.1") for user, address in requests]


def test_the_header_of_others_has_no_effect(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(**FORWARDED)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        assert call(server, source="127.0.0.2", **{"X-Forwarded-For": "192.0.2.1"}) == 200
        assert call(server, source="127.0.0.2", **{"X-Forwarded-For": "x"}) == 200
        assert [address for _, address in audited(caplog, server)] == ["127.0.0.2"] * 2


def test_a_proxy_that_names_no_address_is_refused(serve: Serve) -> None:
    server = serve(**FORWARDED)
    assert call(server, **{"X-Forwarded-For": "unknown"}) == 400
    assert call(server) == 200


def test_limits_count_each_client_of_a_proxy(serve: Serve) -> None:
    server = serve(**FORWARDED, **{"server.max_connections_per_address": 2})
    url = f"http://127.0.0.1:{server.port}/metastore"
    for address in ("192.0.2.1", "192.0.2.2"):
        clients = [HttpClient(url, **{"X-Forwarded-For": address}) for _ in range(2)]
        for one in clients:
            assert one.metastore.get_all_databases() == ["default"]
        third = HttpClient(url, **{"X-Forwarded-For": address})
        with pytest.raises((TApplicationException, TTransportException)) as refused:
            third.metastore.get_all_databases()
        assert f"2 are open from {address}" in str(refused.value)
        for one in (*clients, third):
            one.close()


@pytest.mark.parametrize("named", [True, False])
def test_connections_of_a_proxy_that_have_had_no_request_are_no_clients(serve: Serve, named: bool) -> None:
    """A proxy opens them in bursts. Without the header, its own address is limited as any other."""
    server = serve(**FORWARDED, **{"server.max_connections_per_address": 2})
    links = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=MAX_WAIT_S) for _ in range(50)]
    with ExitStack() as stack:
        for link in links:
            stack.enter_context(closing(link)).connect()
        answers = []
        for number, link in enumerate(links):
            headers = {"X-Forwarded-For": f"192.0.2.{number}"} if named else {}
            link.request("POST", "/metastore", request_bytes("get_all_databases", 1), headers)
            answers.append(b"too many connections: 2 are open from 127.0.0.1" in link.getresponse().read())
    assert answers == [False] * 50 if named else answers[:4] == [False, False, True, True]


@pytest.mark.parametrize("network", ["10.1.0.0/16", "::ffff:10.1.0.0/112", "::ffff:10.1.2.3"])
def test_networks_of_ipv4_can_be_written_as_ipv6(network: str) -> None:
    trusted = TrustedNetworks([network])
    assert "10.1.2.3" in trusted and "::ffff:10.1.2.3" in trusted
    assert "10.2.2.3" not in trusted and "::a01:203" not in trusted


@pytest.mark.parametrize("text", ["x", "10.0.0.7/8", "2001:db8::1/64", "10.0.0.0/33"])
@pytest.mark.parametrize("setting", ["http_forwarded_from", "proxy_protocol_from"])
def test_networks_are_checked(setting: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{setting}: '{text}' is neither an IP address nor a network"):
        load(command_line={f"server.{setting}": text}, environment={})


def test_haproxy_names_its_clients(serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With one connection to the server for all clients."""
    server = serve(**FORWARDED)
    configuration = f"""
defaults
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 1m
listen metastore
    bind 127.0.0.1:PORT
    option forwardfor
    http-reuse always
    server one 127.0.0.1:{server.port}
"""
    sources = ["127.0.0.5", "127.0.0.6", "127.0.0.5"]
    with haproxy(tmp_path, configuration) as port, caplog.at_level(logging.INFO, "hms_cache.audit"):
        for source in sources:
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=MAX_WAIT_S, source_address=(source, 0))
            with closing(link):
                headers = {"X-Forwarded-For": "192.0.2.9"}  # what a client claims stays in front
                link.request("POST", "/metastore", request_bytes("get_all_databases", 1), headers)
                assert link.getresponse().status == 200
        assert [address for _, address in audited(caplog, server)] == sources
