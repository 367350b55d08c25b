"""Reads the notification log once for all listeners.

One task reads the log as long as there is a listener, and keeps the newest events. A listener is a position: it takes
the following events from there, or from the log while its position is older than the kept events. Nothing is queued per
listener, so a slow one costs no memory. All state belongs to the management port's event loop.
"""

from __future__ import annotations

import asyncio
import bisect
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial

from starlette.concurrency import run_in_threadpool

from hms_cache.admin.feed.events import FeedEvent, FeedFilter, end_frame, position_frame
from hms_cache.admin.feed.listeners import Listener
from hms_cache.admin.feed.positions import (
    EndReason,
    FeedEndedError,
    FeedPosition,
    oldest_position,
    position_at,
    rows_following,
)
from hms_cache.admin.sources import AdminSources
from hms_cache.authorization.decisions import UndecidedError
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.notifications.events import NotificationRow
from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest

_log = logging.getLogger(__name__)

#: Events read by one statement: messages have some KiB, so about a MiB.
_PAGE_EVENTS = 500

#: Minimum number of events to read for a listener that catches up: the row of its position, some more, and the last
#: one, which may share its id with another one and is then left to the next page.
_LEAST_PAGE_EVENTS = 6

#: Listeners that read the log concurrently to catch up; others wait.
_MAX_CATCHING_UP = 2

#: Bytes passed to a connection at once; the next ones follow after these are written.
_CHUNK_BYTES = 64 * 1024

#: Listeners whose visibility is checked concurrently: their threads may wait for another system, which must not block
#: probes.
_MAX_AUTHORIZING = 4

#: `events.poll_interval_s = 0` makes only calls read the log; listeners are not calls.
_LEAST_INTERVAL_S = 0.1

#: Pause of a listener after a system that it needs has not answered.
_RETRY_S = 1.0


class _Tail:
    """The newest events, up to `position`. `floor`: the id before the oldest of them."""

    def __init__(self, position: FeedPosition, budget_bytes: int) -> None:
        self.position = position
        self.floor = position.event_id
        self.changed = asyncio.Event()
        """Set when there are more events, or at the end; then replaced by a new one."""
        self.ended: FeedEndedError | None = None
        self.task: asyncio.Task[None] | None = None
        self.listeners = 0
        self._events: list[FeedEvent] = []
        self._weight_bytes = 0
        self._kept_id = position.event_id
        """Events after this one came with the last read."""
        self._budget_bytes = budget_bytes

    def append(self, events: Sequence[FeedEvent]) -> None:
        """Adds events, and drops the oldest ones beyond the budget.

        The events of this read and the previous one are kept in any case, so that a listener that keeps up does not
        lose its position because of a large batch.
        """
        kept_id = self._kept_id
        self._kept_id = self.position.event_id
        self._events.extend(events)
        self._weight_bytes += sum(event.weight_bytes for event in events)
        first = 0
        while self._weight_bytes > self._budget_bytes and self._events[first].position.event_id <= kept_id:
            self._weight_bytes -= self._events[first].weight_bytes
            self.floor = self._events[first].position.event_id
            first += 1
        del self._events[:first]
        self.position = events[-1].position
        self.wake()

    def wake(self) -> None:
        """Wakes all listeners."""
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, event_id: int) -> list[FeedEvent]:
        """Kept events after this one, a limited number."""
        first = bisect.bisect_right(self._events, event_id, key=lambda event: event.position.event_id)
        return self._events[first : first + _PAGE_EVENTS]


