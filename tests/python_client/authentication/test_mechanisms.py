"""Our client with each mechanism and our server: its user, its protection, and refusals."""

from __future__ import annotations

import ipaddress
import pickle
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.service import Service
from hms_cache.authentication.delegation.token_format import Token
from hms_cache.client import (
    AuthenticationRefusedError,
    CredentialsError,
    DelegationToken,
    MetastoreClient,
    Metastores,
    MetastoreUnavailableError,
    authentication_of,
    delegation,
    for_tasks,
)
from hms_cache.client.errors import KerberosUnavailableError
from hms_cache.config import load
from hms_cache.errors import ConfigurationError
from hms_cache.thrift_gen.hive_metastore.ttypes import Database
from tests.clients.spark.test_kerberos import credentials_file
from tests.key_stores.samples import PASSWORDS, PROTECTED, USERS
from tests.python_client.authentication.site import PASSWORD, PORTS, Site
from tests.python_client.test_metastore_client import unused_port
from tests.server.conftest import table
from tests.server.kerberos_realm import REALM, running_realm

pytestmark = pytest.mark.timeout(240)


def uses(client: MetastoreClient, name: str, owner: str | None) -> None:
    """Small and large calls, in both directions; the authenticated user owns what is created."""
    with client:
        client.call("create_database", Database(name=name, parameters={}))
        assert client.call("get_database", name).ownerName == owner
        client.call("create_table", table(name, "t", comment="x" * 2_000_000))
        for _ in range(3):
            assert len(client.call("get_table", name, "t").parameters["comment"]) == 2_000_000
            assert client.call("get_databases", name) == [name]


def refusal(client: MetastoreClient, kind: Any, text: str) -> Any:
    """The error of the call."""
    with client, pytest.raises(kind, match=text) as raised:
        client.call("get_all_databases")
    return raised.value


def name_of(port: str, how: str = "") -> str:
    return f"d_{port}_{how}".replace(" ", "_").replace("-", "_").lower()


