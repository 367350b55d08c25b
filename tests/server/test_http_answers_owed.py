"""Thrift over HTTP: requests that arrive while earlier replies are not read, and requests that contain no call."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hms_cache.store.databases.database_store import Databases
from tests.server.conftest import Running, Serve, request_bytes, table
from tests.server.test_tls import Authority, wait_for

HTTP = {"server.transport_mode": "http"}
LARGE_BYTES = 4_000_000
MANY = 40
GET = request_bytes("get_table", 1, dbname="default", tbl_name="t")
HEAD = b"POST /metastore HTTP/1.1\r\nhost: a\r\n"


def request_of(user: str, body: bytes = GET) -> bytes:
    return HEAD + f"x-actor-username: {user}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def answer_on(sock: socket.socket) -> tuple[int, bytes]:
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return answer.status, answer.read()


def make_large_table(sock: socket.socket) -> None:
    large = table("default", "t", comment="x" * LARGE_BYTES)
    sock.sendall(request_of("ann", request_bytes("create_table", 1, tbl=large)))
    assert answer_on(sock)[0] == 200


def open_connections(server: Running) -> int:
    samples = next(iter(server.service.metrics.server.connections.collect())).samples
    return int(samples[0].value)


def calls(server: Running) -> int:
    return server.service.calls_by_method().get("get_table", 0)


USERS = {"one user": ("ann",), "users who take turns": ("ann", "bob")}


@pytest.mark.parametrize("users", USERS.values(), ids=USERS)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_requests_sent_ahead_wait_until_answers_are_taken(
    serve: Serve, tmp_path: Path, tls: bool, users: Sequence[str]
) -> None:
    """For a client that sends many requests and reads nothing, few replies are made, and the others once it reads."""
    authority = Authority(tmp_path)
    server = serve(**HTTP, **(authority.settings() if tls else {}))
    sock = server.connect()
    if tls:
        sock = authority.client().wrap_socket(sock, server_hostname="localhost")
    make_large_table(sock)
    sock.sendall(b"".join(request_of(users[number % len(users)]) for number in range(MANY)))
    made = -1
    while made != calls(server) or not made:
        made = calls(server)
        time.sleep(0.3)
    assert 1 <= made <= 5
    reader = sock.makefile("rb")
    for _ in range(MANY):
        assert reader.readline() == b"HTTP/1.1 200 \r\n"
        length = 0
        while (line := reader.readline()) != b"\r\n":
            name, _, value = line.lower().partition(b":")
            length = int(value) if name == b"content-length" else length
        assert length > LARGE_BYTES and len(reader.read(length)) == length
    reader.close()
    sock.close()
    wait_for(lambda: open_connections(server) == 0)


def test_who_takes_nothing_is_closed_whoever_asked_last(serve: Serve) -> None:
    server = serve(**HTTP, **{"server.write_timeout_s": 0.5})
    with server.connect() as sock:
        make_large_table(sock)
    with server.connect() as sock:
        sock.sendall(b"".join(request_of(user) for user in ("ann", "bob") * (MANY // 2)))
        wait_for(lambda: calls(server) > 0)
        wait_for(lambda: open_connections(server) == 0)


ONE_WAY = request_bytes("reinitialize", 3)
UNFINISHED = {
    "a header": HEAD + b"content-length: 300\r\n\r\n",
    "half a call": HEAD + b"content-length: %d\r\n\r\n" % len(GET) + GET[:-5],
    "half a one-way call": HEAD + b"content-length: %d\r\n\r\n" % len(ONE_WAY) + ONE_WAY[:-1],
    "half a chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(GET) + GET[:-5],
}


def stop(server: Running) -> None:
    threading.Thread(target=server.service.stop).start()


ENDS: dict[str, tuple[dict[str, object], Callable[[Running], None]]] = {
    "the server stops": ({}, stop),
    "it sends nothing for long": ({"server.idle_timeout_s": 0.5}, lambda server: None),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("request_", UNFINISHED.values(), ids=UNFINISHED)
def test_a_request_that_is_not_carried_out_is_not_told_that_it_was(serve: Serve, end: str, request_: bytes) -> None:
    """Status 200 without a body is the reply to a one-way call; proxies and clients retry after 503."""
    settings, act = ENDS[end]
    server = serve(**HTTP, **settings)
    with server.connect() as sock:
        sock.sendall(request_of("ann", request_bytes("getStatus", 1)))
        assert answer_on(sock)[0] == 200
        sock.sendall(request_)
        time.sleep(0.2)
        act(server)
        status, body = answer_on(sock)
    assert (status, body) == (503, b"")


METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "NONE")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_answered(serve: Serve, method: str, caplog: pytest.LogCaptureFixture) -> None:
    """Load balancers use HEAD, the reply to which has no body; nothing is logged as an error of the server."""
    server = serve(**HTTP)
    for target, status in (("/metastore", 405), ("/other", 404)):
        for version in ("1.0", "1.1"):
            with server.connect() as sock:
                sock.sendall(f"{method} {target} HTTP/{version}\r\nhost: a\r\n\r\n".encode())
                answer = http.client.HTTPResponse(sock, method=method)
                answer.begin()
                assert (answer.status, answer.read() == b"") == (status, method == "HEAD")
                assert (answer.getheader("allow") == "POST") == (status == 405)
                assert int(answer.getheader("content-length") or 0) > 0
                assert sock.recv(1) == b""
    wait_for(lambda: open_connections(server) == 0)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(("provider", "method"), [("none", "getStatus"), ("policy", "get_all_databases")])
def test_a_user_for_whose_name_there_is_no_room_is_told(
    serve: Serve, provider: str, method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The sessions of others use the whole budget; no user is confused with another then."""
    (tmp_path / "policy.toml").write_text("[[grants]]\nusers = ['ann']\nactions = ['read']\ndatabases = ['*']\n")
    policy = {
        "authorization.provider": "policy",
        "authorization.policy_file": str(tmp_path / "policy.toml"),
        "security.accept_insecure": True,
    }
    server = serve(**HTTP, **{"server.sessions_budget_bytes": 0}, **(policy if provider == "policy" else {}))
    for _ in range(3):
        for user in ("ann", "x" * 250):
            with server.connect() as sock:
                sock.sendall(request_of(user, request_bytes(method, 1)))
                status, body = answer_on(sock)
                assert status == 200 and (b"sessions_budget_bytes" in body) == (user != "ann")
    wait_for(lambda: open_connections(server) == 0)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


