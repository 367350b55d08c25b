"""Full names of databases, tables and functions: one form of each behind the edge.

Names are normalized as Hive's `StringUtils.normalizeIdentifier` does: blanks cut, lower case.
"""

from __future__ import annotations

from typing import NamedTuple

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.thrift_gen.hive_metastore.ttypes import Table


class DatabaseName(NamedTuple):
    """A database, fully named, normalized."""

    catalog: str
    database: str


class TableName(NamedTuple):
    """A table or view, fully named, normalized: the form in which it is stored.

    The edge makes it of what a request says, once; behind the edge nobody spells a name in another way.
    """

    catalog: str
    database: str
    table: str

    @property
    def in_database(self) -> DatabaseName:
        return DatabaseName(self.catalog, self.database)

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.table}"


class FunctionName(NamedTuple):
    """A function, fully named, normalized."""

    catalog: str
    database: str
    function: str


def database_name(catalog: str | None, database: str) -> DatabaseName:
    """The normalized name; no catalog means the default one."""
    return DatabaseName(normalize_catalog(catalog) if catalog else DEFAULT_CATALOG, normalize_identifier(database))


def table_name(catalog: str | None, database: str, table: str) -> TableName:
    """The normalized name; no catalog means the default one."""
    return TableName(
        normalize_catalog(catalog) if catalog else DEFAULT_CATALOG,
        normalize_identifier(database),
        normalize_identifier(table),
    )


def name_of_table(table: Table) -> TableName:
    """The normalized name of a table that is at hand."""
    return table_name(table.catName, table.dbName, table.tableName)


def function_name(catalog: str | None, database: str, function: str) -> FunctionName:
    """The normalized name; no catalog means the default one."""
    return FunctionName(
        normalize_catalog(catalog) if catalog else DEFAULT_CATALOG,
        normalize_identifier(database),
        normalize_identifier(function),
    )
