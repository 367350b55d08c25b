"""Finds directories that other objects of the metastore use, too: those are not deleted, emptied or moved.

Hive's schema has no index on locations. If a directory follows from the name of only one object, indexed columns of
names prove that. For any other directory the locations of all tables are read, in primary key order, if there are at
most `warehouse.shared_location_max_tables`; partitions, of which there may be millions, are never read. If there are
more tables, every such directory counts as shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, or_, select

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG, LIKE_ESCAPE, table_directory_name
from hms_cache.store.engine.bulk_writes import in_ids
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import CTLGS, DBS, PARTITIONS, SDS, TBLS
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, MetaException, Table

SHARED = "other objects lie there, too (or there are more tables than warehouse.shared_location_max_tables)"

_LOCATIONS_IN_CONDITION = 50
"""Directories in the condition of one statement. Each is a few terms, and SQLite limits the nesting to 1,000."""

_TABLES_AT_ONCE = 5_000
"""Tables whose locations one statement compares."""

_NAMES_AT_ONCE = 500

_WITH_KEYS = ("s3a", "s3", "s3n")
"""Schemes whose locations may contain the keys of an account, which a comparison cannot predict."""

_DESCRIPTORS = select(TBLS.c.SD_ID).where(TBLS.c.SD_ID.is_not(None)).order_by(TBLS.c.TBL_ID)


def locations_in_use(
    context: StoreContext, connection: Connection, places: Iterable[Location], *, except_table: int | None = None
) -> set[Location]:
    """The directories that another object of the metastore uses.

    A directory is used if a database, catalog or table lies at it or below it, or if it lies inside a table's
    directory. Objects that the transaction has deleted do not count, nor does the table with the TBL_ID `except_table`.
    Reads the locations of all databases and tables, in a number of statements that
    `warehouse.shared_location_max_tables` limits. If there are more tables, all directories count as used.
    """
    requested = list(dict.fromkeys(places))
    if not requested:
        return set()
    found: set[Location] = set()
    features = features_of(connection)
    tables = _DESCRIPTORS if except_table is None else _DESCRIPTORS.where(TBLS.c.TBL_ID != except_table)
    limit = context.warehouse.settings.shared_location_max_tables
    descriptors = connection.execute(tables.limit(limit + 1)).scalars().all()
    if len(descriptors) > limit:
        return set(requested)
    for some in batches(requested, _LOCATIONS_IN_CONDITION):
        for column in (DBS.c.DB_LOCATION_URI, DBS.c.DB_MANAGED_LOCATION_URI, CTLGS.c.LOCATION_URI):
            if features.has(column):
                condition = or_(*(_touches(column, place, with_ancestors=False) for place in some))
                texts = connection.execute(select(column).where(condition)).scalars()
                found.update(_used(some, texts, with_ancestors=False))
        condition = or_(*(_touches(SDS.c.LOCATION, place, with_ancestors=True) for place in some))
        statement = select(SDS.c.LOCATION).where(in_ids(SDS.c.SD_ID), condition)
        for ids in batches(descriptors, _TABLES_AT_ONCE):
            texts = connection.execute(statement, {"ids": list(ids)}).scalars()
            found.update(_used(some, texts, with_ancestors=True))
    return found


def _used(places: Sequence[Location], texts: Iterable[str | None], *, with_ancestors: bool) -> set[Location]:
    found: set[Location] = set()
    compared = [(place, place.spellings[0]) for place in places]
    for text in texts:
        try:
            other = Location.parse(text or "").spellings[0]
        except MetaException:
            continue
        found.update(
            place
            for place, same in compared
            if other == same or other.is_inside(same) or (with_ancestors and same.is_inside(other))
        )
    return found


def _touches(column: ColumnElement[str], place: Location, *, with_ancestors: bool) -> ColumnElement[bool]:
    at, patterns = set[str](), set[str]()
    for same in place.spellings:
        own = _texts(same)
        at |= own.union(*map(_texts, same.ancestors if with_ancestors else ()))
        below = {f"{_like(text.rstrip('/'))}/%" for text in own}
        patterns |= below
        if same.scheme in _WITH_KEYS and "@" not in same.authority:
            patterns.update(text.replace("://", "://%@", 1) for text in (*below, *map(_like, own)))
    return or_(column.in_(sorted(at)), *(column.like(text, escape=LIKE_ESCAPE) for text in sorted(patterns)))


def _texts(place: Location) -> set[str]:
    """The spellings in which a database may store the location; for a bucket also without the slash of its root."""
    texts = {str(place), place.url}
    return texts | {text.rstrip("/") for text in texts if place.is_root and place.authority}


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def partitions_inside(connection: Connection, tables: Sequence[int], places: Iterable[Location]) -> Iterator[Location]:
    """The directories in which partitions of these tables (TBL_ID) lie. Each directory costs one scan of the tables'
    partitions."""
    for place in places if tables else ():
        statement = (
            select(PARTITIONS.c.PART_ID)
            .join(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID)
            .where(in_ids(PARTITIONS.c.TBL_ID), _touches(SDS.c.LOCATION, place, with_ancestors=False))
            .limit(1)
        )
        if connection.execute(statement, {"ids": list(tables)}).first() is not None:
            yield place


def own_locations(
    context: StoreContext, connection: Connection, tables: Iterable[tuple[Table, Location]]
) -> set[Location]:
    """The directories that follow only from the name of the table given with each: nothing else can use them by
    default.

    For a table of the default catalog in its database's default directory, no statement is needed. For others, the
    locations of the databases are read, and tables whose names lead to the same directory, or to one around it, are
    looked up by name: two statements, and one more per 500 names.
    """
    own: set[Location] = set()
    others: list[tuple[Table, Location]] = []
    for table, location in tables:
        if _is_default_location(context, table, location):
            own.add(location)
        else:
            others.append((table, location))
    if not others:
        return own
    databases = _read_databases(context, connection)
    candidates: dict[Location, set[tuple[int, str]]] = {}
    for table, location in others:
        found = _rivals(databases, table, location.spellings[0])
        if found is not None:
            candidates[location] = found
    in_use = _existing(connection, set().union(*candidates.values()))
    own.update(location for location, rivals in candidates.items() if not rivals & in_use)
    return own


def _is_default_location(context: StoreContext, table: Table, location: Location) -> bool:
    catalog = table.catName or DEFAULT_CATALOG
    return catalog == DEFAULT_CATALOG and location in context.warehouse.default_locations(table.dbName, table.tableName)


_Databases = list[tuple[int, str, str, tuple[Location, ...]]]
"""DB_ID, catalog, name, and the directories in which the database's tables lie by default, each in its first
spelling."""


def _read_databases(context: StoreContext, connection: Connection) -> _Databases:
    managed: Any = features_of(connection).column(DBS.c.DB_MANAGED_LOCATION_URI)
    statement = select(DBS.c.DB_ID, DBS.c.CTLG_NAME, DBS.c.NAME, DBS.c.DB_LOCATION_URI, managed.label("MANAGED"))
    found: _Databases = []
    for row in connection.execute(statement):
        database = Database(
            name=row.NAME, catalogName=row.CTLG_NAME, locationUri=row.DB_LOCATION_URI, managedLocationUri=row.MANAGED
        )
        try:
            roots = (
                context.warehouse.managed_database_location(database),
                context.warehouse.external_database_location(database),
                context.warehouse.database_location(database),
            )
        except MetaException:
            continue  # an invalid location, written by another program
        found.append((row.DB_ID, row.CTLG_NAME, row.NAME, tuple(dict.fromkeys(root.spellings[0] for root in roots))))
    return found


def _rivals(databases: _Databases, table: Table, location: Location) -> set[tuple[int, str]] | None:
    """DB_ID and name of the tables whose default directory is this directory (in its first spelling) or one around it.

    None if the directory is not the table's own default, if a database lies there, or if names cannot decide.
    """
    rivals: set[tuple[int, str]] = set()
    is_own = False
    for database_id, catalog, name, roots in databases:
        is_of_table = (catalog, name) == (table.catName or DEFAULT_CATALOG, table.dbName)
        for root in roots:
            if root == location or root.is_inside(location):
                return None
            if not location.is_inside(root):
                continue
            part = location.path[len(root.path.rstrip("/")) + 1 :].split("/")[0]
            is_its = root.child(part) == location and part == table_directory_name(table.tableName)
            if is_of_table and is_its:
                is_own = True
            elif is_its:
                rivals.add((database_id, table.tableName))
            elif part == table_directory_name(part):
                rivals.add((database_id, part))
            elif "-" in part:
                return None  # a name with special characters cannot be derived from the directory
    return rivals if is_own else None


def _existing(connection: Connection, tables: set[tuple[int, str]]) -> set[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    by_id = sorted(tables)
    for some in batches(by_id, _NAMES_AT_ONCE):
        statement = select(TBLS.c.DB_ID, TBLS.c.TBL_NAME).where(
            TBLS.c.TBL_NAME.in_(sorted({name for _, name in some})),
            TBLS.c.DB_ID.in_(sorted({database_id for database_id, _ in some})),
        )
        found.update((row.DB_ID, row.TBL_NAME) for row in connection.execute(statement))
    return found & tables


def partition_locations_in_use(
    context: StoreContext, connection: Connection, row: TableRow, places: Sequence[Location]
) -> set[Location]:
    """The directories of a table's partitions that other objects use.

    No statement is needed for directories inside the table's default directory: names decide.
    """
    root = context.warehouse.location(row.table.sd.location) if row.table.sd and row.table.sd.location else None
    if (
        root is not None
        and root not in own_locations(context, connection, [(row.table, root)])
        and locations_in_use(context, connection, [root], except_table=row.table_id)
    ):
        return set(places)
    elsewhere = [place for place in places if root is None or not (place == root or place.is_inside(root))]
    return locations_in_use(context, connection, elsewhere, except_table=row.table_id)
