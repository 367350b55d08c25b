"""Groups of a real LDAP directory, for users of any mechanism and each provider, and those named in bearer tokens."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.security.groups import directory_groups as known_groups_of
from hms_cache.authentication import system_groups
from hms_cache.authentication.delegation.token_format import TokenIdentifier
from hms_cache.authentication.directory import Directory
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authorization.cached_groups import CachedGroups, Principal
from hms_cache.authorization.decisions import Action, SecuredObject, UndecidedError, UserUndecidedError
from hms_cache.authorization.grouped_policy import GroupedPolicy
from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.authorization.standard_rights import MAX_GROUPS, Rights, StandardDecisionSource
from hms_cache.cache.verification.verify import verify
from hms_cache.config import load
from hms_cache.errors import ConfigurationError, StartupError
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Running, Serve, database, table
from tests.server.test_authorization import outcome
from tests.server.test_decided_calls import call_each_that_is_decided
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
from tests.server.test_policy_service import Agent
from tests.server.test_sql_grants import World, bag
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
    """The account gets no more than 6 entries at once."""
    more = f'rootdn {ADMINISTRATOR}\nrootpw "{SECRET}"\nlimits dn.exact="{ACCOUNT}" size.soft=6 size.hard=6\n'
    with running_directory(tmp_path_factory.mktemp("directory"), ENTRIES, more) as running:
        yield running


def change(port: int, group: str, kind: str, user: str) -> None:
    """Adds a user to a group, or removes one."""
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
        # Spellings that the directory equates with ann: users of tokens and tickets, who are different users here.
        (GROUP, {"\uff41nn": set(), "ann ": set(), " ann": set(), "a\u034fnn": set(), "\u1d43nn": set()}),
        # Two entries have the name: it belongs to nobody.
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
        directory.groups_of("carol")  # six of seven groups are returned
    assert raised.value.outcome == "unavailable"


class Clock:
    """Replaces the clock."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_groups_have_an_age_and_a_longer_one_while_nobody_answers(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    clock, said, requested = Clock(), {"ann": frozenset({"analysts"})}, []

    def ask(user: str) -> frozenset[str]:
        requested.append(user)
        if not said:
            raise UndecidedError("silent")
        return said.get(user, frozenset())

    groups = CachedGroups(ask, 60.0, clock)
    policy = GroupedPolicy(PolicyFile(tmp_path / "policy.toml", SOURCES), groups)
    tag = policy.proven_decisions("ann").tag
    for _ in range(3):
        assert policy.decide("ann", Action.READ, TABLE) and not policy.decide("bob", Action.READ, TABLE)
    assert requested == ["ann", "bob"]
    said["bob"] = frozenset({"analysts"})
    said["ann"] = frozenset()
    clock.now_s += 61
    assert policy.decisions("bob").tag != tag, "the class is known only when the directory has answered"
    assert policy.decide("bob", Action.READ, TABLE) and not policy.decide("ann", Action.READ, TABLE)
    assert policy.decisions("bob").tag == tag, "who has the same grants shares answers"
    assert requested == ["ann", "bob"] * 2 or requested == ["ann", "bob", "bob", "ann"]

    said.clear()
    clock.now_s += 61
    assert policy.decide("bob", Action.READ, TABLE), "it was said in the epoch before"
    requested.clear()
    with pytest.raises(UndecidedError):
        policy.decide("carol", Action.READ, TABLE)
    assert requested == [], "who does not answer is left alone for some seconds"
    clock.now_s += 61
    with pytest.raises(UndecidedError):
        policy.decide("bob", Action.READ, TABLE)
    assert groups.outcomes == {"ok": 4, "cached": 1, "failed": 2}
    said["bob"] = frozenset({"analysts"})
    clock.now_s += 6
    assert policy.decide("bob", Action.READ, TABLE)


def test_a_user_about_whom_too_much_is_to_be_told_keeps_nobody_else_out(port: int) -> None:
    """The directory returns six entries at once, and carol is in seven groups."""
    given = {
        **directory_settings(port),
        "authorization.provider": "sql",
        "authorization.directory_groups": True,
        "authentication.ldap_group_dn_pattern": f"cn=%s,{BASE}",
        "authentication.ldap_group_class_key": "posixGroup",
        "authentication.ldap_group_membership_key": "memberUid",
    }
    groups = known_groups_of(load(command_line=given, environment={}).settings)
    assert groups is not None
    for _ in range(3):
        with pytest.raises(UndecidedError):
            groups.of("carol")
        assert groups.of("bob") == {"posix"}


