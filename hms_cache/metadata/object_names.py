"""Full names of databases, tables and functions, in one form everywhere behind the handlers.

Names are normalized as by Hive's `StringUtils.normalizeIdentifier`: blanks stripped, lower case.

Hive's error texts name most objects as the request does, and clients search them for the names that they sent: Spark
recognizes by such a text that a function does not exist. So a name whose spelling in the request differs from the
stored one remembers it. It is equal to the same name without it, and has the same hash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.thrift_gen.hive_metastore.ttypes import Table


class DatabaseName(NamedTuple):
    """A database's full name, normalized."""

    catalog: str
    database: str

    @property
    def as_sent(self) -> DatabaseName:
        """As the request spells it, for error texts."""
        return self

    @property
    def as_stored(self) -> DatabaseName:
        """Without the request's spelling, for names that are kept."""
        return self

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}"


class TableName(NamedTuple):
    """A table's or view's full name, normalized as it is stored.

    Created once by the handlers from the request; behind them no other form of a name is used.
    """

    catalog: str
    database: str
    table: str

    @property
    def in_database(self) -> DatabaseName:
        return DatabaseName(self.catalog, self.database)

    @property
    def as_sent(self) -> TableName:
        """As the request spells it, for error texts."""
        return self

    @property
    def as_stored(self) -> TableName:
        """Without the request's spelling, for names that are kept."""
        return self

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.table}"


class FunctionName(NamedTuple):
    """A function's full name, normalized."""

    catalog: str
    database: str
    function: str

    @property
    def as_sent(self) -> FunctionName:
        """As the request spells it, for error texts."""
        return self


class _SpelledDatabase(DatabaseName):
    _spelling: DatabaseName

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> DatabaseName:  # type: ignore[override]  # `_replace`, too, makes another name
        return DatabaseName(*iterable)

    @property
    def as_sent(self) -> DatabaseName:
        return self._spelling

    @property
    def as_stored(self) -> DatabaseName:
        return DatabaseName(*self)


class _SpelledTable(TableName):
    _spelling: TableName

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> TableName:  # type: ignore[override]  # `_replace`, too, makes another name
        return TableName(*iterable)

    @property
    def in_database(self) -> DatabaseName:
        return database_name(self._spelling.catalog, self._spelling.database)

    @property
    def as_sent(self) -> TableName:
        return self._spelling

    @property
    def as_stored(self) -> TableName:
        return TableName(*self)


class _SpelledFunction(FunctionName):
    _spelling: FunctionName

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> FunctionName:  # type: ignore[override]  # `_replace`, too, makes another name
        return FunctionName(*iterable)

    @property
    def as_sent(self) -> FunctionName:
        return self._spelling


def database_name(catalog: str | None, database: str) -> DatabaseName:
    """The normalized name; no catalog means the default one."""
    sent = catalog or DEFAULT_CATALOG, database
    name = DatabaseName(normalize_catalog(sent[0]), normalize_identifier(database))
    if name == sent:
        return name
    spelled = _SpelledDatabase(*name)
    spelled._spelling = DatabaseName(*sent)
    return spelled


def table_name(catalog: str | None, database: str, table: str) -> TableName:
    """The normalized name; no catalog means the default one."""
    sent = catalog or DEFAULT_CATALOG, database, table
    name = TableName(normalize_catalog(sent[0]), normalize_identifier(database), normalize_identifier(table))
    if name == sent:
        return name
    spelled = _SpelledTable(*name)
    spelled._spelling = TableName(*sent)
    return spelled


def name_of_table(table: Table) -> TableName:
    """The normalized name of a table struct."""
    return table_name(table.catName, table.dbName, table.tableName)


def function_name(catalog: str | None, database: str, function: str) -> FunctionName:
    """The normalized name; no catalog means the default one."""
    sent = catalog or DEFAULT_CATALOG, database, function
    name = FunctionName(normalize_catalog(sent[0]), normalize_identifier(database), normalize_identifier(function))
    if name == sent:
        return name
    spelled = _SpelledFunction(*name)
    spelled._spelling = FunctionName(*sent)
    return spelled
