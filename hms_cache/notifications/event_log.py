"""What the poller needs of the notification log, and how a place in it is proven.

Event ids are gapless and in commit order, because every writer holds the NOTIFICATION_SEQUENCE row until it commits
(Hive since HIVE-16886; ours too). An id alone proves nothing, though: a database restored from a copy hands out the
same ids to other events. So a position carries a digest of the row it stands on, and the identity of the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from hms_cache.notifications.events import NotificationRow
from hms_cache.values import frozen


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One session on one database server, compared as an object: a new connection, and a connection that a proxy moved
    to another server, bring a new one.

    Ids that two reads found in one history count the same events: a server loses commits only in a crash, a restart or
    a promotion, which end its sessions.
    """

    server_identity: str
    """Names the server, its timeline and the database; another one means that nothing read before is known to hold (a
    failover may have lost commits)."""

    session: str = ""
    """What the server calls the session."""

    stale_reason: str | None = None
    """Why what is read there may miss a commit that was acknowledged elsewhere; None: it cannot."""


UNKNOWN_HISTORY = History("")
"""Of a log that does not tell."""


class LogHead(NamedTuple):
    """The end of the log. ``last_event_id`` is NEXT_EVENT_ID - 1: 0 for a log that never had an event."""

    last_event_id: int
    history: History


MAX_RECOGNIZED: Final = 1024 * 1024
"""Characters of a message up to which all of them tell it from others."""

RECOGNIZED_END: Final = 32 * 1024
"""Characters at each end of a longer one that do, with its length."""

_LENGTH_OF_MARK: Final = range(2 + len(str(MAX_RECOGNIZED)), 2 + 12)
"""Of what stands between the ends of a shortened one."""


class LogPage(NamedTuple):
    """Rows by ascending event id. ``exhausted``: the log held no further row when this one was read.

    ``history``: where it was read, if that is known to be another session than that of the head read before.
    """

    rows: Sequence[NotificationRow]
    exhausted: bool
    history: History | None = None


class EventLog(Protocol):
    """Reads the log; each call sees the latest commit. Errors are whatever the database raises."""

    def head(self) -> LogHead:
        """The end of the log, read in a fresh statement."""
        ...

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        """At most ``limit`` rows with larger ids; fewer if they are large, but at least two if the log holds two.

        ``known_event_id``: of an event whose row is only to be recognized (`digest_of`); a long message in it may be
        `shortened`.
        """
        ...


class FollowedLog(EventLog, Protocol):
    """A log whose connections can be opened anew."""

    def read(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> tuple[LogHead, LogPage]:
        """`head`, then `fetch`: the page shows all that the head counts, if it is complete."""
        ...

    def renew(self) -> None:
        """Let go of the connections: they lead to another server than others do, or to one that is no primary."""
        ...

    def keep_connections(self, *, wanted: bool) -> None:
        """Whether connections, those of calls too, are used again. Not while what answers is no primary: its address
        may lead to another server at any moment."""
        ...


@frozen
class LogPosition:
    """A place in a log: everything up to ``event_id`` is applied.

    ``row_digest`` is that of the rows with this id (more than one only in logs of Hive releases without the unique
    index on EVENT_ID), ``None`` if the log had no such row when the place was taken: it was empty or cleaned up to
    there. A stored position is proven again before it is trusted.
    """

    event_id: int
    row_digest: str | None
    server_identity: str


def shortened(length: int, beginning: str, end: str) -> str:
    """What a message of more than `MAX_RECOGNIZED` characters is recognized by; `beginning` and `end`: of it, as long
    as `RECOGNIZED_END` at least.

    Whoever follows the log reads the row that it stands on again each time: of one that holds a table with a parameter
    of 100 MB this would be all that it does, on every server of the database, until the next event.
    """
    return f"{beginning[:RECOGNIZED_END]}…{length}…{end[-RECOGNIZED_END:]}"


def is_long(message: str | None) -> bool:
    """Whether to recognize a row with this message, whole or `shortened`, is much to read."""
    text = message or ""
    is_cut = text[RECOGNIZED_END : RECOGNIZED_END + 1] == text[-RECOGNIZED_END - 1 : -RECOGNIZED_END] == "…"
    return len(text) > MAX_RECOGNIZED or (is_cut and len(text) - 2 * RECOGNIZED_END in _LENGTH_OF_MARK)


def _recognized(message: str | None) -> str | None:
    if message is None or len(message) <= MAX_RECOGNIZED:
        return message
    return shortened(len(message), message[:RECOGNIZED_END], message[-RECOGNIZED_END:])


def digest_of(rows: Sequence[NotificationRow]) -> str | None:
    """A digest over all columns that the rows are read with, of a long message over its ends; ``None`` for no row."""
    if not rows:
        return None
    digest = hashlib.blake2b(digest_size=16)
    told = [row._replace(message=_recognized(row.message)) for row in rows]
    for row in sorted(told, key=lambda row: (row.event_type, row.message or "")):
        digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


class LogDiscontinuity(Exception):
    """The log does not continue what was applied (P7); the text says why."""


def rows_after(place: LogPosition, head: LogHead, page: LogPage) -> list[NotificationRow]:
    """The rows of the page that follow the place.

    ``page`` begins with the row that the place stands on and was read after ``head``, so it must hold, or be followed
    by, all that the head counts. Raises ``LogDiscontinuity`` unless both continue the same log.
    """
    identity = head.history.server_identity
    if place.server_identity and identity != place.server_identity:
        raise LogDiscontinuity(f"the database server is another one: {identity}, not {place.server_identity}")
    if page.history is not None and page.history.server_identity != identity:
        raise LogDiscontinuity(
            f"two database servers answer: {identity} where the log ends, {page.history.server_identity} what is in it"
        )
    if head.last_event_id < place.event_id:
        raise LogDiscontinuity(
            f"the log ends at event {head.last_event_id}, before the last one applied, {place.event_id}"
        )
    here = [row for row in page.rows if row.event_id == place.event_id]
    if place.event_id > 0 and digest_of(here) != place.row_digest:
        what = "is no longer in the log" if not here else "is not the one that was applied"
        raise LogDiscontinuity(f"event {place.event_id} {what}")
    rows = [row for row in page.rows if row.event_id > place.event_id]
    expected = place.event_id + 1
    for row in rows:
        # Releases without the unique index could hand out an id twice (HIVE-16886); both are applied.
        if row.event_id not in (expected, expected - 1):
            raise LogDiscontinuity(f"events {expected} to {row.event_id - 1} are missing from the log")
        expected = row.event_id + 1
    if page.exhausted and expected <= head.last_event_id:
        raise LogDiscontinuity(f"events {expected} to {head.last_event_id} are missing from the log")
    return rows
