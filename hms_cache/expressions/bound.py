"""A predicate bound to the partition keys of a table: the input of `evaluate` and `sql_prefilter`.

NOT has been pushed down to the leaves (De Morgan's laws hold in three-valued logic), so that only the rows for which a
leaf is true matter, except for IS [NOT] TRUE and IS [NOT] FALSE, which are complements. Leaves refer to keys by index.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from hms_cache.expressions.key_types import DEFAULT_PARTITION_NAME, KeyKind, KeyValue, PartitionKey
from hms_cache.expressions.like_pattern import LikePattern
from hms_cache.expressions.tree import ComparisonOperator
from hms_cache.values import frozen


class Undecided(Enum):
    """A value that cannot be computed here exactly as in Hive."""

    UNDECIDED = "undecided"


UNDECIDED = Undecided.UNDECIDED

TruthValue: TypeAlias = bool | Undecided | None
"""True, False, NULL because of the default partition, or unknown here."""


@frozen
class BoundComparison:
    """`key operator value`, compared as one kind."""

    index: int
    kind: KeyKind
    operator: ComparisonOperator
    value: KeyValue


@frozen
class BoundIn:
    """`key [NOT] IN (values)`, compared as one kind, without NULL among the values."""

    index: int
    kind: KeyKind
    values: frozenset[KeyValue]
    negated: bool = False


@frozen
class BoundLike:
    """`key [NOT] LIKE pattern` on the key's text."""

    index: int
    pattern: LikePattern
    negated: bool = False


@frozen
class BoundNullTest:
    """`key IS [NOT] NULL`."""

    index: int
    kind: KeyKind
    negated: bool = False


@frozen
class BoundFunction:
    """A predicate on the texts of some keys, evaluated once per distinct combination of them."""

    indexes: tuple[int, ...]
    test: Callable[[tuple[str, ...]], TruthValue]


@frozen
class BoundTruth:
    """The same value for every row."""

    truth: bool


@frozen
class BoundUnknown:
    """Unknown for every row."""

    reason: str


@frozen
class BoundComplement:
    """True unless the child is true, that is, also if it is NULL: `… IS NOT TRUE`."""

    child: BoundNode


@frozen
class BoundAnd:
    children: tuple[BoundNode, ...]


@frozen
class BoundOr:
    children: tuple[BoundNode, ...]


BoundNode: TypeAlias = (
    BoundComparison
    | BoundIn
    | BoundLike
    | BoundNullTest
    | BoundFunction
    | BoundTruth
    | BoundUnknown
    | BoundComplement
    | BoundAnd
    | BoundOr
)


@frozen
class Bound:
    """A predicate on the rows of a table with these keys.

    `is_expression` distinguishes two semantics. A filter text compares the default partition of a text key as text, as
    Hive's SQL does. In an expression tree the default partition is NULL, and values that Hive's conversions might
    interpret differently are undecided.
    """

    root: BoundNode
    keys: tuple[PartitionKey, ...]
    is_expression: bool = False
    default_partition_name: str = DEFAULT_PARTITION_NAME
