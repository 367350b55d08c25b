"""Tokens of Hive's own server are accepted by ours and the reverse: both with Kerberos, on one database."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.java_metastore import JavaMetastore
from hms_cache.authentication.delegation.token_format import Token, TokenIdentifier
from hms_cache.client import (
    AuthenticationRefusedError,
    CredentialsError,
    DelegationToken,
    MetastoreClient,
    Metastores,
    authentication_of,
    for_tasks,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, GetTableRequest, MetaException
from tests.clients.spark.test_kerberos import SERVICE, class_path
from tests.conftest import ServerLookup
from tests.differential.metastores import own_database, start_ours
from tests.server.conftest import Link, table
from tests.server.kerberos_realm import REALM, Realm, SaslSocket, realm_of_this_process
from tests.server.test_delegation_tokens import link_over, requested

pytest.importorskip("gssapi")
pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]

Connect = Callable[..., Link]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann", "trino", "yarn/localhost") as running:
        yield running


@pytest.fixture(scope="module")
def ports(
    realm: Realm, database_servers: ServerLookup, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, int]]:
    directory = tmp_path_factory.mktemp("metastores")
    keytab = str(realm.directory / "hive_localhost.keytab")
    proxies = {"hadoop.proxyuser.trino.users": "bob", "hadoop.proxyuser.trino.hosts": "*"}
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.configuration}")
        url = own_database(database_servers("mariadb"), stack)
        java = JavaMetastore(
            url,
            directory,
            cached=False,
            heap="1g",
            classes=[class_path(directory, "authentication,integrity,privacy", **proxies)],
            properties={
                "metastore.sasl.enabled": "true",
                "metastore.kerberos.keytab.file": keytab,
                "metastore.kerberos.principal": SERVICE,
                # Hive accepts no other spelling.
                "hive.cluster.delegation.token.store.class": ("org.apache.hadoop.hive.metastore.security.DBTokenStore"),
            },
        )
        stack.callback(java.stop)
        address = java.start()
        settings: dict[str, Any] = {
            "authentication.kerberos_enabled": True,
            "authentication.kerberos_principal": SERVICE,
            "authentication.kerberos_keytab_file": keytab,
            "authentication.proxy_users": "trino users=bob hosts=*",
        }
        ours = start_ours(url, directory, **settings)
        uri = ours.start()
        stack.callback(ours.stop)
        yield {"java": int(address.rpartition(":")[2]), "ours": int(uri.rpartition(":")[2])}


@pytest.fixture
def sockets(ports: dict[str, int]) -> Iterator[Callable[[str], SaslSocket]]:
    with ExitStack() as stack:

        def connect(side: str) -> SaslSocket:
            return SaslSocket(stack.enter_context(socket.create_connection(("127.0.0.1", ports[side]), timeout=60)))

        yield connect


def with_ticket(sock: SaslSocket, realm: Realm, user: str) -> Link:
    assert sock.gssapi(realm.directory / f"{user.replace('/', '_')}.cache", SERVICE)[0] == 5
    return link_over(sock)


@pytest.mark.parametrize(("issuer", "other"), [("java", "ours"), ("ours", "java")])
def test_tokens_cross_over(sockets: Callable[[str], SaslSocket], realm: Realm, issuer: str, other: str) -> None:
    ann = with_ticket(sockets(issuer), realm, "ann")
    for owner in ("ann", f"ann@{REALM}", "ann" + "@" + REALM):
        token = requested(ann, owner, f"yarn/localhost@{REALM}")
        assert Token.from_url(token.to_url()) == token
        for side in (issuer, other):
            sock = sockets(side)
            status, told = sock.digest(token.identifier, token.password)
            assert status == 5, (side, told)
            assert "default" in link_over(sock).call("get_all_databases")
            assert sockets(side).digest(token.identifier, b"x" * 20)[0] != 5
    yarn = with_ticket(sockets(other), realm, "yarn/localhost")
    renewed_ms = yarn.call("renew_delegation_token", token_str_form=token.to_url())
    found = TokenIdentifier.decoded(token.identifier)
    assert found.issued_ms < renewed_ms < found.max_ms and found.renewer == "yarn"
    for side in (issuer, other):
        assert sockets(side).digest(token.identifier, token.password)[0] == 5
    with_ticket(sockets(other), realm, "ann").call("cancel_delegation_token", token_str_form=token.to_url())
    for side in (issuer, other):
        assert sockets(side).digest(token.identifier, token.password)[0] != 5


@pytest.mark.parametrize("side", ["java", "ours"])
def test_the_same_is_refused(sockets: Callable[[str], SaslSocket], realm: Realm, side: str) -> None:
    trino = with_ticket(sockets(side), realm, "trino")
    token = requested(trino, "bob")
    found = TokenIdentifier.decoded(token.identifier)
    assert (found.owner, found.real_user) == ("bob", f"trino@{REALM}")
    with pytest.raises(MetaException, match="is not allowed to impersonate ann"):
        requested(trino, "ann")
    ann = with_ticket(sockets(side), realm, "ann")
    with pytest.raises(MetaException, match="is not allowed to impersonate bob"):
        requested(ann, "bob")
    with pytest.raises(MetaException, match="without a renewer"):
        trino.call("renew_delegation_token", token_str_form=token.to_url())
    sock = sockets(side)
    assert sock.digest(token.identifier, token.password)[0] == 5
    if side == "ours":  # Java issues tokens to clients with tokens, so one lives for ever
        with pytest.raises(MetaException, match="only with kerberos"):
            requested(link_over(sock), "bob")


def test_what_a_challenge_says(sockets: Callable[[str], SaslSocket]) -> None:
    """Java's client accepts ours like its own."""
    found = {}
    for side in ("java", "ours"):
        sock = sockets(side)
        sock.digest(b"nobody", b"nothing")
        found[side] = {name: value for name, value in sock.challenge.items() if name != "nonce"}
    for name in ("realm", "charset", "algorithm"):
        assert found["java"][name] == found["ours"][name]


