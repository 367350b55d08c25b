"""Several ports of one server: a mechanism on each, one cache, one set of limits, one reload, one end.

The KDC, the directory and the key server are real; so are the clients: hmsclient over Thrift's SASL, TLS and HTTP.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hmsclient import HMSClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TTransport import TTransportBase

from hms_cache.app.checks import Findings
from hms_cache.app.security.checks import check_security
from hms_cache.app.service import Service
from hms_cache.cli.main import commands
from hms_cache.config import Configuration, load
from hms_cache.errors import ConfigurationError, StartupError
from tests.server.conftest import MAX_WAIT_S, Link, Running, Serve, database, request_bytes, table
from tests.server.kerberos_realm import REALM, Realm, SaslSocket, realm_of_this_process
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_delegation_tokens import link_over, requested
from tests.server.test_kerberos import SERVICE, authentications
from tests.server.test_kerberos import settings_of as kerberos_settings
from tests.server.test_ldap import PEOPLE, directory_port
from tests.server.test_tls import Authority, handshakes, wait_for
from tests.servers import server_process

pytest.importorskip("gssapi")
pytest.importorskip("ldap3")
pytest.importorskip("jwt")

__all__ = ["directory_port"]  # a fixture

OPEN, KERBEROS, LDAP, JWT = range(4)
"""The ports, in the order of `listeners`; the first is the main one."""

LISTENERS = (
    {"port": 0, "mechanisms": "kerberos"},
    {"port": 0, "mechanisms": "ldap", "tls_enabled": True},
    {"port": 0, "mechanisms": "jwt", "tls_enabled": True, "transport_mode": "http"},
)


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann") as running:
        yield running


class Site:
    """One server with all ports, and a client for each."""

    def __init__(self, realm: Realm, directory_port: int, place: Path) -> None:
        self.realm = realm
        self.authority = Authority(place)
        self.issuer = Issuer()
        self._directory_port = directory_port
        self.running: Running
        self.numbers: list[int] = []
        """Of the ports, where the server is a process of its own."""
        self._open: list[Any] = []

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            **self.authority.settings(),
            **kerberos_settings(self.realm),
            "server.tls_enabled": False,
            "server.mechanisms": "none",
            "server.listeners": list(LISTENERS),
            "authentication.plain": "ldap",
            "authentication.ldap_url": f"ldap://127.0.0.1:{self._directory_port}",
            "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
            "authentication.jwt_jwks_url": self.issuer.url,
            "authentication.jwt_issuer": "issuer",
            "authentication.jwt_audience": "hms",
            "server.audit_format": "json",
            **more,
        }

    @property
    def service(self) -> Service:
        return self.running.service

    def number(self, port: int) -> int:
        return self.numbers[port] if self.numbers else self.service.addresses[port][1]

    def raw(self, port: int) -> socket.socket:
        """Connected, without TLS."""
        raw = socket.create_connection(("127.0.0.1", self.number(port)), timeout=MAX_WAIT_S)
        self._open.append(raw)
        return raw

    def socket(self, port: int) -> Any:
        """Connected, and through TLS if the port uses it."""
        raw = self.raw(port)
        if port in (LDAP, JWT):
            return self.authority.client().wrap_socket(raw, server_hostname="localhost")
        return raw

    def sasl(self, port: int) -> SaslSocket:
        return SaslSocket(self.socket(port))

    def link(self, port: int) -> Any:
        """Authenticated by the port's mechanism; it can `call`."""
        if port == OPEN:
            return Link(self.socket(port))
        if port == JWT:
            return _HttpLink(self, self.issuer.token())
        sock = self.sasl(port)
        if port == KERBEROS:
            assert sock.gssapi(self.ticket, SERVICE, 4) == (5, b"")
        else:
            assert sock.plain("ann", "ann's password") == (5, b"")
        return link_over(sock)

    @property
    def ticket(self) -> Path:
        return self.realm.directory / "ann.cache"

    def close(self) -> None:
        for one in self._open:
            one.close()
        self.issuer.close()


