"""Evaluates a selection on a complete set in memory: the counterpart of the store's, with the same expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.requested_names import RequestedNames
from hms_cache.cache.partitions.segment import Segment, Values
from hms_cache.cache.partitions.segment_rows import SegmentRows
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions
from hms_cache.expressions import (
    Bound,
    FilterError,
    KeyColumns,
    PartitionKey,
    bind,
    evaluate,
    evaluate_expression,
    name_beginnings,
    parse_filter,
)
from hms_cache.expressions.filter_parser import DEFAULT_LIMITS, FilterLimits
from hms_cache.expressions.hive_tree import ParsedExpression, parse_expression
from hms_cache.expressions.key_columns import KeyColumn
from hms_cache.expressions.tree import Predicate
from hms_cache.metadata.name_ranges import NameRange, beginning_with, only
from hms_cache.metadata.names import is_among
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE, escape_path_name
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByExpression,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionSelection,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Partition, StorageDescriptor
from hms_cache.values import frozen

MAX_CHECKED = 500
"""Missing partitions for which a selection is evaluated, under the cache's lock: some milliseconds."""

MAX_GAPS = 16
"""Ranges that one read has loaded: each may be a segment."""

_EMPTY = frozenset(("", DEFAULT_PARTITION_VALUE))
"""Values that one name stands for."""

Mask = npt.NDArray[np.bool_]


class SelectionError(Exception):
    """The selection does not fit the table. The store raises the exception with the right text."""


@frozen
class Selected:
    """Partitions by name; `has_unknown` when an expression could not be decided exactly."""

    partitions: SelectedPartitions
    has_unknown: bool = False


_NOT_A_SELECTION = (FilterError, MetaException, UnicodeError)
"""Errors for selections that do not fit."""


class _Refused(NamedTuple):
    """What is wrong with a selection. Not the exception, whose frames hold everything involved, including this
    selection."""

    text: str


class PreparedSelection:
    """A selection of one call. A filter or an expression is parsed once, and bound once to the keys of its table: for
    one of a megabyte that takes a second or two, during which memory must not be locked. Not thread-safe."""

    __slots__ = ("_bound", "_names", "_read", "limits", "selection")

    def __init__(self, selection: PartitionSelection, limits: FilterLimits = DEFAULT_LIMITS) -> None:
        self.selection = selection
        self.limits = limits
        self._read: Predicate | ParsedExpression | _Refused | None = None
        self._bound: tuple[tuple[PartitionKey, ...], Bound | _Refused] | None = None
        self._names: RequestedNames | None = None

    @property
    def names(self) -> RequestedNames:
        """The names in a selection by names."""
        if self._names is None:
            self._names = RequestedNames(self.selection.names if isinstance(self.selection, ByNames) else ())
        return self._names

    @property
    def is_decided_by_keys(self) -> bool:
        """Whether it has something to be bound to the keys."""
        return isinstance(self.selection, ByExpression) or _has_filter(self.selection)

    def read(self) -> Predicate | ParsedExpression | _Refused:
        """The tree, or what is wrong with the text or the bytes."""
        if self._read is None:
            try:
                match self.selection:
                    case ByFilter(text):
                        self._read = parse_filter(text, self.limits)
                    case ByExpression(expression, _, plain_text):
                        self._read = parse_expression(expression, plain_text, self.limits)
                    case other:
                        raise TypeError(f"{type(other).__name__} has nothing to be read")
            except _NOT_A_SELECTION as error:
                self._read = _Refused(str(error))
        return self._read

    @property
    def is_text(self) -> bool:
        """Whether an expression is the text of a filter."""
        read = self.read()
        return isinstance(read, ParsedExpression) and read.is_filter_text

    def bound_to(self, keys: tuple[PartitionKey, ...]) -> Bound:
        """The filter, or the expression. Raises SelectionError."""
        if self._bound is None or self._bound[0] != keys:
            self._bound = keys, self._bind(keys)
        bound = self._bound[1]
        if isinstance(bound, _Refused):
            raise SelectionError(bound.text)
        return bound

    def _bind(self, keys: tuple[PartitionKey, ...]) -> Bound | _Refused:
        read, selection = self.read(), self.selection
        if isinstance(read, _Refused):
            return read
        try:
            if isinstance(read, ParsedExpression):
                name = selection.default_partition_name if isinstance(selection, ByExpression) else None
                return read.bind(keys, name or DEFAULT_PARTITION_VALUE)
            return bind(read, keys)
        except _NOT_A_SELECTION as error:
            return _Refused(str(error))


