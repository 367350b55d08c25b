"""Whether what is remembered is recent enough for a read, as a table of (status × max_staleness).

``max_staleness_s`` is 0 (P1: every read asks, together with all that wait), a time, or infinity (never asks). Below
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
from hms_cache.computing import turns
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.event_log import History
from hms_cache.notifications.poller_status import PollerStatus


class Follower(Protocol):
    """The poller, as seen from here."""

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        """Brings the applied position to at least `position`; False when it cannot in time."""

    @property
    def status(self) -> PollerStatus:
        """Its status."""

    @property
    def is_stepping(self) -> bool:
        """Whether some thread reads the log now, or applies what it has read."""

    @property
    def current_at_s(self) -> float:
        """When it asked last for the end of the log and then reached it (monotonic); minus infinity: it has not yet."""

    @property
    def proven(self) -> Container[History]:
        """Histories that the applied position is known to be of."""

    @property
    def needs_proof(self) -> bool:
        """Whether nothing has been proven since a pause."""

    @property
    def server_identity(self) -> str:
        """The server whose log is followed."""

    def prove(self, history: History, timeout_s: float) -> bool:
        """Finds out whether a history is that of the applied position; False when it cannot in time."""

    def renew(self) -> None:
        """Lets go of the connections to the database: some lead to another server."""

    def fail(self, reason: str) -> None:
        """Following the log cannot repair what was found: status `ERROR`, until an operator looks at it."""


class Lease(Protocol):
    """The lease of this server, as reads see it (`hms_cache.lease`)."""

    deadline_s: float
    """Until then memory shows every event that is committed and changes an answer; minus infinity: it may not."""

    now_s: Callable[[], float]
    """The clock of the deadline."""

    is_read: bool
    """Set by reads: memory is followed more closely."""

    def moved(self) -> None:
        """Memory has come to another position, so that the lease may count again."""

    def answers_table(self, table: TableName) -> bool:
        """Whether memory shows every event that is committed and may change an answer from the struct, the partitions
        or the statistics of this table."""


NEVER_ASKS = float("inf")
"""The `max_staleness_s` of readers that want no proof."""

MAX_AWAITED = 10_000
"""Events that a read waits for: they are applied in half a second. Memory that lacks more was not followed for a while
(the server was stopped or cut off, or the poller was paused), and lacks them for as long as they take."""


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
        """`workers`: what the worker processes of this server tell each other; None: there is one process."""
        self.max_staleness_s = max_staleness_s
        self.lease: Lease | None = None
        """`cache.exactness = lease`; None: every exact read asks."""
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
        """The highest of this one's and of what other workers told last: theirs end with their history, too."""
        self._current_at_s = float("-inf")
        self._required_after_s = float("-inf")
        self._workers = workers
        if workers is not None:
            cache.position_listener = self._tell_position

    def _tell_position(self, position: int, is_reset: bool) -> None:
        """Before memory answers anything at this position: the other workers must not answer below it (P3)."""
        assert self._workers is not None
        if is_reset:
            # In this order: whoever sees that a floor has fallen asks.
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
        """This server wrote, or showed somebody, the event `event_id`: later reads must show it, too (P3, P4).

        `generation`: when it was shown, if that may be before a reset, which ends the floors of before.
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
        """Under the lock: takes over what other workers told.

        After a reset ids may be those of another history, in which the old floor means nothing (P7).

        A write may have been acknowledged after the reset's position was read: the next read has to ask.
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
            told = self._workers.read(self._follower.server_identity)
            self._floor = max(self._own_floor, told.floor)
            self._required_after_s = max(self._required_after_s, told.required_after_s)
            if not told.agree:  # one of them has not seen a failover yet
                self._required_after_s = self._clock.monotonic_s()

    def may_serve(self, *, wants_proof: bool = False) -> bool:
        """Whether memory is true at its position, as far as the poller can tell. `wants_proof`: it follows the log."""
        status = self._follower.status
        if status is PollerStatus.PAUSED:
            return self.max_staleness_s == NEVER_ASKS and not wants_proof
        return status is PollerStatus.ACTIVE

    def require_check(self) -> None:
        """A read was answered by the database at a position we do not know: the next read asks for it (P3)."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._required_after_s = max(self._required_after_s, now_s)
        if self._workers is not None:
            self._workers.require_check(now_s)

    def is_check_required(self) -> bool:
        """Whether a read may have shown what memory does not have yet, so that even `trust` has to ask first (P3)."""
        with self._lock:
            self._follow_reset()
            return self._is_required()

    def may_trust(self) -> bool:
        """Whether `trust` may answer from memory without asking, also on the event loop: memory is true at its
        position, and no read has shown more (P3)."""
        if not self.may_serve():
            return False
        with self._lock:
            self._follow_reset()
            return self._cache.position >= self._floor and not self._is_required()

    def found_current(self, sent_s: float, generation: int) -> None:
        """A question sent at `sent_s` found nothing newer than what is applied: the age counts from its sending.

        From the answer's arrival would be wrong: what the database said was true when it read, not when we heard it.
        """
        with self._lock:
            self._follow_reset()
            if generation == self._generation:
                self._current_at_s = max(self._current_at_s, sent_s)

    def ensure(self, table: TableName | None = None, *, wants_proof: bool = False) -> bool:
        """True when memory is recent enough for a read that arrived before this call; False: the store must answer.

        `table`: the read is of this table alone, but not of its constraints. `wants_proof`: as at `max_staleness` 0,
        whatever it is.

        Waits for the shared check and for missing events, `apply_timeout_s` at most, and not for a great many
        (`bring_up_to`). Raises DatabaseUnavailable when the database must be asked and does not answer.
        """
        if not self.may_serve(wants_proof=wants_proof):
            return False
        if self.holds_lease(table):
            return True
        if not wants_proof and self.is_recent():
            return True
        with turns.waiting():
            if not wants_proof and self.max_staleness_s == NEVER_ASKS and not self._is_required():
                return self.bring_up_to(self.floor)
            return self._ask_and_apply() and self.may_serve(wants_proof=wants_proof)

    def ensure_by_asking(self) -> bool:
        """As `ensure` where no lease is held and proof is wanted: memory has all events afterwards."""
        if not self.may_serve(wants_proof=True):
            return False
        with turns.waiting():
            return self._ask_and_apply() and self.may_serve(wants_proof=True)

    def _ask_and_apply(self) -> bool:
        applied, generation = self._cache.position, self._cache.generation
        result = self._check.check()
        if result.position < applied or self._cache.generation != generation:
            # The database knew less than we had applied before we asked: another history (P7). A step finds out.
            self._follower.ensure_applied(applied + 1, self.apply_timeout_s)
            return False
        if not self.prove(result.history):
            return False  # an equal id of another history proves nothing
        if self._cache.generation != generation:
            return False
        needed = max(result.position, self.floor)
        if self._cache.position < needed and not self.bring_up_to(needed):
            return False
        self.found_current(result.sent_s, generation)
        if self.lease is not None:
            self.lease.moved()
        return self.may_serve()

    def bring_up_to(self, event_id: int) -> bool:
        """Whether memory has everything up to an event, or has it within `apply_timeout_s`.

        Nobody waits for more than `max_awaited` events: all threads would, one read after the other, until the last
        of them is applied, while the database answers at once (P12).
        """
        follower = self._follower
        if self._is_far_from(event_id):
            if follower.is_stepping:
                return False
            # One page of the log, in case only reads have it read (`events.poll_interval_s = 0`).
            follower.ensure_applied(self._cache.position + 1, self.apply_timeout_s)
            if self._is_far_from(event_id):
                return False
        return follower.ensure_applied(event_id, self.apply_timeout_s)

    def _is_far_from(self, event_id: int) -> bool:
        return event_id - self._cache.position > self.max_awaited

    def holds_lease(self, table: TableName | None = None) -> bool:
        """Whether memory shows every event that is committed at this moment and changes an answer, without a question
        to the database. Of events that only tell of transactions it may have none (`hms_cache.lease.scopes`).

        `table`: it need show only those that may change an answer about this table alone, but for its constraints. No
        floor is compared: a write of this server, and whatever else another read may have shown, is committed.

        Not during a pause, and after it a proof comes first (P7): the lease is renewed all the time, in a history that
        nobody looks at.
        """
        lease, follower = self.lease, self._follower
        # In this order: after a pause the status is the last to change.
        if lease is None or follower.status is not PollerStatus.ACTIVE or follower.needs_proof:
            return False
        lease.is_read = True
        return lease.now_s() < lease.deadline_s or (table is not None and lease.answers_table(table))

    def is_proven(self, history: History) -> bool:
        """Whether a check in this history speaks of the events that memory is made of (P7)."""
        return history in self._follower.proven

    def prove(self, history: History) -> bool:
        """The same, after a step of the poller if need be."""
        return self.is_proven(history) or self._follower.prove(history, self.apply_timeout_s)

    def doubt_connections(self) -> None:
        """A connection showed another server, or an older moment, than the one that is followed."""
        self._follower.renew()

    def is_same_server(self, server_identity: str) -> bool:
        """Whether what was read there can be put beside what is held; an empty name tells nothing."""
        return not server_identity or server_identity == self._follower.server_identity

    def now_s(self) -> float:
        """The clock that ages count by."""
        return self._clock.monotonic_s()

    def accept(self, result: CheckResult) -> bool:
        """Whether a check that came back finds memory current as it is, without waiting for anything.

        For the event loop. False: behind, in trouble, or something has to be applied first.
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
        """Whether memory may answer at once, without a question to the database."""
        if self.max_staleness_s <= 0 or not self.may_serve():
            return False
        with self._lock:
            self._follow_reset()
            if self._cache.position < self._floor or self._is_required():
                return False
            if self.max_staleness_s == NEVER_ASKS:
                return True
            age_s = self._clock.monotonic_s() - self._current_at_s
        return age_s <= self.max_staleness_s

    def _is_required(self) -> bool:
        """Whether something asked for a check that has not been sent since, by a read or by the poller."""
        if self._follower.needs_proof and self._follower.status is PollerStatus.ACTIVE:
            return True
        if self._required_after_s == float("-inf") or self._current_at_s > self._required_after_s:
            return False
        return self._follower.current_at_s <= self._required_after_s
