"""Evaluates a bound predicate for all rows, with NumPy on factorized key columns.

Every leaf becomes a truth value per distinct text of its key, then a mask of the rows. If the true texts are adjacent
in the dictionary (`=`, ranges of text, most dates), the mask is one or two comparisons of codes, otherwise a lookup.
Masks are computed per leaf and combined in place.

A leaf has two masks: where it is *true*, and where it is *possible*, that is true or unknown. For filters they are
equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from hms_cache.expressions import bound as nodes
from hms_cache.expressions.bound import Bound
from hms_cache.expressions.filter_parser import DEFAULT_LIMITS, FilterLimits
from hms_cache.expressions.key_columns import Codes, KeyColumn, KeyColumns, Mask
from hms_cache.expressions.key_types import MAX_LONG, KeyKind, KeyValue
from hms_cache.expressions.tree import ComparisonOperator
from hms_cache.values import frozen


@frozen
class ExpressionResult:
    """The rows that match an expression or might match, and whether there are any of the second kind.

    A read returns `mask` and sets `hasUnknownPartitions` to `has_unknown`; then the client filters again. A drop must
    be refused if `has_unknown` is true, because `mask` may contain other partitions.
    """

    mask: Mask
    has_unknown: bool


@frozen
class _Masks:
    """`possible` is the same array as `true` if everything is decided."""

    true: Mask
    possible: Mask


def evaluate(bound: Bound, columns: KeyColumns, limits: FilterLimits = DEFAULT_LIMITS) -> Mask:
    """A mask of the rows for which the predicate is true; it belongs to the caller.

    For expression trees use `evaluate_expression`: this function excludes undecided rows. Raises `FilterLimitError`
    above `limits.max_comparisons`.
    """
    return _Evaluation(bound, columns, limits).masks(bound.root).true


def evaluate_expression(bound: Bound, columns: KeyColumns, limits: FilterLimits = DEFAULT_LIMITS) -> ExpressionResult:
    """The rows that match an expression tree, including undecided ones.

    Raises `FilterLimitError` above `limits.max_comparisons`.
    """
    masks = _Evaluation(bound, columns, limits).masks(bound.root)
    if masks.possible is masks.true:
        return ExpressionResult(masks.true, False)
    undecided = bool((masks.possible & ~masks.true).any())
    return ExpressionResult(masks.possible, undecided)


class _Evaluation:
    def __init__(self, bound: Bound, columns: KeyColumns, limits: FilterLimits) -> None:
        self._bound = bound
        self._columns = columns
        self._lenient = not bound.is_expression
        self._limits = limits
        self._left = limits.max_comparisons
        self._of_node = 1 + len(columns) // 64

    def _spend(self, comparisons: int) -> None:
        self._left -= comparisons
        if self._left < 0:
            self._limits.refuse_comparisons()

    def masks(self, node: nodes.BoundNode) -> _Masks:
        self._spend(self._of_node)
        match node:
            case nodes.BoundAnd(children):
                return self._joined(children, np.logical_and, True)
            case nodes.BoundOr(children):
                return self._joined(children, np.logical_or, False)
            case nodes.BoundTruth(truth):
                return self._same(np.full(len(self._columns), truth, np.bool_))
            case nodes.BoundUnknown():
                size = len(self._columns)
                return _Masks(np.zeros(size, np.bool_), np.ones(size, np.bool_))
            case nodes.BoundComplement(child):
                masks = self.masks(child)
                # If it is unknown whether the child is true, the complement is unknown, too.
                possible = ~masks.true
                return self._same(possible) if masks.possible is masks.true else _Masks(~masks.possible, possible)
            case nodes.BoundFunction(indexes, test):
                return self._function(indexes, test)
            case nodes.BoundComparison(index, kind, comparison, value) if kind is KeyKind.TEXT:
                return self._text_comparison(index, comparison, str(value))
            case nodes.BoundIn(index, kind, values, False) if kind is KeyKind.TEXT and len(values) == 1:
                return self._text_comparison(index, ComparisonOperator.EQUAL, str(next(iter(values))))
            case _:
                return self._leaf(node)

    def _same(self, mask: Mask) -> _Masks:
        return _Masks(mask, mask)

    def _joined(self, children: tuple[nodes.BoundNode, ...], join: np.ufunc, start: bool) -> _Masks:
        true: Mask | None = None
        possible: Mask | None = None
        for child in children:
            masks = self.masks(child)
            if true is None or possible is None:
                true, possible = masks.true, masks.possible
                continue
            if possible is true and masks.possible is masks.true:
                join(true, masks.true, out=true)
                continue
            if possible is true:
                possible = true.copy()
            join(true, masks.true, out=true)
            join(possible, masks.possible, out=possible)
        if true is None or possible is None:
            return self._same(np.full(len(self._columns), start, np.bool_))
        return _Masks(true, possible)

    def _text_comparison(self, index: int, comparison: ComparisonOperator, text: str) -> _Masks:
        """The matching texts are a range of codes, without the default partition if that means NULL."""
        column = self._columns.columns[index]
        dictionary = column.dictionary
        low = dictionary.position(text)
        high = low + (low < len(dictionary) and dictionary[low] == text)
        match comparison:
            case ComparisonOperator.EQUAL:
                mask = _in_range(column.codes, low, high)
            case ComparisonOperator.NOT_EQUAL:
                mask = ~_in_range(column.codes, low, high)
            case ComparisonOperator.LESS:
                mask = _in_range(column.codes, 0, low)
            case ComparisonOperator.LESS_OR_EQUAL:
                mask = _in_range(column.codes, 0, high)
            case ComparisonOperator.GREATER:
                mask = _in_range(column.codes, high, len(dictionary))
            case ComparisonOperator.GREATER_OR_EQUAL:
                mask = _in_range(column.codes, low, len(dictionary))
        # A comparison with the default partition's name is by text, as in Hive: `s = '__HIVE_DEFAULT_PARTITION__'`.
        if self._bound.is_expression and text != self._bound.default_partition_name:
            null = dictionary.find(self._bound.default_partition_name)
            if null is not None:
                mask &= column.codes != null
        return self._same(mask)

    def _leaf(self, node: nodes.BoundNode) -> _Masks:
        """A leaf with one key: truth per distinct text, then per row."""
        match node:
            case nodes.BoundComparison(index, kind, comparison, value):
                column = self._columns.columns[index]
                true, valid = self._compared(column, kind, comparison, value)
            case nodes.BoundIn(index, kind, values, negated):
                column = self._columns.columns[index]
                true, valid = self._included(column, kind, values, negated)
            case nodes.BoundLike(index, pattern, negated):
                column = self._columns.columns[index]
                self._spend(len(column.dictionary) * (1 + len(pattern.text) // 64))
                found = (pattern.matches(text) != negated for text in column.dictionary)
                true = np.fromiter(found, np.bool_, len(column.dictionary))
                valid = np.ones(len(true), np.bool_)
                if self._bound.is_expression:
                    true &= ~self._default_entries(column)
            case nodes.BoundNullTest(index, kind, negated):
                return self._null_test(index, kind, negated)
            case _:
                raise TypeError(type(node).__name__)
        return self._spread(column, true, valid)

    def _spread(self, column: KeyColumn, true: Mask, decided: Mask) -> _Masks:
        mask = _lookup(column.codes, true)
        if not self._bound.is_expression or decided.all():
            return self._same(mask)
        undecided = ~decided & ~self._default_entries(column)
        if not undecided.any():
            return self._same(mask)
        return _Masks(mask, _lookup(column.codes, true | undecided))

    def _default_entries(self, column: KeyColumn) -> Mask:
        entries = np.zeros(len(column.dictionary), np.bool_)
        position = column.dictionary.find(self._bound.default_partition_name)
        if position is not None:
            entries[position] = True
        return entries

    def _compared(
        self, column: KeyColumn, kind: KeyKind, comparison: ComparisonOperator, value: KeyValue
    ) -> tuple[Mask, Mask]:
        compare = comparison.compare
        if kind.is_text:
            self._spend(len(column.dictionary))
            values = _texts(column, kind)
            true = np.fromiter((compare(text, value) for text in values), np.bool_, len(values))
            return true & ~self._null_texts(column, value), np.ones(len(true), np.bool_)
        reading = column.reading(kind, self._lenient)
        self._spend(len(reading.values) // (1 if reading.values.dtype == object else 64))
        true = np.asarray(compare(reading.values, value), np.bool_)
        return true & reading.valid, reading.valid

    def _included(
        self, column: KeyColumn, kind: KeyKind, values: frozenset[KeyValue], negated: bool
    ) -> tuple[Mask, Mask]:
        self._spend(len(values))
        if kind is KeyKind.TEXT:
            true = np.zeros(len(column.dictionary), np.bool_)
            positions = (column.dictionary.find(str(value)) for value in values)
            true[[position for position in positions if position is not None]] = True
            if negated:
                true = ~true & ~self._null_texts(column)
            elif self._bound.default_partition_name not in values:
                true &= ~self._null_texts(column)
            return true, np.ones(len(true), np.bool_)
        self._spend(len(column.dictionary))
        if kind is KeyKind.CHAR:
            texts = _texts(column, kind)
            true = np.fromiter(((text in values) != negated for text in texts), np.bool_, len(texts))
            return true & ~self._null_texts(column), np.ones(len(true), np.bool_)
        reading = column.reading(kind, self._lenient)
        if reading.values.dtype == object:
            true = np.fromiter((value in values for value in reading.values), np.bool_, len(reading.values))
        else:
            true = np.isin(reading.values, np.array(list(values), reading.values.dtype))
        return (~true if negated else true) & reading.valid, reading.valid

    def _null_texts(self, column: KeyColumn, literal: KeyValue | None = None) -> Mask:
        """Entries of a text key that are NULL in an expression, unless the literal is the default partition's name."""
        if not self._bound.is_expression or literal == self._bound.default_partition_name:
            return np.zeros(len(column.dictionary), np.bool_)
        return self._default_entries(column)

    def _null_test(self, index: int, kind: KeyKind, negated: bool) -> _Masks:
        """The default partition is NULL. A text that is not a value of the type is NULL as well, as far as that is
        certain."""
        column = self._columns.columns[index]
        null = self._default_entries(column)
        if kind.is_text:
            return self._same(_lookup(column.codes, null != negated))
        valid = column.reading(kind, self._lenient).valid
        if not self._bound.is_expression:
            return self._same(_lookup(column.codes, ~valid != negated))
        return self._spread(column, valid if negated else null, valid | null)

    def _function(self, indexes: tuple[int, ...], test: Callable[[tuple[str, ...]], Any]) -> _Masks:
        """Evaluated once per distinct combination of texts that occurs."""
        columns = [self._columns.columns[index] for index in indexes]
        combined, sizes = _combined(columns)
        self._spend(len(combined))
        distinct, codes = np.unique(combined, return_inverse=True)
        true = np.zeros(len(distinct), np.bool_)
        undecided = np.zeros(len(distinct), np.bool_)
        for position, combination in enumerate(distinct.tolist()):
            texts: list[str] = []
            for column, size in zip(reversed(columns), reversed(sizes), strict=True):
                combination, code = divmod(combination, size)
                texts.append(column.dictionary[code])
            answer = test(tuple(reversed(texts)))
            true[position] = answer is True
            undecided[position] = answer is nodes.UNDECIDED
        mask = true[codes]
        return _Masks(mask, (true | undecided)[codes]) if undecided.any() else self._same(mask)


