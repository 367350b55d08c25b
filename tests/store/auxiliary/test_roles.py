"""Roles: Hive's rules, and any sequence of grants compared with a model in dicts."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import select

from hms_cache.store.engine.work_units import run_write
from hms_cache.store.installation.init import ensure_default_roles
from hms_cache.store.schema import GLOBAL_PRIVS, ROLE_MAP
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    Role,
)
from tests.store.auxiliary.conftest import World

USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP


def ensure_roles(world: World) -> None:
    run_write(world.database, lambda transaction: ensure_default_roles(transaction.connection, now_s=5))


def test_default_roles_are_made_once(world: World) -> None:
    roles = world.stores.roles
    ensure_roles(world)
    ensure_roles(world)
    assert roles.get_role_names() == ["admin", "public"]
    with world.database.loading() as connection:
        found = connection.execute(select(GLOBAL_PRIVS.c.PRINCIPAL_NAME, GLOBAL_PRIVS.c.USER_PRIV)).all()
    assert [tuple(row) for row in found] == [("admin", "All")]


def test_named_users_are_admins(world: World) -> None:
    roles = world.stores.roles
    ensure_roles(world)
    for _ in range(2):
        roles.ensure_admins(["ada", "bob"])
    grants = roles.get_principals_in_role("admin")
    assert [(one.principalName, one.principalType, one.grantOption) for one in grants] == [
        ("ada", USER, True),
        ("bob", USER, True),
    ]


def test_names_that_differ_in_blanks_are_of_no_role(world: World) -> None:
    """MySQL would find them anyway."""
    roles = world.stores.roles
    ensure_roles(world)
    roles.create_role("r", "o")
    roles.grant_role("r", "bob", USER, "o", USER, grant_option=False)
    roles.drop_role("admin ")
    roles.drop_role("r ")
    assert roles.get_role_names() == ["admin", "public", "r"]
    with pytest.raises(NoSuchObjectException):
        roles.grant_role("r ", "ada", USER, "o", USER, grant_option=False)
    roles.revoke_role("r", "bob ", USER, grant_option=False)
    assert [one.principalName for one in roles.get_principals_in_role("r")] == ["bob"]


def test_a_grant_to_nobody_is_listed_with_the_others(world: World) -> None:
    """The protocol does not require the principal's name, and Hive stores and lists such a grant."""
    roles = world.stores.roles
    roles.create_role("r", "o")
    for principal, kind in (("u", USER), (None, USER), ("g", GROUP)):
        roles.grant_role("r", principal, kind, "o", USER, grant_option=False)  # type: ignore[arg-type]
    assert [one.principalName for one in roles.get_principals_in_role("r")] == [None, "g", "u"]


def test_reserved_roles(sqlite_world: World) -> None:
    roles = sqlite_world.stores.roles
    ensure_roles(sqlite_world)
    with pytest.raises(MetaException) as raised:
        roles.create_role("public", "o")
    assert raised.value.message == "public role implicitly exists. It can't be created."
    for name in ("admin", "public"):
        with pytest.raises(MetaException) as raised:
            roles.drop_role(name)
        assert raised.value.message == "public,admin roles can't be dropped."
    with pytest.raises(MetaException) as raised:
        roles.grant_role("public", "u", USER, "g", USER, grant_option=False)
    assert raised.value.message.startswith("No user can be added to public.")
    with pytest.raises(MetaException, match="public role can't be revoked"):
        roles.revoke_role("public", "u", USER)


def test_a_role_from_creation_to_drop(world: World) -> None:
    roles = world.stores.roles
    roles.create_role("r", "o")
    with pytest.raises(InvalidObjectException) as raised:
        roles.create_role("r", "other")
    assert raised.value.message == "Role r already exists."
    roles.grant_role("r", "u", USER, "g", USER, grant_option=True)
    with pytest.raises(InvalidObjectException, match="Principal u already has the role r"):
        roles.grant_role("r", "u", USER, "h", USER, grant_option=True)
    now_s = int(world.clock.epoch_s())
    assert roles.list_roles("u", USER) == [Role("r", now_s, "o"), Role("public", 0, "public")]
    assert roles.list_roles("u", GROUP) == []
    (grant,) = roles.get_principals_in_role("r")
    assert (grant.roleName, grant.principalName, grant.principalType, grant.grantOption) == ("r", "u", USER, True)
    assert (grant.grantTime, grant.grantorName, grant.grantorPrincipalType) == (now_s, "g", USER)
    assert [each.roleName for each in roles.get_role_grants_of_principal("u", USER)] == ["r", "public"]
    roles.revoke_role("r", "u", USER, grant_option=True)
    with pytest.raises(MetaException, match="User u does not have grant option with role r"):
        roles.revoke_role("r", "u", USER, grant_option=True)
    assert [each.grantOption for each in roles.get_principals_in_role("r")] == [False]
    roles.create_role("child", "o")
    roles.grant_role("child", "r", ROLE, "g", USER, grant_option=False)
    roles.drop_role("r")
    roles.drop_role("r")
    assert roles.get_role_names() == ["child"]
    with world.database.loading() as connection:
        assert connection.execute(select(ROLE_MAP)).all() == []


def test_missing_roles(sqlite_world: World) -> None:
    roles = sqlite_world.stores.roles
    roles.create_role("r", "o")
    for action in (
        lambda: roles.grant_role("nope", "u", USER, "g", USER, grant_option=False),
        lambda: roles.revoke_role("nope", "u", USER),
    ):
        with pytest.raises(NoSuchObjectException, match="nope role can not be found"):
            action()
    with pytest.raises(NoSuchObjectException, match="Role nope does not exist"):
        roles.grant_role("r", "nope", ROLE, "g", USER, grant_option=False)
    with pytest.raises(MetaException, match="Unknown principal type 9"):
        roles.grant_role("r", "u", 9, "g", USER, grant_option=False)
    roles.revoke_role("r", "u", USER)
    assert roles.get_principals_in_role("r") == []


@pytest.mark.parametrize("seed", range(3))
def test_random_grants_equal_a_model_and_never_form_a_cycle(world: World, seed: int) -> None:
    roles, choose = world.stores.roles, random.Random(seed)
    names = ["a", "b", "c", "d"]
    for name in names:
        roles.create_role(name, "o")
    model: set[tuple[str, str, int]] = set()

    def reaches(role: str, goal: str) -> bool:
        """Whether `goal` is the role or granted to it, directly or not."""
        return role == goal or any(reaches(up, goal) for up, down, kind in model if (down, kind) == (role, ROLE))

    for _ in range(30):
        name, kind = choose.choice(names), choose.choice([USER, ROLE, ROLE])
        principal = choose.choice(names) if kind == ROLE else choose.choice(["u", "v"])
        grant = (name, principal, kind)
        if choose.random() < 0.3:
            roles.revoke_role(*grant)
            model.discard(grant)
        elif grant in model or (kind == ROLE and reaches(name, principal)):
            with pytest.raises((InvalidObjectException, MetaException)):
                roles.grant_role(*grant, "g", USER, grant_option=False)
        else:
            roles.grant_role(*grant, "g", USER, grant_option=False)
            model.add(grant)
    for name in names:
        found = {(each.roleName, each.principalName, each.principalType) for each in roles.get_principals_in_role(name)}
        assert found == {each for each in model if each[0] == name}
