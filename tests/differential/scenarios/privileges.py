"""Roles, grants and the resulting rights."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, partition, table
from tests.differential.reasons import ALL_OF_COLUMN, ECHO, NO_SUCH_OBJECT

USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP


def at(kind: int, name: str | None = "t", database_name: str | None = "d", **fields: Any) -> HiveObjectRef:
    return HiveObjectRef(objectType=kind, dbName=database_name, objectName=name, partValues=[], **fields)


TABLE = at(HiveObjectType.TABLE)
DATABASE = at(HiveObjectType.DATABASE, None)
GLOBAL = at(HiveObjectType.GLOBAL, None, None)
COLUMN = HiveObjectRef(HiveObjectType.COLUMN, "d", "t", None, "a")
PARTITION = HiveObjectRef(HiveObjectType.PARTITION, "d", "p", ["1"])


def bag(
    where: HiveObjectRef, privilege: str = "SELECT", who: str = "u", kind: int = USER, **fields: Any
) -> PrivilegeBag:
    info = PrivilegeGrantInfo(
        **{"privilege": privilege, "createTime": 1, "grantor": "g", "grantorType": USER, "grantOption": False, **fields}
    )
    return PrivilegeBag([HiveObjectPrivilege(where, who, kind, info, "SQL")])


def grant(*arguments: Any, **fields: Any) -> Call:
    return call("grant_privileges", bag(*arguments, **fields))


def listed(who: str | None, kind: int | None, where: HiveObjectRef | None) -> Call:
    return call("list_privileges", who, kind, where, is_ordered=False)


PRIVILEGES = Scenario.of(
    "privileges",
    call("create_database", database("d")),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string",), parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"})),
    call("add_partition", partition("1")),
    [grant(where) for where in (TABLE, DATABASE, GLOBAL, COLUMN, PARTITION)],
    grant(TABLE),
    grant(TABLE, "INSERT,DELETE", "u", grantOption=True),
    grant(TABLE, "SELECT", "grp", GROUP),
    call("grant_privileges", bag(at(HiveObjectType.TABLE, "none")), differs=NO_SUCH_OBJECT),
    grant(at(HiveObjectType.DATABASE, None, "none")),
    grant(TABLE, "SELECT", "no_role", ROLE),
    [listed("u", USER, where) for where in (TABLE, DATABASE, GLOBAL, COLUMN, PARTITION, None)],
    listed("none", USER, TABLE),
    listed(None, None, TABLE),
    listed("u", USER, at(HiveObjectType.TABLE, "none")),
    [
        call("get_privilege_set", where, "u", ["grp"], is_ordered=False)
        for where in (TABLE, DATABASE, COLUMN, PARTITION)
    ],
    call("get_privilege_set", GLOBAL, "u", [], is_ordered=False),
    call("get_privilege_set", TABLE, "none", []),
    call("get_privilege_set", TABLE, None, None),
    call("revoke_privileges", bag(TABLE)),
    call("revoke_privileges", bag(TABLE)),
    call("revoke_privileges", bag(TABLE, "ALTER")),
    listed("u", USER, TABLE),
    call("grant_revoke_privileges", GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag(TABLE, "ALTER"))),
    call(
        "grant_revoke_privileges",
        GrantRevokePrivilegeRequest(GrantRevokeType.REVOKE, bag(TABLE, "DELETE"), revokeGrantOption=True),
    ),
    listed("u", USER, TABLE),
    call("grant_revoke_privileges", GrantRevokePrivilegeRequest(GrantRevokeType.REVOKE, bag(TABLE, "ALTER"))),
    listed("u", USER, TABLE),
    call("refresh_privileges", TABLE, "SQL", GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag(TABLE, "UPDATE"))),
    listed("u", USER, TABLE),
)


UPPER = HiveObjectRef(HiveObjectType.TABLE, "D", "T")
UPPER_COLUMN = HiveObjectRef(HiveObjectType.COLUMN, "D", "T", None, "A")
OF_PARTITION = HiveObjectRef(HiveObjectType.COLUMN, "d", "p", ["1"], "a")
WITHOUT_VALUES = [HiveObjectRef(HiveObjectType.PARTITION, "d", "p", values) for values in (None, [], [""])]
NO_PARTITION = HiveObjectRef(HiveObjectType.PARTITION, "d", "p", ["9"])
ANYONES = ((None, None), (None, USER))

PLACES = Scenario.of(
    "places of privileges",
    call("create_database", database("d")),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string",), parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"})),
    call("add_partition", partition("1")),
    [grant(where) for where in (TABLE, COLUMN, PARTITION, OF_PARTITION)],
    [grant(where, "INSERT", "grp", GROUP) for where in (TABLE, COLUMN, PARTITION, OF_PARTITION)],
    call("grant_privileges", bag(NO_PARTITION), differs=NO_SUCH_OBJECT),
    call(
        "grant_privileges",
        bag(HiveObjectRef(HiveObjectType.COLUMN, "d", "p", ["9"], "a")),
        differs=NO_SUCH_OBJECT,
    ),
    grant(HiveObjectRef(HiveObjectType.COLUMN, "d", "t", None, "none"), who="v"),
    [
        call("get_privilege_set", where, who, groups, is_ordered=False)
        for where in (TABLE, GLOBAL, PARTITION, OF_PARTITION, NO_PARTITION, *WITHOUT_VALUES)
        for who, groups in (("u", ["grp", "none"]), ("u", []), (None, ["grp"]), ("", [""]), ("none", ["none"]))
    ],
    [listed(who, kind, where) for where in (TABLE, COLUMN, PARTITION) for who, kind in ANYONES],
    [listed("u", kind, TABLE) for kind in (None, 0, 99)],
    [call("list_privileges", *one, OF_PARTITION, is_ordered=False, differs=ALL_OF_COLUMN) for one in ANYONES],
    [call("list_privileges", *one, UPPER_COLUMN, is_ordered=False, differs=ALL_OF_COLUMN) for one in ANYONES],
    [call("list_privileges", "u", USER, where, is_ordered=False, differs=ECHO) for where in (UPPER, UPPER_COLUMN)],
    [listed(None, None, where) for where in (UPPER, NO_PARTITION, GLOBAL, None)],
)


def role_grant(kind: int, who: str = "u", role: str = "r", option: bool = False, principal: int = USER) -> Call:
    request = GrantRevokeRoleRequest(kind, role, who, principal, "g", USER, option)
    return call("grant_revoke_role", request)


ROLES = Scenario.of(
    "roles",
    call("get_role_names", is_ordered=False),
    call("create_role", Role("r", 1, "owner")),
    call("create_role", Role("r", 1, "owner")),
    call("create_role", Role("R2", 1, None)),
    call("create_role", Role("", 1, None)),
    call("create_role", Role("admin", 1, None)),
    call("create_role", Role("public", 1, None)),
    call("get_role_names", is_ordered=False),
    call("grant_role", "r", "u", USER, "g", USER, True),
    call("grant_role", "r", "u", USER, "g", USER, True),
    call("grant_role", "none", "u", USER, "g", USER, True),
    call("grant_role", "public", "u", USER, "g", USER, True),
    call("grant_role", "r", "r2", ROLE, "g", USER, False),
    call("grant_role", "r2", "r", ROLE, "g", USER, False),
    call("grant_role", "r", "none", ROLE, "g", USER, False),
    call("list_roles", "u", USER, is_ordered=False),
    call("list_roles", "none", USER, is_ordered=False),
    call("list_roles", "r2", ROLE, is_ordered=False),
    call("get_principals_in_role", GetPrincipalsInRoleRequest("r"), is_ordered=False),
    call("get_principals_in_role", GetPrincipalsInRoleRequest("none")),
    call("get_role_grants_for_principal", GetRoleGrantsForPrincipalRequest("u", USER), is_ordered=False),
    call("get_role_grants_for_principal", GetRoleGrantsForPrincipalRequest("none", USER), is_ordered=False),
    role_grant(GrantRevokeType.GRANT, "v"),
    role_grant(GrantRevokeType.GRANT, "v"),
    role_grant(GrantRevokeType.REVOKE, "v", option=True),
    role_grant(GrantRevokeType.REVOKE, "v"),
    role_grant(GrantRevokeType.REVOKE, "v"),
    call("revoke_role", "r", "u", USER),
    call("revoke_role", "r", "u", USER),
    call("revoke_role", "none", "u", USER),
    call("drop_role", "none"),
    call("drop_role", "admin"),
    call("drop_role", "public"),
    call("drop_role", "r"),
    call("drop_role", "r"),
    call("get_role_names", is_ordered=False),
)

COLUMNS = HiveObjectRef(HiveObjectType.COLUMN, "d", "t")


def by(authorizer: str, where: HiveObjectRef, privilege: str, *who: Any, **fields: Any) -> HiveObjectPrivilege:
    [made] = bag(where, privilege, *who, **fields).privileges
    made.authorizer = authorizer
    return made


def refreshed(where: HiveObjectRef | None, authorizer: str | None, *grants: HiveObjectPrivilege) -> list[Call]:
    request = GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, PrivilegeBag(list(grants)))
    return [
        call("refresh_privileges", where, authorizer, request),
        *(listed(who, kind, place) for who, kind in ((None, None), ("u", USER)) for place in (TABLE, DATABASE, COLUMN)),
    ]


REFRESHED = Scenario.of(
    "refreshed privileges",
    call("create_database", database("d")),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string",), parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"})),
    call("add_partition", partition("1")),
    call("create_role", Role("r", 1, "owner")),
    [
        step
        for where, on in ((TABLE, TABLE), (DATABASE, DATABASE), (COLUMNS, COLUMN))
        for step in (
            grant(on),
            *refreshed(where, "SQL", by("SQL", on, "UPDATE"), by("SQL", on, "INSERT", "grp", GROUP)),
            *refreshed(where, "OTHER", by("OTHER", on, "DELETE")),
            *refreshed(where, "OTHER", by("SQL", on, "ALTER")),
            *refreshed(where, None, by("SQL", on, "ALTER"), by("OTHER", on, "DROP")),
            *refreshed(where, "SQL", by("SQL", on, "SELECT,UPDATE")),
            *refreshed(where, "SQL", by("SQL", on, "SELECT", "r", ROLE, grantor="me", createTime=77)),
            *refreshed(where, "SQL", by("SQL", on, "SELECT", "none", ROLE)),
            *refreshed(where, None),
        )
    ],
    [step for where in (GLOBAL, PARTITION, COLUMN, OF_PARTITION) for step in refreshed(where, "SQL")],
    refreshed(TABLE, "SQL", by("SQL", DATABASE, "SELECT")),
    refreshed(UPPER, "SQL", by("SQL", UPPER, "UPDATE")),
    refreshed(None, "SQL"),
)

SCENARIOS = [PRIVILEGES, PLACES, ROLES, REFRESHED]
