"""Binds the tree of a filter text to a table's partition keys, with the types, and refusals, of Hive.

What Hive does (4.0.1: SQL in `MetaStoreDirectSql`, and where that declines, `ExpressionTree.JDOFilterGenerator`):

| key | literal | here and in Hive |
|---|---|---|
| string, varchar, char | string | compared as text; `__HIVE_DEFAULT_PARTITION__` is a text like any other |
| string, varchar, char | integer | refused, "Filtering is supported only on partition keys of type string" |
| tinyint … bigint | integer | compared as numbers; what is no number, the default partition too, is NULL |
| tinyint … bigint | string | refused, the same text |
| date, timestamp | string | compared as dates and timestamps, default partition NULL; else as text |
| date, timestamp | integer | refused |
| any | the default partition's name | compared as text, so `hr = "__HIVE_DEFAULT_PARTITION__"` finds NULL |
| no such key | | refused, "Specified key <x> is not a partitioning key for the table" |

NULL is neither true nor false, under NOT too. Deliberately better than Hive: float, double, decimal and boolean keys
are compared by value where Hive refuses them; `hr = 1` finds a value stored as `01`, where Hive 4.0.1 compares the
partition's name as well; timestamps are compared as such on every database; LIKE as `like_pattern` says.
Text is ordered by code point, which is the order of its UTF-8 bytes and of the binary collations of Hive's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_cache.expressions.bound import (
    Bound,
    BoundAnd,
    BoundComparison,
    BoundIn,
    BoundLike,
    BoundNode,
    BoundNullTest,
    BoundOr,
    BoundTruth,
)
from hms_cache.expressions.errors import FilterBindError
from hms_cache.expressions.key_types import (
    DEFAULT_PARTITION_NAME,
    KeyKind,
    KeyValue,
    PartitionKey,
    base_type_name,
    kind_of,
    read_text,
)
from hms_cache.expressions.like_pattern import filter_pattern
from hms_cache.expressions.tree import (
    And,
    Between,
    Column,
    Comparison,
    ComparisonOperator,
    Constant,
    In,
    IsNull,
    Like,
    Node,
    Not,
    Or,
    Predicate,
)

_ONLY_STRINGS = "Filtering is supported only on partition keys of type string"


def bind(tree: Predicate, keys: Sequence[PartitionKey], default_partition_name: str = DEFAULT_PARTITION_NAME) -> Bound:
    """The tree of a filter text, bound to keys in their order.

    Raises `FilterBindError` with Hive's text for unknown keys and literals that do not fit.
    """
    binder = _FilterBinder(keys, default_partition_name)
    return Bound(binder.bind(tree, negated=False), tuple(keys), False, default_partition_name)


class _FilterBinder:
    def __init__(self, keys: Sequence[PartitionKey], default_partition_name: str) -> None:
        self._keys = keys
        self._indexes = {name.lower(): index for index, (name, _) in reversed(list(enumerate(keys)))}
        self._default_partition_name = default_partition_name

    def bind(self, node: Predicate, negated: bool) -> BoundNode:
        match node:
            case Not(child):
                return self.bind(child, not negated)
            case And(children) | Or(children):
                bound = [self.bind(child, negated) for child in children]
                return conjunction(bound) if isinstance(node, And) != negated else disjunction(bound)
            case Comparison(operator, Column(name), Constant() as constant):
                return self._comparison(name, operator, constant, negated)
            case Comparison(operator, Constant() as constant, Column(name)):
                return self._comparison(name, operator.mirrored, constant, negated)
            case Between(Column(name), Constant() as lower, Constant() as upper):
                bounds = [
                    self._comparison(name, ComparisonOperator.GREATER_OR_EQUAL, lower, negated),
                    self._comparison(name, ComparisonOperator.LESS_OR_EQUAL, upper, negated),
                ]
                return disjunction(bounds) if negated else conjunction(bounds)
            case In(Column(name), values):
                return self._in(name, values, negated)
            case Like(Column(name), Constant(value)):
                return self._like(name, value, negated)
            case Like(_, Column(name)):
                raise FilterBindError(f"Value should be on the RHS for LIKE operator : Key <{name}>")
            case IsNull(Column(name)):
                index = self._index(name)
                return BoundNullTest(index, self._kind(index), negated)
            case _:
                raise FilterBindError(f"A filter cannot hold {type(node).__name__}")

    def _index(self, name: str) -> int:
        index = self._indexes.get(name.lower())
        if index is None:
            raise FilterBindError(f"Specified key <{name}> is not a partitioning key for the table")
        return index

    def _kind(self, index: int) -> KeyKind:
        type_name = self._keys[index][1]
        kind = kind_of(type_name)
        if kind is None:
            raise FilterBindError(f"Filter pushdown not supported for type {base_type_name(type_name)}")
        # The databases compare CHAR keys as they stand, padding and all.
        return KeyKind.TEXT if kind is KeyKind.CHAR else kind

    def _comparison(self, name: str, operator: ComparisonOperator, constant: Constant, negated: bool) -> BoundNode:
        index = self._index(name)
        kind, value = self._typed(index, constant)
        return BoundComparison(index, kind, operator.negated if negated else operator, value)

    def _in(self, name: str, values: Iterable[Node], negated: bool) -> BoundNode:
        index = self._index(name)
        by_kind: dict[KeyKind, set[KeyValue]] = {}
        for constant in values:
            if not isinstance(constant, Constant):
                raise FilterBindError(f"A filter cannot hold {type(constant).__name__} in IN")
            kind, value = self._typed(index, constant)
            by_kind.setdefault(kind, set()).add(value)
        bound: list[BoundNode] = [BoundIn(index, kind, frozenset(some), negated) for kind, some in by_kind.items()]
        return conjunction(bound) if negated else disjunction(bound)

    def _typed(self, index: int, constant: Constant) -> tuple[KeyKind, KeyValue]:
        """The kind in which key and literal are compared, and the literal's value in it."""
        kind = self._kind(index)
        literal = constant.value
        if isinstance(literal, str):
            if kind is KeyKind.TEXT or literal == self._default_partition_name:
                return KeyKind.TEXT, literal
            if kind in (KeyKind.DATE, KeyKind.TIMESTAMP):
                value = read_text(kind, literal, lenient=True)
                return (KeyKind.TEXT, literal) if value is None else (kind, value)
            if kind is not KeyKind.INTEGER:
                value = read_text(kind, literal, lenient=True)
                if value is not None:
                    return kind, value
        elif isinstance(literal, int) and not isinstance(literal, bool):
            if kind is KeyKind.INTEGER:
                return kind, literal
            if kind.is_number:
                value = read_text(kind, str(literal), lenient=True)
                if value is not None:
                    return kind, value
        raise FilterBindError(_ONLY_STRINGS)

    def _like(self, name: str, pattern: object, negated: bool) -> BoundNode:
        index = self._index(name)
        if not isinstance(pattern, str) or self._kind(index) not in (KeyKind.TEXT, KeyKind.DATE, KeyKind.TIMESTAMP):
            raise FilterBindError(_ONLY_STRINGS)
        return BoundLike(index, filter_pattern(pattern), negated)


