"""Orders of partitions other than by name: by typed values of selected keys.

Facts: `MetaStoreUtils.makeOrderSpecs`, `MetaStoreDirectSql.getPartitionNamesViaSql` (Hive 4.0.1): integers and dates
are compared as such; the default partition is NULL, which comes first in ascending order. Hive compares timestamps and
fractional numbers as texts; here every type is compared by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_cache.expressions import PartitionKey
from hms_cache.expressions.key_types import kind_of, read_text
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


def parse_order(order: str | None, key_count: int) -> list[tuple[int, bool]]:
    """Parses a text like `1,0:+-` to (key position, ascending) pairs; empty for texts of another form, as in Hive.

    Raises MetaException if the numbers of positions and signs differ, or if a position is not a key's.
    """
    parts = (order or "").split(":")
    if len(parts) != 2 or not (order or "").strip():
        return []
    positions, signs = parts[0].split(","), parts[1]
    if len(positions) != len(signs):
        raise MetaException(f"The length of partition keys and sort order do not mismatch, order: {order}")
    try:
        numbers = [int(position) for position in positions]
    except ValueError as error:
        raise MetaException(f"Invalid partition order: {order}") from error
    if any(not 0 <= number < key_count for number in numbers):
        raise MetaException(f"Invalid partition order: {order}")
    return [(number, sign == "+") for number, sign in zip(numbers, signs, strict=True)]


def sort_by_values(
    names: list[str], values: Sequence[Sequence[str]], keys: Sequence[PartitionKey], order: Sequence[tuple[int, bool]]
) -> list[str]:
    """The names, sorted stably by these values."""
    indexes = list(range(len(names)))
    for position, ascending in reversed(order):
        keyed = [sort_key(keys[position], values[index][position]) for index in range(len(names))]
        indexes.sort(key=keyed.__getitem__, reverse=not ascending)
    return [names[index] for index in indexes]


def sort_key(key: PartitionKey, text: str) -> tuple[int, Any]:
    """The sort key of a value: NULL and texts that are not values of the type come first, then values; texts as
    texts."""
    if text == DEFAULT_PARTITION_VALUE:
        return (0, 0)
    kind = kind_of(key[1])
    if kind is None or kind.is_text:
        return (1, text)
    value = read_text(kind, text, True)
    return (0, 0) if value is None else (1, value)
