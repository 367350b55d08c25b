"""Privileges returned along with partitions, for tables that keep privileges per partition.

Facts: `ObjectStore.getPartitionPrivilegeSet` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select

from hms_cache.batches import batches
from hms_cache.store.contract.partitions import Grantee
from hms_cache.store.engine.bulk_writes import IDS_IN_A_STATEMENT, in_ids
from hms_cache.store.rows.comparable_texts import possible_names
from hms_cache.store.schema import PART_PRIVS, ROLE_MAP, ROLES, TABLE_PARAMS
from hms_cache.thrift_gen.hive_metastore.ttypes import PrincipalPrivilegeSet, PrincipalType, PrivilegeGrantInfo

_IS_KEPT = select(TABLE_PARAMS.c.PARAM_VALUE).where(
    TABLE_PARAMS.c.TBL_ID == bindparam("table_id"), TABLE_PARAMS.c.PARAM_KEY == "PARTITION_LEVEL_PRIVILEGE"
)
_ROLES = (
    select(ROLE_MAP.c.PRINCIPAL_NAME, ROLE_MAP.c.PRINCIPAL_TYPE, ROLES.c.ROLE_NAME)
    .select_from(ROLE_MAP.join(ROLES, ROLES.c.ROLE_ID == ROLE_MAP.c.ROLE_ID))
    .where(
        or_(
            (ROLE_MAP.c.PRINCIPAL_TYPE == "USER") & (ROLE_MAP.c.PRINCIPAL_NAME == bindparam("user")),
            (ROLE_MAP.c.PRINCIPAL_TYPE == "GROUP") & ROLE_MAP.c.PRINCIPAL_NAME.in_(bindparam("groups", expanding=True)),
            ROLE_MAP.c.PRINCIPAL_TYPE == "ROLE",
        )
    )
)
_GRANTS = select(
    PART_PRIVS.c.PART_ID,
    PART_PRIVS.c.PRINCIPAL_TYPE,
    PART_PRIVS.c.PRINCIPAL_NAME,
    PART_PRIVS.c.PART_PRIV,
    PART_PRIVS.c.CREATE_TIME,
    PART_PRIVS.c.GRANTOR,
    PART_PRIVS.c.GRANTOR_TYPE,
    PART_PRIVS.c.GRANT_OPTION,
).where(in_ids(PART_PRIVS.c.PART_ID, "part_ids"))


def read_partition_privileges(
    connection: Connection, table_id: int, part_ids: Sequence[int], grantee: Grantee
) -> list[PrincipalPrivilegeSet] | None:
    """The grantee's privileges on each partition, in the order of the ids; None if the table keeps no such privileges.

    One statement if it keeps none, otherwise two and one per 10,000 partitions. For each principal, ordered by
    privilege, then grantor.
    """
    kept = connection.execute(_IS_KEPT, {"table_id": table_id}).scalar()
    if str(kept).upper() != "TRUE":
        return None
    groups = list(grantee.groups)
    roles = roles_of(connection, grantee)
    grants: dict[tuple[int, str, str], list[tuple[Any, ...]]] = {}
    for batch in batches(part_ids, IDS_IN_A_STATEMENT):
        for part_id, kind, principal, *grant in connection.execute(_GRANTS, {"part_ids": list(batch)}):
            grants.setdefault((part_id, kind, principal), []).append(tuple(grant))

    def infos(part_id: int, kind: str, principal: str) -> list[PrivilegeGrantInfo]:
        found = sorted(grants.get((part_id, kind, principal), ()), key=lambda grant: (grant[0], grant[2] or ""))
        return [_info(grant) for grant in found]

    return [
        PrincipalPrivilegeSet(
            userPrivileges=None if grantee.user is None else {grantee.user: infos(part_id, "USER", grantee.user)},
            groupPrivileges={group: infos(part_id, "GROUP", group) for group in groups} if groups else None,
            rolePrivileges={role: infos(part_id, "ROLE", role) for role in roles} if roles else None,
        )
        for part_id in part_ids
    ]


def roles_of(connection: Connection, grantee: Grantee) -> list[str]:
    """The roles of the user and the groups, including roles granted to roles. Every user has `public`."""
    parents: dict[str, set[str]] = {}
    pending = set() if grantee.user is None else {"public"}
    possible = possible_names(connection, () if grantee.user is None else (grantee.user,))
    groups = possible_names(connection, grantee.groups)
    user = possible[0] if possible else None
    for principal, kind, role in connection.execute(_ROLES, {"user": user, "groups": groups}):
        if kind == "ROLE":
            parents.setdefault(principal, set()).add(role)
        elif (
            principal == grantee.user if kind == "USER" else principal in grantee.groups
        ):  # the collation may match other names
            pending.add(role)
    found: set[str] = set()
    while pending:
        role = pending.pop()
        if role not in found:
            found.add(role)
            pending |= parents.get(role, set())
    return sorted(found)


def _info(grant: tuple[Any, ...]) -> PrivilegeGrantInfo:
    privilege, create_time, grantor, grantor_type, grant_option = grant
    return PrivilegeGrantInfo(
        privilege=privilege,
        createTime=create_time,
        grantor=grantor,
        grantorType=PrincipalType._NAMES_TO_VALUES.get(grantor_type),
        grantOption=bool(grant_option),
    )
