"""A user's rights according to the metastore: owners, grants, roles. Read from the database at every call.

They are not cached: grants have no events, and other metastores on the database change them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, String, cast, false, literal_column, select, union_all

from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, SecuredObject
from hms_cache.authorization.standard_rights import COLUMN, FACTS, GLOBAL_ONLY, OWNER, SHARED, Right, Rights
from hms_cache.store.contract.partitions import Grantee
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.partitions.privileges import roles_of
from hms_cache.store.rows.comparable_texts import possible_names
from hms_cache.store.schema import DBS, TBLS
from hms_cache.store.security.privilege_levels import DATABASE, GLOBAL, TABLE, TABLE_COLUMN, Level
from hms_cache.store.security.roles import PUBLIC

_NAME = String(767)
_NO_NAME: ColumnElement[str] = literal_column("''")
_SOME_TABLE: ColumnElement[str] = literal_column("'*'")
"""Replaces the names of tables: no table has this name."""

_TABLES = TBLS.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)


class GrantedRights(PartOfStore):
    """See `GrantSource`. Thread-safe; each method is one transaction with two statements."""

    def rights(
        self, user: str, within: SecuredObject, groups: frozenset[str] = NO_GROUPS, *, at_most: int | None = None
    ) -> Rights:
        """The user's rights. Grants on partitions do not belong to SQL-standard authorization."""
        return run_read(self._database, lambda connection: _rights(connection, user, within, groups, at_most))

    def rights_on_tables(
        self, user: str, database: SecuredObject, names: frozenset[str], groups: frozenset[str] = NO_GROUPS
    ) -> Rights:
        """The result of `rights` for each of these tables."""
        return run_read(self._database, lambda connection: _rights(connection, user, database, groups, among=names))

    def rights_by_database(self, user: str, groups: frozenset[str] = NO_GROUPS) -> Rights:
        """Like `rights`, with rights on tables once per database."""
        return run_read(
            self._database, lambda connection: _rights(connection, user, METASTORE, groups, distinguishes_tables=False)
        )

    def has_tables_of_others(self, user: str, database: SecuredObject, groups: frozenset[str] = NO_GROUPS) -> bool:
        """Whether a table in the database is owned by someone other than the user, its roles and these groups."""
        return run_read(self._database, lambda connection: _has_others(connection, user, database, groups))


def _has_others(connection: Connection, user: str, database: SecuredObject, groups: frozenset[str]) -> bool:
    of_kind = _own_names(user, _roles(connection, user, groups), groups)
    owners = (
        select(TBLS.c.OWNER, TBLS.c.OWNER_TYPE)
        .select_from(_TABLES)
        .where(DBS.c.CTLG_NAME == database.catalog, DBS.c.NAME == database.database)
        .distinct()
    )
    return any(owner not in of_kind.get(kind, ()) for owner, kind in connection.execute(owners))


def _roles(connection: Connection, user: str, groups: frozenset[str]) -> frozenset[str]:
    return frozenset(roles_of(connection, Grantee(user, tuple(sorted(groups)))))


def _own_names(user: str, roles: frozenset[str], groups: frozenset[str]) -> dict[str | None, frozenset[str]]:
    """The names that belong to the user, by kind of principal."""
    own = frozenset({user})
    return {None: own, "USER": own, "ROLE": roles, "GROUP": groups}


def _rights(
    connection: Connection,
    user: str,
    within: SecuredObject,
    groups: frozenset[str],
    at_most: int | None = None,
    *,
    among: frozenset[str] | None = None,
    distinguishes_tables: bool = True,
) -> Rights:
    if within.table is not None:
        among = frozenset((within.table,))
    roles = _roles(connection, user, groups)
    of_kind = _own_names(user, roles, groups)
    names = possible_names(connection, sorted({user} | roles | groups))
    possible = possible_names(connection, [*filter(None, within[:2]), *sorted(among or ())])
    rights: set[Right] = set()
    tables: set[SecuredObject] = set()
    rows = 0
    table_name = TBLS.c.TBL_NAME if distinguishes_tables else _SOME_TABLE
    only = None if among is None else [name for name in possible if name in among]
    parts = [*_of_few(names, within, possible), *_of_tables(names, within, possible, only, table_name, at_most)]
    for *place, privilege, is_explicit, grantable, principal, kind in connection.execute(union_all(*parts)):
        of = SecuredObject(*(name or None for name in place))
        rows += of.table is not None
        # A collation may match other names: only equal ones count.
        if any(name is not None and found != name for found, name in zip(of, within, strict=True) if found is not None):
            continue
        if among is not None and of.table is not None and of.table not in among:
            continue
        if of.table is not None:
            tables.add(of)
        if principal in of_kind.get(kind, ()):
            if privilege == OWNER and of.table is None and (principal, kind) == (PUBLIC, "ROLE"):
                privilege = SHARED
            rights.update(
                Right(one, of, bool(grantable)) for one in (_privileges(privilege) if is_explicit else [privilege])
            )
    return Rights(roles, frozenset(rights), frozenset(tables), is_whole=at_most is None or rows < at_most)