class _HttpLink:
    def __init__(self, site: Site, token: str) -> None:
        self._connection = http.client.HTTPSConnection(
            "localhost", site.number(JWT), timeout=MAX_WAIT_S, context=site.authority.client()
        )
        site._open.append(self._connection)
        self._token = token

    def post(self, method: str, **arguments: Any) -> tuple[int, bytes]:
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        self._connection.request("POST", "/metastore", request_bytes(method, 1, **arguments), headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def call(self, method: str, **arguments: Any) -> Any:
        status, body = self.post(method, **arguments)
        assert status == 200, body

        class _Read:
            def recv(self, size: int) -> bytes:
                nonlocal body
                piece, body = body[:size], body[size:]
                return piece

        link = Link.__new__(Link)
        link.sock, link.sequence = _Read(), 1  # type: ignore[assignment]
        return link.reply(method)


@pytest.fixture
def site(realm: Realm, directory_port: int, tmp_path: Path) -> Iterator[Site]:
    with contextlib.closing(Site(realm, directory_port, tmp_path)) as made:
        yield made


@pytest.fixture
def served(site: Site, serve: Serve) -> Site:
    site.running = serve(**site.settings())
    return site


PORTS = (OPEN, KERBEROS, LDAP, JWT)


def test_the_same_table_over_each_port_from_one_cache_under_each_ports_user(
    served: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "hms_cache.audit"):
        served.link(OPEN).call("create_database", database=database("d"))
        for port in PORTS:
            served.link(port).call("create_table", tbl=table("d", f"t{port}"))
        links = {port: served.link(port) for port in PORTS}
        for _ in range(3):
            for link in links.values():
                assert [link.call("get_table", dbname="d", tbl_name=f"t{n}").tableName for n in PORTS] == [
                    f"t{n}" for n in PORTS
                ]
        reads = served.service.reads_by_outcome()
        served.service.stop()
    assert reads["hit"] >= 4 * 4 * 2, "what one port's clients had loaded, the others' read from memory"
    made = [json.loads(r.getMessage()) for r in caplog.records if r.name == "hms_cache.audit"]
    assert [(one["mechanism"], one["ugi"]) for one in made if one["method"] == "create_table"] == [
        ("none", "anonymous"),
        ("GSSAPI", "ann"),
        ("PLAIN", "ann"),
        ("JWT", "ann"),
    ]


def test_hmsclient_reads_over_each_port(served: Site) -> None:
    served.link(OPEN).call("create_database", database=database("d"))

    class Over(TTransportBase):
        """A socket that has authenticated, as a transport of Thrift's."""

        def __init__(self, sock: Any) -> None:
            self._sock = sock

        def isOpen(self) -> bool:
            return True

        def open(self) -> None:
            """It is."""

        def close(self) -> None:
            """The site does."""

        def read(self, size: int) -> bytes:
            return bytes(self._sock.recv(size))

        def write(self, data: bytes) -> None:
            self._sock.sendall(data)

        def flush(self) -> None:
            """All is sent."""

    transports: list[Any] = [Over(served.link(port).sock) for port in (OPEN, KERBEROS, LDAP)]
    http_client = THttpClient(
        f"https://localhost:{served.number(JWT)}/metastore", ssl_context=served.authority.client()
    )
    http_client.setCustomHeaders({"Authorization": f"Bearer {served.issuer.token()}"})
    for transport in (*transports, http_client):
        with HMSClient(TBinaryProtocol(transport)) as client:
            assert client.get_database("d").name == "d"


def test_a_mechanism_is_good_on_its_own_port_only(served: Site) -> None:
    served.link(OPEN).call("create_database", database=database("d"))
    token = requested(served.link(KERBEROS), f"ann@{REALM}")
    names = (base64.b64encode(token.identifier), base64.b64encode(token.password))
    # Passwords on the port for tickets; tickets and tokens on the port for passwords.
    assert served.sasl(KERBEROS).plain("ann", "ann's password")[0] in (3, 4)
    for mechanism in (b"GSSAPI", b"DIGEST-MD5"):
        sock = served.sasl(LDAP)
        sock.message(1, mechanism)
        sock.message(2, b"")
        status, told = sock.answer()
        assert status in (3, 4) and b"PLAIN" in told, "it is told what the port takes"
    assert served.sasl(LDAP).plain(names[0].decode(), names[1].decode())[0] in (3, 4)
    # A bearer token on a SASL port, SASL on an HTTP port; neither is a call of Thrift.
    for port in (KERBEROS, LDAP):
        sock = served.socket(port)
        sock.sendall(b"POST /metastore HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a.b.c\r\nContent-Length: 0\r\n\r\n")
        assert b" 200 " not in sock.recv(4096)
    sasl = served.sasl(JWT)
    with contextlib.suppress(EOFError, OSError):
        assert sasl.plain("ann", "ann's password")[0] != 5
    for wrong in ("", "a.b.c", served.issuer.token(aud="another")):
        assert _HttpLink(served, wrong).post("get_database", name="d")[0] == 401
    # Plain calls, on each port except the open one.
    for port in (KERBEROS, LDAP, JWT):
        raw = socket.create_connection(("127.0.0.1", served.number(port)), timeout=MAX_WAIT_S)
        with raw, pytest.raises((TApplicationException, EOFError)):
            Link(raw).call("get_database", name="d")
    counted = authentications(served.running)
    assert counted["ok"] == 1 and counted["no_token"] == 1 and counted["refused"] >= 2
    assert handshakes(served.running)["plaintext"] == 2
    assert served.link(OPEN).call("get_database", name="d").name == "d"


def test_what_is_claimed_on_the_open_port_is_nobody_elsewhere(served: Site) -> None:
    """`set_ugi` sets the user on the open port; it has no effect on the others. A token needs a ticket, on each
    port."""
    link = served.link(OPEN)
    link.call("set_ugi", user_name="ann", group_names=[])
    with pytest.raises(Exception, match=r"(?i)kerberos"):
        link.call("get_delegation_token", token_owner="ann", renewer_kerberos_principal_name="")
    for port in (LDAP, JWT):
        with pytest.raises(Exception, match=r"(?i)kerberos"):
            served.link(port).call("get_delegation_token", token_owner="ann", renewer_kerberos_principal_name="")
    assert served.link(LDAP).call("set_ugi", user_name="root", group_names=[]) == ["root"]


def test_limits_hold_over_all_ports_together(site: Site, serve: Serve) -> None:
    site.running = serve(**site.settings(**{"server.max_connections": 4, "server.first_call_timeout_s": 60}))
    links = [site.link(port) for port in PORTS]
    for link in links:
        assert link.call("getStatus") == 2
    for port in (OPEN, KERBEROS):
        with pytest.raises((TApplicationException, EOFError, OSError), match=r"(?s).*"):
            site.link(port).call("getStatus")
    listener_connections = site.service.metrics.registry.get_sample_value("hms_cache_connections")
    assert listener_connections is not None and listener_connections >= 4
    assert site.service.metrics.registry.get_sample_value("hms_cache_connections_refused_total") >= 2  # type: ignore[operator]
    for link in links:
        assert link.call("getStatus") == 2, "those that were there stay"
    by_port = {
        number: site.service.metrics.registry.get_sample_value("hms_cache_port_connections", {"port": str(number)})
        for number in map(site.number, PORTS)
    }
    assert all(n and n >= 1 for n in by_port.values()), by_port


def test_hostile_bytes_on_each_port_leave_the_others_alone(served: Site) -> None:
    links = {port: served.link(port) for port in PORTS}
    attacks = (
        b"",
        b"\x80\x01\x00\x01\xff\xff\xff\xff",
        b"\x16\x03\x01\xff\xff" + b"x" * 5000,
        b"\x01\x7f\xff\xff\xff",
        b"\x01\0\0\0\6GSSAPI\2\0\0\0\5abcde",
        b"POST /metastore HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
        struct.pack("!I", 0x7FFFFFFF),
        bytes(range(256)) * 40,
    )
    for port in PORTS:
        for attack in attacks:
            for connect in (served.raw, served.socket):
                with contextlib.suppress(OSError), connect(port) as sock:
                    sock.sendall(attack)
                    sock.shutdown(socket.SHUT_WR)
                    sock.settimeout(MAX_WAIT_S)
                    while sock.recv(65536):
                        pass
            for other, link in links.items():
                assert link.call("getStatus") == 2, f"{attack[:20]!r} on port {port} broke port {other}"
    for port in PORTS:
        assert served.link(port).call("getStatus") == 2
    wait_for(lambda: served.service.metrics.registry.get_sample_value("hms_cache_connections") == len(PORTS) * 2)


def test_new_certificates_are_taken_on_all_ports_and_connections_stay(site: Site, serve: Serve, tmp_path: Path) -> None:
    site.running = serve(**site.settings())
    before = {port: site.link(port) for port in (LDAP, JWT)}
    for link in before.values():
        assert link.call("getStatus") == 2
    (tmp_path / "second").mkdir()
    second = Authority(tmp_path / "second")
    site.authority.server_file.write_bytes(second.server_file.read_bytes())
    taken, refused = site.service.reload(site.service._configuration)
    assert (taken, refused) == ([], [])
    for port in (LDAP, JWT):
        with pytest.raises(ssl.SSLCertVerificationError):
            site.link(port).call("getStatus")
    site.authority = second
    for port in (LDAP, JWT):
        assert site.link(port).call("getStatus") == 2
    for link in before.values():
        assert link.call("getStatus") == 2
    # Unusable files change nothing, on no port. Changes of ports need a restart.
    given = site.settings()
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    with pytest.raises(StartupError):
        site.service.reload(load(command_line={**given, "server.tls_certificate_file": str(broken)}, environment={}))
    for port in (LDAP, JWT):
        assert site.link(port).call("getStatus") == 2
    configuration: Configuration = site.service._configuration
    server = configuration.settings.server
    fewer = configuration.settings.model_copy(
        update={"server": server.model_copy(update={"listeners": server.listeners[:2]})}
    )
    assert configuration.reloadable_changes(fewer) == ([], ["server.listeners"])


def test_all_ports_are_told_of_and_closed_together(site: Site, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "hms_cache.app.service"):
        site.running = serve(**site.settings(**{"admin.enabled": True}))
    numbers = [site.number(port) for port in PORTS]
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("listening on")]
    assert lines == [
        f"listening on 127.0.0.1:{numbers[0]}: thrift://127.0.0.1:{numbers[0]}, authentication: none",
        f"listening on 127.0.0.1:{numbers[1]}: thrift://127.0.0.1:{numbers[1]}, authentication: GSSAPI, DIGEST-MD5",
        f"listening on 127.0.0.1:{numbers[2]}: thrift+tls://127.0.0.1:{numbers[2]}, authentication: PLAIN",
        f"listening on 127.0.0.1:{numbers[3]}: https://127.0.0.1:{numbers[3]}/metastore, authentication: JWT",
    ]
    assert [r.levelname for r in caplog.records if f"port {numbers[0]} does not authenticate" in r.getMessage()] == [
        "WARNING"
    ]
    link = site.link(LDAP)
    assert link.call("getStatus") == 2
    host, port = site.service.management_address or ("", 0)
    management = f"http://{host}:{port}"
    shown = CliRunner().invoke(commands, ["status", "--management", management, "--json"])
    ports = json.loads(shown.output)["ports"]
    assert [one["authentication"] for one in ports] == ["none", "GSSAPI, DIGEST-MD5", "PLAIN", "JWT"]
    assert [one["connections"] for one in ports] == [0, 0, 1, 0]
    shown = CliRunner().invoke(commands, ["status", "--management", management])
    assert f"https://127.0.0.1:{numbers[3]}/metastore  authentication: JWT, connections: 0" in shown.output
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request("GET", "/", headers={"accept": "text/html"})
    page = connection.getresponse().read().decode()
    connection.close()
    for one in ports:
        assert f"<td>{one['uri']}</td><td>{one['authentication']}</td>" in page
    site.service.stop()
    assert link.sock.recv(1) == b"", "the drain closes what is idle, on every port"
    for number in numbers:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", number), timeout=5)


