"""SASL PLAIN against a real OpenLDAP server."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.security.authentication import mechanisms
from hms_cache.authentication.directory import Directory, DirectoryOptions, is_compared_as_written
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authentication.plain import PlainMechanism
from hms_cache.config import load
from hms_cache.errors import StartupError
from tests.server.conftest import MAX_WAIT_S, Running, Serve, request_bytes
from tests.server.kerberos_realm import SaslSocket
from tests.server.test_kerberos import authentications
from tests.server.test_tls import Authority, wait_for

pytest.importorskip("ldap3")

PEOPLE = "ou=people,dc=example,dc=test"
ODD_PASSWORD = "m²º½\ufb01 \u00a0\u0627 \u00ad1"
"""What keyboards have, and what Unicode's forms would make another text of, or refuse."""

ENTRIES = f"""dn: dc=example,dc=test
objectClass: domain
dc: example

dn: {PEOPLE}
objectClass: organizationalUnit
ou: people

dn: uid=ann,{PEOPLE}
objectClass: account
objectClass: simpleSecurityObject
uid: ann
userPassword: ann's password

dn: uid=zoe,{PEOPLE}
objectClass: account
objectClass: simpleSecurityObject
uid: zoe
userPassword:: {b64encode(ODD_PASSWORD.encode()).decode()}

dn: uid=o\\2Cbrien,{PEOPLE}
objectClass: account
objectClass: simpleSecurityObject
uid: o,brien
userPassword: another
"""


@pytest.fixture(scope="module")
def directory_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """With the entries above."""
    with running_directory(tmp_path_factory.mktemp("directory"), ENTRIES) as port:
        yield port


