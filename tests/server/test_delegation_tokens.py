"""Delegation tokens over the wire: requested with a ticket of a real KDC, used, renewed, cancelled, forged."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.authentication.delegation.token_format import Token, TokenIdentifier
from hms_cache.authentication.delegation.token_manager import TokenManager
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from tests.server.conftest import Link, Running, Serve, database, table
from tests.server.kerberos_realm import REALM, Realm, SaslSocket, realm_of_this_process
from tests.server.test_kerberos import SERVICE, authentications, settings_of
from tests.server.test_tls import wait_for

pytest.importorskip("gssapi")


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann", "trino", "yarn/localhost") as running:
        yield running


def link_over(sock: SaslSocket) -> Link:
    link = Link.__new__(Link)
    link.sock, link.sequence = sock, 0  # type: ignore[assignment]
    return link


def with_ticket(server: Running, realm: Realm, user: str) -> Link:
    sock = SaslSocket(server.connect())
    assert sock.gssapi(realm.directory / f"{user.replace('/', '_')}.cache", SERVICE) == (5, b"")
    return link_over(sock)


def with_token(server: Running, token: Token, quality: str = "auth") -> Link:
    sock = SaslSocket(server.connect())
    assert sock.digest(token.identifier, token.password, quality)[0] == 5
    return link_over(sock)


def requested(link: Link, owner: str, renewer: str = "") -> Token:
    text = link.call("get_delegation_token", token_owner=owner, renewer_kerberos_principal_name=renewer)
    return Token.from_url(text)


@pytest.mark.parametrize("quality", ["auth", "auth-int", "auth-conf"])
def test_calls_of_all_sizes_under_each_quality(serve: Serve, realm: Realm, quality: str) -> None:
    server = serve(**settings_of(realm))
    token = requested(with_ticket(server, realm, "ann"), f"ann@{REALM}", "yarn")
    link = with_token(server, token, quality)
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t", comment="x" * 500_000))
    for size in range(9):
        assert link.call("get_databases", pattern="d" + "|d" * size) == ["d"]
    assert len(link.call("get_table", dbname="d", tbl_name="t").parameters["comment"]) == 500_000


@pytest.mark.parametrize("quality", ["auth-int", "auth-conf"])
@pytest.mark.parametrize(
    ("told", "largest"), [(b"4000", 4000), (b"1", 1024 + 26), (b"0", 16_410), (b"999999999", 16_410)]
)
def test_replies_come_in_frames_that_the_client_takes(
    serve: Serve, realm: Realm, quality: str, told: bytes, largest: int
) -> None:
    server = serve(**settings_of(realm))
    ticket = with_ticket(server, realm, "ann")
    ticket.call("create_table", tbl=table("default", "t", comment="x" * 100_000))
    token, sock = requested(ticket, "ann"), SaslSocket(server.connect())
    assert sock.digest(token.identifier, token.password, quality, maxbuf=told)[0] == 5
    unwrap, sizes = sock.unwrap, []

    def unwrap_and_note(frame: bytes) -> bytes:
        sizes.append(len(frame))
        return bytes(unwrap(frame))

    sock.unwrap = unwrap_and_note
    found = link_over(sock).call("get_table", dbname="default", tbl_name="t")
    assert len(found.parameters["comment"]) == 100_000
    assert largest - 26 <= max(sizes) <= largest


@pytest.mark.parametrize("quality", ["auth", "auth-int", "auth-conf"])
def test_frames_of_any_length(serve: Serve, realm: Realm, quality: str) -> None:
    """A client may put as little of a request into a frame as it likes."""
    server = serve(**settings_of(realm))
    link = with_token(server, requested(with_ticket(server, realm, "ann"), "ann"), quality)
    for length in range(1, 40):
        request = link.request("get_databases", pattern="default" * 3)
        for start in range(0, len(request), length):
            link.sock.sendall(request[start : start + length])
        assert link.reply("get_databases") == []


def test_a_token_is_its_owner_on_every_server_and_after_a_restart(
    serve: Serve, realm: Realm, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = {"database.url": f"sqlite:///{tmp_path / 'metastore.db'}", "server.audit_format": "json"}
    first = serve(**settings_of(realm, **shared))
    token = requested(with_ticket(first, realm, "ann"), f"ann@{REALM}")
    first.service.stop()
    second = serve(**settings_of(realm, **shared))
    link = with_token(second, token)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        assert link.call("set_ugi", user_name="root", group_names=["wheel"]) == ["wheel", "root"]
        link.call("create_database", database=database("d"))
        second.service.stop()
    (line,) = [json.loads(r.getMessage()) for r in caplog.records if r.name == "hms_cache.audit"]
    assert (line["ugi"], line["principal"], line["mechanism"]) == ("ann", f"ann@{REALM}", "DIGEST-MD5")
    assert "real_user" not in line


def test_only_who_is_allowed_gets_a_token_of_somebody_else(
    serve: Serve, realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    rules = {"authentication.proxy_users": "trino users=bob hosts=127.0.0.1", "server.audit_format": "json"}
    server = serve(**settings_of(realm, **rules))
    trino = with_ticket(server, realm, "trino")
    with pytest.raises(MetaException, match=r"User: trino@EXAMPLE\.TEST is not allowed to impersonate ann"):
        requested(trino, "ann")
    with pytest.raises(MetaException, match=r"User: ann@EXAMPLE\.TEST is not allowed to impersonate bob"):
        requested(with_ticket(server, realm, "ann"), "bob")
    token = requested(trino, "bob")
    found = TokenIdentifier.decoded(token.identifier)
    assert (found.owner, found.real_user) == ("bob", f"trino@{REALM}")
    link = with_token(server, token)
    with caplog.at_level(logging.INFO, "hms_cache.audit"):
        link.call("create_database", database=database("d"))
        server.service.stop()
    line = [json.loads(r.getMessage()) for r in caplog.records if r.name == "hms_cache.audit"][-1]
    assert (line["ugi"], line["real_user"]) == ("bob", f"trino@{REALM}")


def test_a_token_brings_forth_no_other(serve: Serve, realm: Realm) -> None:
    server = serve(**settings_of(realm))
    token = requested(with_ticket(server, realm, "ann"), "ann")
    with pytest.raises(MetaException, match="only with kerberos authentication"):
        requested(with_token(server, token), "ann")


def test_who_may_renew_and_cancel(serve: Serve, realm: Realm) -> None:
    server = serve(**settings_of(realm, **{"authentication.token_renew_interval_s": 3600}))
    ann, yarn, trino = (with_ticket(server, realm, user) for user in ("ann", "yarn/localhost", "trino"))
    token = requested(ann, f"ann@{REALM}", f"yarn/localhost@{REALM}")
    text = token.to_url()
    found = TokenIdentifier.decoded(token.identifier)
    assert found.max_ms - found.issued_ms == 7 * 86_400_000
    renewed_ms = yarn.call("renew_delegation_token", token_str_form=text)
    assert 3_590_000 < renewed_ms - found.issued_ms < 3_700_000
    with pytest.raises(MetaException, match="ann tries to renew a token with renewer yarn"):
        ann.call("renew_delegation_token", token_str_form=text)
    with pytest.raises(MetaException, match="trino is not authorized to cancel the token"):
        trino.call("cancel_delegation_token", token_str_form=text)
    forged = token._replace(password=secrets.token_bytes(20)).to_url()
    for link, method in ((yarn, "renew_delegation_token"), (ann, "cancel_delegation_token")):
        with pytest.raises(MetaException, match="the password of the token"):
            link.call(method, token_str_form=forged)
        with pytest.raises(MetaException, match="not a delegation token"):
            link.call(method, token_str_form="nonsense")
    staying = with_token(server, token)
    staying.call("cancel_delegation_token", token_str_form=text)
    for link, method in ((yarn, "renew_delegation_token"), (ann, "cancel_delegation_token")):
        with pytest.raises(MetaException, match="token does not exist"):
            link.call(method, token_str_form=text)
    status, told = SaslSocket(server.connect()).digest(token.identifier, token.password)
    assert status == 4 and told == b"DIGEST-MD5: token expired or does not exist"


def test_tokens_of_others_answers_are_kept_apart(serve: Serve, realm: Realm, tmp_path: Path) -> None:
    """The same bytes from two users: an answer from memory for one is not sent to the other."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[[grants]]\nusers = ["ann"]\nactions = ["read", "create"]\ndatabases = ["*"]\n')
    rules = {"authorization.provider": "policy", "authorization.policy_file": str(policy)}
    server = serve(**settings_of(realm, **rules))
    ann_ticket = with_ticket(server, realm, "ann")
    ann = with_token(server, requested(ann_ticket, "ann"))
    ann_ticket.call("create_database", database=database("d"))
    trino = with_token(server, requested(with_ticket(server, realm, "trino"), "trino"))
    for _ in range(3):
        assert ann.call("get_database", name="d").name == "d"
        with pytest.raises(Exception, match=r"d"):
            trino.call("get_database", name="d")