def test_who_is_not_told_about_is_left_alone_for_some_seconds() -> None:
    clock, requested = Clock(), []

    def ask(user: str) -> frozenset[str]:
        requested.append(user)
        if user == "carol" and len(requested) > 1:
            raise UserUndecidedError("too many groups")
        return frozenset({"g"})

    groups = CachedGroups(ask, 60.0, clock)
    assert groups.of("carol") == groups.of("ann") == {"g"}
    for _ in range(3):
        assert groups.of("carol") == {"g"}, "it was said a moment ago"
        assert groups.of("ann") == {"g"}
    assert requested == ["carol", "ann", "carol", "ann", "ann", "ann"]
    clock.now_s += 6
    assert groups.of("carol") == {"g"} and requested[-1] == "carol"
    clock.now_s += 121
    with pytest.raises(UndecidedError):
        groups.of("carol")
    assert groups.outcomes == {"ok": 5, "cached": 4, "failed": 1}


def test_a_new_policy_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    file = PolicyFile(path, SOURCES)
    policy = GroupedPolicy(file, CachedGroups(lambda user: frozenset({"analysts"}), 60.0))
    before = policy.proven_decisions("ann")
    assert before.policy is policy.policy and before.allow(Action.READ, TABLE)
    path.write_text(POLICY.replace("Analysts", "writers"))
    file.reload()
    assert before.policy is not policy.policy and policy.decisions_of(before.tag) is None
    assert not policy.decide("ann", Action.READ, TABLE)


def directory_settings(port: int) -> dict[str, Any]:
    return {
        "authentication.ldap_url": f"ldap://127.0.0.1:{port}",
        "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
        "authentication.ldap_bind_dn": ACCOUNT,
        "authentication.ldap_bind_password": password("reader"),
        "authentication.ldap_group_dn_pattern": f"cn=%s,{GROUPS}",
        "authorization.directory_groups_max_age_s": 1,
    }


