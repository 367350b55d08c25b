"""Malicious or defective servers: the client ends within its limits, and reveals no secret."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.authentication.delegation.token_format import Token, TokenIdentifier
from hms_cache.authentication.digest_md5 import Digest, DigestLayer
from hms_cache.authentication.servers import Address
from hms_cache.client import (
    AuthenticationRefusedError,
    DelegationToken,
    MetastoreClient,
    MetastoreUnavailableError,
    Password,
    authentication_of,
)
from tests.server.conftest import MAX_WAIT_S

pytestmark = pytest.mark.timeout(120)

TOKEN = Token(TokenIdentifier("ann", "", "", 1, 2, 3, 4).encoded(), b"hidden: of the token")
SECRET = "a secret that is told to nobody"


class Peer:
    """One accepted connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = b""

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        self.received += data
        return data

    def message(self) -> tuple[int, bytes]:
        status, length = struct.unpack("!BI", self.exactly(5))
        return status, self.exactly(length)

    def say(self, status: int, payload: bytes = b"") -> None:
        self.sock.sendall(struct.pack("!BI", status, len(payload)) + payload)

    def rest(self) -> None:
        """What the client still sends until it disconnects."""
        with contextlib.suppress(OSError):
            while data := self.sock.recv(65536):
                self.received += data

    def header(self) -> bytes:
        """The header and body of an HTTP request."""
        while b"\r\n\r\n" not in self.received:
            self.exactly(1)
        length = re.search(rb"content-length: *(\d+)", self.received, re.IGNORECASE)
        self.exactly(int(length[1]))
        return self.received


Script = Callable[[Peer], None]


class Server:
    """Handles each connection as the script says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.peers: list[Peer] = []
        self.threads: list[threading.Thread] = []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                sock.settimeout(MAX_WAIT_S)
                self.peers.append(Peer(sock))
                thread = threading.Thread(target=self.serve, args=(self.peers[-1],), daemon=True)
                self.threads.append(thread)
                thread.start()

    def serve(self, peer: Peer) -> None:
        with peer.sock, contextlib.suppress(OSError, EOFError):
            self.script(peer)
            peer.rest()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in (self.thread, *self.threads):
            thread.join(MAX_WAIT_S)

    @property
    def received(self) -> bytes:
        return b"".join(peer.received for peer in self.peers)


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Server]]:
    servers: list[Server] = []

    def start(script: Script) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def challenge(**changed: bytes) -> bytes:
    told = {
        "realm": b'"default"',
        "nonce": b'"bm9uY2U="',
        "charset": b"utf-8",
        "algorithm": b"md5-sess",
        "qop": b'"auth,auth-int,auth-conf"',
        "cipher": b'"3des"',
        "maxbuf": b"65536",
    } | changed
    return b",".join(name.encode() + b"=" + value for name, value in told.items() if value)


def answered(peer: Peer, **changed: bytes) -> Digest:
    """The challenge and the client's response; what a server that knows the token would compute."""
    peer.message()
    peer.message()
    peer.say(2, challenge(**changed))
    _, response = peer.message()
    told = dict(re.findall(rb'([\w-]+)="?([^",]*)"?', response))
    return Digest(
        told[b"username"],
        told[b"realm"],
        TOKEN.password,
        told[b"nonce"],
        told[b"cnonce"],
        told[b"qop"].decode(),
        told[b"digest-uri"],
    )


def trusted(peer: Peer, quality: str = "auth") -> DigestLayer | None:
    """The whole negotiation, as by a server that knows the token."""
    digest = answered(peer, qop=quality.encode())
    peer.say(5, b"rspauth=" + digest.of_server())
    return None if quality == "auth" else DigestLayer(digest.session, encrypts=quality == "auth-conf")


def frames(peer: Peer, *data: bytes) -> None:
    peer.exactly(4)
    for one in data:
        peer.sock.sendall(one)


def refusal(client: MetastoreClient) -> Exception:
    """The result of a call."""
    with client, pytest.raises((AuthenticationRefusedError, MetastoreUnavailableError)) as raised:
        client.call("get_all_databases")
    return raised.value


