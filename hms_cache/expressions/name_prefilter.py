"""LIKE patterns for the names of partitions that a filter may select.

`PARTITION_KEY_VALS` has a row per key and partition: to find one day of a large table there, the database reads the
rows of all days. If a filter determines the texts of the first keys, the names of its partitions begin with these
(`dt=2024-01-01/`), and the index on `PARTITIONS.PART_NAME` finds only those.

The patterns may match too many names, never too few; `evaluate` decides. Only texts that no writer escapes in a name
are used, since writers may escape other characters differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from hms_cache.expressions.bound import Bound, BoundAnd, BoundComparison, BoundIn, BoundNode
from hms_cache.expressions.key_types import KeyKind, KeyValue, PartitionKey, date_of
from hms_cache.expressions.tree import ComparisonOperator

LIKE_ESCAPE: Final = "!"

MAX_NAME_PATTERNS: Final = 50
"""Each is a range of the index. With more, this is no faster than the join with the key values."""

LONGEST_LIKE: Final = 10_000
"""Maximum length of a pattern before escaping: SQLite refuses 50,000 bytes. No name is that long."""

_NEVER_ESCAPED = re.compile(r"[A-Za-z0-9_.\-]+\Z")


def name_patterns(bound: Bound, keys: Sequence[PartitionKey]) -> tuple[str, ...] | None:
    """Patterns, escaped with `LIKE_ESCAPE`; the name of each selected partition matches one of them. None: unknown."""
    beginnings = name_beginnings(bound, keys)
    if beginnings is None:
        return None
    return tuple(_literal(text) if is_whole else f"{_literal(text)}%" for text, is_whole in beginnings)


def decides_by_patterns(bound: Bound, keys: Sequence[PartitionKey]) -> bool:
    """Whether few names match `name_patterns` without being selected: the filter only determines the texts of the first
    keys."""
    _, used = _beginnings(bound, keys)
    return used > 0 and all(
        (isinstance(node, BoundComparison) and node.operator is ComparisonOperator.EQUAL and node.index < used)
        or (isinstance(node, BoundIn) and not node.negated and node.index < used)
        for node in _conditions(bound)
    )


def name_beginnings(bound: Bound, keys: Sequence[PartitionKey]) -> tuple[tuple[str, bool], ...] | None:
    """Prefixes of names, or complete names (True): each selected partition has one of them. None: unknown."""
    return _beginnings(bound, keys)[0]


def _conditions(bound: Bound) -> Sequence[BoundNode]:
    return bound.root.children if isinstance(bound.root, BoundAnd) else (bound.root,)


def _beginnings(bound: Bound, keys: Sequence[PartitionKey]) -> tuple[tuple[tuple[str, bool], ...] | None, int]:
    """Like `name_beginnings`, with the number of keys in them."""
    conditions = _conditions(bound)
    begun = [""]
    used = 0
    for index, (key, _) in enumerate(keys):
        found = _components(bound, conditions, index)
        if found is None or not _NEVER_ESCAPED.match(key):
            break
        texts, is_whole = found
        if len(begun) * len(texts) > MAX_NAME_PATTERNS:
            break
        if max(map(len, begun)) + len(key) + max(map(len, texts)) > LONGEST_LIKE:
            break
        is_last = index == len(keys) - 1
        end = "/" if is_whole and not is_last else ""
        begun = [f"{start}{key.lower()}={text}{end}" for start in begun for text in texts]
        used += 1
        if is_last or not is_whole:
            return tuple((text, is_whole) for text in begun), used
    return tuple((text, False) for text in begun) if begun != [""] else None, used


def _components(bound: Bound, conditions: Iterable[BoundNode], index: int) -> tuple[list[str], bool] | None:
    """Possible texts of the key's component in a name, or prefixes of them (False)."""
    for node in conditions:
        match node:
            case BoundComparison(at, kind, ComparisonOperator.EQUAL, value) if at == index:
                found = _spellings(bound, kind, [value])
            case BoundIn(at, kind, values, False) if at == index:
                found = _spellings(bound, kind, sorted(values))
            case _:
                continue
        if found is not None:
            return found
    return None


def _spellings(bound: Bound, kind: KeyKind, values: Sequence[KeyValue]) -> tuple[list[str], bool] | None:
    if len(values) > MAX_NAME_PATTERNS:
        return None
    if kind is KeyKind.TEXT:
        texts = [str(value) for value in values]
        usable = all(_NEVER_ESCAPED.match(text) and text != bound.default_partition_name for text in texts)
        return (texts, True) if usable and texts else None
    if kind is KeyKind.DATE and not bound.is_expression and values:
        # The lenient mode accepts days and months without leading zeros, and a time of day after the date.
        return sorted({start for value in values for start in _dates(int(value))}), False
    return None


def _dates(days: int) -> list[str]:
    date = date_of(days)
    year, month, day = f"{date.year:04}", f"{date.month:02}", f"{date.day:02}"
    spellings = [f"{year}-{month}-{day}"]
    if date.month < 10:
        spellings.append(f"{year}-{date.month}-")
    if date.day < 10:
        spellings.append(f"{year}-{month}-{date.day}")
    return spellings


def _literal(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
