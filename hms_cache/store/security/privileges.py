"""Privileges: grants, revokes, lists. Facts: `ObjectStore`, `HMSHandler` (Hive 3.1, 4.0.1).

They are read from the database at every call. Lists are sorted by level (`LEVELS`), then object, principal, privilege
and grantor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from hms_cache.metadata.enumerations import known
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.store.contract.partitions import Grantee
from hms_cache.store.engine.bulk_writes import delete_ids
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.partitions.privileges import roles_of
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.security.grant_log import log_change
from hms_cache.store.security.granting import IndistinctGrants, grant_all, on_target, required_target, revoke_all
from hms_cache.store.security.privilege_levels import (
    DATA_CONNECTOR,
    DATABASE,
    GLOBAL,
    LEVELS,
    PARTITION,
    TABLE,
    TABLE_COLUMN,
    Level,
    find_target,
    level_of,
    name_columns,
)
from hms_cache.store.security.roles import type_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeGrantInfo,
)

_OF_TABLES = (TABLE, TABLE_COLUMN)
_REFRESHABLE = (DATABASE, DATA_CONNECTOR, *_OF_TABLES)


class Privileges(PartOfStore):
    """Reads and writes of privileges. Thread-safe; each method is one transaction."""

    def get_privilege_set(
        self, reference: HiveObjectRef, user: str | None, groups: Sequence[str]
    ) -> PrincipalPrivilegeSet:
        """The privileges of a user, its groups and the roles of both on an object, by principal.

        Global privileges are only those of the user and the groups; groups are listed even without privileges. An
        object that does not exist has no grants, nor has a partition without values.
        """

        def read(connection: Connection) -> PrincipalPrivilegeSet:
            level = level_of(reference)
            is_named = level is not PARTITION or bool(reference.partValues)
            is_known = is_named and features_of(connection).has(level.table)
            target = find_target(connection, reference) if is_known else None
            roles = [] if level is GLOBAL else roles_of(connection, Grantee(user, tuple(groups)))
            found: dict[tuple[str, str], list[PrivilegeGrantInfo]] = {}
            for grant in [] if target is None else _read(connection, level, on_target(target)):
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
        """The grants on an object, or only those of the named principal.

        Without an object type: all grants. Without a database, data connector or column: the grants on all of them. An
        object that does not exist has none.

        :raises MetaException: there are more than `limits.listed_rows`.
        """

        def read(connection: Connection) -> list[HiveObjectPrivilege]:
            principals = _of_principal(principal, principal_type)
            features = features_of(connection)
            if known(HiveObjectType, reference.objectType) is None:
                found: list[HiveObjectPrivilege] = []
                for level in filter(lambda level: features.has(level.table), LEVELS):
                    found += _read(connection, level, principals, lists=True)
                    listed(found, "privileges")
                return found
            level = level_of(reference)
            if not features.has(level.table):
                return []
            if not (reference.objectName if level is DATA_CONNECTOR else reference.dbName):
                return _read(connection, level, principals, lists=True)
            target = find_target(connection, reference)
            if target is None:
                return []
            conditions = lambda level: [*on_target(target)(level), *principals(level)]  # noqa: E731
            return _read(connection, level, conditions, lists=True)

        return run_read(self._database, read)

    def grant_privileges(self, grants: Sequence[HiveObjectPrivilege]) -> None:
        """Grants all of them or none.

        :raises InvalidObjectException: one was granted already by the same grantor.
        :raises NoSuchObjectException: the receiving role or the object does not exist (Hive's server silently ignores a
          missing table or partition).
        """

        def grant(transaction: WriteTransaction, each_by_itself: bool) -> None:
            grant_all(transaction, self._context, grants, each_by_itself=each_by_itself)

        self._write(grant)

    def revoke_privileges(self, grants: Sequence[HiveObjectPrivilege], *, grant_option: bool = False) -> None:
        """Revokes all of them, or with `grant_option` only the right to grant them; all or none.

        The grantor is ignored; of several grants the oldest is revoked.

        :raises InvalidObjectException: one is not granted.
        :raises MetaException: one is granted without the grant option.
        """

        def revoke(transaction: WriteTransaction) -> None:
            revoke_all(transaction, self._context, grants, grant_option=grant_option)

        run_write(self._database, revoke)

    def refresh_privileges(
        self, reference: HiveObjectRef, authorizer: str | None, grants: Sequence[HiveObjectPrivilege]
    ) -> None:
        """Replaces the grants of an authorizer on a database, data connector, table or its columns. Without an
        authorizer, those of all authorizers, as in Hive.

        Existing grants keep their creation time.

        If a table does not exist, nothing happens, as in Hive: HiveServer2 lists tables and then sends this request for
        each (`PrivilegeSynchronizer`), and stops at the first one that fails.

        :raises MetaException: another type of object, a named column, or as :meth:`grant_privileges`.
        """
        level = level_of(reference)
        if level not in _REFRESHABLE:
            name = HiveObjectType._VALUES_TO_NAMES.get(reference.objectType)
            raise MetaException(f"Unexpected object type {name}")
        if reference.columnName is not None:
            raise MetaException("columnName must be null")

        def refresh(transaction: WriteTransaction, each_by_itself: bool) -> None:
            connection = transaction.connection
            found = find_target(connection, reference, lock=True)
            if found is None and (level in _OF_TABLES or not grants):
                return
            target = found or required_target(connection, reference)
            of_it = [] if authorizer is None else [same_text(level.table.c.AUTHORIZER, authorizer)]
            old = _read_with_ids(connection, level, lambda level: [*on_target(target)(level), *of_it])
            requested = {_identity(grant): grant for grant in grants}
            kept = {_identity(grant) for _, grant in old}
            gone = [grant_id for grant_id, grant in old if _identity(grant) not in requested]
            if gone:
                log_change(transaction, self._context)
                delete_ids(connection, level.id_column, gone)
            new = [grant for identity, grant in requested.items() if identity not in kept]
            grant_all(transaction, self._context, new, each_by_itself=each_by_itself)

        self._write(refresh)

    def _write(self, work: Callable[[WriteTransaction, bool], None]) -> None:
        """Runs `work` with False, and again with True if it raises `IndistinctGrants`."""
        try:
            run_write(self._database, lambda transaction: work(transaction, False))
        except IndistinctGrants:
            run_write(self._database, lambda transaction: work(transaction, True))


def _of_principal(principal: str | None, principal_type: int | None) -> Any:
    """A condition that a grant is to this principal; without a name, all grants.

    Raises MetaException for a name without a type: it would select all grants.
    """

    def conditions(level: Level) -> list[ColumnElement[bool]]:
        if principal is None:
            return []
        kind = type_name(principal_type)
        return [same_text(level.table.c.PRINCIPAL_NAME, principal), level.table.c.PRINCIPAL_TYPE == kind]

    return conditions


def _read(connection: Connection, level: Level, conditions: Any, *, lists: bool = False) -> list[HiveObjectPrivilege]:
    return [grant for _, grant in _read_with_ids(connection, level, conditions, lists=lists)]


def _read_with_ids(
    connection: Connection, level: Level, conditions: Any, *, lists: bool = False
) -> list[tuple[int, HiveObjectPrivilege]]:
    """`lists`: the number is not limited by the request, so the limit on lists applies."""
    grants = level.table.c
    statement = (
        select(
            level.id_column,
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
    found = comparable_rows(connection, limited(statement) if lists else statement, {})
    if lists:
        listed(found, "privileges")
    rows = sorted(found, key=lambda row: tuple(str(value or "") for value in row[1:]))
    return [(row[0], _grant(level, row[1:])) for row in rows]


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
    """The parts that identify a grant, without its time."""
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