LIMITS: dict[str, dict[str, object]] = {
    "server.request_timeout_s": {"server.request_timeout_s": 0.2},
    "server.max_in_flight": {"server.max_in_flight": 1},
    "server.max_calls_per_user": {"server.max_calls_per_user": 1},
    "server.max_waiting_per_pool": {"server.threads": 1, "server.max_waiting_per_pool": 1},
}
"""One call is begun, and then one more than there may be; or the time of the first is up."""


@pytest.mark.parametrize("limit", LIMITS)
def test_a_one_way_call_that_is_not_carried_out_is_told_why(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Thrift has no reply for it, but HTTP has."""
    server = serve(**HTTP, **{"cache.enabled": False}, **LIMITS[limit])
    one_way = bytearray(request_bytes("get_all_databases", 1))
    one_way[3] = 4
    proceed, begun = threading.Event(), threading.Semaphore(0)
    original = Databases.get_database_names

    def slow(self: Databases, *arguments: Any, **options: Any) -> list[str]:
        begun.release()
        assert proceed.wait(30)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Databases, "get_database_names", slow)
    try:
        first = server.connect()
        first.sendall(request_of("ann", bytes(one_way)))
        assert begun.acquire(timeout=30)
        told = first
        if limit != "server.request_timeout_s":
            if limit == "server.max_waiting_per_pool":
                server.connect().sendall(request_of("ann", bytes(one_way)))
                registry = server.service.metrics.registry
                wait_for(lambda: registry.get_sample_value("hms_cache_calls_in_flight") == 2)
            told = server.connect()
            told.sendall(request_of("ann", bytes(one_way)))
        status, body = answer_on(told)
        assert (status, limit.encode() in body) == (503, True)
        assert told.recv(1) == b""
    finally:
        proceed.set()
    if told is not first:
        assert answer_on(first) == (200, b"")
