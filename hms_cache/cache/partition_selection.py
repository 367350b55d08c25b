"""A selection decided on a complete set in memory: the counterpart of the store's, by the same expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partition_set import PartitionSet
from hms_cache.expressions import FilterError, bind, evaluate, evaluate_expression, parse_filter
from hms_cache.expressions.hive_tree import parse_expression
from hms_cache.expressions.key_columns import KeyColumn
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByExpression,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionSelection,
)
from hms_cache.store.partition_names import DEFAULT_PARTITION_VALUE
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


class SelectionError(Exception):
    """The selection does not fit the table; the store has the exception and the text for it."""


@dataclass(frozen=True, slots=True)
class SelectedNames:
    """Names ascending; `has_unknown` when an expression could not be decided exactly."""

    names: Sequence[str]
    has_unknown: bool = False


def select_names(held: PartitionSet, selection: PartitionSelection, max_parts: int) -> SelectedNames:
    """The selected partitions: filter first, then `max_parts` (negative: no limit). Raises SelectionError."""
    if max_parts == 0:
        return SelectedNames(())
    selected = _select(held, selection)
    if 0 <= max_parts < len(selected.names):
        return SelectedNames(selected.names[:max_parts], selected.has_unknown)
    return selected


def _select(held: PartitionSet, selection: PartitionSelection) -> SelectedNames:
    try:
        match selection:
            case AllPartitions():
                return SelectedNames(held.names())
            case ByNames(names):
                return SelectedNames(sorted(name for name in set(names) if held.find_name(name) is not None))
            case ByValues(values):
                name = held.name_of(values)
                return SelectedNames([name] if held.find_name(name) is not None else [])
            case ByPartialValues(values):
                return _by_partial_values(held, values)
            case ByFilter(text):
                return _by_filter(held, text)
            case ByExpression():
                return _by_expression(held, selection)
    except (FilterError, MetaException, UnicodeDecodeError) as error:
        raise SelectionError(str(error)) from error


def _by_partial_values(held: PartitionSet, values: Sequence[str]) -> SelectedNames:
    if len(values) > len(held.keys):
        raise SelectionError("more values than partition keys")
    fixed = [(position, value) for position, value in enumerate(values) if value]
    if not fixed:
        return SelectedNames(held.names())
    if len(fixed) == len(held.keys):
        name = held.name_of(values)
        return SelectedNames([name] if held.find_name(name) is not None else [])
    columns = held.columns()
    mask = None
    for position, value in fixed:
        hits = _equal_text(columns.columns[position], value)
        mask = hits if mask is None else mask & hits
    assert mask is not None
    return _masked(held, mask)


def _equal_text(column: KeyColumn, value: str) -> npt.NDArray[np.bool_]:
    """Rows whose text is `value`; an empty text is stored where the name holds the default partition's."""
    wanted = [value, ""] if value == DEFAULT_PARTITION_VALUE else [value]
    found = [code for text in wanted if (code := column.dictionary.find(text)) is not None]
    mask: npt.NDArray[np.bool_] = np.isin(column.codes, found)
    return mask


def _by_filter(held: PartitionSet, text: str) -> SelectedNames:
    if not text.strip():
        return SelectedNames(held.names())
    mask = evaluate(bind(parse_filter(text), held.keys), held.columns())
    return _masked(held, mask)


def _by_expression(held: PartitionSet, selection: ByExpression) -> SelectedNames:
    parsed = parse_expression(selection.expression, selection.plain_text)
    bound = parsed.bind(held.keys, selection.default_partition_name or DEFAULT_PARTITION_VALUE)
    if parsed.is_filter_text:
        return _masked(held, evaluate(bound, held.columns()))
    result = evaluate_expression(bound, held.columns())
    return _masked(held, result.mask, result.has_unknown)


def _masked(held: PartitionSet, mask: npt.NDArray[np.bool_], has_unknown: bool = False) -> SelectedNames:
    names = held.names()
    return SelectedNames([names[row] for row in mask.nonzero()[0].tolist()], has_unknown)
