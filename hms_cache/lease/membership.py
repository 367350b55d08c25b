"""A member of the set: the thread that joins, renews, and cleans up after other members."""

from __future__ import annotations

import logging
import secrets
import threading
import uuid
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from hms_cache.errors import DatabaseUnavailableError
from hms_cache.lease.clock import lease_clock_s
from hms_cache.lease.scopes import EVERYTHING
from hms_cache.lease.state import DRIFT, NEVER, LeaseState
from hms_cache.lease.transport import Message, Transport
from hms_cache.lease.unannounced import PRESENCE_VALID_S
from hms_cache.lease.writes import LeaseWrites
from hms_cache.limited_log import LimitedLog
from hms_cache.notifications.event_log import History
from hms_cache.store.engine.database import Database, read_log_end
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.members import members
from hms_cache.store.members.members import MemberRow

_log = logging.getLogger(__name__)

RENEWALS_PER_LEASE: Final = 3
"""Renewals in one lease: one may be late, and one may be lost."""

INTENT_MAX_WAIT_LEASES: Final = 1.5
"""After this many leases without a message about a write, its writer is fenced. Messages come every third of a
lease."""

LONGEST_BACKOFF_S: Final = 60.0
"""A member whose lease is revoked asks for another one after the length of one lease, then two, four and so on, up to
this time: if the other members still cannot reach it, each new lease makes a write wait."""

FORGET_S: Final = 60.0
"""After this time without a lease, a member's row is deleted: its server was probably killed."""

MAX_REASONS: Final = 50
"""Reasons that are kept for display."""

_RETRY_S: Final = 0.2
_STOP_S: Final = 10.0
_CATCH_UP_S: Final = 0.5
"""After this time, applying events continues in the next round: renewals, and writes that wait for this server to join,
come first."""


class Memory(Protocol):
    """The cache, as far as it concerns a member."""

    def position(self) -> int:
        """The event up to which it is true."""

    def is_reading(self) -> bool:
        """Whether events that were read before now may still be applied."""

    def prove(self, history: History) -> bool:
        """Whether data read in this history refers to the log that memory is made of (P7)."""

    def catch_up(self, position: int, timeout_s: float) -> bool:
        """Applies events up to this one."""

    def verify(self) -> bool:
        """Checks whether what memory is made of is still in the log. If not, the history is another one (P7), and
        everything is dropped. False also if the log could not be read."""


