"""Work for a selection of partitions that is done before memory is locked."""

from __future__ import annotations

import logging
from typing import Final

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions.selection import PreparedSelection
from hms_cache.cache.reads.reading import Reading, frozen_table
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByExpression, ByFilter, ByNames, PartitionSelection

_log = logging.getLogger(__name__)

MANY_NAMES: Final = 100
MANY_CHARACTERS: Final = 200
"""Fewer names are looked up, and shorter filters are bound, under the lock: taking it twice takes about as long."""


def prepared_selection(reading: Reading, table: TableName, selection: PartitionSelection) -> PreparedSelection:
    """The selection: parsed, bound to the keys of the table, and its names looked up in the present blocks."""
    prepared = PreparedSelection(selection, reading.filter_limits)
    match selection:
        case ByNames(names):
            is_long = len(names) > MANY_NAMES
        case ByFilter(text):
            is_long = len(text) > MANY_CHARACTERS
        case ByExpression(expression):
            is_long = len(expression) > MANY_CHARACTERS
        case _:
            return prepared
    if not reading.modes.enabled:
        return prepared
    try:
        if prepared.is_decided_by_keys:
            prepared.read()
        if is_long:
            _prepare(reading, table, prepared)
    except Exception as error:
        # Any error in the selection or in memory occurs again under the lock, where it is handled.
        _log.debug("a selection is not prepared before memory is locked: %s", error)
    return prepared


def _prepare(reading: Reading, table: TableName, prepared: PreparedSelection) -> None:
    with reading.cache.view():
        entry = reading.cache.tables.get(table)
        cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
        of_table = frozen_table(entry) if entry is not None and Facet.TABLE in entry.facets else None
        segments = cached.segments if cached is not None else ()
    if not prepared.is_decided_by_keys:
        prepared.names.find_rows(segments)
    elif of_table is not None:
        prepared.bound_to(tuple((key.name, key.type) for key in of_table.partitionKeys or ()))
