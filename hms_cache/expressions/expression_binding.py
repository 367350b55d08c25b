"""Binds the tree of a Hive expression to a table's partition keys, to be evaluated as Hive would row by row.

Hive turns the texts of a partition into values of the keys' types, the default partition's into NULL, and evaluates
(`PartitionPruner.prunePartitionNames`). Where the result is NULL it drops rows of the default partition, and keeps any
other with "unknown", because a NULL may stand for a part of the query that is not about partitions. So here: a leaf is
true, false, NULL (for the default partition: not selected) or undecided (kept, and reported).

Undecided is, beside functions not known, whatever Hive's conversions might read in more ways than one: a text that is
not plainly a value of its type, a cast that cuts or wraps. Comparing with the default partition's own name asks for
NULL.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from hms_cache.expressions.binding import conjunction, disjunction
from hms_cache.expressions.bound import (
    UNDECIDED,
    Bound,
    BoundComparison,
    BoundFunction,
    BoundIn,
    BoundLike,
    BoundNode,
    BoundNullTest,
    BoundTruth,
    BoundUnknown,
    TruthValue,
    Undecided,
)
from hms_cache.expressions.casts import cast_value, common_kind, widen
from hms_cache.expressions.key_types import (
    DEFAULT_PARTITION_NAME,
    KeyKind,
    KeyValue,
    PartitionKey,
    days_of,
    kind_of,
    nanoseconds_of,
    read_text,
)
from hms_cache.expressions.like_pattern import sql_pattern
from hms_cache.expressions.tree import (
    And,
    Between,
    Cast,
    Column,
    Comparison,
    ComparisonOperator,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    Truth,
    Unknown,
)

_COMPARE: dict[ComparisonOperator, Callable[[Any, Any], bool]] = {
    ComparisonOperator.EQUAL: operator.eq,
    ComparisonOperator.NOT_EQUAL: operator.ne,
    ComparisonOperator.LESS: operator.lt,
    ComparisonOperator.LESS_OR_EQUAL: operator.le,
    ComparisonOperator.GREATER: operator.gt,
    ComparisonOperator.GREATER_OR_EQUAL: operator.ge,
}

_Scalar: TypeAlias = KeyValue | Undecided | None
"""A value, NULL of the default partition, or undecided."""


def bind_expression(
    tree: Predicate, keys: Sequence[PartitionKey], default_partition_name: str = DEFAULT_PARTITION_NAME
) -> Bound:
    """The tree of a Hive expression, bound to keys in their order. Never raises: what does not fit is unknown."""
    binder = _ExpressionBinder(keys, default_partition_name)
    return Bound(binder.bind(tree, negated=False), tuple(keys), True, default_partition_name)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """An operand: its kind, the keys it reads, and its value from the texts of all keys of a row."""

    kind: KeyKind
    indexes: frozenset[int]
    value: Callable[[dict[int, str]], _Scalar]


class _ExpressionBinder:
    def __init__(self, keys: Sequence[PartitionKey], default_partition_name: str) -> None:
        self._keys = keys
        self._indexes = {name.lower(): index for index, (name, _) in reversed(list(enumerate(keys)))}
        self._default = default_partition_name

    def bind(self, node: Predicate, negated: bool) -> BoundNode:
        match node:
            case Not(child):
                return self.bind(child, not negated)
            case And(children) | Or(children):
                bound = [self.bind(child, negated) for child in children]
                return conjunction(bound) if isinstance(node, And) != negated else disjunction(bound)
            case Comparison(comparison, left, right):
                return self._comparison(comparison.negated if negated else comparison, left, right)
            case Between(operand, lower, upper):
                above = Comparison(ComparisonOperator.GREATER_OR_EQUAL, operand, lower)
                below = Comparison(ComparisonOperator.LESS_OR_EQUAL, operand, upper)
                return self.bind(And((above, below)), negated)
            case In(operand, values):
                return self._in(operand, values, negated)
            case Like(operand, pattern):
                return self._like(operand, pattern, negated)
            case IsNull(operand):
                return self._is_null(operand, negated)
            case Truth(Constant(bool() as truth)):
                return BoundTruth(truth != negated)
            case Truth(operand):
                wanted = ComparisonOperator.NOT_EQUAL if negated else ComparisonOperator.EQUAL
                return self._comparison(wanted, operand, Constant(True, "boolean"))
            case Unknown(reason):
                return BoundUnknown(reason)

    # Operands

    def _column(self, name: str) -> tuple[int, KeyKind] | None:
        index = self._indexes.get(name.lower())
        kind = None if index is None else kind_of(self._keys[index][1])
        return None if index is None or kind is None else (index, kind)

    def _compiled(self, operand: Operand) -> _Compiled | Unknown:
        match operand:
            case Column(name):
                found = self._column(name)
                return Unknown(f"column {name}") if found is None else self._compiled_column(*found)
            case Constant(value, type_name):
                kind = kind_of(type_name)
                if kind is None:
                    return Unknown(f"a constant of type {type_name}")
                typed = _typed_constant(kind, value)
                return _Compiled(kind, frozenset(), lambda texts: typed)
            case Cast(inner, type_name):
                source = self._compiled(inner)
                target = kind_of(type_name)
                if isinstance(source, Unknown) or target is None:
                    return source if isinstance(source, Unknown) else Unknown(f"a cast to {type_name}")
                return _compiled_cast(source, target, type_name)
            case Unknown():
                return operand

    def _compiled_column(self, index: int, kind: KeyKind) -> _Compiled:
        default = self._default

        def value(texts: dict[int, str]) -> _Scalar:
            text = texts[index]
            if text == default:
                return None
            read = read_text(kind, text, lenient=False)
            return UNDECIDED if read is None else read

        return _Compiled(kind, frozenset((index,)), value)

    # Predicates

    def _comparison(self, comparison: ComparisonOperator, left: Operand, right: Operand) -> BoundNode:
        if isinstance(left, Constant) and isinstance(right, Column):
            left, right, comparison = right, left, comparison.mirrored
        if isinstance(left, Column) and isinstance(right, Constant):
            named = self._default_partition_test(comparison, left, right)
            if named is not None:
                return named
            found = self._column(left.name)
            constant = self._same_kind(found, right)
            if found is not None and constant is not None:
                return BoundComparison(found[0], found[1], comparison, constant)
        return self._general_comparison(comparison, left, right)

    def _default_partition_test(
        self, comparison: ComparisonOperator, column: Column, constant: Constant
    ) -> BoundNode | None:
        """`key = '__HIVE_DEFAULT_PARTITION__'` is `key IS NULL`, whatever the key's type."""
        found = self._column(column.name)
        if found is None or constant.value != self._default:
            return None
        if comparison in (ComparisonOperator.EQUAL, ComparisonOperator.NOT_EQUAL):
            return BoundNullTest(*found, negated=comparison is ComparisonOperator.NOT_EQUAL)
        return None

    def _same_kind(self, found: tuple[int, KeyKind] | None, constant: Constant) -> KeyValue | None:
        """The constant's value if it is compared with the column as it is."""
        kind = kind_of(constant.type_name)
        if found is None or kind is not found[1]:
            return None
        value = _typed_constant(kind, constant.value)
        return None if value is UNDECIDED or isinstance(value, Undecided) else value

    def _general_comparison(self, comparison: ComparisonOperator, left: Operand, right: Operand) -> BoundNode:
        first, second = self._compiled(left), self._compiled(right)
        if isinstance(first, Unknown):
            return BoundUnknown(first.reason)
        if isinstance(second, Unknown):
            return BoundUnknown(second.reason)
        kind = common_kind(first.kind, second.kind)
        if kind is None:
            return BoundUnknown(f"{first.kind.value} compared with {second.kind.value}")
        compare = _COMPARE[comparison]

        def test(texts: dict[int, str]) -> TruthValue:
            one, other = widen(first.value(texts), first.kind, kind), widen(second.value(texts), second.kind, kind)
            if one is None or other is None:
                return None
            if isinstance(one, Undecided) or isinstance(other, Undecided):
                return UNDECIDED
            return compare(one, other)

        return _bound_function(first.indexes | second.indexes, test)

    def _in(self, operand: Operand, values: tuple[Operand, ...], negated: bool) -> BoundNode:
        found = self._column(operand.name) if isinstance(operand, Column) else None
        plain: set[KeyValue] = set()
        others: list[BoundNode] = []
        comparison = ComparisonOperator.NOT_EQUAL if negated else ComparisonOperator.EQUAL
        for value in values:
            constant = self._same_kind(found, value) if isinstance(value, Constant) else None
            if constant is None or constant == self._default:
                others.append(self._comparison(comparison, operand, value))
            else:
                plain.add(constant)
        if found is not None and plain:
            others.insert(0, BoundIn(*found, frozenset(plain), negated))
        return conjunction(others) if negated else disjunction(others)

    def _like(self, operand: Operand, pattern: Operand, negated: bool) -> BoundNode:
        if isinstance(operand, Column) and isinstance(pattern, Constant) and isinstance(pattern.value, str):
            found = self._column(operand.name)
            if found is not None and found[1] is KeyKind.TEXT:
                return BoundLike(found[0], sql_pattern(pattern.value), negated)
        return BoundUnknown("LIKE on other than a string key")

    def _is_null(self, operand: Operand, negated: bool) -> BoundNode:
        if isinstance(operand, Column):
            found = self._column(operand.name)
            if found is not None:
                return BoundNullTest(*found, negated=negated)
        compiled = self._compiled(operand)
        if isinstance(compiled, Unknown):
            return BoundUnknown(compiled.reason)

        def test(texts: dict[int, str]) -> TruthValue:
            value = compiled.value(texts)
            return UNDECIDED if isinstance(value, Undecided) else (value is None) != negated

        return _bound_function(compiled.indexes, test)