class ChangeFeed:
    """The feed of one process. All methods except `close` are called by the port's event loop."""

    def __init__(self, sources: AdminSources) -> None:
        self._sources = sources
        self._tail: _Tail | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._catching_up = asyncio.Semaphore(_MAX_CATCHING_UP)
        self._starting = asyncio.Lock()
        self._authorizing = asyncio.Semaphore(_MAX_AUTHORIZING)

    async def admit(self, listener: Listener) -> None:
        """Raises FeedEndedError if the listener may not listen, UndecidedError or DatabaseUnavailableError if that is
        unknown."""
        await self._shown(listener, [])

    async def position(self, requested: str, listener: Listener) -> FeedPosition:
        """The position of `latest`, `oldest` or a position as text.

        Raises ValueError for any other text, FeedEndedError if the log does not continue there or the listener may not
        listen, UndecidedError, DatabaseUnavailableError.
        """
        async with self._catching_up:
            return await run_in_threadpool(self._find, requested, listener)

    def _find(self, requested: str, listener: Listener) -> FeedPosition:
        if requested == "latest":
            return self._visible_position(self._end(), listener)
        if requested == "oldest":
            return oldest_position(self._read_rows, self._sources.read_log_end)
        position = self._visible_position(FeedPosition.parse(requested), listener)
        self._following(position)
        return position

    def _visible_position(self, position: FeedPosition, listener: Listener) -> FeedPosition:
        """The position, without the digest if the listener may not see the event.

        With the digest a listener could verify a guess of the row's contents, whether it receives or sends the digest.
        """
        if not listener.is_authorized or position.digest is None:
            return position
        rows = self._read_rows(max(0, position.event_id - 1), None)
        here = [self._event(row) for row in rows if row.event_id == position.event_id]
        return position if all(listener.shown(here)) else FeedPosition(position.event_id)

    async def frames(
        self, position: FeedPosition, feed_filter: FeedFilter, listener: Listener, *, with_messages: bool
    ) -> AsyncGenerator[bytes]:
        """Server-sent events from the position on, without end except after an `end` event.

        Events that the listener may not see are skipped, like those that it does not want; its position advances. The
        caller must close the iterator.
        """
        metrics = self._sources.metrics.management
        heartbeat_s = self._sources.configuration.settings.admin.listener_heartbeat_s
        yield b"retry: 2000\n" + position_frame(position)
        try:
            tail = await self._joined()
        except DatabaseUnavailableError as error:
            metrics.feed_ends.add((EndReason.FAILED.value,))
            yield end_frame(EndReason.FAILED, str(error))
            return
        follows, page_events = False, _PAGE_EVENTS
        loop = asyncio.get_running_loop()
        heartbeat_at_s = loop.time() + heartbeat_s
        try:
            while True:
                if loop.time() >= heartbeat_at_s:
                    # Not measured from the last event: events that are skipped would postpone the heartbeat for ever.
                    heartbeat_at_s = loop.time() + heartbeat_s
                    yield position_frame(position)
                changed = tail.changed
                if tail.ended is not None:
                    raise tail.ended
                if self._is_closed:
                    raise FeedEndedError(EndReason.STOPPING, "the server stops: connect again")
                if position.event_id >= tail.floor:
                    follows = True
                    events = tail.after(position.event_id)
                elif follows:
                    raise FeedEndedError(
                        EndReason.SLOW,
                        "the listener fell behind the events that are kept (admin.listener_buffer_bytes): connect again"
                        " with Last-Event-ID",
                    )
                else:
                    events = await self._caught_up(position, page_events)
                events, encoded = _next_chunk(events, feed_filter, with_messages)
                # The rest of a page is discarded. With long messages, a page would otherwise be read and decoded a
                # hundred times.
                page_events = min(_PAGE_EVENTS, max(_LEAST_PAGE_EVENTS, 2 * len(events) + 2))
                try:
                    shown = await self._shown(listener, events)
                except (UndecidedError, DatabaseUnavailableError):
                    await asyncio.sleep(_RETRY_S)
                    yield position_frame(position)
                    continue
                chunk: list[bytes] = []
                for event, frame, is_shown in zip(events, encoded, shown, strict=True):
                    position = event.position if is_shown else FeedPosition(event.position.event_id)
                    if is_shown and frame:
                        chunk.append(frame)
                if chunk:
                    metrics.feed_events.add((), len(chunk))
                    heartbeat_at_s = loop.time() + heartbeat_s
                    yield b"".join(chunk)
                elif events:
                    await asyncio.sleep(0)  # lets others run between pages without events for this listener
                else:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), max(0.0, heartbeat_at_s - loop.time()))
        except FeedEndedError as error:
            metrics.feed_ends.add((error.reason.value,))
            yield end_frame(error.reason, str(error))
        finally:
            self._left(tail)

    async def _shown(self, listener: Listener, events: Sequence[FeedEvent]) -> list[bool]:
        if not listener.is_authorized:
            return listener.shown(events)
        async with self._authorizing:
            return await run_in_threadpool(listener.shown, events)

    def close(self) -> None:
        """Ends all feeds, including later ones. Can be called from any thread."""
        self._is_closed = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._tail is not None:
            self._tail.wake()

    async def _joined(self) -> _Tail:
        """Adds a listener to the tail; the first one starts it."""
        async with self._starting:
            if self._tail is None or self._tail.ended is not None:
                self._loop = asyncio.get_running_loop()
                end = await run_in_threadpool(self._end)
                admin = self._sources.configuration.settings.admin
                self._tail = _Tail(end, admin.listener_buffer_bytes)
                self._tail.task = asyncio.create_task(self._follow(self._tail))
            self._tail.listeners += 1
            return self._tail

    def _left(self, tail: _Tail) -> None:
        tail.listeners -= 1
        if tail.listeners == 0:
            if tail.task is not None:
                tail.task.cancel()
            if self._tail is tail:
                self._tail = None

    async def _follow(self, tail: _Tail) -> None:
        """Reads the log's end for all listeners, every `events.poll_interval_s` if there is nothing new."""
        unreachable = False
        while True:
            rows: list[FeedEvent] = []
            try:
                rows = await run_in_threadpool(self._following, tail.position)
                unreachable = False
            except FeedEndedError as error:
                tail.ended = error
                tail.wake()
                return
            except DatabaseUnavailableError as error:
                if not unreachable:
                    _log.warning("the change feed waits for the database: %s", error)
                unreachable = True
            except Exception:
                _log.exception("the change feed cannot follow the notification log")
                tail.ended = FeedEndedError(EndReason.FAILED, "the server could not read the log: connect again")
                tail.wake()
                return
            if rows:
                tail.append(rows)
            else:
                interval_s = self._sources.configuration.settings.events.poll_interval_s
                await asyncio.sleep(max(interval_s, _LEAST_INTERVAL_S))

    async def _caught_up(self, position: FeedPosition, page_events: int) -> list[FeedEvent]:
        """Reads events after a position from the log, fewer than `page_events`; none while the database does not
        answer."""
        async with self._catching_up:
            try:
                return await run_in_threadpool(self._following, position, page_events)
            except DatabaseUnavailableError:
                await asyncio.sleep(_RETRY_S)
                return []

    def _following(self, position: FeedPosition, page_events: int = _PAGE_EVENTS) -> list[FeedEvent]:
        rows = rows_following(position, partial(self._read_rows, most=page_events), self._sources.read_log_end)
        return [self._event(row) for row in rows]

    def _end(self) -> FeedPosition:
        return position_at(self._sources.read_log_end(), self._read_rows)

    def _event(self, row: NotificationRow) -> FeedEvent:
        return FeedEvent.of(row, for_users=self._sources.listeners is not None)

    def _read_rows(
        self, after_event_id: int, known_event_id: int | None, most: int = _PAGE_EVENTS
    ) -> list[NotificationRow]:
        request = NotificationEventRequest(lastEvent=after_event_id, maxEvents=most)
        found = self._sources.read_notifications(request, known_event_id)
        rows = [NotificationRow.received(event) for event in found.events or ()]
        if len(rows) == most:
            # Another event with the last id may follow: both are left to the next page.
            rows = [row for row in rows if row.event_id < rows[-1].event_id] or rows
        return rows


def _next_chunk(
    events: list[FeedEvent], feed_filter: FeedFilter, with_messages: bool
) -> tuple[list[FeedEvent], list[bytes]]:
    """The first events, as many as are sent at once, and the frame of each: empty if the filter excludes it."""
    encoded: list[bytes] = []
    size = 0
    for event in events:
        encoded.append(event.encoded(with_message=with_messages) if feed_filter.admits(event.scope) else b"")
        size += len(encoded[-1])
        if size >= _CHUNK_BYTES:
            break
    return events[: len(encoded)], encoded
