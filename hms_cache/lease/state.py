"""What a member knows of leases, as a table of moves. No I/O, no thread of its own; one lock guards everything.

| move                  | what it does                                                                              |
|-----------------------|-------------------------------------------------------------------------------------------|
| `joining`             | a new epoch; the lease is gone                                                            |
| `joined`              | the floor rises to where the log stood                                                    |
| `renewed`             | the lease runs until sending + length, less the drift allowance                           |
| `unleased`            | its lease was revoked: a member that writes, and answers nothing by lease in this epoch   |
| `lost`                | no member any more: the row was fenced or is gone, or the log is another one              |
| `writing`             | a member's write began: no answer by lease until its end is heard; acknowledged by epoch  |
| `written`, `abandoned`| its end; the floor rises to its event                                                     |
| `over`                | the same, told again on a new connection                                                  |
| `tended`              | its end was not heard, its writer was fenced and the position read                        |
| `alarm`               | an event that no member announced: no lease any more                                      |
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DRIFT: Final = 0.01
"""How far a clock may be off, as a share of the time measured. Quartz is off by 0.0001; NTP slews by 0.0005."""

NEVER: Final = float("-inf")

MOST_INTENTS: Final = 10_000
"""Writes of other members that may be open: more than all their threads; then the lease is given up."""

Intent = tuple[str, int]
"""The member that writes, and its number for the write."""


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A moment of the state, for people."""

    epoch: int | None
    lease_left_s: float
    intents: int
    floor: int
    alarm: str


