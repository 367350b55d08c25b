"""Follows the notification log: fetches events in the order of their ids and passes them to a sink.

It has no thread of its own. The application calls ``step`` at intervals, and readers that wait for a position call
``ensure_applied``, which makes steps on demand. One thread makes a step at a time; others wait for it.

Each step proves the log before it trusts it (P7): the server must be the same, the last applied row must still exist
unchanged, and ids must follow each other without a gap up to the end of the log. Otherwise the status becomes
``NEEDS_RESYNC``, the sink drops everything, and the poller continues at the end of the log. If retention has deleted
the last applied row, this counts as a gap, since nothing proves that the log is the same. A row with a message of more
than a million characters is compared only after the log has moved on, or if a proof is requested.

A bad event never stops the stream (P8): an event that cannot be decoded or applied is replaced by one that names what
it may concern, in the last resort everything (`event_applier`).
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping

from hms_cache.clock import Clock, SystemClock
from hms_cache.config.sections import EventSettings
from hms_cache.metrics.registry import EventMetrics
from hms_cache.notifications.event_applier import EventApplier, EventSink
from hms_cache.notifications.event_log import (
    FollowedLog,
    History,
    LogDiscontinuity,
    LogHead,
    LogPage,
    LogPosition,
    digest_of,
    is_long,
    rows_after,
)
from hms_cache.notifications.events import EventHeader
from hms_cache.notifications.poller_statistics import PollerCounters, PollerStatistics
from hms_cache.notifications.poller_status import PollerCommand, PollerStatus, StatusReport, next_status
from hms_cache.notifications.poller_steps import RENEWAL_INTERVAL_S, StepOutcome, StepResult, next_step_in_s

_LOGGER = logging.getLogger(__name__)

_LOG_STARTED = "starting: nothing is known yet"

_MAX_HISTORIES = 64
"""Maximum number of proven histories: more than a server has connections for checks; those of closed ones are
dropped."""


class Poller:
    """See the module's docstring. ``_condition`` guards all fields below it; neither the log nor the sink is called
    under it."""

    def __init__(
        self,
        log: FollowedLog,
        sink: EventSink,
        clock: Clock | None = None,
        settings: EventSettings | None = None,
        metrics: EventMetrics | None = None,
        *,
        header_filter: Callable[[EventHeader], str | None] | None = None,
    ) -> None:
        """`header_filter`: returns a reason to skip an event without decoding it, or None
        (`SharedCache.reason_to_skip`).

        It must not skip an event by its table's name if the columns do not name everything (the other name of a rename,
        the child of a foreign key, the tables of a transaction).
        """
        self.on_resync_due: Callable[[], None] = lambda: None
        """Called when the status becomes ``NEEDS_RESYNC``: reads do not make steps then, so the periodic caller of
        `step` should do so now. Called by any thread, under the lock; it must not wait."""
        self.on_step_end: Callable[[], None] = lambda: None
        """Called after each step by its thread, without a lock; it must not wait."""
        self._log = log
        self._sink = sink
        self._clock: Clock = clock or SystemClock()
        self._settings = settings or EventSettings()
        self._metrics = metrics
        self._condition = threading.Condition()
        self._status = PollerStatus.STOPPED
        self._reason = "not started yet"
        self._since_s = self._clock.epoch_s()
        self._position = 0
        self._row_digest: str | None = None
        self._row_is_long = False
        """Whether reading that row again is expensive; False if unknown."""
        self._read_step = self._proof_step = 0
        """Number of the last step that read it, and of the last step before a proof was requested."""
        self._server_identity = ""
        self.proven: Mapping[History, None] = {}
        """Histories known to be that of the applied position: its row was found unchanged on their server after they
        had begun. Replaced as a whole, under the lock; read without it."""
        self._suspended: Mapping[History, None] = {}
        """Histories that were proven and have to be proven again because the poller was paused."""
        self.needs_proof = False
        """Whether nothing has been proven since a pause."""
        self._head_event_id = 0
        self._current_at_s: float | None = None
        # Used while the status is NEEDS_RESYNC: where to continue (None: at the end), or a stored position to prove.
        self._seek_to: int | None = None
        self._stored: LogPosition | None = None
        self._requests = 0  # number of commands so far; a step does not change the status if it has changed meanwhile
        self._stepping = False
        self._steps = 0  # number of steps begun
        self._next_renewal_s = -math.inf
        self._last_finished = (0, StepOutcome.IDLE)
        self._counters = PollerCounters(self._clock)
        self._applier = EventApplier(sink, self._counters, self._condition, header_filter, metrics)
        self._show_status()

    # ---- state ----

    @property
    def status(self) -> PollerStatus:
        return self._status

    @property
    def applied_position(self) -> int:
        """Everything up to this event id is applied. Only meaningful if ``ACTIVE`` or ``PAUSED``."""
        return self._position

    @property
    def current_at_s(self) -> float:
        """Monotonic time of the read of the log's end that has been reached since; minus infinity if there is none."""
        with self._condition:
            return -math.inf if self._current_at_s is None else self._current_at_s

    @property
    def server_identity(self) -> str:
        """The server whose log is followed; empty before the first step."""
        return self._server_identity

    @property
    def is_stepping(self) -> bool:
        """Whether rows that were read before this call may still be applied."""
        return self._stepping

    def status_report(self) -> StatusReport:
        with self._condition:
            return StatusReport(self._status, self._reason, self._since_s)

    def position(self) -> LogPosition:
        """The applied position, which can be stored and passed to ``start``."""
        with self._condition:
            return LogPosition(self._position, self._row_digest, self._server_identity)

    def statistics(self) -> PollerStatistics:
        with self._condition:
            return self._counters.snapshot(self._position, self._head_event_id, self._current_at_s)

    # ---- commands ----

    def start(self, stored: LogPosition | None = None) -> None:
        """Starts to follow the log at its end, or at a stored position if the first step can prove it.

        :raises IllegalPollerCommand: it runs already.
        """
        with self._condition:
            self._command(PollerCommand.START, _LOG_STARTED)
            self._seek_to, self._stored = None, stored

    def stop(self) -> None:
        """Stops reading; a running step completes. :raises IllegalPollerCommand: it does not run."""
        with self._condition:
            self._command(PollerCommand.STOP, "stopped")

    def pause(self, reason: str = "paused by an operator") -> None:
        """Stops reading until ``resume``; a running step completes. :raises IllegalPollerCommand:"""
        with self._condition:
            self._command(PollerCommand.PAUSE, reason)

    def resume(self) -> None:
        """Continues after ``pause``. :raises IllegalPollerCommand: it is not paused.

        The database may have been replaced meanwhile, so every history has to be proven again.
        """
        with self._condition:
            next_status(self._status, PollerCommand.RESUME)
            # Before the status, since readers read both without the lock.
            self._suspended = {**self._suspended, **self.proven}
            self.proven = {}
            self.needs_proof = True
            self._command(PollerCommand.RESUME, "resumed")

    def seek(self, event_id: int) -> None:
        """Drops everything and continues after this event, which may be before or after the position.

        :raises IllegalPollerCommand: it does not run.
        :raises ValueError: the log does not reach so far.
        """
        with self._condition:
            next_status(self._status, PollerCommand.SEEK)
        head = self._log.head()
        if not 0 <= event_id <= head.last_event_id:
            raise ValueError(f"cannot seek event {event_id}: the log ends at {head.last_event_id}")
        with self._condition:
            self._command(PollerCommand.SEEK, f"an operator set the position to event {event_id}")
            self._seek_to, self._stored = event_id, None

    def resync(self, reason: str = "an operator requested it") -> None:
        """Drops everything and continues at the end of the log. :raises IllegalPollerCommand: it does not run."""
        with self._condition:
            self._command(PollerCommand.RESYNC, reason)
            self._seek_to, self._stored = None, None

    def skip(self, event_id: int) -> None:
        """Excludes this event from decoding; what its row may concern is dropped instead.

        :raises IllegalPollerCommand: it does not run.
        :raises ValueError: the event is applied already.
        """
        with self._condition:
            next_status(self._status, PollerCommand.SKIP)
            if event_id <= self._position:
                raise ValueError(f"event {event_id} is applied already")
            self._applier.skip(event_id)

    def fail(self, reason: str) -> None:
        """Stops until an operator intervenes, because of a problem that a resync cannot repair. Ignored if not
        running."""
        with self._condition:
            if self._status in (PollerStatus.STOPPED, PollerStatus.ERROR):
                return
            self._command(PollerCommand.FAIL, reason)
        _LOGGER.error("the event poller waits for an operator: %s", reason)

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Waits at most ``timeout_s`` for a running step to end; returns whether none runs."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._stepping, timeout_s)

    def _command(self, command: PollerCommand, reason: str) -> None:
        """Called under the lock."""
        self._move(next_status(self._status, command), reason)
        self._requests += 1
        self._condition.notify_all()

    def _move(self, status: PollerStatus, reason: str) -> None:
        """Called under the lock."""
        is_new = status is not self._status
        if is_new:
            self._since_s = self._clock.epoch_s()
        self._status, self._reason = status, reason
        if is_new and status is PollerStatus.NEEDS_RESYNC:
            self.on_resync_due()
        self._show_status()

    def _show_status(self) -> None:
        if self._metrics is not None:
            for status in PollerStatus:
                self._metrics.status.labels(status.value).set(status is self._status)

    # ---- stepping ----

    def step(self) -> StepResult:
        """Reads and applies one batch, or resynchronizes if that is due. Never raises because of log, database or
        sink."""
        with self._condition:
            if self._stepping:
                return StepResult(StepOutcome.BUSY, self._position, 0, self._next_step_in_s(StepOutcome.BUSY))
            self._take_lead()
        return self._lead()

    def step_with_proof(self) -> StepResult:
        """A step for a caller that doubts that the log is still the same: it also reads a long row of the position
        again."""
        with self._condition:
            self._proof_step = self._steps
        return self.step()

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        """Whether everything up to ``position`` is applied, after making steps if necessary. Thread-safe.

        False after ``timeout_s``, or earlier if it cannot become true: the poller does not follow the log, the database
        is unavailable, or the log does not reach so far. The time limit applies to waiting for other threads; a step of
        this thread is limited by the database's timeouts.
        """
        deadline_s = self._clock.monotonic_s() + timeout_s
        with self._condition:
            begun_before = self._steps
        while True:
            with self._condition:
                answer = self._answer(position, begun_before)
                while answer is None and self._stepping:
                    remaining_s = deadline_s - self._clock.monotonic_s()
                    if remaining_s <= 0 or not self._condition.wait(remaining_s):
                        return False
                    answer = self._answer(position, begun_before)
                if answer is not None:
                    return answer
                if self._clock.monotonic_s() >= deadline_s:
                    return False
                self._take_lead()
            self._lead()

    def prove(self, history: History, timeout_s: float) -> bool:
        """Whether a history is that of the applied position, after making steps if necessary. Thread-safe.

        A proof stays valid: see `History`. False as for ``ensure_applied``, and if the followed log is on another
        server: then connections are reopened, since existing ones lead to two servers.
        """
        if history in self.proven:
            return True
        deadline_s = self._clock.monotonic_s() + timeout_s
        with self._condition:
            begun_before = self._proof_step = self._steps
        while True:
            with self._condition:
                while self._stepping and self._last_finished[0] <= begun_before:
                    remaining_s = deadline_s - self._clock.monotonic_s()
                    if remaining_s <= 0 or not self._condition.wait(remaining_s):
                        return False
                if self._last_finished[0] > begun_before:
                    break
                if self._status not in (PollerStatus.ACTIVE, PollerStatus.NEEDS_RESYNC):
                    return False
                self._take_lead()
            self._lead()
        with self._condition:
            good = self._last_finished[1] in (StepOutcome.CAUGHT_UP, StepOutcome.MORE)
            if self._status is not PollerStatus.ACTIVE or not good:
                return False
            if history.server_identity == self._server_identity and history.stale_reason is None:
                self._add_proven(history)
                return True
        self.renew()
        return False

    def _add_proven(self, *histories: History | None) -> None:
        """Called under the lock, after a step that proved the applied position on `_server_identity`."""
        known = dict.fromkeys((*self._suspended, *self.proven, *histories))
        proven = [
            one
            for one in known
            if one is not None and one.server_identity == self._server_identity and one.stale_reason is None
        ]
        self.proven = dict.fromkeys(proven[-_MAX_HISTORIES:])
        self._suspended = {}

    def renew(self) -> None:
        """Drops the log's connections, not too often: they lead to different servers. Thread-safe."""
        now_s = self._clock.monotonic_s()
        with self._condition:
            if now_s < self._next_renewal_s:
                return
            self._next_renewal_s = now_s + RENEWAL_INTERVAL_S
        _LOGGER.warning("the connections to the database are replaced: some may lead to another server")
        self._log.renew()

    def _answer(self, position: int, begun_before: int) -> bool | None:
        """Called under the lock: the result of ``ensure_applied``, or ``None`` if another step may help."""
        follows = self._status is PollerStatus.ACTIVE
        if position <= self._position and (follows or self._status is PollerStatus.PAUSED):
            return True
        if not follows and self._status is not PollerStatus.NEEDS_RESYNC:
            return False
        number, outcome = self._last_finished
        ended = outcome not in (StepOutcome.MORE, StepOutcome.RESYNCED)
        return False if number > begun_before and ended else None

    def _take_lead(self) -> None:
        """Called under the lock."""
        self._stepping = True
        self._steps += 1

    def _lead(self) -> StepResult:
        """One step, by the thread that took the lead."""
        outcome, received = StepOutcome.IDLE, 0
        try:
            outcome, received = self._step()
        finally:
            with self._condition:
                self._stepping = False
                self._last_finished = (self._steps, outcome)
                result = StepResult(outcome, self._position, received, self._next_step_in_s(outcome))
                self._condition.notify_all()
            self.on_step_end()
        return result

    def _next_step_in_s(self, outcome: StepOutcome) -> float:
        # Another thread may have received a command during the step.
        begins_anew = self._status is PollerStatus.NEEDS_RESYNC
        failures = self._counters.consecutive_fetch_failures
        return next_step_in_s(outcome, self._settings.poll_interval_s, failures, begins_anew=begins_anew)

    def _step(self) -> tuple[StepOutcome, int]:
        with self._condition:
            status, requests, stored = self._status, self._requests, self._stored
        if status is PollerStatus.NEEDS_RESYNC:
            if stored is None or not self._prove(stored, requests):
                return self._begin_anew(requests), 0
            status = self._status
        if status is not PollerStatus.ACTIVE:
            return StepOutcome.IDLE, 0
        try:
            return self._advance(requests)
        except LogDiscontinuity as hole:
            with self._condition:
                if self._status is not PollerStatus.ACTIVE or self._requests != requests:
                    return StepOutcome.IDLE, 0  # a command was first; what follows it proves the log again
                self._move(PollerStatus.NEEDS_RESYNC, str(hole))
                self._seek_to = None
                self._condition.notify_all()
            _LOGGER.warning("the whole cache is dropped: %s", hole)
            self._log.keep_connections(enabled=False)
            self.renew()  # connections of calls may still lead to the former primary
            return self._begin_anew(requests), 0

    # ---- reading ----

    def _read(self, place: LogPosition, limit: int) -> tuple[LogHead, LogPage] | None:
        """The end of the log, then a page that begins with the row of the position: a complete page must contain
        everything that the head counts. None if the database is unavailable."""
        began_s = self._clock.monotonic_s()
        try:
            head, page = self._log.read(max(0, place.event_id - 1), limit, place.event_id)
        except Exception as error:
            self._count_fetch_failure(error)
            return None
        duration_s = self._clock.monotonic_s() - began_s
        with self._condition:
            self._counters.consecutive_fetch_failures = 0
            self._counters.fetch_durations.add(duration_s)
            self._head_event_id = head.last_event_id
        if self._metrics is not None:
            self._metrics.fetch_duration.observe(duration_s)
        return head, page

    def _is_quiet(self, place: LogPosition) -> bool:
        """Whether the log has not moved, and its last event has a long message that need not be read again.

        The database would read all of it each time, for example 100 MB. If the log has not moved, in a history that was
        proven by this row, the check can wait for the next event.
        """
        if not self._row_is_long or self.needs_proof or self._read_step <= self._proof_step:
            return False
        try:
            head = self._log.head()
        except Exception:
            return False  # the read that follows reports the reason
        return head.last_event_id == place.event_id and head.history in self.proven

    def _count_fetch_failure(self, error: Exception) -> None:
        with self._condition:
            self._counters.fetch_failures += 1
            self._counters.consecutive_fetch_failures += 1
            self._counters.last_fetch_error = f"{type(error).__name__}: {error}"
            is_first = self._counters.consecutive_fetch_failures == 1
        if self._metrics is not None:
            self._metrics.fetch_failures.add()
        if is_first:
            _LOGGER.warning("the notification log cannot be read: %s", error)

    def _advance(self, requests: int) -> tuple[StepOutcome, int]:
        """Applies one batch. Raises ``LogDiscontinuity``."""
        place = self.position()
        requested_at_s = self._clock.monotonic_s()
        if self._is_quiet(place):
            with self._condition:
                self._current_at_s = requested_at_s
            return StepOutcome.CAUGHT_UP, 0
        read = self._read(place, self._settings.batch_size + 1)
        if read is None:
            return StepOutcome.DATABASE_AWAY, 0
        head, page = read
        if head.history.stale_reason is not None:
            raise LogDiscontinuity(head.history.stale_reason)
        rows = rows_after(place, head, page)
        if rows:
            self._applier.apply(rows)
        caught_up = page.exhausted or rows == [] or rows[-1].event_id >= head.last_event_id
        reached = rows[-1].event_id if rows else place.event_id
        last = [row for row in page.rows if row.event_id == reached]
        with self._condition:
            if rows:
                self._position = reached
                self._row_digest = digest_of(last)
            self._row_is_long, self._read_step = any(is_long(row.message) for row in last), self._steps
            self._server_identity = head.history.server_identity
            is_new = self.needs_proof or head.history not in self.proven
            if is_new and self._requests == requests:  # otherwise a pause may have come after the proof
                self._add_proven(head.history, page.history)
                self.needs_proof = False
            self._head_event_id = max(head.last_event_id, reached)
            self._counters.batch_durations.add(self._clock.monotonic_s() - requested_at_s)
            if reached >= head.last_event_id:
                self._current_at_s = requested_at_s
        self._show_position()
        return (StepOutcome.CAUGHT_UP if caught_up else StepOutcome.MORE), len(rows)

    def _show_position(self) -> None:
        if self._metrics is not None:
            self._metrics.position.set(self._position)
            self._metrics.lag.set(max(0, self._head_event_id - self._position))

    # ---- beginning anew ----

    def _prove(self, stored: LogPosition, requests: int) -> bool:
        """Whether the stored position is in this log; if so, it is used."""
        read = self._read(stored, 2)
        if read is None or read[0].history.stale_reason is not None:
            return False
        try:
            rows_after(stored, *read)
        except LogDiscontinuity as hole:
            _LOGGER.warning("the stored position is not used: %s", hole)
            return False
        with self._condition:
            # What a sink reports of its position belongs to this server.
            self._server_identity = stored.server_identity
        try:
            self._sink.apply((), stored.event_id)
        except Exception:
            _LOGGER.exception("the stored position is not used: it could not be taken")
            return False
        with self._condition:
            if self._requests == requests:
                self._adopt(stored, f"goes on at the stored position {stored.event_id}")
        return True

    def _begin_anew(self, requests: int) -> StepOutcome:
        """Drops everything and sets a position: the end of the log, which is read first, or the position chosen by an
        operator."""
        with self._condition:
            seek_to, reason = self._seek_to, self._reason
        try:
            head = self._log.head()
            event_id = head.last_event_id if seek_to is None else min(seek_to, head.last_event_id)
            page = self._log.fetch(event_id - 1, 1, event_id) if event_id > 0 else LogPage((), False)
        except Exception as error:
            self._count_fetch_failure(error)
            return StepOutcome.DATABASE_AWAY
        history = head.history
        doubt = history.stale_reason
        if doubt is None and page.history is not None and page.history.server_identity != history.server_identity:
            doubt = "two database servers answer"
        if doubt is not None:
            with self._condition:
                if self._status is PollerStatus.NEEDS_RESYNC and self._requests == requests and self._reason != doubt:
                    self._move(PollerStatus.NEEDS_RESYNC, doubt)
                    _LOGGER.warning("reads are answered by the database: %s", doubt)
            self._log.keep_connections(enabled=False)
            self.renew()
            return StepOutcome.NOT_PRIMARY
        self._log.keep_connections(enabled=True)
        here = [row for row in page.rows if row.event_id == event_id]
        place = LogPosition(event_id, digest_of(here), history.server_identity)
        with self._condition:
            # Before the sink is reset: a load that reads on the old server from now on must not be installed.
            self._server_identity, self._suspended = history.server_identity, {**self._suspended, **self.proven}
            self.proven = {}
        try:
            self._sink.reset(reason, event_id)
        except Exception:
            _LOGGER.exception("the cache could not be dropped; trying again")
            return StepOutcome.SINK_FAILED
        with self._condition:
            self._head_event_id = max(head.last_event_id, event_id)
            self._counters.consecutive_fetch_failures = 0
            self._counters.resyncs += 1
            if self._requests == requests:
                self._adopt(place, f"resynced at event {event_id}: {reason}")
                self._add_proven(history, page.history)
                self.needs_proof = False
        self._show_position()
        return StepOutcome.RESYNCED

    def _adopt(self, place: LogPosition, reason: str) -> None:
        """Called under the lock."""
        self._position, self._row_digest, self._server_identity = (
            place.event_id,
            place.row_digest,
            place.server_identity,
        )
        self._row_is_long = False  # not known yet
        self._current_at_s = None
        self._seek_to, self._stored = None, None
        self._move(PollerStatus.ACTIVE, reason)
