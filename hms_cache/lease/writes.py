"""The acknowledgements that a write waits for: each other member has acknowledged it, or that member's lease has ended.

Called by the writing thread. `before_commit` runs under the lock of NOTIFICATION_SEQUENCE, so one write at a time
collects acknowledgements. A member that does not answer delays the writers by one lease, once: afterwards it holds
none, and each further time it waits longer before it requests another one (`Membership`). Its own running writes may
still commit. A writer is fenced only if another member waited in vain for the end of its write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from hms_cache.lease.revocations import RECHECK_INTERVAL_S, Revocations
from hms_cache.lease.scopes import NOTHING, Scope, scope_of
from hms_cache.lease.state import DRIFT, LeaseState
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import Statement
from hms_cache.store.engine.errors import DatabaseUnavailable, RetryableConflict
from hms_cache.store.engine.read_plans import PlannedQuery, fetch_together
from hms_cache.store.members import members
from hms_cache.store.members.members import MemberRow

Message = tuple[str | int | None, ...]

MAX_WAIT_S: Final = 0.2
"""Time that a member has for an acknowledgement before it is revoked: a thousand times what it takes normally."""


class Links(Protocol):
    """The connections to the other members."""

    def send(self, member: str, message: Message) -> None:
        """Queues a message. It may be lost, but messages keep their order. Does not wait."""

    def connect_to(self, addresses: Mapping[str, str]) -> None:
        """Sets the members, by name."""

    def renew(self, member: str) -> None:
        """Opens another connection: nothing comes back on the present one."""


class Write:
    """One write transaction. `LeaseWrites.lock` guards all of it."""

    def __init__(self, of: LeaseWrites, key: int, epoch: int, scope: Scope) -> None:
        self.key = key
        self.epoch = epoch
        self.scope = scope
        self.notified: set[str] = set()
        self.acks: dict[str, int | None] = {}
        self.is_open = True
        self._of = of

    @property
    def announcement(self) -> Message:
        """The message that announces it to members."""
        return ("writing", self.key, *sorted(self.scope or ()))

    def statements_under_lock(self, connection: Connection) -> Sequence[Statement]:
        """What `LeaseWrites.gather` reads."""
        return [planned[:2] for planned in self._of.queries_under_lock(self, connection)]

    def before_commit(self, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """See `LeaseWrites.gather`."""
        self._of.gather(self, connection, answers)

    def committed(self, first: int, last: int) -> None:
        """The write is committed, with these events."""
        self._of.end(self, ("written", self.key, first, last))

    def abandoned(self) -> None:
        """The write was rolled back. Has no effect after another end."""
        self._of.end(self, ("abandoned", self.key))

    def outcome_unknown(self) -> None:
        """It is unknown whether the write is committed. Until this is found out, no member answers by lease."""
        self._of.mark_unknown(self)


class LeaseWrites:
    """The writes of this server. A `WriteGuard` of the database; `lock` guards the open writes and what was seen."""

    is_acknowledged = True

    def __init__(self, state: LeaseState, database: Database, links: Links) -> None:
        """`database`: that of the membership, since the writing thread already holds a connection."""
        self.lock = threading.Condition()
        self.waits = 0
        """Number of writes that waited for the end of a lease."""
        self.acknowledgements = 0
        """Acknowledgements of members, for writes that were still open."""
        self._state = state
        self._database = self._guarded = database
        self._links = links
        self._last_key = 0
        self._last_event_id = 0
        """The last event of all writes that have ended."""
        self._open: dict[int, Write] = {}
        self._doubtful: list[Write] = []
        self._others: tuple[str, ...] = ()
        self._members: dict[str, str] | None = None
        """The other members' addresses, as passed to the links."""
        self._longest_s = state.length_s
        """The longest lease seen so far."""
        self.revocations = Revocations(database, state.now_s, self.lock)
        self._identity: str | None = None
        self._not_before_s = float("-inf")
        self._joined = threading.Condition()

    # ---- called by the membership ----

    def joined(self, rows: Iterable[MemberRow], server_identity: str) -> None:
        """This server has joined these members, on this database server. If the server has changed, leases from before
        are waited for, even if this server has not written yet."""
        self.set_members(rows)
        self._check_history(server_identity)
        with self._joined:
            self._joined.notify_all()

    def set_members(self, rows: Iterable[MemberRow]) -> None:
        """Sets the members as last read from the database."""
        rows = tuple(rows)
        others = {row.member: row.address for row in rows if row.member != self._state.member}
        with self.lock:
            self._others = tuple(others)
            self._longest_s = max([self._longest_s, *(row.lease_ms / 1000 for row in rows)])
            if others != self._members:
                self._members = others
                self._links.connect_to(others)

    def rows_are_gone(self) -> None:
        """When this server joined again, its row was missing, or was that of an earlier epoch. So rows of members that
        hold a lease may be missing as well, because a dump was restored. All leases from before are waited for."""
        with self.lock:
            self._wait_for_leases_of_before()

    # ---- the writing thread ----

    def ready(self) -> None:
        """Waits until this server is a member; called before a connection is taken, since joining needs one.

        Joining waits for the lock that all writes share, so this waits as long as a write may wait for that lock.
        :raises DatabaseUnavailable: it did not become a member in time.
        """
        self.revocations.before_writing()
        if self._state.epoch is not None:
            return
        self._state.changed.set()
        max_wait_s = self._guarded.settings.statement_timeout_s
        with self._joined:
            if not self._joined.wait_for(lambda: self._state.epoch is not None, max_wait_s):
                raise DatabaseUnavailable("this server could not join the set whose members read by lease")

    def announces(self, events: Sequence[EventRow]) -> bool:
        """Whether members are informed of a write with these events, because they may change an answer."""
        return bool(events) and scope_of(events) != NOTHING

    def begin(self, events: Sequence[EventRow]) -> Write:
        """Announces a write with these events to all known members, without waiting.

        :raises RetryableConflict: this server is no longer a member.
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

    def queries_under_lock(self, write: Write, connection: Connection) -> list[PlannedQuery]:
        """The statements whose answers `gather` needs."""
        return members.queries_under_lock(self._guarded, connection, self._state.member, write.epoch)

    def gather(self, write: Write, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """Called under the lock of NOTIFICATION_SEQUENCE, in the write's own transaction; afterwards, only rows of the
        log are written, together with COMMIT.

        This server's row is locked and must not be fenced: a server that was stopped must not commit with old
        acknowledgements. Then the members are read. Each member that may hold a lease acknowledges the write, or it is
        revoked and the end of its lease is waited for. `answers`: those to `queries_under_lock`, if they were sent
        under the lock.

        :raises RetryableConflict: this server was fenced, or (SQLite) a member has to be revoked.
        """
        if answers is None:
            answers = fetch_together(connection, self.queries_under_lock(write, connection))
        found = members.under_lock(self._guarded, connection, answers)
        if not found.is_own:
            self._state.lost(write.epoch)
            raise RetryableConflict("the end of a write of this server was not received, and its membership has ended")
        rows = [row for row in found.rows if row.member != self._state.member]
        self.set_members(rows)
        self._check_history(found.history.server_identity)
        with self.lock:
            self.revocations.reconcile(rows)
            self._announce(write, [row.member for row in rows])
            self.lock.wait_for(lambda: not self._missing(write, rows), MAX_WAIT_S)
            missing = self._missing(write, rows)
            self.waits += bool(missing)
            for row in missing:
                self._links.renew(row.member)
        while missing:
            self.revocations.revoke(missing, is_alone=self._guarded.is_sqlite)
            with self.lock:
                self.lock.wait(RECHECK_INTERVAL_S)
                missing = self._missing(write, rows)
        while (remaining_s := self._not_before_s - self._state.now_s()) > 0:
            with self.lock:
                self.lock.wait(remaining_s)
        with self.lock:
            out = [(row.member, row.epoch) for row in rows if row.lease_ms and self.revocations.is_out(row)]
        if out:
            members.end_leases(connection, out)

    def guard(self, database: Database) -> None:
        """Guards all writes of this database from now on."""
        self._guarded = database
        database.write_guard = self

    def _check_history(self, identity: str) -> None:
        """On another server than before, a row that existed when a lease began may be missing: all leases from before
        are waited for."""
        with self.lock:
            if self._identity is not None and identity != self._identity:
                self._wait_for_leases_of_before()
            self._identity = identity

    def _wait_for_leases_of_before(self) -> None:
        self._not_before_s = self._state.now_s() + self._longest_s * (1 + 2 * DRIFT)

    def _missing(self, write: Write, rows: Iterable[MemberRow]) -> list[MemberRow]:
        """Under the lock: members that may be answering by lease, as far as known."""
        return [
            row
            for row in rows
            if row.lease_ms and write.acks.get(row.member) != row.epoch and not self.revocations.is_out(row)
        ]

    # ---- messages ----

    def _announce(self, write: Write, to: Iterable[str]) -> None:
        """Under the lock, so that an announcement is never sent after the end."""
        for member in to:
            if member not in write.notified:
                write.notified.add(member)
                self._links.send(member, write.announcement)

    def acknowledged(self, member: str, key: int, epoch: int | None) -> None:
        """A member will not answer reads of the written objects by lease until the end of the write."""
        with self.lock:
            write = self._open.get(key)
            if write is not None:
                self.acknowledgements += 1
                write.acks[member] = epoch
                self.lock.notify_all()

    def announce_again(self) -> None:
        """Announces writes that are still under way to the members again."""
        with self.lock:
            for write in self._open.values():
                self._state.writing((self._state.member, write.key), write.scope)
                for member in write.notified:
                    self._links.send(member, write.announcement)

    def end(self, write: Write, message: Message) -> None:
        """The write has ended in one way or another. This server's own memory is informed first."""
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
            for member in write.notified:
                self._links.send(member, message)

    def mark_unknown(self, write: Write) -> None:
        """The outcome of its COMMIT is unknown."""
        with self.lock:
            if write.is_open:
                self._doubtful.append(write)
        self._state.changed.set()

    def resolve_unknown(self, read_position: Callable[[], int]) -> None:
        """Finds out about writes of unknown outcome: fences this server's row, which waits for a transaction that still
        has it locked, and then reads the log's end.

        :raises DatabaseUnavailable: not possible yet.
        """
        while True:
            with self.lock:
                if not self._doubtful:
                    return
                write = self._doubtful[0]
            members.fence(self._database, self._state.member, write.epoch)
            position = read_position()
            self._state.lost(write.epoch)
            self._state.fenced((self._state.member, write.key), position)
            with self.lock:
                self._last_event_id = max(self._last_event_id, position)
                self._doubtful.remove(write)
                write.is_open = False
                self._open.pop(write.key, None)
                for member in write.notified:
                    self._links.send(member, ("settled", write.key, position))

    def over(self) -> tuple[int, int]:
        """The lowest number of a write that is or will be under way, and an event that is not below those of the ended
        writes."""
        with self.lock:
            lowest = min(self._open, default=self._last_key + 1)
            return lowest, self._last_event_id
