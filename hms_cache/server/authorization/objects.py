"""The objects that a request is about: everything that it names, wherever the name stands.

A request can name a table in several places, and handlers do not all read the same one. So all names count: each named
database is combined with each table named beside it, and with each named catalog. A request that names different
objects in different places needs the right on all of them. Requests of real clients name one.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from thrift.Thrift import TType

from hms_cache.authorization.decisions import SecuredObject
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_identifier
from hms_cache.store.transactions.names import split_full_table_name
from hms_cache.thrift_gen.hive_metastore.ttypes import CreationMetadata, MetaException, Table
from hms_cache.values import frozen
from hms_cache.wire.versions import parse_database_name

CATALOGS = frozenset({"catName", "cat_name", "catalog", "catalogName", "catname"})
DATABASES = frozenset({"dbName", "db_name", "dbname", "database", "databaseName", "db", "table_db", "oldDbName"})
TABLES = frozenset(
    {
        *("tableName", "tablename", "table_name", "table", "tblName", "tblname", "tbl_name", "tbName"),
        *("tblNames", "tbl_names"),
    }
)
PAIRS = (
    ("source_db", "source_table_name"),
    ("dest_db", "dest_table_name"),
    ("fktable_db", "fktable_name"),
    ("foreign_db_name", "foreign_tbl_name"),
    ("parent_db_name", "parent_tbl_name"),
)
"""A database and a table that belong together, and to no other names in the struct."""

REFERENCED = ("pktable_db", "pktable_name")
"""The table that a foreign key refers to. It is only read."""

FEW_CATALOGS = 2
MAX_WITH_CATALOGS = 100_000
"""Objects that a request may be about if it names several catalogs, since each table counts in each catalog. Real
clients name one; a list of partitions could name as many catalogs as it has tables."""

QUALIFIED = frozenset({"fullTableNames"})
"""Lists of `database.table`, with or without a catalog in front. Transactions know no catalogs."""

NAMED: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType(
    {
        ("Database", "name"): DATABASES,
        ("get_database_args", "name"): DATABASES,
        ("GetDatabaseRequest", "name"): DATABASES,
        ("drop_database_args", "name"): DATABASES,
        ("DropDatabaseRequest", "name"): DATABASES,
        ("drop_table_args", "name"): TABLES,
        ("drop_table_with_environment_context_args", "name"): TABLES,
        ("Catalog", "name"): CATALOGS,
        ("GetCatalogRequest", "name"): CATALOGS,
        ("DropCatalogRequest", "name"): CATALOGS,
        ("AlterCatalogRequest", "name"): CATALOGS,
    }
)
"""What a field of this name means in certain structs. In all others it names nothing that is checked."""


@frozen
class _Plan:
    """The fields of a struct that hold a name, and those that hold structs in which there may be one."""

    catalogs: tuple[str, ...]
    databases: tuple[str, ...]
    tables: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    qualified: tuple[str, ...]
    refers: bool
    structs: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not any(
            (self.catalogs, self.databases, self.tables, self.pairs, self.qualified, self.refers, self.structs)
        )


def role_of(struct: str, field: str) -> frozenset[str] | None:
    """CATALOGS, DATABASES or TABLES if a text field names one; None if it names none of them."""
    if field == "name":
        return NAMED.get((struct, field))
    return next((role for role in (CATALOGS, DATABASES, TABLES) if field in role), None)


_PLANS: dict[type, _Plan] = {}


def _plan(struct: type) -> _Plan:
    plan = _PLANS.get(struct)
    if plan is None:
        plan = _PLANS[struct] = _make_plan(struct, frozenset())
    return plan


def _make_plan(struct: type[Any], within: frozenset[type[Any]]) -> _Plan:
    roles: dict[frozenset[str], list[str]] = {CATALOGS: [], DATABASES: [], TABLES: []}
    texts, structs = [], []
    for field in filter(None, struct.thrift_spec):
        kind, inner = _element(field[1], field[3])
        if kind == TType.STRUCT:
            if inner not in within and not _make_plan(inner, within | {struct}).is_empty:
                structs.append(field[2])
        elif kind == TType.STRING:
            texts.append(field[2])
            role = role_of(struct.__name__, field[2])
            if role is not None:
                roles[role].append(field[2])
    return _Plan(
        tuple(roles[CATALOGS]),
        tuple(roles[DATABASES]),
        tuple(roles[TABLES]),
        tuple(pair for pair in PAIRS if pair[0] in texts),
        tuple(name for name in texts if name in QUALIFIED),
        REFERENCED[0] in texts,
        tuple(structs),
    )


def _element(kind: int, arguments: Any) -> tuple[int, type[Any]]:
    """The type of the elements of a list or set, otherwise the field's own type, with the class if it is a struct."""
    while kind in (TType.LIST, TType.SET) and arguments:
        kind, arguments = arguments[0], arguments[1]
    return kind, arguments[0] if kind == TType.STRUCT else object