def test_an_expired_token_is_refused_told_and_counted(
    serve: Serve, realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(**settings_of(realm))
    token = requested(with_ticket(server, realm, "ann"), "ann")
    staying = with_token(server, token)
    ends_ms = TokenIdentifier.decoded(token.identifier).max_ms
    monkeypatch.setattr(TokenManager, "_now_ms", lambda manager: ends_ms + 1)
    status, told = SaslSocket(server.connect()).digest(token.identifier, token.password)
    assert (status, told) == (4, b"DIGEST-MD5: token expired or does not exist")
    wait_for(lambda: authentications(server) == {"ok": 2, "refused": 1})
    with pytest.raises(MetaException, match="expired"):
        with_ticket(server, realm, "yarn/localhost").call("renew_delegation_token", token_str_form=token.to_url())
    assert staying.call("getStatus") == 2


WRONG: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "another nonce": ({"nonce": b"abc"}, b"another nonce", "bad_message"),
    "a repeated nonce": ({"nc": b"00000002"}, b"another count", "bad_message"),
    "another realm": ({"realm": b"EXAMPLE"}, b"another realm", "bad_message"),
    "another address": ({"digest_uri": b"hive/default"}, b"another digest-uri", "bad_message"),
    "for another one": ({"authzid": b"root"}, b"cannot act for another", "bad_message"),
    "another quality": ({"qop": b"auth-conf"}, b"qualities of protection are auth-int", "refused"),
    "another response": ({"response": b"0" * 32}, b"password of the token is wrong", "refused"),
    "no identifier": ({"username": b"root"}, b"not a delegation token", "bad_message"),
    "not base64": ({"username": b"\xff!"}, b"no token's identifier", "bad_message"),
    "too long": ({"cnonce": b"x" * 5000}, b"a response of", "bad_message"),
    "another charset": ({"charset": b"iso-8859-1"}, b"another charset", "bad_message"),
    "no number": ({"maxbuf": b"-1"}, b"maxbuf is not a number", "bad_message"),
    "a long number": ({"maxbuf": b"1" * 3000}, b"maxbuf is not a number", "bad_message"),
    "no directives": ({"cnonce": b'"'}, b"not a response", "bad_message"),
}


