"""Grants and revokes privileges. Objects, roles and grants are read once, for any number of grants.

HiveServer2 replaces all grants on the columns of a table, which may be thousands, by one request
(`PrivilegeSynchronizer`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, null, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.metadata.object_names import database_name
from hms_cache.metadata.principals import principal_type
from hms_cache.store.engine.bulk_writes import IDS_IN_A_STATEMENT, delete_ids, in_ids, insert_rows
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.rows.comparable_texts import possible_names
from hms_cache.store.rows.name_locks import hold_names
from hms_cache.store.schema import ROLES
from hms_cache.store.security.grant_log import log_change
from hms_cache.store.security.privilege_levels import (
    DATA_CONNECTOR,
    DATABASE,
    GLOBAL,
    Level,
    Target,
    column_of,
    find_target,
    level_of,
)
from hms_cache.store.security.roles import type_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)

_MAX_NAMES = 500
"""Names in one condition. With more, all grants on an object are read, and roles in several statements."""

_Place = tuple[Any, ...]
"""An object of grants, without its column: equal for all spellings of its name."""

_Held = dict[tuple[Any, ...], set[str]]
"""Privileges by column, principal name and type, authorizer, and grantor in lower case. None as the authorizer stands
for all authorizers."""


class IndistinctGrants(Exception):
    """The database considers some grants of a request equal to each other or to existing ones.

    Raised by `grant_all` for a request with several grants. The request has to be repeated with `each_by_itself`, so
    that the database compares each of them.
    """


def grant_all(
    transaction: WriteTransaction,
    context: StoreContext,
    grants: Sequence[HiveObjectPrivilege],
    *,
    each_by_itself: bool = False,
) -> None:
    """Grants all of them, in a number of statements that depends only on the objects.

    :raises InvalidObjectException: one was granted already by the same grantor.
    :raises NoSuchObjectException: the receiving role or the object does not exist.
    :raises IndistinctGrants: unless `each_by_itself` is true.
    """
    if not grants:
        return
    log_change(transaction, context)
    connection, now_s = transaction.connection, context.now_s()
    roles = _lock_roles(connection, [one.principalName for one in grants if type_name(one.principalType) == "ROLE"])
    by_place = _by_place(grants)
    targets: dict[_Place, Target] = {}
    held: dict[_Place, _Held] = {}
    rows = _Rows(transaction)
    for grant in grants:
        place = _place(grant.hiveObject)
        if type_name(grant.principalType) == "ROLE" and grant.principalName not in roles:
            raise NoSuchObjectException(f"Role {grant.principalName} does not exist")
        if place not in targets:
            found = targets[place] = required_target(connection, grant.hiveObject)
            held[place] = {} if each_by_itself else _read_held(connection, found, by_place[place])
        level = targets[place].level
        target = replace(targets[place], column=column_of(level, grant.hiveObject))
        if level.has_columns and target.column is None:
            raise InvalidObjectException("Column name cannot be null.")
        by = (target.column, *_principal(grant), grant.grantInfo.grantor)
        there = _similar_grants(connection, grant, target) if each_by_itself else _of(held[place], by, grant.authorizer)
        for privilege in _privileges(grant):
            if privilege in there:
                raise InvalidObjectException(_already_granted(privilege, grant, target))
            there.add(privilege)
            _note(held[place], by, grant.authorizer, privilege)
            rows.add(level, _values(grant, target, privilege, now_s))
        if each_by_itself:
            rows.write(RetryableConflict("somebody else granted the same"))
    rows.write(IndistinctGrants())


def revoke_all(
    transaction: WriteTransaction, context: StoreContext, grants: Sequence[HiveObjectPrivilege], *, grant_option: bool
) -> None:
    """Revokes all of them, or only the right to grant them, in a number of statements that depends only on the objects.

    :raises InvalidObjectException: one is not granted.
    :raises MetaException: one is granted without the grant option.
    """
    if not grants:
        return
    log_change(transaction, context)
    connection = transaction.connection
    by_place = _by_place(grants)
    targets: dict[_Place, Target | None] = {}
    held: dict[_Place, _Revocable] = {}
    changed: dict[str, tuple[Level, list[int]]] = {}
    for grant in grants:
        level, place = level_of(grant.hiveObject), _place(grant.hiveObject)
        if place not in targets:
            found = find_target(connection, grant.hiveObject, lock=True)
            if found is None and level is DATABASE:
                found = required_target(connection, grant.hiveObject)
            targets[place] = found
            held[place] = _read_revocable(connection, found, by_place[place]) if found is not None else {}
        by = (column_of(level, grant.hiveObject), *_principal(grant))
        for privilege in _privileges(grant):
            oldest = _oldest(held[place], (*by, privilege, grant.authorizer))
            if oldest is None:
                raise InvalidObjectException(_not_granted(privilege, grant, targets[place]))
            if grant_option and not oldest.has_option:
                raise MetaException(f"User {grant.principalName} does not have grant option with privilege {privilege}")
            oldest.has_option, oldest.is_gone = False, not grant_option
            changed.setdefault(level.model, (level, []))[1].append(oldest.grant_id)
    for level, ids in changed.values():
        if grant_option:
            for some in batches(ids, IDS_IN_A_STATEMENT):
                is_one = in_ids(level.id_column)
                connection.execute(update(level.table).where(is_one).values(GRANT_OPTION=0), {"ids": list(some)})
        else:
            delete_ids(connection, level.id_column, ids)


@dataclass(slots=True)
class _Grant:
    """An existing grant."""

    grant_id: int
    has_option: bool
    is_gone: bool = False


_Revocable = dict[tuple[Any, ...], deque[_Grant]]
"""Grants, the oldest first, by column, principal name and type, privilege and authorizer. None as the column stands for
all columns, None as the authorizer for all authorizers."""


def _oldest(held: _Revocable, key: tuple[Any, ...]) -> _Grant | None:
    some = held.get(key, deque())
    while some and some[0].is_gone:
        some.popleft()
    return some[0] if some else None


def _read_revocable(connection: Connection, target: Target, grants: Sequence[HiveObjectPrivilege]) -> _Revocable:
    level = target.level
    of = level.table.c
    column = of.COLUMN_NAME if level.has_columns else null()
    statement = select(
        level.id_column, of.GRANT_OPTION, column, of.PRINCIPAL_NAME, of.PRINCIPAL_TYPE, level.privilege, of.AUTHORIZER
    )
    held: _Revocable = {}
    of_these = statement.where(*_beside_these(target, grants)).order_by(level.id_column)
    for grant_id, option, column_name, *principal, privilege, authorizer in connection.execute(of_these):
        one = _Grant(grant_id, bool(option))
        for on in {column_name, None}:
            for either in {authorizer, None}:
                held.setdefault((on, *principal, privilege, either), deque()).append(one)
    return held


class _Rows:
    """Grants to be inserted, by level."""

    def __init__(self, transaction: WriteTransaction) -> None:
        self._transaction = transaction
        self._levels: dict[str, Level] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, level: Level, row: dict[str, Any]) -> None:
        self._levels[level.model] = level
        self._rows.setdefault(level.model, []).append(row)

    def write(self, conflict: Exception) -> None:
        """Inserts them. Raises `conflict` if the database refuses one as a duplicate."""
        for model, rows in self._rows.items():
            level = self._levels[model]
            ids = self._transaction.ids(model, len(rows))
            numbered = [{level.id_column.name: number, **row} for number, row in zip(ids, rows, strict=True)]
            try:
                insert_rows(self._transaction.connection, level.table, numbered)
            except IntegrityError as error:
                raise conflict from error
        self._rows = {}


def _values(grant: HiveObjectPrivilege, target: Target, privilege: str, now_s: int) -> dict[str, Any]:
    level, info = target.level, grant.grantInfo
    values = {
        "CREATE_TIME": now_s,
        "GRANT_OPTION": int(bool(info.grantOption)),
        "GRANTOR": info.grantor,
        "GRANTOR_TYPE": type_name(principal_type(info.grantorType) or PrincipalType.ROLE),
        "PRINCIPAL_NAME": grant.principalName,
        "PRINCIPAL_TYPE": type_name(grant.principalType),
        level.privilege.name: privilege,
        "AUTHORIZER": grant.authorizer,
    }
    if level.object_column is not None:
        values[level.object_column.name] = target.object_id
    if level.has_columns:
        values["COLUMN_NAME"] = target.column
    return values


def _lock_roles(connection: Connection, names: Sequence[str | None]) -> set[str]:
    """The names that are roles. These roles are locked against drops until the transaction ends."""
    requested = possible_names(connection, sorted({name for name in names if name is not None}), ROLES.c.ROLE_NAME)
    found: set[str] = set()
    for some in batches(requested, _MAX_NAMES):
        of_names = select(ROLES.c.ROLE_NAME).where(ROLES.c.ROLE_NAME.in_(some)).order_by(ROLES.c.ROLE_ID)
        found.update(connection.execute(of_names.with_for_update()).scalars())
    return found


def _place(reference: HiveObjectRef) -> _Place:
    level = level_of(reference)
    catalog = normalize_catalog(reference.catName or DEFAULT_CATALOG)
    database = normalize_identifier(reference.dbName or "")
    name = normalize_identifier(reference.objectName or "")
    if level is GLOBAL:
        return (level.model,)
    if level is DATABASE:
        return level.model, catalog, database
    if level is DATA_CONNECTOR:
        return level.model, name
    return level.model, catalog, database, name, tuple(reference.partValues or ())


def required_target(connection: Connection, reference: HiveObjectRef) -> Target:
    """Locks and returns the object. Raises NoSuchObjectException."""
    target = find_target(connection, reference, lock=True)
    if target is None:
        if reference.objectType == HiveObjectType.DATABASE:
            name = database_name(reference.catName, reference.dbName or "")
            raise NoSuchObjectException(f"There is no database {name.as_stored}")
        raise NoSuchObjectException(f"{_text(reference)} does not exist")
    if target.level is GLOBAL:
        # There is no row to lock, and Hive's unique key does not apply to grants without an authorizer.
        hold_names(connection)
    return target


def _by_place(grants: Sequence[HiveObjectPrivilege]) -> dict[_Place, list[HiveObjectPrivilege]]:
    found: dict[_Place, list[HiveObjectPrivilege]] = {}
    for grant in grants:
        found.setdefault(_place(grant.hiveObject), []).append(grant)
    return found


def _privileges(grant: HiveObjectPrivilege) -> list[str]:
    """Splits the text: `select,insert` means two privileges; trailing commas are ignored, as by Java's `split`."""
    text = str(grant.grantInfo.privilege or "")
    names = text.rstrip(",")
    return names.split(",") if names or not text else []