class _Found:
    """Collects the names in a request."""

    def __init__(self) -> None:
        self.catalogs: set[str] = set()
        self.tables: set[tuple[str | None, str]] = set()
        self.databases: set[str] = set()
        self.referenced: set[tuple[str | None, str | None]] = set()
        self.sources: set[SecuredObject] = set()

    def collect(
        self, struct: Any, catalogs: tuple[str, ...], databases: tuple[str, ...], tables: tuple[str, ...]
    ) -> None:
        """Takes the names of a struct. Names that it lacks are those of the enclosing struct."""
        plan = _plan(type(struct))
        named = tuple(_fold(text) for text in _texts(struct, plan.catalogs))
        here: list[str] = []
        marked: list[str] = []
        """The catalog in each name of a database; empty where there is none, and the catalog is named elsewhere."""
        for text in _texts(struct, plan.databases):
            self._add_database(text, here, marked)
        pairs = [self._pair(struct, pair, marked) for pair in plan.pairs]
        referenced = self._pair(struct, REFERENCED, marked) if plan.refers else None
        own_tables = tuple(_texts(struct, plan.tables))
        qualified = [split_full_table_name(text) for text in _texts(struct, plan.qualified)]
        names_any = bool(here or own_tables or any(pairs) or referenced or qualified)
        self.catalogs.update(named, filter(None, marked))
        if names_any and not named and not all(marked or ("",)):
            self.catalogs.update(catalogs or (DEFAULT_CATALOG,))
        self.databases.update(here)
        if here or own_tables:
            for of in here or databases or (None,):
                for table in own_tables or tables:
                    self._add_table(of, table)
        for pair in filter(None, pairs):
            if pair[1] is not None:
                self._add_table(pair[0], pair[1])
            elif pair[0] is not None:
                self.databases.add(pair[0])
        if referenced is not None:
            self.referenced.add((referenced[0], _fold(referenced[1]) if referenced[1] is not None else None))
        for database, table in qualified:
            self._add_table(_fold(database), table)
        # A catalog inside a name belongs to that name. Whether it also counts for nested structs differs between
        # handlers.
        inherited = (*named, *filter(None, marked), DEFAULT_CATALOG) if any(marked) else named or catalogs
        around = (inherited, tuple(here) or databases, own_tables or tables)
        if isinstance(struct, CreationMetadata):
            self._collect_sources(struct)
            return
        for name in plan.structs:
            for inner in _structs(getattr(struct, name)):
                self.collect(inner, *around)

    def _collect_sources(self, metadata: CreationMetadata) -> None:
        """The sources of a materialized view are read, and cannot be dropped as long as the view exists.

        A source is in the catalog of the view, whatever catalog the request names. A name of three parts, or with a
        catalog mark, has a catalog of its own: the right is needed in both.
        """
        own = _fold(metadata.catName or DEFAULT_CATALOG)
        for text in metadata.tablesUsed or ():
            self.sources.add(SecuredObject(own, *split_full_table_name(text)))
            parts = list(map(_fold, text.split(".")))
            self.sources.add(SecuredObject(parts[0] if len(parts) == 3 else own, *parts[-2:]))
        for source in metadata.sourceTables or ():
            if source.table is not None:
                marked, database = parse_database_name(source.table.dbName, own)
                of_source = _fold(database or ""), _fold(source.table.tableName or "")
                self.sources |= {SecuredObject(own, *of_source), SecuredObject(_fold(marked), *of_source)}

    def _add_database(self, text: str, found: list[str], marked: list[str]) -> None:
        # A default that no catalog has shows whether the text names one.
        catalog, database = parse_database_name(text, "")
        marked.append(_fold(catalog))
        if database is not None:
            found.append(_fold(database))

    def _pair(self, struct: Any, pair: tuple[str, str], marked: list[str]) -> tuple[str | None, str | None] | None:
        database, table = getattr(struct, pair[0]), getattr(struct, pair[1])
        if database is None and table is None:
            return None
        found: list[str] = []
        if isinstance(database, str):
            self._add_database(database, found, marked)
        return (found[0] if found else None, table)

    def _add_table(self, database: str | None, text: str) -> None:
        self.tables.add((database, _fold(text)))
        if "." in text:  # `get_fields` of `table.column` is about the table
            self.tables.add((database, _fold(text.partition(".")[0])))


