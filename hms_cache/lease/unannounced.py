"""Writes of a server that does not take part in leases: correct beside members, but slow while there are any.

Before its COMMIT, under the lock of NOTIFICATION_SEQUENCE, such a server revokes all leases and waits for their end. It
needs neither the secret nor connections to members.

So that this costs nothing if no server reads by lease, the table of members is read rarely: if a read found no member,
this server may write for `PRESENCE_VALID_S` without reading it again. That is also a lease, a lease to write without a
check, and members respect it: the first member of a set holds no lease before its row has existed for that time, and it
then takes the lock once more (`Membership`). A write that read before the row existed either has the lock before that,
or reads again under the lock. However long a read takes, it never prevents a write from committing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from hms_cache.lease.clock import lease_clock_s
from hms_cache.lease.revocations import RECHECK_INTERVAL_S, Revocations
from hms_cache.lease.scopes import NOTHING, scope_of
from hms_cache.lease.state import DRIFT
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import Statement
from hms_cache.store.members import members

_log = logging.getLogger(__name__)

PRESENCE_VALID_S: Final = 2.0
"""How long a read that found no member is valid. A writing server reads twice as often: one small statement a second.
The first member of a set waits this long for its first lease."""

_PRESENCE_INTERVAL_S: Final = PRESENCE_VALID_S / 2
_MAX_WAIT_S: Final = 30.0


class UnannouncedWrites:
    """The `WriteGuard` of a server with `cache.exactness = check`. `_lock` guards everything except the revocations."""

    is_acknowledged = False

    def __init__(
        self, database: Database, now_s: Callable[[], float] = lease_clock_s, *, is_set_to_check: bool = True
    ) -> None:
        """`is_set_to_check`: False for a server that reads by lease itself, and has not joined yet."""
        self.waits = 0
        """Number of writes that waited for the end of a lease."""
        self._lock = threading.Condition()
        self.revocations = Revocations(database, now_s, self._lock)
        self._database = database
        self._now_s = now_s
        self._checked_s = float("-inf")
        self._is_checking = False
        self._has_table = False
        self._has_members = False
        self._is_set_to_check = is_set_to_check

    @property
    def has_members(self) -> bool:
        """Whether the last read found servers that read by lease."""
        return self._has_members

    def ready(self) -> None:
        """Reads whether there are members if the last read is old. One thread does it, others wait for it.

        :raises DatabaseUnavailable: the database does not answer.
        """
        self.revocations.before_writing()
        with self._lock:
            self._lock.wait_for(lambda: not self._is_checking or self._is_recent(), _MAX_WAIT_S)
            if self._is_recent():
                return
            self._is_checking = True
        sent_s = self._now_s()
        try:
            presence = members.read_presence(self._database, is_table_known=self._has_table)
            with self._lock:
                if presence.has_members and not self._has_members and self._is_set_to_check:
                    _log.error(
                        "servers of this database read by lease (cache.exactness = lease), this one does not: each of"
                        " its writes ends their leases and waits for them. Give all servers the same setting."
                    )
                self._has_table, self._has_members = presence.has_table, presence.has_members
                # A read that may show an older state does not count: it is repeated under the lock.
                self._checked_s = sent_s if presence.history.stale_reason is None else float("-inf")
        finally:
            with self._lock:
                self._is_checking = False
                self._lock.notify_all()

    def announces(self, events: Sequence[EventRow]) -> bool:
        """Whether leases have to end for a write with these events, because they may change an answer."""
        return bool(events) and scope_of(events) != NOTHING

    def begin(self, events: Sequence[EventRow]) -> UnannouncedWrite:
        """Nothing is announced."""
        return UnannouncedWrite(self)

    def before_commit(self, connection: Connection) -> None:
        """See the module.

        :raises RetryableConflict: (SQLite) a lease is to be revoked.
        """
        with self._lock:
            is_checked = not self._has_members and self._now_s() - self._checked_s < PRESENCE_VALID_S * (1 - 2 * DRIFT)
        if is_checked:
            return
        # A long write has outlasted its read, and reads again: a member that joins later needs the lock that this write
        # holds.
        rows = [row for row in members.read_if_exists(connection) if row.lease_ms]
        with self._lock:
            self.revocations.reconcile(rows)
            missing = [row for row in rows if not self.revocations.is_out(row)]
            self.waits += bool(missing)
        self.revocations.revoke(missing, is_alone=self._database.is_sqlite)
        with self._lock:
            while not all(self.revocations.is_out(row) for row in rows):
                self._lock.wait(RECHECK_INTERVAL_S)
        if rows:
            members.end_leases(connection, [(row.member, row.epoch) for row in rows])

    def _is_recent(self) -> bool:
        return self._now_s() - self._checked_s < _PRESENCE_INTERVAL_S


class UnannouncedWrite:
    """One write transaction."""

    def __init__(self, of: UnannouncedWrites) -> None:
        self._of = of

    def statements_under_lock(self, connection: Connection) -> Sequence[Statement]:
        """None: usually nothing is known."""
        return ()

    def before_commit(self, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """See `UnannouncedWrites.before_commit`."""
        self._of.before_commit(connection)

    def committed(self, first: int, last: int) -> None:
        """No member needs to be informed: none holds a lease."""

    def abandoned(self) -> None:
        """The same."""

    def outcome_unknown(self) -> None:
        """The same: a COMMIT with unknown outcome keeps the lock, which joining members need."""
