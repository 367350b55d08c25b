"""The rights that owners, grants and roles give a user, compared with a model in lists, on each kind of database."""

from __future__ import annotations

import random

import pytest

from hms_cache.authorization import standard_rights
from hms_cache.authorization.cached_groups import Principal
from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, Action, SecuredObject
from hms_cache.authorization.standard_rights import Rights, StandardDecisionSource
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.installation.init import ensure_default_roles
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, InvalidObjectException, MetaException, Table
from tests.store.auxiliary.conftest import World
from tests.store.auxiliary.test_privileges import EVERYWHERE, GROUP, ROLE, USER, HiveObjectRef, HiveObjectType, grant

ON = SecuredObject("hive", "d", "t")
USERS, ROLES = ("ann", "Ann", "bob", "o", "r1"), ("r1", "r2")
GROUPS = ("bob", "g", "G")
"""One has a user's name; two differ only for some collations."""

DATABASES, TABLES = ("d", "e"), ("t", "u")
NEW = "new"
"""No table."""

WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "ALL")
ACTIONS = {Action.READ: WORDS[:4], Action.WRITE: ("INSERT",), Action.UPDATE: ("UPDATE",), Action.DELETE: ("DELETE",)}


def reference(of: SecuredObject, column: bool) -> HiveObjectRef:
    if of == METASTORE:
        return EVERYWHERE
    kinds = HiveObjectType
    kind = kinds.DATABASE if of.table is None else kinds.COLUMN if column else kinds.TABLE
    return HiveObjectRef(kind, of.database, of.table, None, "a" if column else None, "hive")


def test_rights_as_a_model_sees_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    run_write(world.database, lambda transaction: ensure_default_roles(transaction.connection, now_s=5))
    roles, privileges = world.stores.roles, world.stores.privileges
    for name in ROLES:
        roles.create_role(name, "o")
    world.objects.writes.databases.create_database(
        Database(name="e", ownerName="r2", ownerType=ROLE, catalogName="hive")
    )
    world.create_table("t")
    world.create_table("u")
    made: Table = world.objects.reads.tables.get_table(TableName("hive", "d", "t"))
    for name, owner, kind in (("t", "g", GROUP), ("u", "r1", ROLE)):
        made.dbName, made.tableName, made.owner, made.ownerType, made.sd.location = "e", name, owner, kind, None
        world.objects.writes.tables.create_table(made)
    owners = {(None, "e"): ("r2", ROLE), (None, "d"): ("o", USER), ("t", "e"): ("g", GROUP), ("u", "e"): ("r1", ROLE)}
    owners |= {("t", "d"): ("o", USER), ("u", "d"): ("o", USER)}
    objects = [METASTORE] + [SecuredObject("hive", d, t) for d in DATABASES for t in (None, *TABLES)]
    grants: set[tuple[SecuredObject, bool, str, str, int]] = set()
    members: set[tuple[str, str, int]] = set()

    def roles_of(user: str, groups: frozenset[str]) -> set[str]:
        own = {(user, USER), *((group, GROUP) for group in groups)}
        found, before = {"public", *(r for r, who, kind in members if (who, kind) in own)}, set()
        while found != before:
            before = set(found)
            found |= {r for r, who, kind in members if kind == ROLE and who in found}
        return found

    def expected(user: str, groups: frozenset[str], action: Action, of: SecuredObject) -> bool:
        mine = {(user, USER)} | {(role, ROLE) for role in roles_of(user, groups)} | {(one, GROUP) for one in groups}
        if ("admin", ROLE) in mine:
            return True
        owns = owners.get((of.table, of.database or "")) in mine
        if of.table is None and action in (Action.ALTER, Action.DROP, Action.CREATE):
            every = all(owner in mine for (_, database), owner in owners.items() if database == of.database)
            return action is Action.DROP and every
        if action in (Action.ALTER, Action.CREATE) and of.table == NEW:
            return owners.get((None, of.database or "")) in mine
        if action in (Action.ALTER, Action.DROP, Action.CREATE):
            return owns
        around = {METASTORE, of._replace(table=None), of}
        for on, column, word, who, kind in grants:
            words = WORDS[:4] if word == "ALL" else (word,)
            counts = (who, kind) in mine and on in around and (action is Action.READ or not column)
            if counts and (column or set(words) & set(ACTIONS[action])):
                return True
        return owns

    for _ in range(40):
        if chance.random() < 0.3:
            role, who, kind = (
                chance.choice([*ROLES, "admin"]),
                chance.choice([*USERS, *ROLES, *GROUPS]),
                chance.choice([USER, ROLE, GROUP]),
            )
            try:
                if (role, who, kind) in members:
                    roles.revoke_role(role, who, kind)
                    members.discard((role, who, kind))
                elif kind != ROLE or who in ROLES:
                    roles.grant_role(role, who, kind, "o", USER, grant_option=False)
                    members.add((role, who, kind))
            except (InvalidObjectException, MetaException):
                pass  # a cycle, or a user and a role of one name
        else:
            of = chance.choice(objects)
            column = of.table is not None and chance.random() < 0.3
            kind = chance.choice([USER, ROLE, GROUP])
            who = chance.choice([*ROLES, "public"] if kind == ROLE else GROUPS if kind == GROUP else USERS)
            one = (of, column, chance.choice(WORDS), who, kind)
            change = grant(reference(of, column), one[2], who, kind)
            if one in grants:
                privileges.revoke_privileges([change])
                grants.remove(one)
            else:
                privileges.grant_privileges([change])
                grants.add(one)
        user = chance.choice(USERS)
        of_token, of_directory = (frozenset(chance.sample(GROUPS, chance.randint(0, 1))) for _ in range(2))
        groups = of_token | of_directory
        judge = StandardDecisionSource(world.stores.rights, Principal(user, of_token, {user: of_directory}.__getitem__))
        monkeypatch.setattr(standard_rights, "MAX_READ_AT_FIRST", chance.choice([1, 2, 300]))
        monkeypatch.setattr(standard_rights, "MAX_SINGLE_TABLES", chance.choice([1, 2]))
        if (way := chance.randrange(3)) < 2:
            judge.prepare([(Action.READ if way else None, one) for one in objects])
        for of in (*objects[1:], *(SecuredObject("hive", d, NEW) for d in DATABASES)):
            for action in (*ACTIONS, Action.ALTER, Action.DROP, Action.CREATE):
                allowed = judge.allow(action, of)
                assert allowed == expected(user, groups, action, of), (user, groups, action, of, grants, members)
            seen = [one for one in objects[1:] if one[:2] == of[:2] and expected(user, groups, Action.READ, one)]
            if of.table is None:
                assert judge.show(of) == bool(seen), (user, groups, of, grants, members)


