"""Thrift over HTTP: whole calls by foreign clients, what is refused, and the separation of users of one socket."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.THttpClient import THttpClient

from hms_cache.errors import StartupError
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.server.conftest import Running, Serve, database, request_bytes, table
from tests.server.test_tls import Authority, wait_for

HTTP = {"server.transport_mode": "http"}


class HttpClient:
    """Apache Thrift's, with the generated client."""

    def __init__(self, url: str, protocol: type = TBinaryProtocol, **headers: str) -> None:
        self.transport = THttpClient(url)
        self.transport.setCustomHeaders(headers)
        self.transport.setTimeout(30_000)
        self.metastore = ThriftHiveMetastore.Client(protocol(self.transport))

    def close(self) -> None:
        self.transport.close()


@pytest.fixture
def server(serve: Serve) -> Running:
    return serve(**HTTP, **{"server.http_header_timeout_s": 1})


def client(server: Running, protocol: type = TBinaryProtocol, **headers: str) -> HttpClient:
    return HttpClient(f"http://127.0.0.1:{server.port}/metastore", protocol, **headers)


def post(
    server: Running, body: bytes, path: str = "/metastore", method: str = "POST", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize("protocol", [TBinaryProtocol, TCompactProtocol])
def test_calls_of_all_sizes(server: Running, protocol: type) -> None:
    with closing(client(server, protocol, **{"x-actor-username": "ann"})) as ann:
        ann.metastore.create_database(database("d"))
        for size in (0, 1, 65_000, 3_000_000):
            ann.metastore.create_table(table("d", f"t{size}", comment="x" * size))
        for _ in range(3):
            assert len(ann.metastore.get_table("d", "t3000000").parameters["comment"]) == 3_000_000
            assert ann.metastore.get_database("d").name == "d"
        with pytest.raises(NoSuchObjectException):
            ann.metastore.get_table("d", "none")
        assert ann.metastore.get_database("d").name == "d"


def test_one_socket_many_calls_one_of_them_one_way(server: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with closing(connection):
        for number in range(1, 30):
            one_way = number % 7 == 0
            method, arguments = ("reinitialize", {}) if one_way else ("get_database", {"name": "default"})
            connection.request("POST", "/metastore", request_bytes(method, number, **arguments))
            answer = connection.getresponse()
            assert answer.status == 200
            assert (answer.read() == b"") == one_way
        connection.request("POST", "/metastore", request_bytes("shutdown", 99))
        assert connection.getresponse().status == 200
    assert server.service is not None
    assert post(server, request_bytes("getStatus", 1))[0] == 200


def test_requests_that_do_not_wait_and_bodies_in_pieces(server: Running) -> None:
    body = request_bytes("get_database", 1, name="default")
    head = b"POST /metastore HTTP/1.1\r\nhost: h\r\n"
    plain = head + b"content-length: %d\r\n\r\n" % len(body) + body
    chunked = head + b"transfer-encoding: chunked\r\n\r\n"
    chunked += b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with server.connect() as sock:
        sock.sendall(plain * 20 + chunked + plain)
        received = b""
        while received.count(b"HTTP/1.1 200") < 22:
            received += sock.recv(65536)
        expecting = head + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body)
        sock.sendall(expecting)
        assert sock.recv(1000).startswith(b"HTTP/1.1 100")
        for byte in body:
            sock.sendall(bytes([byte]))
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1000) == b""


def test_what_is_refused(server: Running) -> None:
    body = request_bytes("getStatus", 1)
    for path in ("/other", "/", "/metastores", "/other/metastore", "*"):
        assert post(server, body, path)[0] == 404
    for path in ("/metastore/", "/metastore/*", "/metastore?a=b", "http://elsewhere:1/metastore", "HTTP://e/metastore"):
        assert post(server, body, path)[0] == 200
    assert post(server, b"", method="GET")[0] == 405
    assert post(server, body, **{"content-length": str(10**12)})[0] == 413
    assert post(server, body, **{"x-long": "x" * 100_000})[0] == 431
    assert post(server, body, **{"x-actor-username": "x" * 300})[0] == 400
    assert post(server, b"no call at all")[0] == 400
    with server.connect() as sock:
        sock.sendall(b"NONSENSE\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400")
    with pytest.raises(TApplicationException, match=r"transport\.mode=http"):
        server.link().call("getStatus")
    with server.connect() as sock:
        sock.sendall(b"POST /metastore HTTP/1.1\r\nhost:")
        assert sock.recv(100) == b""  # its header was not complete in time
    with server.connect() as sock:
        sock.sendall(b"POST /metastore HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\n" + body)
    assert post(server, body)[0] == 200
    for wrong in (b"", body[:-1], body[:9]):
        assert post(server, wrong)[0] == 400


