"""The management port with TLS and a token for reading; secrets that come from commands."""

from __future__ import annotations

import http.client
import json
import shlex
import socket
import sqlite3
import ssl
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import CliRunner

from hms_cache.cli.main import commands
from hms_cache.config import load
from hms_cache.errors import ConfigurationError, StartupError
from tests.admin.running import TOKEN, Running

READ_TOKEN = "only to look"


def certificate(directory: Path, authority: trustme.CA) -> Path:
    file = directory / "server.pem"
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    return file


def get(running: Running, path: str, context: ssl.SSLContext, token: str | None = None) -> tuple[int, str]:
    """Over TLS."""
    assert running.service.management is not None
    host, port = running.service.management.address
    connection = http.client.HTTPSConnection(host, port, timeout=30, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_reading_over_tls_with_new_certificates_by_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = trustme.CA(), trustme.CA()
    running = Running(tmp_path, admin__tls_enabled=True, server__tls_certificate_file=str(certificate(tmp_path, first)))
    try:
        management = running.service.management
        assert management is not None and management.url.startswith("https://")
        of_first, of_second = ssl.create_default_context(), ssl.create_default_context()
        first.configure_trust(of_first)
        second.configure_trust(of_second)
        assert get(running, "/livez", of_first) == (200, "alive\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            get(running, "/livez", of_second)

        with socket.create_connection(management.address, timeout=30) as plain:
            plain.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b"".join(iter(lambda: plain.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 400") and b"https://" in answer and b"cache" not in answer

        ca_file = tmp_path / "ca.pem"
        first.cert_pem.write_to_path(ca_file)
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
        # From Python 3.12 on, an opener keeps the authorities from its creation, by an earlier test; a command is new.
        monkeypatch.setattr(urllib.request, "_opener", None)
        shown = CliRunner().invoke(commands, ["status", "--management", management.url, "--json"])
        assert shown.exit_code == 0, shown.output
        assert json.loads(shown.output)["uri"] == running.uri

        certificate(tmp_path, second)
        running.service.reload(running.service._configuration)
        assert get(running, "/livez", of_second) == (200, "alive\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            get(running, "/livez", of_first)
    finally:
        running.close()


def test_tls_needs_a_certificate(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"admin\.tls_enabled needs"):
        Running(tmp_path, admin__tls_enabled=True)
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(StartupError, match="tls_certificate_file"):
        Running(tmp_path, admin__tls_enabled=True, server__tls_certificate_file=str(tmp_path / "bad.pem"))


def test_reading_with_a_token(tmp_path: Path) -> None:
    (tmp_path / "read-token").write_text(READ_TOKEN)
    running = Running(tmp_path, admin__read_token_file=str(tmp_path / "read-token"))
    try:
        for probe in ("/livez", "/readyz"):
            assert running.ask(probe)[0] == 200
        for path in ("/status", "/metrics", "/", "/config", "/operations", "/version", "/nowhere"):
            assert running.ask(path)[0] == 401, path
            assert running.ask(path, "wrong")[0] == 401
            expected = 404 if path == "/nowhere" else 200
            assert running.ask(path, READ_TOKEN)[0] == expected
            assert running.ask(path, TOKEN)[0] == expected, "whoever may command may read"
        assert running.ask("/commands/flush?all=true", READ_TOKEN, post=True)[0] == 401, "and not the reverse"
        assert running.ask("/commands/flush?all=true", TOKEN, post=True)[0] != 401
        assert READ_TOKEN not in running.ask("/config", TOKEN)[1]
        assert running.service.management is not None
        url = running.service.management.url
        refused = CliRunner().invoke(commands, ["status", "--management", url])
        assert refused.exit_code != 0 and "token" in str(refused.exception or refused.output)
        token_file = ["--token-file", str(tmp_path / "read-token")]
        assert CliRunner().invoke(commands, ["status", "--management", url, *token_file]).exit_code == 0
        assert CliRunner().invoke(commands, ["top", "--once", "--management", url, *token_file]).exit_code == 0
    finally:
        running.close()


def test_who_may_not_read_is_not_told_what_the_database_says(tmp_path: Path) -> None:
    """Drivers' texts contain hosts, accounts and statements."""
    (tmp_path / "read-token").write_text(READ_TOKEN)
    running = Running(tmp_path, admin__read_token_file=str(tmp_path / "read-token"))
    try:
        with closing(sqlite3.connect(tmp_path / "hms.db")) as connection:
            connection.execute("ALTER TABLE NOTIFICATION_SEQUENCE RENAME TO ELSEWHERE")
        running.probe.forget()
        assert running.ask("/readyz") == (503, "the database cannot be used now\n")
        for token in (READ_TOKEN, TOKEN):
            assert "NOTIFICATION_SEQUENCE" in running.ask("/readyz", token)[1]
    finally:
        running.close()


def says(*lines: str, status: int = 0) -> str:
    """A command that prints these lines."""
    program = f"import sys; print({chr(10).join(lines)!r}); print('noise', file=sys.stderr); sys.exit({status})"
    return shlex.join([sys.executable, "-c", program])


def loaded(**settings: Any) -> Any:
    return load(command_line={name.replace("__", "."): value for name, value in settings.items()}, environment={})


def test_secrets_from_commands() -> None:
    configuration = loaded(
        admin__token_command=says("of a vault", "second line"),
        admin__read_token_command=says("  also of a vault "),
        database__password_command=says("pass word"),
        database__url="mysql+pymysql://u@127.0.0.1/hms",
    )
    settings = configuration.settings
    assert settings.admin.token.get_secret_value() == "of a vault"
    assert settings.admin.read_token.get_secret_value() == "also of a vault"
    assert settings.database.password.get_secret_value() == "pass word"
    assert "token_command" in configuration.origin("admin.token")
    assert "vault" not in repr(settings.admin.token)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (says("of a vault", status=3), "ended with status 3"),
        (says(""), "is empty"),
        ("/nowhere/vault get", "cannot be read"),
        ("'unclosed", "cannot be read"),
    ],
)
def test_a_command_that_tells_no_secret_stops_the_start(command: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as error:
        loaded(admin__token_command=command)
    assert "noise" not in str(error.value)


def test_a_secret_has_one_source(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with pytest.raises(ConfigurationError, match="both set"):
        loaded(admin__token_file=str(tmp_path / "token"), admin__token_command=says("t"))