def _privileges(text: str | None) -> list[str]:
    """The privileges in a text, which may be any text, except those with a special meaning here."""
    privileges = (text or "").upper().split(",")
    return (
        ["SELECT", "INSERT", "UPDATE", "DELETE"]
        if "ALL" in privileges
        else [one for one in privileges if one not in FACTS]
    )


def _of_few(names: list[str], within: SecuredObject, possible: list[str]) -> Iterator[Select[Any]]:
    """Global rights, and rights on databases. `possible`: the names in `within` that the database can store."""
    yield _grants(GLOBAL, (_NO_NAME,) * 3, names, [])
    if within == GLOBAL_ONLY:
        return
    place = (DBS.c.CTLG_NAME, DBS.c.NAME, _NO_NAME)
    in_database = _in_database(within, possible)
    yield _select(place, OWNER, literal_column("1"), (DBS.c.OWNER_NAME, DBS.c.OWNER_TYPE)).where(
        *in_database, DBS.c.OWNER_NAME.in_(names)
    )
    yield _grants(DATABASE, place, names, in_database)


def _of_tables(
    names: list[str],
    within: SecuredObject,
    possible: list[str],
    only: list[str] | None,
    table_name: ColumnElement[str],
    at_most: int | None,
) -> Iterator[Select[Any]]:
    """Rights on tables, or only on the tables `only`. `table_name` is selected as the table's name. `at_most`: maximum
    number of each kind."""
    if within == GLOBAL_ONLY:
        return
    place = (DBS.c.CTLG_NAME, DBS.c.NAME, table_name)
    conditions = _in_database(within, possible)
    if only is not None:
        conditions = [*conditions, TBLS.c.TBL_NAME.in_(only)]
    # Named tables are selected whoever owns them, since it matters whether they exist.
    owns = [TBLS.c.OWNER.in_(names)] if only is None else []
    owned = _select(place, OWNER, literal_column("1"), (TBLS.c.OWNER, TBLS.c.OWNER_TYPE)).select_from(_TABLES)
    for part in (
        owned.where(*conditions, *owns),
        _grants(TABLE, place, names, conditions),
        _grants(TABLE_COLUMN, place, names, conditions),
    ):
        if table_name is _SOME_TABLE:
            yield part.distinct()
        else:
            yield part if at_most is None else select(part.limit(at_most).subquery())


def _in_database(within: SecuredObject, possible: list[str]) -> list[ColumnElement[bool]]:
    if within == METASTORE:
        return []
    if not {within.catalog, within.database}.issubset((None, *possible)):
        return [false()]
    return [DBS.c.CTLG_NAME == within.catalog, DBS.c.NAME == within.database]


def _grants(
    level: Level, place: tuple[Any, Any, Any], names: list[str], conditions: list[ColumnElement[bool]]
) -> Select[Any]:
    grants = level.table.c
    privilege = COLUMN if level is TABLE_COLUMN else level.privilege
    return (
        _select(place, privilege, grants.GRANT_OPTION, (grants.PRINCIPAL_NAME, grants.PRINCIPAL_TYPE))
        .select_from(level.source)
        .where(grants.PRINCIPAL_NAME.in_(names), *conditions)
    )


def _select(place: tuple[Any, Any, Any], privilege: Any, grantable: Any, principal: tuple[Any, Any]) -> Select[Any]:
    """One branch of the union. Texts are cast, since columns of different collations cannot be combined.

    `privilege`: one of FACTS, or the column of the privilege.
    """
    catalog, database, table = (cast(name, _NAME) for name in place)
    is_fact = isinstance(privilege, str)
    return select(
        catalog.label("catalog_name"),
        database.label("database_name"),
        table.label("table_name"),
        cast(literal_column(f"'{privilege}'") if is_fact else privilege, _NAME).label("word"),
        literal_column("0" if is_fact else "1").label("is_explicit"),
        grantable.label("grantable"),
        cast(principal[0], _NAME).label("principal"),
        cast(principal[1], _NAME).label("kind"),
    )
