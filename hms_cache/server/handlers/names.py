"""How requests name objects, in all spellings and versions, and the one form of names that is used after this.

From Hive 3 on, clients put `@catalog#db` into plain database arguments. Request structs carry the catalog in a field of
its own (`catName`, `catalogName`), some in both ways. An absent catalog means the default catalog `hive`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.metadata.object_names import database_name as named_database
from hms_cache.metadata.object_names import table_name as named_table
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions, Writer
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.thrift_gen.base import TBase
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException
from hms_cache.wire.versions import DEFAULT_CATALOG, parse_database_name


def database_name(text: str | None, catalog: str | None = None) -> DatabaseName:
    """The database that `text` names, without `@catalog#`. Raises MetaException if no database is named.

    The empty name is a name that no object has: the call decides what happens, as in Hive.
    """
    named_catalog, database = parse_database_name(text, catalog or DEFAULT_CATALOG)
    if database is None:
        raise MetaException("Database name cannot be null or empty")
    return named_database(named_catalog, database)


def optional_database_name(text: str | None, catalog: str | None = None) -> tuple[str, str | None]:
    """The same for calls that may leave the database open (None: every database)."""
    named_catalog, database = parse_database_name(text, catalog or DEFAULT_CATALOG)
    return named_catalog, database


def table_name(database: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """The table that the two arguments name. Raises MetaException if one is missing; an empty one is not missing."""
    named_catalog, named = parse_database_name(database, catalog or DEFAULT_CATALOG)
    if named is None:
        raise MetaException("Database name cannot be null or empty")
    if table is None:
        raise MetaException("Table name cannot be null or empty")
    return named_table(named_catalog, named, table)


def requested_table(request: TBase) -> TableName:
    """The table of a request struct, whatever the names of its fields are."""
    database = _any(request, "dbName", "dbname", "db_name", "databaseName")
    table = _any(request, "tblName", "tableName", "tbl_name", "tablename")
    return table_name(database, table, _any(request, "catName", "catalogName", "catname", "cat_name", "catalog"))


def is_of_table(error: NoSuchObjectException) -> bool:
    """Whether the error is about a missing table, and not about a missing partition or another object."""
    return (error.message or "").endswith(" table not found")


@contextmanager
def specified_table(name: TableName, *, keeps_blanks: bool = False) -> Iterator[None]:
    """In most of its handlers, Hive's text for a missing table differs from the store's, and Hive's tests check it: it
    contains the table as it would be stored or, in some calls, in lower case with the surrounding blanks."""
    try:
        yield
    except NoSuchObjectException as error:
        if not is_of_table(error):
            raise
        shown = str(name.as_sent).lower() if keeps_blanks else str(name)
        raise NoSuchObjectException(f"Specified catalog.database.table does not exist : {shown}") from error


def version(request: TBase) -> ReadVersion:
    """The request's write-id list and table id; an empty list and an id below 1 mean "not given"."""
    table_id = getattr(request, "id", None) or getattr(request, "tableId", None)
    return ReadVersion(
        getattr(request, "validWriteIdList", None) or None,
        table_id if isinstance(table_id, int) and table_id > 0 else None,
    )


def write_id(value: int | None) -> int | None:
    """A write id as a client gives it: values below 1 mean "not given"."""
    return value if value is not None and value > 0 else None


def writer(request: TBase, options: EnvironmentOptions = NO_OPTIONS) -> Writer:
    """The request's write id and write-id list, and what it asks for."""
    return Writer(
        write_id(getattr(request, "writeId", None)), getattr(request, "validWriteIdList", None) or None, options
    )


def _any(request: TBase, *fields: str) -> str | None:
    for field in fields:
        value = getattr(request, field, None)
        if value is not None:
            return str(value)
    return None
