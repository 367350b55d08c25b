"""Ends the leases of members that do not answer: revokes them, then waits as long as a lease can last.

Used by the writing thread, under the lock of NOTIFICATION_SEQUENCE. Nothing here needs messages of members.
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

RECHECK_INTERVAL_S: Final = 0.05
"""Interval at which a wait for the end of a lease checks whether the lease has ended."""

MAX_SEEN: Final = 10_000
"""Revocations that are remembered. A member is revoked a few times an hour at most, since it waits longer each time."""


class Revocations:
    """Rows that this server has seen revoked, and since when by its own clock. `lock` guards them."""

    def __init__(self, database: Database, now_s: Callable[[], float], lock: threading.Condition) -> None:
        """`database`: revokes on connections other than that of the writing thread."""
        self.count = 0
        """Number of members revoked by this server."""
        self._database = database
        self._now_s = now_s
        self._lock = lock
        self._seen: dict[tuple[str, int], float] = {}
        self._first: list[MemberRow] = []
        """On SQLite, where other writes are blocked while a write waits: members to revoke before the next attempt."""

    def before_writing(self) -> None:
        """Called without a connection: revokes what an earlier attempt found on SQLite, and waits for the leases."""
        while True:
            with self._lock:
                if not self._first:
                    return
                row = self._first.pop()
            self._revoke(row)
            with self._lock:
                while not self.is_out(row):
                    self._lock.wait(RECHECK_INTERVAL_S)

    def revoke(self, rows: Iterable[MemberRow], *, is_alone: bool) -> None:
        """Revokes those that are not revoked yet. Their leases count from when that was certain.

        `is_alone`: the caller's transaction blocks all other writes (SQLite). It is rolled back, and they are revoked
        before its next attempt. :raises RetryableConflict: in this case.
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

    def reconcile(self, rows: Iterable[MemberRow]) -> None:
        """Under the lock: these are the present rows, read under the lock that all writers share. If a row is not
        revoked, an earlier revocation of it is forgotten: the database was restored to a state before the revocation
        (P7), of which the member may not know."""
        for row in rows:
            if not row.is_revoked:
                self._seen.pop((row.member, row.epoch), None)

    def is_out(self, row: MemberRow) -> bool:
        """Under the lock: whether its lease has ended, because it was seen revoked at least one lease ago by this
        server's clock. That a row is revoked does not mean that its lease has ended."""
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
