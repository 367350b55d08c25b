"""Policies: the meaning of a file, what is refused, and when a change applies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hms_cache.authorization.decisions import METASTORE, Action, SecuredObject
from hms_cache.authorization.policy import MAX_PRINCIPALS, TOKEN_GROUPS, PolicyError, of_token, parse_policy
from hms_cache.authorization.policy_file import PolicyFile

TEXT = """
[groups]
analysts = ["ann", "bob"]

[roles.editors]
users = ["eve"]
groups = ["analysts"]

[[grants]]
groups = ["analysts"]
actions = ["read"]
databases = ["sales", "pub_*"]
tables = ["Orders*", "x*y*z"]

[[grants]]
roles = ["editors"]
actions = ["create", "alter"]
databases = ["sandbox"]

[[grants]]
users = ["root"]
actions = ["all"]
catalogs = ["*"]
databases = ["*"]

[[grants]]
users = ["hs2"]
actions = ["service"]
"""


def of(*names: str) -> SecuredObject:
    return SecuredObject("hive", *names)


def test_what_is_granted() -> None:
    policy = parse_policy(TEXT)
    ann, eve, root, hs2 = (policy.decisions(name) for name in ("ann", "eve", "root", "hs2"))
    assert ann.allow(Action.READ, of("sales", "orders_2026"))
    assert ann.allow(Action.READ, of("pub_a", "x1y2z"))
    for denied in (
        of("sales", "customers"),
        of("salesx", "orders"),
        of("sales"),
        SecuredObject("c", "sales", "orders"),
    ):
        assert not ann.allow(Action.READ, denied), denied
    assert not ann.allow(Action.ALTER, of("sales", "orders"))
    assert eve.allow(Action.READ, of("sandbox", "t")), "who may alter may read"
    assert eve.allow(Action.ALTER, of("sandbox")) and not eve.allow(Action.DROP, of("sandbox", "t"))
    assert not eve.allow(Action.READ, of("sales", "orders")), "a member of the role, not of the group"
    assert root.allow(Action.MANAGE, METASTORE) and not root.allow(Action.SERVICE, METASTORE)
    assert hs2.allow(Action.SERVICE, METASTORE) and not hs2.allow(Action.READ, of("sales", "orders"))
    assert not hs2.show(of("sales"))
    nobody = policy.decisions("nobody")
    assert not nobody.has_any and not nobody.show(of("sales"))


def test_what_is_shown() -> None:
    ann = parse_policy(TEXT).decisions("ann")
    assert ann.show(of("sales")) and ann.show(of("pub_1")) and ann.show(SecuredObject("hive"))
    assert ann.show(of("sandbox"))
    assert ann.show(of("default")) and not ann.show(of("default", "t")) and not ann.allow(Action.READ, of("default"))
    assert not ann.show(SecuredObject("c", "default"))
    assert not ann.show(of("hidden")) and not ann.show(SecuredObject("c"))


def test_names_that_no_object_has_are_covered_by_nothing() -> None:
    """A database's collation may treat `salés` as `sales`."""
    policy = parse_policy('[[grants]]\nusers = ["u"]\nactions = ["all"]\ncatalogs = ["*"]\ndatabases = ["*"]')
    assert policy.decisions("u").allow(Action.READ, of("sales"))
    assert not policy.decisions("u").allow(Action.READ, of("sal\u00e9s"))


def test_principals_with_the_same_grants_are_one_class() -> None:
    policy = parse_policy(TEXT)
    assert policy.decisions("ann") is policy.decisions("bob")
    assert policy.decisions("x") is policy.decisions("y")
    tags = {policy.decisions(name).tag for name in ("ann", "eve", "root", "hs2", "x")}
    assert len(tags) == 5
    again = parse_policy(TEXT)
    assert tags.isdisjoint({again.decisions(name).tag for name in ("ann", "eve", "root", "hs2", "x")})
    assert policy.decisions_of(policy.decisions("eve").tag) is policy.decisions("eve")
    assert again.decisions_of(policy.decisions("eve").tag) is None


def test_invented_principals_take_no_memory() -> None:
    policy = parse_policy(TEXT)
    for number in range(MAX_PRINCIPALS + 50):
        policy.decisions(f"u{number}")
    assert len(policy._by_principal) == MAX_PRINCIPALS
    assert policy.decisions("ann").allow(Action.READ, of("sales", "orders"))


def test_groups_that_nothing_is_granted_to_take_no_memory() -> None:
    """A bearer token may name thousands, and each of a user's tokens others."""
    text = '[[grants]]\ntoken_groups = ["readers"]\nactions = ["read"]\ndatabases = ["sales"]\n'
    policy = parse_policy(text, frozenset({TOKEN_GROUPS}))
    for number in range(50):
        others = {f"department-{number}-{one}" for one in range(100)}
        assert policy.decisions("ann", of_token({*others, "readers"})).allow(Action.READ, of("sales", "orders"))
        assert not policy.decisions("ann", of_token(others)).has_any
    assert set(policy._by_principal) == {("ann", of_token({"readers"})), ("ann", frozenset())}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = ", "not TOML"),
        ("grant = []", "nothing is called grant"),
        ("[[grants]]\nactions = ['read']\ndatabases = ['*']", "needs users, groups or roles"),
        ("[[grants]]\nusers = ['u']\ndatabases = ['*']", "needs actions"),
        ("[[grants]]\nusers = ['u']\nactions = ['read']", "needs databases"),
        ("[[grants]]\nusers = ['u']\nactions = ['reed']\ndatabases = ['*']", "no action reed"),
        ("[[grants]]\nroles = ['r']\nactions = ['read']\ndatabases = ['*']", "no role r"),
        ("[[grants]]\ngroups = ['g']\nactions = ['read']\ndatabases = ['*']", "no group g"),
        ("[[grants]]\nusers = 'u'\nactions = ['read']\ndatabases = ['*']", "list of texts"),
        ("[[grants]]\nusers = ['u']\nactions = ['read']\ndatabase = ['*']", "nothing is called database"),
        ("[roles.r]\ngroups = ['g']", "no group g"),
        ("[groups]\ng = 'u'", "list of texts"),
        ("grants = 1", "write each as"),
    ],
)
def test_what_is_no_policy_is_refused(text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says.replace("[", r"\[")):
        parse_policy(text)


def test_a_changed_file_counts_and_a_bad_one_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TEXT)
    policy = PolicyFile(path)
    before = policy.decisions("ann")
    policy.reload_if_changed()
    assert before.policy is policy.policy and policy.outcomes == {"loaded": 1, "failed": 0}

    path.write_text("nonsense")
    policy.reload_if_changed()
    policy.reload_if_changed()
    assert before.policy is policy.policy
    assert policy.outcomes == {"loaded": 1, "failed": 1}, "tried once"
    assert str(path) in caplog.text
    with pytest.raises(PolicyError, match=str(path)):
        policy.reload()
    os.unlink(path)
    policy.reload_if_changed()
    assert before.policy is policy.policy, "a file that is away changes nothing"

    path.write_text(TEXT.replace('"ann", ', ""))
    policy.reload_if_changed()
    assert before.policy is not policy.policy
    assert not policy.decide("ann", Action.READ, of("sales", "orders"))
    assert policy.decide("bob", Action.READ, of("sales", "orders"))