def _bound_function(indexes: frozenset[int], test: Callable[[dict[int, str]], TruthValue]) -> BoundNode:
    ordered = tuple(sorted(indexes))
    if not ordered:
        truth = test({})
        return BoundTruth(truth) if isinstance(truth, bool) else BoundUnknown("a constant NULL")
    return BoundFunction(ordered, lambda texts: test(dict(zip(ordered, texts, strict=True))))


def _compiled_cast(source: _Compiled, target: KeyKind, type_name: str) -> _Compiled:
    def value(texts: dict[int, str]) -> _Scalar:
        inner = source.value(texts)
        if inner is None or isinstance(inner, Undecided):
            return inner
        return cast_value(inner, source.kind, target, type_name)

    return _Compiled(target, source.indexes, value)


def _typed_constant(kind: KeyKind, value: object) -> KeyValue | Undecided:
    """A constant as a value of its kind; NULL, which may stand for anything, and misfits are undecided."""
    if kind.is_text and isinstance(value, str):
        return value.rstrip(" ") if kind is KeyKind.CHAR else value
    if kind is KeyKind.BOOLEAN and isinstance(value, bool):
        return value
    if isinstance(value, bool):
        return UNDECIDED
    if kind is KeyKind.INTEGER and isinstance(value, int):
        return value
    if kind in (KeyKind.FLOAT, KeyKind.DOUBLE) and isinstance(value, float) and value == value:
        return value
    if kind is KeyKind.DECIMAL and isinstance(value, Decimal | int):
        return Decimal(value)
    if kind is KeyKind.TIMESTAMP and isinstance(value, datetime.datetime):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return nanoseconds_of(value.date(), seconds, value.microsecond * 1_000)
    if kind is KeyKind.DATE and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return days_of(value)
    return UNDECIDED
