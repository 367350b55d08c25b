"""SASL GSSAPI with a real KDC: tickets, qualities of protection, and refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.app import event_loop
from hms_cache.errors import StartupError
from tests.server.conftest import Link, Running, Serve, database, request_bytes, table
from tests.server.kerberos_realm import REALM, Realm, SaslSocket, realm_of_this_process, running_realm
from tests.server.test_tls import Authority, wait_for

pytest.importorskip("gssapi")
SERVICE = f"hive/localhost@{REALM}"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann") as running:
        yield running


def settings_of(realm: Realm, **more: Any) -> dict[str, Any]:
    return {
        "authentication.kerberos_enabled": True,
        "authentication.kerberos_principal": SERVICE,
        "authentication.kerberos_keytab_file": str(realm.directory / "hive_localhost.keytab"),
        **more,
    }


def ann(realm: Realm) -> Path:
    return realm.directory / "ann.cache"


def authentications(server: Running) -> dict[str, int]:
    found = server.service.metrics.server.authentications.values()
    return {outcome[0]: n for outcome, n in found.items() if n}


def signed_in(server: Running, realm: Realm, quality: int = 1) -> Link:
    sock = SaslSocket(server.connect())
    assert sock.gssapi(ann(realm), SERVICE, quality) == (5, b"")
    link = Link.__new__(Link)
    link.sock, link.sequence = sock, 0  # type: ignore[assignment]
    return link


@pytest.mark.parametrize("quality", [1, 2, 4], ids=["auth", "auth-int", "auth-conf"])
@pytest.mark.parametrize("loop", ["uvloop", pytest.param("asyncio", marks=pytest.mark.soak)])
def test_calls_of_all_sizes_under_each_quality(
    serve: Serve, realm: Realm, quality: int, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loop == "asyncio":
        monkeypatch.setattr(event_loop, "new_event_loop", asyncio.new_event_loop)
    server = serve(**settings_of(realm))
    link = signed_in(server, realm, quality)
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t", comment="x" * 2_000_000))
    for _ in range(3):
        assert link.call("get_database", name="d").name == "d"
    assert len(link.call("get_table", dbname="d", tbl_name="t").parameters["comment"]) == 2_000_000
    # Several calls in one frame, and one call in several.
    link.sock.sendall(b"".join(request_bytes("get_database", n, name="d") for n in range(500, 520)))
    for number in range(500, 520):
        link.sequence = number
        assert link.reply("get_database").name == "d"
    for byte in link.request("get_database", name="d"):
        link.sock.sendall(bytes([byte]))
    assert link.reply("get_database").name == "d"
    assert authentications(server) == {"ok": 1}


def test_the_principal_is_the_user_and_set_ugi_changes_nothing(
    serve: Serve, realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(**settings_of(realm))
    link = signed_in(server, realm)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        assert link.call("set_ugi", user_name="root", group_names=["wheel"]) == ["wheel", "root"]
        link.call("create_database", database=database("d"))
        server.service.stop()
    (line,) = [r.getMessage() for r in caplog.records if r.name == "hms_cache.audit"]
    assert line.startswith("ugi=ann\t")


def test_rights_of_a_principal_and_what_the_audit_log_says_of_it(
    serve: Serve, realm: Realm, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[grants]]\nusers = ["ann"]\nactions = ["create", "drop"]\ndatabases = ["d"]\n')
    authorization = {"authorization.provider": "policy", "authorization.policy_file": str(policy)}
    server = serve(**settings_of(realm, **authorization, **{"server.audit_format": "json"}))
    link = signed_in(server, realm)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        assert link.call("set_ugi", user_name="root", group_names=["wheel"]) == ["wheel", "root"]
        link.call("create_database", database=database("d"))
        link.call("create_table", tbl=table("d", "t"))
        for method, arguments in (
            ("create_database", {"database": database("e")}),
            ("truncate_table", {"dbName": "d", "tableName": "t", "partNames": []}),
            ("get_table", {"dbname": "e", "tbl_name": "t"}),
        ):
            with pytest.raises(Exception, match=r"Permission denied: user ann|table not found"):
                link.call(method, **arguments)
        server.service.stop()
    lines = [json.loads(r.getMessage()) for r in caplog.records if r.name == "hms_cache.audit"]
    assert [(line["method"], line["allowed"], line["outcome"], line["objects"]) for line in lines] == [
        ("create_database", True, "ok", ["database hive.d"]),
        ("create_table", True, "ok", ["table hive.d.t"]),
        ("create_database", False, "denied", ["database hive.e"]),
        ("truncate_table", False, "denied", ["table hive.d.t"]),
        ("get_table", False, "denied", ["table hive.e.t"]),
    ]
    for line in lines:
        assert (line["ugi"], line["ip"]) == ("ann", "127.0.0.1")
        assert (line["principal"], line["mechanism"]) == (f"ann@{REALM}", "GSSAPI")
        assert line["cmd"].startswith("denied: ") is not line["allowed"]


def test_kerberos_within_tls(serve: Serve, realm: Realm, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = serve(**settings_of(realm, **authority.settings()))
    sock = SaslSocket(authority.client().wrap_socket(server.connect(), server_hostname="localhost"))
    assert sock.gssapi(ann(realm), SERVICE) == (5, b"")
    sock.sendall(request_bytes("getStatus", 1))
    assert b"getStatus" in sock.recv(100)


def test_a_new_keytab_needs_no_restart(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_realm(tmp_path_factory.mktemp("rotated")) as own, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(own.configuration))
        own.keytab("hive/localhost")
        server = serve(**settings_of(own))
        own.ticket("ann")
        assert signed_in(server, own).call("getStatus") == 2
        own.keytab("hive/localhost")  # another key, in the same file
        own.ticket("ann")
        assert signed_in(server, own).call("getStatus") == 2


def only_some_qualities(server: Running, realm: Realm) -> str:
    status, text = SaslSocket(server.connect()).gssapi(ann(realm), SERVICE, 2)
    assert status == 4 and b"qualities of protection are auth-conf" in text
    return "refused"


def another_user(server: Running, realm: Realm) -> str:
    status, text = SaslSocket(server.connect()).gssapi(ann(realm), SERVICE, 4, acting_as="root")
    assert status == 4 and b"cannot act as" in text
    return "refused"


def no_rule(server: Running, realm: Realm) -> str:
    cache = realm.ticket("bob/other")
    status, text = SaslSocket(server.connect()).gssapi(cache, SERVICE, 4)
    assert status == 4 and b"no rule of auth_to_local" in text
    return "refused"


def ticket_for_another_service(server: Running, realm: Realm) -> str:
    realm.keytab("other/localhost")
    status, text = SaslSocket(server.connect()).gssapi(ann(realm), f"other/localhost@{REALM}")
    assert status == 4 and text.startswith(b"GSSAPI: ")
    return "refused"


def no_ticket(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    sock.message(1, b"GSSAPI")
    sock.message(2, b"\x60\x05nothing")
    status, text = sock.answer()
    assert status == 4 and text.startswith(b"GSSAPI: ")
    assert sock.sock.recv(1) == b""
    return "refused"


def negotiated_below(server: Running, realm: Realm) -> str:
    """SPNEGO within GSSAPI, with a valid ticket."""
    import gssapi

    negotiating = gssapi.OID.from_int_seq("1.3.6.1.5.5.2")
    store = {"ccache": f"FILE:{ann(realm)}"}
    credentials = gssapi.Credentials(usage="initiate", mechs=[negotiating], store=store)
    target = gssapi.Name(SERVICE, gssapi.NameType.kerberos_principal)
    context = gssapi.SecurityContext(name=target, creds=credentials, mech=negotiating, usage="initiate")
    sock = SaslSocket(server.connect())
    sock.message(1, b"GSSAPI")
    sock.message(2, context.step())
    status, text = sock.answer()
    assert status == 4 and text.startswith(b"GSSAPI: ")
    return "refused"


def unknown_mechanism(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    sock.message(1, b"ANONYMOUS\xff\n")
    status, text = sock.answer()
    assert status == 3 and text.startswith("Unsupported mechanism type 'ANONYMOUS\ufffd\\n'; this".encode())
    return "bad_message"


def oversized_message(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    sock.message(1, b"GSSAPI")
    sock.sock.sendall(struct.pack("!BI", 2, 2**31))
    assert sock.answer()[0] == 3
    return "bad_message"


def oversized_name(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    sock.sock.sendall(struct.pack("!BI", 1, 65))
    assert sock.answer()[0] == 3
    return "bad_message"


def plain_call(server: Running, realm: Realm) -> str:
    with pytest.raises(TApplicationException, match=r"hive\.metastore\.sasl\.enabled=true"):
        server.link().call("get_database", name="default")
    return "plaintext"


def stalled(server: Running, realm: Realm) -> str:
    sock = server.connect()
    sock.sendall(struct.pack("!BI", 1, 6) + b"GSS")
    assert sock.recv(1) == b""
    return "timeout"


def gives_up(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    sock.message(1, b"GSSAPI")
    sock.message(3, b"no credentials")
    sock.answer()
    return "refused_by_client"


def finds_no_ticket(server: Running, realm: Realm) -> str:
    """As Java's client does, instead of START."""
    sock = SaslSocket(server.connect())
    sock.message(3, b"GSS initiate failed" + b" " * 100)
    sock.answer()
    return "refused_by_client"


