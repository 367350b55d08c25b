"""Bearer tokens with a real key server: which are accepted, which are refused and how, and key rotation."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

jwt = pytest.importorskip("jwt")
pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa  # noqa: E402

from hms_cache.authentication import bearer_tokens  # noqa: E402
from hms_cache.authentication.bearer_tokens import BearerOptions, BearerTokens  # noqa: E402
from hms_cache.authentication.key_set import KeySet, KeySetError, KeySetOptions  # noqa: E402
from hms_cache.authentication.mechanism import AuthenticationError  # noqa: E402
from tests.server.answering import TLS_RECORD, answering  # noqa: E402
from tests.server.conftest import MAX_WAIT_S, Running, Serve, database, request_bytes, table  # noqa: E402
from tests.server.test_kerberos import authentications  # noqa: E402
from tests.server.test_tls import Authority  # noqa: E402

_KEYS = 8
"""More than a test needs: those of one test are different ones."""
_made: deque[Any] = deque()


def rsa_key() -> Any:
    """One of a few in turn: generating a key takes as long as starting a server."""
    if len(_made) < _KEYS:
        _made.append(rsa.generate_private_key(65537, 2048))
    else:
        _made.rotate(-1)
    return _made[-1]


def entry_of(key: Any, key_id: str | None, **more: Any) -> dict[str, Any]:
    algorithm = (
        jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
    )
    entry = dict(json.loads(algorithm.to_jwk(key.public_key())), use="sig", **more)
    return entry | ({} if key_id is None else {"kid": key_id})


class Issuer:
    """A key server, and tokens signed by it."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {"one": rsa_key()}
        self.entries: list[Any] | None = None
        """What is served in place of the keys."""
        self.reads = 0
        self.status = 200
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.reads += 1
                body = issuer.document()
                self.send_response(issuer.status)
                if issuer.status == 302:
                    self.send_header("location", "file:///etc/passwd")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def document(self) -> bytes:
        entries = self.entries
        if entries is None:
            entries = [entry_of(key, key_id) for key_id, key in self.keys.items()]
        return json.dumps({"keys": entries}).encode()

    def token(self, key_id: str = "one", algorithm: str = "RS256", *, named: bool = True, **claims: Any) -> str:
        told = {"sub": "ann", "iss": "issuer", "aud": "hms", "exp": time.time() + 600} | claims
        told = {name: value for name, value in told.items() if value is not None}
        headers = {"kid": key_id} if named else {}
        return str(jwt.encode(told, self.keys[key_id], algorithm=algorithm, headers=headers))

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with closing(Issuer()) as running:
        yield running


@pytest.fixture
def server(serve: Serve, issuer: Issuer) -> Running:
    return serve(
        **{
            "server.transport_mode": "http",
            "security.accept_insecure": True,
            "authentication.jwt_jwks_url": issuer.url,
            "authentication.jwt_issuer": "issuer",
            "authentication.jwt_audience": "hms,other",
            "authentication.jwt_leeway_s": 1,
            "authentication.jwt_retry_interval_s": 0.1,
            "server.audit_format": "json",
        }
    )