def conjunction(children: Sequence[BoundNode]) -> BoundNode:
    """AND of bound nodes, flattened."""
    flat: list[BoundNode] = []
    for child in children:
        flat.extend(child.children if isinstance(child, BoundAnd) else (child,))
    if not flat:
        return BoundTruth(True)
    return flat[0] if len(flat) == 1 else BoundAnd(tuple(flat))


def disjunction(children: Sequence[BoundNode]) -> BoundNode:
    """OR of bound nodes, flattened; equalities of one key become one IN, however a client spelt them."""
    flat: list[BoundNode] = []
    for child in children:
        flat.extend(child.children if isinstance(child, BoundOr) else (child,))
    equal: dict[tuple[int, KeyKind], set[KeyValue]] = {}
    others: list[BoundNode] = []
    for child in flat:
        match child:
            case BoundComparison(index, kind, ComparisonOperator.EQUAL, value):
                equal.setdefault((index, kind), set()).add(value)
            case BoundIn(index, kind, values, False):
                equal.setdefault((index, kind), set()).update(values)
            case _:
                others.append(child)
    merged: list[BoundNode] = [BoundIn(index, kind, frozenset(values)) for (index, kind), values in equal.items()]
    merged.extend(others)
    if not merged:
        return BoundTruth(False)
    return merged[0] if len(merged) == 1 else BoundOr(tuple(merged))
