"""Writes of tables: `TableWrites` over the database, assembled from one module per kind of write."""

from __future__ import annotations

from hms_cache.store.contract.tables import TableWrites
from hms_cache.store.events.fired_events import FiredEvents
from hms_cache.store.tables.changes import TableChanges
from hms_cache.store.tables.creation import TableCreation
from hms_cache.store.tables.drops import TableDrops
from hms_cache.store.tables.parameter_updates import TableParameterUpdates
from hms_cache.store.tables.truncation import TableTruncation


class TableWriter(
    TableCreation, TableChanges, TableDrops, TableTruncation, TableParameterUpdates, FiredEvents, TableWrites
):
    """All writes of tables. They share only the store's context."""