def _texts(column: KeyColumn, kind: KeyKind) -> list[str]:
    return [text.rstrip(" ") for text in column.dictionary] if kind is KeyKind.CHAR else list(column.dictionary)


def _combined(columns: list[KeyColumn]) -> tuple[npt.NDArray[Any], list[int]]:
    """One integer per row for its combination of codes, and the radix of each column."""
    sizes = [max(1, len(column.dictionary)) for column in columns]
    too_large = reduce(operator.mul, sizes, 1) > MAX_LONG
    combined: npt.NDArray[Any] = columns[0].codes.astype(object if too_large else np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        combined = combined * size + column.codes
    return combined, sizes


def _in_range(codes: Codes, low: int, high: int) -> Mask:
    """The codes from `low` up to but not including `high`; the bounds may exceed the codes' type."""
    limit = int(np.iinfo(codes.dtype).max)
    if low >= high or low > limit:
        return np.zeros(len(codes), np.bool_)
    if high - low == 1:
        return np.asarray(codes == low)
    if low == 0 and high > limit:
        return np.ones(len(codes), np.bool_)
    if low == 0:
        return np.asarray(codes < high)
    if high > limit:
        return np.asarray(codes >= low)
    return np.asarray((codes >= low) & (codes < high))


def _lookup(codes: Codes, truth: Mask) -> Mask:
    """The truth value of each row's code."""
    positions = np.flatnonzero(truth)
    if not len(positions):
        return np.zeros(len(codes), np.bool_)
    low, high = int(positions[0]), int(positions[-1]) + 1
    if high - low == len(positions):
        return _in_range(codes, low, high)
    return np.asarray(truth[codes])
