"""Which parts of an answer are shown, for requests that do not name the objects they ask for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import Any

from hms_cache.authorization.decisions import Action, Decisions, SecuredObject
from hms_cache.cache.encoded_tables import EncodedTables
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.server.authorization.view_sources import without_hidden_sources
from hms_cache.server.handlers.names import database_name, optional_database_name
from hms_cache.store.contract.tables import UsedByViews
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetFunctionsResponse,
    Table,
    UnknownDBException,
)

Filter = Callable[[Decisions, Any, Any], Any]
"""(decisions, arguments, the handler's answer) -> the part of it that is shown."""


def secured(catalog: str | None, database: str | None = None, table: str | None = None) -> SecuredObject:
    """The object that these names, as sent, denote."""
    catalog = normalize_catalog(catalog or DEFAULT_CATALOG)
    return SecuredObject(
        catalog,
        normalize_identifier(database) if database is not None else None,
        normalize_identifier(table) if table is not None else None,
    )


def readable_tables(decisions: Decisions, tables: list[Table]) -> list[Table]:
    """The names that may be read. Returns the same list if all may."""
    frozen = tables.frozen if isinstance(tables, EncodedTables) and tables.is_encoded else tables
    may = _readable(decisions, [_of_table(table) for table in frozen])
    return tables if all(may) else [table for table, shown in zip(list(tables), may, strict=True) if shown]


def readable_names(decisions: Decisions, database: DatabaseName, names: list[str]) -> list[str]:
    """The tables in the database that may be read."""
    return list(compress(names, _readable(decisions, [secured(*database, name) for name in names])))


def readable_views(decisions: Decisions, error: UsedByViews) -> UsedByViews:
    """The same refusal, naming only the views that may be read."""
    shown = list(compress(error.views, _readable(decisions, [secured(*view) for view in error.views])))
    return UsedByViews(shown, hides_others=len(shown) < len(error.views))


def _readable(decisions: Decisions, objects: Sequence[SecuredObject]) -> list[bool]:
    decisions.prepare([(Action.READ, one) for one in objects])
    return [decisions.allow(Action.READ, one) for one in objects]


def _shown(decisions: Decisions, objects: Sequence[SecuredObject]) -> list[bool]:
    decisions.prepare([(None, one) for one in objects])
    return [decisions.show(one) for one in objects]


def _names_of_tables(argument: str) -> Filter:
    """Filters a list of names in the database that an argument names."""

    def shown(decisions: Decisions, arguments: Any, names: list[str]) -> list[str]:
        return readable_names(decisions, database_name(getattr(arguments, argument)), names)

    return shown


def _of_table(table: Table) -> SecuredObject:
    return secured(table.catName, table.dbName, table.tableName)


def _tables(decisions: Decisions, arguments: Any, tables: list[Table]) -> list[Table]:
    return without_hidden_sources(decisions, readable_tables(decisions, tables), _of_table)


def _tables_of_result(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    """`Call.only_readable` has checked the tables already: an error may concern a single one."""
    if answer.tables:
        answer.tables = without_hidden_sources(decisions, answer.tables, _of_table)
    return answer


def _table(decisions: Decisions, arguments: Any, table: Table) -> Table:
    return without_hidden_sources(decisions, [table], _of_table)[0]


def _table_of_result(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    answer.table = _table(decisions, arguments, answer.table)
    return answer


def _extended_tables(decisions: Decisions, arguments: Any, found: list[Any]) -> list[Any]:
    catalog, database = database_name(arguments.req.database, arguments.req.catalog)
    return list(compress(found, _readable(decisions, [secured(catalog, database, one.tblName) for one in found])))


def _table_meta(decisions: Decisions, arguments: Any, found: list[Any]) -> list[Any]:
    catalog, _ = optional_database_name(arguments.db_patterns)
    objects = [secured(one.catName or catalog, one.dbName, one.tableName) for one in found]
    return list(compress(found, _readable(decisions, objects)))


def _names_of_databases(decisions: Decisions, arguments: Any, names: list[str]) -> list[str]:
    catalog, _ = optional_database_name(getattr(arguments, "pattern", None))
    return list(compress(names, _shown(decisions, [secured(catalog, name) for name in names])))


def _databases(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    shown = _shown(decisions, [secured(one.catalogName, one.name) for one in answer.databases])
    answer.databases = list(compress(answer.databases, shown))
    return answer


def _catalogs(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    answer.names = list(compress(answer.names, _shown(decisions, [secured(name) for name in answer.names])))
    return answer


def _functions(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    functions = answer.functions or []
    shown = _shown(decisions, [secured(one.catName, one.dbName) for one in functions])
    answer.functions = list(compress(functions, shown))
    return answer


def _as_it_is(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    """For answers about one database, which was checked before."""
    return answer


def foreign_keys(decisions: Decisions, arguments: Any, answer: Any) -> Any:
    """Leaves out foreign keys whose other table may not be read."""
    constraints = getattr(answer, "allTableConstraints", None)
    keys = (constraints or answer).foreignKeys or []
    referenced = _readable(decisions, [secured(key.catName, key.pktable_db, key.pktable_name) for key in keys])
    own = _readable(decisions, [secured(key.catName, key.fktable_db, key.fktable_name) for key in keys])
    shown = [key for key, *both in zip(keys, referenced, own, strict=True) if all(both)]
    if constraints is None:
        answer.foreignKeys = shown
    elif len(shown) < len(keys):
        # A copy: the constraints may be shared with memory, from which other reads are answered.
        answer.allTableConstraints = copy.copy(constraints)
        answer.allTableConstraints.foreignKeys = shown
    return answer


FILTERS: Mapping[str, Filter] = MappingProxyType(
    {
        "get_all_databases": _names_of_databases,
        "get_all_functions": _functions,
        "get_all_materialized_view_objects_for_rewriting": _tables,
        "get_all_table_constraints": foreign_keys,
        "get_all_tables": _names_of_tables("db_name"),
        "get_catalogs": _catalogs,
        "get_databases": _names_of_databases,
        "get_databases_req": _databases,
        "get_foreign_keys": foreign_keys,
        "get_functions": _as_it_is,
        "get_functions_req": _as_it_is,
        "get_materialized_views_for_rewriting": _names_of_tables("db_name"),
        "get_table": _table,
        "get_table_meta": _table_meta,
        "get_table_names_by_filter": _names_of_tables("dbname"),
        "get_table_objects_by_name": _tables,
        "get_table_objects_by_name_req": _tables_of_result,
        "get_table_req": _table_of_result,
        "get_tables": _names_of_tables("db_name"),
        "get_tables_by_type": _names_of_tables("db_name"),
        "get_tables_ext": _extended_tables,
    }
)
"""By method: all that are FILTERED, and those whose answers name objects other than the requested one."""


def _nothing(arguments: Any) -> Any:
    return []


def _no_functions(arguments: Any) -> GetFunctionsResponse:
    by_name = arguments.request.returnNames is None or arguments.request.returnNames
    return GetFunctionsResponse(function_names=[]) if by_name else GetFunctionsResponse(functions=[])


EMPTY: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "get_all_tables": _nothing,
        "get_functions": _nothing,
        "get_functions_req": _no_functions,
        "get_materialized_views_for_rewriting": _nothing,
        "get_table_names_by_filter": _nothing,
        "get_tables": _nothing,
        "get_tables_by_type": _nothing,
        "get_tables_ext": _nothing,
    }
)
"""Answers of methods that list the contents of one database, if the database is not shown: the same as for a missing
one."""


def check_named_database(decisions: Decisions, catalog: str, database: str) -> None:
    """For reads of several tables by name. Raises UnknownDBException, as for a database that is not there."""
    of = secured(catalog, database)
    if not decisions.show(of):
        name = f"{of.catalog}.{of.database}"
        raise UnknownDBException(f"Could not find database {name}: database {name}")