def test_names_that_a_collation_takes_for_others_have_no_rights(world: World) -> None:
    world.create_table("t")
    world.stores.privileges.grant_privileges([grant(reference(ON, False), "SELECT", "g", GROUP)])
    run_write(world.database, lambda transaction: ensure_default_roles(transaction.connection, now_s=5))
    world.stores.roles.create_role("r", "o")
    world.stores.roles.grant_role("r", "h", GROUP, "o", USER, grant_option=False)
    on = ON
    assert StandardDecisionSource(world.stores.rights, Principal("o")).allow(Action.DROP, on)
    for user in ("O", "o ", "ó"):
        assert not StandardDecisionSource(world.stores.rights, Principal(user)).allow(Action.READ, on), user
    for group in ("G", "g ", "ǵ"):
        judge = StandardDecisionSource(world.stores.rights, Principal("x", frozenset({group})))
        assert not judge.allow(Action.READ, on), group
    for group in ("H", "h ", "ĥ"):
        assert world.stores.rights.rights("x", on, frozenset({group})).roles == {"public"}, group
    assert world.stores.rights.rights("x", on, frozenset({"h"})).roles == {"public", "r"}
    assert StandardDecisionSource(world.stores.rights, Principal("x", frozenset({"g"}))).allow(Action.READ, on)
    for table in ("T", "t ", "ť"):
        assert not StandardDecisionSource(world.stores.rights, Principal("o")).allow(
            Action.READ, on._replace(table=table)
        ), table


def test_no_more_rights_on_tables_are_read_than_asked_for(world: World) -> None:
    for number in range(7):
        world.create_table(f"t{number}")
    on = ON._replace(table=None)
    some = world.stores.rights.rights("o", on, at_most=3)
    assert (len(some.rights), some.is_whole) == (4, False)
    every = world.stores.rights.rights("o", on, at_most=8)
    assert (len(every.rights), every.is_whole) == (8, True)
    assert every.rights == world.stores.rights.rights("o", on).rights
    assert {right.of[:2] for right in world.stores.rights.rights_by_database("o").rights} == {on[:2]}
    assert len(world.stores.rights.rights_by_database("o").rights) == 2


class CountingSource:
    """Nobody has any rights."""

    def __init__(self) -> None:
        self.requested = 0

    def rights(
        self, user: str, within: SecuredObject, groups: frozenset[str] = NO_GROUPS, *, at_most: int | None = None
    ) -> Rights:
        self.requested += 1
        return Rights(frozenset({"public"}), frozenset(), frozenset())

    def rights_on_tables(
        self, user: str, database: SecuredObject, names: frozenset[str], groups: frozenset[str] = NO_GROUPS
    ) -> Rights:
        return self.rights(user, database, groups)

    def rights_by_database(self, user: str, groups: frozenset[str] = NO_GROUPS) -> Rights:
        return self.rights(user, METASTORE, groups)

    def has_tables_of_others(self, user: str, database: SecuredObject, groups: frozenset[str] = NO_GROUPS) -> bool:
        return False


def test_what_is_remembered_of_a_user_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """While cached decisions are valid, which may be for ever, a client may request any number of missing names."""
    monkeypatch.setattr(standard_rights, "MAX_PLACES", 10)
    source = CountingSource()
    judge = StandardDecisionSource(source, Principal("eve"))
    for number in range(95):
        assert not judge.allow(Action.READ, SecuredObject("hive", "d", f"none{number}"))
        assert len(judge._read) <= 10
    assert not judge.allow(Action.READ, SecuredObject("hive", "d", "none94"))
    assert source.requested == 95