def open_connections(server: Running) -> int:
    samples = next(iter(server.service.metrics.server.connections.collect())).samples
    return int(samples[0].value)


@pytest.mark.parametrize(
    ("headers", "status", "told"),
    [
        ("content-length: 5\r\ntransfer-encoding: chunked\r\n", 400, "not both"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", None, ""),
        ("transfer-encoding: xchunked\r\n", None, ""),
        ("content-length: 5\r\ncontent-length: 6\r\n", 400, "onflicting"),
        ("content-length: -1\r\n", 400, ""),
        ("content-length: 0x10\r\n", 400, ""),
        ("content-length : 5\r\n", 400, ""),
        ("x-actor-username: a\r\nX-Actor-Username: b\r\ncontent-length: 5\r\n", 400, "2 times"),
        ("authorization: Bearer a\r\nauthorization: Bearer b\r\ncontent-length: 5\r\n", 400, "2 times"),
        ("a:\r\n" * 1000, 431, "too many lines"),
        ("a:\n" * 1000, 431, "too many lines"),
        ("a: b\r\n c\r\n" * 500, 431, "too many lines"),
        ("a: b\r\n transfer-encoding: chunked\r\ncontent-length: 5\r\n", 400, "begins with a blank"),
        ("content-length:\r\n\t5\r\n", 400, "begins with a blank"),
        ("a: b\ncontent-length: 5\r\n", 400, "CR LF"),
        ("a: b\rcontent-length: 5\r\n", 400, "illegal header line"),
        ("a: b\0c\r\ncontent-length: 5\r\n", 400, "illegal header line"),
    ],
)
def test_what_two_readers_may_read_differently_is_refused(
    server: Running, headers: str, status: int | None, told: str
) -> None:
    """What follows it on the socket is not a request: a proxy may have treated it as the body."""
    call = request_bytes("getName", 1)
    second = f"POST /metastore HTTP/1.1\r\nhost: a\r\ncontent-length: {len(call)}\r\n\r\n".encode() + call
    with server.connect() as sock:
        sock.sendall(f"POST /metastore HTTP/1.1\r\nhost: a\r\n{headers}\r\n".encode() + b"0\r\n\r\n" + second)
        answer = b""
        while more := sock.recv(1 << 16):
            answer += more
    assert answer.count(b"HTTP/1.1 ") == 1
    found = int(answer.split(b" ")[1])
    assert found == status if status else found in (400, 501)
    assert told.encode() in answer
    assert post(server, call)[0] == 200


@pytest.mark.parametrize(
    "target",
    [
        *(
            "/x?http://y/metastore",
            "/x#://y/metastore",
            "/metastore#x",
            "//metastore",
            "/%6detastore",
            "ftp://e/metastore",
        ),
        *("/metastore/../x", "/metastore/.", "/metastore/%2e%2e/x", "/metastore/..;/x", "/metastore\\..\\x"),
        *("/metastore/a\\..\\..\\x", "/x/../metastore", "http://e/metastore/../x"),
    ],
)
def test_a_path_that_is_another_one_to_a_proxy_is_not_ours(server: Running, target: str) -> None:
    """A proxy that does not authenticate clients of some paths forwards it unchanged."""
    assert post(server, request_bytes("getName", 1), target)[0] == 404


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ("POST /metastore HTTP/1.0", "transfer-encoding: chunked\r\n", 400),
        ("POST /metastore HTTP/2.0", "host: a\r\ncontent-length: 5\r\n", 505),
        ("POST /metastore HTTP/0.9", "content-length: 5\r\n", 505),
        ("PRI * HTTP/2.0", "", 505),
        ("HEAD /metastore HTTP/1.0", "transfer-encoding: chunked\r\n", 400),
        ("HEAD /metastore HTTP/2.0", "host: a\r\n", 505),
    ],
)
def test_versions(server: Running, line: str, headers: str, status: int) -> None:
    assert exchanged(server, f"{line}\r\n{headers}\r\n".encode()).startswith(b"HTTP/1.1 %d" % status)