@contextmanager
def running_directory(place: Path, entries: str, more: str = "") -> Iterator[int]:
    """Its port. By default, slapd accepts a bind without a password as anonymous, and reports success here."""
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/lib/openldap"
    slapd = shutil.which("slapd", path=path)
    slapadd = shutil.which("slapadd", path=path)
    schema = Path("/etc/ldap/schema")
    if slapd is None or slapadd is None or not schema.is_dir():
        pytest.skip("needs slapd")
    (place / "data").mkdir()
    configuration = place / "slapd.conf"
    configuration.write_text(
        f"include {schema}/core.schema\ninclude {schema}/cosine.schema\ninclude {schema}/inetorgperson.schema\n"
        f"include {schema}/nis.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n"
        f"allow bind_anon_dn bind_anon_cred\npidfile {place}/pid\ndatabase mdb\nsuffix dc=example,dc=test\n"
        f"directory {place}/data\n{more}"
    )
    subprocess.run([slapadd, "-f", str(configuration)], input=entries, text=True, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(
        [slapd, "-f", str(configuration), "-h", f"ldap://127.0.0.1:{port}", "-d", "0"], stderr=subprocess.DEVNULL
    )
    wait_for(lambda: listens(port) or process.poll() is not None)
    assert process.poll() is None
    try:
        yield port
    finally:
        process.terminate()
        process.wait(60)


def listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def settings_of(port: int, authority: Authority, **more: Any) -> dict[str, Any]:
    return authority.settings(
        **{
            "authentication.plain": "ldap",
            "authentication.ldap_url": f"ldap://127.0.0.1:{port}",
            "authentication.ldap_user_dn_pattern": f"cn=%s,ou=none,dc=example,dc=test:uid=%s,{PEOPLE}",
            **more,
        }
    )


def client(server: Running, authority: Authority) -> SaslSocket:
    return SaslSocket(authority.client().wrap_socket(server.connect(), server_hostname="localhost"))


REFUSED = (
    ("ann", "wrong", ""),
    ("ann", "", ""),
    ("", "", ""),
    ("nobody", "ann's password", ""),
    ("*", "ann's password", ""),
    ("a*", "ann's password", ""),
    ("ann)(uid=*", "ann's password", ""),
    (f"ann,{PEOPLE}", "ann's password", ""),
    ("ann+uid=ann", "ann's password", ""),
    ("ann", "ann's password", "root"),
    *((name, "ann's password", "") for name in ("ann ", " ann", "an\u00adn", "\uff41nn", "a\u200bnn", "ann\ufe0f")),
    ("x" * 2000, "x", ""),
)


def test_who_is_refused_and_who_is_let_in(shared: tuple[Running, Authority]) -> None:
    """One server for all: one client's bytes do not affect the next."""
    server, authority = shared
    for number, (user, password, acting_as) in enumerate(REFUSED, start=1):
        sock = client(server, authority)
        status, text = sock.plain(user, password, acting_as)
        assert status in (3, 4) and text and b"password'" not in text, (user, password)
        wait_for(lambda wanted=number: sum(authentications(server).values()) == wanted)  # type: ignore[misc]
        assert sock.sock.recv(1) == b""
    for message in (b"", b"ann", b"\0ann", b"a\0b\0c\0d", b"\0\xff\0x"):
        sock = client(server, authority)
        sock.message(1, b"PLAIN")
        sock.message(5, message)
        assert sock.answer()[0] == 3
    for user, password in (("ann", "ann's password"), ("o,brien", "another")):
        sock = client(server, authority)
        assert sock.plain(user, password) == (5, b"")
        sock.sendall(request_bytes("getStatus", 1))
        assert b"getStatus" in sock.recv(100)
    assert authentications(server)["ok"] == 2


@pytest.fixture
def shared(serve: Serve, directory_port: int, tmp_path: Path) -> tuple[Running, Authority]:
    authority = Authority(tmp_path)
    return serve(**settings_of(directory_port, authority)), authority


def test_passwords_are_what_is_written(directory_port: int) -> None:
    directory = Directory(
        DirectoryOptions(urls=(f"ldap://127.0.0.1:{directory_port}",), name_patterns=(f"uid=%s,{PEOPLE}",))
    )
    directory.check("zoe", ODD_PASSWORD)
    # First passwords of which Unicode normalization would leave nothing: to a directory, this would be an anonymous
    # bind.
    wrong = [
        "\u00ad",
        "\u200b",
        "\ufeff",
        "\ufe00",
        "\0",
        "\a",
        "\ue000",
        "\u0221",
        "\u0627a",
        "a\u0627",
        " ",
        "\u00a0",
    ]
    wrong += ["\0ann's password", "ann's password\0", "ann's password\u00ad", "ann's\u00a0password"]
    wrong += ["\uff41nn's password", "x" * 1024]
    for password in wrong:
        with pytest.raises(AuthenticationError) as refused:
            directory.check("ann", password)
        assert refused.value.outcome == "refused", ascii(password)


def test_passwords_are_not_taken_in_the_open(serve: Serve, directory_port: int, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"server\.tls_enabled"):
        serve(**settings_of(directory_port, Authority(tmp_path), **{"server.tls_enabled": False}))


def test_a_directory_that_does_not_answer_is_told_apart(tmp_path: Path) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"ldap://127.0.0.1:{silent.getsockname()[1]}"
    directory = Directory(DirectoryOptions((url,), base=PEOPLE, timeout_s=0.3))
    with silent, pytest.raises(AuthenticationError) as raised:
        directory.check("ann", "x")
    assert raised.value.outcome == "unavailable"


def test_the_second_directory_is_asked_when_the_first_is_away(directory_port: int) -> None:
    urls = ("ldap://127.0.0.1:1", f"ldap://127.0.0.1:{directory_port}")
    directory = Directory(DirectoryOptions(urls, base=PEOPLE, timeout_s=30))
    directory.check("ann", "ann's password")
    with pytest.raises(AuthenticationError, match="wrong name or password"):
        directory.check("ann", "wrong")


def test_spellings_that_a_directory_takes_for_one_name(directory_port: int) -> None:
    """Only the case is the site's choice: everything else would make a second user of one account."""
    directory = Directory(DirectoryOptions((f"ldap://127.0.0.1:{directory_port}",), base=PEOPLE, timeout_s=30))
    directory.check("ANN", "ann's password")
    for is_folded, named in ((True, "ann"), (False, "Ann")):
        mechanism = PlainMechanism(directory.check, is_folded=is_folded)
        mechanism.step(b"\0Ann\0ann's password")
        assert (mechanism.user, mechanism.principal) == (named, named)
    for name in ("ann b", "o'brien", "jos\u00e9", "\u00fcnal", "\u5f20\u4e09", "a.b-c_d@x", "\u0645\u0631\u06cc\u0645"):
        assert is_compared_as_written(name), name


@pytest.mark.parametrize(("case", "named"), [("keep", "ANN"), ("lower", "ann")])
def test_whom_a_site_takes_for_one_user(directory_port: int, case: str, named: str) -> None:
    given = {
        "authentication.plain": "ldap",
        "authentication.ldap_url": f"ldap://127.0.0.1:{directory_port}",
        "authentication.ldap_base_dn": PEOPLE,
        "authentication.ldap_user_case": case,
        "security.accept_insecure": True,
    }
    mechanism = mechanisms(load(environment={}, command_line=given).settings)["PLAIN"]()
    mechanism.step(b"\0ANN\0ann's password")
    assert mechanism.user == named


def entry(uid: str, password: str) -> str:
    """Of an account."""
    told = {"dn": f"uid={uid},{PEOPLE}", "uid": uid, "userPassword": password}
    lines = [f"{name}:: {b64encode(value.encode()).decode()}" for name, value in told.items()]
    return "\n".join(("", lines[0], "objectClass: account", "objectClass: simpleSecurityObject", *lines[1:], ""))


def test_two_accounts_of_a_directory_are_two_users(tmp_path: Path) -> None:
    """By the directory's own comparison: letters that Unicode's case folding replaces."""
    accounts = {"weiss": "one", "wei\u00df": "two", "niko\u03c2": "three", "niko\u03c3": "four"}
    entries = ENTRIES + "".join(entry(uid, password) for uid, password in accounts.items())
    with running_directory(tmp_path, entries) as port:
        directory = Directory(DirectoryOptions((f"ldap://127.0.0.1:{port}",), base=PEOPLE, timeout_s=30))

        def user(name: str, password: str) -> str:
            mechanism = PlainMechanism(directory.check, is_folded=True)
            mechanism.step(f"\0{name}\0{password}".encode())
            return mechanism.user

        assert {user(uid, password): password for uid, password in accounts.items()} == accounts
        assert (user("WEISS", "one"), user("NIKO\u03a3", "four")) == ("weiss", "niko\u03c3")


@pytest.mark.parametrize("user", ["a@b", "a\\b", "a/b"])
def test_a_name_in_a_domain_is_a_name_only(user: str) -> None:
    assert Directory(DirectoryOptions(("ldap://x",), domain="example.test")).names_of(user) == ()
    assert Directory(DirectoryOptions(("ldap://x",), domain="example.test")).names_of("ann") == ("ann@example.test",)


def test_a_stalled_client_is_disconnected(serve: Serve, directory_port: int, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = serve(**settings_of(directory_port, authority, **{"authentication.handshake_timeout_s": 1.5}))
    sock = client(server, authority)
    sock.sock.sendall(struct.pack("!BI", 1, 5))
    assert sock.sock.recv(1) == b""
    wait_for(lambda: authentications(server) == {"timeout": 1})


def test_tls_and_authentication_have_one_time_together(serve: Serve, directory_port: int, tmp_path: Path) -> None:
    """A slow TLS handshake leaves less time for the rest: it came first, so its time limit expires first."""
    authority = Authority(tmp_path)
    server = serve(**settings_of(directory_port, authority, **{"authentication.handshake_timeout_s": 2}))
    slow = server.connect()
    quick = client(server, authority)
    quick.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        quick.sock.recv(1)
    stalled = authority.client().wrap_socket(slow, server_hostname="localhost")
    stalled.sendall(struct.pack("!BI", 1, 5))
    later = client(server, authority)
    quick.sock.settimeout(MAX_WAIT_S)
    assert quick.sock.recv(1) == stalled.recv(1) == b""
    later.sock.settimeout(0.05)
    with pytest.raises(TimeoutError):  # like the slow one, if its time had begun with its TLS
        later.sock.recv(1)
    wait_for(lambda: authentications(server) == {"timeout": 3})


def test_clients_that_do_not_authenticate_count_for_their_address(
    serve: Serve, directory_port: int, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    more = {"authentication.handshake_timeout_s": 2, "server.max_connections_per_address": 2}
    server = serve(**settings_of(directory_port, authority, **more))
    halves = [client(server, authority) for _ in range(2)]
    for half in halves:
        half.sock.sendall(struct.pack("!BI", 1, 5))
    third = client(server, authority)
    assert third.plain("ann", "ann's password") == (5, b"")
    third.sendall(request_bytes("getStatus", 1))
    assert b"max_connections_per_address" in third.recv(1000)
    assert [half.sock.recv(1) for half in halves] == [b"", b""]


def test_an_answer_in_drops_has_no_more_time_than_a_silent_directory(directory_port: int) -> None:
    """The answer to a bind has 14 bytes: one in half the time limit of a read would occupy the thread for seven of
    them."""
    with dripping(directory_port, pause_s=0.5) as port:
        directory = Directory(DirectoryOptions((f"ldap://127.0.0.1:{port}",), base=PEOPLE, timeout_s=1))
        with pytest.raises(AuthenticationError) as raised:
            directory.check("ann", "ann's password")
    assert raised.value.outcome == "unavailable"


def test_a_handshake_in_drops_has_the_same_time(tmp_path: Path) -> None:
    """In `ssl`, a handshake is one operation with one limit, unlike later reads."""
    authority = Authority(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        port = listener.getsockname()[1]

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.certificate.configure_cert(context)

        def handshake() -> None:
            accepted, _ = listener.accept()
            with suppress(OSError), context.wrap_socket(accepted, server_side=True) as wrapped:
                wrapped.recv(1)

        threads.submit(handshake)
        with dripping(port, pause_s=0.2) as dripped:
            urls, ca_file = (f"ldaps://localhost:{dripped}",), str(authority.ca_file)
            directory = Directory(DirectoryOptions(urls, base=PEOPLE, ca_file=ca_file, timeout_s=1))
            with pytest.raises(AuthenticationError) as raised:
                directory.check("ann", "ann's password")
    assert raised.value.outcome == "unavailable"


@contextmanager
def dripping(port: int, pause_s: float) -> Iterator[int]:
    """The port of a relay to this one, which sends each byte of an answer after `pause_s`."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(2) as threads:

        def carry() -> None:
            client, _ = listener.accept()
            with client, socket.create_connection(("127.0.0.1", port)) as server:
                threads.submit(requested, client, server)
                with suppress(OSError):
                    while byte := server.recv(1):
                        ended.wait(pause_s)
                        client.sendall(byte)

        def requested(client: socket.socket, server: socket.socket) -> None:
            with suppress(OSError):
                while data := client.recv(4096):
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)

        ended = threading.Event()
        threads.submit(carry)
        try:
            yield int(listener.getsockname()[1])
        finally:
            ended.set()