def on_target(target: Target) -> Any:
    """A condition, per level, that a grant is on this object; without a column, on any of its columns."""

    def conditions(level: Level) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = []
        if level.object_column is not None:
            found.append(level.object_column == target.object_id)
        if level.has_columns and target.column is not None:
            found.append(level.table.c.COLUMN_NAME == target.column)
        return found

    return conditions


def _principal(grant: HiveObjectPrivilege) -> tuple[str | None, str]:
    return grant.principalName, type_name(grant.principalType)


def _note(held: _Held, by: tuple[Any, ...], authorizer: str | None, privilege: str) -> None:
    """`by`: column, principal name and type, grantor."""
    *key, grantor = by
    for either in {authorizer, None}:
        held.setdefault((*key, either, (grantor or "").lower()), set()).add(privilege)


def _of(held: _Held, by: tuple[Any, ...], authorizer: str | None) -> set[str]:
    *key, grantor = by
    return set(held.get((*key, authorizer, (grantor or "").lower()), ()))


def _read_held(connection: Connection, target: Target, grants: Sequence[HiveObjectPrivilege]) -> _Held:
    """Privileges on the object that the principals of these grants already have."""
    level = target.level
    of = level.table.c
    column = of.COLUMN_NAME if level.has_columns else null()
    statement = select(column, of.PRINCIPAL_NAME, of.PRINCIPAL_TYPE, of.GRANTOR, of.AUTHORIZER, level.privilege)
    conditions = _beside_these(target, grants)
    held: _Held = {}
    for *by, authorizer, privilege in connection.execute(statement.where(*conditions)):
        _note(held, tuple(by), authorizer, privilege)
    return held


