"""Predicate trees on partition keys, as frozen values.

Two languages are parsed to these trees: the metastore's filter texts (`filter_parser`) and Hive's serialized
expressions (`hive_tree`). A tree contains names and literals, without types of keys or rows: `binding.bind` adds these.

Operands: `Column`, `Constant`, `Cast`. Predicates: the others. `Unknown` may be either. Trees are hashable and compared
by value.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

from hms_cache.values import frozen

Literal: TypeAlias = bool | int | float | Decimal | str | datetime.date | datetime.datetime | None
"""A constant's value. `datetime.datetime` has no time zone; `None` is SQL NULL."""


class ComparisonOperator(Enum):
    """The six orderings; the value is the operator's text in the filter language."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="

    @property
    def negated(self) -> ComparisonOperator:
        """The operator that is true where this one is false (and NULL where it is NULL)."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> ComparisonOperator:
        """The operator with its operands exchanged: `5 < hr` is `hr > 5`."""
        return _MIRRORED[self]

    @property
    def compare(self) -> Callable[[Any, Any], Any]:
        """The operator as a function: for two values the result is a bool, for arrays an array."""
        return _FUNCTIONS[self]


_NEGATED = {
    ComparisonOperator.EQUAL: ComparisonOperator.NOT_EQUAL,
    ComparisonOperator.NOT_EQUAL: ComparisonOperator.EQUAL,
    ComparisonOperator.LESS: ComparisonOperator.GREATER_OR_EQUAL,
    ComparisonOperator.GREATER_OR_EQUAL: ComparisonOperator.LESS,
    ComparisonOperator.GREATER: ComparisonOperator.LESS_OR_EQUAL,
    ComparisonOperator.LESS_OR_EQUAL: ComparisonOperator.GREATER,
}
_MIRRORED = {
    ComparisonOperator.EQUAL: ComparisonOperator.EQUAL,
    ComparisonOperator.NOT_EQUAL: ComparisonOperator.NOT_EQUAL,
    ComparisonOperator.LESS: ComparisonOperator.GREATER,
    ComparisonOperator.GREATER: ComparisonOperator.LESS,
    ComparisonOperator.LESS_OR_EQUAL: ComparisonOperator.GREATER_OR_EQUAL,
    ComparisonOperator.GREATER_OR_EQUAL: ComparisonOperator.LESS_OR_EQUAL,
}
_FUNCTIONS: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {
    ComparisonOperator.EQUAL: operator.eq,
    ComparisonOperator.NOT_EQUAL: operator.ne,
    ComparisonOperator.LESS: operator.lt,
    ComparisonOperator.LESS_OR_EQUAL: operator.le,
    ComparisonOperator.GREATER: operator.gt,
    ComparisonOperator.GREATER_OR_EQUAL: operator.ge,
}


@frozen
class Column:
    """A partition key, by its case-insensitive name."""

    name: str


@frozen
class Constant:
    """A literal. `type_name`: Hive's name of its type if the source contains it (expression trees), otherwise ""."""

    value: Literal
    type_name: str = ""


@frozen
class Cast:
    """`operand` converted to Hive's primitive type `type_name`, for instance `int` or `decimal(10,2)`."""

    operand: Operand
    type_name: str


@frozen
class Unknown:
    """A part that cannot be evaluated here, with the `reason`. It may be true, false or NULL."""

    reason: str


Operand: TypeAlias = Column | Constant | Cast | Unknown


@frozen
class And:
    """True if all children are; without children it is true (the empty filter)."""

    children: tuple[Predicate, ...]


@frozen
class Or:
    """True if any child is; without children it is false."""

    children: tuple[Predicate, ...]


@frozen
class Not:
    """SQL's NOT: NULL stays NULL."""

    child: Predicate


@frozen
class IsTruth:
    """`child IS TRUE`, or if `truth` is False `child IS FALSE`: false, not NULL, if the child is NULL."""

    child: Predicate
    truth: bool


@frozen
class Comparison:
    """`left operator right`. A filter's literal on the left stays there; binding exchanges the operands."""

    operator: ComparisonOperator
    left: Operand
    right: Operand


@frozen
class In:
    """`operand IN (values)`; NULL if it equals none of them and one of them is NULL."""

    operand: Operand
    values: tuple[Operand, ...]


@frozen
class Between:
    """`operand BETWEEN lower AND upper`, inclusive."""

    operand: Operand
    lower: Operand
    upper: Operand


@frozen
class Like:
    """`operand LIKE pattern`; `like_pattern` defines patterns."""

    operand: Operand
    pattern: Operand


@frozen
class IsNull:
    """`operand IS NULL`: the default partition, or a cast that failed."""

    operand: Operand


@frozen
class Truth:
    """A boolean operand used as a predicate: a boolean key, a constant, a cast to boolean."""

    operand: Operand


Leaf: TypeAlias = Comparison | In | Between | Like | IsNull | Truth | Unknown
Predicate: TypeAlias = And | Or | Not | IsTruth | Leaf
Node: TypeAlias = Predicate | Operand

TRUE = And(())
"""The empty filter: all partitions."""


def children_of(node: Node) -> tuple[Node, ...]:
    """The direct children of a node, in the order of their text."""
    match node:
        case And(children) | Or(children):
            return children
        case Not(child) | IsTruth(child, _):
            return (child,)
        case Comparison(_, left, right):
            return (left, right)
        case In(operand, values):
            return (operand, *values)
        case Between(operand, lower, upper):
            return (operand, lower, upper)
        case Like(operand, pattern):
            return (operand, pattern)
        case IsNull(operand) | Truth(operand) | Cast(operand, _):
            return (operand,)
        case Column() | Constant() | Unknown():
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all its descendants, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(children_of(current)))


def has_unknown(node: Node) -> bool:
    """Whether any part of the tree is not supported."""
    return any(isinstance(part, Unknown) for part in walk(node))
