"""The management port and strangers: pages of other sites, host names that resolve to it, clients that stall."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import itertools
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.routing import Route
from starlette.types import Message, Scope

from hms_cache.admin.application import build_application
from hms_cache.admin.commands.routes import COMMANDS
from hms_cache.admin.guard import is_allowed_host
from hms_cache.admin.history import History, Sample
from hms_cache.admin.pages import cache
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.admin.status import CacheStatus, cache_status
from hms_cache.server import faults
from tests.admin.running import TOKEN, Running
from tests.consistency.observers import wait_until

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")

#: The requests: their headers, whether they may read, and whether they may send commands.
CALLERS: dict[str, tuple[dict[str, str], bool, bool]] = {
    "no token": ({}, True, False),
    "wrong token": ({"Authorization": "Bearer wrong"}, True, False),
    "empty token": ({"Authorization": "Bearer "}, True, False),
    "broken password": ({"Authorization": "Basic !!"}, True, False),
    "token": ({"Authorization": f"Bearer {TOKEN}"}, True, True),
    "password": ({"Authorization": "Basic " + base64.b64encode(f"x:{TOKEN}".encode()).decode()}, True, True),
    "other site": ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, True, False),
    "sandboxed page": ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, True, False),
    "cross-site form": ({"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "cross-site"}, True, False),
    "same-site form": ({"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "same-site"}, True, False),
    "rebound name": ({"Authorization": f"Bearer {TOKEN}", "Host": "rebound.evil.example"}, False, False),
    "own page": ({"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "same-origin"}, True, True),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(tmp_path_factory.mktemp("management"), admin__max_connections=32, admin__request_timeout_s=2)
    yield server
    server.close()


def address(running: Running) -> tuple[str, int]:
    assert running.service.management_address is not None
    return running.service.management_address


def status_of(running: Running, method: str, path: str, headers: dict[str, str]) -> int:
    """Returns the reply's status. Each reply must forbid browsers to execute anything in it, or to show it in another
    page."""
    connection = http.client.HTTPConnection(*address(running), timeout=30)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        if answer.headers.get_content_type() != "text/event-stream":  # which has no end
            answer.read()
        what = f"{method} {path}: {answer.status}"
        assert answer.headers["X-Content-Type-Options"] == "nosniff", what
        policy = answer.headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"} <= set(policy), what
        return answer.status
    finally:
        connection.close()


def routes(running: Running) -> list[tuple[str, frozenset[str]]]:
    """Each path of the application, with its methods: a new route is tested without being listed."""
    guard = build_application(running.sources, running.probe, running.history, Siblings())
    found = []
    for route in guard.routes:
        assert isinstance(route, Route)
        path = route.path_format.replace("{name}", "shop.t")
        found += [
            (path.replace("{command}", command), frozenset(route.methods or ()))
            for command in ((*COMMANDS, "pause", "nonsense") if "{command}" in path else ("",))
        ]
    return found


def test_every_route_method_and_caller(running: Running) -> None:
    """Reading needs one of our host names; a command needs the token, and a page of ours or a program."""
    assert len(routes(running)) > 20
    for (path, methods), method, caller in itertools.product(routes(running), METHODS, CALLERS):
        if path == "/commands/verify" or (path, caller) == ("/events/pause", "token"):
            continue  # executed elsewhere in the tests; their effect does not matter here
        headers, may_read, may_command = CALLERS[caller]
        status = status_of(running, method, path, headers)
        what = f"{method} {path} by {caller}: {status}"
        if not may_read:
            assert status == 421, what
        elif method not in ("GET", "HEAD", "OPTIONS") and ("Origin" in headers or "site" in caller):
            assert status == 403, what
        elif method not in methods:
            assert status == 405, what
        elif method == "POST":
            assert (status == 401) == (not may_command), what
        else:
            assert status in (200, 404, 503), what


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:9085", True),
        ("[::1]:9085", True),
        ("10.1.2.3", True),
        ("localhost:9085", True),
        ("hms1", True),
        ("hms.data.svc.cluster.local:9085", True),
        ("ops.example.com", True),
        ("OPS.example.com.:80", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("ops.example.com.evil.example", False),
        ("localhost:9085@evil.example", False),
        ("evil.example/ops.example.com", False),
        ("evil.example?x.svc", False),
        ("evil.example#.svc", False),
        ("evil\u2024example", False),
        ("a:b:c", False),
        ("", False),
    ],
)
def test_which_names_are_answered(host: str, allowed: bool) -> None:
    assert is_allowed_host(host, ("localhost", "*.svc.cluster.local", "ops.example.com")) is allowed


def exchange(running: Running, request: bytes) -> bytes:
    """Reads until the port closes the connection."""
    with socket.create_connection(address(running), timeout=30) as connection:
        connection.sendall(request)
        received = b""
        try:
            while data := connection.recv(65536):
                received += data
        except ConnectionResetError:
            pass
        return received


HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
HIDDEN = b"0\r\n\r\nGET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
"""The end of a body in chunks, and what another way of reading takes for the body's rest."""


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n", b"400"),
        (b"POST /commands/flush HTTP/1.1\r\n" + HOST + b"Content-Length: 999999999\r\n\r\n", b"413"),
        (b"POST /commands/flush HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", b"400"),
        (b"GET /livez HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 100_000, b"431"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10 + b"\r\n\r\n", b"400"),
        (b"GET /livez HTTP/1.0\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n", b"200"),
        (b"POST /metastore HTTP/1.1\r\n" + HOST + CHUNKED + b"-1\r\nabc\r\n0\r\n\r\n", b"411"),
        (b"POST /commands/flush HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n" + CHUNKED + HIDDEN, b"400"),
        (b"GET /livez HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 300 + b"\r\n", b"431"),
        (b"GET /livez HTTP/1.1\r\n" + HOST + b"X: y\r\n Content-Length: 9\r\n\r\n", b"400"),
        (b"GET /livez HTTP/1.1\r\n" + HOST + b"X: y\nContent-Length: 9\r\n\r\n", b"400"),
        (b"GET /livez HTTP/2.0\r\n" + HOST + b"\r\n", b"505"),
        (b"HEAD /livez HTTP/2.0\r\n" + HOST + b"\r\n", b"505"),
        (b"HEAD /livez HTTP/1.1\r\n" + HOST + CHUNKED + HIDDEN, b"411"),
        (b"HEAD /livez HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n" + CHUNKED + HIDDEN, b"400"),
        # Slow: the end of the header never arrives, and the connection is closed anyway.
        (b"GET /livez HTTP/1.1\r\nHo", b""),
        (b"", b""),
    ],
    ids=[
        *("two hosts", "large body", "negative body", "large header", "TLS", "HTTP 1.0", "websocket", "negative chunk"),
        *("two ends", "many lines", "folded line", "half a line end", "HTTP 2.0", "HEAD of HTTP 2.0", "HEAD in chunks"),
        *("HEAD with two ends", "half", "silence"),
    ],
)
def test_strange_requests_end_and_write_no_line(
    running: Running, caplog: pytest.LogCaptureFixture, request_bytes: bytes, status: bytes
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = exchange(running, request_bytes)
    assert answer.split(b" ")[1:2] == ([status] if status else [])
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert not answer or b"\r\nx-content-type-options: nosniff\r\n" in answer.lower()
    assert [record for record in caplog.records if record.name.startswith(("uvicorn", "hms_cache.a", "asyncio"))] == []
    assert b"bytearray" not in answer
    assert running.ask("/livez")[0] == 200


def test_after_a_request_without_a_body_a_malformed_one_has_its_answer_in_full(running: Running) -> None:
    answer = exchange(running, b"HEAD /livez HTTP/1.1\r\n" + HOST + b"\r\nno request\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 2 and answer.endswith(
        b"not a request of HTTP: illegal request line: 'no request'\n"
    )


@pytest.mark.parametrize(
    "target", ["GET /changes", "POST /commands/verify", "GET /livez", "POST /livez", "GET /nothing"]
)
@pytest.mark.parametrize("size", [1, 1024 * 1024])
def test_bodies_in_chunks_are_not_read(running: Running, target: str, size: int) -> None:
    """A chunk of one byte is as much work as one of any size, and all received bytes were parsed at once: for seconds,
    no probe was answered. The client gets the reason although it has sent more than is read."""
    head = f"{target} HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode() + HOST + CHUNKED
    chunk = b"%x\r\n%s\r\n" % (size, b"x" * size)
    answer = exchange(running, head + chunk * (2 * 1024 * 1024 // size))
    assert answer.startswith(b"HTTP/1.1 411 ")
    assert answer.endswith(b"\r\n\r\nno request here has a body in chunks: send its content-length, or no body\n")


def test_one_address_leaves_room_for_others(running: Running) -> None:
    """Idle sockets above the share of an address are closed at once; when they time out, there is room again."""
    refused = "hms_cache_management_connections_refused_total"
    registry = running.sources.metrics.registry
    before = registry.get_sample_value(refused) or 0
    with socket.create_connection(address(running), timeout=30) as first:
        others = [socket.create_connection(address(running), timeout=30) for _ in range(20)]
        closed = [connection for connection in others if _is_closed(connection)]
        for connection in others:
            connection.close()
        assert first.fileno() >= 0
    assert len(closed) >= 20 - 32 // 4
    assert (registry.get_sample_value(refused) or 0) - before >= 20 - 32 // 4
    assert running.ask("/livez")[0] == 200


def test_answers_for_clients_that_have_left_are_bounded(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages were made for clients that had sent a request and disconnected: any number of them waited for threads."""
    begun, go_on = [], threading.Event()

    def slow(_: History) -> tuple[Sample, ...]:
        begun.append(1)
        go_on.wait(60)
        return ()

    def sample(name: str) -> int:
        return int(running.sources.metrics.registry.get_sample_value(f"hms_cache_management_{name}") or 0)

    monkeypatch.setattr(History, "samples", slow)
    wait_until(lambda: not sample("connections"), "earlier clients have left")
    before = sample("connections_refused_total")
    for _ in range(40):
        with (
            socket.create_connection(address(running), timeout=30) as connection,
            contextlib.suppress(OSError),  # refused: it was cut off
        ):
            connection.sendall(b"GET /events HTTP/1.1\r\n" + HOST + b"\r\n")
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b"", "the port has seen that the client has left"
    wait_until(lambda: len(begun) + sample("connections_refused_total") - before == 40, "all were taken or refused")
    assert len(begun) <= 32 // 4
    go_on.set()
    wait_until(lambda: not sample("connections"), "their places are free again")
    assert running.ask("/events")[0] == 200


def test_pages_about_all_that_is_held_are_made_one_at_a_time(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread that computes delays the one that answers calls, since they share the interpreter."""
    begun, go_on = [], threading.Event()

    def slow(sources: AdminSources) -> CacheStatus:
        begun.append(1)
        go_on.wait(60)
        return cache_status(sources)

    monkeypatch.setattr(cache, "cache_status", slow)
    with ThreadPoolExecutor(4) as clients:
        requested = [clients.submit(running.ask, "/cache") for _ in range(4)]
        wait_until(lambda: bool(begun), "the first is being made")
        for _ in range(20):
            assert running.ask("/events")[0] == 200, "others are made meanwhile"
        assert len(begun) == 1
        go_on.set()
        assert [one.result(60)[0] for one in requested] == [200] * 4


def _is_closed(connection: socket.socket) -> bool:
    """At once, or by the time-out for its header, which the others reach later."""
    try:
        return connection.recv(1) == b""
    except OSError:
        return True


NUMBERS = ("1" * 5_000, "9" * 30, "9" * 19, "-1", "1e400", "nan", "\u0663", "\x00", "\ud800", "")
PARAMETERS = (
    *("worker", "sample", "seed", "event_id", "wait_s", "lock_id", "after", "format", "messages", "force"),
    *("catalog", "database", "table", "partition"),
)


def test_no_value_of_a_parameter_makes_a_request_fail_inside(running: Running) -> None:
    """Requested from the application of one of two workers, since some parameters exist only with workers."""
    application = build_application(running.sources, running.probe, running.history, Siblings(0, 2))

    async def ask(method: str, path: str, query: str) -> int:
        statuses: list[int] = []

        async def receive() -> Message:
            await asyncio.sleep(0 if statuses else 0.01)
            return {"type": "http.disconnect" if statuses else "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
        scope: Scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "http_version": "1.1", "scheme": "http"}
        with contextlib.suppress(Exception):  # uvicorn would log it
            await application(scope, receive, send)
        return statuses[0]

    async def query_all() -> None:
        for path, methods in routes(running):
            if path.startswith(("/events/pause", "/events/resume", "/events/resync")):
                continue
            for name, value in itertools.product(PARAMETERS, NUMBERS):
                query = urlencode({"database": "d", "table": "t", name: value}, errors="surrogatepass")
                status = await ask("POST" if "POST" in methods else "GET", path, query)
                assert status != 500, f"{path}?{query[:200]}"

    asyncio.run(query_all())


def test_a_defect_writes_its_trace_once(
    running: Running, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: History) -> None:
        raise RuntimeError("a defect\nof ours")

    monkeypatch.setattr(faults, "_logged_traces", set())
    monkeypatch.setattr(History, "samples", fail)
    with caplog.at_level(logging.ERROR):
        for number in range(1, 4):
            assert running.ask("/events")[0] == 500
            records: list[logging.LogRecord] = []
            while len(records) < number:  # a line is written after the answer
                assert running.ask("/livez")[0] == 200
                records = [record for record in caplog.records if record.name.startswith("uvicorn")]
    assert [bool(record.exc_info) for record in records] == [True, False, False]
    assert all("a defect\\nof ours" in record.getMessage() for record in records)


def test_secrets_are_masked_in_any_answer(tmp_path: Path) -> None:
    """As in a driver's error text: a request's own text is part of the reply."""
    server = Running(tmp_path, database__password="correct-horse-battery")
    try:
        for path in ("/config", "/config?format=html", "/commands/flush?partition=x", "/table/correct-horse-battery"):
            for post in (False, True):
                assert "correct-horse" not in server.ask(path, TOKEN, post=post)[1]
    finally:
        server.close()


def test_an_address_that_a_client_claims_is_not_told(running: Running) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "203.0.113.77"}
    assert status_of(running, "POST", "/locks/release?lock_id=999", headers) == 404
    status, page = running.ask("/operations")
    assert status == 200 and "203.0.113.77" not in page and "127.0.0.1" in page
