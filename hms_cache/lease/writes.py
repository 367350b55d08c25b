"""What a write waits for: every other member has acknowledged it, or its lease is over.

Called by the writing thread. The lock of NOTIFICATION_SEQUENCE is held in `before_commit`, so one write at a time
gathers; a member that does not answer costs the writers one lease, once: after that it holds none, and asks for another
later each time (`Membership`). What it has under way it may commit all the same: only a write whose end somebody waited
for in vain is fenced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from hms_cache.lease.revocations import LOOK_AGAIN_S, Revocations
from hms_cache.lease.scopes import NOTHING, Scope, scope_of
from hms_cache.lease.state import DRIFT, LeaseState
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import Statement
from hms_cache.store.engine.errors import DatabaseUnavailable, RetryableConflict
from hms_cache.store.engine.read_plans import Question, ask_together
from hms_cache.store.members import members
from hms_cache.store.members.members import MemberRow

Message = tuple[str | int | None, ...]

PATIENCE_S: Final = 0.2
"""How long a member may take to acknowledge before it is revoked: a thousand times what it takes when all is well."""


class Links(Protocol):
    """The connections to the other members."""

    def send(self, member: str, message: Message) -> None:
        """Queue a message; it may be lost, but none overtakes another. Does not wait."""

    def meet(self, addresses: Mapping[str, str]) -> None:
        """These are the members there are, by name."""

    def renew(self, member: str) -> None:
        """Open another connection: on the one that is there nothing comes back."""


class Write:
    """One write transaction. `LeaseWrites.lock` guards all of it."""

    def __init__(self, of: LeaseWrites, key: int, epoch: int, scope: Scope) -> None:
        self.key = key
        self.epoch = epoch
        self.scope = scope
        self.told: set[str] = set()
        self.acks: dict[str, int | None] = {}
        self.is_open = True
        self._of = of

    @property
    def announcement(self) -> Message:
        """What members are told of it."""
        return ("writing", self.key, *sorted(self.scope or ()))

    def statements_under_lock(self, connection: Connection) -> Sequence[Statement]:
        """What `LeaseWrites.gather` reads."""
        return [question[:2] for question in self._of.questions(self, connection)]

    def before_commit(self, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """See `LeaseWrites.gather`."""
        self._of.gather(self, connection, answers)

    def committed(self, first: int, last: int) -> None:
        """In the database, with these events."""
        self._of.end(self, ("written", self.key, first, last))

    def abandoned(self) -> None:
        """Rolled back. Does nothing after another end."""
        self._of.end(self, ("abandoned", self.key))

    def outcome_unknown(self) -> None:
        """Nobody knows whether it is committed: until that is found out, no member answers by lease."""
        self._of.doubt(self)


class LeaseWrites:
    """The writes of this server. A `WriteGuard` of the database; `lock` guards the open writes and what was seen."""

    is_acknowledged = True

    def __init__(self, state: LeaseState, database: Database, links: Links) -> None:
        """`database`: of the membership's own, since the writing thread holds a connection already."""
        self.lock = threading.Condition()
        self.waits = 0
        """Writes that waited for the end of a lease."""
        self.acknowledgements = 0
        """Of members, for writes that were still open."""
        self._state = state
        self._database = self._guarded = database
        self._links = links
        self._last_key = 0
        self._last_event_id = 0
        """Of all writes that have ended."""
        self._open: dict[int, Write] = {}
        self._doubtful: list[Write] = []
        self._others: tuple[str, ...] = ()
        self._met: dict[str, str] | None = None
        """The other members' addresses as the links have them."""
        self._longest_s = state.length_s
        """The longest lease that was seen."""
        self.revocations = Revocations(database, state.now_s, self.lock)
        self._identity: str | None = None
        self._not_before_s = float("-inf")
        self._joined = threading.Condition()

    # ---- membership tells ----

    def joined(self, rows: Iterable[MemberRow], server_identity: str) -> None:
        """This server is a member among these, on this database server: where it changes, the leases of before are
        waited for, also by a server that has not written yet."""
        self.meet(rows)
        self._look_at_history(server_identity)
        with self._joined:
            self._joined.notify_all()

    def meet(self, rows: Iterable[MemberRow]) -> None:
        """These are the members as the database had them last."""
        rows = tuple(rows)
        others = {row.member: row.address for row in rows if row.member != self._state.member}
        with self.lock:
            self._others = tuple(others)
            self._longest_s = max([self._longest_s, *(row.lease_ms / 1000 for row in rows)])
            if others != self._met:
                self._met = others
                self._links.meet(others)

    def rows_are_gone(self) -> None:
        """This server's row was not there any more when it joined again, or was that of an earlier epoch: those of
        members that hold a lease may be gone as well, by a dump that was restored. All leases of before are waited
        for."""
        with self.lock:
            self._wait_for_leases_of_before()

    # ---- the writing thread ----

    def ready(self) -> None:
        """Waits until this server is a member; before any connection is taken, since joining needs one.

        Joining waits for the lock that all writes share, so this waits as long as a write may wait for that lock.

        :raises DatabaseUnavailable: it does not become one in time.
        """
        self.revocations.before_writing()
        if self._state.epoch is not None:
            return
        self._state.changed.set()
        patience_s = self._guarded.settings.statement_timeout_s
        with self._joined:
            if not self._joined.wait_for(lambda: self._state.epoch is not None, patience_s):
                raise DatabaseUnavailable("this server could not join the set whose members read by lease")

    def announces(self, events: Sequence[EventRow]) -> bool:
        """Whether members hear of a write with these events: they may change an answer."""
        return bool(events) and scope_of(events) != NOTHING

    def begin(self, events: Sequence[EventRow]) -> Write:
        """Announces a write with these events to all members known; nothing is waited for.

        :raises RetryableConflict: this server is no member any more.
        """
        epoch = self._state.epoch
        if epoch is None:
            raise RetryableConflict("this server is just joining the set")
        with self.lock:
            self._last_key += 1
            write = Write(self, self._last_key, epoch, scope_of(events))
            intent = (self._state.member, write.key)
            if self._state.writing(intent, write.scope) != epoch:
                self._state.abandoned(intent)
                raise RetryableConflict("this server's membership has just changed, or too many writes are open")
            self._open[write.key] = write
            self._announce(write, self._others)
        return write

    @property
    def member(self) -> str:
        """This server's name in the set."""
        return self._state.member

    def questions(self, write: Write, connection: Connection) -> list[Question]:
        """What `gather` wants to know."""
        return members.questions_under_lock(self._guarded, connection, self._state.member, write.epoch)

    def gather(self, write: Write, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """Under the lock of NOTIFICATION_SEQUENCE, in the write's own transaction; nothing but rows of the log is
        written after it, with COMMIT.

        The own row is locked and must not be fenced: who was stopped cannot commit on old acknowledgements. Then the
        members are read. Each that may hold a lease acknowledges, or is revoked, and its lease waited for.

        `answers`: to `questions`, if they were asked under the lock.

        :raises RetryableConflict: this server was fenced, or (SQLite) a member is to be revoked.
        """
        if answers is None:
            answers = ask_together(connection, self.questions(write, connection))
        found = members.under_lock(self._guarded, connection, answers)
        if not found.is_own:
            self._state.lost(write.epoch)
            raise RetryableConflict("the end of a write of this server was not heard, and its membership has ended")
        rows = [row for row in found.rows if row.member != self._state.member]
        self.meet(rows)
        self._look_at_history(found.history.server_identity)
        with self.lock:
            self.revocations.look_at(rows)
            self._announce(write, [row.member for row in rows])
            self.lock.wait_for(lambda: not self._missing(write, rows), PATIENCE_S)
            missing = self._missing(write, rows)
            self.waits += bool(missing)
            for row in missing:
                self._links.renew(row.member)
        while missing:
            self.revocations.revoke(missing, is_alone=self._guarded.is_sqlite)
            with self.lock:
                self.lock.wait(LOOK_AGAIN_S)
                missing = self._missing(write, rows)
        while (left_s := self._not_before_s - self._state.now_s()) > 0:
            with self.lock:
                self.lock.wait(left_s)
        with self.lock:
            out = [(row.member, row.epoch) for row in rows if row.lease_ms and self.revocations.is_out(row)]
        if out:
            members.end_leases(connection, out)

    def guard(self, database: Database) -> None:
        """Guards all writes of this database from now on."""
        self._guarded = database
        database.write_guard = self

    def _look_at_history(self, identity: str) -> None:
        """On another server than before a row may be missing that was there when a lease began: all leases of then are
        waited for."""
        with self.lock:
            if self._identity is not None and identity != self._identity:
                self._wait_for_leases_of_before()
            self._identity = identity

    def _wait_for_leases_of_before(self) -> None:
        self._not_before_s = self._state.now_s() + self._longest_s * (1 + 2 * DRIFT)

    def _missing(self, write: Write, rows: Iterable[MemberRow]) -> list[MemberRow]:
        """Under the lock: members that may answer by lease, for all that is known."""
        return [
            row
            for row in rows
            if row.lease_ms and write.acks.get(row.member) != row.epoch and not self.revocations.is_out(row)
        ]

    # ---- messages ----

    def _announce(self, write: Write, to: Iterable[str]) -> None:
        """Under the lock, so that no announcement comes after the end."""
        for member in to:
            if member not in write.told:
                write.told.add(member)
                self._links.send(member, write.announcement)

    def acknowledged(self, member: str, key: int, epoch: int | None) -> None:
        """A member answers no read of what is written by lease until the write's end."""
        with self.lock:
            write = self._open.get(key)
            if write is not None:
                self.acknowledgements += 1
                write.acks[member] = epoch
                self.lock.notify_all()

    def remind(self) -> None:
        """Tells the members again of writes that are still under way."""
        with self.lock:
            for write in self._open.values():
                self._state.writing((self._state.member, write.key), write.scope)
                for member in write.told:
                    self._links.send(member, write.announcement)

    def end(self, write: Write, message: Message) -> None:
        """The write is over, in whichever way. Memory hears of it before anybody else."""
        with self.lock:
            if not write.is_open:
                return
            write.is_open = False
            self._open.pop(write.key, None)
            intent = (self._state.member, write.key)
            if message[0] == "written":
                _, _, first, last = message
                assert isinstance(first, int) and isinstance(last, int)
                self._last_event_id = max(self._last_event_id, last)
                self._state.written(intent, first, last)
            else:
                self._state.abandoned(intent)
            for member in write.told:
                self._links.send(member, message)

    def doubt(self, write: Write) -> None:
        """The outcome of its COMMIT is unknown."""
        with self.lock:
            if write.is_open:
                self._doubtful.append(write)
        self._state.changed.set()

    def settle(self, read_position: Callable[[], int]) -> None:
        """Finds out about writes of unknown outcome: the own row is fenced, which waits for a transaction that still
        has it locked, and then the log's end is read.

        :raises DatabaseUnavailable: not yet.
        """
        while True:
            with self.lock:
                if not self._doubtful:
                    return
                write = self._doubtful[0]
            members.fence(self._database, self._state.member, write.epoch)
            position = read_position()
            self._state.lost(write.epoch)
            self._state.tended((self._state.member, write.key), position)
            with self.lock:
                self._last_event_id = max(self._last_event_id, position)
                self._doubtful.remove(write)
                write.is_open = False
                self._open.pop(write.key, None)
                for member in write.told:
                    self._links.send(member, ("settled", write.key, position))

    def over(self) -> tuple[int, int]:
        """The lowest number of a write that is under way, or will be, and an event that is not below any of the ended
        ones."""
        with self.lock:
            lowest = min(self._open, default=self._last_key + 1)
            return lowest, self._last_event_id