class Membership:
    """See the module. Call `start` and `stop` once each, and `guard` in between, before the first write."""

    def __init__(
        self,
        database: Database,
        memory: Memory,
        secret: bytes,
        length_s: float,
        clock: Callable[[], float] = lease_clock_s,
        trial_s: float = PRESENCE_VALID_S,
    ) -> None:
        """`database`: a separate one, so that renewals do not wait for other work. `trial_s`: how long its row must
        exist before it holds a lease as the first member, so that writers which announce nothing have seen it."""
        self.member = uuid.uuid4().hex
        self.address = ""
        self.length_s = length_s
        self.state = LeaseState(self.member, length_s, clock, memory.position, memory.is_reading)
        self.transport = Transport(self.member, secret, self._receive, self._receive_reply, self._introduction)
        self.writes = LeaseWrites(self.state, database, self.transport)
        self.rows: tuple[MemberRow, ...] = ()
        """The members as last read."""
        self.acknowledgements = 0
        """Acknowledgements sent to other members."""
        self.reasons: deque[tuple[float, str]] = deque(maxlen=MAX_REASONS)
        """When (seconds since 1970) and why it lost a lease or could not ask for one; the latest last."""
        self._database = database
        self._memory = memory
        self._clock = clock
        self._stopped = threading.Event()
        self._is_closed = False
        self._renew_at_s = NEVER
        self._thread = threading.Thread(target=self._run, name="hms-lease", daemon=True)
        self._alarm_raised = False
        self._trial_s = trial_s * (1 + 2 * DRIFT)
        self._there_since_s = NEVER
        """Since when it has had a row without interruption."""
        self._last_epoch = 0
        """The epoch of its last join."""
        self._lease_from_s = NEVER
        """When it asks for a lease again."""
        self._backoff_s = 0.0
        self._without_lease: dict[tuple[str, int], float] = {}
        self._limited_log = LimitedLog(_log)
        self._has_failed = False
        """Whether it has failed since the last success."""

    @property
    def next_lease_request_in_s(self) -> float:
        """Seconds until it asks for another lease; 0: it has one, or is asking."""
        return max(0.0, self._lease_from_s - self._clock())

    def start(self, host: str, port: int, address: str) -> None:
        """Listens for other members, which reach this one at `address` (empty: where it listens), and joins.

        Raises `StartupError`, `DatabaseUnavailableError`.
        """
        members.create_table(self._database)
        bound = self.transport.start(host, port)
        self.address = address or f"{host}:{bound}"
        self._thread.start()

    def stop(self) -> None:
        """Gives up the lease, then the row, then the connections. A second call has no effect."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stopped.set()
        self.state.lost()
        self._thread.join(_STOP_S)
        self.state.lost()  # once more: the thread may have been joining, since it was not a member
        try:
            members.leave(self._database, self.member)
        except Exception as error:
            _log.warning("the member's row stays, and costs the next writer a lease: %s", error)
        self.transport.stop()
        self._database.close()

    # ---- messages, on the transport's loop ----

    def _receive(self, sender: str, message: list[str | int | None]) -> Message | None:
        match message:
            case ["writing", int(key), *tables]:
                self.acknowledgements += 1
                scope = frozenset(table for table in tables if isinstance(table, int)) or EVERYTHING
                return ("ack", key, self.state.writing((sender, key), scope))
            case ["written", int(key), int(first), int(last)]:
                self.state.written((sender, key), first, last)
            case ["settled", int(key), int(position)]:
                self.state.fenced((sender, key), position)
            case ["over", int(key), int(position)]:
                self.state.over(sender, key, position)
            case ["abandoned", int(key)]:
                self.state.abandoned((sender, key))
            case _:
                _log.warning("member %s sent a message that this version does not know: %s", sender, message[0])
        return None

    def _introduction(self) -> Message:
        """For a new connection, since messages may have been lost with the previous one: all writes below this number
        have ended, none of them after this event."""
        return ("over", *self.writes.over())

    def _receive_reply(self, sender: str, message: list[str | int | None]) -> None:
        match message:
            case ["ack", int(key), int() | None as epoch]:
                self.writes.acknowledged(sender, key, epoch)
            case _:
                _log.warning("member %s sent an answer that this version does not know: %s", sender, message[0])

    # ---- the thread ----

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.state.changed.clear()
            try:
                self._step()
                self._has_failed = False
            except Exception as error:
                is_known = isinstance(error, DatabaseUnavailableError | RetryableConflict)
                trace = None if is_known or self._has_failed else error
                self._limited_log.warning("the lease is not renewed: %s", error, exc_info=trace)
                self._note(f"it is not renewed: {error}")
                self._has_failed = True
                self._stopped.wait(_RETRY_S)
            self.state.changed.wait(max(0.0, min(self.length_s, self._renew_at_s - self._clock())))

    def _step(self) -> None:
        if self.state.epoch is None:
            self._join()
        self._verify()
        is_due = self._clock() >= self._renew_at_s
        if is_due:
            self.writes.announce_again()
            self._renew()
            self.writes.resolve_unknown(self._read_position)
            self._fence_overdue()
            self._forget()
        self._catch_up(is_due=is_due)

    def _verify(self) -> None:
        unverified = self.state.unverified
        if unverified and self._memory.verify():
            self.state.verified(unverified)

    def _join(self) -> None:
        members.create_table(self._database)  # once more, since earlier dumps do not contain it
        epoch = secrets.randbelow(2**62) + 1
        self.state.joining(epoch)
        wants_lease = self._clock() >= self._lease_from_s
        lease_ms = round(self.length_s * 1000) if wants_lease else 0
        row = MemberRow(self.member, self.address, epoch, lease_ms, False, False)
        is_on_trial = self._trial_s > 0 and self._clock() - self._there_since_s < self._trial_s
        joined = members.join(self._database, row, last_epoch=self._last_epoch, may_be_first=not is_on_trial)
        if not joined.was_there:
            if self._there_since_s != NEVER:
                self.writes.rows_are_gone()
            self._there_since_s = self._clock()
        self._last_epoch = epoch
        if wants_lease and not joined.may_lease:
            self._lease_from_s = self._there_since_s + self._trial_s
            self._note("it is the first member, and waits until writers that announce nothing know of it")
        self.state.joined(epoch, joined.position, may_lease=joined.may_lease)
        self.rows = joined.rows
        self.writes.joined(joined.rows, joined.history.server_identity)
        self._renew_at_s = NEVER

    def _renew(self) -> None:
        """Runs one statement. Its result counts from the time of sending, and only in a proven history."""
        sent_s, epoch = self._clock(), self.state.epoch
        if epoch is None:
            return
        found = members.read_with_history(self._database)
        self._renew_at_s = sent_s + self.length_s / RENEWALS_PER_LEASE
        self.rows = found.rows
        own = next((row for row in found.rows if row.member == self.member), None)
        if own is None or own.epoch != epoch or own.is_fenced or found.history is None:
            _log.warning("this member's row is fenced or missing: it joins again")
            self._note("the end of a write was not received, or the row was deleted: it joins again")
            self._lose(epoch)
            return
        self.writes.set_members(found.rows)
        if own.is_revoked or not own.lease_ms:
            self._continue_without_lease(epoch, sent_s)
            return
        if not self._memory.prove(found.history):
            self._note("the database's history is not proven to be that of memory")
            self._renew_at_s = sent_s + _RETRY_S
            return
        self.state.renewed(epoch, sent_s)

    def _note(self, reason: str) -> None:
        """A repeated reason is not logged again."""
        if not self.reasons or self.reasons[-1][1] != reason:
            self.reasons.append((self._database.clock.epoch_s(), reason))

    def _lose(self, epoch: int) -> None:
        self.state.lost(epoch)
        self._renew_at_s = NEVER

    def _continue_without_lease(self, epoch: int, now_s: float) -> None:
        """The lease was revoked: the server is a member that writes and asks for leases of others, until it joins again
        for another lease."""
        if self.state.unleased(epoch):
            is_again = now_s - self._lease_from_s < LONGEST_BACKOFF_S
            self._backoff_s = (
                min(max(2 * self._backoff_s, self.length_s), LONGEST_BACKOFF_S) if is_again else self.length_s
            )
            self._lease_from_s = now_s + self._backoff_s
            _log.warning(
                "other members did not hear from this one: it will not ask for a lease for %g s", self._backoff_s
            )
            self._note(
                f"a write received nothing from this member in time: it requests no lease for {self._backoff_s:g} s"
            )
        if now_s >= self._lease_from_s:
            self._lose(epoch)
        else:
            self._renew_at_s = min(self._renew_at_s, self._lease_from_s)

    def _forget(self) -> None:
        """Deletes rows of members that have had no lease for long: nobody else does."""
        now_s = self._clock()
        without = {(row.member, row.epoch) for row in self.rows if not row.lease_ms and row.member != self.member}
        self._without_lease = {one: self._without_lease.get(one, now_s) for one in without}
        for member, epoch in [one for one, since_s in self._without_lease.items() if now_s - since_s >= FORGET_S]:
            members.forget(self._database, member, epoch)
            _log.info("the row of member %s, which had no lease for %g s, is deleted", member, FORGET_S)
            del self._without_lease[member, epoch]

    def _fence_overdue(self) -> None:
        """Writes whose end was not reported: fences their writer, then reads the position."""
        max_wait_s = self.length_s * INTENT_MAX_WAIT_LEASES
        overdue = self.state.overdue_intents(max_wait_s)
        if not overdue:
            return
        # Read after the last message about these writes: no epoch in it is older than theirs.
        found = members.read_with_history(self._database)
        if found.history is None or not self._memory.prove(found.history):
            return
        self.rows = found.rows
        for intent in overdue:
            if intent not in self.state.overdue_intents(max_wait_s):
                continue  # a message arrived while the previous one was waited for
            row = next((row for row in self.rows if row.member == intent[0]), None)
            if row is not None:
                _log.warning("member %s did not report the end of its write: its writes are fenced", row.member)
                members.fence(self._database, row.member, row.epoch)
            self.state.fenced(intent, self._read_position())

    def _read_position(self) -> int:
        head = read_log_end(self._database)
        if not self._memory.prove(head.history):
            raise DatabaseUnavailableError("the log's end was read in a history that is not proven")
        return head.last_event_id

    def _catch_up(self, *, is_due: bool) -> None:
        """Memory that is read follows each write at once, so that the lease holds again before the next read. `is_due`:
        other memory follows, too."""
        needed = self.state.catch_up_to
        if needed is not None and (self.state.follows_reads() or is_due):
            self._memory.catch_up(needed, _CATCH_UP_S)
        self.state.moved()
        alarm = self.state.alarm_reason
        if alarm and not self._alarm_raised:
            self._alarm_raised = True
            self._note(alarm)
            _log.error("reads are answered by position check from now on (cache.exactness = check): %s", alarm)
