"""TLS on the metastore port: which clients are accepted, which are not, and that such a connection works like
others."""

from __future__ import annotations

import asyncio
import datetime
import logging
import socket
import ssl
import struct
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from thrift.Thrift import TApplicationException

from hms_cache.app import event_loop
from hms_cache.app.service import Service
from hms_cache.config import Configuration, load
from hms_cache.errors import ConfigurationError, StartupError
from tests.key_stores import samples as key_stores
from tests.server.conftest import MAX_WAIT_S, Link, Running, Serve, database, request_bytes, table

PASSWORD = "changeit-or-not"


class Authority:
    """An authority, the files that it signed, and clients that trust it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = trustme.CA()
        self.certificate = self.ca.issue_cert("localhost", "127.0.0.1")
        self.ca_file = directory / "ca.pem"
        self.ca.cert_pem.write_to_path(self.ca_file)
        self.server_file = self.written(self.certificate, "server.pem")

    def written(self, certificate: trustme.LeafCert, name: str) -> Path:
        """Key and certificates in one file."""
        file = self.directory / name
        certificate.private_key_and_cert_chain_pem.write_to_path(file)
        return file

    def client(self, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        if certificate is not None:
            certificate.configure_cert(context)
        return context

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"server.tls_enabled": True, "server.tls_certificate_file": str(self.server_file), **more}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(params=["uvloop", pytest.param("asyncio", marks=pytest.mark.soak)])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "asyncio":
        monkeypatch.setattr(event_loop, "new_event_loop", asyncio.new_event_loop)
    else:
        pytest.importorskip("uvloop")
    return str(request.param)


def protected(server: Running, context: ssl.SSLContext) -> Link:
    return Link(context.wrap_socket(server.connect(), server_hostname="localhost"))


def handshakes(server: Running) -> dict[str, int]:
    return {outcome[0]: n for outcome, n in server.service.metrics.server.tls_handshakes.values().items() if n}


def wait_for(condition: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(int(MAX_WAIT_S * 100)):
        if condition():
            return
        waited.wait(0.01)
    pytest.fail("it did not happen")


@pytest.mark.usefixtures("loop")
def test_calls_hot_ones_pipelines_and_large_messages_are_as_without_tls(serve: Serve, authority: Authority) -> None:
    server = serve(**authority.settings())
    link = protected(server, authority.client())
    link.call("create_database", database=database("d"))
    for number in range(3):
        link.call("create_table", tbl=table("d", f"t{number}", comment="x" * 3_000_000))
    for _ in range(3):
        assert link.call("get_database", name="d").name == "d"
    hot = server.service.metrics.server.calls.value(("get_database", "ok"))
    assert hot == 3
    tables = link.call("get_table_objects_by_name", dbname="d", tbl_names=["t0", "t1", "t2"])
    assert [len(one.parameters["comment"]) for one in tables] == [3_000_000] * 3
    link.sock.sendall(b"".join(request_bytes("get_database", n, name="d") for n in range(500, 600)))
    for number in range(500, 600):
        link.sequence = number
        assert link.reply("get_database").name == "d"
    link.sock.sendall(link.request("shutdown"))
    assert link.sock.recv(1) == b"", "closed in order: with TLS's own end"
    assert handshakes(server) == {"ok": 1}


def test_small_calls_allocate_nothing_large(serve: Serve, authority: Authority) -> None:
    """The system maps and unmaps large objects, which costs more than the whole call."""
    server = serve(**authority.settings())
    link = protected(server, authority.client())
    link.call("create_database", database=database("d"))
    request = link.request("get_database", name="d")
    replies = []

    def ask() -> None:
        link.sock.sendall(request)
        replies.append(link.sock.recv(4096))

    for _ in range(20):
        ask()
    hot = server.service.metrics.server.calls.value(("get_database", "ok"))
    tracemalloc.start()
    try:
        ask()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            ask()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert server.service.metrics.server.calls.value(("get_database", "ok")) == hot + 21 and replies[-1] == replies[0]
    assert peak - before < 128 * 1024


def test_a_protected_socket_has_the_options_of_others(serve: Serve, authority: Authority) -> None:
    server = serve(**authority.settings())
    seen: list[int] = []
    from hms_cache.server import connection

    original = connection.Connection.connection_made

    def looked_at(self: Any, transport: Any) -> None:
        original(self, transport)
        seen.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection.Connection, "connection_made", looked_at)
        assert protected(server, authority.client()).call("getStatus") == 2
    assert seen and all(seen)


@pytest.mark.usefixtures("loop")
def test_a_client_that_takes_nothing_of_its_reply_is_disconnected(serve: Serve, authority: Authority) -> None:
    """The bytes that TLS holds for it are counted like others (P11)."""
    server = serve(**authority.settings(**{"server.write_timeout_s": 0.5}))
    link = protected(server, authority.client())
    link.call("create_database", database=database("d"))
    for number in range(3):
        link.call("create_table", tbl=table("d", f"t{number}", comment="x" * 4_000_000))
    link.sock.sendall(link.request("get_table_objects_by_name", dbname="d", tbl_names=["t0", "t1", "t2"]))
    metrics = server.service.metrics.server
    wait_for(lambda: metrics.timed_out_connections.value(("write",)) == 1)
    assert protected(server, authority.client()).call("getStatus") == 2


def expired(authority: Authority) -> trustme.LeafCert:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    return authority.ca.issue_cert("client@example.com", not_before=past, not_after=past + datetime.timedelta(days=1))


def own_ca(authority: Authority) -> trustme.LeafCert:
    return trustme.CA().issue_cert("client@example.com")


def good(authority: Authority) -> trustme.LeafCert:
    return authority.ca.issue_cert("client@example.com")


def nothing(authority: Authority) -> None:
    return None


@pytest.mark.parametrize(
    ("requested", "admitted"),
    [
        ("required", {good}),
        ("optional", {good, nothing}),
        ("none", {good, nothing, expired, own_ca}),
    ],
)
def test_client_certificates(serve: Serve, authority: Authority, requested: str, admitted: set[Any]) -> None:
    server = serve(
        **authority.settings(
            **{"server.tls_client_certificates": requested, "server.tls_client_ca_file": str(authority.ca_file)}
        )
    )
    ok = refused = 0
    for shown in (good, nothing, expired, own_ca):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = authority.client(shown(authority))
            context.minimum_version = context.maximum_version = version
            if shown in admitted:
                assert protected(server, context).call("getStatus") == 2
                ok += 1
            else:
                with pytest.raises((ssl.SSLError, ConnectionResetError, EOFError)):
                    protected(server, context).call("getStatus")
                refused += 1
            expected = {"ok": ok, "client_certificate": refused}
            wait_for(lambda expected=expected: handshakes(server) == {k: n for k, n in expected.items() if n})


def plain_call(server: Running, authority: Authority) -> None:
    with pytest.raises(TApplicationException, match=r"speaks TLS on this port: set hive.metastore.use.SSL"):
        server.link().call("get_database", name="default")


def plain_bytes(server: Running, authority: Authority) -> None:
    link = server.connect()
    link.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert link.recv(1) == b""


def old_version(server: Running, authority: Authority) -> None:
    """A ClientHello of TLS 1.1, built by hand: current OpenSSL does not send one."""
    hello = b"\x03\x02" + bytes(32) + b"\0" + b"\0\x04\xc0\x13\x00\x2f" + b"\x01\0"
    body = b"\x01" + len(hello).to_bytes(3, "big") + hello
    link = server.connect()
    link.sendall(b"\x16\x03\x01" + struct.pack("!H", len(body)) + body)
    alert = link.recv(100)
    assert (alert[0], alert[-1]) == (0x15, 70), "the alert protocol_version"
    assert link.recv(1) == b""


def stranger(server: Running, authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        protected(server, ssl.create_default_context(cadata=trustme.CA().cert_pem.bytes().decode()))


def stalled(server: Running, authority: Authority) -> None:
    link = server.connect()
    link.sendall(b"\x16\x03\x01\x02\x00\x01")
    assert link.recv(1) == b""


def silent(server: Running, authority: Authority) -> None:
    assert server.connect().recv(1) == b""


def gone(server: Running, authority: Authority) -> None:
    server.connect().close()


def garbage(server: Running, authority: Authority) -> None:
    link = server.connect()
    link.sendall(b"\x16\x03\x01\x00\x05" + b"\xff" * 5)
    while link.recv(100):
        pass


ATTEMPTS = (
    (plain_call, "plaintext"),
    (plain_bytes, "plaintext"),
    (old_version, "protocol"),
    (stranger, "refused_by_client"),
    (stalled, "timeout"),
    (silent, "timeout"),
    (gone, "closed"),
    (garbage, "other"),
)


@pytest.mark.usefixtures("loop")
def test_who_does_not_speak_tls_is_refused_counted_and_logged_once(
    serve: Serve, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(**authority.settings(**{"server.tls_handshake_timeout_s": 1}))
    staying = protected(server, authority.client())
    expected = {"ok": 1}
    for attempt, outcome in ATTEMPTS:
        attempt(server, authority)
        expected[outcome] = expected.get(outcome, 0) + 1
        wait_for(lambda: handshakes(server) == expected)
    assert sum("no TLS with 127.0.0.1" in record.getMessage() for record in caplog.records) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert staying.call("getStatus") == 2


def test_a_handshake_has_ten_seconds_unless_the_operator_says_otherwise() -> None:
    settings = load(environment={}).settings
    assert (settings.server.tls_handshake_timeout_s, settings.authentication.handshake_timeout_s) == (10, 10)


def test_connections_in_their_handshake_count(serve: Serve, authority: Authority) -> None:
    """The oldest of them is closed when all places are occupied; a client that has made a call stays."""
    server = serve(**authority.settings(**{"server.max_connections": 2}))
    staying = protected(server, authority.client())
    assert staying.call("getStatus") == 2
    halves = [server.connect() for _ in range(5)]
    wait_for(lambda: server.service.metrics.server.displaced_connections.value() >= 4)
    assert protected(server, authority.client()).call("getStatus") == 2
    assert halves[0].recv(1) == b""
    assert staying.call("getStatus") == 2


def test_connections_in_their_handshake_count_for_their_address(serve: Serve, authority: Authority) -> None:
    server = serve(
        **authority.settings(**{"server.max_connections_per_address": 2, "server.tls_handshake_timeout_s": 2})
    )
    halves = [server.connect() for _ in range(2)]
    with pytest.raises(TApplicationException, match="max_connections_per_address"):
        protected(server, authority.client()).call("getStatus")
    assert [half.recv(1) for half in halves] == [b"", b""]  # their time limit has expired, and their places are free
    assert protected(server, authority.client()).call("getStatus") == 2


def reloaded(server: Running, service: Service, settings: dict[str, Any]) -> None:
    configuration: Configuration = load(
        command_line={
            "database.url": service._settings.database.url,
            "warehouse.directory": service._settings.warehouse.directory,
            "server.port": 0,
            "admin.port": 0,
            **settings,
        },
        environment={},
    )
    service.reload(configuration)


def serial_of(link: Link) -> int:
    assert isinstance(link.sock, ssl.SSLSocket)
    der = link.sock.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


def test_a_reload_takes_new_files_and_loses_no_connection(serve: Serve, authority: Authority) -> None:
    server = serve(**authority.settings())
    old = protected(server, authority.client())
    first = serial_of(old)
    authority.written(authority.ca.issue_cert("localhost"), "server.pem")
    reloaded(server, server.service, authority.settings())
    new = protected(server, authority.client())
    assert serial_of(new) != first
    assert old.call("getStatus") == new.call("getStatus") == 2
    authority.server_file.write_text("nonsense")
    with pytest.raises(StartupError, match=r"server\.pem"):
        reloaded(server, server.service, authority.settings())
    assert protected(server, authority.client()).call("getStatus") == 2, "the old ones stay in force"


def stored_as_pkcs12(authority: Authority) -> Path:
    pem = authority.certificate.private_key_pem.bytes()
    certificates = [x509.load_pem_x509_certificate(one.bytes()) for one in authority.certificate.cert_chain_pems]
    file = authority.directory / "server.p12"
    key: Any = load_pem_private_key(pem, None)
    file.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"hms", key, certificates[0], certificates[1:], BestAvailableEncryption(PASSWORD.encode())
        )
    )
    return file


@pytest.fixture
def site(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    def write(properties: dict[str, str]) -> Path:
        file = tmp_path / "hive-site.xml"
        lines = "".join(f"<property><name>{n}</name><value>{v}</value></property>" for n, v in properties.items())
        file.write_text(f"<configuration>{lines}</configuration>")
        return file

    return write


@pytest.mark.parametrize("prefix", ["metastore.", "hive.metastore."])
def test_hives_keys_and_a_pkcs12_store(
    tmp_path: Path, authority: Authority, site: Callable[[dict[str, str]], Path], prefix: str
) -> None:
    file = site(
        {
            f"{prefix}use.SSL": "true",
            f"{prefix}keystore.path": str(stored_as_pkcs12(authority)),
            f"{prefix}keystore.password": PASSWORD,
            f"{prefix}keystore.type": "PKCS12",
            "hive.ssl.protocol.blacklist": "SSLv2,SSLv3,TLSv1,TLSv1.1,TLSv1.2",
        }
    )
    given = {"server.port": 0, "admin.enabled": False, "database.url": f"sqlite:///{tmp_path / 'm.db'}"}
    configuration = load(command_line=given, site_files=[file], environment={})
    assert not configuration.site_review.insecure and not configuration.site_review.ignored
    service = Service(configuration)
    port = int(service.start().rpartition(":")[2])
    try:
        with socket.create_connection(("127.0.0.1", port), MAX_WAIT_S) as plain:
            link = Link(authority.client().wrap_socket(plain, server_hostname="localhost"))
            assert link.call("getStatus") == 2
            assert link.call("get_config_value", name="metastore.use.SSL", defaultValue="") == "true"
            assert isinstance(link.sock, ssl.SSLSocket) and link.sock.version() == "TLSv1.3"
        with socket.create_connection(("127.0.0.1", port), MAX_WAIT_S) as plain:
            older = authority.client()
            older.maximum_version = ssl.TLSVersion.TLSv1_2
            with pytest.raises(ssl.SSLError):
                older.wrap_socket(plain, server_hostname="localhost")
    finally:
        service.stop()


@pytest.mark.parametrize("kind", key_stores.CHAINS)
def test_a_key_store_of_javas_whose_password_is_in_a_credential_provider(
    tmp_path: Path, site: Callable[[dict[str, str]], Path], kind: str
) -> None:
    file = site(
        {
            "hive.metastore.use.SSL": "true",
            "hive.metastore.keystore.path": str(key_stores.CHAINS[kind]),
            "hive.metastore.keystore.password": "not this one",
            "hadoop.security.credential.provider.path": f"jceks://file{key_stores.PROTECTED}",
        }
    )
    given = {"server.port": 0, "admin.enabled": False, "database.url": f"sqlite:///{tmp_path / 'm.db'}"}
    environment = {"HADOOP_CREDSTORE_PASSWORD": key_stores.PROTECTION}
    configuration = load(command_line=given, site_files=[file], environment=environment)
    assert not configuration.site_review.insecure and not configuration.site_review.ignored
    service = Service(configuration)
    port = int(service.start().rpartition(":")[2])
    try:
        with socket.create_connection(("127.0.0.1", port), MAX_WAIT_S) as plain:
            trusting = ssl.create_default_context(cafile=key_stores.AUTHORITY)
            assert Link(trusting.wrap_socket(plain, server_hostname="localhost")).call("getStatus") == 2
    finally:
        service.stop()


@pytest.mark.parametrize(
    ("content", "settings", "told"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2" + bytes(30), {}, "password is wrong, or the file is damaged"),
        (
            key_stores.PASSWORDS.read_bytes(),
            {"server.tls_key_password": "none"},
            "it holds no certificate with a key",
        ),
        (b"\x30\x82\x01\x00nonsense", {}, "server.tls_certificate_file"),
        (b"nonsense", {}, "server.tls_certificate_file"),
        (None, {}, "No such file"),
        ("encrypted", {}, "server.tls_certificate_file"),
        ("encrypted", {"server.tls_key_password": "wrong password"}, "server.tls_certificate_file"),
        ("pkcs12", {"server.tls_key_password": "wrong password"}, "server.tls_certificate_file"),
        ("good", {"server.tls_ciphers": "NOT-A-CIPHER"}, "server.tls_ciphers"),
        (
            "good",
            {"server.tls_client_certificates": "required", "server.tls_client_ca_file": "/no/such/file"},
            "server.tls_client_ca_file",
        ),
    ],
)
def test_files_that_cannot_be_used_stop_the_start_with_a_remedy(
    serve: Serve, authority: Authority, content: Any, settings: dict[str, Any], told: str
) -> None:
    file = authority.server_file
    if content is None:
        file.unlink()
    elif content == "pkcs12":
        file = stored_as_pkcs12(authority)
    elif content == "encrypted":
        file.write_bytes(encrypted_key(authority) + authority.certificate.cert_chain_pems[0].bytes())
    elif content != "good":
        file.write_bytes(content)
    with pytest.raises(StartupError) as raised:
        serve(**authority.settings(**{**settings, "server.tls_certificate_file": str(file)}))
    assert told in str(raised.value) and raised.value.remedy
    assert "wrong password" not in str(raised.value)


def encrypted_key(authority: Authority) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

    key = load_pem_private_key(authority.certificate.private_key_pem.bytes(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode()))


def test_an_encrypted_key_with_its_password_in_a_file(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    key, password = tmp_path / "key.pem", tmp_path / "password"
    key.write_bytes(encrypted_key(authority))
    password.write_text(PASSWORD + "\n")
    server = serve(
        **authority.settings(**{"server.tls_key_file": str(key), "server.tls_key_password_file": str(password)})
    )
    assert protected(server, authority.client()).call("getStatus") == 2


@pytest.mark.parametrize(
    "settings", [{"server.tls_enabled": True}, {"server.tls_client_certificates": "required"}], ids=str
)
def test_settings_that_miss_their_files_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"needs tls_.*_file"):
        load(command_line=settings, environment={})
