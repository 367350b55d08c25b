"""This project's own client at Hive's metastore: passwords of a directory, and bearer tokens over HTTP. With Kerberos:
`test_delegation_tokens`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from benchmarks.java_metastore import JavaMetastore
from hms_cache.client import AuthenticationRefusedError, MetastoreClient, authentication_of
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, GetTableRequest
from tests.conftest import ServerLookup
from tests.differential.metastores import own_database
from tests.server.conftest import table
from tests.server.test_bearer_tokens import Issuer
from tests.server.test_ldap import ENTRIES, PEOPLE, running_directory

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def url(database_servers: ServerLookup) -> Iterator[str]:
    with ExitStack() as stack:
        yield own_database(database_servers("mariadb"), stack)


def started(url: str, directory: Path, stack: ExitStack, properties: dict[str, str]) -> str:
    """Its port."""
    java = JavaMetastore(url, directory, cached=False, heap="1g", properties=properties)
    stack.callback(java.stop)
    return java.start().rpartition(":")[2]


def uses(client: MetastoreClient, name: str, *, is_known: bool = True) -> None:
    """`is_known`: Hive's server uses the authenticated user as the owner; with passwords it uses its own."""
    with client:
        client.call("create_database", Database(name=name, parameters={}))
        assert (client.call("get_database", name).ownerName == "ann") == is_known
        client.call("create_table", table(name, "t", comment="x" * 300_000))
        for _ in range(3):
            found = client.call("get_table_req", GetTableRequest(dbName=name, tblName="t")).table
            assert len(found.parameters["comment"]) == 300_000
            assert client.call("get_databases", name) == [name]


def test_a_password(url: str, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with running_directory(tmp_path / "directory", ENTRIES) as port, ExitStack() as stack:
        properties = {
            "metastore.authentication": "LDAP",
            "metastore.execute.setugi": "false",
            "metastore.authentication.ldap.url": f"ldap://127.0.0.1:{port}",
            "metastore.authentication.ldap.userDNPattern": f"uid=%s,{PEOPLE}",
        }
        uri = f"thrift://127.0.0.1:{started(url, tmp_path / 'java', stack, properties)}"
        password = tmp_path / "password"
        password.write_text("ann's password\n")
        how = authentication_of(f"ldap user=ann password_file={password}", {})
        uses(MetastoreClient(uri, how), "by_password", is_known=False)
        password.write_text("not the password\n")
        with (
            MetastoreClient(uri, how) as client,
            pytest.raises(AuthenticationRefusedError, match="the metastore answers"),
        ):
            client.call("get_all_databases")


@pytest.mark.parametrize("by", ["token", "nothing"])
def test_http(url: str, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_cache.client.authentication.values.system_user", lambda: "ann")
    with closing(Issuer()) as issuer, ExitStack() as stack:
        properties = {
            "metastore.server.thrift.transport.mode": "http",
            "metastore.server.thrift.http.path": "metastore",
        }
        if by == "token":
            properties |= {"metastore.authentication": "JWT", "metastore.authentication.jwt.jwks.url": issuer.url}
        uri = f"http://127.0.0.1:{started(url, tmp_path / 'java', stack, properties)}/metastore"
        token = tmp_path / "token"
        token.write_text(issuer.token())
        how = authentication_of(f"jwt file={token}" if by == "token" else "none", {})
        uses(MetastoreClient(uri, how), f"by_{by}")
        if by == "token":
            token.write_text(issuer.token("one", exp=1.0))
            with MetastoreClient(uri, how) as client, pytest.raises(AuthenticationRefusedError, match="answers: 401"):
                client.call("get_all_databases")
