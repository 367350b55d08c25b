"""Changes Hive's rows and appends the event in one transaction, like a Java metastore, without the server's code.

The messages come from the message builder, which has separate tests against Hive's reader.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from hms_cache.notifications.events import EventRow
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.consistency.history import VERSION, Place

_EVENT_IDS = "org.apache.hadoop.hive.metastore.model.MNotificationLog"


class RawWriter:
    """One connection per transaction; for one thread."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._is_sqlite = parsed.get_backend_name() == "sqlite"
        if not self._is_sqlite:
            parsed = parsed.set(drivername="mysql+pymysql")
        self._engine = create_engine(parsed, poolclass=NullPool)
        self._locks = "" if self._is_sqlite else " FOR UPDATE"
        self._messages = MessageBuilder()
        if self._is_sqlite:
            event.listen(self._engine, "connect", _no_own_transactions)
            event.listen(self._engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))

    def close(self) -> None:
        self._engine.dispose()

    def alter(self, place: Place, label: str) -> bool:
        """Sets a parameter of a table. Returns False if the table does not exist."""

        def change(connection: Connection, table_id: int, table: ttypes.Table) -> EventRow:
            after = _copy(table)
            _set(connection, "TABLE_PARAMS", "TBL_ID", table_id, label)
            after.parameters = {**table.parameters, VERSION: label}
            return self._messages.build_alter_table(table, after)

        return self._change(place, change)

    def rename(self, place: Place, new_name: str, label: str) -> bool:
        """Renames a table within its database. Returns False if it does not exist, or the new name is taken."""

        def change(connection: Connection, table_id: int, table: ttypes.Table) -> EventRow | None:
            if self._find(connection, Place(place.database, new_name)) is not None:
                return None
            after = _copy(table)
            _set(connection, "TABLE_PARAMS", "TBL_ID", table_id, label)
            _execute(connection, "UPDATE TBLS SET TBL_NAME = :name WHERE TBL_ID = :id", name=new_name, id=table_id)
            after.tableName, after.parameters = new_name, {**table.parameters, VERSION: label}
            return self._messages.build_alter_table(table, after)

        return self._change(place, change)

    def alter_partition(self, place: Place, value: str, label: str) -> bool:
        """Sets a parameter of a partition. Returns False if the partition does not exist."""

        def change(connection: Connection, table_id: int, table: ttypes.Table) -> EventRow | None:
            part_id = connection.execute(
                text(f"SELECT PART_ID FROM PARTITIONS WHERE TBL_ID = :id AND PART_NAME = :name{self._locks}"),
                {"id": table_id, "name": f"p={value}"},
            ).scalar()
            if part_id is None:
                return None
            _set(connection, "PARTITION_PARAMS", "PART_ID", part_id, label)
            before, after = (
                ttypes.Partition(
                    values=[value],
                    dbName=place.database,
                    tableName=place.table,
                    catName="hive",
                    parameters={VERSION: version},
                )
                for version in ("", label)
            )
            return next(self._messages.build_alter_partition_each(table, [(before, after)]))

        return self._change(place, change)

    def _change(self, place: Place, change: Callable[[Connection, int, ttypes.Table], EventRow | None]) -> bool:
        try:
            with self._engine.begin() as connection:
                found = self._find(connection, place)
                row = change(connection, *found) if found is not None else None
                if row is None:
                    connection.rollback()
                    return False
                self._append(connection, row)
                return True
        except DBAPIError as error:
            if self._is_sqlite or error.orig is None or error.orig.args[0] not in (1205, 1213):
                raise
            return False  # a deadlock: rolled back

    def _find(self, connection: Connection, place: Place) -> tuple[int, ttypes.Table] | None:
        table_id = connection.execute(
            text(
                "SELECT TBL_ID FROM TBLS WHERE TBL_NAME = :table AND DB_ID ="
                f" (SELECT DB_ID FROM DBS WHERE NAME = :database AND CTLG_NAME = 'hive'){self._locks}"
            ),
            place._asdict(),
        ).scalar()
        if table_id is None:
            return None
        parameters = connection.execute(
            text(f"SELECT PARAM_KEY, PARAM_VALUE FROM TABLE_PARAMS WHERE TBL_ID = :id{self._locks}"), {"id": table_id}
        )
        return table_id, ttypes.Table(
            tableName=place.table,
            dbName=place.database,
            catName="hive",
            tableType="MANAGED_TABLE",
            partitionKeys=[ttypes.FieldSchema("p", "string", None)],
            sd=ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "string", None)], location="file:/w"),
            parameters=dict(tuple(row) for row in parameters),
        )

    def _append(self, connection: Connection, row: EventRow) -> None:
        """Appends an event like Hive's listener: the row of NOTIFICATION_SEQUENCE is locked last, until the commit."""
        event_id = connection.execute(
            text(f"SELECT NEXT_EVENT_ID FROM NOTIFICATION_SEQUENCE{self._locks}")
        ).scalar_one()
        _execute(connection, "UPDATE NOTIFICATION_SEQUENCE SET NEXT_EVENT_ID = :next", next=event_id + 1)
        row_id = connection.execute(
            text(f"SELECT NEXT_VAL FROM SEQUENCE_TABLE WHERE SEQUENCE_NAME = :name{self._locks}"), {"name": _EVENT_IDS}
        ).scalar_one()
        _execute(
            connection,
            "UPDATE SEQUENCE_TABLE SET NEXT_VAL = NEXT_VAL + 1 WHERE SEQUENCE_NAME = :name",
            name=_EVENT_IDS,
        )
        _execute(
            connection,
            "INSERT INTO NOTIFICATION_LOG (NL_ID, EVENT_ID, EVENT_TIME, EVENT_TYPE, CAT_NAME, DB_NAME, TBL_NAME,"
            " MESSAGE, MESSAGE_FORMAT) VALUES (:row_id, :event_id, :now, :event_type, :catalog, :database, :table,"
            " :message, :message_format)",
            row_id=row_id,
            event_id=event_id,
            now=int(time.time()),
            **row._asdict(),
        )


def _no_own_transactions(connection: object, _record: object) -> None:
    connection.isolation_level = None  # type: ignore[attr-defined]
    connection.execute("PRAGMA busy_timeout=60000")  # type: ignore[attr-defined]


def _execute(connection: Connection, statement: str, **values: object) -> int:
    return connection.execute(text(statement), values).rowcount


def _set(connection: Connection, table: str, column: str, identifier: int, label: str) -> None:
    changed = _execute(
        connection,
        f"UPDATE {table} SET PARAM_VALUE = :label WHERE {column} = :id AND PARAM_KEY = :key",
        label=label,
        id=identifier,
        key=VERSION,
    )
    assert changed == 1


def _copy(table: ttypes.Table) -> ttypes.Table:
    return ttypes.Table(**{slot: getattr(table, slot) for slot in table.__slots__})
