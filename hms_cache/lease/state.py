"""What a member knows of leases, as a table of moves. No I/O, no thread of its own; one lock guards everything.

| move                  | what it does                                                                              |
|-----------------------|-------------------------------------------------------------------------------------------|
| `joining`             | a new epoch; the lease is gone                                                            |
| `joined`              | the floor rises to where the log stood, at which one look is due (`verified`)             |
| `renewed`             | the lease runs until sending + length, less the drift allowance                           |
| `unleased`            | its lease was revoked: a member that writes, and answers nothing by lease in this epoch   |
| `lost`                | no member any more: the row was fenced or is gone, or the log is another one              |
| `writing`             | a member's write began: no answer by lease, of its tables or of anything, until its end   |
|                       | is heard; acknowledged by epoch                                                           |
| `written`, `abandoned`| its end; the floor, of its tables or of everything, rises to its event                    |
| `over`                | the same, told again on a new connection; one look is due, as after `tended`              |
| `tended`              | its end was not heard, its writer was fenced and the position read                        |
| `exempt`              | memory comes to events that nobody announces, since they change no answer                 |
| `verified`            | the log was looked at: what memory is made of is still in it. Until then no answer by     |
|                       | lease after what cannot be so in that log, or would look the same in another one (P7)     |
| `alarm`               | an event that no member announced: no lease any more                                      |
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
"""How far a clock may be off, as a share of the time measured. Quartz is off by 0.0001; NTP slews by 0.0005."""

NEVER: Final = float("-inf")

MAX_INTENTS: Final = 10_000
"""Writes of other members that may be open: more than all their threads; then the lease is given up."""

MAX_TABLE_FLOORS: Final = 1_000
"""Tables whose last event memory has still to reach: a second of many writers; then the floor of everything rises."""

MAX_ACCOUNTED: Final = 10_000
"""Announced events that are known beyond one that is not: memory is that far behind, or does not follow the log at all,
as while the poller is paused or waits for an operator. Then those in between are taken for announced ones."""

Intent = tuple[str, int]
"""The member that writes, and its number for the write."""


@dataclass(slots=True)
class _OpenWrite:
    heard_s: float
    scope: Scope
    after: int
    """Where memory stood when it was first heard of: its events come later. -1: in which history is not proven."""
    known_to: int
    """The same, in a history that may not be proven: events that are not later are of another one (P7). -1: it was no
    member."""
    awaits_page: bool
    """`known_to` is not known yet: rows of the log that were read before may still be applied."""


@frozen
class LeaseView:
    """A moment of the state, for people."""

    epoch: int | None
    lease_left_s: float
    intents: int
    floor: int
    alarm: str
    answers_other_tables: bool
    """Whether reads of one table that nobody writes are answered by lease."""


class LeaseState:
    """See the module. `deadline_s` and `_of_tables` are read without the lock: until then memory answers."""

    def __init__(
        self,
        member: str,
        length_s: float,
        clock: Callable[[], float],
        position: Callable[[], int],
        is_reading: Callable[[], bool] = lambda: False,
    ) -> None:
        """`position`: that of memory, read without a lock. `is_reading`: whether rows of the log that were read before
        now may still be applied; then `stepped` is called when they are."""
        self.member = member
        self.length_s = length_s
        self.now_s = clock
        self.deadline_s = NEVER
        """The one number that a read compares: no answer by lease from then on."""
        self._of_tables: tuple[float, frozenset[int]] = (NEVER, frozenset())
        """The same for reads of one table alone, and the tables of which none is answered. Replaced as a whole."""
        self.is_read = False
        """Whether anybody has asked for the lease since memory was last brought up to a write (`follows_reads`)."""
        self.changed = threading.Event()
        """There is something for the membership's thread to do."""
        self._position = position
        self._is_reading = is_reading
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._is_joined = False
        self._may_lease = False
        self._lease_until_s = NEVER
        self._intents: dict[Intent, _OpenWrite] = {}
        self._floor = -1
        """Of all events that were heard of."""
        self._floor_of_everything = -1
        """Of those that may have changed more than single tables."""
        self._table_floors: dict[int, int] = {}
        """Of the others, by table."""
        self._accounted_to = -1
        """Every event up to here was announced, or was there when that did not matter yet."""
        self._accounted: set[int] = set()
        self._doubts = 0
        """Things heard so far that another history would explain (P7)."""
        self._verified = 0
        """Of them, those for which the log was looked at."""
        self.alarm_reason = ""

    # ---- membership ----

    def joining(self, epoch: int) -> None:
        """From now on writes are acknowledged under this epoch. Before the row is written."""
        with self._lock:
            self._epoch, self._is_joined, self._lease_until_s = epoch, False, NEVER
            self._decide()

    def joined(self, epoch: int, position: int, *, may_lease: bool = True) -> None:
        """The row is there, and the log stood at `position` when it was written. `may_lease`: it has a lease to it.

        Writes that ended before were not heard of. They may be those of another history, up to memory's position.
        """
        with self._lock:
            if epoch == self._epoch:
                self._is_joined, self._may_lease = True, may_lease
                self._doubt()
                self._raise_floor(position)
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
            self._floor = self._floor_of_everything = self._accounted_to = -1
            self._table_floors.clear()
            self._accounted.clear()
            self._verified = self._doubts
            for write in self._intents.values():
                write.after, write.known_to, write.awaits_page = -1, -1, False
            self._decide()
        self.changed.set()

    @property
    def epoch(self) -> int | None:
        """The epoch under which it is a member; None: it is none."""
        with self._lock:
            return self._epoch if self._is_joined else None

    # ---- writes of members ----

    def writing(self, intent: Intent, scope: Scope = EVERYTHING) -> int | None:
        """A write is under way, own or another member's; again: it still is. The epoch to acknowledge it with."""
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
        """It is committed, with these events."""
        with self._lock:
            write = self._intents.pop(intent, None)
            if write is not None and (write.awaits_page or first <= write.known_to):
                self._doubt()  # mostly this member heard late of the write
            self._raise_floor(last, write.scope if write is not None else EVERYTHING)
            self._account(first, last)
            self._decide()
        self._wake_for_reads()

    def abandoned(self, intent: Intent) -> None:
        """It was rolled back."""
        with self._lock:
            self._intents.pop(intent, None)
            self._decide()
        self._wake_for_reads()

    def over(self, member: str, below: int, position: int) -> None:
        """All writes of this member with lower numbers have ended; those that were committed, not after `position`.
        With which events is not told: they may be below what memory has."""
        with self._lock:
            ended = [intent for intent in self._intents if intent[0] == member and intent[1] < below]
            if ended:
                self._doubt()
                self._raise_floor(position)
                self._account_to(position)
                for intent in ended:
                    del self._intents[intent]
                self._decide()
        self._wake_for_reads()

    def _wake_for_reads(self) -> None:
        """Memory follows a write at once where it is read. Elsewhere the first read brings it up, or the next renewal:
        to follow each write costs its servers as much as the write's own statements under the lock."""
        if self.is_read:
            self.changed.set()

    def follows_reads(self) -> bool:
        """Whether memory is to be brought up now, since it was read; the next time only if it was read again."""
        was_read, self.is_read = self.is_read, False
        return was_read

    def unheard(self, patience_s: float) -> list[Intent]:
        """Writes of other members of which nothing was heard for so long."""
        with self._lock:
            now_s = self.now_s()
            return [
                intent
                for intent, write in self._intents.items()
                if intent[0] != self.member and now_s - write.heard_s >= patience_s
            ]

    def tended(self, intent: Intent, position: int) -> None:
        """Its writer was fenced, and then the log was seen to end at `position`. With which events it ended is not
        known: they may be below what memory has."""
        with self._lock:
            self._doubt()
            self._raise_floor(position)
            self._account_to(position)
            self._intents.pop(intent, None)
            self._decide()

    # ---- the history of the log (P7) ----

    @property
    def doubts(self) -> int:
        """Above 0: memory may be made of another history than what was heard of last. For `verified`."""
        with self._lock:
            return self._doubts if self._doubts > self._verified else 0

    def verified(self, doubts: int) -> None:
        """After `doubts` was read the log was looked at: what memory was made of is still in it."""
        with self._lock:
            self._verified = max(self._verified, doubts)
            self._decide()

    # ---- reads ----

    def answers_table(self, table: TableName) -> bool:
        """Whether memory may answer a read of this table alone (`scopes.Scope`), although others are being written."""
        deadline_s, busy = self._of_tables
        return self.now_s() < deadline_s and table_number(table) not in busy

    # ---- memory ----

    def exempt(self, event_ids: Iterable[int]) -> None:
        """These are about transactions alone (`scopes`), so that no member announces them. Before memory has them."""
        with self._lock:
            for event_id in event_ids:
                self._account(event_id, event_id)

    def stepped(self) -> None:
        """Rows of the log that were read before now are applied."""
        with self._lock:
            position = self._position() if self._intents else -1
            for write in self._intents.values():
                if write.awaits_page:
                    write.known_to, write.awaits_page = position, False

    def moved(self) -> None:
        """Memory has come to another position."""
        with self._lock:
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
            answers_others = self.now_s() < self._of_tables[0]
            return LeaseView(epoch, left_s, len(self._intents), self._floor, self.alarm_reason, answers_others)

    # ---- under the lock ----

    def _has_lease(self) -> bool:
        return self._is_joined and self.now_s() < self._lease_until_s

    def _doubt(self) -> None:
        """One look at the log is due, by the membership's thread."""
        self._doubts += 1
        self.changed.set()

    def _decide(self) -> None:
        position = self._position()
        self._look_for_unannounced(position)
        may_answer = self._is_joined and not self.alarm_reason and self._doubts <= self._verified
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

    def _look_for_unannounced(self, position: int) -> None:
        """Whether memory has an event that nobody announced. Not while it may be one of another history.

        An event of a write whose end is not heard yet came after what memory had when the write was announced.
        """
        unheard = self._accounted_to + 1
        if self.alarm_reason or position < unheard or not self._has_lease() or self._doubts > self._verified:
            return
        if all(write.after >= unheard for write in self._intents.values()):
            self.alarm_reason = f"event {unheard} was announced by no member: another metastore writes to this database"
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
            return  # the event that is missing never comes
        if first <= self._accounted_to + 1:
            self._account_to(last)
        else:
            self._accounted.update(range(first, last + 1))
            if len(self._accounted) > MAX_ACCOUNTED:
                self._account_to(max(self._accounted))

    def _account_to(self, position: int) -> None:
        """Takes as long as the way to the new position is, however much is known beyond: each event of a thousand that
        memory comes to may be one that nobody announced."""
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