LDAP_IN_THE_CLEAR = {"port": 0, "mechanisms": "ldap"}
JWT_IN_THE_CLEAR = {"port": 0, "mechanisms": "jwt", "transport_mode": "http"}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"server.listeners": [*LISTENERS, LDAP_IN_THE_CLEAR]}, r"server\.listeners\[3\].*sends passwords unencrypted"),
        ({"server.listeners": [*LISTENERS, JWT_IN_THE_CLEAR]}, r"server\.listeners\[3\].*send tokens unencrypted"),
        ({"server.listeners": LISTENERS[:2]}, r"authentication\.jwt_jwks_url is set, and no port asks for it"),
        (
            {
                "server.listeners": [*LISTENERS, {"port": 0, "transport_mode": "http"}],
                "authentication.jwt_jwks_url": "",
            },
            r"listeners\[2\]\.mechanisms: jwt is not set up",
        ),
        (
            {
                "server.listeners": [*LISTENERS[:2], {"port": 0, "transport_mode": "http"}],
                "authentication.jwt_jwks_url": "",
            },
            r"listeners\[2\]: nothing of what is set up .* is possible with transport_mode = http",
        ),
        (
            {"authorization.provider": "sql"},
            r"clients of port 0 do not authenticate, so anyone could use another's name",
        ),
    ],
)
def test_what_is_not_safe_does_not_start(site: Site, serve: Serve, changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(StartupError, match=problem):
        serve(**site.settings(**changed))
    findings = Findings()
    check_security(findings, load(command_line=site.settings(**changed), environment={}).settings)
    assert [one for one in findings.found if one.severity == "error"], "the check says so, too"


def test_what_is_not_safe_starts_where_that_is_accepted(site: Site, serve: Serve) -> None:
    listeners = [*LISTENERS, LDAP_IN_THE_CLEAR, JWT_IN_THE_CLEAR]
    site.running = serve(**site.settings(**{"server.listeners": listeners, "security.accept_insecure": True}))
    sock = SaslSocket(socket.create_connection(("127.0.0.1", site.number(4)), timeout=MAX_WAIT_S))
    assert sock.plain("ann", "ann's password") == (5, b"")
    sock.sock.close()


@pytest.mark.parametrize(
    ("listeners", "problem"),
    [
        ([{"port": 9083}], r"listeners\[0\]: port 9083 is used twice"),
        ([{"port": 9085}], r"admin\.port must differ"),
        ([{"port": 1, "mechanisms": "jwt"}], "transport_mode = binary does not support jwt"),
        (
            [{"port": 1, "mechanisms": "kerberos", "transport_mode": "http"}],
            "transport_mode = http does not support kerberos",
        ),
        ([{"port": 1, "mechanisms": "none,ldap"}], "none cannot be combined"),
        ([{"port": 1, "mechanisms": "ntlm"}], "not ntlm"),
        ([{"port": 1, "quality_of_protection": "best"}], r"listeners\[0\]: quality_of_protection must be"),
        ([{"port": 1, "tls_enabled": True}], "tls_enabled needs tls_certificate_file"),
        ([{"port": 1, "tls_client_certificates": "required"}], "needs tls_client_ca_file"),
        ([{"tls_enabled": False}], r"listeners\[0\]\.port.*[Ff]ield required"),
        ([{"port": 1, "tsl_enabled": True}], r"listeners\[0\]\.tsl_enabled"),
        ([{"port": n} for n in range(1, 18)], "listeners"),
        ("[{port = 1", "must be a list in TOML"),
    ],
)
def test_settings_that_cannot_be_meant(listeners: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        load(command_line={"server.listeners": listeners}, environment={})


def test_listeners_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "hms-cache.toml"
    file.write_text(
        '[server]\nport = 1\n[[server.listeners]]\nport = 2\nmechanisms = ["none"]\n[[server.listeners]]\nport = 3\n'
    )
    found = load(config_file=file, environment={}).settings.server
    assert [one.port for one in found.ports()] == [1, 2, 3]
    text = '[{port = 5, host = "::1"}]'
    found = load(config_file=file, environment={"HMS_CACHE__SERVER__LISTENERS": text}).settings.server
    assert [(one.host, one.port) for one in found.ports()] == [("127.0.0.1", 1), ("::1", 5)]


def test_the_check_looks_at_each_port(site: Site) -> None:
    findings = Findings()
    check_security(findings, load(command_line=site.settings(), environment={}).settings)
    told = [(one.severity, one.problem) for one in findings.found]
    assert ("warning", "server (port 9083) does not authenticate clients, although other ports do") in told
    assert not [problem for severity, problem in told if severity == "error"]
    no_authority = site.authority.directory / "none.pem"
    no_authority.write_text("nothing")
    listeners = [
        *LISTENERS,
        {"port": 0, "mechanisms": "none", "tls_enabled": True, "tls_client_certificates": "required"},
    ]
    changed = {"server.listeners": listeners, "server.tls_client_ca_file": str(no_authority)}
    broken = Findings()
    check_security(broken, load(command_line=site.settings(**changed), environment={}).settings)
    (problem,) = [one.problem for one in broken.found if one.severity == "error"]
    assert problem.startswith("server.listeners[3] (port 0): server.tls_client_ca_file")
    assert "the keytab has the principal's key, and the KDC takes it" in findings.passed
    assert "the directory answers" in findings.passed
    assert "the issuer's keys can be read and used" in findings.passed


def test_a_port_that_is_taken_leaves_none_open(site: Site, serve: Serve) -> None:
    with socket.socket() as taken, socket.socket() as free:
        for one in (taken, free):
            one.bind(("127.0.0.1", 0))
        taken.listen()
        main, other = free.getsockname()[1], taken.getsockname()[1]
        free.close()
        with pytest.raises(StartupError, match=rf"cannot listen on 127.0.0.1:{other}"):
            serve(**{"server.port": main, "server.listeners": [{"port": other}]})
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", main), timeout=5)


def test_workers_share_each_port_reload_and_stop_together(site: Site, tmp_path: Path) -> None:
    settings = {name: value for name, value in site.settings().items() if name != "server.listeners"}
    # As an operator writes it on a command line.
    tables = ", ".join("{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in one.items()) + "}" for one in LISTENERS)
    settings |= {"server.listeners": f"[{tables}]", "server.workers": 2, "log.level": "info"}
    url = f"sqlite:///{tmp_path / 'metastore.db'}"
    with server_process(tmp_path / "server", url, settings) as server:
        found = re.findall(r"listening on 127\.0\.0\.1:(\d+): \S+, authentication: (\S+)", server.log)
        numbers = [int(number) for number, _ in found]
        assert len(numbers) == 8 and numbers[:4] == numbers[4:], "both workers listen on the same four ports"
        assert numbers[0] == server.port

        site.numbers = numbers[:4]
        site.link(OPEN).call("create_database", database=database("d"))
        for port in PORTS:
            for _ in range(6):
                assert site.link(port).call("get_database", name="d").name == "d"
        second = tmp_path / "second"
        second.mkdir()
        renewed = Authority(second)
        site.authority.server_file.write_bytes(renewed.server_file.read_bytes())
        os.kill(server.process_id, signal.SIGHUP)
        site.authority = renewed

        def all_workers_have_it() -> bool:
            try:
                for _ in range(8):
                    for port in (LDAP, JWT):
                        site.link(port).call("getStatus")
            except ssl.SSLCertVerificationError:
                return False
            return True

        wait_for(all_workers_have_it)
        assert "restart" not in server.log
    for number in numbers[:4]:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", number), timeout=5)
