"""Follows the notification log once for all listeners.

One task reads the log while anybody listens and keeps the newest events. A listener is a place: it takes what follows
it from there, or from the log as long as its place is older than what is kept. Nothing is queued for one listener, so a
slow one costs no memory. All state belongs to the management port's event loop.
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

#: Events read by one statement: messages are of some KiB, so a MiB.
_PAGE_EVENTS = 500

#: Events that are read for one that catches up, at least: the row of its place, some more, and the last, which may be
#: one of two with one id and is left to the next page.
_LEAST_PAGE_EVENTS = 6

#: Listeners that read the log at once to catch up; others wait for a place.
_MAX_CATCHING_UP = 2

#: What is handed to a connection at once; it is written out before there is more.
_CHUNK_BYTES = 64 * 1024

#: Listeners that are judged at once: their threads may wait for another system, and probes must not wait for them.
_MAX_JUDGING = 4

#: `events.poll_interval_s = 0` reads the log for calls only, which listeners are not.
_LEAST_INTERVAL_S = 0.1

#: How long one that catches up or is judged lets a system be that does not answer.
_RETRY_S = 1.0


class _Tail:
    """The newest events, up to `position`. `floor`: the id before the oldest of them."""

    def __init__(self, position: FeedPosition, budget_bytes: int) -> None:
        self.position = position
        self.floor = position.event_id
        self.changed = asyncio.Event()
        """Set once, when there is more or the end; then another takes its place."""
        self.ended: FeedEndedError | None = None
        self.task: asyncio.Task[None] | None = None
        self.listeners = 0
        self._events: list[FeedEvent] = []
        self._weight_bytes = 0
        self._kept_id = position.event_id
        """What follows it was brought by the last read."""
        self._budget_bytes = budget_bytes

    def append(self, events: Sequence[FeedEvent]) -> None:
        """Adds the next events and lets go of the oldest beyond the budget.

        What this read and the one before brought stays: whoever keeps up must not lose its place to a large batch.
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
        self.tell()

    def tell(self) -> None:
        """Wakes all listeners."""
        self.changed.set()
        self.changed = asyncio.Event()

    def after(self, event_id: int) -> list[FeedEvent]:
        """What follows this event, as far as it is kept: some at a time."""
        first = bisect.bisect_right(self._events, event_id, key=lambda event: event.position.event_id)
        return self._events[first : first + _PAGE_EVENTS]


class ChangeFeed:
    """The feed of one process. All but `close` is called by the port's event loop."""

    def __init__(self, sources: AdminSources) -> None:
        self._sources = sources
        self._tail: _Tail | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._catching_up = asyncio.Semaphore(_MAX_CATCHING_UP)
        self._starting = asyncio.Lock()
        self._judging = asyncio.Semaphore(_MAX_JUDGING)

    async def admit(self, listener: Listener) -> None:
        """Raises FeedEndedError when the listener may not listen, UndecidedError or DatabaseUnavailableError when that
        is not known."""
        await self._shown(listener, [])

    async def position(self, wanted: str, listener: Listener) -> FeedPosition:
        """Where `latest`, `oldest` or a position begins.

        Raises ValueError for what is none of them, FeedEndedError when the log does not continue there or the listener
        may not listen, UndecidedError, DatabaseUnavailableError.
        """
        async with self._catching_up:
            return await run_in_threadpool(self._find, wanted, listener)

    def _find(self, wanted: str, listener: Listener) -> FeedPosition:
        if wanted == "latest":
            return self._told(self._end(), listener)
        if wanted == "oldest":
            return oldest_position(self._read_rows, self._sources.read_log_end)
        position = self._told(FeedPosition.parse(wanted), listener)
        self._following(position)
        return position

    def _told(self, position: FeedPosition, listener: Listener) -> FeedPosition:
        """The place without the digest of an event that the listener may not see.

        By a digest what is guessed of a row could be compared with it, whether it is answered or taken.
        """
        if not listener.is_judged or position.digest is None:
            return position
        rows = self._read_rows(max(0, position.event_id - 1), None)
        here = [self._event(row) for row in rows if row.event_id == position.event_id]
        return position if all(listener.shown(here)) else FeedPosition(position.event_id)

    async def frames(
        self, position: FeedPosition, wanted: FeedFilter, listener: Listener, *, with_messages: bool
    ) -> AsyncGenerator[bytes]:
        """Server-sent events from the place on, without end but for an `end` event.

        Events that the listener may not see are left out like those that it does not want: its place moves on. The
        iterator is to be closed by whoever leaves it.
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
                    # Events that are left out would put it off for good if silence were counted from them.
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
                events, encoded = _next_chunk(events, wanted, with_messages)
                # The rest of a page is not kept. With long messages one would be read, and decoded, a hundred times.
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
                    await asyncio.sleep(0)  # others have their turn between pages that nobody here wants
                else:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), max(0.0, heartbeat_at_s - loop.time()))
        except FeedEndedError as error:
            metrics.feed_ends.add((error.reason.value,))
            yield end_frame(error.reason, str(error))
        finally:
            self._left(tail)

    async def _shown(self, listener: Listener, events: Sequence[FeedEvent]) -> list[bool]:
        if not listener.is_judged:
            return listener.shown(events)
        async with self._judging:
            return await run_in_threadpool(listener.shown, events)

    def close(self) -> None:
        """Ends all feeds, those to come too. From any thread."""
        self._is_closed = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if self._tail is not None:
            self._tail.tell()

    async def _joined(self) -> _Tail:
        """The tail, with one listener more; the first starts it."""
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
        """Reads the log's end for all listeners, at `events.poll_interval_s` once there is nothing new."""
        unreachable = False
        while True:
            rows: list[FeedEvent] = []
            try:
                rows = await run_in_threadpool(self._following, tail.position)
                unreachable = False
            except FeedEndedError as error:
                tail.ended = error
                tail.tell()
                return
            except DatabaseUnavailableError as error:
                if not unreachable:
                    _log.warning("the change feed waits for the database: %s", error)
                unreachable = True
            except Exception:
                _log.exception("the change feed cannot follow the notification log")
                tail.ended = FeedEndedError(EndReason.FAILED, "the server could not read the log: connect again")
                tail.tell()
                return
            if rows:
                tail.append(rows)
            else:
                interval_s = self._sources.configuration.settings.events.poll_interval_s
                await asyncio.sleep(max(interval_s, _LEAST_INTERVAL_S))

    async def _caught_up(self, position: FeedPosition, page_events: int) -> list[FeedEvent]:
        """What follows a place in the log itself, less than so many events; nothing while the database does not
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
            # The other event of an id that was given twice may follow: both are of the next page.
            rows = [row for row in rows if row.event_id < rows[-1].event_id] or rows
        return rows


def _next_chunk(
    events: list[FeedEvent], wanted: FeedFilter, with_messages: bool
) -> tuple[list[FeedEvent], list[bytes]]:
    """The first of the events, as many as are sent at once, and each as it is sent: empty if it is not wanted."""
    encoded: list[bytes] = []
    size = 0
    for event in events:
        encoded.append(event.encoded(with_message=with_messages) if wanted.wants(event.scope) else b"")
        size += len(encoded[-1])
        if size >= _CHUNK_BYTES:
            break
    return events[: len(encoded)], encoded