def _has_filter(selection: PartitionSelection) -> bool:
    """Whether it is by a filter that is not empty, which all partitions meet."""
    return isinstance(selection, ByFilter) and bool(selection.text.strip())


def _prepared(selection: PartitionSelection | PreparedSelection) -> PreparedSelection:
    return selection if isinstance(selection, PreparedSelection) else PreparedSelection(selection)


def select_partitions(
    cached: PartitionSet, selection: PartitionSelection | PreparedSelection, max_parts: int
) -> Selected:
    """Selects, then takes the first `max_parts` (negative: no limit; 0: evaluates the selection, then takes none).
    Raises SelectionError."""
    prepared = _prepared(selection)
    if max_parts == 0 and isinstance(prepared.selection, AllPartitions | ByNames):
        return Selected(cached.all().first(0))
    selected = _select(cached, prepared)
    if max_parts >= 0:
        return Selected(selected.partitions.first(max_parts), selected.has_unknown)
    return selected


def ranges_of(cached: PartitionSet, selection: PartitionSelection | PreparedSelection) -> tuple[NameRange, ...] | None:
    """Ranges that contain the names of all partitions of the selection, as the store finds them; None: any name is
    possible.

    Not for selections by names, each of which is a range of its own. Raises SelectionError.
    """
    prepared = _prepared(selection)
    try:
        match prepared.selection:
            case ByValues(values):
                return (only(cached.name_of(values)),)
            case ByPartialValues(values):
                return _ranges_of_values(cached, values)
        return _ranges_of_bound(prepared.bound_to(cached.keys)) if prepared.is_decided_by_keys else None
    except _NOT_A_SELECTION as error:
        raise SelectionError(str(error)) from error


def _ranges_of_values(cached: PartitionSet, values: Sequence[str]) -> tuple[NameRange, ...] | None:
    if len(values) == len(cached.keys) and all(values):
        return (only(cached.name_of(values)),)
    begun = ""
    for (key, _), value in zip(cached.keys, values, strict=False):
        if not value:
            break
        begun += f"{escape_path_name(key.lower())}={escape_path_name(value)}/"
    return (beginning_with(begun),) if begun else None


def _ranges_of_bound(bound: Bound) -> tuple[NameRange, ...] | None:
    beginnings = name_beginnings(bound, bound.keys)
    return (
        None
        if beginnings is None
        else tuple(only(text) if whole else beginning_with(text) for text, whole in beginnings)
    )


def narrowed(cached: PartitionSet, selection: PartitionSelection | PreparedSelection) -> PartitionSet:
    """The segments that may contain partitions of the selection, as a set to evaluate it on. Raises SelectionError."""
    if not cached.is_segmented:
        return cached
    prepared = _prepared(selection)
    if isinstance(prepared.selection, ByNames):
        return cached.narrowed_to_names(prepared.names)
    return cached.narrowed(ranges_of(cached, prepared))


def gaps_of(cached: PartitionSet, selection: PartitionSelection | PreparedSelection) -> tuple[NameRange, ...]:
    """Ranges of the selection that are not held completely, at most `MAX_GAPS`; none if any name is possible. Raises
    SelectionError."""
    prepared = _prepared(selection)
    gaps: Iterable[NameRange]
    if isinstance(prepared.selection, ByNames):
        of_gaps = (names for segment, names in prepared.names.in_segments(cached.segments) if not segment.complete)
        gaps = map(only, chain.from_iterable(of_gaps))  # of many names, the first few are enough
    else:
        gaps = (covered for covered in ranges_of(cached, prepared) or () if cached.gap_in(covered) is not None)
    return tuple(islice(gaps, MAX_GAPS))


