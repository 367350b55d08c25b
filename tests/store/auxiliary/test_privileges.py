"""Privileges on each kind of object: Hive's rules, and any sequence of grants compared with a model in dicts."""

from __future__ import annotations

import random
from functools import partial
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


ON_COLUMNS = HiveObjectRef(HiveObjectType.COLUMN, "d", "t")


@pytest.mark.parametrize("kind", [HiveObjectType.TABLE, HiveObjectType.COLUMN])
def test_refresh_passes_over_a_table_that_is_gone(granting: World, kind: int) -> None:
    """HiveServer2 lists the tables of a database and refreshes one after the other: the tables after one that was
    dropped meanwhile must get their privileges, too."""
    privileges = granting.stores.privileges
    for name, database in (("gone", "d"), ("t", "gone")):
        on = HiveObjectRef(kind, database, name, None, "a" if kind == HiveObjectType.COLUMN else None)
        privileges.refresh_privileges(HiveObjectRef(kind, database, name), "SQL", [grant(on, "SELECT")])
    assert privileges.list_privileges(None, None, ANYTHING) == []
    for missing in (
        HiveObjectRef(HiveObjectType.DATABASE, "gone"),
        HiveObjectRef(HiveObjectType.DATACONNECTOR, "gone"),
    ):
        privileges.refresh_privileges(missing, "SQL", [])
        with pytest.raises(NoSuchObjectException):
            privileges.refresh_privileges(missing, "SQL", [grant(missing, "SELECT")])


@pytest.mark.parametrize("stays", ["first", "second"])
@pytest.mark.parametrize("reference", [ON_DATABASE, ON_TABLE, ON_COLUMNS])
def test_refresh_takes_away_the_very_grants_that_are_not_wanted(
    granting: World, reference: HiveObjectRef, stays: str
) -> None:
    """Of one privilege granted by two grantors: not the older one, whichever that is."""
    privileges = granting.stores.privileges
    on = ON_COLUMN if reference.objectType == HiveObjectType.COLUMN else reference
    for grantor in ("first", "second"):
        privileges.grant_privileges([grant(on, "SELECT", grantor=grantor)])
    privileges.refresh_privileges(reference, "SQL", [grant(on, "SELECT", grantor=stays)])
    assert [each.grantInfo.grantor for each in privileges.list_privileges(None, None, on)] == [stays]


@pytest.mark.parametrize("has_option", [True, False])
@pytest.mark.parametrize("reference", [ON_DATABASE, ON_TABLE, ON_COLUMNS])
def test_refresh_changes_the_grant_option_alone(granting: World, reference: HiveObjectRef, has_option: bool) -> None:
    """As in Hive, where one is removed and the other added; both at once are one too many, and change nothing."""
    privileges = granting.stores.privileges
    on = ON_COLUMN if reference.objectType == HiveObjectType.COLUMN else reference

    def options() -> list[bool]:
        return [each.grantInfo.grantOption for each in privileges.list_privileges(None, None, on)]

    one, other = (grant(on, "SELECT", option=option) for option in (has_option, not has_option))
    privileges.grant_privileges([one])
    for both in ([one, other], [other, one]):
        with pytest.raises(InvalidObjectException, match="already granted"):
            privileges.refresh_privileges(reference, "SQL", both)
        assert options() == [has_option]
    privileges.refresh_privileges(reference, "SQL", [other])
    assert options() == [not has_option]


def test_statements_do_not_depend_on_the_number_of_grants(granting: World) -> None:
    """A server with Ranger sends the privileges on each column of a table in one request."""
    privileges = granting.stores.privileges
    granting.stores.roles.create_role("r", "o")
    blocks = granting.database.id_blocks
    counts = []
    for count in (3, 3, 700):  # what is read once for all is read by the first
        if blocks is not None:
            blocks.give_back(blocks.reserve({"MTableColumnPrivilege": 8 * 3 * count}))
        wanted = [
            grant(
                HiveObjectRef(HiveObjectType.COLUMN, "d", "t", None, f"c{number}"),
                "1 0 0",
                principal,
                kind,
                option=True,
            )
            for number in range(count)
            for principal, kind in (("u", USER), ("g", GROUP), ("r", ROLE))
        ]

        def refresh(some: list[HiveObjectPrivilege]) -> None:
            privileges.refresh_privileges(ON_COLUMNS, "SQL", some)

        requested = []
        for step, some, left in (
            (refresh, wanted, wanted),
            (refresh, wanted[::2], wanted[::2]),
            (refresh, wanted, wanted),
            (refresh, [], []),
            (privileges.grant_privileges, wanted, wanted),
            (partial(privileges.revoke_privileges, grant_option=True), wanted[1:], wanted),
            (privileges.revoke_privileges, wanted[1:], wanted[:1]),
            (privileges.revoke_privileges, wanted[:1], []),
        ):
            before = granting.database.statements.value()
            step(some)
            requested.append(granting.database.statements.value() - before)
            found = privileges.list_privileges(None, None, ON_COLUMNS)
            assert sorted((one.hiveObject.columnName, one.principalName) for one in found) == sorted(
                (one.hiveObject.columnName, one.principalName) for one in left
            )
        counts.append(requested)
    assert counts[1] == counts[2], counts


