"""A predicate bound to the partition keys of a table: what `evaluate` and `sql_prefilter` work on.

NOT has been pushed down to the leaves (in three-valued logic De Morgan's laws hold), so a leaf is asked only where it
is true; but for IS [NOT] TRUE and IS [NOT] FALSE, of which one is the other's complement. Leaves name keys by index.
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
    """The value of what cannot be computed here exactly as Hive would."""

    UNDECIDED = "undecided"


UNDECIDED = Undecided.UNDECIDED

TruthValue: TypeAlias = bool | Undecided | None
"""True, False, NULL because of the default partition, or not known here."""


@frozen
class BoundComparison:
    """`key operator value`, of one kind."""

    index: int
    kind: KeyKind
    operator: ComparisonOperator
    value: KeyValue


@frozen
class BoundIn:
    """`key [NOT] IN (values)`, of one kind; no NULL among the values."""

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
    """Any predicate over the texts of some keys, asked once per distinct combination of them."""

    indexes: tuple[int, ...]
    test: Callable[[tuple[str, ...]], TruthValue]


@frozen
class BoundTruth:
    """The same for every row."""

    truth: bool


@frozen
class BoundUnknown:
    """Nothing is known of any row."""

    reason: str


@frozen
class BoundComplement:
    """True where the child is not, be it false or NULL: `… IS NOT TRUE`."""

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
    """A predicate over the rows of a table with these keys.

    `is_expression` tells the two readings apart. A filter text compares the default partition of a text key as text, as
    Hive's SQL does. An expression tree means NULL by it, and leaves undecided what Hive's conversions might read
    otherwise.
    """

    root: BoundNode
    keys: tuple[PartitionKey, ...]
    is_expression: bool = False
    default_partition_name: str = DEFAULT_PARTITION_NAME
