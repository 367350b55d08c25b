"""Binds the tree of a Hive expression to a table's partition keys, with the semantics of Hive's evaluation per row.

Hive converts the texts of a partition to values of the keys' types, the default partition's to NULL, and evaluates
(`PartitionPruner.prunePartitionNames`). If the result is NULL, it drops rows of the default partition, and keeps other
rows as "unknown", because a NULL may stand for a part of the query that is not about partitions. Here, a leaf is true,
false, NULL (for the default partition: not selected) or undecided (kept, and reported).

Undecided are unknown functions, and values that Hive's conversions might interpret in several ways: a text that is not
clearly a value of its type, a cast that truncates or wraps. A comparison with the default partition's name tests for
NULL.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from hms_cache.expressions import bound as nodes
from hms_cache.expressions import tree
from hms_cache.expressions.bound import Bound
from hms_cache.expressions.casts import cast_value, common_kind, widen
from hms_cache.expressions.connectives import Binder, conjunction, disjunction
from hms_cache.expressions.key_types import (
    DEFAULT_PARTITION_NAME,
    MAX_LONG,
    MIN_LONG,
    KeyKind,
    KeyValue,
    PartitionKey,
    days_of,
    kind_of,
    nanoseconds_of,
    read_text,
)
from hms_cache.expressions.like_pattern import hive_pattern
from hms_cache.values import frozen

_Scalar: TypeAlias = KeyValue | nodes.Undecided | None
"""A value, NULL of the default partition, or undecided."""


def bind_expression(
    predicate: tree.Predicate, keys: Sequence[PartitionKey], default_partition_name: str = DEFAULT_PARTITION_NAME
) -> Bound:
    """Binds the tree of a Hive expression to keys in their order. Never raises: unsuitable parts are unknown."""
    binder = _ExpressionBinder(keys, default_partition_name)
    return Bound(binder.bind(predicate, negated=False), tuple(keys), True, default_partition_name)


@frozen
class _Compiled:
    """An operand: its kind, the keys that it reads, and a function of the texts of a row's keys."""

    kind: KeyKind
    indexes: frozenset[int]
    value: Callable[[dict[int, str]], _Scalar]