def drips(peer: Peer) -> None:
    peer.sock.settimeout(0.2)
    while True:
        peer.sock.sendall(b"\x02")
        with contextlib.suppress(TimeoutError):
            if not peer.sock.recv(4096):
                return


def early(peer: Peer) -> None:
    peer.message()
    peer.say(5)


def early_after_response(peer: Peer) -> None:
    answered(peer)
    peer.say(5)


def wrong_proof(peer: Peer) -> None:
    answered(peer)
    peer.say(5, b"rspauth=" + b"0" * 32)


def endless(peer: Peer) -> None:
    digest = answered(peer)
    while True:
        peer.say(2, b"rspauth=" + digest.of_server())
        peer.message()


def challenged(**changed: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.message()
        peer.message()
        peer.say(2, challenge(**changed))

    return script


NEGOTIATIONS: dict[str, tuple[Script, str]] = {
    "says nothing": (lambda peer: None, "SASL negotiation did not end"),
    "drips": (drips, "SASL negotiation did not end|does not use SASL"),
    "closes": (lambda peer: peer.sock.shutdown(socket.SHUT_RDWR), "closed the connection during the SASL negotiation"),
    "a huge message": (lambda peer: peer.sock.sendall(b"\x02\x7f\xff\xff\xff"), "does not use SASL"),
    "a long message that does not end": (
        lambda peer: peer.sock.sendall(b"\x02\0\1\0\0x"),
        "SASL negotiation did not end",
    ),
    "another status": (lambda peer: peer.say(1, b"GSSAPI"), "does not use SASL"),
    "text": (lambda peer: peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "does not use SASL"),
    "Thrift": (lambda peer: peer.sock.sendall(b"\x80\x01\0\x03\0\0\0\x01x"), "does not authenticate clients"),
    "a refusal with odd text": (lambda peer: peer.say(4, b"a\r\nb\x1b[31m\xff" * 999), r"the metastore answers: a b"),
    "done at once": (early, "did not prove that it knows"),
    "done after the response": (early_after_response, "did not prove that it knows"),
    "another token's proof": (wrong_proof, "did not prove that it knows"),
    "asks on": (endless, "not finished after 10 messages"),
    "no quality": (challenged(qop=b'""'), "offers the qualities of protection"),
    "less quality": (challenged(qop=b'"auth,auth-int"'), "offers the qualities of protection auth, auth-int"),
    "a broken cipher": (challenged(cipher=b'"rc4-40,des"'), "offers the qualities of protection auth, auth-int"),
    "no nonce": (challenged(nonce=b""), "challenge cannot be used"),
    "a nonce that is more": (challenged(nonce=b'"a\\",qop=\\"auth"'), "challenge cannot be used"),
    "another algorithm": (challenged(algorithm=b"md5"), "challenge cannot be used"),
    "twice the same": (challenged(stale=b'x,realm="a"'), "not a response"),
    "a long challenge": (challenged(stale=b"x" * 5000), "a response of"),
}


@pytest.mark.parametrize("name", NEGOTIATIONS)
def test_a_negotiation_that_does_not_lead_to_the_metastore(serve: Callable[[Script], Server], name: str) -> None:
    script, text = NEGOTIATIONS[name]
    server = serve(script)
    how = DelegationToken(TOKEN, qualities=("auth-conf",) if "quality" in name or "cipher" in name else ())
    with MetastoreClient(f"thrift://127.0.0.1:{server.port}", how, connect_timeout_s=1.5) as client:
        with pytest.raises((AuthenticationRefusedError, MetastoreUnavailableError), match=text) as raised:
            client.call("get_all_databases")
        assert client.connected_to is None
    assert len(str(raised.value)) < 1500 and str(raised.value).isprintable()
    server.close()
    for secret in (TOKEN.password, base64.b64encode(TOKEN.password)):
        assert secret not in server.received and secret.decode() not in repr(raised.value)


def reply_that_is_huge(peer: Peer, quality: str) -> None:
    trusted(peer, quality)
    frames(peer, b"\x7f\xff\xff\xff" if quality != "auth" else b"\xff\xff\xff\xff")


def empty_without_end(peer: Peer, quality: str) -> None:
    layer = trusted(peer, quality)
    peer.exactly(4)
    while True:
        token = b"" if layer is None else layer.wrap(b"")
        peer.sock.sendall(struct.pack("!I", len(token)) + token)


def changed(peer: Peer, quality: str) -> None:
    layer = trusted(peer, quality)
    token = b"x" * 40 if layer is None else layer.wrap(b"x" * 40)[:-1] + b"?"
    frames(peer, struct.pack("!I", len(token)) + token)


def unprotected(peer: Peer, quality: str) -> None:
    trusted(peer, quality)
    reply = b"\x80\x01\0\x02\0\0\0\x11get_all_databases\0\0\0\0\x0f\0\0\x0b\0\0\0\0\0"
    frames(peer, struct.pack("!I", len(reply)) + reply)


@pytest.mark.parametrize("quality", ["auth", "auth-int", "auth-conf"])
@pytest.mark.parametrize("script", [reply_that_is_huge, empty_without_end, changed, unprotected])
def test_replies_that_are_none(serve: Callable[[Script], Server], script: Any, quality: str) -> None:
    if script is unprotected and quality == "auth":
        return  # which is a reply
    server = serve(lambda peer: script(peer, quality))
    how = DelegationToken(TOKEN)
    uri = f"thrift://127.0.0.1:{server.port}"
    with MetastoreClient(uri, how, connect_timeout_s=5, call_timeout_s=5) as client:
        with pytest.raises((MetastoreUnavailableError, Exception)) as raised:
            client.call("get_all_databases")
        assert not isinstance(raised.value, AssertionError | MemoryError)
        assert client.connected_to is None


def test_a_ticket_is_no_use_to_a_server_that_says_yes_at_once(
    serve: Callable[[Script], Server], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gssapi")
    from tests.server.kerberos_realm import REALM, realm_of_this_process

    def answers(payload: bytes, status: int) -> Script:
        def script(peer: Peer) -> None:
            peer.message()
            peer.message()
            peer.say(status, payload)

        return script

    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann") as realm:
        cache = realm.directory / "ann.cache"
        auth = f"kerberos server=hive/localhost@{REALM} ticket_cache=FILE:{cache}"
        for status, payload in ((5, b""), (5, b"x"), (2, b"x"), (2, b"")):
            server = serve(answers(payload, status))
            how = authentication_of(auth, {})
            uri = f"thrift://127.0.0.1:{server.port}"
            assert re.search("GSSAPI|SASL", str(refusal(MetastoreClient(uri, how, connect_timeout_s=2))))


OK = b"HTTP/1.1 200 OK\r\n"
THRIFT = b"content-type: application/x-thrift\r\n"
RESPONSES: dict[str, tuple[bytes, str]] = {
    "a page": (OK + b"content-type: text/html\r\ncontent-length: 6\r\n\r\n<html>", "answers text/html"),
    "elsewhere": (
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:%d/metastore\r\n\r\n",
        "redirects to another address",
    ),
    "elsewhere by POST": (
        b"HTTP/1.1 308 Found\r\nlocation: http://127.0.0.1:%d/\r\n\r\n",
        "redirects to another address",
    ),
    "no HTTP": (b"\x80\x01\0\x03\0\0\0\x01x", "no valid HTTP response"),
    "a line without end": (b"HTTP/1.1 200 " + b"x" * 200_000, "no valid HTTP response"),
    "a header without end": (OK + b"a: b\r\n" * 2000, "no valid HTTP response"),
    "a length that is none": (OK + THRIFT + b"content-length: -5\r\n\r\n", "no metastore answered"),
    "cut off": (OK + THRIFT + b"content-length: 900\r\n\r\nx", "no metastore answered"),
    "chunks that are none": (OK + THRIFT + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "no metastore answered"),
    "nothing": (OK + THRIFT + b"content-length: 0\r\n\r\n", "no metastore answered"),
    "overloaded": (b"HTTP/1.1 503 No\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nlate", "503: late"),
    "refused": (b"HTTP/1.1 401 No\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nw\r\nx", "answers: w x"),
    "refused with the token": (
        b"HTTP/1.1 401 No\r\ncontent-type: text/plain\r\n\r\nnot " + SECRET.replace(" ", "-").encode(),
        "answers: not",
    ),
    "a line with the token": (b"HTTP/9.9 " + SECRET.replace(" ", "-").encode() + b"\r\n\r\n", "no valid HTTP response"),
    "refused with a page": (b"HTTP/1.1 403 No\r\ncontent-type: text/html\r\n\r\n<html>", "answers: 403"),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_answers_over_http_that_are_none(serve: Callable[[Script], Server], name: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET.replace(" ", "-"))
    elsewhere = serve(lambda peer: None)
    response, text = RESPONSES[name]

    def script(peer: Peer) -> None:
        peer.header()
        peer.sock.sendall(response % elsewhere.port if b"%d" in response else response)
        peer.sock.shutdown(socket.SHUT_WR)

    server = serve(script)
    how = authentication_of(f"jwt file={tmp_path / 'token'}", {})
    uri = f"http://127.0.0.1:{server.port}/metastore"
    error = refusal(MetastoreClient(uri, how, connect_timeout_s=5, call_timeout_s=5))
    told = f"{error} {error.__cause__} {getattr(error.__cause__, '__cause__', None)}"
    assert re.search(text, told), told
    assert SECRET.replace(" ", "-") not in told
    assert not elsewhere.peers


@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["nothing", "continues without end"])
def test_answers_over_http_that_never_come(serve: Callable[[Script], Server], response: bytes) -> None:
    def script(peer: Peer) -> None:
        peer.header()
        while response:
            peer.sock.sendall(response)

    server = serve(script)
    error = refusal(MetastoreClient(f"http://127.0.0.1:{server.port}", call_timeout_s=1))
    assert isinstance(error, MetastoreUnavailableError)


def test_a_password_is_not_in_what_is_told_of_a_server_that_gives_it_back(
    serve: Callable[[Script], Server], tmp_path: Path
) -> None:
    """It was sent there; the readers of our log are others."""
    (tmp_path / "password").write_text(SECRET)

    def script(peer: Peer) -> None:
        peer.message()
        _, payload = peer.message()
        peer.say(4, payload.replace(b"\0", b" "))

    server = serve(script)
    error = refusal(MetastoreClient(f"thrift://127.0.0.1:{server.port}", Password("ann", str(tmp_path / "password"))))
    assert SECRET not in str(error) and "the metastore answers: ann" in str(error)


REPLY = b"\x80\x01\0\x02\0\0\0\x11get_all_databases\0\0\0\0\x0f\0\0\x0b\0\0\0\0\0"


@pytest.mark.parametrize("how", ["told", "not told", "in chunks", "with more"])
def test_a_server_of_http_that_closes_between_calls(serve: Callable[[Script], Server], how: str) -> None:
    """As proxies do. A request that was not sent has no unknown outcome: a write is sent over a new connection."""

    def script(peer: Peer) -> None:
        peer.header()
        length = b"content-length: %d\r\n" % len(REPLY)
        body = REPLY
        if how == "in chunks":
            length, body = b"transfer-encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(REPLY), REPLY)
        elif how == "with more":
            length, body = b"content-length: %d\r\n" % (len(REPLY) + 1), REPLY + b"x"
        closes = b"connection: close\r\n" if how == "told" else b""
        peer.sock.sendall(OK + THRIFT + closes + length + b"\r\n" + body)
        peer.received = b""
        peer.sock.shutdown(socket.SHUT_WR)

    server = serve(script)
    with MetastoreClient(f"http://127.0.0.1:{server.port}", call_timeout_s=5) as client:
        for _ in range(3):
            assert client.call("get_all_databases") == []
            assert isinstance(client.connected_to, Address)
    assert len(server.peers) == 3
