"""Answers with only the fields that were asked (GetProjectionsSpec)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import StorageDescriptor, Table

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
    """A copy of a generated struct (or of each of a list) with only the fields of the tree set."""
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


def parameter_filter(include: str | None, exclude: str | None) -> Callable[[dict[str, str]], dict[str, str]]:
    """Keeps parameters whose key matches the SQL LIKE pattern `include` and not `exclude`."""
    included, excluded = (_like(pattern) if pattern else None for pattern in (include, exclude))

    def select(parameters: dict[str, str]) -> dict[str, str]:
        return {
            key: value
            for key, value in parameters.items()
            if (included is None or included.fullmatch(key)) and not (excluded is not None and excluded.fullmatch(key))
        }

    return select


def _like(pattern: str) -> re.Pattern[str]:
    text = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.compile(text, re.DOTALL)


def project_tables(tables: list[Table], specification: Any) -> list[Table]:
    """Tables by GetTablesRequest.projectionSpec; none asked means all fields."""
    if specification is None:
        return tables
    tree = field_tree(list(specification.fieldList or []))
    select = parameter_filter(specification.includeParamKeyPattern, specification.excludeParamKeyPattern)
    if tree:
        # Hive's clients cannot do without these: they build the object's name from them.
        for name in ("catName", "dbName", "tableName"):
            tree.setdefault(name, {})
    answer = []
    for table in tables:
        kept: Table = keep(table, tree) if tree else copy.copy(table)
        if kept.parameters:
            kept.parameters = select(kept.parameters)
        answer.append(kept)
    return answer


def without_columns(descriptor: StorageDescriptor) -> StorageDescriptor:
    """A copy of a storage descriptor without its columns (the shared descriptor of partition specs carries them)."""
    kept = copy.copy(descriptor)
    kept.cols = None
    return kept
