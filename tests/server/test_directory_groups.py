"""A policy's groups of a real LDAP directory, for users of any mechanism, and those that bearer tokens name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.authentication.directory import Directory
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authorization.decisions import Action, SecuredObject, UndecidedError
from hms_cache.authorization.grouped_policy import DirectoryGroups, GroupedPolicy
from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.cache.verification.verify import verify
from hms_cache.errors import ConfigurationError, StartupError
from tests.server.conftest import Link, Running, Serve, database, table
from tests.server.test_authorization import outcome
from tests.server.test_ldap import running_directory
from tests.server.test_ldap_filters import (
    ACCOUNT,
    BASE,
    ENTRIES,
    GROUP,
    GROUPS,
    MANY,
    PEOPLE,
    dn_of,
    options,
    password,
)
from tests.server.test_tls import wait_for

ldap3 = pytest.importorskip("ldap3")

ADMINISTRATOR, SECRET = f"cn=admin,{BASE}", "of the administrator"
POLICY = """
[[grants]]
users = ["root"]
actions = ["all"]
databases = ["*"]
[roles.readers]
directory_groups = ["Analysts"]
[[grants]]
roles = ["readers"]
actions = ["read"]
databases = ["open"]
"""
TABLE = SecuredObject("hive", "open", "t")
SOURCES = frozenset(("directory_groups", "token_groups"))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The account sees no more than 6 entries at once."""
    more = f'rootdn {ADMINISTRATOR}\nrootpw "{SECRET}"\nlimits dn.exact="{ACCOUNT}" size.soft=6 size.hard=6\n'
    with running_directory(tmp_path_factory.mktemp("directory"), ENTRIES, more) as running:
        yield running


def change(port: int, group: str, kind: str, user: str) -> None:
    """Puts a user into a group, or takes one out."""
    with ldap3.Connection(ldap3.Server(f"ldap://127.0.0.1:{port}"), ADMINISTRATOR, SECRET) as connection:
        assert connection.modify(f"cn={group},{GROUPS}", {"member": [(kind, [dn_of(user)])]}), connection.result


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (GROUP, {"ann": {"analysts"}, "o,brien": {"analysts"}, "bob": {"writers"}, "carol": {"twice", "other"}}),
        (
            {**GROUP, "ldap_group_class_key": "posixGroup", "ldap_group_membership_key": "memberUid"},
            {"bob": {"posix"}, "a*": {"posix"}, "ann": set()},
        ),
        ({**GROUP, "ldap_user_membership_key": "seeAlso"}, {"ann": {"analysts"}, "bob": {"writers"}, "carol": set()}),
        ({"ldap_group_dn_pattern": f"cn=%s,ou=old,{GROUPS}", "ldap_user_membership_key": "seeAlso"}, {"ann": set()}),
        (GROUP, {"nobody": set(), "": set(), "*": set(), "x)(uid=*": set(), "ann)(cn=*": set(), "ann\0": set()}),
        # Two entries have the name: it is nobody's.
        ({**GROUP, "ldap_user_dn_pattern": f"uid=%s,{BASE}"}, {"ann": set(), "bob": {"writers"}}),
    ],
)
def test_groups_of_users(port: int, settings: dict[str, str], expected: dict[str, set[str]]) -> None:
    directory = Directory(options(port, by_account=True, **settings))
    assert {user: directory.groups_of(user) for user in expected} == expected


def test_what_the_directory_does_not_tell_is_no_answer(port: int) -> None:
    many = {"ldap_group_dn_pattern": f"cn=%s,{MANY}", "ldap_group_class_key": "posixGroup"}
    directory = Directory(options(port, by_account=True, **many, ldap_group_membership_key="memberUid"))
    with pytest.raises(AuthenticationError) as raised:
        directory.groups_of("carol")  # of seven groups six are shown
    assert raised.value.outcome == "unavailable"


