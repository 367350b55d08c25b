"""The notification log as one principal may see it: an event is shown if everything that it names may be seen.

Java's client takes a gap in the ids for lost events. So an event that is not shown keeps its id and time, and nothing
else. A request with filters gets no such placeholders: the number of matching events would reveal something about them.
For the same reason, filters are applied after this check, not before it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress

from hms_cache.authorization.decisions import Decisions
from hms_cache.metadata.names import normalize_identifier
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.visibility import access_checks_of, visible
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventResponse,
)

HIDDEN = "HIDDEN"
"""The type of an event that is not shown. No release of Hive has a type of this name."""

MAX_PAGES = 16
"""Pages of the log that are read for one request with filters. If no event is shown, the last id tells the client how
far the search got."""

EVENTS_OF_A_PAGE = 2_000
"""About 14 MB of messages. Anybody may send a filter that matches nothing, and must not make the server hold the whole
log in memory."""

_FILTERS = ("eventTypeSkipList", "eventTypeList", "catName", "dbName", "tableNames")
ReadEvents = Callable[[NotificationEventRequest], NotificationEventResponse]


def shown_events(
    decisions: Decisions, request: NotificationEventRequest, read_events: ReadEvents
) -> NotificationEventResponse:
    """The answer to a request of a principal that is not a service; `read_events` reads the log."""
    if all(getattr(request, name) is None for name in _FILTERS):
        page = read_events(NotificationEventRequest(request.lastEvent, request.maxEvents)).events
        may = _visible(decisions, page)
        return NotificationEventResponse([one if seen else _hidden(one) for one, seen in zip(page, may, strict=True)])
    matches = _filter(request)
    requested = request.maxEvents or 0
    last: NotificationEvent | None = None
    for _ in range(MAX_PAGES):
        page = read_events(
            NotificationEventRequest(last.eventId if last else request.lastEvent, EVENTS_OF_A_PAGE)
        ).events
        if not page:
            return NotificationEventResponse([])
        last = page[-1]
        found = [one for one in compress(page, _visible(decisions, page)) if matches(one)]
        if found:
            return NotificationEventResponse(found[:requested] if requested > 0 else found)
    return NotificationEventResponse([_hidden(last)] if last else [])


def _hidden(event: NotificationEvent) -> NotificationEvent:
    return NotificationEvent(event.eventId, event.eventTime, HIDDEN, None, None, "{}", "json-0.2", None)


def _filter(request: NotificationEventRequest) -> Callable[[NotificationEvent], bool]:
    """The same filters as those of the log."""
    skipped, types = set(request.eventTypeSkipList or ()), set(request.eventTypeList or ())
    tables = {normalize_identifier(name) for name in request.tableNames or ()}
    catalog = None if request.catName is None else normalize_identifier(request.catName)
    database = None if request.dbName is None else normalize_identifier(request.dbName)

    def matches(event: NotificationEvent) -> bool:
        return (
            event.eventType not in skipped
            and (not types or event.eventType in types)
            and (catalog is None or event.catName == catalog)
            and (database is None or event.dbName == database)
            and (not tables or event.tableName in tables)
        )

    return matches


def _visible(decisions: Decisions, events: list[NotificationEvent]) -> list[bool]:
    return visible(decisions, [access_checks_of(NotificationRow.received(one)) for one in events])
