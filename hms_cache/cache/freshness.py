"""Whether what is remembered is recent enough for a read (DESIGN 3.2), as a table of (status × max_staleness).

``max_staleness_s`` is 0 (P1: every read asks, together with all that wait), a time, or infinity (never asks). Below
every setting lies the floor: no read on this server sees less than this server's own writes (P4), nor than what an
earlier read through this server may have shown (P3).
"""

from __future__ import annotations

import threading
from typing import Protocol

from hms_cache.cache.position_check import CheckResult, PositionCheck
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.clock import Clock
from hms_cache.notifications.poller_status import PollerStatus


class Follower(Protocol):
    """The poller, as seen from here."""

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        """Brings the applied position to at least `position`; False when it cannot in time."""

    @property
    def status(self) -> PollerStatus:
        """Its status."""


SERVING = frozenset({PollerStatus.ACTIVE, PollerStatus.PAUSED})
"""States in which memory is true at the applied position. In all others it is empty or not to be trusted."""


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
    ) -> None:
        self.max_staleness_s = max_staleness_s
        self.apply_timeout_s = apply_timeout_s
        self._cache = cache
        self._check = check
        self._follower = follower
        self._clock = clock
        self._lock = threading.Lock()
        self._floor = -1
        self._current_at_s = float("-inf")
        self._required_after_s = float("-inf")

    @property
    def floor(self) -> int:
        """The event below which no read may be answered."""
        return self._floor

    def raise_floor(self, event_id: int) -> None:
        """This server wrote, or showed somebody, the event `event_id`: later reads must show it, too (P3, P4)."""
        with self._lock:
            self._floor = max(self._floor, event_id)

    def require_check(self) -> None:
        """A read was answered by the database at a position we do not know: the next read asks for it (P3)."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._required_after_s = max(self._required_after_s, now_s)

    def found_current(self, sent_s: float) -> None:
        """A question sent at `sent_s` found nothing newer than what is applied: the age counts from its sending.

        From the answer's arrival would be wrong: what the database said was true when it read, not when we heard it.
        """
        with self._lock:
            self._current_at_s = max(self._current_at_s, sent_s)

    def ensure(self) -> bool:
        """True when memory is recent enough for a read that arrived before this call; False: the store must answer.

        Waits for the shared check and for missing events, `apply_timeout_s` at most. Raises DatabaseUnavailable when
        the database must be asked and does not answer.
        """
        if self._follower.status not in SERVING:
            return False
        if self.is_recent():
            return True
        if self.max_staleness_s == float("inf") and not self._is_required():
            return self._follower.ensure_applied(self._floor, self.apply_timeout_s)
        result = self._check.check()
        needed = max(result.position, self._floor)
        if result.position < self._cache.position:
            # The database knows less than we applied: another history, a replica, or a database restored (P7).
            self._follower.ensure_applied(result.position, self.apply_timeout_s)
            return False
        if self._cache.position < needed and not self._follower.ensure_applied(needed, self.apply_timeout_s):
            return False
        if result.position <= self._cache.position:
            self.found_current(result.sent_s)
        return self._follower.status in SERVING

    def now_s(self) -> float:
        """The clock that ages count by."""
        return self._clock.monotonic_s()

    def accept(self, result: CheckResult) -> bool:
        """Whether a check that came back finds memory current as it is, without waiting for anything.

        For the event loop. False: behind, in trouble, or something has to be applied first.
        """
        if self._follower.status not in SERVING or result.position != self._cache.position:
            return False
        if self._cache.position < self._floor:
            return False
        with self._lock:
            self._current_at_s = max(self._current_at_s, result.sent_s)
        return True

    def is_recent(self) -> bool:
        """Whether memory may answer at once, without a question to the database."""
        if self.max_staleness_s <= 0 or self._follower.status not in SERVING:
            return False
        with self._lock:
            if self._cache.position < self._floor:
                return False
            if self.max_staleness_s == float("inf"):
                return not self._is_required()
            if self._is_required():
                return False
            age_s = self._clock.monotonic_s() - self._current_at_s
        return age_s <= self.max_staleness_s

    def _is_required(self) -> bool:
        """Whether something asked for a check that has not been sent since."""
        return self._current_at_s <= self._required_after_s != float("-inf")
