"""Rows of NOTIFICATION_LOG: to be appended, as read, and without the message."""

from __future__ import annotations

from typing import Any, NamedTuple

from hms_cache.thrift_gen.hive_metastore import ttypes


class EventRow(NamedTuple):
    """A row to be appended to NOTIFICATION_LOG, but for its ids and time, which the commit gives it.

    Names are lower-case; ``None`` where Hive writes none (``table`` of a database event, all three of ``OPEN_TXN``).
    ``message`` is encoded as ``message_format`` says (``json-0.2`` or ``gzip(json-2.0)``). ``keeps_name``: the
    ALTER_TABLE of a table that had the same name before, which its columns do not show. ``keeps_tables``: the
    COMMIT_TXN of a transaction that sets no parameter of a table with its commit, which its message does not show.
    """

    event_type: str
    catalog: str | None
    database: str | None
    table: str | None
    message: str
    message_format: str
    keeps_name: bool = False
    keeps_tables: bool = False


_FIELDS = ("eventId", "eventTime", "eventType", "catName", "dbName", "tableName", "message", "messageFormat")
"""Of `NotificationEvent`, in the order of a `NotificationRow`."""


class NotificationRow(NamedTuple):
    """A row of NOTIFICATION_LOG as read. ``event_time_s`` is the clock of the server that wrote it."""

    event_id: int
    event_time_s: int
    event_type: str
    catalog: str | None
    database: str | None
    table: str | None
    message: str | None
    message_format: str | None

    @classmethod
    def received(cls, event: ttypes.NotificationEvent) -> NotificationRow:
        """The row that a metastore answered as this struct."""
        return cls(*(getattr(event, name) for name in _FIELDS))

    def sent(self) -> ttypes.NotificationEvent:
        """The struct that a metastore answers."""
        values: dict[str, Any] = dict(zip(_FIELDS, self, strict=True))
        return ttypes.NotificationEvent(**values | {"message": self.message or ""})


class EventHeader(NamedTuple):
    """What the columns of the row tell, names as they stand there."""

    event_id: int
    event_time_s: int
    event_type: str
    catalog: str | None
    database: str | None
    table: str | None


def header_of(row: NotificationRow) -> EventHeader:
    """The row without its message."""
    return EventHeader(row.event_id, row.event_time_s, row.event_type, row.catalog, row.database, row.table)


class PartitionFiles(NamedTuple):
    """The files of one added partition, as an ADD_PARTITION message lists them."""

    partition_name: str
    files: tuple[str, ...]