@pytest.mark.parametrize("authorizer", [None, "SQL"])
@pytest.mark.parametrize("on", OBJECTS)
def test_a_revoke_that_names_nobody_takes_nothing(granting: World, on: HiveObjectRef, authorizer: str | None) -> None:
    privileges = granting.stores.privileges
    privileges.grant_privileges([grant(on, "SELECT", option=True)])
    before = privileges.list_privileges(None, None, ANYTHING)
    nobody = grant(on, "SELECT", authorizer=authorizer)
    nobody.principalName = None
    for option in (False, True):
        with pytest.raises(InvalidObjectException):
            privileges.revoke_privileges([nobody], grant_option=option)
    assert privileges.list_privileges(None, None, ANYTHING) == before


def test_several_grants_of_one_privilege_are_revoked_from_the_oldest_on(granting: World) -> None:
    """One for each time that it is named, of the named authorizer, or of any."""
    privileges = granting.stores.privileges
    for number in range(6):
        by = {"grantor": f"g{number}", "authorizer": "Ranger" if number in (1, 4) else "SQL", "option": number != 2}
        privileges.grant_privileges([grant(ON_TABLE, "SELECT", **by)])

    def left() -> list[str]:
        return [one.grantInfo.grantor for one in privileges.list_privileges(None, None, ON_TABLE)]

    privileges.revoke_privileges([grant(ON_TABLE, "SELECT", authorizer="Ranger"), grant(ON_TABLE, "SELECT")])
    assert sorted(left()) == ["g2", "g3", "g4", "g5"]
    privileges.revoke_privileges([grant(ON_TABLE, "SELECT,SELECT", authorizer=None)])
    assert sorted(left()) == ["g4", "g5"]
    with pytest.raises(InvalidObjectException):
        privileges.revoke_privileges([grant(ON_TABLE, "SELECT", authorizer=None)] * 3)
    assert sorted(left()) == ["g4", "g5"], "all or nothing"
    with pytest.raises(MetaException, match="does not have grant option"):
        privileges.revoke_privileges([grant(ON_TABLE, "SELECT", authorizer=None)] * 2, grant_option=True)
    privileges.revoke_privileges([grant(ON_TABLE, "SELECT", authorizer=None)], grant_option=True)
    found = privileges.list_privileges(None, None, ON_TABLE)
    assert {one.grantInfo.grantor: one.grantInfo.grantOption for one in found} == {"g4": False, "g5": True}


def test_grants_of_one_request_are_compared_with_each_other(granting: World) -> None:
    """Whatever the spelling of objects and grantors: all are refused if one exists."""
    privileges = granting.stores.privileges
    again = {
        "the same": grant(ON_TABLE, "SELECT"),
        "object": grant(HiveObjectRef(HiveObjectType.TABLE, " D", "T"), "SELECT"),
        "grantor": grant(ON_TABLE, "SELECT", grantor="G"),
        "several": grant(ON_TABLE, "DROP,SELECT"),
    }
    for what, other in again.items():
        with pytest.raises(InvalidObjectException, match="SELECT is already granted on table"):
            privileges.grant_privileges([grant(ON_DATABASE, "DROP"), grant(ON_TABLE, "SELECT"), other])
        assert privileges.list_privileges(None, None, ANYTHING) == [], what
    others = [
        grant(ON_TABLE, "SELECT"),
        grant(ON_TABLE, "SELECT", "v"),
        grant(ON_TABLE, "SELECT", kind=GROUP),
        grant(ON_TABLE, "SELECT", grantor="h"),
        grant(ON_TABLE, "SELECT", authorizer="Ranger"),
        grant(ON_TABLE, "DROP"),
        *(grant(each, "SELECT") for each in OBJECTS if each is not ON_TABLE),
    ]
    privileges.grant_privileges(others)
    assert len(privileges.list_privileges(None, None, ANYTHING)) == len(others)


@pytest.mark.parametrize(
    ("text", "names"), [("a,b", ["a", "b"]), ("a,", ["a"]), (",", []), (",a,,", ["", "a"]), ("", [""])]
)
def test_privileges_that_one_text_names(granting: World, text: str, names: list[str]) -> None:
    """As Java splits it: nothing follows the last comma."""
    privileges = granting.stores.privileges
    privileges.grant_privileges([grant(ON_TABLE, text)])
    assert [one.grantInfo.privilege for one in privileges.list_privileges(None, None, ON_TABLE)] == names
    privileges.revoke_privileges([grant(ON_TABLE, text)])
    assert privileges.list_privileges(None, None, ON_TABLE) == []


@pytest.mark.parametrize("on", [EVERYWHERE, ON_DATABASE, ON_TABLE])
def test_similar_principals_of_one_request(granting: World, on: HiveObjectRef) -> None:
    """Both get the grant, or the request is refused if the database treats their names as equal."""
    privileges = granting.stores.privileges
    names = {"bob", "bob "}
    try:
        privileges.grant_privileges([grant(on, "SELECT", name) for name in sorted(names)])
    except InvalidObjectException as error:
        assert granting.database.dialect == "mysql"
        assert "SELECT is already granted" in error.message
        names = set()
    assert {one.principalName for one in privileges.list_privileges(None, None, on)} == names


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
