"""SQL-standard authorization: rights of a user by ownership, grants and roles. Facts: Hive's `Operation2Privilege`,
`SQLAuthorizationUtils` (Hive 3.1, 4.0.1).

All roles of a user are in force at once: the metastore's protocol has no `SET ROLE`. Hive decides without groups; here
a user also has the grants to groups of a directory and of its bearer token, if the site names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hms_cache.authorization.cached_groups import Principal
from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, AccessCheck, Action, SecuredObject, UndecidedError

ADMIN = "admin"
OWNER = "OWNER"
"""The privilege of a right for ownership of the object."""

SHARED = "SHARED"
"""The privilege of a right for a database owned by the role `public`: everybody may create tables in it, but has no
other rights of an owner."""

COLUMN = "COLUMN"
"""The privilege of a right for a grant of any kind on one of the table's columns."""

FACTS = frozenset({OWNER, SHARED, COLUMN})
"""Words that the catalog itself uses. As names of granted privileges, which may be any text, they have no meaning."""

DEFAULT_CATALOG, DEFAULT_DATABASE = "hive", "default"

GLOBAL_ONLY = SecuredObject("")
"""In place of an object: only global rights and roles. No catalog has this name."""

MAX_GROUPS = 2000
"""Maximum number of groups of a user: each is a parameter in every part of a statement, and databases limit those."""

MAX_PLACES = 5_000
"""Maximum number of places whose rights are remembered for one user; some 5 MB. A client may ask for names that do not
exist."""

_PARTS_OF_A_PLACE = 5
"""A place takes as much memory as this many of its rights."""

MAX_READ_AT_FIRST = 300
"""Number of rights of one kind on a database's tables that are read at first; more are read when tables are asked
about."""

MAX_SINGLE_TABLES = 2
"""With more tables of a database than this, they are looked up together."""

MAX_TABLES_TOGETHER = 1_000
"""With more tables than this, all tables of the database are read."""

_DATA = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})
_PRIVILEGES = {
    Action.READ: frozenset({*_DATA, OWNER, SHARED, COLUMN}),
    Action.WRITE: frozenset({"INSERT", OWNER}),
    Action.UPDATE: frozenset({"UPDATE", OWNER}),
    Action.DELETE: frozenset({"DELETE", OWNER}),
    Action.CREATE: frozenset({OWNER}),
    Action.ALTER: frozenset({OWNER}),
    Action.DROP: frozenset({OWNER}),
}
"""For each action on an existing table, the privileges of which one is required. An existing table is not created
again, but whoever may create it may lock it."""


_OF_ITSELF = frozenset({OWNER, SHARED})
"""On a database, these give no rights on its tables."""


class Right(NamedTuple):
    """A right of a user on an object, direct or through a role."""

    privilege: str
    """A privilege in upper case, OWNER, SHARED or COLUMN."""
    of: SecuredObject
    """METASTORE: a global right."""
    grantable: bool


class Rights(NamedTuple):
    """The rights found in one place at one time."""

    roles: frozenset[str]
    rights: frozenset[Right]
    tables: frozenset[SecuredObject]
    """The existing tables, if a single table was asked for."""

    is_whole: bool = True
    """Whether these are all rights on tables."""


class _IndexedRights:
    """The same, indexed by object: a user who owns thousands of tables and lists them causes a check for each."""

    __slots__ = ("_around", "by_object", "roles", "tables")

    def __init__(self, found: Rights) -> None:
        self.roles = found.roles
        self.tables = found.tables
        self.by_object: dict[SecuredObject, tuple[Right, ...]] = {}
        self._around: set[tuple[str | None, ...]] = set()
        """The catalogs and databases that contain objects with rights; contains the empty place if there are any."""
        for right in found.rights:
            self.by_object[right.of] = (*self.by_object.get(right.of, ()), right)
            self._around.update(right.of[:place] for place in range(len(right.of)))

    def on(self, of: SecuredObject) -> tuple[Right, ...]:
        """The rights on the object itself."""
        return self.by_object.get(of, ())

    def has_any_in(self, what: SecuredObject) -> bool:
        """Whether there is a right on the object, on something in it, or a global one."""
        place = len([name for name in what if name is not None])
        return METASTORE in self.by_object or what in self.by_object or what[:place] in self._around


