"""`hms-cache check --peer` and `hms-cache shadow` with metastores that authenticate clients."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hms_cache.app.shadow.comparing import Rules
from hms_cache.app.shadow.proxy import Conversation
from hms_cache.cli.main import commands
from hms_cache.client import AuthenticationRefusedError, CredentialsError
from hms_cache.errors import ConfigurationError
from hms_cache.thrift_gen.hive_metastore.ttypes import Database
from tests.python_client.authentication.site import Site
from tests.python_client.authentication.test_mechanisms import name_of
from tests.server.kerberos_realm import REALM

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def authority(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(site.authority.ca_file))


def auth_of(site: Site, port: str) -> str:
    if port.startswith("jwt"):
        return f"jwt file={site.bearer_file}"
    return site.ldap if port.startswith("ldap") else site.kerberos


def run(*arguments: str) -> Result:
    return CliRunner(env=dict(os.environ)).invoke(commands, arguments)


@pytest.mark.parametrize("port", ["kerberos auth-conf", "ldap tls", "jwt tls"])
def test_a_peer_is_asked(site: Site, port: str, tmp_path: Path) -> None:
    ours = ("--database", f"sqlite:///{tmp_path / 'metastore.db'}", "--set", f"warehouse.directory={tmp_path / 'w'}")
    peer = ("--peer", site.uri(port))
    with_auth = run("check", *ours, *peer, "--peer-auth", auth_of(site, port))
    assert f"ok       the peer {site.uri(port)} logs its writes" in with_auth.output
    without = run("check", *ours, *peer)
    assert without.exit_code == 1 and "--peer-auth" in without.output
    wrong = run("check", *ours, *peer, "--peer-auth", "ldap user=ann password=s3cret")
    assert isinstance(wrong.exception, ConfigurationError) and "s3cret" not in str(wrong.exception)


@pytest.mark.parametrize("port", ["kerberos", "kerberos auth-int", "ldap tls", "jwt", "http none"])
def test_a_shadow_walks(site: Site, port: str) -> None:
    with site.client("none", "none") as client:
        client.call("create_database", Database(name=name_of(port, "walked"), parameters={}))
    ways = ("--server", site.uri("none"), "--against", site.uri(port))
    auth = () if port == "http none" else ("--against-auth", auth_of(site, port))
    walked = run("shadow", "--walk", *ways, *auth, "--json")
    assert walked.exit_code == 0, walked.output
    report = json.loads(walked.output)
    assert report["methods"]["get_database"]["equal"] > 1 and not report["totals"]["different"]
    other_way = ("--server", site.uri(port), "--against", site.uri("none"))
    auth = () if port == "http none" else ("--server-auth", auth_of(site, port))
    assert run("shadow", "--walk", *other_way, *auth).exit_code == 0


def test_a_shadow_that_is_refused_says_so(site: Site, tmp_path: Path) -> None:
    ways = ("--server", site.uri("none"), "--against", site.uri("ldap"))
    (tmp_path / "wrong").write_text("not the password")
    refusals = site.service.metrics.server.authentications
    before = refusals.values().get(("refused",), 0)
    refused = run("shadow", "--walk", *ways, "--against-auth", f"ldap user=ann password_file={tmp_path / 'wrong'}")
    assert isinstance(refused.exception, AuthenticationRefusedError)
    assert "wrong name or password" in str(refused.exception) and "not the password" not in str(refused.exception)
    assert refusals.values()[("refused",)] == before + 1, "directories count them"
    missing = run("shadow", "--walk", *ways, "--against-auth", "ldap user=ann password_file=/no/such")
    assert isinstance(missing.exception, CredentialsError)
    by_http = run("shadow", "--server", site.uri("http none"), "--record", str(tmp_path / "reads"))
    assert isinstance(by_http.exception, ConfigurationError)


def test_a_client_that_authenticates_is_not_followed_and_told() -> None:
    notes: list[str] = []
    conversation = Conversation(Rules(), lambda read: None, notes.append)
    conversation.requested(b"\x01\0\0\0\x06GSSAPI\x02\0\0\0\x05token")
    conversation.replied(b"\x05\0\0\0\0")
    conversation.requested(b"\0\0\0\x04call")
    assert notes == [
        "calls of a connection are no longer compared: its client authenticates by SASL, which may encrypt the calls:"
        " use --walk or --replay"
    ]


@pytest.mark.parametrize("by", ["auth", "the keys of Spark's own client"])
def test_a_plan_takes_its_lease_and_runs(site: Site, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are separate processes."""
    database = f"planned_{by == 'auth'}".lower()
    with site.client("none", "none") as client:
        client.call("create_database", Database(name=database, parameters={}))
    lines = [f'metastore = "{site.uri("kerberos")}"']
    if by == "auth":
        lines.append(f'auth = "{site.kerberos}"')
    lines += ["[[job]]", 'job = "repair"', f'options = {{tables = ["{database}.*"]}}']
    if by != "auth":
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{site.ticket}")
        lines += ["[job.conf]", '"spark.hadoop.hive.metastore.sasl.enabled" = "true"']
        lines.append(f'"spark.hadoop.hive.metastore.kerberos.principal" = "hive/_HOST@{REALM}"')
    plan = tmp_path / "plan.toml"
    plan.write_text("\n".join(lines))
    before = sum(site.service.metrics.server.authentications.values().values())
    done = run("jobs", "run", "--plan", str(plan), "--json")
    assert done.exit_code == 0, done.output
    # The tables to lease, the lease and its heartbeat or end, the job.
    assert sum(site.service.metrics.server.authentications.values().values()) >= before + 4