@pytest.mark.parametrize("port", [one for one in PORTS if one.startswith("kerberos")])
@pytest.mark.parametrize("by", ["cache", "keytab", "environment"])
def test_kerberos(site: Site, port: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    auth = f"kerberos server=hive/_HOST@{REALM}"
    if by == "environment":
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{site.ticket}")
    elif by == "keytab":
        auth += f" principal=ann@{REALM} keytab={site.keytab}"
    else:
        auth = site.kerberos
    uses(site.client(port, auth), name_of(port, by), "ann")


@pytest.mark.parametrize("port", [one for one in PORTS if one.startswith("kerberos")])
@pytest.mark.parametrize("form", ["text", "file of text", "Hadoop's file"])
def test_a_delegation_token(site: Site, port: str, form: str, tmp_path: Path) -> None:
    text = site.token()
    if form == "text":
        how = DelegationToken(Token.from_url(text))
        assert text not in repr(how) and repr(Token.from_url(text).password) not in repr(how)
        how = pickle.loads(pickle.dumps(how))
    else:
        file = tmp_path / "token"
        if form == "file of text":
            file.write_text(text + "\n")
        else:
            credentials_file(file, Token.from_url(text))
        how = authentication_of("token", {"HADOOP_TOKEN_FILE_LOCATION": str(file)})
    uses(site.client(port, how), name_of(port, form.replace("'", "")), "ann")


@pytest.mark.parametrize("port", ["ldap", "ldap tls"])
def test_a_password(site: Site, port: str) -> None:
    uses(site.client(port, site.ldap), name_of(port), "ann")


@pytest.mark.parametrize("port", ["jwt", "jwt tls"])
@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_bearer_token(site: Site, port: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HMS_JWT": site.issuer.token()}
    if by == "environment":
        monkeypatch.setenv("HMS_JWT", environment["HMS_JWT"])
    how = authentication_of("jwt" if by == "environment" else f"jwt file={site.bearer_file}", environment)
    uses(site.client(port, how), name_of(port, by), "ann")


def test_http_without_a_token(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_cache.client.authentication.values.system_user", lambda: "zoe")
    uses(site.client("http none", "none"), name_of("http none"), "zoe")


def test_a_new_bearer_token_is_used_by_the_connection_that_is_open(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(site.issuer.token())
    with site.client("jwt", f"jwt file={file}") as client:
        client.call("create_database", Database(name="of_ann", parameters={}))
        file.write_text(site.issuer.token(exp=time.time() - 60))
        with pytest.raises(AuthenticationRefusedError, match="expired"):
            client.call("create_database", Database(name="of_nobody", parameters={}))
        file.write_text(site.issuer.token(sub="bob"))
        client.call("create_database", Database(name="of_bob", parameters={}))
        owners = {one: client.call("get_database", one).ownerName for one in ("of_ann", "of_bob")}
        assert owners == {"of_ann": "ann", "of_bob": "bob"}
        assert "of_nobody" not in client.call("get_all_databases")


def test_the_quality_that_is_asked_for_or_none(site: Site) -> None:
    refusal(
        site.client("kerberos auth", f"{site.kerberos} protection=auth-conf,auth-int"),
        AuthenticationRefusedError,
        "offers the qualities of protection auth, but the client",
    )
    token = DelegationToken(Token.from_url(site.token()), qualities=("auth-conf",))
    refusal(
        site.client("kerberos auth-int", token),
        AuthenticationRefusedError,
        "offers the qualities of protection auth-int, but the",
    )
    for quality, layer in (("auth", None), ("auth-int", "GssapiLayer"), ("auth-conf", "GssapiLayer")):
        with site.client("kerberos", f"{site.kerberos} protection={quality}") as client:
            client.call("get_all_databases")
            found = client._connection._inner._mechanism.layer
            assert type(found).__name__ == layer or found is layer


@pytest.mark.parametrize(("port", "layer"), [("kerberos", "GssapiLayer"), ("kerberos tls", "NoneType")])
def test_it_is_encrypted_once(site: Site, port: str, layer: str) -> None:
    with site.client(port, site.kerberos) as client:
        client.call("get_all_databases")
        assert type(client._connection._inner._mechanism.layer).__name__ == layer


def test_a_wrong_password_is_tried_once_and_not_told(
    site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_text("not the password\n")
    before = site.service.metrics.server.authentications.values().get(("refused",), 0)
    how = authentication_of(f"ldap user=ann password_file={file}", {})
    uris = f"{site.uri('ldap')},{site.uri('ldap')},{site.uri('ldap tls')}"
    raised = refusal(
        MetastoreClient(uris, how, tls_context=site.tls),
        AuthenticationRefusedError,
        "wrong name or password; check the name",
    )
    assert not raised.retriable
    assert site.service.metrics.server.authentications.values()[("refused",)] == before + 1
    told = "".join(capfd.readouterr()) + repr(raised) + repr(how)
    assert "not the password" not in told and "ann" in told
    file.write_text(PASSWORD)
    with MetastoreClient(uris, how, tls_context=site.tls) as client:
        assert "default" in client.call("get_all_databases")


def test_a_ticket_that_one_refuses_is_taken_by_another(site: Site) -> None:
    """The first one does not support Kerberos at all: the server behind it may."""
    uris = f"{site.uri('ldap')},{site.uri('kerberos')}"
    with MetastoreClient(uris, authentication_of(site.kerberos, {})) as client:
        assert "default" in client.call("get_all_databases")
        assert str(client.connected_to) == site.uri("kerberos")
    both = f"{site.uri('ldap')},{site.uri('ldap')}"
    refusal(
        MetastoreClient(both, authentication_of(site.kerberos, {})),
        AuthenticationRefusedError,
        "Unsupported mechanism type 'GSSAPI'",
    )
    one_away = f"thrift://127.0.0.1:{unused_port()},{site.uri('ldap')}"
    refusal(
        MetastoreClient(one_away, authentication_of(site.kerberos, {})),
        MetastoreUnavailableError,
        "Unsupported mechanism",
    )


def test_a_directory_that_does_not_answer_is_no_wrong_password(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = {
        "server.port": 0,
        "admin.enabled": False,
        "security.accept_insecure": True,
        "database.url": f"sqlite:///{tmp_path_factory.mktemp('other') / 'metastore.db'}",
        "authentication.plain": "ldap",
        "authentication.ldap_url": f"ldap://127.0.0.1:{unused_port()}",
        "authentication.ldap_user_dn_pattern": "uid=%s",
    }
    with ExitStack() as stack:
        other = Service(load(command_line=settings, environment={}))
        first = other.start()
        stack.callback(other.stop)
        how = authentication_of(site.ldap, {})
        with MetastoreClient(f"{first},{site.uri('ldap')}", how) as client:
            assert "default" in client.call("get_all_databases")
        refusal(
            MetastoreClient(first, how),
            MetastoreUnavailableError,
            "directory of users does not answer; try again later",
        )


def test_a_password_in_a_credential_provider(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "users.jceks"
    how = f"ldap user=ann password_store=user:///,jceks://file{file}"
    refusal(site.client("ldap tls", how), CredentialsError, "contains a password of ann")
    file.write_bytes(PROTECTED.read_bytes())
    refusal(site.client("ldap tls", how), CredentialsError, "HADOOP_CREDSTORE_PASSWORD")
    file.write_bytes(PASSWORDS.read_bytes())
    refusal(site.client("ldap tls", how), CredentialsError, "contains a password of ann")
    # The file is read again for each connection.
    file.write_bytes(USERS.read_bytes())
    with site.client("ldap tls", how) as client:
        assert "default" in client.call("get_all_databases")


@pytest.mark.parametrize(
    ("auth", "text"),
    [
        (f"kerberos server=hive/_HOST@{REALM}", "get a ticket with kinit"),
        (f"kerberos server=hive/_HOST@{REALM} principal=ann keytab=/no/such", "/no/such does not exist"),
        ("kerberos server=nobody/_HOST@{realm} ticket_cache=FILE:{ticket}", "the realm has no nobody/localhost@"),
        ("ldap user=ann password_file=/no/such", "/no/such, the file with .*, cannot be read"),
        ("token file=/no/such", "/no/such, the file with .*, cannot be read"),
    ],
)
def test_what_is_not_there_is_told(site: Site, auth: str, text: str) -> None:
    auth = auth.format(realm=REALM, ticket=site.ticket)
    port = "ldap" if auth.startswith("ldap") else "kerberos"
    refusal(site.client(port, auth), CredentialsError, text)


def test_a_kdc_that_is_away(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_realm(tmp_path) as away:
        keytab = away.keytab("ann")
        away.keytab("hive/localhost")
    monkeypatch.setenv("KRB5_CONFIG", str(away.configuration))
    how = authentication_of(f"kerberos server=hive/_HOST@{REALM} principal=ann@{REALM} keytab={keytab}", {})
    raised = refusal(MetastoreClient(site.uri("kerberos"), how), KerberosUnavailableError, "Cannot contact any KDC")
    assert raised.retriable


def test_a_port_that_asks_nobody_and_one_that_asks(site: Site) -> None:
    refusal(
        site.client("none", site.kerberos),
        MetastoreUnavailableError,
        "SASL negotiation: it may authenticate no clients",
    )
    refusal(site.client("kerberos", "none"), Exception, r"hive.metastore.sasl.enabled")
    refusal(site.client("jwt", "none"), AuthenticationRefusedError, "asks for a bearer token")
    with pytest.raises(ConfigurationError, match="is for metastores at thrift://"):
        site.client("jwt", site.kerberos)
    with pytest.raises(ConfigurationError, match="is for metastores at http://"):
        site.client("kerberos", f"jwt file={site.bearer_file}")


@pytest.mark.parametrize("port", ["ldap", "jwt"])
def test_no_secret_goes_over_the_network_in_the_clear(site: Site, port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer in a test is this machine; here it counts as another one."""
    monkeypatch.setattr(ipaddress.IPv4Address, "is_loopback", property(lambda address: False))
    monkeypatch.setattr(ipaddress.IPv6Address, "is_loopback", property(lambda address: False))
    auth = site.ldap if port == "ldap" else f"jwt file={site.bearer_file}"
    before = dict(site.service.metrics.server.authentications.values())
    refusal(site.client(port, auth), ConfigurationError, r"was not sent\. Use a URI with")
    with site.client(port, f"{auth} unencrypted=allowed") as client:
        assert "default" in client.call("get_all_databases")
    after = dict(site.service.metrics.server.authentications.values())
    assert after[("ok",)] - before.get(("ok",), 0) == (1 if port == "ldap" else after[("ok",)] - before.get(("ok",), 0))
    with site.client(f"{port} tls", auth) as client:
        assert "default" in client.call("get_all_databases")


def given(access: Metastores) -> Token:
    """The token that tasks get."""
    assert isinstance(access.authentication, DelegationToken)
    return access.authentication.read()


def test_tasks_get_a_token_that_is_new_enough(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    metastores = Metastores.of_texts(site.uri("kerberos auth-int"), f"{site.kerberos} protection=auth-int", {})
    access = for_tasks(metastores)
    assert access == for_tasks(metastores) == for_tasks(access)
    token = given(access)
    assert token.to_url() not in f"{access!r} {access}" and repr(token.password) not in repr(access)
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nonexistent")
    with MetastoreClient(pickle.loads(pickle.dumps(access))) as client:
        assert "default" in client.call("get_all_databases")
    monkeypatch.setattr(delegation, "_USED_S", 0.0)
    monkeypatch.setattr(delegation, "_tokens", {})
    others = {given(for_tasks(metastores)) for _ in range(2)}
    assert len(others | {token}) == 3


def test_what_tasks_get_of_other_mechanisms(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They can read files; what only this process has is sent with them."""
    ldap = Metastores.of_texts(site.uri("ldap"), site.ldap, {})
    jwt = Metastores.of_texts(site.uri("jwt"), f"jwt file={site.bearer_file}", {})
    assert (for_tasks(ldap), for_tasks(jwt)) == (ldap, jwt)
    token = site.issuer.token()
    of_environment = Metastores.of_texts(site.uri("jwt"), "jwt", {"HMS_JWT": token})
    monkeypatch.setenv("HMS_JWT", token)
    access = for_tasks(of_environment)
    monkeypatch.delenv("HMS_JWT")
    assert token not in f"{access!r} {access}"
    with MetastoreClient(pickle.loads(pickle.dumps(access))) as client:
        assert "default" in client.call("get_all_databases")
    refusal(MetastoreClient(of_environment), CredentialsError, "no bearer token in HMS_JWT")
    file = credentials_file(tmp_path / "token", Token.from_url(site.token()))
    of_yarn = Metastores.of_texts(site.uri("kerberos"), f"token file={file}", {})
    access = for_tasks(of_yarn)
    file.unlink()
    with MetastoreClient(access) as client:
        assert "default" in client.call("get_all_databases")


def test_a_metastore_without_tokens_is_told(site: Site, tmp_path: Path) -> None:
    with ExitStack() as stack:
        other = site.kerberos_server(tmp_path, **{"authentication.delegation_tokens": False})
        uri = other.start().replace("127.0.0.1", "localhost")
        stack.callback(other.stop)
        with pytest.raises(CredentialsError, match="did not issue a delegation token, which tasks without a ticket"):
            for_tasks(Metastores.of_texts(uri, site.kerberos, {}))