def cut_off(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    sock.message(1, b"GSSAPI")
    sock.sock.close()
    return "closed"


def oversized_frame(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    assert sock.gssapi(ann(realm), SERVICE, 4) == (5, b"")
    sock.sock.sendall(struct.pack("!I", 2**31))
    with pytest.raises((EOFError, ConnectionResetError)):
        sock.exactly(1)
    return "bad_frame"


def changed_frame(server: Running, realm: Realm) -> str:
    sock = SaslSocket(server.connect())
    assert sock.gssapi(ann(realm), SERVICE, 4) == (5, b"")
    token = bytearray(sock.wrap(request_bytes("getStatus", 1)))
    token[-1] ^= 1
    sock.sock.sendall(struct.pack("!I", len(token)) + token)
    with pytest.raises((EOFError, ConnectionResetError)):
        sock.exactly(1)
    return "bad_frame"


def readable_frame(server: Running, realm: Realm) -> str:
    """auth-conf was negotiated, but the client protects its messages only against changes."""
    import gssapi

    sock = SaslSocket(server.connect())
    assert sock.gssapi(ann(realm), SERVICE, 4) == (5, b"")
    context = sock.wrap.__closure__[0].cell_contents
    assert isinstance(context, gssapi.SecurityContext)
    token = context.wrap(request_bytes("getStatus", 1), False).message
    sock.sock.sendall(struct.pack("!I", len(token)) + token)
    with pytest.raises((EOFError, ConnectionResetError)):
        sock.exactly(1)
    return "bad_frame"


ATTEMPTS = (
    only_some_qualities,
    another_user,
    no_rule,
    ticket_for_another_service,
    no_ticket,
    negotiated_below,
    unknown_mechanism,
    oversized_message,
    oversized_name,
    plain_call,
    stalled,
    gives_up,
    finds_no_ticket,
    cut_off,
    oversized_frame,
    changed_frame,
    readable_frame,
)


def test_who_is_refused_is_told_counted_and_logged_once(
    serve: Serve, realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(
        **settings_of(
            realm,
            **{
                "authentication.quality_of_protection": "auth-conf",
                "authentication.handshake_timeout_s": 2,
                "authentication.auth_to_local": "RULE:[1:$1@$0](.*@EXAMPLE.TEST)s/@.*//",
            },
        )
    )
    staying = signed_in(server, realm, 4)
    for attempt in ATTEMPTS:
        before = authentications(server)
        outcome = attempt(server, realm)
        wait_for(lambda o=outcome, b=before: authentications(server).get(o, 0) == b.get(o, 0) + 1)  # type: ignore[misc]
    assert sum("no authentication with 127.0.0.1" in record.getMessage() for record in caplog.records) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert staying.call("getStatus") == 2


@pytest.mark.parametrize("sent", [3, 4, 20], ids=["its length", "its length alone", "its body"])
@pytest.mark.parametrize("ending", ["closed", "half closed", "stalled"])
@pytest.mark.parametrize("quality", [pytest.param(1, marks=pytest.mark.soak), 4], ids=["auth", "auth-conf"])
def test_a_cut_frame_ends_the_connection_and_is_counted(
    serve: Serve, realm: Realm, quality: int, ending: str, sent: int
) -> None:
    server = serve(**settings_of(realm, **{"server.message_timeout_s": 1 if ending == "stalled" else 60}))
    staying = signed_in(server, realm, quality)
    sock = SaslSocket(server.connect())
    assert sock.gssapi(ann(realm), SERVICE, quality) == (5, b"")
    body = request_bytes("getStatus", 1)
    token = sock.wrap(body) if sock.wrap is not None else body
    sock.sock.sendall((struct.pack("!I", len(token)) + token)[:sent])
    if ending == "closed":
        sock.sock.close()
    else:
        if ending == "half closed":
            sock.sock.shutdown(socket.SHUT_WR)
        assert sock.sock.recv(1) == b""
    wait_for(lambda: authentications(server) == {"ok": 2, "bad_frame": 1})
    assert staying.call("getStatus") == 2


def test_a_ticket_of_another_realm_is_refused(
    serve: Serve, realm: Realm, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The other realm has a service of the same name, with another key."""
    server = serve(**settings_of(realm))
    with running_realm(tmp_path_factory.mktemp("other"), "OTHER.TEST") as other, pytest.MonkeyPatch.context() as patch:
        other.keytab("hive/localhost")
        cache = other.ticket("ann")
        both = tmp_path / "krb5.conf"
        _, _, its_realm = other.configuration.read_text().partition("[realms]\n")
        both.write_text(realm.configuration.read_text() + its_realm)
        patch.setenv("KRB5_CONFIG", str(both))
        status, text = SaslSocket(server.connect()).gssapi(cache, "hive/localhost@OTHER.TEST")
    assert status == 4 and text.startswith(b"GSSAPI: ")
    wait_for(lambda: authentications(server) == {"refused": 1})
    assert signed_in(server, realm).call("getStatus") == 2


@pytest.mark.soak
def test_an_expired_ticket_is_refused(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It was valid when the client began, and has expired when the server checks it."""
    import gssapi

    with running_realm(tmp_path_factory.mktemp("short")) as own, pytest.MonkeyPatch.context() as patch:
        told = own.configuration.read_text().replace("[libdefaults]\n", "[libdefaults]\n clockskew = 1\n")
        own.configuration.write_text(told)
        patch.setenv("KRB5_CONFIG", str(own.configuration))
        own.keytab("hive/localhost")
        server = serve(**settings_of(own))
        store = {"ccache": f"FILE:{own.ticket('ann', '-l', '3s')}"}
        mine = gssapi.Credentials(usage="initiate", store=store)
        target = gssapi.Name(SERVICE, gssapi.NameType.kerberos_principal)
        token = gssapi.SecurityContext(name=target, creds=mine, usage="initiate").step()
        ends_at_s = time.time() + 5.5
        wait_for(lambda: time.time() > ends_at_s)
        with pytest.raises(gssapi.exceptions.GSSError, match=r"[Ee]xpired"):
            again = gssapi.Credentials(usage="initiate", store=store)
            gssapi.SecurityContext(name=target, creds=again, usage="initiate").step()
        sock = SaslSocket(server.connect())
        sock.message(1, b"GSSAPI")
        sock.message(2, token)
        status, text = sock.answer()
        assert status == 4 and (b"xpired" in text or b"skew" in text), text
        wait_for(lambda: authentications(server) == {"refused": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"authentication.kerberos_keytab_file": "/no/such/keytab"},
        {"authentication.kerberos_principal": f"nobody/localhost@{REALM}"},
        {"authentication.auth_to_local": "RULE:[1"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_cannot_work_stops_the_start(serve: Serve, realm: Realm, wrong: dict[str, str]) -> None:
    with pytest.raises(StartupError) as raised:
        serve(**settings_of(realm, **wrong))
    assert next(iter(wrong)).partition("principal")[0][:24] in str(raised.value) and raised.value.remedy
    assert os.environ["KRB5_CONFIG"] == str(realm.configuration)
