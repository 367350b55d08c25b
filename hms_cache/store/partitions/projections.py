"""Projections of partitions: sets only the requested fields.

Facts: `PartitionProjectionEvaluator`, `GetProjectionsSpec` (Hive 4.0.1).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from thrift.Thrift import TType

from hms_cache.expressions.like_pattern import LikePattern, sql_pattern
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store.contract.partitions import PartitionProjection
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Partition

_Tree = dict[str, "_Tree"]

_FIELDS = frozenset(
    {
        *("catName", "createTime", "dbName", "lastAccessTime", "parameters", "sd", "tableName", "values", "writeId"),
    }
)
"""The stored fields of a partition. The other fields of the struct belong to replies to other requests."""

_DEEPEST = 5
"""Parts into which a path is split at most; valid paths have up to three. Each part takes 100 bytes or more of
memory."""

_LONGEST_REPORTED = 200
"""Characters of an invalid path that an exception quotes."""

_MAX_SHOWN = 20
"""Invalid paths that an exception lists."""


def project_partitions(partitions: list[Partition], projection: PartitionProjection) -> list[Partition]:
    """The partitions with only the requested fields and parameters set.

    A field is named by its path (`sd.serdeInfo.serializationLib`); no fields means all. Raises MetaException for a path
    that a partition does not have, even if there are no partitions.
    """
    tree = _tree(projection.fields)
    include, exclude = _like(projection.include_parameters), _like(projection.exclude_parameters)
    answer = []
    for partition in partitions:
        kept = _kept(partition, tree)
        if kept.parameters is not None and (include is not None or exclude is not None):
            kept.parameters = {
                key: value
                for key, value in kept.parameters.items()
                if (include is None or include.matches(key)) and not (exclude is not None and exclude.matches(key))
            }
        answer.append(kept)
    return answer


def _tree(paths: Sequence[str]) -> _Tree:
    """The paths as a tree. A field that is requested as a whole has an empty subtree, even if parts of it are requested
    as well."""
    tree: _Tree = {}
    unknown: dict[str, None] = {}
    for path in paths:
        parts = path.split(".", _DEEPEST)
        if not _is_path(parts):
            unknown[path[:_LONGEST_REPORTED]] = None
            continue
        branch = tree
        for part in parts[:-1]:
            if branch.get(part) == {}:
                break
            branch = branch.setdefault(part, {})
        else:
            branch[parts[-1]] = {}
    if unknown:
        text = ", ".join(sorted(unknown)[:_MAX_SHOWN])
        raise MetaException(f"Invalid partition fields in the projection spec[{text}]")
    return tree


def _is_path(parts: Sequence[str]) -> bool:
    """Whether partitions have a field with this path."""
    if parts[0] not in _FIELDS:
        return False
    struct: Any = Partition
    for part in parts:
        fields = {entry[2]: entry for entry in getattr(struct, "thrift_spec", ()) if entry is not None}
        if part not in fields:
            return False
        _, kind, _, description, *_ = fields[part]
        if kind == TType.LIST:
            kind, description = description[0], description[1]
        struct = description[0] if kind == TType.STRUCT else None
    return True


def _kept(struct: Any, tree: _Tree) -> Any:
    """A copy of a struct, or of each struct in a list, with only the fields of the tree set."""
    if struct is None:
        return None
    if isinstance(struct, list):
        return [_kept(element, tree) for element in struct]
    kept = copy.copy(struct)
    for name in (entry[2] for entry in struct.thrift_spec if entry is not None) if tree else ():
        inner = tree.get(name)
        if inner is None:
            setattr(kept, name, None)
        elif inner:
            setattr(kept, name, _kept(getattr(struct, name), inner))
    return kept


def _like(pattern: str | None) -> LikePattern | None:
    """Raises MetaException for a pattern longer than patterns of names may be; parameter keys are not longer than
    names."""
    if not pattern:
        return None
    most = input_limits().name_pattern_characters
    if len(pattern) > most:
        setting = exceeded("name_pattern_characters")
        raise MetaException(f"A pattern of parameters has {len(pattern)} characters; {most} are allowed ({setting})")
    return sql_pattern(pattern)