def missing_of(cached: PartitionSet, selection: PartitionSelection | PreparedSelection) -> list[Values]:
    """The missing partitions that the selection may include, by name: without them, it can be evaluated exactly.

    If there are more than `MAX_CHECKED`, all of them, unordered, since memory is locked meanwhile: reading them
    together costs less than evaluating each. Those of the default partition are always included: an event does not say
    whether the value is stored as an empty text, which makes a difference to selections. Raises SelectionError.
    """
    missing = cached.missing
    if not missing or len(missing) > MAX_CHECKED:
        return list(missing)
    prepared = _prepared(selection)
    if isinstance(prepared.selection, ByNames):
        named = prepared.names.ordered
        return sorted(one for one in missing if _EMPTY.intersection(one) or is_among(named, cached.name_of(one)))
    checked_values = [values for values in missing if not _EMPTY.intersection(values)]
    stand_ins = [Partition(values=list(values), sd=StorageDescriptor()) for values in checked_values]
    checked = _select(PartitionSet(cached.keys, stand_ins, complete=True), prepared)
    if checked.has_unknown:
        return sorted(missing)
    selected = {tuple(values) for values in checked.partitions.values()}
    return sorted(values for values in missing if _EMPTY.intersection(values) or values in selected)


def _select(cached: PartitionSet, prepared: PreparedSelection) -> Selected:
    try:
        match prepared.selection:
            case AllPartitions():
                return Selected(cached.all())
            case ByNames():
                return Selected(cached.select_names(prepared.names))
            case ByValues(values):
                return Selected(cached.select_names(RequestedNames([cached.name_of(values)])))
            case ByPartialValues(values):
                return Selected(_by_partial_values(cached, values))
            case ByFilter():
                return Selected(_by_filter(cached, prepared) if prepared.is_decided_by_keys else cached.all())
            case ByExpression():
                return _by_expression(cached, prepared)
    except _NOT_A_SELECTION as error:
        raise SelectionError(str(error)) from error


def _by_partial_values(cached: PartitionSet, values: Sequence[str]) -> SelectedPartitions:
    if len(values) > len(cached.keys):
        raise SelectionError("more values than partition keys")
    fixed = [(position, value) for position, value in enumerate(values) if value]
    if not fixed:
        return cached.all()
    if len(fixed) == len(cached.keys):
        return cached.select_names(RequestedNames([cached.name_of(values)]))

    def mask_of(columns: KeyColumns) -> Mask:
        masks = [_equal_text(columns.columns[position], value) for position, value in fixed]
        return np.logical_and.reduce(masks)  # type: ignore[no-any-return]

    return _masked(cached, mask_of)


def _equal_text(column: KeyColumn, value: str) -> Mask:
    """Rows whose text is `value`. The text is empty if the name has the name of the default partition."""
    requested = [value, ""] if value == DEFAULT_PARTITION_VALUE else [value]
    found = [code for text in requested if (code := column.dictionary.find(text)) is not None]
    if len(found) == 1:
        return np.asarray(column.codes == found[0])
    return np.isin(column.codes, found)


def _by_filter(cached: PartitionSet, prepared: PreparedSelection) -> SelectedPartitions:
    bound = prepared.bound_to(cached.keys)
    return _masked(cached, lambda columns: evaluate(bound, columns, prepared.limits))


def _by_expression(cached: PartitionSet, prepared: PreparedSelection) -> Selected:
    if prepared.is_text:
        return Selected(_by_filter(cached, prepared))
    bound = prepared.bound_to(cached.keys)
    has_unknown = False
    chosen = []
    for segment in cached.segments:
        rows, is_unknown = _expression_rows(segment, bound, prepared.limits)
        chosen.append(rows)
        has_unknown = has_unknown or is_unknown
    return Selected(SelectedPartitions.of(chosen), has_unknown)


def _expression_rows(segment: Segment, bound: Bound, limits: FilterLimits) -> tuple[SegmentRows, bool]:
    """The rows, and whether one of them could not be decided exactly."""
    base = evaluate_expression(bound, segment.base_columns, limits)
    has_unknown = base.has_unknown
    if has_unknown and segment.hides_rows:
        # The undecided row may be one of the hidden ones.
        has_unknown = evaluate_expression(bound, segment.visible_columns(), limits).has_unknown
    columns = segment.tail_columns
    if columns is None:
        return segment.select_masks(base.mask, None), has_unknown
    tail = evaluate_expression(bound, columns, limits)
    return segment.select_masks(base.mask, tail.mask), has_unknown or tail.has_unknown


def _masked(cached: PartitionSet, mask_of: Callable[[KeyColumns], Mask]) -> SelectedPartitions:
    def rows_of(segment: Segment) -> SegmentRows:
        columns = segment.tail_columns
        return segment.select_masks(mask_of(segment.base_columns), mask_of(columns) if columns is not None else None)

    return cached.select(rows_of)