class _ExpressionBinder(Binder):
    def leaf(self, node: tree.Leaf, negated: bool) -> nodes.BoundNode:
        match node:
            case tree.Comparison(comparison, left, right):
                return self._comparison(comparison.negated if negated else comparison, left, right)
            case tree.Between(operand, lower, upper):
                above = tree.Comparison(tree.ComparisonOperator.GREATER_OR_EQUAL, operand, lower)
                below = tree.Comparison(tree.ComparisonOperator.LESS_OR_EQUAL, operand, upper)
                return self.bind(tree.And((above, below)), negated)
            case tree.In(operand, values):
                return self._in(operand, values, negated)
            case tree.Like(operand, pattern):
                return self._like(operand, pattern, negated)
            case tree.IsNull(operand):
                return self._is_null(operand, negated)
            case tree.Truth(tree.Constant(bool() as truth)):
                return nodes.BoundTruth(truth != negated)
            case tree.Truth(operand):
                operator = tree.ComparisonOperator.NOT_EQUAL if negated else tree.ComparisonOperator.EQUAL
                return self._comparison(operator, operand, tree.Constant(True, "boolean"))
            case tree.Unknown(reason):
                return nodes.BoundUnknown(reason)

    # Operands

    def _column(self, name: str) -> tuple[int, KeyKind] | None:
        index = self._indexes.get(name.lower())
        kind = None if index is None else kind_of(self._keys[index][1])
        return None if index is None or kind is None else (index, kind)

    def _compiled(self, operand: tree.Operand) -> _Compiled | tree.Unknown:
        match operand:
            case tree.Column(name):
                found = self._column(name)
                return tree.Unknown(f"column {name}") if found is None else self._compiled_column(*found)
            case tree.Constant(value, type_name):
                kind = kind_of(type_name)
                if kind is None:
                    return tree.Unknown(f"a constant of type {type_name}")
                typed = _typed_constant(kind, value)
                return _Compiled(kind, frozenset(), lambda texts: typed)
            case tree.Cast(inner, type_name):
                source = self._compiled(inner)
                target = kind_of(type_name)
                if isinstance(source, tree.Unknown) or target is None:
                    return source if isinstance(source, tree.Unknown) else tree.Unknown(f"a cast to {type_name}")
                return _compiled_cast(source, target, type_name)
            case tree.Unknown():
                return operand

    def _compiled_column(self, index: int, kind: KeyKind) -> _Compiled:
        default = self._default_partition_name

        def value(texts: dict[int, str]) -> _Scalar:
            text = texts[index]
            if text == default:
                return None
            read = read_text(kind, text, lenient=False)
            return nodes.UNDECIDED if read is None else read

        return _Compiled(kind, frozenset((index,)), value)

    # Predicates

    def _comparison(
        self, comparison: tree.ComparisonOperator, left: tree.Operand, right: tree.Operand
    ) -> nodes.BoundNode:
        if isinstance(left, tree.Constant) and isinstance(right, tree.Column):
            left, right, comparison = right, left, comparison.mirrored
        if isinstance(left, tree.Column) and isinstance(right, tree.Constant):
            named = self._default_partition_test(comparison, left, right)
            if named is not None:
                return named
            found = self._column(left.name)
            constant = self._same_kind(found, right)
            if found is not None and constant is not None:
                return nodes.BoundComparison(found[0], found[1], comparison, constant)
        return self._general_comparison(comparison, left, right)

    def _default_partition_test(
        self, comparison: tree.ComparisonOperator, column: tree.Column, constant: tree.Constant
    ) -> nodes.BoundNode | None:
        """`key = '__HIVE_DEFAULT_PARTITION__'` is `key IS NULL`, for any type of the key."""
        found = self._column(column.name)
        if found is None or constant.value != self._default_partition_name:
            return None
        if comparison in (tree.ComparisonOperator.EQUAL, tree.ComparisonOperator.NOT_EQUAL):
            return nodes.BoundNullTest(*found, negated=comparison is tree.ComparisonOperator.NOT_EQUAL)
        return None

    def _same_kind(self, found: tuple[int, KeyKind] | None, constant: tree.Constant) -> KeyValue | None:
        """The constant's value if it is compared with the column without conversion."""
        kind = kind_of(constant.type_name)
        if found is None or kind is not found[1]:
            return None
        value = _typed_constant(kind, constant.value)
        return None if value is nodes.UNDECIDED or isinstance(value, nodes.Undecided) else value

    def _general_comparison(
        self, comparison: tree.ComparisonOperator, left: tree.Operand, right: tree.Operand
    ) -> nodes.BoundNode:
        first, second = self._compiled(left), self._compiled(right)
        if isinstance(first, tree.Unknown):
            return nodes.BoundUnknown(first.reason)
        if isinstance(second, tree.Unknown):
            return nodes.BoundUnknown(second.reason)
        kind = common_kind(first.kind, second.kind)
        if kind is None:
            return nodes.BoundUnknown(f"{first.kind.value} compared with {second.kind.value}")
        compare: Callable[[Any, Any], bool] = comparison.compare

        def test(texts: dict[int, str]) -> nodes.TruthValue:
            one, other = widen(first.value(texts), first.kind, kind), widen(second.value(texts), second.kind, kind)
            if one is None or other is None:
                return None
            if isinstance(one, nodes.Undecided) or isinstance(other, nodes.Undecided):
                return nodes.UNDECIDED
            return compare(one, other)

        return _bound_function(first.indexes | second.indexes, test)

    def _in(self, operand: tree.Operand, values: tuple[tree.Operand, ...], negated: bool) -> nodes.BoundNode:
        found = self._column(operand.name) if isinstance(operand, tree.Column) else None
        plain: set[KeyValue] = set()
        others: list[nodes.BoundNode] = []
        comparison = tree.ComparisonOperator.NOT_EQUAL if negated else tree.ComparisonOperator.EQUAL
        for value in values:
            constant = self._same_kind(found, value) if isinstance(value, tree.Constant) else None
            if constant is None or constant == self._default_partition_name:
                others.append(self._comparison(comparison, operand, value))
            else:
                plain.add(constant)
        if found is not None and plain:
            others.insert(0, nodes.BoundIn(*found, frozenset(plain), negated))
        return conjunction(others) if negated else disjunction(others)

    def _like(self, operand: tree.Operand, pattern: tree.Operand, negated: bool) -> nodes.BoundNode:
        if isinstance(operand, tree.Column) and isinstance(pattern, tree.Constant) and isinstance(pattern.value, str):
            found = self._column(operand.name)
            if found is not None and found[1] is KeyKind.TEXT:
                return nodes.BoundLike(found[0], hive_pattern(pattern.value), negated)
        return nodes.BoundUnknown("LIKE on other than a string key")

    def _is_null(self, operand: tree.Operand, negated: bool) -> nodes.BoundNode:
        if isinstance(operand, tree.Column):
            found = self._column(operand.name)
            if found is not None:
                return nodes.BoundNullTest(*found, negated=negated)
        compiled = self._compiled(operand)
        if isinstance(compiled, tree.Unknown):
            return nodes.BoundUnknown(compiled.reason)

        def test(texts: dict[int, str]) -> nodes.TruthValue:
            value = compiled.value(texts)
            return nodes.UNDECIDED if isinstance(value, nodes.Undecided) else (value is None) != negated

        return _bound_function(compiled.indexes, test)


def _bound_function(indexes: frozenset[int], test: Callable[[dict[int, str]], nodes.TruthValue]) -> nodes.BoundNode:
    ordered = tuple(sorted(indexes))
    if not ordered:
        truth = test({})
        return nodes.BoundTruth(truth) if isinstance(truth, bool) else nodes.BoundUnknown("a constant NULL")
    return nodes.BoundFunction(ordered, lambda texts: test(dict(zip(ordered, texts, strict=True))))


def _compiled_cast(source: _Compiled, target: KeyKind, type_name: str) -> _Compiled:
    def value(texts: dict[int, str]) -> _Scalar:
        inner = source.value(texts)
        if inner is None or isinstance(inner, nodes.Undecided):
            return inner
        return cast_value(inner, source.kind, target, type_name)

    return _Compiled(target, source.indexes, value)


def _typed_constant(kind: KeyKind, value: object) -> KeyValue | nodes.Undecided:
    """A constant as a value of its kind. NULL, which may stand for anything, and unsuitable values are undecided."""
    if kind.is_text and isinstance(value, str):
        return value.rstrip(" ") if kind is KeyKind.CHAR else value
    if kind is KeyKind.BOOLEAN and isinstance(value, bool):
        return value
    if isinstance(value, bool):
        return nodes.UNDECIDED
    if kind is KeyKind.INTEGER and isinstance(value, int) and MIN_LONG <= value <= MAX_LONG:
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
    return nodes.UNDECIDED
