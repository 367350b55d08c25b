"""Requests that are answered by their bytes, on the event loop, without being decoded.

If a request with the same bytes (without the sequence id) was answered before, from one entry that has not changed
since, it gets the same encoded reply with its own sequence id. Freshness is decided as for every read: with
`max_staleness` 0, the request waits for a position check that is sent after its arrival and shared by all waiting
requests.

If memory cannot answer, the request takes the ordinary path, as if nothing had been tried. Everything here runs on the
event loop, so the lists need no lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from hms_cache.cache.answers import Answer, Reply
from hms_cache.cache.freshness import Freshness
from hms_cache.cache.position_check import CheckResult
from hms_cache.cache.reads.reading import Reading
from hms_cache.limited_log import LimitedLog
from hms_cache.notifications.event_log import LogHead

_limited_log = LimitedLog(logging.getLogger(__name__))

METHODS = frozenset(
    {
        "get_aggr_stats_for",
        "get_all_databases",
        "get_all_table_constraints",
        "get_all_tables",
        "get_database",
        "get_database_req",
        "get_databases",
        "get_function",
        "get_functions",
        "get_partition",
        "get_partition_by_name",
        "get_partition_names",
        "get_partition_names_ps",
        "get_partition_names_ps_req",
        "get_partition_req",
        "get_partition_with_auth",
        "get_partitions",
        "get_partitions_by_filter",
        "get_partitions_by_filter_req",
        "get_partitions_by_names",
        "get_partitions_ps",
        "get_partitions_ps_with_auth",
        "get_partitions_req",
        "get_partitions_statistics_req",
        "get_schema",
        "get_fields",
        "get_table",
        "get_table_column_statistics",
        "get_table_req",
        "get_table_statistics_req",
        "get_tables",
        "get_tables_by_type",
        "fetch_partition_names_req",
    }
)
"""Methods whose reply depends only on the bytes of the request and on the catalog: not on the user, and not on what the
connection has set (`setMetaConf` changes the meaning of expressions)."""


GATHER_FROM_REQUESTS = 4
"""A position check is delayed for expected requests if this many would share it. A check costs as much processor time,
here and in the database, as about seven answers from memory; for fewer requests it is better to send it at once."""


WAITS: Reply = b""
"""Returned instead of a reply: the request waits for a position check."""


class Waiting(Protocol):
    """A connection whose request waits for a position check."""

    def send_hot(self, reply: Reply) -> None:
        """Sends the reply and goes on with what the client sent meanwhile."""

    def dispatch_normally(self) -> None:
        """Decodes and dispatches the request."""

    def abort(self) -> None:
        """Closes at once."""


class PositionSource(Protocol):
    """Reads the position for the loop, one check at a time."""

    gather_s: float
    """How long it is worth delaying a check so that one more request can share it."""

    def check(self, answered: Callable[[LogHead | None], None]) -> None:
        """Sends a check. `answered` is called on the loop with the end of the log, or with None if it could not be
        read."""

    def close(self) -> None:
        """Sends no more checks."""


class HotPath:
    """See the module."""

    def __init__(self, reading: Reading, source: PositionSource, loop: asyncio.AbstractEventLoop) -> None:
        self._reading = reading
        self._freshness: Freshness = reading.freshness
        self._find = reading.cache.answers.find
        self._source = source
        self._loop = loop
        self._waiting: list[tuple[Waiting, Answer, bytes]] = []
        self._in_check: list[tuple[Waiting, Answer, bytes]] = []
        self._sent_s = 0.0
        self.is_checking = False
        """Whether a check is under way or delayed."""
        self._expected = 0
        """Requests that may share the next check: those just answered, whose clients often send the next request at
        once, and those that wait."""
        self._gathered = 0
        self._held_until_s = 0.0
        self.checks = 0
        self.requests = 0
        self.hits: defaultdict[str, int] = defaultdict(int)
        """Requests answered here, by method."""

    def answer(self, connection: Waiting, key: bytes, sequence: bytes) -> Reply | None:
        """The reply to a request (`MessageReader.peek`), if it can be sent at once.

        WAITS: the connection will be called later. None: no reply is kept, or this server does not answer from memory.
        """
        found = self._find(key)
        if found is None or not self._reading.modes.enabled:
            return None
        # In this order, since an event that is applied meanwhile clears `current` before the position moves.
        freshness = self._freshness
        is_fresh = (freshness.lease is not None and freshness.holds_lease(found.table)) or (
            freshness.max_staleness_s > 0 and freshness.is_recent()
        )
        if not is_fresh and found.is_trusted and self._reading.modes.trust_write_ids:
            is_fresh = freshness.may_trust()
        if is_fresh and found.current:
            found.uses += 1
            self.hits[found.method] += 1
            return found.render(sequence)
        self._waiting.append((connection, found, sequence))
        if not self.is_checking:
            self.is_checking = True
            self._start_gathering()
        return WAITS

    def _start_gathering(self) -> None:
        self._gathered = 0
        self._gather()

    def _gather(self) -> None:
        """Sends the check, or checks again in the next turn of the loop while expected requests keep arriving.

        Each turn serves the sockets. If an expected request does not come, the others lose `gather_s` once: the next
        check expects as many requests as this one served.
        """
        count = len(self._waiting)
        if GATHER_FROM_REQUESTS <= self._expected and count < self._expected:
            now_s = self._freshness.now_s()
            if count > self._gathered:
                self._gathered, self._held_until_s = count, now_s + self._source.gather_s
            if now_s < self._held_until_s:
                self._loop.call_soon(self._gather)
                return
        self._send_check()

    def _send_check(self) -> None:
        """Swaps the lists before the check is sent: later requests share the next one."""
        self._in_check, self._waiting = self._waiting, []
        self.checks += 1
        self._sent_s = self._freshness.now_s()
        self._source.check(self._answered)

    def _answered(self, head: LogHead | None) -> None:
        served, self._in_check = self._in_check, []
        self.requests += len(served)
        sent_s = self._sent_s  # before the next check is sent: it proves what this answer cannot
        self._expected = len(served) + len(self._waiting)
        if self._waiting:
            self._start_gathering()
        else:
            self.is_checking = False
        is_current = head is not None and self._freshness.accept(CheckResult(head[0], sent_s, head[1]))
        hits = self.hits
        for connection, found, sequence in served:
            try:
                if is_current and found.current:
                    found.uses += 1
                    hits[found.method] += 1
                    connection.send_hot(found.render(sequence))
                else:
                    connection.dispatch_normally()
            except Exception as error:
                # A defect, which must not leave the other requests of this check without an answer.
                _limited_log.warning("a connection is closed: its request could not be answered: %r", error)
                connection.abort()