class Clock:
    """Stands for the time."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_groups_have_an_age_and_a_longer_one_while_nobody_answers(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    clock, said, asked = Clock(), {"ann": frozenset({"analysts"})}, []

    def ask(user: str) -> frozenset[str]:
        asked.append(user)
        if not said:
            raise UndecidedError("silent")
        return said.get(user, frozenset())

    groups = DirectoryGroups(ask, 60.0, clock)
    policy = GroupedPolicy(PolicyFile(tmp_path / "policy.toml", SOURCES), groups)
    tag = policy.proven_decisions("ann").tag
    for _ in range(3):
        assert policy.decide("ann", Action.READ, TABLE) and not policy.decide("bob", Action.READ, TABLE)
    assert asked == ["ann", "bob"]
    said["bob"] = frozenset({"analysts"})
    said["ann"] = frozenset()
    clock.now_s += 61
    assert policy.decisions("bob").tag != tag, "the class is known only when the directory has answered"
    assert policy.decide("bob", Action.READ, TABLE) and not policy.decide("ann", Action.READ, TABLE)
    assert policy.decisions("bob").tag == tag, "who has the same grants shares answers"
    assert asked == ["ann", "bob"] * 2 or asked == ["ann", "bob", "bob", "ann"]

    said.clear()
    clock.now_s += 61
    assert policy.decide("bob", Action.READ, TABLE), "it was said in the epoch before"
    asked.clear()
    with pytest.raises(UndecidedError):
        policy.decide("carol", Action.READ, TABLE)
    assert asked == [], "who does not answer is left alone for some seconds"
    clock.now_s += 61
    with pytest.raises(UndecidedError):
        policy.decide("bob", Action.READ, TABLE)
    assert groups.outcomes == {"ok": 4, "kept": 1, "failed": 2}
    said["bob"] = frozenset({"analysts"})
    clock.now_s += 6
    assert policy.decide("bob", Action.READ, TABLE)


def test_a_new_policy_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    file = PolicyFile(path, SOURCES)
    policy = GroupedPolicy(file, DirectoryGroups(lambda user: frozenset({"analysts"}), 60.0))
    before = policy.proven_decisions("ann")
    assert before.policy is policy.policy and before.allow(Action.READ, TABLE)
    path.write_text(POLICY.replace("Analysts", "writers"))
    file.reload()
    assert before.policy is not policy.policy and policy.decisions_of(before.tag) is None
    assert not policy.decide("ann", Action.READ, TABLE)


def server_of(serve: Serve, port: int, policy: Path, **more: Any) -> Running:
    return serve(
        **{
            "authentication.ldap_url": f"ldap://127.0.0.1:{port}",
            "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
            "authentication.ldap_bind_dn": ACCOUNT,
            "authentication.ldap_bind_password": password("reader"),
            "authentication.ldap_group_dn_pattern": f"cn=%s,{GROUPS}",
            "authorization.provider": "policy",
            "authorization.policy_file": str(policy),
            "authorization.directory_groups": True,
            "authorization.directory_groups_max_age_s": 1,
            "security.accept_insecure": True,
            **more,
        }
    )


def fill(root: Link) -> None:
    root.call("create_database", database=database("open"))
    root.call("create_table", tbl=table("open", "t"))


def test_a_server_asks_the_directory_and_a_removal_ends_the_right(serve: Serve, port: int, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    server = server_of(serve, port, tmp_path / "policy.toml")

    def of(user: str) -> Link:
        link = server.link()
        link.call("set_ugi", user_name=user, group_names=["analysts"])
        return link

    fill(of("root"))
    ann, bob = of("ann"), of("bob")
    for _ in range(5):
        assert ann.call("get_table", dbname="open", tbl_name="t").tableName == "t"
        assert outcome(bob, "get_table", dbname="open", tbl_name="t")[1] == "hive.open.t table not found"
        assert "Permission denied: user bob" in outcome(bob, "get_current_notificationEventId")[1]
    change(port, "analysts", ldap3.MODIFY_ADD, "bob")
    wait_for(lambda: not isinstance(outcome(bob, "get_table", dbname="open", tbl_name="t"), tuple))
    assert bob.call("get_current_notificationEventId").eventId > 0
    change(port, "analysts", ldap3.MODIFY_DELETE, "bob")
    wait_for(lambda: isinstance(outcome(bob, "get_table", dbname="open", tbl_name="t"), tuple))
    assert ann.call("get_table", dbname="open", tbl_name="t").tableName == "t"
    assert server.service.metrics.server.directory_groups.values()[("ok",)] > 3


def test_a_user_of_kerberos_has_the_directorys_groups(
    serve: Serve, port: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("gssapi")
    from tests.server.kerberos_realm import running_realm
    from tests.server.test_delegation_tokens import with_ticket
    from tests.server.test_kerberos import settings_of

    (tmp_path / "policy.toml").write_text(POLICY)
    with running_realm(tmp_path_factory.mktemp("realm")) as realm, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(realm.configuration))
        patch.setenv("KRB5CCNAME", "FILE:/nonexistent")
        realm.keytab("hive/localhost")
        server = server_of(serve, port, tmp_path / "policy.toml", **settings_of(realm))
        links = {}
        for user in ("root", "ann", "bob"):
            realm.ticket(user)
            links[user] = with_ticket(server, realm, user)
        fill(links["root"])
        assert links["ann"].call("get_table", dbname="open", tbl_name="t").tableName == "t"
        assert isinstance(outcome(links["bob"], "get_table", dbname="open", tbl_name="t"), tuple)


def test_kept_replies_are_verified_by_their_class(serve: Serve, port: int, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    server = server_of(serve, port, tmp_path / "policy.toml", **{"authorization.directory_groups_max_age_s": 3600})
    links = {}
    for user in ("root", "ann"):
        links[user] = server.link()
        links[user].call("set_ugi", user_name=user, group_names=[])
    fill(links["root"])
    for link in links.values():
        for _ in range(3):
            link.call("get_table", dbname="open", tbl_name="t")
    sources = server.service.admin_sources
    assert sources is not None and sources.cache is not None
    report = verify(sources.cache.shared, sources.store, sources.cache.loader, replies=sources.kept_replies)
    assert report.differences == []
    assert report.replies >= 2


@pytest.mark.parametrize(
    ("groups", "allowed"),
    [(["analysts"], True), ("analysts", True), (["Analysts"], False), ([], False), (None, False)],
)
def test_groups_that_a_bearer_token_names(serve: Serve, tmp_path: Path, groups: Any, allowed: bool) -> None:
    pytest.importorskip("jwt")
    from tests.server.test_bearer_tokens import Issuer, post

    (tmp_path / "policy.toml").write_text(POLICY.replace("directory_groups", "token_groups").replace("Ana", "ana"))
    with closing(Issuer()) as issuer:
        server = serve(
            **{
                "server.transport_mode": "http",
                "security.accept_insecure": True,
                "authentication.jwt_jwks_url": issuer.url,
                "authentication.jwt_groups_claim": "groups",
                "authorization.provider": "policy",
                "authorization.policy_file": str(tmp_path / "policy.toml"),
            }
        )
        root = issuer.token(sub="root")
        post(server, root, "create_database", database=database("open"))
        post(server, root, "create_table", tbl=table("open", "t"))
        for _ in range(3):
            # One user with two tokens: what one says counts for nothing with the other.
            status, answer = post(server, issuer.token(groups=groups), "get_table", dbname="open", tbl_name="t")
            assert status == 200 and (b"not found" not in answer) is allowed
            status, answer = post(server, issuer.token(groups=["x"]), "get_table", dbname="open", tbl_name="t")
            assert status == 200 and b"not found" in answer
        for odd in (7, {"a": 1}, [1]):
            assert post(server, issuer.token(groups=odd), "getStatus")[0] == 401


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "directory_groups needs authorization.directory_groups = true"),
        ({"authorization.directory_groups": True}, "needs a directory and an account"),
        (
            {
                "authorization.directory_groups": True,
                "authentication.ldap_url": "ldap://x",
                "authentication.ldap_bind_dn": "cn=a",
            },
            "where users and groups lie",
        ),
        ({"authorization.directory_groups": True, "authorization.provider": "sql"}, "set provider = policy"),
    ],
)
def test_groups_that_nobody_knows_stop_the_start(
    serve: Serve, tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    given = {
        "authorization.provider": "policy",
        "authorization.policy_file": str(tmp_path / "policy.toml"),
        "security.accept_insecure": True,
    }
    with pytest.raises((StartupError, ConfigurationError), match=told):
        serve(**given | settings)
