"""Reads and trims NOTIFICATION_LOG, for the poller, for clients, and for retention."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    CursorResult,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
)
from sqlalchemy.exc import IntegrityError

from hms_cache.clock import Clock, SystemClock, stored_s
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.notifications.event_log import MAX_RECOGNIZED, RECOGNIZED_END, LogHead, LogPage, shortened
from hms_cache.notifications.events import NotificationRow
from hms_cache.store.engine.database import Database, features_of, read_log_end, session_of
from hms_cache.store.engine.dialects import CharacterCount
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.log_sessions import head_plan
from hms_cache.store.engine.read_plans import PlannedQuery, execute_plan, fetch, side_by_side
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.schema import AUX_TABLE, NOTIFICATION_LOG, NOTIFICATION_SEQUENCE, PARTITION_EVENTS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    NotificationEventRequest,
    NotificationEventResponse,
    NotificationEventsCountRequest,
    NotificationEventsCountResponse,
)

_LOG = NOTIFICATION_LOG.c

#: Order of `NotificationRow`.
_ROW_COLUMNS = (
    _LOG.EVENT_ID,
    _LOG.EVENT_TIME,
    _LOG.EVENT_TYPE,
    _LOG.CAT_NAME,
    _LOG.DB_NAME,
    _LOG.TBL_NAME,
    _LOG.MESSAGE,
    _LOG.MESSAGE_FORMAT,
)

#: Messages have some KiB, sometimes MiB: this many rows are read before their lengths are known.
_FIRST_ROWS = 64

#: No message up to this length is too long to be read together with others: at most as many as fill a page are read at
#: once.
_LONG_MESSAGE = 64 * 1024

#: Factor by which a message may exceed its share of the page and still be read together with others.
_MAX_ABOVE_AVERAGE = 2

#: Maximum amount of text in one batch of the poller.
_MAX_PAGE_BYTES = 64 * 1024 * 1024

#: Thrift's default limit for a message (TConfiguration): a client could not read more.
_MAX_RESPONSE_BYTES = 100 * 1024 * 1024


class NotificationLog:
    """The log as the poller (`hms_cache.notifications.event_log.EventLog`) and clients read it. Thread-safe.

    :param max_response: maximum number of events in one reply to a client (``metastore.max.event.response``).
    """

    def __init__(self, database: Database, *, max_response: int = 1_000_000) -> None:
        self._database = database
        self._max_response = max_response

    # ---- for the poller ----

    def head(self) -> LogHead:
        """The log's end and its history, read by one statement that sees the latest commit.

        :raises DatabaseUnavailable: the database does not answer.
        """
        return read_log_end(self._database)

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        """At most ``limit`` rows after this event, by id; if they exceed 64 MiB of text, fewer, but at least two.

        ``known_event_id``: as in `EventLog`.

        :raises DatabaseUnavailable: the database does not answer.
        """
        with self._database.checking() as connection:
            page = _read_page(connection, [_LOG.EVENT_ID > after_event_id], limit, _MAX_PAGE_BYTES, known_event_id)
            return page._replace(history=session_of(self._database, connection))

    def read(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> tuple[LogHead, LogPage]:
        """`head`, then `fetch`, on one connection. One round trip if the database takes statements together and the
        first statement returns the whole page.

        :raises DatabaseUnavailable: the database does not answer.
        """
        if self._database.is_sqlite:
            return self.head(), self.fetch(after_event_id, limit, known_event_id)
        with self._database.checking() as connection:
            first = _first_page_query(after_event_id, limit)
            head, rows = execute_plan(
                connection, side_by_side(head_plan(connection, self._database.history_text), fetch(first))
            )
            after = [_LOG.EVENT_ID > after_event_id]
            page = _read_page(connection, after, limit, _MAX_PAGE_BYTES, known_event_id, rows)
            return head, page._replace(history=head.history)

    def renew(self) -> None:
        """Drops all connections to the database."""
        self._database.renew()

    def keep_connections(self, *, enabled: bool) -> None:
        """Whether connections to the database are used again."""
        self._database.keeps_connections = enabled

    # ---- for clients ----

    def current_event_id(self) -> int:
        """Id of the latest event, 0 before the first (``get_current_notificationEventId``).

        As all of a client's reads, on a connection for calls: position checks have their own.
        """
        statement = select(func.max(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID))
        return run_read(self._database, lambda connection: (connection.execute(statement).scalar() or 1) - 1)

    def get_next_notification(
        self, request: NotificationEventRequest, known_event_id: int | None = None
    ) -> NotificationEventResponse:
        """Events after ``lastEvent``, by id (``ObjectStore.getNextNotification``, Hive 4.0; filters: HIVE-27499).

        Not the types of ``eventTypeSkipList``, only those of ``eventTypeList``; of one catalog, database, some tables.
        A filter leaves out events whose column is null; an empty name is a name, which nothing has. At most
        ``maxEvents`` if positive, and never more than the server's limit nor, but for the first, than 100 MiB of
        messages. ``known_event_id``: as in `EventLog`; of no client.
        """
        conditions: list[ColumnElement[bool]] = [_LOG.EVENT_ID > request.lastEvent]
        if request.eventTypeSkipList:
            conditions.append(_LOG.EVENT_TYPE.not_in(request.eventTypeSkipList))
        if request.eventTypeList:
            conditions.append(_LOG.EVENT_TYPE.in_(request.eventTypeList))
        if request.catName is not None:
            conditions.append(_LOG.CAT_NAME == normalize_catalog(request.catName))
        if request.dbName is not None:
            conditions.append(_LOG.DB_NAME == normalize_identifier(request.dbName))
        if request.tableNames:
            conditions.append(_LOG.TBL_NAME.in_([normalize_identifier(name) for name in request.tableNames]))
        requested = request.maxEvents or 0
        limit = requested if 0 < requested < self._max_response else self._max_response
        if known_event_id is not None:
            limit = max(limit, 2)  # otherwise a client that reads on from this event would make no progress
        page = run_read(
            self._database,
            lambda connection: _read_page(connection, conditions, limit, _MAX_RESPONSE_BYTES, known_event_id),
        )
        return NotificationEventResponse(events=[row.sent() for row in page.rows])

    def get_notification_events_count(self, request: NotificationEventsCountRequest) -> NotificationEventsCountResponse:
        """The number of events after ``fromEventId``, up to ``toEventId`` and at most ``limit`` if given.

        Of one database (``*``: all) and catalog. Events without a database (transactions) count, too
        (``ObjectStore.getNotificationEventsCount``, Hive 4.0).
        """
        conditions: list[ColumnElement[bool]] = [_LOG.EVENT_ID > request.fromEventId]
        if request.toEventId is not None:
            conditions.append(_LOG.EVENT_ID <= request.toEventId)
        if request.dbName != "*":
            named = _LOG.DB_NAME == normalize_identifier(request.dbName or "")
            conditions.append(or_(named, _LOG.DB_NAME.is_(None)))
        catalog = normalize_catalog(DEFAULT_CATALOG if request.catName is None else request.catName)
        conditions.append(or_(_LOG.CAT_NAME == catalog, _LOG.CAT_NAME.is_(None)))
        if request.tableNames:
            conditions.append(_LOG.TBL_NAME.in_([normalize_identifier(name) for name in request.tableNames]))
        limit = request.limit
        if limit is not None and limit <= 0:
            return NotificationEventsCountResponse(eventsCount=limit)
        statement = select(func.count()).select_from(NOTIFICATION_LOG).where(*conditions)
        if limit is not None:
            # The database need not count millions of further events.
            some = select(_LOG.EVENT_ID).where(*conditions).limit(limit)
            statement = select(func.count()).select_from(some.subquery("some_events"))
        count = run_read(self._database, lambda connection: connection.execute(statement).scalar())
        return NotificationEventsCountResponse(eventsCount=count or 0)


def _read_page(
    connection: Connection,
    conditions: Sequence[ColumnElement[bool]],
    limit: int,
    max_bytes: int,
    known_event_id: int | None,
    first: Sequence[Any] | None = None,
) -> LogPage:
    """Rows by event id: a few with the first statement, since their size is unknown, then as many as fit. `first`: the
    result of that statement, if it was executed already. `known_event_id`: as in `EventLog`.

    A statement leaves out messages that are much longer than the previous ones; these are read one by one. Otherwise a
    few events of a table with a parameter of 90 MB would fill the memory of every server that follows the log.
    """
    rows: list[NotificationRow] = []
    held = 0
    after: list[ColumnElement[bool]] = []
    is_long = False
    while True:
        room = max_bytes - held
        requested = _FIRST_ROWS if not rows else max(1, room * len(rows) // max(1, held))
        requested = 1 if is_long else min(requested, limit - len(rows), max(1, max_bytes // _LONG_MESSAGE))
        longest = None if is_long else _longest_of(requested, room)
        if first is not None:
            read, first = first, None
        else:
            read = connection.execute(_rows_statement([*conditions, *after], longest).limit(requested)).all()
        whole = _whole_rows(read, longest, known_event_id)
        more = [NotificationRow._make(row[:-2]) for row in whole]
        for at, row in enumerate(whole):
            if longest is not None and (row.LENGTH or 0) > longest:
                more[at] = more[at]._replace(message=_recognized_message(connection, row.NL_ID))
        rows.extend(more)
        held += sum(len(row.message or "") + 100 for row in more)
        if len(read) < requested and len(whole) == len(read):
            return LogPage(rows, exhausted=True)
        if len(rows) >= limit or (held >= max_bytes and len(rows) > 1):
            return LogPage(rows, exhausted=False)
        is_long = len(whole) < len(read)
        if whole:
            # By both columns: without Hive 4's unique index, the log may contain an id twice.
            last_id, last_key = rows[-1].event_id, whole[-1].NL_ID
            after = [or_(_LOG.EVENT_ID > last_id, and_(_LOG.EVENT_ID == last_id, _LOG.NL_ID > last_key))]


def _longest_of(requested: int, room: int) -> int:
    """Maximum length of a message to read it together with `requested` others, if there is space for `room` bytes."""
    return max(_LONG_MESSAGE, _MAX_ABOVE_AVERAGE * room // requested)


def _first_page_query(after_event_id: int, limit: int) -> PlannedQuery:
    """The first statement of `_read_page` for the poller."""
    requested = min(_FIRST_ROWS, limit, max(1, _MAX_PAGE_BYTES // _LONG_MESSAGE))
    return PlannedQuery(
        _FIRST_ROWS_QUERY,
        {"after": after_event_id, "limit": requested, "longest": _longest_of(requested, _MAX_PAGE_BYTES)},
    )


def _whole_rows(read: Sequence[Any], longest: int | None, known_event_id: int | None) -> list[Any]:
    """The rows before the first one whose message was left out but is needed."""
    return list(
        takewhile(lambda row: longest is None or (row.LENGTH or 0) <= longest or row.EVENT_ID == known_event_id, read)
    )


def _recognized_message(connection: Connection, key: int) -> str | None:
    """The message of the row with this `NL_ID`; for a long message, the parts by which it is recognized."""
    row = connection.execute(_RECOGNIZED, {"key": key}).first()
    if row is None or row.CHARACTERS is None or row.CHARACTERS <= MAX_RECOGNIZED:
        return row.MESSAGE if row is not None else None
    return shortened(row.CHARACTERS, row.BEGINNING, row.END)


def _rows_statement(conditions: Sequence[ColumnElement[bool]], longest: int | BindParameter[int] | None) -> Select[Any]:
    """Selects rows by event id, with their `NL_ID` and the length of their message. A message longer than `longest` is
    null."""
    length = func.length(_LOG.MESSAGE)
    message = _LOG.MESSAGE if longest is None else case((length <= longest, _LOG.MESSAGE), else_=None).label("MESSAGE")
    columns = [message if column is _LOG.MESSAGE else column for column in _ROW_COLUMNS]
    return select(*columns, _LOG.NL_ID, length.label("LENGTH")).where(*conditions).order_by(_LOG.EVENT_ID, _LOG.NL_ID)


_CHARACTERS = CharacterCount(_LOG.MESSAGE)
_RECOGNIZED = select(
    case((_CHARACTERS <= MAX_RECOGNIZED, _LOG.MESSAGE), else_=None).label("MESSAGE"),
    func.substr(_LOG.MESSAGE, 1, RECOGNIZED_END).label("BEGINNING"),
    func.substr(_LOG.MESSAGE, _CHARACTERS - RECOGNIZED_END + 1, RECOGNIZED_END).label("END"),
    _CHARACTERS.label("CHARACTERS"),
).where(_LOG.NL_ID == bindparam("key", type_=BigInteger))

_FIRST_ROWS_QUERY = DirectQuery(
    _rows_statement(
        [_LOG.EVENT_ID > bindparam("after", type_=BigInteger)], bindparam("longest", type_=BigInteger)
    ).limit(bindparam("limit", type_=Integer))
)


#: Key of the row in AUX_TABLE that is locked to let one server at a time clean. MT_KEY2 is part of the key and has no
#: meaning here.
_CLEANER = "NotificationLogCleaner"


class EventCleaner:
    """Deletes old events, the oldest first, so that the rest has no gap. Thread-safe.

    Hive's own cleaner deletes by time only: if the servers' clocks differ, it can make a gap. A time in the future only
    shows that a clock was wrong: such an event counts as being as old as those after it.
    """

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock: Clock = clock or SystemClock()

    def clean_events(self, ttl_s: float, batch: int) -> int:
        """Deletes events that are older than ``ttl_s`` and have no younger event before them; returns their number.

        The newest event is never deleted: readers of the log recognize their position by it. Each transaction deletes
        at most ``batch`` events, and waits while another server cleans.

        :raises DatabaseUnavailable: the database became unavailable; events deleted before stay deleted.
        """
        now_s = stored_s(self._clock.epoch_s())
        run_write(self._database, _ensure_cleaner_row)
        deleted = 0
        while True:
            count = run_write(
                self._database, lambda transaction: _clean_batch(transaction, int(now_s - ttl_s), now_s, batch)
            )
            deleted += count
            if count < batch:
                return deleted

    def clean_markers(self, retention_s: float) -> int:
        """Deletes markers on partitions that are older than this; returns their number. Raises DatabaseUnavailable."""
        before_ms = (self._clock.epoch_s() - retention_s) * 1000
        old = delete(PARTITION_EVENTS).where(before_ms >= PARTITION_EVENTS.c.EVENT_TIME)
        return run_write(self._database, lambda transaction: transaction.connection.execute(old).rowcount)


def _ensure_cleaner_row(transaction: WriteTransaction) -> None:
    connection = transaction.connection
    if _lock_cleaner_row(connection):
        return
    savepoint = connection.begin_nested()
    try:
        connection.execute(insert(AUX_TABLE).values(MT_KEY1=_CLEANER, MT_KEY2=0))
    except IntegrityError:
        savepoint.rollback()  # another server has inserted it
    else:
        savepoint.commit()


def _lock_cleaner_row(connection: Connection) -> bool:
    """Locks the row; returns whether it exists.

    In a schema of Hive 3.1 on PostgreSQL the table has another name. There two servers that clean at once delete the
    same events, or one waits for the other.
    """
    if not features_of(connection).has(AUX_TABLE):
        return True
    statement = select(AUX_TABLE.c.MT_KEY1).where(AUX_TABLE.c.MT_KEY1 == _CLEANER)
    return connection.execute(statement.with_for_update()).first() is not None


def _clean_batch(transaction: WriteTransaction, before_s: int, now_s: int, batch: int) -> int:
    connection = transaction.connection
    _lock_cleaner_row(connection)
    # One row more than is deleted: the newest event stays.
    oldest = connection.execute(select(_LOG.EVENT_ID, _LOG.EVENT_TIME).order_by(_LOG.EVENT_ID).limit(batch + 1)).all()
    last: int | None = None
    for event_id, event_time_s in oldest[:-1]:
        if event_time_s > now_s:
            continue
        if event_time_s > before_s:
            break
        last = event_id
    else:
        if (
            len(oldest) > batch
            and oldest[-2].EVENT_TIME > now_s
            and _is_next_event_old(connection, oldest[-2].EVENT_ID, before_s, now_s)
        ):
            last = oldest[-2].EVENT_ID
    if last is None:
        return 0
    result: CursorResult[Any] = connection.execute(delete(NOTIFICATION_LOG).where(_LOG.EVENT_ID <= last))
    return result.rowcount


def _is_next_event_old(connection: Connection, event_id: int, before_s: int, now_s: int) -> bool:
    """Whether the next event whose time is not in the future is old."""
    following = select(_LOG.EVENT_TIME).where(_LOG.EVENT_ID > event_id, _LOG.EVENT_TIME <= now_s)
    found = connection.execute(following.order_by(_LOG.EVENT_ID).limit(1)).scalar()
    return found is not None and found <= before_s