@pytest.fixture
def strict(serve: Serve, realm: Realm) -> Running:
    return serve(**settings_of(realm, **{"authentication.quality_of_protection": "auth-int"}))


def test_who_forges_is_refused_told_and_counted(strict: Running, realm: Realm) -> None:
    sock = SaslSocket(strict.connect())
    assert sock.gssapi(realm.directory / "ann.cache", SERVICE, 2) == (5, b"")
    token = requested(link_over(sock), "ann")
    for name, (changed, text, outcome) in WRONG.items():
        before = authentications(strict)
        status, told = SaslSocket(strict.connect()).digest(token.identifier, token.password, "auth-int", **changed)
        assert status == (4 if outcome == "refused" else 3) and text in told, name
        wait_for(lambda o=outcome, b=before: authentications(strict).get(o, 0) == b.get(o, 0) + 1)  # type: ignore[misc]
    found = TokenIdentifier.decoded(token.identifier)
    for wrong in (found._replace(owner="root"), found._replace(max_ms=found.max_ms + 1), found._replace(sequence=7)):
        status, told = SaslSocket(strict.connect()).digest(wrong.encoded(), token.password, "auth-int")
        assert status == 4 and told == b"DIGEST-MD5: token expired or does not exist"
    assert SaslSocket(strict.connect()).digest(token.identifier, token.password[:-1], "auth-int")[0] == 4
    assert with_token(strict, token, "auth-int").call("getStatus") == 2


@pytest.mark.parametrize("quality", ["auth-int", "auth-conf"])
@pytest.mark.parametrize("attack", ["changed", "repeated", "left out", "short"])
def test_messages_that_are_not_the_clients_end_the_connection(
    serve: Serve, realm: Realm, quality: str, attack: str
) -> None:
    server = serve(**settings_of(realm))
    token = requested(with_ticket(server, realm, "ann"), "ann")
    link = with_token(server, token, quality)
    sock: Any = link.sock
    assert link.call("getStatus") == 2
    wrap, raw = sock.wrap, sock.sock
    sent: list[bytes] = []

    def attacked(data: bytes) -> bytes:
        sealed = wrap(data)
        sent.append(sealed)
        if attack == "changed":
            return bytes([sealed[0] ^ 1]) + sealed[1:]
        if attack == "left out":
            return bytes(wrap(data))
        return bytes(sealed[:7]) if attack == "short" else bytes(sealed)

    sock.wrap = attacked
    if attack == "repeated":
        assert link.call("getStatus") == 2
        raw.sendall(len(sent[0]).to_bytes(4, "big") + sent[0])
    else:
        link.request("getStatus")
        sock.sendall(link.request("getStatus"))
    with pytest.raises((EOFError, ConnectionResetError)):
        sock.exactly(1)
    wait_for(lambda: authentications(server).get("bad_frame") == 1)
