"""What a member knows of leases, as a table of moves. No I/O, no thread of its own; one lock guards everything.

| move                  | what it does                                                                              |
|-----------------------|-------------------------------------------------------------------------------------------|
| `joining`             | a new epoch; the lease ends                                                               |
| `joined`              | the floor rises to the end of the log; the log has to be checked once (`verified`)        |
| `renewed`             | the lease runs until the time of sending + its length, less the drift allowance           |
| `unleased`            | its lease was revoked: the member writes, and answers nothing by lease in this epoch      |
| `lost`                | no longer a member: its row was fenced or is missing, or the log is another one           |
| `writing`             | a member's write began: until its end is reported, nothing is answered by lease about its |
|                       | tables, or about anything; acknowledged by epoch                                          |
| `written`, `abandoned`| its end; the floor of its tables, or of everything, rises to its event                    |
| `over`                | the same, repeated on a new connection; the log has to be checked, as after `fenced`      |
| `fenced`              | its end was not reported, so its writer was fenced and the position was read              |
| `exempt`              | memory comes to events that are not announced, since they change no answer                |
| `verified`            | the log was checked: what memory is made of is still in it. Until then, nothing is        |
|                       | answered by lease after an observation that cannot be true of that log, or that would     |
|                       | look the same in another one (P7)                                                         |
| `alarm`               | an event that no member announced: the lease ends                                         |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hms_cache.lease.scopes import EVERYTHING, Scope, table_number
from hms_cache.metadata.object_names import TableName
from hms_cache.values import frozen

DRIFT: Final = 0.01
"""Maximum error of a clock, as a part of the measured time. Quartz is off by 0.0001; NTP slews by 0.0005."""

NEVER: Final = float("-inf")

MAX_INTENTS: Final = 10_000
"""Open writes of other members. If there are more, which is more than all their threads, the lease is given up."""

MAX_TABLE_FLOORS: Final = 1_000
"""Tables whose last event memory has not reached: a second of many writers. If there are more, the floor for everything
rises."""

MAX_ACCOUNTED: Final = 10_000
"""Announced events that are known above one that is not announced. If there are more, memory is that far behind, or
does not follow the log at all, because the poller is paused or waits for an operator. Then the events in between are
taken for announced ones."""

Intent = tuple[str, int]
"""The writing member, and its number for the write."""


@dataclass(slots=True)
class _OpenWrite:
    received_s: float
    scope: Scope
    after: int
    """Position of memory when the write was first announced: its events come later. -1: the history was not proven."""
    known_to: int
    """The same position, even if its history is not proven: if events of the write are not later, they belong to
    another history (P7). -1: this server was not a member."""
    awaits_page: bool
    """`known_to` is not final: rows of the log that were read earlier may still be applied."""


@frozen
class LeaseView:
    """The state at one time, for display."""

    epoch: int | None
    lease_remaining_s: float
    intents: int
    floor: int
    alarm: str
    answers_other_tables: bool
    """Whether reads of one table are answered by lease while only other tables are being written."""


class LeaseState:
    """See the module. `deadline_s` and `_of_tables` are read without the lock: memory answers until then."""

    def __init__(
        self,
        member: str,
        length_s: float,
        clock: Callable[[], float],
        position: Callable[[], int],
        is_reading: Callable[[], bool] = lambda: False,
    ) -> None:
        """`position`: that of memory, read without a lock. `is_reading`: whether rows of the log that were read before
        now may still be applied; if so, `stepped` is called afterwards."""
        self.member = member
        self.length_s = length_s
        self.now_s = clock
        self.deadline_s = NEVER
        """The only number that a read compares: after this time, nothing is answered by lease."""
        self._of_tables: tuple[float, frozenset[int]] = (NEVER, frozenset())
        """The same for reads of one table alone, and the tables for which nothing is answered by lease. Replaced as a
        whole."""
        self.is_read = False
        """Whether a read has used the lease since memory was last brought up to a write (`follows_reads`)."""
        self.changed = threading.Event()
        """Set if the thread of the membership has something to do."""
        self._position = position
        self._is_reading = is_reading
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._is_joined = False
        self._may_lease = False
        self._lease_until_s = NEVER
        self._intents: dict[Intent, _OpenWrite] = {}
        self._floor = -1
        """The highest event of all announced writes."""
        self._floor_of_everything = -1
        """The highest event of writes that may have changed more than single tables."""
        self._table_floors: dict[int, int] = {}
        """The highest event of the other writes, by table."""
        self._accounted_to = -1
        """Every event up to this one was announced, or existed before announcements mattered."""
        self._accounted: set[int] = set()
        self._unverified = 0
        """Number of observations that could also be explained by another history (P7)."""
        self._verified = 0
        """How many of them were followed by a check of the log."""
        self.alarm_reason = ""

    # ---- membership ----

    def joining(self, epoch: int) -> None:
        """From now on, writes are acknowledged under this epoch. Called before the row is written."""
        with self._lock:
            self._epoch, self._is_joined, self._lease_until_s = epoch, False, NEVER
            self._decide()

    def joined(self, epoch: int, position: int, *, may_lease: bool = True) -> None:
        """The row was written when the log stood at `position`. `may_lease`: it has a lease.

        Writes that had ended before were not announced to this server. Up to memory's position, they may belong to
        another history.
        """
        with self._lock:
            if epoch == self._epoch:
                self._is_joined, self._may_lease = True, may_lease
                self._require_verification()
                self._raise_floor(position)
                self._account_to(position)
                self._decide()

    def renewed(self, epoch: int, sent_s: float) -> None:
        """The row existed and was not revoked when the database read it, which was after `sent_s`."""
        with self._lock:
            if epoch == self._epoch and self._is_joined and self._may_lease:
                self._lease_until_s = max(self._lease_until_s, sent_s + self.length_s * (1 - 2 * DRIFT))
                self._decide()

    def unleased(self, epoch: int) -> bool:
        """The lease of this epoch was revoked. Returns whether that was not known."""
        with self._lock:
            if epoch != self._epoch or not self._may_lease:
                return False
            self._may_lease, self._lease_until_s = False, NEVER
            self._decide()
            return True

    def lost(self, epoch: int | None = None) -> None:
        """No longer a member, if it was one under this epoch (None: under any)."""
        with self._lock:
            if epoch is None or epoch == self._epoch:
                self._epoch, self._is_joined, self._lease_until_s = None, False, NEVER
                self._decide()
        self.changed.set()

    def forget_history(self) -> None:
        """The log is another one: known positions mean nothing (P7)."""
        with self._lock:
            self._epoch, self._is_joined, self._lease_until_s = None, False, NEVER
            self._floor = self._floor_of_everything = self._accounted_to = -1
            self._table_floors.clear()
            self._accounted.clear()
            self._verified = self._unverified
            for write in self._intents.values():
                write.after, write.known_to, write.awaits_page = -1, -1, False
            self._decide()
        self.changed.set()

    @property
    def epoch(self) -> int | None:
        """The epoch under which it is a member; None: it is not a member."""
        with self._lock:
            return self._epoch if self._is_joined else None

    # ---- writes of members ----

    def writing(self, intent: Intent, scope: Scope = EVERYTHING) -> int | None:
        """A write of this server or another member is under way, or still is. Returns the epoch to acknowledge it
        with."""
        with self._lock:
            known = self._intents.get(intent)
            if known is None and len(self._intents) >= MAX_INTENTS:
                return None
            if known is not None:
                after, known_to, awaits_page = known.after, known.known_to, known.awaits_page
            else:
                awaits_page = self._is_joined and self._is_reading()  # before the position is read
                known_to = self._position() if self._is_joined else -1
                after = known_to if self._has_lease() else -1
            self._intents[intent] = _OpenWrite(self.now_s(), scope, after, known_to, awaits_page)
            self._decide()
            return self._epoch

    def written(self, intent: Intent, first: int, last: int) -> None:
        """The write is committed, with these events."""
        with self._lock:
            write = self._intents.pop(intent, None)
            if write is not None and (write.awaits_page or first <= write.known_to):
                self._require_verification()  # usually the announcement reached this member late
            self._raise_floor(last, write.scope if write is not None else EVERYTHING)
            self._account(first, last)
            self._decide()
        self._wake_for_reads()

    def abandoned(self, intent: Intent) -> None:
        """The write was rolled back."""
        with self._lock:
            self._intents.pop(intent, None)
            self._decide()
        self._wake_for_reads()

    def over(self, member: str, below: int, position: int) -> None:
        """All writes of this member with lower numbers have ended; those that were committed, not after `position`.
        Their events are unknown, and may be below memory's position."""
        with self._lock:
            ended = [intent for intent in self._intents if intent[0] == member and intent[1] < below]
            if ended:
                self._require_verification()
                self._raise_floor(position)
                self._account_to(position)
                for intent in ended:
                    del self._intents[intent]
                self._decide()
        self._wake_for_reads()

    def _wake_for_reads(self) -> None:
        """If memory is read, it follows a write at once. Otherwise the first read or the next renewal brings it up:
        following each write would cost the servers as much as the write's own statements under the lock."""
        if self.is_read:
            self.changed.set()

    def follows_reads(self) -> bool:
        """Whether memory should be brought up now, because it was read since the last call."""
        was_read, self.is_read = self.is_read, False
        return was_read

    def overdue_intents(self, max_wait_s: float) -> list[Intent]:
        """Writes of other members about which no message came for this time."""
        with self._lock:
            now_s = self.now_s()
            return [
                intent
                for intent, write in self._intents.items()
                if intent[0] != self.member and now_s - write.received_s >= max_wait_s
            ]

    def fenced(self, intent: Intent, position: int) -> None:
        """The writer of a write was fenced, and afterwards the log ended at `position`. The events of the write are
        unknown, and may be below memory's position."""
        with self._lock:
            self._require_verification()
            self._raise_floor(position)
            self._account_to(position)
            self._intents.pop(intent, None)
            self._decide()

    # ---- the history of the log (P7) ----

    @property
    def unverified(self) -> int:
        """If above 0, memory may be made of another history than the last observations. The argument for `verified`."""
        with self._lock:
            return self._unverified if self._unverified > self._verified else 0

    def verified(self, unverified: int) -> None:
        """The log was checked after `unverified` was read: what memory is made of is still in it."""
        with self._lock:
            self._verified = max(self._verified, unverified)
            self._decide()

    # ---- reads ----

    def answers_table(self, table: TableName) -> bool:
        """Whether memory may answer a read of this table alone (`scopes.Scope`) while other tables are being
        written."""
        deadline_s, busy = self._of_tables
        return self.now_s() < deadline_s and table_number(table) not in busy

    # ---- memory ----

    def exempt(self, event_ids: Iterable[int]) -> None:
        """These events concern transactions only (`scopes`), so members do not announce them. Called before memory has
        them."""
        with self._lock:
            for event_id in event_ids:
                self._account(event_id, event_id)

    def stepped(self) -> None:
        """Rows of the log that were read earlier have been applied."""
        with self._lock:
            position = self._position() if self._intents else -1
            for write in self._intents.values():
                if write.awaits_page:
                    write.known_to, write.awaits_page = position, False

    def moved(self) -> None:
        """The position of memory has changed."""
        with self._lock:
            self._decide()

    @property
    def catch_up_to(self) -> int | None:
        """The event that memory has to reach before it may answer; None: it has been reached."""
        with self._lock:
            return self._floor if self._position() < self._floor else None

    def view(self) -> LeaseView:
        """The present state."""
        with self._lock:
            remaining_s = max(0.0, self._lease_until_s - self.now_s())
            epoch = self._epoch if self._is_joined else None
            answers_others = self.now_s() < self._of_tables[0]
            return LeaseView(epoch, remaining_s, len(self._intents), self._floor, self.alarm_reason, answers_others)

    # ---- under the lock ----

    def _has_lease(self) -> bool:
        return self._is_joined and self.now_s() < self._lease_until_s

    def _require_verification(self) -> None:
        """Requests a check of the log by the thread of the membership."""
        self._unverified += 1
        self.changed.set()

    def _decide(self) -> None:
        position = self._position()
        self._detect_unannounced(position)
        may_answer = self._is_joined and not self.alarm_reason and self._unverified <= self._verified
        until_s = self._lease_until_s if may_answer else NEVER
        self.deadline_s = until_s if not self._intents and position >= self._floor else NEVER
        if position >= self._floor:
            self._table_floors.clear()
        busy = {table for table, floor in self._table_floors.items() if floor > position}
        for write in self._intents.values():
            if write.scope is EVERYTHING:
                until_s = NEVER
                break
            busy |= write.scope
        self._of_tables = (until_s if position >= self._floor_of_everything else NEVER, frozenset(busy))

    def _detect_unannounced(self, position: int) -> None:
        """Whether memory contains an event that was not announced. Not while memory may be of another history.

        An event of a write whose end is not reported yet is above memory's position at the time of the announcement.
        """
        first_unaccounted = self._accounted_to + 1
        if (
            self.alarm_reason
            or position < first_unaccounted
            or not self._has_lease()
            or self._unverified > self._verified
        ):
            return
        if all(write.after >= first_unaccounted for write in self._intents.values()):
            self.alarm_reason = (
                f"event {first_unaccounted} was announced by no member: another metastore writes to this database"
            )
            self._accounted.clear()

    def _raise_floor(self, position: int, scope: Scope = EVERYTHING) -> None:
        self._floor = max(self._floor, position)
        if scope is EVERYTHING:
            self._floor_of_everything = max(self._floor_of_everything, position)
            return
        for table in scope:
            self._table_floors[table] = max(self._table_floors.get(table, -1), position)
        if len(self._table_floors) > MAX_TABLE_FLOORS:
            self._floor_of_everything = self._floor
            self._table_floors.clear()

    def _account(self, first: int, last: int) -> None:
        if self.alarm_reason:
            return  # the missing event will never come
        if first <= self._accounted_to + 1:
            self._account_to(last)
        else:
            self._accounted.update(range(first, last + 1))
            if len(self._accounted) > MAX_ACCOUNTED:
                self._account_to(max(self._accounted))

    def _account_to(self, position: int) -> None:
        """Takes time in proportion to the way to the new position, however many events are known above: each event that
        memory comes to may be one that was not announced."""
        accounted, before = self._accounted, self._accounted_to
        if position - before > len(accounted):
            self._accounted = accounted = {one for one in accounted if one > position}
        elif position > before:
            accounted.difference_update(range(before + 1, position + 1))
        position = max(position, before)
        while position + 1 in accounted:
            position += 1
            accounted.remove(position)
        self._accounted_to = position
