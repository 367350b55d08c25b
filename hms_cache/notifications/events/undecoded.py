"""Events that do not describe a single object: batches, and events that could not be decoded."""

from __future__ import annotations

from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.events.base import Event, scope_of_row
from hms_cache.notifications.events.rows import EventHeader
from hms_cache.notifications.scope import EVERYTHING, Scope
from hms_cache.values import frozen


@frozen
class BatchWritten(Event):
    """BATCH_ACID_WRITE_EVENT or UPDATE_PART_COL_STAT_EVENT_BATCH: defined by Hive 4, which logs single events
    instead."""


@frozen
class UndecodedEvent(Event):
    """An event that could not be handled: an unknown type or format, a damaged message, or a failed application.

    ``concerned`` is its maximum scope: what its columns name if the type's columns are complete, otherwise everything.
    """

    reason: str = ""
    concerned: Scope = EVERYTHING

    @property
    def scope(self) -> Scope:
        return self.concerned


# Types whose columns do not name everything they concern: the other name of a rename, the child of a foreign key.
_NAMED_IN_MESSAGE_ONLY = frozenset({EventType.ALTER_TABLE, EventType.ADD_FOREIGNKEY})


def undecoded(header: EventHeader, reason: str) -> UndecodedEvent:
    """Replaces an event with this header that could not be decoded or applied."""
    if header.event_type in _NAMED_IN_MESSAGE_ONLY:
        return UndecodedEvent(header, reason, EVERYTHING)
    return UndecodedEvent(header, reason, scope_of_row(header))