class Named(NamedTuple):
    """What a request is about."""

    objects: frozenset[SecuredObject]
    """The tables that it names. Without tables the databases, without databases the catalogs, otherwise nothing."""
    referenced: frozenset[SecuredObject]
    """Other tables that it refers to."""


def objects_of(arguments: Any) -> Named:
    """The objects that a request names.

    Raises MetaException for a database with a catalog mark but without a catalog, for a full name without a database,
    and for too many catalogs.
    """
    found = _Found()
    found.collect(arguments, (), (), ())
    referenced = _in_each(found.catalogs, found.referenced) | found.sources
    names: list[tuple[str | None, str | None]] = []
    if found.tables:
        # A database that is named alone in one place counts, even if another place names tables of other databases.
        of_tables = {database for database, _ in found.tables}
        alone = ((database, None) for database in found.databases if database not in of_tables)
        names = [*found.tables, *alone]
    elif found.databases:
        names = [(database, None) for database in found.databases]
    else:
        return Named(frozenset(SecuredObject(catalog) for catalog in found.catalogs), referenced)
    return Named(_in_each(found.catalogs, names), referenced)


def as_sent(arguments: Any, of: SecuredObject) -> SecuredObject:
    """An object that a request names, with the spelling of the request, which error texts for missing objects use."""
    sent: dict[str, str] = {}

    def note(part: str, text: str) -> None:
        if part not in sent and _fold(text) == getattr(of, part):
            sent[part] = text

    structs = list(_structs([getattr(arguments, name) for name in _plan(type(arguments)).structs]))
    for struct in [arguments, *structs]:
        plan = _plan(type(struct))
        for text in _texts(struct, plan.catalogs):
            note("catalog", text)
        for text in _texts(struct, plan.databases):
            catalog, database = parse_database_name(text, "")
            note("catalog", catalog)
            note("database", database or "")
        for text in _texts(struct, plan.tables):
            note("table", text)
            note("table", text.partition(".")[0])  # `get_fields` of `table.column` is about the table
        if len(sent) == len(of):
            break
    return of._replace(**sent)


def constrained_beside(table: Table, constraints: Iterable[Any]) -> frozenset[SecuredObject]:
    """The tables of the constraints in a request that creates a table: each constraint names its own.

    A constraint without a catalog is in that of the table. Raises MetaException as `objects_of`.
    """
    found: set[SecuredObject] = set()
    for constraint in constraints:
        if constraint.catName is None:
            constraint = copy.copy(constraint)
            constraint.catName = table.catName
        found |= objects_of(constraint).objects
    return frozenset(found - objects_of(table).objects)


def named_objects(arguments: Any) -> tuple[str, ...]:
    """The same as a text, for logs. Empty for a request that cannot be read."""
    try:
        named = objects_of(arguments)
    except MetaException:
        return ()
    return tuple(sorted(str(one) for one in named.objects | named.referenced))


def _in_each(catalogs: Collection[str], names: Collection[tuple[str | None, str | None]]) -> frozenset[SecuredObject]:
    """Raises MetaException for too many."""
    if len(catalogs) > FEW_CATALOGS and len(catalogs) * len(names) > MAX_WITH_CATALOGS:
        raise MetaException(f"The request names {len(catalogs)} catalogs beside {len(names)} tables or databases")
    return frozenset(SecuredObject(catalog, *name) for name in names for catalog in catalogs)


def _fold(text: str) -> str:
    return normalize_identifier(text) or ""


def _texts(struct: Any, fields: tuple[str, ...]) -> Iterator[str]:
    for name in fields:
        value = getattr(struct, name)
        if isinstance(value, str):
            # Handlers treat an empty catalog as absent, which means the default catalog.
            yield value or (DEFAULT_CATALOG if name in CATALOGS else "")
        elif value is not None:
            yield from (text for text in value if isinstance(text, str))


def _structs(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _structs(one)
    elif value is not None:
        yield value
