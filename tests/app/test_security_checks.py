"""What `hms-cache check` reports about TLS, Kerberos, LDAP and the policy, and our clients over TLS; all parts are
real."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import CliRunner

from hms_cache.app.checks import Findings, run_checks
from hms_cache.app.security.checks import _check_trusted_clients, check_security
from hms_cache.app.service import Service
from hms_cache.cli.main import commands
from hms_cache.client import MetastoreClient, MetastoreUnavailableError
from hms_cache.config import load
from tests.app.test_service import configured
from tests.server.kerberos_realm import REALM, Realm, realm_of_this_process
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_ldap import PEOPLE, directory_port

__all__ = ["directory_port"]  # a fixture


def checked(**settings: Any) -> Findings:
    findings = Findings()
    check_security(findings, load(command_line=settings, environment={}).settings)
    return findings


def told(findings: Findings) -> list[tuple[str, str]]:
    return [(one.severity, one.problem) for one in findings.found]


class Certificates:
    """A certificate authority and servers' certificates as files."""

    def __init__(self, directory: Path) -> None:
        self.ca = trustme.CA()
        self.ca_file = directory / "ca.pem"
        self.ca.cert_pem.write_to_path(self.ca_file)
        self._directory = directory

    def server(self, *names: str, days: float = 365) -> dict[str, Any]:
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        made = self.ca.issue_cert(*names, not_after=end, not_before=end - datetime.timedelta(days=500))
        file = self._directory / f"server-{names[0]}.pem"
        made.private_key_and_cert_chain_pem.write_to_path(file)
        return {"server.tls_enabled": True, "server.tls_certificate_file": str(file)}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def test_what_is_off_is_not_tried() -> None:
    assert checked().passed == [] and checked().found == []


def test_dates_and_names_of_a_certificate(certificates: Certificates) -> None:
    own = socket.getfqdn().lower()
    assert told(checked(**certificates.server(own))) == []
    assert checked(**certificates.server(own)).passed == ["the TLS certificate is good"]
    ((severity, problem),) = told(checked(**certificates.server(own, days=10)))
    assert severity == "warning" and "ends in 10 days" in problem
    ((severity, problem),) = told(checked(**certificates.server(own, days=-1)))
    assert severity == "error" and "certificate has expired" in problem
    ((severity, problem),) = told(checked(**certificates.server("other.example.com")))
    assert severity == "warning" and "made out to other.example.com" in problem and own in problem
    of_management = certificates.server(own, days=-1) | {"server.tls_enabled": False, "admin.tls_enabled": True}
    assert "certificate has expired" in told(checked(**of_management))[0][1]
    broken = {"server.tls_enabled": True, "server.tls_certificate_file": str(certificates.ca_file)}
    ((severity, problem),) = told(checked(**broken))
    assert severity == "error" and "tls_certificate_file" in problem


def test_who_is_trusted_is_on_this_machine_or_speaks_tls() -> None:
    def warned(**settings: Any) -> list[tuple[str, str]]:
        findings = Findings()
        _check_trusted_clients(findings, load(command_line=settings, environment={}).settings)
        return told(findings)

    ldap = {"authentication.plain": "ldap", "authentication.ldap_base_dn": "dc=x"}
    opa = {"authorization.provider": "opa"}
    for fine in ("ldaps://d.example.com", "ldap://localhost ldap://127.0.0.1:389", "ldap://[::1]"):
        assert warned(**ldap, **{"authentication.ldap_url": fine}) == []
    assert warned(**{"authentication.ldap_url": "ldap://d.example.com"}) == [], "it is not asked"
    for fine in ("https://i.example.com/keys", "http://127.0.0.1:8080/keys", "file:/keys.json"):
        assert warned(**{"authentication.jwt_jwks_url": fine}) == []
    assert warned(**opa, **{"authorization.opa_url": "http://127.0.0.1:8181/v1/data/hms/allow"}) == []
    found = warned(
        **(ldap | {"authentication.ldap_url": "ldaps://one.example.com ldap://two.example.com:389"}),
        **{"authentication.jwt_jwks_url": "http://user:hush@i.example.com/keys"},
        **(opa | {"authorization.opa_url": "http://10.0.0.9:8181/v1/data/hms/allow"}),
    )
    assert [severity for severity, _ in found] == ["warning"] * 3
    for (_, problem), host in zip(found, ("two.example.com", "i.example.com", "10.0.0.9"), strict=True):
        assert f"to {host} without TLS" in problem and "hush" not in problem and "one.example" not in problem


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    pytest.importorskip("gssapi")
    with realm_of_this_process(tmp_path_factory.mktemp("realm")) as running:
        yield running


def test_a_keytab_and_its_kdc(realm: Realm, tmp_path: Path) -> None:
    keytab = tmp_path / "server.keytab"
    keytab.write_bytes(realm.keytab("hive/localhost").read_bytes())
    settings = {
        "authentication.kerberos_enabled": True,
        "authentication.kerberos_principal": f"hive/localhost@{REALM}",
        "authentication.kerberos_keytab_file": str(keytab),
    }
    assert told(checked(**settings)) == []
    ((severity, problem),) = told(checked(**settings | {"authentication.kerberos_principal": f"x/localhost@{REALM}"}))
    assert severity == "error" and "no key of x/localhost" in problem
    realm.keytab("hive/localhost")  # a newer key, which is not in this file
    ((severity, problem),) = told(checked(**settings))
    assert severity == "error" and "do not agree on hive/localhost" in problem