@pytest.mark.parametrize("quality", ["auth", "auth-int", "auth-conf"])
@pytest.mark.parametrize("side", ["java", "ours"])
def test_this_projects_own_client(ports: dict[str, int], realm: Realm, side: str, quality: str) -> None:
    """With a ticket, and with the token that its tasks get: small and large calls, in both directions."""
    text = f"kerberos server=hive/_HOST@{REALM} ticket_cache=FILE:{realm.directory / 'ann.cache'} protection={quality}"
    metastores = Metastores.of_texts(f"thrift://localhost:{ports[side]}", text, {})
    for number, access in enumerate((metastores, for_tasks(metastores))):
        name = f"own_{side}_{quality}_{number}".replace("-", "_")
        with MetastoreClient(access) as client:
            client.call("create_database", Database(name=name, parameters={}))
            assert client.call("get_database", name).ownerName == "ann"
            client.call("create_table", table(name, "t", comment="x" * 300_000))
            for _ in range(3):
                found = client.call("get_table_req", GetTableRequest(dbName=name, tblName="t")).table
                assert len(found.parameters["comment"]) == 300_000
                assert client.call("get_databases", name) == [name]


def test_javas_server_refuses_our_client_in_its_words(ports: dict[str, int]) -> None:
    for auth, text in (
        ("ldap user=ann password_file=/dev/null", "has no valid first line"),
        (f"token file={__file__}", "contains no delegation token"),
    ):
        client = MetastoreClient(f"thrift://localhost:{ports['java']}", authentication_of(auth, {}))
        with client, pytest.raises(CredentialsError, match=text):
            client.call("get_all_databases")
    forged = DelegationToken(Token(TokenIdentifier("ann", "", "", 1, 2, 3, 4).encoded(), b"x" * 20))
    client = MetastoreClient(f"thrift://localhost:{ports['java']}", forged)
    with client, pytest.raises(AuthenticationRefusedError, match="the metastore answers"):
        client.call("get_all_databases")