def _beside_these(target: Target, grants: Sequence[HiveObjectPrivilege]) -> list[ColumnElement[bool]]:
    """Conditions that all grants on the object to the principals of these grants meet; others may meet them, too."""
    level = target.level
    of = level.table.c
    conditions: list[ColumnElement[bool]] = on_target(replace(target, column=None))(level)
    names = {grant.principalName for grant in grants}
    if None not in names and len(names) <= _MAX_NAMES:
        conditions.append(of.PRINCIPAL_NAME.in_(sorted(names)))
    columns = {column_of(level, grant.hiveObject) for grant in grants}
    if level.has_columns and None not in columns and len(columns) <= _MAX_NAMES:
        conditions.append(of.COLUMN_NAME.in_(sorted(filter(None, columns))))
    return conditions


def _similar_grants(connection: Connection, grant: HiveObjectPrivilege, target: Target) -> set[str]:
    """Privileges of the grantor that the database may consider equal to this one: MySQL ignores some differences of
    names."""
    level = target.level
    grants = level.table.c
    conditions = [
        grants.PRINCIPAL_NAME == grant.principalName,
        grants.PRINCIPAL_TYPE == type_name(grant.principalType),
    ]
    if grant.authorizer is not None:
        conditions.append(grants.AUTHORIZER == grant.authorizer)
    statement = select(level.privilege, grants.GRANTOR).where(*on_target(target)(level), *conditions)
    requested = (grant.grantInfo.grantor or "").lower()
    return {privilege for privilege, grantor in connection.execute(statement) if (grantor or "").lower() == requested}


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
