"""An issuer's tokens on the management port: which may read, send commands or neither; the key server is real."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jwt")
pytest.importorskip("cryptography")

import jwt

from hms_cache.admin.siblings import Siblings
from hms_cache.authentication.bearer_tokens import rights_in
from hms_cache.config import load
from hms_cache.errors import ConfigurationError, StartupError
from tests.admin.running import TOKEN, Running
from tests.server.test_bearer_tokens import Issuer, rsa_key
from tests.server.test_tls import Authority

READ, COMMAND = {"roles": ["hms-cache:read"]}, {"roles": ["other", "hms-cache:command"]}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with closing(Issuer()) as running:
        yield running


def settings_of(issuer: Issuer, **more: Any) -> dict[str, Any]:
    # The metastore port still does not authenticate: the issuer's keys are for this port only.
    return {
        "authentication__jwt_jwks_url": issuer.url,
        "authentication__jwt_issuer": "issuer",
        "authentication__jwt_audience": "hms",
        "authentication__jwt_retry_interval_s": 0.1,
        "server__mechanisms": "none",
        "admin__jwt_rights_claim": "roles",
        "security__accept_insecure": True,
        **more,
    }


@pytest.fixture
def running(tmp_path: Path, issuer: Issuer) -> Iterator[Running]:
    with closing(Running(tmp_path, **settings_of(issuer))) as made:
        yield made


def test_rights_to_read_and_to_command(running: Running, issuer: Issuer) -> None:
    reader, commander = issuer.token(**READ), issuer.token(**COMMAND)
    for path in ("/", "/status", "/metrics", "/jsonmetrics", "/configuration", "/version", "/changes?after=9999999"):
        assert running.ask(path)[0] == 401, path
        assert running.ask(path, issuer.token())[0] == 403, path
    for path in ("/", "/status", "/metrics", "/jsonmetrics", "/version"):
        for token in (reader, commander, TOKEN):
            assert running.ask(path, token)[0] == 200, path
    for path in ("/commands/flush", "/events/pause", "/events/resume", "/locks/release?lock_id=7"):
        assert running.ask(path, post=True)[0] == 401
        for token in (reader, issuer.token()):
            status, told = running.ask(path, token, post=True)
            assert status == 403 and "ann may not" in told, path
        for token in (commander, TOKEN):
            assert running.ask(path, token, post=True)[0] in (200, 404, 409), path
    assert running.ask("/livez")[0] == 200 and running.ask("/readyz")[0] in (200, 503), "probes carry no token"
    # A browser asks for a password: the token is accepted as one.
    assert running.service.management_address is not None
    with closing(http.client.HTTPConnection(*running.service.management_address, timeout=30)) as connection:
        password = base64.b64encode(f"x:{reader}".encode()).decode()
        connection.request("GET", "/status", headers={"Authorization": f"Basic {password}"})
        assert connection.getresponse().status == 200


def url_safe(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encoded(header: dict[str, str]) -> str:
    return url_safe(json.dumps(header).encode())


def test_tokens_that_are_not_good(running: Running, issuer: Issuer) -> None:
    stranger = Issuer()
    stranger.keys = {"one": rsa_key()}
    stranger.close()
    unsigned = jwt.encode({"sub": "ann", "aud": "hms", "iss": "issuer", "exp": time.time() + 60, **COMMAND}, "", "none")
    head, body, _ = issuer.token(**COMMAND).split(".")
    signed = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{body}"
    public = json.dumps(json.loads(issuer.document())["keys"][0]).encode()  # as the key of a symmetric algorithm
    confused = f"{signed}.{url_safe(hmac.digest(public, signed.encode(), 'sha256'))}"
    for token, told in (
        (issuer.token(exp=time.time() - 3600, **COMMAND), "expired"),
        (issuer.token(aud="another", **COMMAND), "audience"),
        (issuer.token(iss="another", **COMMAND), "issuer"),
        (stranger.token(**COMMAND), "no key"),
        (unsigned, "algorithm"),
        (confused, "algorithm"),
        (f"{head}.{body}.", ""),
        ("a.b.c", "not a JSON Web Token"),
        ("x" * 100, "missing or wrong"),
        ("", "missing or wrong"),
    ):
        for path, post in (("/status", False), ("/commands/flush", True)):
            status, text = running.ask(path, token, post=post)
            assert status == 401 and told in text, (token[:20], text)
            assert token[-40:] not in text or not token


def test_who_commanded_stands_in_the_log_and_on_the_page(
    running: Running, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hms_cache.admin"):
        assert running.ask("/commands/flush", issuer.token(sub="olga", **COMMAND), post=True)[0] == 200
    assert any("requested by olga at 127.0.0.1" in record.getMessage() for record in caplog.records)
    assert "olga at 127.0.0.1" in running.ask("/operations", issuer.token(**READ))[1]


def test_a_command_reaches_the_other_workers_whoever_sends_it(
    tmp_path: Path, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        workers = [
            stack.enter_context(closing(Running(tmp_path, Siblings(index, 2, tmp_path), **settings_of(issuer))))
            for index in range(2)
        ]
        for name in ("olga", "Jörg", "Łukasz 山田", "100%25", "ann@EXAMPLE.TEST: it's"):
            caplog.clear()
            token = issuer.token(sub=name, **COMMAND)
            with caplog.at_level(logging.WARNING, "hms_cache.admin"):
                for command in ("pause", "resume"):
                    status, told = workers[0].ask(f"/events/{command}", token, post=True)
                    assert status == 200, told
                status, told = workers[0].ask("/commands/flush", token, post=True)
                assert status == 200 and json.loads(told.splitlines()[-1])["finished"]["unreached"] == [], told
            lines = [record.getMessage() for record in caplog.records]
            assert sum(f"requested by {name} at 127.0.0.1" in line for line in lines) == 6, lines


def test_a_new_key_is_found_and_an_issuer_that_is_away_is_told_apart_from_a_bad_token(
    running: Running, issuer: Issuer
) -> None:
    issuer.keys = {"two": rsa_key()}
    deadline = time.monotonic() + 30
    while running.ask("/status", issuer.token("two", **READ))[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    issuer.status = 500
    issuer.keys["three"] = rsa_key()
    statuses = {running.ask("/status", issuer.token("three", **READ))[0] for _ in range(3)}
    assert statuses <= {401, 503} and 200 not in statuses
    assert running.ask("/status", issuer.token("two", **READ))[0] == 200, "known keys go on"
    assert running.ask("/status", TOKEN)[0] == 200, "as does the token of the file"


def test_rights_are_words_of_a_setting_and_are_reloaded(running: Running, issuer: Issuer, tmp_path: Path) -> None:
    token = issuer.token(roles="auditors operators")
    assert running.ask("/status", token)[0] == 403
    before = running.service._configuration
    admin = before.settings.admin.model_copy(
        update={"jwt_read_rights": ("auditors",), "jwt_command_rights": ("operators",)}
    )
    changed = before.settings.model_copy(update={"admin": admin})
    assert before.reloadable_changes(changed) == (["admin.jwt_read_rights", "admin.jwt_command_rights"], [])
    other = type(before)(changed, before.origins, before.site, before.site_review, before.accepted_insecure)
    running.service.reload(other)
    assert running.ask("/status", token)[0] == 200
    assert running.ask("/commands/flush", token, post=True)[0] == 200
    assert running.ask("/commands/flush", issuer.token(roles="auditors"), post=True)[0] == 403


@pytest.mark.parametrize(
    ("claims", "name", "words"),
    [
        ({"scope": "a b"}, "scope", {"a", "b"}),
        ({"roles": ["a b", "c", 7, None]}, "roles", {"a b", "c"}),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", {"a"}),
        ({"https://x.y/roles": ["a"]}, "https://x.y/roles", {"a"}),
        ({"a.b": ["whole"], "a": {"b": ["parts"]}}, "a.b", {"whole"}),
        ({"roles": {"a": 1}}, "roles", set()),
        ({"roles": 7}, "roles", set()),
        ({"a": "text"}, "a.b", set()),
        ({}, "roles", set()),
        ({"": "a"}, "", set()),
    ],
)
def test_where_a_token_tells_rights(claims: dict[str, Any], name: str, words: set[str]) -> None:
    assert rights_in(claims, name) == words


def test_the_claim_opens_nothing_where_it_is_not_set(tmp_path: Path, issuer: Issuer) -> None:
    authority = Authority(tmp_path)
    more = {name.replace(".", "__"): value for name, value in authority.settings().items()}
    listeners = [{"port": 0, "transport_mode": "http", "tls_enabled": True, "mechanisms": "jwt"}]
    more |= {"server__tls_enabled": False, "server__listeners": listeners, "admin__read_token": "r" * 20}
    with closing(Running(tmp_path, **settings_of(issuer, admin__jwt_rights_claim="", **more))) as made:
        assert made.ask("/status", issuer.token(**COMMAND))[0] == 401
        assert made.ask("/commands/flush", issuer.token(**COMMAND), post=True)[0] == 401
        assert made.ask("/status", "r" * 20)[0] == 200


def test_what_cannot_work_does_not_start(tmp_path: Path, issuer: Issuer) -> None:
    with pytest.raises(ConfigurationError, match=r"jwt_rights_claim needs authentication\.jwt_jwks_url"):
        load(command_line={"admin.jwt_rights_claim": "roles"}, environment={})
    with pytest.raises(StartupError, match=r"tokens are sent unencrypted, and admin\.tls_enabled is false"):
        Running(tmp_path, **settings_of(issuer, security__accept_insecure=False))