def post(server: Running, token: str | None, method: str = "getStatus", **arguments: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with closing(connection):
        headers = {} if token is None else {"authorization": token if " " in token else f"Bearer {token}"}
        connection.request("POST", "/metastore", request_bytes(method, 1, **arguments), headers)
        answer = connection.getresponse()
        text = answer.read()
        assert (answer.status == 401) == (answer.getheader("www-authenticate") is not None)
        return answer.status, text


def test_the_subject_is_the_user(server: Running, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    token = issuer.token()
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        assert post(server, token, "create_database", database=database("d"))[0] == 200
        assert post(server, token, "set_ugi", user_name="root", group_names=[])[0] == 200
        server.service.stop()
    (line,) = [json.loads(r.getMessage()) for r in caplog.records if r.name == "hms_cache.audit"]
    assert (line["ugi"], line["principal"], line["mechanism"]) == ("ann", "ann", "JWT")
    assert issuer.reads == 1


def test_a_name_beside_the_token_is_nobodys(server: Running, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    """Hive's servlet takes the user from the header on a port without tokens, and proxies use other headers."""
    claims = ("x-actor-username", "x-forwarded-user", "remote-user", "x-remote-user", "doas", "x-forwarded-for")
    headers = dict.fromkeys(claims, "root") | {"authorization": f"Bearer {issuer.token()}", "cookie": "hive.user=root"}
    body = request_bytes("create_database", 1, database=database("d"))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with caplog.at_level(logging.INFO, "hms_cache.audit"), closing(connection):
        connection.request("POST", "/metastore?doAs=root&user.name=root", body, headers)
        assert connection.getresponse().status == 200
        server.service.stop()
    (line,) = [json.loads(r.getMessage()) for r in caplog.records if r.name == "hms_cache.audit"]
    assert (line["ugi"], line["principal"], line["ip"]) == ("ann", "ann", "127.0.0.1")


def test_users_of_one_socket_are_told_apart(serve: Serve, issuer: Issuer, tmp_path: Path) -> None:
    """The same bytes with another token: no answer is shared, and no user is remembered."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[[grants]]\nusers = ["ann"]\nactions = ["read", "create"]\ndatabases = ["*"]\n')
    server = serve(
        **{
            "server.transport_mode": "http",
            "security.accept_insecure": True,
            "authentication.jwt_jwks_url": issuer.url,
            "authorization.provider": "policy",
            "authorization.policy_file": str(policy),
        }
    )
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    ann, bob = issuer.token(), issuer.token(sub="bob")
    with closing(connection):

        def call(token: str, method: str, **arguments: Any) -> bytes:
            body = request_bytes(method, 7, **arguments)
            connection.request("POST", "/metastore", body, {"authorization": f"bearer {token}"})
            answer = connection.getresponse()
            assert answer.status == 200
            return answer.read()

        call(ann, "create_database", database=database("d"))
        for _ in range(4):
            assert b"file:" in call(ann, "get_database", name="d")
            assert b"file:" not in call(bob, "get_database", name="d")
    assert post(server, None)[0] == 401


def test_a_table_belongs_to_who_creates_it(serve: Serve, issuer: Issuer) -> None:
    """If the request names no owner: a table without one would be hidden from its creator."""
    server = serve(
        **{
            "server.transport_mode": "http",
            "security.accept_insecure": True,
            "authentication.jwt_jwks_url": issuer.url,
            "authorization.provider": "sql",
        }
    )
    ann, bob = issuer.token(), issuer.token(sub="bob")
    nobodys, given = table("default", "nobodys"), table("default", "given")
    nobodys.owner, given.owner = None, "bob"
    for one in (nobodys, given):
        post(server, ann, "create_table", tbl=one)
    for token, name in ((ann, "nobodys"), (bob, "given")):
        listed = post(server, token, "get_all_tables", db_name="default")[1]
        assert [one for one in (b"nobodys", b"given") if one in listed] == [name.encode()]
        assert b"not found" not in post(server, token, "get_table", dbname="default", tbl_name=name)[1]


def confused(issuer: Issuer) -> str:
    """HS256 with the public key as the secret: a library that lets the token choose the algorithm accepts it."""
    public = issuer.keys["one"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def part(told: dict[str, Any]) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=")

    claims = {"sub": "root", "iss": "issuer", "aud": "hms", "exp": time.time() + 600}
    text = part({"alg": "HS256", "typ": "JWT", "kid": "one"}) + b"." + part(claims)
    code = base64.urlsafe_b64encode(hmac.digest(pem, text, hashlib.sha256)).rstrip(b"=")
    return (text + b"." + code).decode()


def changed(token: str) -> str:
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    other = base64.urlsafe_b64encode(json.dumps(claims | {"sub": "root"}).encode()).rstrip(b"=").decode()
    return f"{head}.{other}.{signature}"


def test_who_is_refused_is_told_and_counted(server: Running, issuer: Issuer) -> None:
    stranger = Issuer()
    stranger.close()
    none = jwt.encode({"sub": "root", "exp": time.time() + 600}, None, algorithm="none")
    cases = {
        None: "no_token",
        "Basic YW5uOnNlY3JldA==": "no_token",
        "Bearer  ": "no_token",
        "Bearer nonsense": "bad_message",
        "Bearer " + "x" * 20_000: "bad_message",
        none: "refused",
        confused(issuer): "refused",
        changed(issuer.token()): "refused",
        stranger.token(): "refused",
        issuer.token(algorithm="PS256"): "refused",
        issuer.token(exp=time.time() - 60): "refused",
        issuer.token(exp=None): "refused",
        issuer.token(nbf=time.time() + 60): "refused",
        issuer.token(iss="other"): "refused",
        issuer.token(iss=None): "refused",
        issuer.token(aud="elsewhere"): "refused",
        issuer.token(aud=None): "refused",
        issuer.token(sub=None): "refused",
        issuer.token(sub=""): "refused",
        issuer.token(sub="a\nb"): "refused",
    }
    for token, outcome in cases.items():
        before = authentications(server)
        status, text = post(server, token)
        assert status == 401 and text, (outcome, token)
        assert authentications(server).get(outcome, 0) == before.get(outcome, 0) + 1, token
    assert post(server, issuer.token())[0] == 200
    assert post(server, issuer.token(named=False))[0] == 200
    assert post(server, issuer.token(aud=["x", "other"]))[0] == 200


def test_keys_come_and_go(server: Running, issuer: Issuer) -> None:
    old = issuer.token()
    assert post(server, old)[0] == 200
    issuer.keys["two"] = ec.generate_private_key(ec.SECP256R1())
    time.sleep(0.15)  # jwt_retry_interval_s
    new = issuer.token("two", "ES256")
    assert post(server, new)[0] == 200
    assert post(server, old)[0] == 200
    del issuer.keys["one"]
    issuer.keys["three"] = rsa_key()
    time.sleep(0.15)
    assert post(server, issuer.token("three"))[0] == 200
    # The document was read without the first key: its tokens are no longer valid.
    assert post(server, old)[0] == 401


def options_of(issuer: Issuer, **more: Any) -> KeySetOptions:
    told: dict[str, Any] = {"ca_file": None, "timeout_s": 5, "refresh_interval_s": 100, "retry_interval_s": 10}
    return KeySetOptions(**({"url": issuer.url} | told | more))


ODD_ANSWERS = {
    "no answer": b"",
    "no status": b"rubbish\r\n\r\n",
    "a status without end": b"HTTP/1.1 " + b"2" * 100_000,
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
    "a body that is cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{",
    "a chunk that is cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{",
    "chunks that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "an error": b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    "another text": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkeys",
    "headers in drops": b"HTTP/1.1 200 OK\r\n" + b"a" * 60_000,
    "a body in drops": b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b" " * 60_000,
    "chunks in drops": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" + b" " * 60_000,
}
"""What a server of keys, or a proxy before it, sends; what is sent in drops has no end in time."""


@pytest.mark.parametrize("kind", ODD_ANSWERS)
def test_whatever_a_server_of_keys_answers(issuer: Issuer, kind: str) -> None:
    """At the start, this is reported as such; cached keys remain valid for their time; no call waits for long."""
    now = [0.0]
    with answering(ODD_ANSWERS[kind], in_drops="drops" in kind) as url:
        with pytest.raises(KeySetError):
            KeySet(options_of(issuer, url=url, timeout_s=0.5)).load()
        keys = KeySet(options_of(issuer, refresh_interval_s=100), lambda: now[0])
        keys.load()
        keys._options = replace(keys._options, url=url, timeout_s=0.5)
        now[0] = 150
        assert [key.entry["kid"] for key in keys.candidates("one")] == ["one"]
        now[0] = 250
        with pytest.raises(KeySetError):
            keys.candidates("one")


def test_a_tunnel_in_drops_has_the_same_time(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a proxy named in the environment."""
    head = b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000
    with answering(head, in_drops=True) as url:
        monkeypatch.setenv("https_proxy", url.removesuffix("/jwks.json"))
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(KeySetError):
            KeySet(options_of(issuer, url="https://keys.test/jwks.json", timeout_s=0.5)).load()


def test_a_handshake_in_drops_has_the_same_time(issuer: Issuer) -> None:
    with answering(TLS_RECORD, in_drops=True) as url, pytest.raises(KeySetError):
        KeySet(options_of(issuer, url=url.replace("http:", "https:"), timeout_s=0.5)).load()


class OverAtOnce:
    """A time-out that expired while a connection was still being made."""

    daemon = False

    def __init__(self, _after_s: float, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.act, self.arguments = act, arguments

    def start(self) -> None:
        self.act(*self.arguments)

    def cancel(self) -> None:
        pass


def test_a_connection_that_took_all_of_the_time_is_not_read(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a slow answer would never end: the time-out has found nothing to close yet."""
    monkeypatch.setattr("hms_cache.socket_deadlines.threading.Timer", OverAtOnce)
    with pytest.raises(KeySetError, match="connecting took all of the time"):
        KeySet(options_of(issuer)).load()


def test_keys_over_tls(issuer: Issuer, tmp_path: Path) -> None:
    """Of a server with a certificate signed by the given authority, and of no other."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.certificate.configure_cert(context)
    issuer.server.socket = context.wrap_socket(issuer.server.socket, server_side=True)
    url = issuer.url.replace("http:", "https:")
    keys = KeySet(options_of(issuer, url=url, ca_file=str(authority.ca_file)))
    keys.load()
    assert [key.entry["kid"] for key in keys.candidates("one")] == ["one"]
    for ca_file in (None, str(tmp_path / "none.pem")):
        with pytest.raises(KeySetError):
            KeySet(options_of(issuer, url=url, ca_file=ca_file)).load()


def test_clients_cannot_make_the_server_ask_all_the_time(issuer: Issuer) -> None:
    now_s = [0.0]
    keys = KeySet(options_of(issuer), lambda: now_s[0])
    keys.load()
    for number in range(50):
        assert keys.candidates(f"made up {number}") == []
    assert issuer.reads == 1
    now_s[0] = 11
    for number in range(50):
        assert keys.candidates(f"made up {number}") == []
    assert issuer.reads == 2
    assert keys.candidates("one")


def test_a_silent_issuer_keeps_one_thread(issuer: Issuer) -> None:
    """However many tokens name unknown keys, those with known ones are checked meanwhile, even if a refresh is due."""
    now_s = [0.0]
    keys = KeySet(options_of(issuer, timeout_s=MAX_WAIT_S), lambda: now_s[0])
    keys.load()
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(4) as threads:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/jwks.json"
        keys._options = replace(keys._options, url=address)
        now_s[0] = 150
        unknown = [threads.submit(keys.candidates, f"made up {number}") for number in range(3)]
        requested, _ = silent.accept()
        with requested:
            assert threads.submit(keys.candidates, "one").result(timeout=MAX_WAIT_S / 2)
            told = as_completed(unknown, timeout=MAX_WAIT_S / 2)
            for _ in range(2):  # the third one reads
                with pytest.raises(KeySetError):
                    next(told).result()


def test_keys_that_cannot_be_read_are_trusted_for_a_time(issuer: Issuer) -> None:
    now_s = [0.0]
    keys = KeySet(options_of(issuer), lambda: now_s[0])
    keys.load()
    issuer.status = 500
    for later in (99, 101, 111, 199):
        now_s[0] = later
        assert keys.candidates("one")
    assert issuer.reads == 4  # at 101, 111 and 199
    now_s[0] = 201
    with pytest.raises(KeySetError):
        keys.candidates("one")
    issuer.status = 200
    now_s[0] = 212
    assert keys.candidates("one")


@pytest.mark.parametrize(
    "entries",
    [
        [],
        {},
        "x",
        [7],
        [{"kty": "oct", "k": "c2VjcmV0", "kid": "one", "alg": "HS256"}],
        [{"kty": "RSA", "use": "enc", "kid": "one"}],
        [{}] * 2000,
    ],
)
def test_documents_without_a_key(issuer: Issuer, entries: Any) -> None:
    issuer.entries = entries
    with pytest.raises(KeySetError):
        KeySet(options_of(issuer)).load()


def test_an_address_that_sends_on_is_not_followed(issuer: Issuer) -> None:
    issuer.status = 302
    with pytest.raises(KeySetError):
        KeySet(options_of(issuer)).load()


def test_a_key_is_for_its_own_algorithm(issuer: Issuer) -> None:
    """The entry's text and the kind of the key determine the algorithm, not the token."""
    issuer.entries = [entry_of(issuer.keys["one"], "one", alg="RS512"), {"kty": "RSA", "kid": "broken"}]
    keys = KeySet(options_of(issuer))
    keys.load()
    tokens = BearerTokens(keys, BearerOptions(("RS256", "RS512", "ES256"), "", (), "sub", 0))
    assert tokens.check(issuer.token(algorithm="RS512")).user == "ann"
    for token in (issuer.token(algorithm="RS256"),):
        with pytest.raises(AuthenticationError, match="no key"):
            tokens.check(token)
    issuer.keys["broken"] = issuer.keys["one"]
    with pytest.raises(AuthenticationError, match="no key"):
        tokens.check(issuer.token("broken"))


def test_a_kept_token_ends_in_time(issuer: Issuer) -> None:
    keys = KeySet(options_of(issuer))
    keys.load()
    now_s = [time.time()]
    tokens = BearerTokens(keys, BearerOptions(("RS256",), "", (), "sub", 5), lambda: now_s[0])
    token = issuer.token(exp=now_s[0] + 60)
    assert tokens.cached_identity(token) is None
    assert tokens.check(token) == tokens.cached_identity(token)
    now_s[0] += 64
    assert tokens.cached_identity(token) is not None
    now_s[0] += 2
    assert tokens.cached_identity(token) is None


def test_tokens_of_many_groups_are_kept_by_their_bytes(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may obtain any number of tokens from the issuer."""
    monkeypatch.setattr(bearer_tokens, "MAX_KEPT_BYTES", 100_000)
    keys = KeySet(options_of(issuer))
    keys.load()
    tokens = BearerTokens(keys, BearerOptions(("RS256",), "", (), "sub", 5, "groups", "scope"))
    groups = [f"department-{number:03}" for number in range(200)]
    texts = [issuer.token(sub=f"user{number}", groups=groups, scope="a b") for number in range(30)]
    for text in texts:
        assert tokens.check(text).groups == frozenset(groups)
        assert tokens.cached_identity(text) is not None and tokens.kept_bytes <= 100_000
    held = [tokens.cached_identity(text) is not None for text in texts]
    assert held == sorted(held) and 2 <= sum(held) <= 10, "the latest"
    for text in texts:
        assert tokens.check(text) == tokens.check(text), "a second time it is not counted again"
    small = [issuer.token(sub=f"user{number}") for number in range(30)]
    for text in small:
        tokens.check(text)
    assert all(tokens.cached_identity(text) is not None for text in small)


def test_a_kept_token_ends_with_the_key_that_signed_it(issuer: Issuer) -> None:
    """Also if no other token causes the document to be read again."""
    now_s = [0.0]
    keys = KeySet(options_of(issuer), lambda: now_s[0])
    keys.load()
    tokens = BearerTokens(keys, BearerOptions(("RS256",), "", (), "sub", 5))
    token = issuer.token()

    def serve() -> str:
        """As a port does for a request."""
        return (tokens.cached_identity(token) or tokens.check(token)).user

    for later in (0, 50, 99):
        now_s[0] = later
        assert serve() == "ann"
    assert issuer.reads == 1
    issuer.status = 500
    for later in (101, 102, 109, 199):
        now_s[0] = later
        assert serve() == "ann"
    assert issuer.reads == 3  # at 101 and 199: what cannot be read is not requested for each call
    now_s[0] = 201
    with pytest.raises(AuthenticationError) as unavailable:
        serve()
    assert unavailable.value.outcome == "unavailable"
    issuer.status = 200
    issuer.keys = {"two": rsa_key()}
    now_s[0] = 212
    with pytest.raises(AuthenticationError, match="no key of the issuer"):
        serve()


def part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


ODD_HEADERS = {
    "a deep list": b"[" * 6000,
    "a deep algorithm": b'{"alg":' + b"[" * 6000,
    "deep objects": b'{"a":' * 1500,
    "a long number": b"1" * 6000,
    "a long number as algorithm": b'{"alg":' + b"1" * 6000 + b"}",
    "infinity": b'{"alg":1e999}',
    "nothing": b"null",
    "no object": b"[]",
    "a number as key": b'{"alg":"RS256","kid":1}',
    "lists": b'{"alg":["RS256"],"kid":["one"]}',
    "half a character": b'{"alg":"RS256","kid":"\\ud800"}',
    "not UTF-8": b"\xff\xfe",
    "a path": b'{"alg":"RS256","kid":"../../../etc/passwd"}',
    "an extension": b'{"alg":"RS256","kid":"one","crit":["x"],"x":1}',
    "no encoding": b'{"alg":"RS256","kid":"one","crit":["b64"],"b64":false}',
}

ODD_CLAIMS: dict[str, dict[str, Any]] = {
    "an end of 400 digits": {"exp": 10**400},
    "no end": {"exp": float("inf")},
    "an end that is no number": {"exp": float("nan")},
    "a list as end": {"exp": []},
    "an object as end": {"exp": {}},
    "a beginning that never comes": {"nbf": float("inf")},
    "a list as beginning": {"nbf": []},
    "an issue that never was": {"iat": float("inf")},
    "a list of issuers": {"iss": ["issuer"]},
    "an object of issuers": {"iss": {"issuer": 1}},
    "a part of the issuer": {"iss": "issu"},
    "another case": {"iss": "ISSUER"},
    "an object of audiences": {"aud": {"hms": 1}},
    "a number in audiences": {"aud": ["hms", 1]},
    "a number as user": {"sub": 5},
    "a list of users": {"sub": ["ann"]},
    "half a character as user": {"sub": "\ud800"},
}


def signed_by(issuer: Issuer, header: bytes, claims: bytes) -> str:
    """Signed by the issuer's key, whatever it contains."""
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(issuer.keys['one'].sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def test_whatever_a_token_says_it_is_good_or_refused(issuer: Issuer) -> None:
    """Also one that the issuer has signed; with the oldest allowed PyJWT, too (`make oldest`)."""
    keys = KeySet(KeySetOptions(issuer.url, None, 5, 300, 60))
    keys.load()
    tokens = BearerTokens(keys, BearerOptions(("RS256",), "issuer", ("hms",), "sub", 1))
    good: dict[str, Any] = {"sub": "ann", "iss": "issuer", "aud": "hms", "exp": int(time.time()) + 600}
    head = b'{"alg":"RS256","kid":"one"}'
    assert tokens.check(signed_by(issuer, head, json.dumps(good).encode())).user == "ann"
    cases = {name: (header, json.dumps(good).encode()) for name, header in ODD_HEADERS.items()}
    cases |= {name: (head, json.dumps(good | odd).encode()) for name, odd in ODD_CLAIMS.items()}
    cases["deep claims"] = (head, b'{"exp":' + b"[" * 6000)
    accepted = {}
    for name, (header, claims) in cases.items():
        try:
            accepted[name] = tokens.check(signed_by(issuer, header, claims))
        except AuthenticationError as error:
            assert len(str(error)) < 300, name
    assert accepted == {}
