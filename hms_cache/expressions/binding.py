"""Binds the tree of a filter text to a table's partition keys, with Hive's types and refusals.

Hive's behaviour (4.0.1: SQL in `MetaStoreDirectSql`, or otherwise `ExpressionTree.JDOFilterGenerator`):

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

NULL is neither true nor false, also under NOT. Intended improvements over Hive: float, double, decimal and boolean keys
are compared by value, where Hive refuses them; `hr = 1` finds a value stored as `01`, where Hive 4.0.1 also compares
the partition's name; timestamps are compared as timestamps on every database; LIKE is defined in `like_pattern`. Texts
are ordered by code point, which is the order of their UTF-8 bytes and of the binary collations of Hive's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_cache.expressions import bound as nodes
from hms_cache.expressions import tree
from hms_cache.expressions.bound import Bound
from hms_cache.expressions.connectives import Binder, conjunction, disjunction
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

_ONLY_STRINGS = "Filtering is supported only on partition keys of type string"


def bind(
    predicate: tree.Predicate, keys: Sequence[PartitionKey], default_partition_name: str = DEFAULT_PARTITION_NAME
) -> Bound:
    """Binds the tree of a filter text to keys in their order.

    Raises `FilterBindError` with Hive's text for unknown keys and unsuitable literals.
    """
    binder = _FilterBinder(keys, default_partition_name)
    return Bound(binder.bind(predicate, negated=False), tuple(keys), False, default_partition_name)


class _FilterBinder(Binder):
    def leaf(self, node: tree.Leaf, negated: bool) -> nodes.BoundNode:
        match node:
            case tree.Comparison(operator, tree.Column(name), tree.Constant() as constant):
                return self._comparison(name, operator, constant, negated)
            case tree.Comparison(operator, tree.Constant() as constant, tree.Column(name)):
                return self._comparison(name, operator.mirrored, constant, negated)
            case tree.Between(tree.Column(name), tree.Constant() as lower, tree.Constant() as upper):
                bounds = [
                    self._comparison(name, tree.ComparisonOperator.GREATER_OR_EQUAL, lower, negated),
                    self._comparison(name, tree.ComparisonOperator.LESS_OR_EQUAL, upper, negated),
                ]
                return disjunction(bounds) if negated else conjunction(bounds)
            case tree.In(tree.Column(name), values):
                return self._in(name, values, negated)
            case tree.Like(tree.Column(name), tree.Constant(value)):
                return self._like(name, value, negated)
            case tree.Like(_, tree.Column(name)):
                raise FilterBindError(f"Value should be on the RHS for LIKE operator : Key <{name}>")
            case tree.IsNull(tree.Column(name)):
                index = self._index(name)
                return nodes.BoundNullTest(index, self._kind(index), negated)
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
        # Databases compare CHAR keys as stored, including padding.
        return KeyKind.TEXT if kind is KeyKind.CHAR else kind

    def _comparison(
        self, name: str, operator: tree.ComparisonOperator, constant: tree.Constant, negated: bool
    ) -> nodes.BoundNode:
        index = self._index(name)
        kind, value = self._typed(index, constant)
        return nodes.BoundComparison(index, kind, operator.negated if negated else operator, value)

    def _in(self, name: str, values: Iterable[tree.Node], negated: bool) -> nodes.BoundNode:
        index = self._index(name)
        by_kind: dict[KeyKind, set[KeyValue]] = {}
        for constant in values:
            if not isinstance(constant, tree.Constant):
                raise FilterBindError(f"A filter cannot hold {type(constant).__name__} in IN")
            kind, value = self._typed(index, constant)
            by_kind.setdefault(kind, set()).add(value)
        bound: list[nodes.BoundNode] = [
            nodes.BoundIn(index, kind, frozenset(some), negated) for kind, some in by_kind.items()
        ]
        return conjunction(bound) if negated else disjunction(bound)

    def _typed(self, index: int, constant: tree.Constant) -> tuple[KeyKind, KeyValue]:
        """The kind in which key and literal are compared, and the literal's value of that kind."""
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

    def _like(self, name: str, pattern: object, negated: bool) -> nodes.BoundNode:
        index = self._index(name)
        if not isinstance(pattern, str) or self._kind(index) not in (KeyKind.TEXT, KeyKind.DATE, KeyKind.TIMESTAMP):
            raise FilterBindError(_ONLY_STRINGS)
        return nodes.BoundLike(index, filter_pattern(pattern), negated)
