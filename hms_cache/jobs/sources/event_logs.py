"""Reads the notification log through a metastore's Thrift protocol; the store reads it from the database."""

from __future__ import annotations

from hms_cache.client import MetastoreClient, Metastores
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, LogHead, LogPage
from hms_cache.notifications.events import NotificationRow
from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest


class MetastoreEventLog:
    """Implements `hms_cache.notifications.event_log.EventLog`. For one thread at a time."""

    def __init__(self, uris: str | Metastores) -> None:
        """:param uris: as in `MetastoreClient`. Raises ConfigurationError."""
        self._client = MetastoreClient(uris)

    def head(self) -> LogHead:
        """The end of the log. A metastore does not say which database server it uses."""
        return LogHead(self._client.call("get_current_notificationEventId").eventId, UNKNOWN_HISTORY)

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        """At most ``limit`` rows. A metastore may return fewer rows than exist, so only an empty page is the end."""
        request = NotificationEventRequest(lastEvent=after_event_id, maxEvents=limit)
        rows = [
            NotificationRow.received(event)
            for event in self._client.call("get_next_notification", request).events or ()
        ]
        rows.sort(key=lambda row: row.event_id)
        return LogPage(rows, exhausted=not rows)

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()