def server_of(serve: Serve, port: int, policy: Path, **more: Any) -> Running:
    return serve(
        **{
            **directory_settings(port),
            "authorization.provider": "policy",
            "authorization.policy_file": str(policy),
            "authorization.directory_groups": True,
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


def test_what_needs_no_table_waits_for_the_directory_too(serve: Serve, port: int, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    server = server_of(serve, port, tmp_path / "policy.toml")
    for user in ("root", "ann", "bob"):
        link = server.link()
        link.call("set_ugi", user_name=user, group_names=[])
        call_each_that_is_decided(link)


def test_a_user_of_kerberos_has_the_directorys_groups(
    serve: Serve, port: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("gssapi")
    from tests.server.kerberos_realm import realm_of_this_process
    from tests.server.test_delegation_tokens import with_ticket
    from tests.server.test_kerberos import settings_of

    (tmp_path / "policy.toml").write_text(POLICY)
    with realm_of_this_process(tmp_path_factory.mktemp("realm")) as realm:
        server = server_of(serve, port, tmp_path / "policy.toml", **settings_of(realm))
        links = {}
        for user in ("root", "ann", "bob"):
            realm.ticket(user)
            links[user] = with_ticket(server, realm, user)
        fill(links["root"])
        assert links["ann"].call("get_table", dbname="open", tbl_name="t").tableName == "t"
        assert isinstance(outcome(links["bob"], "get_table", dbname="open", tbl_name="t"), tuple)


@pytest.mark.parametrize("source", ["system", "directory"])
def test_a_rule_for_groups_means_those_of_who_is_acted_for(
    serve: Serve, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system knows `root`, the directory `bob`; the proxy user's own groups have no effect."""
    pytest.importorskip("gssapi")
    from tests.server.kerberos_realm import REALM, running_realm
    from tests.server.test_delegation_tokens import requested, with_ticket
    from tests.server.test_kerberos import settings_of

    of_system = {"root": frozenset({"staff", "writers"}), "trino": frozenset({"writers"})}
    monkeypatch.setattr(system_groups, "groups_of", lambda user: of_system.get(user, frozenset()))
    rules = {"authentication.proxy_users": "trino groups=writers,wheel hosts=*", "authentication.proxy_groups": source}
    member, other = ("bob", "root") if source == "directory" else ("root", "bob")
    for name in ("realm", "directory"):
        (tmp_path / name).mkdir()
    with running_realm(tmp_path / "realm") as realm:
        monkeypatch.setenv("KRB5_CONFIG", str(realm.configuration))
        monkeypatch.setenv("KRB5CCNAME", "FILE:/nonexistent")
        realm.keytab("hive/localhost")
        for user in ("ann", "trino"):
            realm.ticket(user)
        with running_directory(tmp_path / "directory", ENTRIES) as port:
            server = serve(**settings_of(realm, **rules, **directory_settings(port)))
            trino = with_ticket(server, realm, "trino")
            token = TokenIdentifier.decoded(requested(trino, member).identifier)
            assert (token.owner, token.real_user) == (member, f"trino@{REALM}")
            for user in (other, "ann", "*", "x)(uid=*"):
                with pytest.raises(t.MetaException, match="not allowed to impersonate") as refused:
                    requested(trino, user)
                assert refused.value.message.endswith(f"impersonate {user}")
            with pytest.raises(t.MetaException, match=f"ann@{REALM} is not allowed to impersonate {member}"):
                requested(with_ticket(server, realm, "ann"), member)
        # Groups that were read are valid for a while; those of others cannot be read.
        assert TokenIdentifier.decoded(requested(trino, member).identifier).owner == member
        if source == "directory":
            with pytest.raises(t.MetaException, match="impersonate carol: its groups are not known now; retry"):
                requested(trino, "carol")
            assert server.service.metrics.server.directory_groups.values()[("failed",)] > 0


def test_kept_replies_are_verified_by_their_class(serve: Serve, port: int, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    more = {"admin.enabled": True, "authorization.directory_groups_max_age_s": 3600}
    server = server_of(serve, port, tmp_path / "policy.toml", **more)
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
    assert report.compared["replies"] >= 2


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
            # One user with two tokens: the groups in one have no effect with the other.
            status, answer = post(server, issuer.token(groups=groups), "get_table", dbname="open", tbl_name="t")
            assert status == 200 and (b"not found" not in answer) is allowed
            status, answer = post(server, issuer.token(groups=["x"]), "get_table", dbname="open", tbl_name="t")
            assert status == 200 and b"not found" in answer
        for odd in (7, {"a": 1}, [1]):
            assert post(server, issuer.token(groups=odd), "getStatus")[0] == 401


def sees(link: Link, name: str = "hers") -> bool:
    return isinstance(outcome(link, "get_table", dbname="open", tbl_name=name), t.Table)


def eventually(expected: bool, link: Link) -> None:
    wait_for(lambda: sees(link) is expected)


@pytest.mark.parametrize(("age_s", "grants"), [(0, "read"), (1, "read"), (0, "logged")])
def test_grants_to_groups_count_for_members_in_the_directory(
    serve: Serve, port: int, age_s: float, grants: str
) -> None:
    kept = {"authorization.sql_max_age_s": age_s, "authorization.sql_grants": grants}
    world = World(serve, **directory_settings(port), **kept, **{"authorization.directory_groups": True})
    group, user = t.PrincipalType.GROUP, t.PrincipalType.USER
    member, bob, carol = world.link("o,brien"), world.link("bob"), world.link("carol")
    assert not world.sees(member)
    world.ann.call("grant_privileges", privileges=bag("SELECT", "analysts", kind=group))
    for _ in range(3):
        assert world.sees(member) and not world.sees(bob) and not world.sees(member, "other")
    # A user and a role with the group's name, and a user who claims to be in it, are not.
    assert not world.sees(world.link("analysts"))
    change(port, "analysts", ldap3.MODIFY_ADD, "bob")
    eventually(True, bob)
    change(port, "analysts", ldap3.MODIFY_DELETE, "bob")
    eventually(False, bob)
    world.ann.call("revoke_privileges", privileges=bag("SELECT", "analysts", kind=group))
    assert not world.sees(member)

    world.root.call("create_role", role=t.Role("readers", 0, "root"))
    role = {"role_name": "readers", "principal_name": "analysts", "principal_type": group}
    world.ann.call("grant_privileges", privileges=bag("SELECT", "readers", kind=t.PrincipalType.ROLE))
    assert not world.sees(member)
    world.root.call("grant_role", **role, grantor="root", grantorType=user)
    assert world.sees(member) and not world.sees(carol)
    world.root.call("revoke_role", **role)
    assert not world.sees(member)

    owned = database("theirs")
    owned.ownerName, owned.ownerType = "analysts", group
    world.root.call("create_database", database=owned)
    assert "may not create" in outcome(carol, "create_table", tbl=table("theirs", "t"))[1]
    member.call("create_table", tbl=table("theirs", "t"))


def test_an_agent_is_told_the_directorys_groups(serve: Serve, port: int) -> None:
    def answer(document: dict[str, Any]) -> bytes:
        requested = document["input"]
        allowed = requested["principal"] == "root" or "analysts" in requested["directory_groups"]
        return json.dumps({"result": [allowed] * len(requested["checks"])}).encode()

    agent = Agent()
    agent.answer = answer
    with closing(AgentStops(agent)):
        given = {
            "authorization.provider": "opa",
            "authorization.opa_url": agent.url,
            "authorization.opa_max_age_s": 1,
            "authorization.directory_groups": True,
            "security.accept_insecure": True,
        }
        server = serve(**directory_settings(port), **given)
        links = {}
        for user in ("root", "ann", "bob"):
            links[user] = server.link()
            links[user].call("set_ugi", user_name=user, group_names=["analysts"])
        fill(links["root"])
        for _ in range(3):
            assert sees(links["ann"], "t") and not sees(links["bob"], "t")
        assert {"principal": "bob", "groups": [], "directory_groups": ["writers"]}.items() <= agent.requested[
            -1
        ].items()
        change(port, "analysts", ldap3.MODIFY_ADD, "bob")
        wait_for(lambda: sees(links["bob"], "t"))
        change(port, "analysts", ldap3.MODIFY_DELETE, "bob")
        wait_for(lambda: not sees(links["bob"], "t"))
        assert sees(links["ann"], "t")


class AgentStops:
    """What `closing` wants."""

    def __init__(self, agent: Agent) -> None:
        self.close = agent.stop


@pytest.mark.parametrize("provider", ["sql", "opa"])
def test_while_no_directory_answers_calls_are_refused(serve: Serve, provider: str) -> None:
    agent = Agent()
    with closing(AgentStops(agent)), socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        busy.close()
        given = {
            "authorization.provider": provider,
            "authorization.opa_url": agent.url,
            "authorization.directory_groups": True,
            "security.accept_insecure": True,
            "catalog.users_in_admin_role": ["root"],
        }
        server = serve(**directory_settings(port), **given)
        link = server.link()
        link.call("set_ugi", user_name="root", group_names=[])
        for _ in range(3):
            told = outcome(link, "create_database", database=database("open"))
            assert "Permission denied: the groups of the user cannot be determined" in told[1]
        assert server.service.metrics.server.directory_groups.values()[("failed",)] >= 3
        assert agent.requested == []


def test_the_directory_is_asked_once_in_the_age(tmp_path: Path) -> None:
    clock, requested = Clock(), []

    def ask(user: str) -> frozenset[str]:
        requested.append(user)
        if len(requested) > 2:
            raise UndecidedError("silent")
        return frozenset({f"{len(requested)}"})

    groups = CachedGroups(ask, 60.0, clock)
    assert [groups.recent("ann") for _ in range(3)] == [{"1"}] * 3
    clock.now_s += 60
    assert groups.recent("ann") == {"1"}
    clock.now_s += 1
    assert groups.recent("ann") == {"2"} and requested == ["ann"] * 2
    clock.now_s += 120
    assert groups.recent("ann") == {"2"} and len(requested) == 3, "while nobody answers, for twice as long"
    clock.now_s += 1
    with pytest.raises(UndecidedError):
        groups.recent("ann")
    assert len(requested) == 3, "who does not answer is left alone for some seconds"


def test_a_statement_has_room_for_so_many_groups() -> None:
    class Source:
        def rights(self, user: str, within: SecuredObject, groups: frozenset[str] = frozenset()) -> Rights:
            return Rights(groups, frozenset(), frozenset())

    def judge(count: int) -> StandardDecisionSource:
        return StandardDecisionSource(
            Source(), Principal("ann", frozenset({"admin"}), lambda user: frozenset(map(str, range(count))))
        )

    assert judge(MAX_GROUPS - 1).allow(Action.DROP, TABLE)
    with pytest.raises(UndecidedError, match="more than 2000 groups"):
        judge(MAX_GROUPS).allow(Action.DROP, TABLE)


def test_grants_to_groups_count_for_those_that_a_token_names(serve: Serve) -> None:
    pytest.importorskip("jwt")
    from tests.server.test_bearer_tokens import Issuer, post

    with closing(Issuer()) as issuer:
        server = serve(
            **{
                "server.transport_mode": "http",
                "security.accept_insecure": True,
                "authentication.jwt_jwks_url": issuer.url,
                "authentication.jwt_groups_claim": "groups",
                "authorization.provider": "sql",
                "authorization.sql_max_age_s": 60,
                "catalog.users_in_admin_role": ["root"],
            }
        )
        root = issuer.token(sub="root")
        post(server, root, "create_database", database=database("open"))
        post(server, root, "create_table", tbl=table("open", "hers"))
        granted = bag("SELECT", "analysts", kind=t.PrincipalType.GROUP)
        assert b"denied" not in post(server, root, "grant_privileges", privileges=granted)[1]
        for _ in range(3):
            for groups, shown in ((["analysts"], True), (["Analysts"], False), ([], False)):
                answer = post(server, issuer.token(groups=groups), "get_table", dbname="open", tbl_name="hers")
                assert answer[0] == 200 and (b"not found" not in answer[1]) is shown


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
            "the location of users and groups",
        ),
        ({"authorization.directory_groups": True, "authorization.provider": "off"}, "needs a provider"),
        ({"authorization.directory_groups": True, "authorization.provider": "sql"}, "needs a directory and an account"),
        ({"authentication.proxy_groups": "directory"}, "proxy_groups = directory needs a directory and an account"),
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
