"""Compares the catalog according to the notification log with the catalog in its tables.

Both are read from the database directly, in one snapshot, without the servers' code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Row, create_engine, text

#: Names of partitions by (database, table).
Catalog = dict[tuple[str, str], set[str]]


@contextmanager
def snapshot(url: str) -> Iterator[Connection]:
    """A connection whose reads are of one moment."""
    engine = create_engine(url)
    if engine.dialect.name != "sqlite":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            yield connection
    finally:
        engine.dispose()


def catalog_by_tables(connection: Connection) -> Catalog:
    """What is in the catalog."""
    rows = connection.execute(
        text(
            'SELECT d."NAME", t."TBL_NAME", p."PART_NAME" FROM "DBS" d JOIN "TBLS" t ON t."DB_ID" = d."DB_ID"'
            ' LEFT JOIN "PARTITIONS" p ON p."TBL_ID" = t."TBL_ID"'.replace(*_quotes(connection))
        )
    )
    found: Catalog = {}
    for database, table, partition in rows:
        found.setdefault((database, table), set()).update({partition} - {None})
    return found


def catalog_by_events(connection: Connection) -> Catalog:
    """The catalog after the whole log is replayed."""
    rows = connection.execute(
        text(
            'SELECT "EVENT_ID", "EVENT_TYPE", "DB_NAME", "TBL_NAME", "MESSAGE" FROM "NOTIFICATION_LOG"'
            ' ORDER BY "EVENT_ID"'.replace(*_quotes(connection))
        )
    ).all()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1)), "event ids have holes"
    found: Catalog = {}
    for row in rows:
        _replay(found, row)
    return found


def last_event_id(connection: Connection) -> int:
    """The last assigned id."""
    statement = 'SELECT "NEXT_EVENT_ID" FROM "NOTIFICATION_SEQUENCE"'.replace(*_quotes(connection))
    return int(connection.execute(text(statement)).scalar_one()) - 1


def _quotes(connection: Connection) -> tuple[str, str]:
    return ('"', "`") if connection.dialect.name in ("mysql", "mariadb") else ('"', '"')


def _replay(found: Catalog, row: Row[Any]) -> None:
    _, kind, database, table, message = row
    content = json.loads(message)
    if kind == "CREATE_TABLE":
        assert (database, table) not in found, f"created twice: {row}"
        found[database, table] = set()
    elif kind == "DROP_TABLE":
        del found[database, table]
    elif kind == "ALTER_TABLE":
        before, after = (json.loads(content[f"tableObj{when}Json"])["1"]["str"] for when in ("Before", "After"))
        partitions = found.pop((database, before))
        assert (database, after) not in found, f"renamed to a name in use: {row}"
        found[database, after] = partitions
    elif kind == "ADD_PARTITION":
        names = _partition_names(content)
        assert not names & found[database, table], f"added twice: {row}"
        found[database, table] |= names
    elif kind == "DROP_PARTITION":
        names = _partition_names(content)
        assert names <= found[database, table], f"dropped what was not there: {row}"
        found[database, table] -= names


def _partition_names(content: dict[str, Any]) -> set[str]:
    return {"/".join(f"{key}={value}" for key, value in values.items()) for values in content["partitions"]}
