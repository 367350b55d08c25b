"""Rows of the notification log and their events, as frozen values.

A value contains what an invalidating reader needs (names, partition values, transaction and write ids) in decoded form,
and embedded Thrift objects as the original text, which methods decode on demand. ``scope`` is what the event may
concern. Facts about fields and columns: Hive 3.1 to 4.1, ``DbNotificationListener`` and the JSON messages.
"""

from __future__ import annotations

from hms_cache.notifications.events.base import Event, scope_of_row
from hms_cache.notifications.events.constraints import (
    CheckConstraintAdded,
    ConstraintDropped,
    ConstraintsAdded,
    DefaultConstraintAdded,
    ForeignKeyAdded,
    NotNullConstraintAdded,
    PrimaryKeyAdded,
    UniqueConstraintAdded,
)
from hms_cache.notifications.events.objects import (
    CatalogAltered,
    CatalogCreated,
    CatalogDropped,
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    FunctionCreated,
    FunctionDropped,
    FunctionEvent,
    GrantsChanged,
    OtherObjectChanged,
)
from hms_cache.notifications.events.rows import EventHeader, EventRow, NotificationRow, PartitionFiles, header_of
from hms_cache.notifications.events.statistics import (
    PartitionColumnStatisticsDeleted,
    PartitionColumnStatisticsUpdated,
    TableColumnStatisticsDeleted,
    TableColumnStatisticsUpdated,
)
from hms_cache.notifications.events.tables import (
    DataInserted,
    PartitionAltered,
    PartitionsAdded,
    PartitionsAltered,
    PartitionsDropped,
    PartitionsEvent,
    TableAltered,
    TableCreated,
    TableDropped,
    TableEvent,
    TableReloaded,
)
from hms_cache.notifications.events.transactions import (
    AcidDataWritten,
    CompactionCommitted,
    TransactionAborted,
    TransactionCommitted,
    TransactionsOpened,
    TransactionWriteId,
    WriteIdsAllocated,
)
from hms_cache.notifications.events.undecoded import BatchWritten, UndecodedEvent, undecoded

__all__ = [
    "AcidDataWritten",
    "BatchWritten",
    "CatalogAltered",
    "CatalogCreated",
    "CatalogDropped",
    "CatalogEvent",
    "CheckConstraintAdded",
    "CompactionCommitted",
    "ConstraintDropped",
    "ConstraintsAdded",
    "DataInserted",
    "DatabaseAltered",
    "DatabaseCreated",
    "DatabaseDropped",
    "DefaultConstraintAdded",
    "Event",
    "EventHeader",
    "EventRow",
    "ForeignKeyAdded",
    "FunctionCreated",
    "FunctionDropped",
    "FunctionEvent",
    "GrantsChanged",
    "NotNullConstraintAdded",
    "NotificationRow",
    "OtherObjectChanged",
    "PartitionAltered",
    "PartitionColumnStatisticsDeleted",
    "PartitionColumnStatisticsUpdated",
    "PartitionFiles",
    "PartitionsAdded",
    "PartitionsAltered",
    "PartitionsDropped",
    "PartitionsEvent",
    "PrimaryKeyAdded",
    "TableAltered",
    "TableColumnStatisticsDeleted",
    "TableColumnStatisticsUpdated",
    "TableCreated",
    "TableDropped",
    "TableEvent",
    "TableReloaded",
    "TransactionAborted",
    "TransactionCommitted",
    "TransactionWriteId",
    "TransactionsOpened",
    "UndecodedEvent",
    "UniqueConstraintAdded",
    "WriteIdsAllocated",
    "header_of",
    "scope_of_row",
    "undecoded",
]
