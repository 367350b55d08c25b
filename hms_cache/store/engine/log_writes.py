"""Event ids taken and rows of the log written in one packet, so that others wait for one round trip less.

From the moment when NOTIFICATION_SEQUENCE is locked until COMMIT nobody else can log an event. With two packets and
COMMIT the client is waited for twice in that time, with one packet once. PostgreSQL takes the id in a common table
expression. MariaDB and MySQL are sent both statements together, of which the second takes the id from the first; a
compound statement of MariaDB does the same and costs both sides twice as much. SQLite has no round trips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Insert, Integer, bindparam, insert, literal, select, union_all, update

from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.mysql_driver import SeveralStatements
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE

MOST_EVENTS: Final = 64
"""More are written by the driver's own way to insert many rows, which cuts them into statements of a safe length."""

MOST_CHARACTERS: Final = 256 * 1024
"""Of all messages together: far below what servers take as one statement (max_allowed_packet, 16 MB)."""

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
    """Whether `log_at_once` may be called for events with these messages."""
    if connection.dialect.name == "sqlite":
        return False
    return len(messages) <= MOST_EVENTS and sum(map(len, messages)) <= MOST_CHARACTERS


def log_at_once(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Take as many event ids as there are rows, write the rows with them, in order; the first id.

    None, and nothing is written, if NOTIFICATION_SEQUENCE has no row. `rows` have all columns but EVENT_ID.
    NOTIFICATION_SEQUENCE stays locked until the transaction ends.
    """
    if connection.dialect.name == "postgresql":
        given = {f"{name}_{number}": row[name] for number, row in enumerate(rows) for name in _COLUMNS}
        ids = connection.execute(_on_postgresql(len(rows)), {"count": len(rows), **given}).scalars().all()
        return min(ids) if ids else None
    values = tuple(row[name] for row in rows for name in _COLUMNS)
    taken = connection.exec_driver_sql(_on_mysql(len(rows)), (len(rows), *values))
    return int(taken.lastrowid) if taken.rowcount else None


@lru_cache(MOST_EVENTS)
def _on_postgresql(count: int) -> Insert:
    sequence, log = NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID, NOTIFICATION_LOG.c
    amount = bindparam("count", type_=sequence.type)
    taken = (
        update(NOTIFICATION_SEQUENCE)
        .values({sequence: sequence + amount})
        .returning((sequence - amount).label("FIRST"))
        .cte("TAKEN")
    )
    rows = [
        select(
            taken.c.FIRST + literal(number, Integer()),
            *(bindparam(f"{name}_{number}", type_=log[name].type) for name in _COLUMNS),
        )
        for number in range(count)
    ]
    source = rows[0] if count == 1 else union_all(*rows)
    return insert(NOTIFICATION_LOG).from_select(["EVENT_ID", *_COLUMNS], source).returning(log.EVENT_ID)


@lru_cache(MOST_EVENTS)
def _on_mysql(count: int) -> str:
    names = ", ".join(f"`{name}`" for name in ("EVENT_ID", *_COLUMNS))
    values = ", ".join(["%s"] * len(_COLUMNS))
    # Without a row of the sequence nothing is written.
    rows = " UNION ALL ".join(
        f"SELECT LAST_INSERT_ID() + {number}, {values} FROM `NOTIFICATION_SEQUENCE`" for number in range(count)
    )
    return SeveralStatements(
        "UPDATE `NOTIFICATION_SEQUENCE` SET `NEXT_EVENT_ID` = LAST_INSERT_ID(`NEXT_EVENT_ID`) + %s; "
        f"INSERT INTO `NOTIFICATION_LOG` ({names}) {rows}"
    )