class GrantSource(Protocol):
    """Provides grants."""

    def rights(
        self, user: str, within: SecuredObject, groups: frozenset[str] = NO_GROUPS, *, at_most: int | None = None
    ) -> Rights:
        """The rights of the user and of these groups.

        Includes global rights and, for a table, those on it and on its database; for a database, those on it and on all
        its tables; for the metastore, all. Raises the errors of its database.

        :param at_most: maximum number of rights of each kind on tables.
        """

    def rights_on_tables(
        self, user: str, database: SecuredObject, names: frozenset[str], groups: frozenset[str] = NO_GROUPS
    ) -> Rights:
        """For each of these tables of a database, the same as `rights` for a single one."""

    def rights_by_database(self, user: str, groups: frozenset[str] = NO_GROUPS) -> Rights:
        """All rights, but those on tables are reported once per database, as of some table in it."""

    def has_tables_of_others(self, user: str, database: SecuredObject, groups: frozenset[str] = NO_GROUPS) -> bool:
        """Whether the database has a table that is not owned by the user, its roles or these groups."""


class StandardDecisionSource:
    """See `DecisionSource`. Remembers what it has read: it lives as long as its decisions may be used.

    Two threads may read the same; the values they store are equal or newer.
    """

    has_any = True
    """Everybody has the role `public`."""

    def __init__(self, source: GrantSource, user: Principal, *, is_service: bool = False) -> None:
        self._source = source
        self._user = user
        self._is_service = is_service
        self._read: dict[SecuredObject, _IndexedRights] = {}
        self._read_in_part: dict[SecuredObject, _IndexedRights] = {}
        """Databases (METASTORE: all) where the user has many rights on tables: only as many of those as needed to know
        that there are some."""
        self.held = 0
        """See `DecisionSource`: the amount remembered, in units of one decision of a policy."""

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """Reads a whole database, or everything, if single look-ups would be too many."""
        tables: dict[SecuredObject, set[str]] = {}
        shown = set()
        for action, of in checks:
            if of.database is None:
                continue
            if action is None or of.table is None:
                shown.add(of._replace(table=None))
            elif action is Action.READ:
                tables.setdefault(of._replace(table=None), set()).add(of.table)
        many = [database for database, names in tables.items() if len(names) > MAX_SINGLE_TABLES]
        if len(many) + len(shown) > MAX_SINGLE_TABLES or len(tables) > MAX_SINGLE_TABLES:
            if not tables:
                self._by_database()
                return
            many = [METASTORE]
        for database in many:
            if database == METASTORE:
                self._rights(METASTORE)
            else:
                self._on_tables(database, tables[database])

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether at least one right allows it."""
        if action is Action.SERVICE:
            return self._is_service
        found = self._around(of, existing=action is not Action.READ)
        if ADMIN in found.roles:
            return True
        if action is Action.MANAGE or of.catalog is None:
            return False
        database = of._replace(table=None)
        if of.table is None and action in (Action.CREATE, Action.ALTER, Action.DROP):
            return action is Action.DROP and self._may_drop(of, found)
        if action in (Action.CREATE, Action.ALTER) and of not in found.tables:
            # For a new table, or the new name of a renamed one.
            return any(Right(privilege, database, True) in found.on(database) for privilege in (OWNER, SHARED))
        privileges = _PRIVILEGES[action]
        if any(right.privilege in privileges for right in found.on(of)):
            return True
        wider = (*found.on(database), *found.on(METASTORE))
        return any(right.privilege in privileges and right.privilege not in _OF_ITSELF for right in wider)

    def _may_drop(self, database: SecuredObject, found: _IndexedRights) -> bool:
        """Whether the user may drop the database with its content: requires ownership of the database and of each
        table.

        Only administrators may alter databases, and functions, which are code that is run by everybody's queries.
        """
        if Right(OWNER, database, True) not in found.on(database):
            return False
        return not self._source.has_tables_of_others(self._user.name, database, self._groups())

    def show(self, what: SecuredObject) -> bool:
        """Whether the object or something in it is owned by or granted to the user. The default database and catalog
        are visible to everybody."""
        if what.database == DEFAULT_DATABASE or (what.database is None and what.catalog == DEFAULT_CATALOG):
            return True
        found = self._by_database() if what.database is None else self._around(what)
        return ADMIN in found.roles or found.has_any_in(what)

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Administrators and owners of tables may; others may grant what they have with the grant option.

        A grant on a database applies to the tables of others in it, so owning the database is not sufficient.
        """
        found = self._around(of, existing=True)
        if ADMIN in found.roles:
            return True
        if of.catalog is None:
            return False
        privileges = set() if of.table is None else {OWNER}
        if privilege is not None and privilege.upper() not in FACTS:
            privileges.add(privilege.upper())
        return any(right.privilege in privileges and right.grantable for right in found.on(of))

    def _around(self, of: SecuredObject, *, existing: bool = False) -> _IndexedRights:
        """The rights that are relevant for an object."""
        if not existing or of.table is None:
            read = self._read
            found = read.get(METASTORE) or read.get(of._replace(table=None))
            if found is not None:
                return found
        if of.database is None:
            return self._rights(GLOBAL_ONLY)
        return self._on_database(of) if of.table is None else self._rights(of)

    def _rights(self, within: SecuredObject) -> _IndexedRights:
        known = self._read.get(within)
        if known is None:
            known = self._remember(self._read, within, self._source.rights(self._user.name, within, self._groups()))
        return known

    def _on_database(self, database: SecuredObject) -> _IndexedRights:
        """The rights on the database itself, and some of those on its tables, if any. A user who owns thousands of
        tables has them read when it lists them, not each time it asks for the database."""
        in_part = self._read_in_part
        known = self._read.get(database) or in_part.get(METASTORE) or in_part.get(database)
        if known is not None:
            return known
        found = self._source.rights(self._user.name, database, self._groups(), at_most=MAX_READ_AT_FIRST)
        if found.is_whole:
            return self._remember(self._read, database, found)
        known = self._remember(self._read_in_part, database, found)
        # Rights that were read may belong to others whose names the collation considers equal to the user's.
        return known if known.has_any_in(database) else self._rights(database)

    def _on_tables(self, database: SecuredObject, names: set[str]) -> None:
        """Reads the rights on these tables together; if too many (`MAX_TABLES_TOGETHER`), on all of the database."""
        read = self._read
        if METASTORE in read or self._on_database(database) is read.get(database):
            return
        missing = {database._replace(table=name) for name in names} - read.keys()
        if len(missing) > MAX_TABLES_TOGETHER:
            self._rights(database)
        elif missing:
            self._read_together(database, missing)

    def _read_together(self, database: SecuredObject, missing: set[SecuredObject]) -> None:
        names = frozenset(one.table or "" for one in missing)
        found = self._source.rights_on_tables(self._user.name, database, names, self._groups())
        of_all: list[Right] = []
        of_each: dict[SecuredObject, list[Right]] = {one: [] for one in missing}
        for right in found.rights:
            (of_all if right.of.table is None else of_each[right.of]).append(right)
        for one, rights in of_each.items():
            of_this = Rights(found.roles, frozenset((*of_all, *rights)), found.tables & {one})
            self._remember(self._read, one, of_this)

    def _by_database(self) -> _IndexedRights:
        """Like `_on_database`, for all databases."""
        known = self._read.get(METASTORE) or self._read_in_part.get(METASTORE)
        if known is None:
            found = self._source.rights_by_database(self._user.name, self._groups())
            known = self._remember(self._read_in_part, METASTORE, found)
        return known

    def _remember(
        self, places: dict[SecuredObject, _IndexedRights], within: SecuredObject, found: Rights
    ) -> _IndexedRights:
        if len(self._read) + len(self._read_in_part) >= MAX_PLACES:
            self._read.clear()
            self._read_in_part.clear()
            self.held = 0
        known = places[within] = _IndexedRights(found)
        self.held += _PARTS_OF_A_PLACE + len(found.rights) + len(found.tables)
        return known

    def _groups(self) -> frozenset[str]:
        """The user's groups. Raises UndecidedError."""
        found = self._user.token_groups | self._user.directory_groups()
        if len(found) > MAX_GROUPS:
            raise UndecidedError(f"the user is in more than {MAX_GROUPS} groups")
        return found
