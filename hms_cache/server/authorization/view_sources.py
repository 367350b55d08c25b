"""The sources of materialized views in answers about the views: they contain whole tables.

A user who may read a view may not necessarily read its sources. It sees their names, which are in the text of the view
as well, and how many rows have changed. The rest of these tables is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from hms_cache.authorization.decisions import Action, Decisions, SecuredObject
from hms_cache.cache.encoded_tables import EncodedTables
from hms_cache.thrift_gen.hive_metastore.ttypes import SourceTable, Table

OfTable = Callable[[Table], SecuredObject]


def without_hidden_sources(decisions: Decisions, tables: list[Table], of: OfTable) -> list[Table]:
    """The same list if it holds nothing that may not be read; tables in it are copied, never changed."""
    inspected = tables.frozen if isinstance(tables, EncodedTables) and tables.is_encoded else tables
    sources = [source for table in inspected for source in _sources(table)]
    if not sources:
        return tables
    objects = {of(source.table) for source in sources}
    decisions.prepare([(Action.READ, one) for one in sorted(objects, key=str)])
    hidden = {one for one in objects if not decisions.allow(Action.READ, one)}
    if not hidden:
        return tables
    return [_named_only(table, lambda one: of(one) in hidden) for table in list(tables)]


def _sources(table: Table) -> Sequence[SourceTable]:
    metadata = table.creationMetadata
    found = metadata.sourceTables if metadata is not None else None
    return [one for one in found or () if one.table is not None]


def _named_only(view: Table, is_hidden: Callable[[Table], bool]) -> Table:
    sources = _sources(view)
    if not any(is_hidden(one.table) for one in sources):
        return view
    shown, metadata = copy.copy(view), copy.copy(view.creationMetadata)
    assert metadata is not None, "it holds sources"
    metadata.sourceTables = [_with_name(one) if is_hidden(one.table) else one for one in sources]
    shown.creationMetadata = metadata
    return shown


def _with_name(source: SourceTable) -> SourceTable:
    table, shown = source.table, copy.copy(source)
    names: dict[str, Any] = {"catName": table.catName, "dbName": table.dbName, "tableName": table.tableName}
    shown.table = Table(**names, parameters={}, partitionKeys=[])
    return shown
