"""Privileges on every kind of object: Hive's rules, and any sequence of grants against a model in dicts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.installation.init import ensure_default_roles
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    PrivilegeGrantInfo,
)
from tests.store.auxiliary.conftest import World

USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP

ANYTHING = HiveObjectRef()
EVERYWHERE = HiveObjectRef(HiveObjectType.GLOBAL)
ON_DATABASE = HiveObjectRef(HiveObjectType.DATABASE, "d")
ON_TABLE = HiveObjectRef(HiveObjectType.TABLE, "d", "t")
ON_PARTITION = HiveObjectRef(HiveObjectType.PARTITION, "d", "t", ["x/y"])
ON_COLUMN = HiveObjectRef(HiveObjectType.COLUMN, "d", "t", None, "a")
ON_PARTITION_COLUMN = HiveObjectRef(HiveObjectType.COLUMN, "d", "t", ["x/y"], "a")
OBJECTS = [EVERYWHERE, ON_DATABASE, ON_TABLE, ON_PARTITION, ON_COLUMN, ON_PARTITION_COLUMN]


def grant(
    reference: HiveObjectRef, privilege: str, principal: str = "u", kind: int = USER, **fields: Any
) -> HiveObjectPrivilege:
    info = PrivilegeGrantInfo(privilege, 1, fields.pop("grantor", "g"), USER, fields.pop("option", False))
    return HiveObjectPrivilege(reference, principal, kind, info, fields.pop("authorizer", "SQL"))


def texts(grants: list[HiveObjectPrivilege]) -> list[tuple[Any, ...]]:
    return [
        (each.hiveObject.objectType, each.hiveObject.partValues, each.hiveObject.columnName, each.grantInfo.privilege)
        for each in grants
    ]


@pytest.fixture
def granting(world: World) -> World:
    world.create_table("t", "p")
    world.add_partition("t", "x/y")
    return world


@pytest.fixture
def granting_on_sqlite(sqlite_world: World) -> World:
    sqlite_world.create_table("t", "p")
    sqlite_world.add_partition("t", "x/y")
    return sqlite_world


def test_grants_on_every_level(granting: World) -> None:
    privileges = granting.stores.privileges
    privileges.grant_privileges([grant(each, "SELECT,INSERT") for each in reversed(OBJECTS)])
    kinds = HiveObjectType
    expected = [
        (kind, values, column, privilege)
        for kind, values, column in (
            (kinds.GLOBAL, None, None),
            (kinds.DATABASE, None, None),
            (kinds.TABLE, None, None),
            (kinds.PARTITION, ["x/y"], None),
            (kinds.COLUMN, None, "a"),
            (kinds.COLUMN, ["x/y"], "a"),
        )
        for privilege in ("INSERT", "SELECT")
    ]
    assert texts(privileges.list_privileges(None, None, ANYTHING)) == expected
    assert texts(privileges.list_privileges("u", USER, ANYTHING)) == expected
    assert privileges.list_privileges("u", GROUP, ANYTHING) == []
    for each in OBJECTS:
        found = privileges.list_privileges("u", USER, each)
        assert [one.grantInfo.privilege for one in found] == ["INSERT", "SELECT"], each
        assert found == privileges.list_privileges(None, None, each)
        assert found[0].grantInfo.createTime == int(granting.clock.epoch_s())
        assert found[0].hiveObject.dbName == each.dbName
        assert found[0].hiveObject.objectName == each.objectName
        granted = privileges.get_privilege_set(each, "u", [])
        assert [info.privilege for info in granted.userPrivileges["u"]] == ["INSERT", "SELECT"]
    privileges.revoke_privileges([grant(each, "INSERT") for each in OBJECTS])
    left = [entry for entry in expected if entry[3] == "SELECT"]
    assert texts(privileges.list_privileges(None, None, ANYTHING)) == left
    assert texts(privileges.list_privileges(None, None, HiveObjectRef(HiveObjectType.TABLE))) == left[2:3]
    granting.objects.writes.databases.drop_database(DatabaseName("hive", "d"), delete_data=False, cascade=True)
    assert texts(privileges.list_privileges(None, None, ANYTHING)) == left[:1], "grants end with their objects"


@pytest.mark.parametrize(
    ("reference", "place", "missing"),
    [
        (EVERYWHERE, "", "No user grant found for privileges DROP"),
        (ON_DATABASE, " on database d", "No database grant found for privileges DROP on database d"),
        (ON_TABLE, " on table [d,t]", "No grant (DROP) found  on table t, database is d"),
        (
            ON_PARTITION,
            " on partition [d,t,p=x%2Fy]",
            "No grant (DROP) found  on table t, partition is p=x%2Fy, database is d",
        ),
        (ON_COLUMN, " on column a [d,t]", "No grant (DROP) found  on table t, column name = a, database is d"),
        (
            ON_PARTITION_COLUMN,
            " on column a [d,t,p=x%2Fy]",
            "No grant (DROP) found  on table t, partition is p=x%2Fy, column name = a, database is d",
        ),
    ],
)
def test_refusals(granting_on_sqlite: World, reference: HiveObjectRef, place: str, missing: str) -> None:
    privileges = granting_on_sqlite.stores.privileges
    privileges.grant_privileges([grant(reference, "SELECT", option=True)])
    with pytest.raises(InvalidObjectException) as raised:
        privileges.grant_privileges([grant(EVERYWHERE, "ALTER"), grant(reference, "SELECT", grantor="G")])
    assert raised.value.message == f"SELECT is already granted{place} by G"
    with pytest.raises(InvalidObjectException) as raised:
        privileges.revoke_privileges([grant(reference, "SELECT,DROP")])
    assert raised.value.message == missing
    assert len(privileges.list_privileges(None, None, ANYTHING)) == 1, "all of a request or nothing"
    privileges.grant_privileges([grant(reference, "SELECT", grantor="other")])
    privileges.revoke_privileges([grant(reference, "SELECT")], grant_option=True)
    with pytest.raises(MetaException, match="User u does not have grant option with privilege SELECT"):
        privileges.revoke_privileges([grant(reference, "SELECT")], grant_option=True)


def test_objects_that_do_not_exist(granting_on_sqlite: World) -> None:
    privileges = granting_on_sqlite.stores.privileges
    for reference in (
        HiveObjectRef(HiveObjectType.DATABASE, "nope"),
        HiveObjectRef(HiveObjectType.TABLE, "d", "nope"),
        HiveObjectRef(HiveObjectType.PARTITION, "d", "t", ["nope"]),
        HiveObjectRef(HiveObjectType.DATACONNECTOR, None, "nope"),
    ):
        assert privileges.list_privileges(None, None, reference) == []
        assert privileges.get_privilege_set(reference, "u", []).userPrivileges == {"u": []}
        with pytest.raises(NoSuchObjectException, match=r"There is no database hive\.nope|does not exist"):
            privileges.grant_privileges([grant(reference, "SELECT")])
    with pytest.raises(NoSuchObjectException, match="Role nope does not exist"):
        privileges.grant_privileges([grant(ON_TABLE, "SELECT", "nope", ROLE)])
    with pytest.raises(MetaException, match="Invalid partition key & values"):
        privileges.list_privileges(None, None, HiveObjectRef(HiveObjectType.PARTITION, "d", "t", ["a", "b"]))


def test_privileges_reach_a_user_through_groups_and_nested_roles(granting: World) -> None:
    privileges, roles = granting.stores.privileges, granting.stores.roles
    run_write(granting.database, lambda transaction: ensure_default_roles(transaction.connection, now_s=5))
    for name in ("outer", "inner", "other"):
        roles.create_role(name, "o")
    roles.grant_role("outer", "inner", ROLE, "g", USER, grant_option=False)
    roles.grant_role("inner", "team", GROUP, "g", USER, grant_option=False)
    privileges.grant_privileges(
        [
            grant(ON_TABLE, "SELECT", "outer", ROLE),
            grant(ON_TABLE, "SELECT", "other", ROLE),
            grant(ON_TABLE, "INSERT", "public", ROLE),
            grant(ON_TABLE, "DELETE", "team", GROUP),
            grant(EVERYWHERE, "CREATE", "team", GROUP),
        ]
    )

    def names(found: dict[str, list[PrivilegeGrantInfo]] | None) -> dict[str, list[str]]:
        return {name: [info.privilege for info in infos] for name, infos in (found or {}).items()}

    granted = privileges.get_privilege_set(ON_TABLE, "u", ["team"])
    assert names(granted.userPrivileges) == {"u": []}
    assert names(granted.groupPrivileges) == {"team": ["DELETE"]}
    assert names(granted.rolePrivileges) == {"outer": ["SELECT"], "inner": [], "public": ["INSERT"]}
    everywhere = privileges.get_privilege_set(EVERYWHERE, "u", ["team"])
    assert (everywhere.userPrivileges, everywhere.rolePrivileges) == (None, None)
    assert names(everywhere.groupPrivileges) == {"team": ["CREATE"]}
    roles.drop_role("outer")
    assert "outer" not in {each.principalName for each in privileges.list_privileges(None, None, ON_TABLE)}


def test_refresh_replaces_what_one_authorizer_granted(granting: World) -> None:
    privileges = granting.stores.privileges
    privileges.grant_privileges([grant(ON_TABLE, "SELECT,DELETE"), grant(ON_TABLE, "SELECT", authorizer="Ranger")])
    before_s = int(granting.clock.epoch_s())
    granting.clock.advance(100)
    privileges.refresh_privileges(ON_TABLE, "SQL", [grant(ON_TABLE, "SELECT"), grant(ON_TABLE, "INSERT")])
    found = privileges.list_privileges(None, None, ON_TABLE)
    assert [(each.grantInfo.privilege, each.authorizer, each.grantInfo.createTime - before_s) for each in found] == [
        ("INSERT", "SQL", 100),
        ("SELECT", "Ranger", 0),
        ("SELECT", "SQL", 0),
    ]
    with pytest.raises(MetaException, match="Unexpected object type PARTITION"):
        privileges.refresh_privileges(ON_PARTITION, "SQL", [])
    with pytest.raises(MetaException, match="columnName must be null"):
        privileges.refresh_privileges(ON_COLUMN, "SQL", [])
    columns = HiveObjectRef(HiveObjectType.COLUMN, "d", "t")
    privileges.refresh_privileges(columns, "SQL", [grant(ON_COLUMN, "SELECT")])
    privileges.refresh_privileges(
        columns, "SQL", [grant(HiveObjectRef(HiveObjectType.COLUMN, "d", "t", None, "B"), "SELECT")]
    )
    assert [each.hiveObject.columnName for each in privileges.list_privileges(None, None, columns)] == ["b"]


@pytest.mark.parametrize("reference", [ON_DATABASE, ON_TABLE, HiveObjectRef(HiveObjectType.COLUMN, "d", "t")])
def test_refresh_without_an_authorizer_replaces_what_all_granted(granting: World, reference: HiveObjectRef) -> None:
    privileges = granting.stores.privileges
    on = ON_COLUMN if reference.objectType == HiveObjectType.COLUMN else reference
    both = [grant(on, "SELECT,DELETE"), grant(on, "SELECT", authorizer="Ranger")]
    privileges.grant_privileges(both)
    privileges.refresh_privileges(reference, None, [grant(on, "SELECT"), grant(on, "INSERT", authorizer="Ranger")])
    found = {(each.grantInfo.privilege, each.authorizer) for each in privileges.list_privileges(None, None, on)}
    assert found == {("SELECT", "SQL"), ("INSERT", "Ranger")}
    privileges.refresh_privileges(reference, None, [])
    assert privileges.list_privileges(None, None, on) == []


@pytest.mark.parametrize("seed", range(3))
def test_random_grants_equal_a_model(granting: World, seed: int) -> None:
    privileges, choose = granting.stores.privileges, random.Random(seed)
    model: set[tuple[int, str, str, str]] = set()
    for _ in range(40):
        index = choose.randrange(len(OBJECTS))
        principal, privilege, grantor = choose.choice("uv"), choose.choice(["SELECT", "DROP"]), choose.choice("gh")
        wanted = grant(OBJECTS[index], privilege, principal, grantor=grantor)
        entry = (index, principal, privilege, grantor)
        same = sorted(each for each in model if each[:3] == entry[:3])
        if choose.random() < 0.6:
            if entry in model:
                with pytest.raises(InvalidObjectException):
                    privileges.grant_privileges([wanted])
            else:
                privileges.grant_privileges([wanted])
                model.add(entry)
        elif same:
            privileges.revoke_privileges([wanted])
            left = {
                each.grantInfo.grantor
                for each in privileges.list_privileges(principal, USER, OBJECTS[index])
                if each.grantInfo.privilege == privilege
            }
            assert len(left) == len(same) - 1
            model -= {each for each in same if each[3] not in left}
        else:
            with pytest.raises(InvalidObjectException):
                privileges.revoke_privileges([wanted])
    for index, reference in enumerate(OBJECTS):
        found = {
            (index, each.principalName, each.grantInfo.privilege, each.grantInfo.grantor)
            for each in privileges.list_privileges(None, None, reference)
        }
        assert found == {entry for entry in model if entry[0] == index}
