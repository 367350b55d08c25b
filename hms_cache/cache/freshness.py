"""Whether what is remembered is recent enough for a read, as a table of (status × max_staleness).

``max_staleness_s`` is 0 (P1: every read checks, together with all that wait), a time, or infinity (no check). Below
every setting lies the floor: no read on this server sees less than this server's own writes (P4), nor than what an
earlier read through this server may have shown (P3).

| status       | 0 or a time                          | infinity                          |
|--------------|--------------------------------------|-----------------------------------|
| ACTIVE       | memory, once a check found it current| memory, if not below the floor    |
| PAUSED       | the store                            | memory, if not below the floor    |
| all others   | the store                            | the store                         |

A paused poller reads no rows, so it cannot tell a restored database, which hands out the same ids to other events,
from the one it followed (P7): an equal id proves nothing then, nor does a lease, and only readers that asked for no
proof are served. What a write reads is proven as at 0, whatever the setting is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container
from typing import Protocol

from hms_cache.cache.position_check import CheckResult, PositionCheck
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.worker_positions import WorkerSlot
from hms_cache.clock import Clock
from hms_cache.computing import scheduler
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.event_log import History
from hms_cache.notifications.poller_status import PollerStatus


class Follower(Protocol):
    """The poller, as far as it concerns reads."""

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        """Brings the applied position to `position` or above; False if that takes too long."""

    @property
    def status(self) -> PollerStatus:
        """Its status."""

    @property
    def is_stepping(self) -> bool:
        """Whether a thread is reading the log, or applying what it has read."""

    @property
    def current_at_s(self) -> float:
        """When it last started a check of the log's end that it then reached (monotonic); minus infinity: never."""

    @property
    def proven(self) -> Container[History]:
        """Histories that the applied position is proven to belong to."""

    @property
    def needs_proof(self) -> bool:
        """Whether nothing has been proven since a pause."""

    @property
    def server_identity(self) -> str:
        """The server whose log is followed."""

    def prove(self, history: History, timeout_s: float) -> bool:
        """Proves whether a history is that of the applied position; False if it is not, or if that takes too long."""

    def renew(self) -> None:
        """Closes the connections to the database: some lead to another server."""

    def fail(self, reason: str) -> None:
        """Something was found that following the log cannot repair: sets the status to `ERROR`, until an operator
        intervenes."""


class Lease(Protocol):
    """The lease of this server, as far as it concerns reads (`hms_cache.lease`)."""

    deadline_s: float
    """Until then, memory shows every committed event that changes an answer; minus infinity: the lease does not
    hold."""

    now_s: Callable[[], float]
    """The clock of the deadline."""

    is_read: bool
    """Set by reads, so that memory follows the log more closely."""

    def moved(self) -> None:
        """The position of memory changed, so that the lease may hold again."""

    def answers_table(self, table: TableName) -> bool:
        """Whether memory shows every committed event that may change an answer about the struct, the partitions or the
        statistics of this table."""


UNLIMITED_STALENESS_S = float("inf")
"""The `max_staleness_s` of readers that need no proof."""

MAX_AWAITED = 10_000
"""Maximum number of events that a read waits for: they are applied in half a second. If more are missing, the log was
not followed for a while (the server was stopped or cut off, or the poller was paused), and applying them takes long."""


