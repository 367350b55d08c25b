"""Events in the form in which they are sent, and the filter of a listener."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hms_cache.admin.feed.positions import EndReason, FeedPosition
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.notifications.events import NotificationRow, header_of
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.scope import Scope
from hms_cache.notifications.visibility import Needed, access_checks_of
from hms_cache.values import frozen

_OVERHEAD_BYTES = 1_000
"""Size of an event in addition to its texts: objects and the frame."""


@frozen
class FeedEvent:
    """One event, encoded once for all listeners."""

    position: FeedPosition
    scope: Scope
    header: bytes
    """A complete server-sent event without the message."""
    row: NotificationRow
    needed: Needed
    """What a user must be allowed to see the event; None unless users are checked."""

    @classmethod
    def of(cls, row: NotificationRow, *, for_users: bool) -> FeedEvent:
        """Decodes the message to find its scope; an event that cannot be decoded may concern anything.

        `for_users`: whether `needed` is determined.
        """
        position = FeedPosition.of(row)
        needed = access_checks_of(row) if for_users else None
        return cls(position, read_event(row).scope, _frame(position, _columns(row)), row, needed)

    @property
    def weight_bytes(self) -> int:
        """Approximate memory use."""
        return _OVERHEAD_BYTES + len(self.row.message or "")

    def encoded(self, *, with_message: bool) -> bytes:
        """The server-sent event, with or without the message."""
        if not with_message:
            return self.header
        message = {"message": self.row.message, "message_format": self.row.message_format}
        return _frame(self.position, _columns(self.row) | message)


@frozen
class FeedFilter:
    """The filter of a listener: an empty field matches all. Names are normalized."""

    catalogs: frozenset[str] = frozenset()
    databases: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()

    @classmethod
    def of(cls, catalogs: Iterable[str], databases: Iterable[str], tables: Iterable[str]) -> FeedFilter:
        """Creates a filter from names as clients spell them."""
        return cls(
            *(frozenset(normalize_identifier(name) for name in names) for names in (catalogs, databases, tables))
        )

    @property
    def wants_all(self) -> bool:
        """Whether everything matches."""
        return not (self.catalogs or self.databases or self.tables)

    def admits(self, scope: Scope) -> bool:
        """Whether the event may concern what the filter selects; in doubt true.

        A rename concerns both names; dropping a database concerns its tables. Transactions alone concern none.
        """
        if self.wants_all or scope.everything:
            return True
        catalogs, databases = set(scope.whole_catalogs), set(scope.whole_databases)
        if not self.tables:
            databases |= scope.databases
            databases |= {DatabaseName(one.catalog, one.database) for one in scope.functions}
            if not self.databases:
                catalogs |= scope.catalogs
        tables = (*scope.tables, *scope.partitions)
        return (
            any(self._wants(catalog) for catalog in catalogs)
            or any(self._wants(*name) for name in databases)
            or any(self._wants(*name) for name in tables)
        )

    def _wants(self, catalog: str, database: str | None = None, table: str | None = None) -> bool:
        return (
            (not self.catalogs or catalog in self.catalogs)
            and (not self.databases or database is None or database in self.databases)
            and (not self.tables or table is None or table in self.tables)
        )


def position_frame(position: FeedPosition) -> bytes:
    """Advances the listener's `Last-Event-ID` without an event (HTML, server-sent events: data is empty); also the
    heartbeat."""
    return f": alive\nid: {position}\n\n".encode()


def end_frame(reason: EndReason, problem: str) -> bytes:
    """The last event of a feed. It has no id, so the listener's position stays that of the last event."""
    data = json.dumps({"reason": reason.value, "problem": problem})
    return f"event: end\ndata: {data}\n\n".encode()


def _columns(row: NotificationRow) -> dict[str, object]:
    return header_of(row)._asdict()


def _frame(position: FeedPosition, data: dict[str, object]) -> bytes:
    return f"id: {position}\nevent: change\ndata: {json.dumps(data)}\n\n".encode()
