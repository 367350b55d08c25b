"""Ending the leases of members that do not answer: revoke, then wait as long as one could last.

Used by the thread that writes, under the lock of NOTIFICATION_SEQUENCE. Nothing here needs the members' messages.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from hms_cache.lease.state import DRIFT
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.members import members
from hms_cache.store.members.members import MemberRow

_log = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 0.05
"""How often a wait for the end of a lease looks whether it is over."""

MAX_SEEN: Final = 10_000
"""Revocations that are remembered: a member is revoked a few times an hour, for it waits longer after each."""


class Revocations:
    """The rows that this server has seen revoked, and since when by its own clock. `lock` guards them."""

    def __init__(self, database: Database, now_s: Callable[[], float], lock: threading.Condition) -> None:
        """`database`: revokes on connections that the writing thread does not hold."""
        self.count = 0
        """Members revoked by this server."""
        self._database = database
        self._now_s = now_s
        self._lock = lock
        self._seen: dict[tuple[str, int], float] = {}
        self._first: list[MemberRow] = []
        """On SQLite, where nobody else writes while a write waits: to be revoked before the next attempt."""

    def before_writing(self) -> None:
        """With no connection taken: revokes what an earlier attempt found on SQLite, and waits for the leases."""
        while True:
            with self._lock:
                if not self._first:
                    return
                row = self._first.pop()
            self._revoke(row)
            with self._lock:
                while not self.is_out(row):
                    self._lock.wait(LOOK_AGAIN_S)

    def revoke(self, rows: Iterable[MemberRow], *, is_alone: bool) -> None:
        """Revokes those that are not yet, and counts from when that was certain.

        `is_alone`: the caller's transaction lets nobody else write (SQLite): it gives way, and they are revoked before
        its next attempt.

        :raises RetryableConflict: so.
        """
        for row in rows:
            with self._lock:
                if (row.member, row.epoch) in self._seen:
                    continue
                if is_alone:
                    self._first.append(row)
            if is_alone:
                raise RetryableConflict("a member that does not answer is revoked first")
            self._revoke(row)

    def look_at(self, rows: Iterable[MemberRow]) -> None:
        """Under the lock: these are the rows as they are now, under the lock that all writers share. What was seen of
        one that is not revoked counts no more: the database has gone back to before the revocation (P7), and the member
        may not have heard of it."""
        for row in rows:
            if not row.is_revoked:
                self._seen.pop((row.member, row.epoch), None)

    def is_out(self, row: MemberRow) -> bool:
        """Under the lock: its lease is over, since it was seen revoked a whole lease ago by this server's clock.

        That a row is revoked says nothing about its lease.
        """
        seen_s = self._seen.get((row.member, row.epoch))
        return seen_s is not None and self._now_s() - seen_s >= row.lease_ms / 1000 * (1 + 2 * DRIFT)

    def _revoke(self, row: MemberRow) -> None:
        members.revoke(self._database, row.member, row.epoch)
        _log.warning("member %s at %s does not answer: its lease is revoked", row.member, row.address)
        now_s = self._now_s()
        with self._lock:
            self.count += 1
            while len(self._seen) >= MAX_SEEN:
                del self._seen[next(iter(self._seen))]
            self._seen.setdefault((row.member, row.epoch), now_s)