def exchanged(server: Running, *parts: bytes) -> bytes:
    """Everything that is sent in reply."""
    answer = b""
    with server.connect() as sock, suppress(ConnectionError):
        for part in parts:
            sock.sendall(part)
        while more := sock.recv(1 << 16):
            answer += more
    return answer


@pytest.mark.parametrize("lines", [3, 200, 300, 20_000])
def test_lines_after_a_body_in_chunks_have_the_limit_of_a_header(server: Running, lines: int) -> None:
    """All of them were parsed at once: 120 KB of the shortest ones delayed others by a quarter of a second."""
    call = request_bytes("getName", 1)
    body = in_chunks(call)[:-2] + b"a:\r\n" * lines + b"\r\n"
    second = with_length(request_bytes("getStatus", 2))
    answers = exchanged(server, body, second + b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert answers.count(b"getName") <= 1 and answers.count(b"getStatus") == (1 if lines <= 200 else 0)


@pytest.mark.parametrize(
    "request_",
    [
        b"no request at all\r\n\r\n",
        b"POST /metastore\xff HTTP/1.1\r\n\r\n",
        b'it\'s\\ "a" request\r\n\r\n',
        b"POST /metastore HTTP/1.1\r\nhost: a\r\na b: c'd\xff\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nhost: a\r\na: b\rc\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nhost: a\r\n" + b"x" * 5000 + b"\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"POST /metastore HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxyz\r\n",
    ],
)
def test_refusals_are_plain_words(server: Running, request_: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Not Python's text; and a line that cannot be parsed, which may contain a token, is not logged."""
    answer = exchanged(server, request_)
    assert answer.startswith(b"HTTP/1.1 400 ")
    told = answer.partition(b"\r\n\r\n")[2].decode()
    assert told.startswith("not a request of HTTP: ") and len(told) < 350
    assert "bytearray" not in told and "b'" not in told and 'b"' not in told
    assert "illegal" not in caplog.text
    found = server.service.metrics.server.authentications.values()
    assert found["bad_message",] == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example", "sec-fetch-site": "cross-site", "content-type": "text/plain"},
        {"origin": "null"},
        {"host": "rebound.evil.example", "origin": "http://rebound.evil.example", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_pages_in_browsers_send_no_calls(server: Running, headers: dict[str, str]) -> None:
    """Any page in a browser on this machine can send a POST here, without asking for permission."""
    call = request_bytes("create_database", 1, database=database("of_a_page"))
    status, told = post(server, call, **headers)
    assert (status, b"browser" in told) == (403, True)
    with closing(client(server)) as anybody:
        assert anybody.metastore.get_all_databases() == ["default"]


CALLS = {
    "of the loop": request_bytes("getStatus", 1),
    "of a thread": request_bytes("get_all_databases", 1),
    "from memory": request_bytes("get_database", 1, name="default"),
}
HIDDEN = request_bytes("create_database", 2, database=database("hidden"))
REQUEST = "POST /metastore HTTP/1.1\r\nhost: a\r\n"


def in_chunks(*pieces: bytes) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return f"{REQUEST}transfer-encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"


def with_length(body: bytes) -> bytes:
    return f"{REQUEST}content-length: {len(body)}\r\n\r\n".encode() + body


REST = {"a call": HIDDEN, "half a call": HIDDEN[:40], "a byte": HIDDEN[:1]}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("timeout_s", ["60", "inf"])
def test_a_request_has_one_call(serve: Serve, call: str, timeout_s: str) -> None:
    """What follows it is not processed, and is not part of the next request: a proxy sends those of other clients over
    the same socket, who would get its reply, or have their call parsed as its argument."""
    server = serve(**HTTP, **{"server.message_timeout_s": timeout_s})
    first, next_call = CALLS[call], request_bytes("getName", 7)
    for _ in range(3):
        assert post(server, first)[0] == 200
    for what, rest in (REST | {"calls": first * 20 + HIDDEN}).items():
        for request in (with_length(first + rest), in_chunks(first + rest), in_chunks(first, rest)):
            for waits in (False, True):
                with server.connect() as sock, suppress(ConnectionError):
                    sock.sendall(request + (b"" if waits else with_length(next_call)))
                    answer = sock.recv(1 << 16)
                    if waits:
                        sock.sendall(with_length(next_call))
                    while received := sock.recv(1 << 16):
                        answer += received
                assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1") == 1, (what, waits, answer)
                assert b"getName" not in answer and b"create_database" not in answer, (what, waits)
    assert b"hidden" not in post(server, request_bytes("get_all_databases", 1))[1]


def test_a_whole_call_of_any_size_leaves_the_socket_open(server: Running) -> None:
    with server.connect() as sock:
        for size in (0, 1000, 70_000, 3_000_000):
            call = request_bytes("create_table", 1, tbl=table("default", f"t{size}", comment="x" * size))
            for request in (with_length(call), in_chunks(call[:30], call[30:])):  # the second gets an error
                sock.sendall(request)
                answer = http.client.HTTPResponse(sock)
                answer.begin()
                assert answer.status == 200 and answer.getheader("connection") is None
                assert b"create_table" in answer.read()


def test_the_answer_before_it_has_its_time(serve: Serve) -> None:
    """A client that reads nothing of it is disconnected."""
    server = serve(**HTTP, **{"server.write_timeout_s": 0.5})
    assert post(server, request_bytes("create_table", 1, tbl=table("default", "t", comment="x" * 16_000_000)))[0] == 200
    with server.connect() as sock:
        sock.sendall(with_length(request_bytes("get_table", 1, dbname="default", tbl_name="t") + b"x"))
        wait_for(lambda: open_connections(server) == 1)
        wait_for(lambda: open_connections(server) == 0)


def test_users_of_one_socket_share_nothing(server: Running) -> None:
    """A proxy may send requests of many users over one socket."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with closing(connection):

        def call(user: str, method: str, **arguments: object) -> bytes:
            connection.request("POST", "/metastore", request_bytes(method, 1, **arguments), {"x-actor-username": user})
            answer = connection.getresponse()
            assert answer.status == 200
            return answer.read()

        call("ann", "setMetaConf", key="metastore.client.socket.timeout", value="7s")
        assert b"7s" in call("ann", "getMetaConf", key="metastore.client.socket.timeout")
        assert b"7s" not in call("bob", "getMetaConf", key="metastore.client.socket.timeout")
        call("ann", "create_database", database=database("of_ann"))
        call("bob", "create_database", database=database("of_bob"))
        assert b"of_ann" in call("bob", "get_database", name="of_ann")
    wait_for(lambda: open_connections(server) == 0)


def test_within_tls(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    server = serve(**HTTP, **authority.settings())
    connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=authority.client())
    with closing(connection):
        for _ in range(3):
            connection.request("POST", "/metastore", request_bytes("get_database", 1, name="default"))
            answer = connection.getresponse()
            assert answer.status == 200 and b"default" in answer.read()


@pytest.mark.parametrize(
    "wrong",
    [
        {"server.transport_mode": "binary", "authentication.jwt_jwks_url": "file:/none"},
        {"authentication.plain": "ldap", "authentication.ldap_url": "ldap://h", "authentication.ldap_base_dn": "b"},
        {"authentication.jwt_jwks_url": "file:/none"},
        {"authentication.jwt_jwks_url": "file:/none", "security.accept_insecure": True},
    ],
)
def test_what_cannot_work_stops_the_start(serve: Serve, wrong: dict[str, object]) -> None:
    with pytest.raises(StartupError) as raised:
        serve(**{**HTTP, "server.tls_enabled": False, **wrong})  # type: ignore[arg-type]
    assert raised.value.remedy


@pytest.fixture(autouse=True)
def nothing_stays(server: Running) -> Iterator[None]:
    yield
    wait_for(lambda: open_connections(server) == 0)
