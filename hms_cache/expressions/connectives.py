"""AND, OR and NOT of bound predicates: the common part of binding filter texts and expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hms_cache.expressions import bound as nodes
from hms_cache.expressions import tree
from hms_cache.expressions.key_types import KeyKind, KeyValue, PartitionKey


class Binder(ABC):
    """Binds a tree to partition keys and pushes NOT down to its leaves.

    :param keys: in the table's order; if two have the same name, the first one counts.
    """

    def __init__(self, keys: Sequence[PartitionKey], default_partition_name: str) -> None:
        self._keys = keys
        self._indexes = {name.lower(): index for index, (name, _) in reversed(list(enumerate(keys)))}
        self._default_partition_name = default_partition_name

    def bind(self, node: tree.Predicate, negated: bool) -> nodes.BoundNode:
        """The bound form of `node`, or of its negation."""
        match node:
            case tree.Not(child):
                return self.bind(child, not negated)
            case tree.IsTruth(child, truth):
                bound_child = self.bind(child, not truth)
                return nodes.BoundComplement(bound_child) if negated else bound_child
            case tree.And(children) | tree.Or(children):
                bound = [self.bind(child, negated) for child in children]
                return conjunction(bound) if isinstance(node, tree.And) != negated else disjunction(bound)
            case _:
                return self.leaf(node, negated)

    @abstractmethod
    def leaf(self, node: tree.Leaf, negated: bool) -> nodes.BoundNode:
        """The bound form of a predicate that is not AND, OR or NOT, or of its negation."""


def conjunction(children: Sequence[nodes.BoundNode]) -> nodes.BoundNode:
    """AND of bound nodes, flattened."""
    flat: list[nodes.BoundNode] = []
    for child in children:
        flat.extend(child.children if isinstance(child, nodes.BoundAnd) else (child,))
    if not flat:
        return nodes.BoundTruth(True)
    return flat[0] if len(flat) == 1 else nodes.BoundAnd(tuple(flat))


def disjunction(children: Sequence[nodes.BoundNode]) -> nodes.BoundNode:
    """OR of bound nodes, flattened. Equalities of one key become one IN, in whatever form the client wrote them."""
    flat: list[nodes.BoundNode] = []
    for child in children:
        flat.extend(child.children if isinstance(child, nodes.BoundOr) else (child,))
    equal: dict[tuple[int, KeyKind], set[KeyValue]] = {}
    others: list[nodes.BoundNode] = []
    for child in flat:
        match child:
            case nodes.BoundComparison(index, kind, tree.ComparisonOperator.EQUAL, value):
                equal.setdefault((index, kind), set()).add(value)
            case nodes.BoundIn(index, kind, values, False):
                equal.setdefault((index, kind), set()).update(values)
            case _:
                others.append(child)
    merged: list[nodes.BoundNode] = [
        nodes.BoundIn(index, kind, frozenset(values)) for (index, kind), values in equal.items()
    ]
    merged.extend(others)
    if not merged:
        return nodes.BoundTruth(False)
    return merged[0] if len(merged) == 1 else nodes.BoundOr(tuple(merged))
