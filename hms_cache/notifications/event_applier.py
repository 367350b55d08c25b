"""Decodes a batch of rows and passes the events to the sink, so that no single event can stop the stream (P8)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from hms_cache.metrics.registry import EventMetrics
from hms_cache.notifications.event_log import LogDiscontinuity
from hms_cache.notifications.events import Event, EventHeader, NotificationRow, UndecodedEvent, header_of, undecoded
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.poller_statistics import Batch, EventFailure, PollerCounters
from hms_cache.notifications.scope import EVERYTHING

_LOGGER = logging.getLogger(__name__)

HeaderFilter = Callable[[EventHeader], str | None]


class EventSink(Protocol):
    """Receives the events. Called by one thread at a time, without any lock of the poller."""

    def apply(self, events: Sequence[Event], new_position: int) -> None:
        """Applies these events, in order; afterwards everything up to ``new_position`` is applied.

        ``events`` may be empty: skipped ids still advance the position. An exception leaves the position unchanged; the
        same events may be passed again, one by one, and must do no harm.
        """
        ...

    def reset(self, reason: str, position: int) -> None:
        """Drops everything and sets this position, which may be lower than the previous one.

        Later loads are brought up to date with the log from there.
        """
        ...


class EventApplier:
    """Used by one thread at a time, except ``skip``. ``lock`` guards the counters and the ids to skip."""

    def __init__(
        self,
        sink: EventSink,
        counters: PollerCounters,
        lock: threading.Condition,
        header_filter: HeaderFilter | None,
        metrics: EventMetrics | None,
    ) -> None:
        self._sink = sink
        self._counters = counters
        self._lock = lock
        self._clock = counters.clock
        self._header_filter = header_filter
        self._metrics = metrics
        self._skip_ids: set[int] = set()

    def skip(self, event_id: int) -> None:
        """Excludes this event from decoding. The caller holds the lock."""
        self._skip_ids.add(event_id)

    def apply(self, rows: Sequence[NotificationRow]) -> None:
        """Applies these rows, at least one; then the sink has the position of the last one.

        Raises ``LogDiscontinuity``, so that the sink is reset, if the sink fails even to drop everything.
        """
        began_s = self._clock.monotonic_s()
        reached = rows[-1].event_id
        with self._lock:
            self._counters.current_batch = Batch(rows[0].event_id, reached, len(rows), self._clock.epoch_s())
        try:
            events = self._decode_and_hand_over(rows)
        finally:
            with self._lock:
                self._counters.current_batch = None
        duration_s = self._clock.monotonic_s() - began_s
        with self._lock:
            self._skip_ids = {event_id for event_id in self._skip_ids if event_id > reached}
            counters = self._counters
            counters.received += len(rows)
            counters.applied += len(events)
            for rate in counters.rates:
                rate.add(len(rows))
            counters.apply_durations.add(duration_s)
            counters.newest_event_delay_s = max(0.0, self._clock.epoch_s() - rows[-1].event_time_s)
        if self._metrics is not None:
            self._metrics.received.add((), len(rows))
            self._metrics.apply_duration.observe(duration_s)

    def _decode_and_hand_over(self, rows: Sequence[NotificationRow]) -> list[Event]:
        events = [event for row in rows if (event := self._decode(row)) is not None]
        reached = rows[-1].event_id
        try:
            self._sink.apply(events, reached)
        except Exception:
            _LOGGER.exception("a batch of events could not be applied; its events are applied one by one")
            self._apply_one_by_one(events, reached)
        return events

    def _decode(self, row: NotificationRow) -> Event | None:
        header = header_of(row)
        if row.event_id in self._skip_ids:
            self._count_skip("operator")
            return undecoded(header, "skipped by an operator")
        reason = self._reason_to_skip(header)
        if reason is not None:
            self._count_skip(reason)
            return None
        event = read_event(row)
        if isinstance(event, UndecodedEvent):
            self._count_failure(header, event.reason)
        return event

    def _reason_to_skip(self, header: EventHeader) -> str | None:
        if self._header_filter is None:
            return None
        try:
            return self._header_filter(header)
        except Exception:
            _LOGGER.exception("event %d could not be filtered; it is decoded", header.event_id)
            return None

    def _apply_one_by_one(self, events: Sequence[Event], reached: int) -> None:
        """Applies what can be applied, and replaces an event that cannot be by its scope, which is widened each time.
        Events with the same id stay together, because they share a position."""
        for event_id, of_id in groupby(events, key=lambda event: event.event_id):
            some = list(of_id)
            try:
                self._sink.apply(some, event_id)
            except Exception as error:
                for event in some:
                    self._count_failure(event.header, f"{type(error).__name__}: {error}")
                self._apply_in_their_place(some)
        try:
            self._sink.apply((), reached)
        except Exception as error:
            raise LogDiscontinuity(f"the position could not be moved to event {reached}: {error}") from error

    def _apply_in_their_place(self, events: Sequence[Event]) -> None:
        event_id = events[0].event_id
        narrow = [undecoded(event.header, "could not be applied") for event in events]
        wider = [UndecodedEvent(one.header, one.reason, one.scope.widened_to_databases()) for one in narrow]
        widest = [UndecodedEvent(one.header, one.reason, EVERYTHING) for one in narrow]
        for stand_ins in (narrow, wider, widest):
            try:
                self._sink.apply(stand_ins, event_id)
            except Exception:
                concerned = [one.scope for one in stand_ins]
                _LOGGER.debug("event %d could not be applied as %s", event_id, concerned, exc_info=True)
                continue
            return
        types = ", ".join(event.header.event_type for event in events)
        raise LogDiscontinuity(f"event {event_id} ({types}) could not be applied in any way")

    def _count_skip(self, reason: str) -> None:
        with self._lock:
            self._counters.skipped[reason] = self._counters.skipped.get(reason, 0) + 1
        if self._metrics is not None:
            self._metrics.skipped.add((reason,))

    def _count_failure(self, header: EventHeader, reason: str) -> None:
        with self._lock:
            self._counters.failed += 1
            self._counters.failures.append(EventFailure(header, reason, self._clock.epoch_s()))
        if self._metrics is not None:
            self._metrics.failed.add()
        _LOGGER.warning("event %d (%s): %s; what it may concern is dropped", header.event_id, header.event_type, reason)
