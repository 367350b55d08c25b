"""Takes event ids and writes rows of the log in one packet, which shortens the wait of other writers by a round trip.

From the lock on NOTIFICATION_SEQUENCE until COMMIT no other writer can log an event. With two packets and COMMIT this
time contains two waits for the client, with one packet only one. On PostgreSQL a common table expression takes the id.
MariaDB and MySQL get both statements together, and the second uses the id of the first; a compound statement of MariaDB
would do the same at twice the cost for both sides. SQLite has no round trips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Insert,
    Integer,
    bindparam,
    column,
    func,
    insert,
    literal,
    select,
    table,
    union_all,
    update,
)
from sqlalchemy.exc import IntegrityError

from hms_cache.store.engine.bulk_writes import insert_rows
from hms_cache.store.engine.direct_statements import Direct, DirectRows, Statement, execute_directly, row_count
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.features import read_features
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE

MAX_EVENTS: Final = 64
"""More events are written by the driver's bulk insert, which splits them into statements of a safe length."""

MAX_CHARACTERS: Final = 256 * 1024
"""Maximum size of all messages together: far below the limit of servers for a statement (max_allowed_packet, 16 MB)."""

_COLUMNS: Final = (
    *("NL_ID", "EVENT_TIME", "EVENT_TYPE", "CAT_NAME", "DB_NAME", "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT"),
)


def rows_of_events(events: Sequence[EventRow], row_ids: Sequence[int], time_s: int) -> list[dict[str, Any]]:
    """The rows of the log for these events, without EVENT_ID."""
    return [
        {
            "NL_ID": row_id,
            "EVENT_TIME": time_s,
            "EVENT_TYPE": event.event_type,
            "CAT_NAME": event.catalog,
            "DB_NAME": event.database,
            "TBL_NAME": event.table,
            "MESSAGE": event.message,
            "MESSAGE_FORMAT": event.message_format,
        }
        for event, row_id in zip(events, row_ids, strict=True)
    ]


def can_log_at_once(connection: Connection, messages: Sequence[str]) -> bool:
    """Whether `log_at_once` supports events with these messages."""
    if connection.dialect.name == "sqlite":
        return False
    return len(messages) <= MAX_EVENTS and sum(map(len, messages)) <= MAX_CHARACTERS


def log_at_once(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Takes one event id per row and writes the rows with them, in order; returns the first id.

    Returns None and writes nothing if NOTIFICATION_SEQUENCE has no row. `rows` have all columns except EVENT_ID.
    NOTIFICATION_SEQUENCE stays locked until the transaction ends.
    """
    if connection.dialect.name == "postgresql":
        given = {f"{name}_{number}": row[name] for number, row in enumerate(rows) for name in _COLUMNS}
        ids = connection.execute(_on_postgresql(len(rows)), {"count": len(rows), **given}).scalars().all()
        return min(ids) if ids else None
    allocated, *_ = execute_directly(
        connection,
        [(ALLOCATE_EVENT_IDS, {"count": len(rows)}), (_on_mysql(len(rows)), _numbered(rows))],
    )
    return allocated.last_id if allocated.rows else None


def commit_with(
    connection: Connection, statements: Sequence[Statement], rows: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Executes the statements, writes the rows (whose EVENT_IDs were taken in this transaction), and commits, all in
    one packet.

    On MySQL and MariaDB. Does not wait for locks. After an error, `has_refused_rows` tells what failed.
    `Connection.commit` still has to be called.
    """
    of_log = [(_ADD_WITH_IDS, rows)] if rows else []
    execute_directly(connection, [*statements, *of_log], commits=True)


def begin_event_ids(connection: Connection, next_event_id: int) -> None:
    """Inserts the row of NOTIFICATION_SEQUENCE, which is missing in databases of Hive 3.1 that have never logged an
    event. It stays locked until the transaction ends.

    :raises RetryableConflict: another server is doing the same.
    """
    values = read_features(connection).writable(NOTIFICATION_SEQUENCE, {"NNI_ID": 1, "NEXT_EVENT_ID": next_event_id})
    row = table(NOTIFICATION_SEQUENCE.name, *(column(name) for name in values))
    try:
        connection.execute(insert(row).values(values))
    except IntegrityError as error:
        raise RetryableConflict("another server began the event ids at the same moment") from error


def log_with_ids(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes any number of rows whose EVENT_IDs were taken in this transaction."""
    insert_rows(connection, NOTIFICATION_LOG, rows)


def has_refused_rows(connection: Connection) -> bool:
    """After `commit_with` has failed: whether the database has refused a statement or the rows.

    If so, COMMIT was not executed; otherwise the outcome is unknown.
    """
    return not connection.invalidated and bool(getattr(connection.connection.dbapi_connection, "has_refused", False))


@lru_cache(MAX_EVENTS)
def _on_postgresql(count: int) -> Insert:
    sequence, log = NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID, NOTIFICATION_LOG.c
    amount = bindparam("count", type_=sequence.type)
    allocated = (
        update(NOTIFICATION_SEQUENCE)
        .values({sequence: sequence + amount})
        .returning((sequence - amount).label("FIRST"))
        .cte("TAKEN")
    )
    rows = [
        select(
            allocated.c.FIRST + literal(number, Integer()),
            *(bindparam(f"{name}_{number}", type_=log[name].type) for name in _COLUMNS),
        )
        for number in range(count)
    ]
    source = rows[0] if count == 1 else union_all(*rows)
    return insert(NOTIFICATION_LOG).from_select(["EVENT_ID", *_COLUMNS], source).returning(log.EVENT_ID)


def _numbered(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if len(rows) == 1:
        return {f"{name}_0": value for name, value in rows[0].items()}
    return {f"{name}_{number}": value for number, row in enumerate(rows) for name, value in row.items()}


ALLOCATING_EVENT_IDS: Final = update(NOTIFICATION_SEQUENCE).values(
    {
        NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID: func.last_insert_id(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)
        + bindparam("count", type_=Integer())
    }
)
"""Locks the sequence. The acknowledgement's `last_id` is the first id. On MySQL and MariaDB."""

ALLOCATE_EVENT_IDS: Final = Direct(ALLOCATING_EVENT_IDS)
ALLOCATE_FOR_LAST_ROW: Final = Direct(ALLOCATING_EVENT_IDS.where(row_count() == 1))
"""Like `ALLOCATE_EVENT_IDS` if the previous statement found exactly one row; otherwise takes no ids."""


@lru_cache(MAX_EVENTS)
def _on_mysql(count: int) -> Direct:
    # Without a row of the sequence nothing is written.
    rows = [
        select(
            func.last_insert_id() + literal(number, Integer()),
            *(bindparam(f"{name}_{number}", type_=NOTIFICATION_LOG.c[name].type) for name in _COLUMNS),
        ).select_from(NOTIFICATION_SEQUENCE)
        for number in range(count)
    ]
    source = rows[0] if count == 1 else union_all(*rows)
    return Direct(insert(NOTIFICATION_LOG).from_select(["EVENT_ID", *_COLUMNS], source))


_ADD_WITH_IDS: Final = DirectRows(insert(NOTIFICATION_LOG), ["EVENT_ID", *_COLUMNS])