class Freshness:
    """Decides for each read whether memory may answer. `_lock` guards the floor and the time of the last proof."""

    def __init__(
        self,
        cache: SharedCache,
        check: PositionCheck,
        follower: Follower,
        clock: Clock,
        max_staleness_s: float,
        apply_timeout_s: float = 5.0,
        workers: WorkerSlot | None = None,
    ) -> None:
        """`workers`: shared positions of this server's worker processes; None: there is one process."""
        self.max_staleness_s = max_staleness_s
        self.lease: Lease | None = None
        """Set with `cache.exactness = lease`; None: every exact read needs a check."""
        self.apply_timeout_s = apply_timeout_s
        self.max_awaited = MAX_AWAITED
        self._cache = cache
        self._check = check
        self._follower = follower
        self._clock = clock
        self._lock = threading.Lock()
        self._generation = cache.generation
        self._own_floor = -1
        self._floor = -1
        """The highest floor of this worker and of the others, whose floors end with their history, too."""
        self._current_at_s = float("-inf")
        self._required_after_s = float("-inf")
        self._workers = workers
        if workers is not None:
            cache.position_listener = self._publish_position

    def _publish_position(self, position: int, is_reset: bool) -> None:
        """Called before memory answers at this position: the other workers must not answer below it (P3)."""
        assert self._workers is not None
        if is_reset:
            # In this order: a reader that sees a lower floor sends a check.
            self._workers.require_check(self._clock.monotonic_s())
            self._workers.begin(position, self._follower.server_identity)
        else:
            self._workers.raise_floor(position, self._follower.server_identity)

    @property
    def floor(self) -> int:
        """The event below which no read may be answered."""
        with self._lock:
            self._follow_reset()
            return self._floor

    def raise_floor(self, event_id: int, generation: int | None = None) -> None:
        """This server wrote the event `event_id`, or showed it to a client: later reads must show it, too (P3, P4).

        `generation`: when it was shown, if that may be before a reset, which invalidates earlier floors.
        """
        with self._lock:
            self._follow_reset()
            if generation is not None and generation != self._generation:
                return
            self._own_floor = max(self._own_floor, event_id)
            self._floor = max(self._floor, event_id)
        if self._workers is not None:
            self._workers.raise_floor(event_id, self._follower.server_identity)

    def _follow_reset(self) -> None:
        """Under the lock: takes over the floors of other workers.

        After a reset, ids may belong to another history, in which an old floor means nothing (P7). A write may have
        been acknowledged after the position of the reset was read, so the next read needs a check.
        """
        generation = self._cache.generation
        if generation != self._generation:
            self._generation = generation
            self._own_floor = self._floor = -1
            self._current_at_s = float("-inf")
            self._required_after_s = self._clock.monotonic_s()
            if self._workers is not None:
                self._workers.forget_seen()
        if self._workers is not None and self._workers.has_changed():
            combined = self._workers.read(self._follower.server_identity)
            self._floor = max(self._own_floor, combined.floor)
            self._required_after_s = max(self._required_after_s, combined.required_after_s)
            if not combined.agree:  # one of them has not noticed a failover yet
                self._required_after_s = self._clock.monotonic_s()

    def may_serve(self, *, wants_proof: bool = False) -> bool:
        """Whether memory is true at its position, as far as the poller knows. `wants_proof`: the poller must be
        following the log."""
        status = self._follower.status
        if status is PollerStatus.PAUSED:
            return self.max_staleness_s == UNLIMITED_STALENESS_S and not wants_proof
        return status is PollerStatus.ACTIVE

    def require_check(self) -> None:
        """The database answered a read at an unknown position: the next read needs a check (P3)."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._required_after_s = max(self._required_after_s, now_s)
        if self._workers is not None:
            self._workers.require_check(now_s)

    def is_check_required(self) -> bool:
        """Whether a read may have shown something that memory does not contain yet, so that even `trust` needs a check
        (P3)."""
        with self._lock:
            self._follow_reset()
            return self._is_required()

    def may_trust(self) -> bool:
        """Whether `trust` may answer from memory without a check, also on the event loop: memory is true at its
        position, and no read has shown more (P3)."""
        if not self.may_serve():
            return False
        with self._lock:
            self._follow_reset()
            return self._cache.position >= self._floor and not self._is_required()

    def found_current(self, sent_s: float, generation: int) -> None:
        """A check sent at `sent_s` found nothing newer than the applied position. The age counts from the time of
        sending: the answer was true when the database read the position, not when it arrived."""
        with self._lock:
            self._follow_reset()
            if generation == self._generation:
                self._current_at_s = max(self._current_at_s, sent_s)

    def ensure(self, table: TableName | None = None, *, wants_proof: bool = False) -> bool:
        """True if memory is recent enough for a read that arrived before this call; False: the store must answer.

        `table`: the read is about this table alone, and not about its constraints. `wants_proof`: as with
        `max_staleness` 0, whatever the setting is. Waits for the shared check and for missing events, for at most
        `apply_timeout_s`, but not for too many events (`apply_up_to`). Raises DatabaseUnavailable if the database must
        be asked and does not answer.
        """
        if not self.may_serve(wants_proof=wants_proof):
            return False
        if self.holds_lease(table):
            return True
        if not wants_proof and self.is_recent():
            return True
        with scheduler.waiting():
            if not wants_proof and self.max_staleness_s == UNLIMITED_STALENESS_S and not self._is_required():
                return self.apply_up_to(self.floor)
            return self._check_and_apply() and self.may_serve(wants_proof=wants_proof)

    def ensure_by_check(self) -> bool:
        """Like `ensure` if no lease holds and proof is wanted: afterwards memory contains all events."""
        if not self.may_serve(wants_proof=True):
            return False
        with scheduler.waiting():
            return self._check_and_apply() and self.may_serve(wants_proof=True)

    def _check_and_apply(self) -> bool:
        applied, generation = self._cache.position, self._cache.generation
        result = self._check.check()
        if result.position < applied or self._cache.generation != generation:
            # The database knew less than was applied before the check: another history (P7). A step of the poller finds
            # out.
            self._follower.ensure_applied(applied + 1, self.apply_timeout_s)
            return False
        if not self.prove(result.history):
            return False  # an equal id in another history proves nothing
        if self._cache.generation != generation:
            return False
        needed = max(result.position, self.floor)
        if self._cache.position < needed and not self.apply_up_to(needed):
            return False
        self.found_current(result.sent_s, generation)
        if self.lease is not None:
            self.lease.moved()
        return self.may_serve()

    def apply_up_to(self, event_id: int) -> bool:
        """Whether memory contains all events up to this one, or does so within `apply_timeout_s`.

        No read waits for more than `max_awaited` events. Otherwise all threads would wait, one read after the other,
        until the last event is applied, although the database could answer at once (P12).
        """
        follower = self._follower
        if self._is_far_from(event_id):
            if follower.is_stepping:
                return False
            # One page of the log, in case only reads cause it to be read (`events.poll_interval_s = 0`).
            follower.ensure_applied(self._cache.position + 1, self.apply_timeout_s)
            if self._is_far_from(event_id):
                return False
        return follower.ensure_applied(event_id, self.apply_timeout_s)

    def _is_far_from(self, event_id: int) -> bool:
        return event_id - self._cache.position > self.max_awaited

    def holds_lease(self, table: TableName | None = None) -> bool:
        """Whether memory shows every event that is committed now and changes an answer, without a check.

        Events that concern transactions only may be missing (`hms_cache.lease.scopes`). `table`: only events that may
        change an answer about this table alone, except its constraints, have to be shown.

        The floor is not compared: a write of this server, and everything that another read may have shown, is
        committed.

        Not during a pause, after which a proof is needed first (P7): the lease is renewed all the time, in a history
        that nobody verifies.
        """
        lease, follower = self.lease, self._follower
        # In this order, since after a pause the status changes last.
        if lease is None or follower.status is not PollerStatus.ACTIVE or follower.needs_proof:
            return False
        lease.is_read = True
        return lease.now_s() < lease.deadline_s or (table is not None and lease.answers_table(table))

    def is_proven(self, history: History) -> bool:
        """Whether a check in this history refers to the events that memory is made of (P7)."""
        return history in self._follower.proven

    def prove(self, history: History) -> bool:
        """The same, after a step of the poller if necessary."""
        return self.is_proven(history) or self._follower.prove(history, self.apply_timeout_s)

    def revalidate_connections(self) -> None:
        """A connection led to another server, or to an older state, than the one that is followed."""
        self._follower.renew()

    def is_same_server(self, server_identity: str) -> bool:
        """Whether data read there can be combined with what is held; an empty name says nothing."""
        return not server_identity or server_identity == self._follower.server_identity

    def now_s(self) -> float:
        """The clock for ages."""
        return self._clock.monotonic_s()

    def accept(self, result: CheckResult) -> bool:
        """Whether the result of a check shows that memory is current, without waiting for anything. For the event loop.

        False: memory is behind or not usable, or something has to be applied first.
        """
        cache = self._cache
        with self._lock:
            self._follow_reset()
            position = cache.position
            if result.position != position or position < self._floor or not self.may_serve():
                return False
            if not self.is_proven(result.history):
                return False
            if cache.generation != self._generation:
                return False
            self._current_at_s = max(self._current_at_s, result.sent_s)
        if self.lease is not None:
            self.lease.moved()
        return True

    def is_recent(self) -> bool:
        """Whether memory may answer at once, without a check."""
        if self.max_staleness_s <= 0 or not self.may_serve():
            return False
        with self._lock:
            self._follow_reset()
            if self._cache.position < self._floor or self._is_required():
                return False
            if self.max_staleness_s == UNLIMITED_STALENESS_S:
                return True
            age_s = self._clock.monotonic_s() - self._current_at_s
        return age_s <= self.max_staleness_s

    def _is_required(self) -> bool:
        """Whether a read or the poller has requested a check that has not been sent yet."""
        if self._follower.needs_proof and self._follower.status is PollerStatus.ACTIVE:
            return True
        if self._required_after_s == float("-inf") or self._current_at_s > self._required_after_s:
            return False
        return self._follower.current_at_s <= self._required_after_s
