"""Requests answered from their bytes, on the event loop, before any decoding.

A request whose bytes (without the sequence id) were answered before, from one entry that has not changed since, gets
the same encoded reply with its own sequence id. Freshness is decided as for every read: at `max_staleness` 0 the
request waits for a position check that is sent after it arrived, and shares it with all that wait. Whenever memory
cannot answer, the request takes the ordinary way, from its bytes, as if nothing had been tried.

Everything here runs on the event loop; the lists need no lock.
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
"""Methods whose reply depends on the request's bytes and the catalog alone: not on who asks, nor on what the connection
has set (`setMetaConf` changes what expressions mean)."""


GATHER_FROM_REQUESTS = 4
"""A question is held back for requests that are expected when that many share it. A question costs as much CPU, here
and in the database, as some seven answers from memory; fewer requests are better asked for at once."""


WAITS: Reply = b""
"""In the place of a reply: the request waits for a position check."""


class Waiting(Protocol):
    """A connection whose request waits for a position check."""

    def send_hot(self, reply: Reply) -> None:
        """Sends the reply and goes on with what the client sent meanwhile."""

    def take_ordinary_way(self) -> None:
        """Decodes and dispatches the request."""

    def abort(self) -> None:
        """Closes at once."""


class PositionSource(Protocol):
    """Reads the position for the loop; one question at a time."""

    gather_s: float
    """How long a question is worth holding back for one request more to share it."""

    def ask(self, answered: Callable[[LogHead | None], None]) -> None:
        """Sends one question; `answered` is called on the loop with the end of the log, or None when there is none."""

    def close(self) -> None:
        """Asks no more."""


class HotPath:
    """See the module."""

    def __init__(self, reading: Reading, source: PositionSource, loop: asyncio.AbstractEventLoop) -> None:
        self._reading = reading
        self._freshness: Freshness = reading.freshness
        self._find = reading.cache.answers.find
        self._source = source
        self._loop = loop
        self._waiting: list[tuple[Waiting, Answer, bytes]] = []
        self._asked: list[tuple[Waiting, Answer, bytes]] = []
        self._sent_s = 0.0
        self.is_asking = False
        """Whether a question is on its way, or held back."""
        self._expected = 0
        """Requests that may share the next question: those just answered, whose clients tend to ask again at once, and
        those that wait."""
        self._gathered = 0
        self._held_until_s = 0.0
        self.checks = 0
        self.requests = 0
        self.hits: defaultdict[str, int] = defaultdict(int)
        """Requests answered here, by method."""

    def answer(self, connection: Waiting, key: bytes, sequence: bytes) -> Reply | None:
        """The reply to a request (`MessageReader.peek`), if it can be sent at once.

        WAITS: the connection will be told. None: no answer is held, or this server does not answer from memory.
        """
        found = self._find(key)
        if found is None or not self._reading.modes.enabled:
            return None
        # In this order: an event that is applied meanwhile clears `current` before the position moves.
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
        if not self.is_asking:
            self.is_asking = True
            self._start_gathering()
        return WAITS

    def _start_gathering(self) -> None:
        self._gathered = 0
        self._gather()

    def _gather(self) -> None:
        """Asks, or looks again at the next turn of the loop while requests that are expected keep coming.

        Every turn serves the sockets. Who is expected and does not come costs the others `gather_s` once: the next
        question expects as many as this one served.
        """
        count = len(self._waiting)
        if GATHER_FROM_REQUESTS <= self._expected and count < self._expected:
            now_s = self._freshness.now_s()
            if count > self._gathered:
                self._gathered, self._held_until_s = count, now_s + self._source.gather_s
            if now_s < self._held_until_s:
                self._loop.call_soon(self._gather)
                return
        self._ask()

    def _ask(self) -> None:
        """Swaps the list before the question is sent: who comes later joins the next one."""
        self._asked, self._waiting = self._waiting, []
        self.checks += 1
        self._sent_s = self._freshness.now_s()
        self._source.ask(self._answered)

    def _answered(self, head: LogHead | None) -> None:
        served, self._asked = self._asked, []
        self.requests += len(served)
        sent_s = self._sent_s  # before the next question is sent: it proves what this answer cannot
        self._expected = len(served) + len(self._waiting)
        if self._waiting:
            self._start_gathering()
        else:
            self.is_asking = False
        is_current = head is not None and self._freshness.accept(CheckResult(head[0], sent_s, head[1]))
        hits = self.hits
        for connection, found, sequence in served:
            try:
                if is_current and found.current:
                    found.uses += 1
                    hits[found.method] += 1
                    connection.send_hot(found.render(sequence))
                else:
                    connection.take_ordinary_way()
            except Exception as error:
                # A defect, which must not leave those that share the question without an answer for ever.
                _limited_log.warning("a connection is closed: its request could not be answered: %r", error)
                connection.abort()
