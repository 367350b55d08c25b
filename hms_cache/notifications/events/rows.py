"""Rows of NOTIFICATION_LOG: to be appended, as read, and without the message."""

from __future__ import annotations

from typing import Any, NamedTuple

from hms_cache.thrift_gen.hive_metastore import ttypes


class EventRow(NamedTuple):
    """A row to be appended to NOTIFICATION_LOG, without the ids and time that the commit adds.

    Names are in lower case; ``None`` where Hive writes none (``table`` of a database event, all three of ``OPEN_TXN``).
    ``message`` is encoded in ``message_format`` (``json-0.2`` or ``gzip(json-2.0)``). ``keeps_name``: an ALTER_TABLE
    that is not a rename, which the columns do not show. ``keeps_tables``: a COMMIT_TXN that sets no table parameter,
    which its message does not show.
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
"""Fields of `NotificationEvent`, in the order of a `NotificationRow`."""


class NotificationRow(NamedTuple):
    """A row of NOTIFICATION_LOG as read. ``event_time_s`` is by the clock of the server that wrote it."""

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
        """The row for a struct that a metastore returned."""
        return cls(*(getattr(event, name) for name in _FIELDS))

    def sent(self) -> ttypes.NotificationEvent:
        """The struct that a metastore returns."""
        values: dict[str, Any] = dict(zip(_FIELDS, self, strict=True))
        return ttypes.NotificationEvent(**values | {"message": self.message or ""})


class EventHeader(NamedTuple):
    """The contents of the columns, with names as stored."""

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
