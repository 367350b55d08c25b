"""Parts of partitions: what a projection asks for is kept, the rest is left unset.

Facts: `PartitionProjectionEvaluator`, `GetProjectionsSpec` (Hive 4.0.1).
"""

from __future__ import annotations

import copy
from typing import Any

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
"""What is stored of a partition. The other fields of the struct are of answers to other requests."""

_DEEPEST = 5
"""Parts of a path. A part of one character would take some hundred bytes of memory: paths of fields have three."""

_LONGEST_TOLD = 200
"""Characters of a wrong path."""


def project_partitions(partitions: list[Partition], projection: PartitionProjection) -> list[Partition]:
    """The partitions with only the asked fields set, and only the asked parameters.

    A field is named by its path (`sd.serdeInfo.serializationLib`); no fields means all. Raises MetaException for a path
    that a partition does not have.
    """
    tree: _Tree = {}
    for path in projection.fields:
        branch = tree
        parts = path.split(".", _DEEPEST)
        if len(parts) > _DEEPEST:
            raise MetaException(f"Invalid partition projection field: {path[:_LONGEST_TOLD]}")
        for part in parts:
            branch = branch.setdefault(part, {})
    unknown = sorted(tree.keys() - _FIELDS)
    if unknown:
        raise MetaException(f"Invalid partition fields in the projection spec[{', '.join(unknown)}]")
    include, exclude = _like(projection.include_parameters), _like(projection.exclude_parameters)
    answer = []
    for partition in partitions:
        kept = _kept(partition, tree, "") if tree else copy.copy(partition)
        if kept.parameters is not None and (include is not None or exclude is not None):
            kept.parameters = {
                key: value
                for key, value in kept.parameters.items()
                if (include is None or include.matches(key)) and not (exclude is not None and exclude.matches(key))
            }
        answer.append(kept)
    return answer


def _kept(struct: Any, tree: _Tree, path: str) -> Any:
    if not tree or struct is None:
        return struct
    if isinstance(struct, list):
        return [_kept(element, tree, path) for element in struct]
    if not hasattr(struct, "thrift_spec"):
        return struct
    names = [entry[2] for entry in struct.thrift_spec if entry is not None]
    for name in tree:
        if name not in names:
            raise MetaException(f"Invalid partition projection field: {path}{name}")
    kept = copy.copy(struct)
    for name in names:
        setattr(kept, name, _kept(getattr(struct, name), tree[name], f"{path}{name}.") if name in tree else None)
    return kept


def _like(pattern: str | None) -> LikePattern | None:
    """Raises MetaException for a pattern that is longer than those of names may be: keys are as short."""
    if not pattern:
        return None
    most = input_limits().name_pattern_characters
    if len(pattern) > most:
        told = exceeded("name_pattern_characters")
        raise MetaException(f"A pattern of parameters has {len(pattern)} characters; {most} are allowed ({told})")
    return sql_pattern(pattern)
