"""The warehouse: default locations of data, and the directories that the store creates, moves and deletes."""

from hms_cache.store.warehouse.allowed import AllowedLocation
from hms_cache.store.warehouse.changes import TransactionOutcome, WarehouseChanges
from hms_cache.store.warehouse.listings import DirectoryStatistics
from hms_cache.store.warehouse.locations import Location
from hms_cache.store.warehouse.warehouse import Warehouse

__all__ = ["AllowedLocation", "DirectoryStatistics", "Location", "TransactionOutcome", "Warehouse", "WarehouseChanges"]