def test_a_directory(directory_port: int, certificates: Certificates) -> None:
    settings = {
        **certificates.server(socket.getfqdn().lower()),
        "authentication.plain": "ldap",
        "authentication.ldap_url": f"ldap://127.0.0.1:{directory_port}",
        "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
        "authentication.ldap_timeout_s": 2,
    }
    assert told(checked(**settings)) == []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        silent = f"ldap://127.0.0.1:{free.getsockname()[1]}"
        both = f"{settings['authentication.ldap_url']} {silent}"
        assert told(checked(**settings | {"authentication.ldap_url": both})) == [
            ("error", f"the directory {silent} does not answer")
        ]


def test_an_issuer() -> None:
    pytest.importorskip("jwt")
    with closing(Issuer()) as issuer:
        settings = {
            "server.transport_mode": "http",
            "security.accept_insecure": True,
            "authentication.jwt_jwks_url": issuer.url,
            "authentication.jwt_audience": "hms",
        }
        in_the_clear = ("warning", "server: tokens reach this server in the clear")
        assert told(checked(**settings)) == [in_the_clear]
        first, (severity, problem) = told(checked(**settings | {"authentication.jwt_audience": ""}))
        assert first == in_the_clear and severity == "warning" and "for other services" in problem
        _, (severity, problem) = told(checked(**settings | {"authentication.jwt_algorithms": "ES256"}))
        assert severity == "error" and "no key there is for ES256" in problem
        _, (severity, problem) = told(checked(**settings | {"server.transport_mode": "binary"}))
        assert (severity, problem) == ("error", "server: bearer tokens need HTTP")
        refused = settings | {"security.accept_insecure": False}
        assert told(checked(**refused)) == [("error", "server: tokens reach this server in the clear")]
    _, (severity, problem) = told(checked(**settings))
    assert severity == "error" and "keys could be read" in problem


def test_groups_of_a_directory(directory_port: int, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[grants]]\ndirectory_groups = ["g"]\nactions = ["read"]\ndatabases = ["*"]\n')
    settings = {
        "security.accept_insecure": True,
        "authorization.provider": "policy",
        "authorization.policy_file": str(policy),
        "authorization.directory_groups": True,
        "authentication.ldap_url": f"ldap://127.0.0.1:{directory_port}",
        "authentication.ldap_base_dn": PEOPLE,
        "authentication.ldap_bind_dn": f"uid=ann,{PEOPLE}",
        "authentication.ldap_bind_password": "ann's password",
    }
    assert told(checked(**settings)) == []
    ((severity, problem),) = told(checked(**settings | {"authentication.ldap_bind_password": "wrong"}))
    assert severity == "error" and "does not answer ldap_bind_dn" in problem
    ((severity, problem),) = told(checked(**settings | {"authorization.directory_groups": False}))
    assert severity == "error" and "needs authorization.directory_groups" in problem


def test_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    settings = {
        "authorization.provider": "policy",
        "authorization.policy_file": str(file),
        "security.accept_insecure": True,
    }
    assert "No such file" in told(checked(**settings))[0][1]
    file.write_text("")
    assert told(checked(**settings)) == [("warning", f"{file} grants nothing to anyone")]
    file.write_text('[[grants]]\nusers = ["u"]\nactions = ["read"]\ndatabases = ["d"]\n')
    assert told(checked(**settings)) == []
    assert "do not authenticate" in told(checked(**settings | {"security.accept_insecure": False}))[0][1]


@pytest.fixture
def protected(tmp_path: Path, certificates: Certificates) -> Iterator[str]:
    """A running server with TLS; its URI."""
    settings = {name.replace(".", "__"): value for name, value in certificates.server("127.0.0.1").items()}
    service = Service(configured(tmp_path, **settings))
    uri = service.start()
    with MetastoreClient(uri.replace("thrift:", "thrift+tls:"), tls_context=trusting(certificates)) as client:
        client.call("get_all_databases")
    yield uri.replace("thrift:", "thrift+tls:")
    service.stop()


def trusting(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.ca_file))


def test_the_client_speaks_tls_and_checks_the_server(
    protected: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MetastoreUnavailableError, match="certificate verify failed"):
        MetastoreClient(protected).call("get_all_databases")
    with pytest.raises(MetastoreUnavailableError, match="certificate"):
        MetastoreClient(protected.replace("127.0.0.1", "localhost"), tls_context=trusting(certificates)).call("getName")
    with pytest.raises(Exception, match=r"use\.SSL"):
        MetastoreClient(protected.replace("+tls", "")).call("get_all_databases")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    with MetastoreClient(protected) as client:
        assert client.call("get_all_databases") == ["default"]
        assert str(client.connected_to) == protected


def test_a_peer_with_tls(
    protected: str, tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured(tmp_path, cache__peers="hive4").settings
    (refused,) = run_checks(settings, (protected,)).found
    assert "does not answer" in refused.problem and "certificate" in refused.problem
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    assert run_checks(settings, (protected,)).found == []


def test_a_shadow_between_servers_with_tls(
    protected: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    done = CliRunner().invoke(commands, ["shadow", "--walk", "--server", protected, "--against", protected, "--json"])
    assert done.exit_code == 0, done.output
    assert protected in done.output