class LeaseState:
    """See the module. `deadline_s` is read without the lock: until then, by `clock`, memory answers."""

    def __init__(self, member: str, length_s: float, clock: Callable[[], float], position: Callable[[], int]) -> None:
        """`position`: that of memory, read without a lock."""
        self.member = member
        self.length_s = length_s
        self.now_s = clock
        self.deadline_s = NEVER
        """The one number that a read compares: no answer by lease from then on."""
        self.changed = threading.Event()
        """There is something for the membership's thread to do."""
        self._position = position
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._is_joined = False
        self._may_lease = False
        self._lease_until_s = NEVER
        self._intents: dict[Intent, float] = {}
        self._floor = -1
        self._accounted_to = -1
        """Every event up to here was announced, or was there when that did not matter yet."""
        self._accounted: set[int] = set()
        self.alarm_reason = ""

    # ---- membership ----

    def joining(self, epoch: int) -> None:
        """From now on writes are acknowledged under this epoch. Before the row is written."""
        with self._lock:
            self._epoch, self._is_joined, self._lease_until_s = epoch, False, NEVER
            self._decide()

    def joined(self, epoch: int, position: int, *, may_lease: bool = True) -> None:
        """The row is there, and the log stood at `position` when it was written. `may_lease`: it has a lease to it."""
        with self._lock:
            if epoch == self._epoch:
                self._is_joined, self._may_lease = True, may_lease
                self._floor = max(self._floor, position)
                self._account_to(position)
                self._decide()

    def renewed(self, epoch: int, sent_s: float) -> None:
        """The row was there and not revoked when the database read it, which was after `sent_s`."""
        with self._lock:
            if epoch == self._epoch and self._is_joined and self._may_lease:
                self._lease_until_s = max(self._lease_until_s, sent_s + self.length_s * (1 - 2 * DRIFT))
                self._decide()

    def unleased(self, epoch: int) -> bool:
        """The lease of this epoch was revoked; whether that is news."""
        with self._lock:
            if epoch != self._epoch or not self._may_lease:
                return False
            self._may_lease, self._lease_until_s = False, NEVER
            self._decide()
            return True

    def lost(self, epoch: int | None = None) -> None:
        """No member any more, if it still was one under this epoch (None: whatever it is)."""
        with self._lock:
            if epoch is None or epoch == self._epoch:
                self._epoch, self._is_joined, self._lease_until_s = None, False, NEVER
                self._decide()
        self.changed.set()

    def forget_history(self) -> None:
        """The log is another one: what was known of positions means nothing (P7)."""
        with self._lock:
            self._epoch, self._is_joined, self._lease_until_s = None, False, NEVER
            self._floor = self._accounted_to = -1
            self._accounted.clear()
            self._decide()
        self.changed.set()

    @property
    def epoch(self) -> int | None:
        """The epoch under which it is a member; None: it is none."""
        with self._lock:
            return self._epoch if self._is_joined else None

    # ---- writes of members ----

    def writing(self, intent: Intent) -> int | None:
        """A write is under way, own or another member's; again: it still is. The epoch to acknowledge it with."""
        with self._lock:
            if intent not in self._intents and len(self._intents) >= MOST_INTENTS:
                return None
            self._intents[intent] = self.now_s()
            self._decide()
            return self._epoch

    def written(self, intent: Intent, first: int, last: int) -> None:
        """It is committed, with these events."""
        with self._lock:
            self._floor = max(self._floor, last)
            self._account(first, last)
            self._intents.pop(intent, None)
            self._decide()
        self.changed.set()

    def abandoned(self, intent: Intent) -> None:
        """It was rolled back."""
        with self._lock:
            self._intents.pop(intent, None)
            self._decide()
        self.changed.set()

    def over(self, member: str, below: int, position: int) -> None:
        """All writes of this member with lower numbers have ended; those that were committed, not after `position`."""
        with self._lock:
            ended = [intent for intent in self._intents if intent[0] == member and intent[1] < below]
            if ended:
                self._floor = max(self._floor, position)
                self._account_to(position)
                for intent in ended:
                    del self._intents[intent]
                self._decide()
        self.changed.set()

    def unheard(self, patience_s: float) -> list[Intent]:
        """Writes of other members of which nothing was heard for so long."""
        with self._lock:
            now_s = self.now_s()
            return [
                intent
                for intent, since_s in self._intents.items()
                if intent[0] != self.member and now_s - since_s >= patience_s
            ]

    def tended(self, intent: Intent, position: int) -> None:
        """Its writer was fenced, and then the log was seen to end at `position`."""
        with self._lock:
            self._floor = max(self._floor, position)
            self._account_to(position)
            self._intents.pop(intent, None)
            self._decide()

    # ---- memory ----

    def moved(self) -> None:
        """Memory has come to another position. Looks for events that nobody announced."""
        with self._lock:
            position = self._position()
            has_lease = self._is_joined and self.now_s() < self._lease_until_s
            if has_lease and not self._intents and position > self._accounted_to and not self.alarm_reason:
                self.alarm_reason = (
                    f"event {self._accounted_to + 1} was announced by no member: another metastore writes to this"
                    " database"
                )
            self._decide()

    @property
    def catch_up_to(self) -> int | None:
        """The event that memory has to reach before it may answer; None: it is there."""
        with self._lock:
            return self._floor if self._position() < self._floor else None

    def view(self) -> LeaseView:
        """The state now."""
        with self._lock:
            left_s = max(0.0, self._lease_until_s - self.now_s())
            epoch = self._epoch if self._is_joined else None
            return LeaseView(epoch, left_s, len(self._intents), self._floor, self.alarm_reason)

    # ---- under the lock ----

    def _decide(self) -> None:
        free = self._is_joined and not self._intents and not self.alarm_reason
        self.deadline_s = self._lease_until_s if free and self._position() >= self._floor else NEVER

    def _account(self, first: int, last: int) -> None:
        if first <= self._accounted_to + 1:
            self._account_to(last)
        else:
            self._accounted.update(range(first, last + 1))

    def _account_to(self, position: int) -> None:
        self._accounted_to = max(self._accounted_to, position)
        while self._accounted_to + 1 in self._accounted:
            self._accounted_to += 1
        self._accounted = {one for one in self._accounted if one > self._accounted_to}
