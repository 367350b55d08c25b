"""Privileges: granting, revoking, listing. Facts: `ObjectStore`, `HMSHandler` (Hive 3.1, 4.0.1).

They are read from the database each time and have no events. Lists are ordered by level (`LEVELS`), then object, then
principal, privilege and grantor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.enumerations import known
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import database_name
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.metadata.principals import principal_type
from hms_cache.store.contract.partitions import Grantee
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.partitions.privileges import roles_of
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.rows.name_locks import hold_names
from hms_cache.store.schema import ROLES
from hms_cache.store.security.grant_log import log_change
from hms_cache.store.security.privilege_levels import (
    DATA_CONNECTOR,
    DATABASE,
    GLOBAL,
    LEVELS,
    PARTITION,
    TABLE,
    TABLE_COLUMN,
    Level,
    Target,
    find_target,
    level_of,
    name_columns,
)
from hms_cache.store.security.roles import type_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeGrantInfo,
)

_REFRESHABLE = (DATABASE, DATA_CONNECTOR, TABLE, TABLE_COLUMN)


class Privileges(PartOfStore):
    """Reads and writes of privileges. Thread-safe; each method is one transaction."""

    def get_privilege_set(
        self, reference: HiveObjectRef, user: str | None, groups: Sequence[str]
    ) -> PrincipalPrivilegeSet:
        """What a user, its groups and the roles of both were granted on an object, by principal.

        Global privileges are those of the user and the groups alone: with their principals where there are any, the
        groups' also where there are none. An object that does not exist has no grants, nor has a partition without
        values.
        """

        def read(connection: Connection) -> PrincipalPrivilegeSet:
            level = level_of(reference)
            is_named = level is not PARTITION or bool(reference.partValues)
            is_known = is_named and features_of(connection).has(level.table)
            target = find_target(connection, reference) if is_known else None
            roles = [] if level is GLOBAL else roles_of(connection, Grantee(user, tuple(groups)))
            found: dict[tuple[str, str], list[PrivilegeGrantInfo]] = {}
            for grant in [] if target is None else _read(connection, level, _on(target)):
                found.setdefault((type_name(grant.principalType), grant.principalName), []).append(grant.grantInfo)

            def of(kind: str, names: Collection[str]) -> dict[str, list[PrivilegeGrantInfo]] | None:
                granted = {name: found.get((kind, name), []) for name in names}
                if level is GLOBAL:
                    granted = {name: infos for name, infos in granted.items() if infos}
                    if names and kind == "GROUP":
                        return granted
                return granted or None

            users = [] if user is None else [user]
            return PrincipalPrivilegeSet(of("USER", users), of("GROUP", groups), of("ROLE", roles))

        return run_read(self._database, read)

    def list_privileges(
        self, principal: str | None, principal_type: int | None, reference: HiveObjectRef
    ) -> list[HiveObjectPrivilege]:
        """The grants on an object, of one principal if it is named.

        Without an object type: all grants everywhere. Without a database, data connector or column: those on all of
        them. An object that does not exist has none.
        """

        def read(connection: Connection) -> list[HiveObjectPrivilege]:
            principals = _of_principal(principal, principal_type)
            features = features_of(connection)
            if known(HiveObjectType, reference.objectType) is None:
                return [
                    grant
                    for level in LEVELS
                    if features.has(level.table)
                    for grant in _read(connection, level, lambda level: principals(level))
                ]
            level = level_of(reference)
            if not features.has(level.table):
                return []
            if not (reference.objectName if level is DATA_CONNECTOR else reference.dbName):
                return _read(connection, level, principals)
            target = find_target(connection, reference)
            if target is None:
                return []
            return _read(connection, level, lambda level: [*_on(target)(level), *principals(level)])

        return run_read(self._database, read)

    def grant_privileges(self, grants: Sequence[HiveObjectPrivilege]) -> None:
        """Grant all of them or none.

        :raises InvalidObjectException: one is granted already by the same grantor.
        :raises NoSuchObjectException: the receiving role or the object is missing (Hive's server passes over a missing
            table or partition without a word).
        """
        run_write(self._database, lambda transaction: self._grant(transaction, grants))

    def revoke_privileges(self, grants: Sequence[HiveObjectPrivilege], *, grant_option: bool = False) -> None:
        """Revoke all of them, or with `grant_option` only the right to grant them, or none.

        The grantor does not matter; of several grants the oldest goes.

        :raises InvalidObjectException: one is not granted.
        :raises MetaException: one is granted without the grant option.
        """
        run_write(self._database, lambda transaction: self._revoke(transaction, grants, grant_option))

    def refresh_privileges(
        self, reference: HiveObjectRef, authorizer: str | None, grants: Sequence[HiveObjectPrivilege]
    ) -> None:
        """Make these the grants that an authorizer has on a database, data connector, table or its columns: those of
        all authorizers where none is named, as Hive reads it.

        Grants that are there already keep their time of creation.

        :raises MetaException: another type of object, a named column, or as :meth:`grant_privileges`.
        """
        level = level_of(reference)
        if level not in _REFRESHABLE:
            name = HiveObjectType._VALUES_TO_NAMES.get(reference.objectType)
            raise MetaException(f"Unexpected object type {name}")
        if reference.columnName is not None:
            raise MetaException("columnName must be null")

        def refresh(transaction: WriteTransaction) -> None:
            target = find_target(transaction.connection, reference, lock=True)
            if target is None:
                raise NoSuchObjectException(f"{_text(reference)} does not exist")
            of_it = [] if authorizer is None else [same_text(level.table.c.AUTHORIZER, authorizer)]
            old = _read(transaction.connection, level, lambda level: [*_on(target)(level), *of_it])
            wanted = {_identity(grant): grant for grant in grants}
            kept = {_identity(grant) for grant in old}
            self._revoke(transaction, [grant for grant in old if _identity(grant) not in wanted], False)
            self._grant(transaction, [grant for identity, grant in wanted.items() if identity not in kept])

        run_write(self._database, refresh)

    def _grant(self, transaction: WriteTransaction, grants: Sequence[HiveObjectPrivilege]) -> None:
        connection, now_s = transaction.connection, self._context.now_s()
        if grants:
            log_change(transaction, self._context)
        for grant in grants:
            kind, info = type_name(grant.principalType), grant.grantInfo
            if kind == "ROLE":
                is_role = select(ROLES.c.ROLE_ID).where(same_text(ROLES.c.ROLE_NAME, grant.principalName))
                if connection.execute(is_role.with_for_update()).first() is None:
                    raise NoSuchObjectException(f"Role {grant.principalName} does not exist")
            target = _required_target(connection, grant.hiveObject)
            level = target.level
            there = {
                row[0]
                for row in connection.execute(
                    select(level.privilege, level.table.c.GRANTOR).where(*_on(target)(level), *_beside(grant, level))
                )
                if (row[1] or "").lower() == (info.grantor or "").lower()
            }
            for privilege in _privileges(grant):
                if privilege in there:
                    raise InvalidObjectException(_already_granted(privilege, grant, target))
                there.add(privilege)
                values = {
                    level.id_column.name: transaction.id(level.model),
                    "CREATE_TIME": now_s,
                    "GRANT_OPTION": int(bool(info.grantOption)),
                    "GRANTOR": info.grantor,
                    "GRANTOR_TYPE": type_name(principal_type(info.grantorType) or PrincipalType.ROLE),
                    "PRINCIPAL_NAME": grant.principalName,
                    "PRINCIPAL_TYPE": kind,
                    level.privilege.name: privilege,
                    "AUTHORIZER": grant.authorizer,
                }
                if level.object_column is not None:
                    values[level.object_column.name] = target.object_id
                if level.has_columns:
                    values["COLUMN_NAME"] = target.column
                try:
                    connection.execute(insert(level.table).values(values))
                except IntegrityError as error:
                    raise RetryableConflict(f"somebody else granted {privilege}") from error

    def _revoke(self, transaction: WriteTransaction, grants: Sequence[HiveObjectPrivilege], grant_option: bool) -> None:
        connection = transaction.connection
        if grants:
            log_change(transaction, self._context)
        for grant in grants:
            target = find_target(connection, grant.hiveObject, lock=True)
            level = level_of(grant.hiveObject)
            if target is None and grant.hiveObject.objectType == HiveObjectType.DATABASE:
                _required_target(connection, grant.hiveObject)
            for privilege in _privileges(grant):
                found = (
                    target
                    and connection.execute(
                        select(level.id_column, level.table.c.GRANT_OPTION)
                        .where(*_on(target)(level), *_to(grant, level), same_text(level.privilege, privilege))
                        .order_by(level.id_column)
                        .limit(1)
                    ).first()
                )
                if not found:
                    raise InvalidObjectException(_not_granted(privilege, grant, target))
                is_it = level.id_column == found[0]
                if not grant_option:
                    connection.execute(delete(level.table).where(is_it))
                elif found.GRANT_OPTION:
                    connection.execute(update(level.table).where(is_it).values(GRANT_OPTION=0))
                else:
                    raise MetaException(
                        f"User {grant.principalName} does not have grant option with privilege {privilege}"
                    )


def _required_target(connection: Connection, reference: HiveObjectRef) -> Target:
    target = find_target(connection, reference, lock=True)
    if target is None:
        if reference.objectType == HiveObjectType.DATABASE:
            name = database_name(reference.catName, reference.dbName or "")
            raise NoSuchObjectException(f"There is no database {name.as_stored}")
        raise NoSuchObjectException(f"{_text(reference)} does not exist")
    if target.level is GLOBAL:
        # There is no row to lock, and Hive's key holds nothing apart that has no authorizer.
        hold_names(connection)
    if target.level.has_columns and target.column is None:
        raise InvalidObjectException("Column name cannot be null.")
    return target


def _privileges(grant: HiveObjectPrivilege) -> list[str]:
    """`select,insert` names two."""
    return str(grant.grantInfo.privilege or "").split(",")


def _on(target: Target) -> Any:
    """The condition that a grant is on this object, per level."""

    def conditions(level: Level) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = []
        if level.object_column is not None:
            found.append(level.object_column == target.object_id)
        if level.has_columns and target.column is not None:
            found.append(level.table.c.COLUMN_NAME == target.column)
        return found

    return conditions


def _of_principal(principal: str | None, principal_type: int | None) -> Any:
    """The condition that a grant is to this principal; anybody's grants without a name.

    Raises MetaException for a name without its type: all grants would be more than was asked for.
    """

    def conditions(level: Level) -> list[ColumnElement[bool]]:
        if principal is None:
            return []
        kind = type_name(principal_type)
        return [same_text(level.table.c.PRINCIPAL_NAME, principal), level.table.c.PRINCIPAL_TYPE == kind]

    return conditions


def _to(grant: HiveObjectPrivilege, level: Level) -> list[ColumnElement[bool]]:
    """The condition that a grant is to the principal of this one, by the same authorizer if one is named."""
    conditions: list[ColumnElement[bool]] = _of_principal(grant.principalName, grant.principalType)(level)
    if grant.authorizer is not None:
        conditions.append(same_text(level.table.c.AUTHORIZER, grant.authorizer))
    return conditions


def _beside(grant: HiveObjectPrivilege, level: Level) -> list[ColumnElement[bool]]:
    """The condition that the database may have no place for both grants: MySQL takes similar names for the same."""
    grants = level.table.c
    conditions = [
        grants.PRINCIPAL_NAME == grant.principalName,
        grants.PRINCIPAL_TYPE == type_name(grant.principalType),
    ]
    if grant.authorizer is not None:
        conditions.append(grants.AUTHORIZER == grant.authorizer)
    return conditions


def _read(connection: Connection, level: Level, conditions: Any) -> list[HiveObjectPrivilege]:
    grants = level.table.c
    statement = (
        select(
            *name_columns(level),
            grants.PRINCIPAL_NAME,
            grants.PRINCIPAL_TYPE,
            level.privilege,
            grants.CREATE_TIME,
            grants.GRANTOR,
            grants.GRANTOR_TYPE,
            grants.GRANT_OPTION,
            grants.AUTHORIZER,
        )
        .select_from(level.source)
        .where(*conditions(level))
    )
    rows = sorted(comparable_rows(connection, statement, {}), key=lambda row: tuple(str(value or "") for value in row))
    return [_grant(level, row) for row in rows]


def _grant(level: Level, row: Any) -> HiveObjectPrivilege:
    catalog, database, name, partition, column, principal, kind, privilege, *info, authorizer = row
    create_time, grantor, grantor_kind, grant_option = info
    types = PrincipalType._NAMES_TO_VALUES
    return HiveObjectPrivilege(
        hiveObject=HiveObjectRef(
            level.object_type, database, name, None if partition is None else values_of_name(partition), column, catalog
        ),
        principalName=principal,
        principalType=types.get(kind),
        grantInfo=PrivilegeGrantInfo(privilege, create_time, grantor, types.get(grantor_kind), bool(grant_option)),
        authorizer=authorizer,
    )


def _identity(grant: HiveObjectPrivilege) -> tuple[Any, ...]:
    """What makes two grants the same, their times aside."""
    info = grant.grantInfo
    column = grant.hiveObject.columnName
    return (
        None if column is None else normalize_identifier(column),
        grant.principalName,
        grant.principalType,
        info.privilege,
        info.grantor,
        info.grantorType,
        bool(info.grantOption),
        grant.authorizer,
    )


def _text(reference: HiveObjectRef) -> str:
    kind = HiveObjectType._VALUES_TO_NAMES.get(reference.objectType, "object").lower()
    names = [name for name in (reference.dbName, reference.objectName) if name]
    values = f" {reference.partValues}" if reference.partValues else ""
    return f"The {kind} {'.'.join(names)}{values}"


def _already_granted(privilege: str, grant: HiveObjectPrivilege, target: Target) -> str:
    reference, grantor = grant.hiveObject, grant.grantInfo.grantor
    names = ",".join(str(n) for n in (reference.dbName, reference.objectName, target.partition_name) if n is not None)
    place = {
        HiveObjectType.GLOBAL: "",
        HiveObjectType.DATABASE: f" on database {reference.dbName}",
        HiveObjectType.DATACONNECTOR: f" on data connector {reference.objectName}",
        HiveObjectType.TABLE: f" on table [{names}]",
        HiveObjectType.PARTITION: f" on partition [{names}]",
        HiveObjectType.COLUMN: f" on column {reference.columnName} [{names}]",
    }[reference.objectType]
    return f"{privilege} is already granted{place} by {grantor}"


def _not_granted(privilege: str, grant: HiveObjectPrivilege, target: Target | None) -> str:
    reference = grant.hiveObject
    if reference.objectType == HiveObjectType.GLOBAL:
        return f"No user grant found for privileges {privilege}"
    if reference.objectType == HiveObjectType.DATABASE:
        return f"No database grant found for privileges {privilege} on database {reference.dbName}"
    if reference.objectType == HiveObjectType.DATACONNECTOR:
        return f"No dataconnector grant found for privileges {privilege} on data connector {reference.objectName}"
    partition = f", partition is {target.partition_name if target else reference.partValues}"
    column = f", column name = {reference.columnName}"
    level = level_of(reference)
    place = (partition if level.has_partitions else "") + (column if level.has_columns else "")
    return f"No grant ({privilege}) found  on table {reference.objectName}{place}, database is {reference.dbName}"
