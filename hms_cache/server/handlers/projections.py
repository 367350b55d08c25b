"""Answers with only the requested fields (GetProjectionsSpec)."""

from __future__ import annotations

import copy
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidOperationException,
    MetaException,
    Table,
)

FieldTree = dict[str, "FieldTree"]


def field_tree(fields: list[str]) -> FieldTree:
    """`["sd.location", "values"]` as a tree; an empty branch means the whole field."""
    tree: FieldTree = {}
    for field in fields:
        branch = tree
        for part in field.split("."):
            branch = branch.setdefault(part, {})
    return tree


def keep(struct: Any, tree: FieldTree) -> Any:
    """A copy of a generated struct (or of each one in a list) with only the fields of the tree."""
    if isinstance(struct, list):
        return [keep(element, tree) for element in struct]
    if not hasattr(struct, "thrift_spec") or not tree:
        return struct
    kept = copy.copy(struct)
    for specification in struct.thrift_spec:
        if specification is None:
            continue
        name = specification[2]
        if name not in tree:
            setattr(kept, name, None)
        else:
            setattr(kept, name, keep(getattr(struct, name), tree[name]))
    return kept


_SINGLE_VALUED = frozenset(
    [
        "id",
        "tableName",
        "dbName",
        "owner",
        "ownerType",
        "createTime",
        "lastAccessTime",
        "retention",
        "tableType",
        "writeId",
        "rewriteEnabled",
        "viewOriginalText",
        "viewExpandedText",
        "sd.location",
        "sd.inputFormat",
        "sd.outputFormat",
        "sd.compressed",
        "sd.numBuckets",
        "sd.storedAsSubDirectories",
        "sd.serdeInfo.name",
        "sd.serdeInfo.serializationLib",
        "sd.serdeInfo.description",
        "sd.serdeInfo.serializerClass",
        "sd.serdeInfo.deserializerClass",
        "sd.serdeInfo.serdeType",
    ]
)
"""Fields of a table that can be requested one by one (Hive's `TableFields`)."""

_MULTI_VALUED = frozenset(
    [
        "values",
        "parameters",
        "partitionKeys.name",
        "partitionKeys.type",
        "partitionKeys.comment",
        "sd.cols.name",
        "sd.cols.type",
        "sd.cols.comment",
        "sd.serdeInfo.parameters",
        "sd.bucketCols",
        "sd.sortCols.col",
        "sd.sortCols.order",
        "sd.parameters",
        "sd.skewedInfo.skewedColNames",
        "sd.skewedInfo.skewedColValues",
        "sd.skewedInfo.skewedColValueLocationMaps",
    ]
)
"""Fields that may be requested as well, but for which whole tables are returned."""


def project_tables(tables: list[Table], specification: Any) -> list[Table]:
    """Tables by GetTablesRequest.projectionSpec; without fields, all fields are returned.

    Patterns of parameters are for partitions only: next to a list of fields Hive ignores them, without one it refuses
    them. Raises MetaException for an unknown field, InvalidOperationException for such patterns.
    """
    if specification is None:
        return tables
    patterns = (specification.includeParamKeyPattern, specification.excludeParamKeyPattern)
    if specification.fieldList is None and patterns != (None, None):
        raise InvalidOperationException("Include and Exclude Param key are not supported.")
    fields = list(specification.fieldList or ())
    unknown = sorted(set(fields) - _SINGLE_VALUED - _MULTI_VALUED)
    if unknown:
        raise MetaException(f"Invalid table fields in the projection spec [{', '.join(unknown)}]")
    if not fields or not _SINGLE_VALUED.issuperset(fields):
        return tables
    tree = field_tree(fields)
    return [_with_times(keep(table, tree)) for table in tables]


def _with_times(table: Table) -> Table:
    """Numbers in a Java table are always set, at least to 0, whether requested or not: Hive's client tests check
    that."""
    for field in ("createTime", "lastAccessTime", "retention"):
        if getattr(table, field) is None:
            setattr(table, field, 0)
    return table
