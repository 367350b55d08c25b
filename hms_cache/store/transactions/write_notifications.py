"""TXN_WRITE_NOTIFICATION_LOG: which files a transaction wrote, kept for replication.

Source: Hive 4.0 `DbNotificationListener.addWriteNotificationLog`, `ReplChangeManager.encodeFileUri`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import escape_path_name
from hms_cache.notifications.tjson import write_struct
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import TXN_WRITE_NOTIFICATION_LOG
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetAllWriteEventInfoRequest,
    InsertEventRequestData,
    MetaException,
    Partition,
    Table,
    WriteEventInfo,
)
from hms_cache.values import frozen

L = TXN_WRITE_NOTIFICATION_LOG.c

FILE_SEPARATOR = "]"
PART_SEPARATOR = "#"
_ID_MODEL = "MTxnWriteNotificationLog"


@frozen
class TableWrite:
    """One write to report: the objects as the catalog has them, and the files. `partition_name` is `k=v/…` or empty."""

    txn_id: int
    write_id: int
    table: Table
    partition: Partition | None
    partition_name: str
    files: InsertEventRequestData


def add_write_notifications(transaction: WriteTransaction, writes: Sequence[TableWrite], now_s: int) -> None:
    """Log the writes; a second write of a transaction to the same table or partition adds its files to the first.

    Files that are there already are those of a call that the client has repeated.
    """
    connection = transaction.connection
    for write in writes:
        key, known = _place_of(connection, write)
        there = known.WNL_FILES.split(FILE_SEPARATOR) if known is not None and known.WNL_FILES else []
        known_files = set(there)
        files = [one for one in encoded_files(write.files) if one not in known_files]
        if known is not None and not files:
            continue
        values = {
            "WNL_TABLE_OBJ": write_struct(write.table),
            "WNL_PARTITION_OBJ": None if write.partition is None else write_struct(write.partition),
            "WNL_FILES": FILE_SEPARATOR.join([*files, *there]),
            "WNL_EVENT_TIME": now_s,
        }
        if known is not None:
            connection.execute(update(TXN_WRITE_NOTIFICATION_LOG).where(L.WNL_ID == known.WNL_ID).values(values))
            continue
        new = insert(TXN_WRITE_NOTIFICATION_LOG).values(
            WNL_ID=transaction.id(_ID_MODEL), WNL_WRITEID=write.write_id, **key, **values
        )
        try:
            connection.execute(new)
        except IntegrityError as error:
            raise RetryableConflict("another write of the transaction was reported at the same moment") from error


def _place_of(connection: Connection, write: TableWrite) -> tuple[dict[str, Any], Any]:
    """The key of the row for this write, and the row if there is one.

    MySQL finds the row of a similar partition, too, and has no place for another beside it: Hive adds the files to that
    one, and replication takes them all for one partition's. Here the name is spelled in a way that tells them apart.
    """
    key: dict[str, Any] = {
        "WNL_TXNID": write.txn_id,
        "WNL_DATABASE": plain_database(write.table.dbName),
        "WNL_TABLE": plain_table(write.table.tableName),
    }
    for partition in (write.partition_name, _spelled_out(write.partition_name)):
        key["WNL_PARTITION"] = partition
        statement = select(L.WNL_ID, L.WNL_PARTITION, L.WNL_FILES).where(*(L[name] == key[name] for name in key))
        known = connection.execute(statement.with_for_update()).first()
        if known is None or known.WNL_PARTITION == partition:
            return key, known
    raise MetaException(f"The database takes the partition {write.partition_name} for another one of the transaction")


def _spelled_out(name: str) -> str:
    """The partition's name with its values in `%XX`, which mean the same to all that take names apart."""
    pieces = []
    for component in name.split("/"):
        key, equals, value = component.partition("=")
        letters = (f"%{ord(one):02X}" if ord(one) < 256 else one for one in unescape_path_name(value))
        pieces.append(key + equals + "".join(letters))
    return "/".join(pieces)


def _usual(name: str) -> str:
    """The partition's name as it was before it was spelled out, if it was."""
    components = [component.partition("=") for component in name.split("/")]
    usual = "/".join(f"{key}={escape_path_name(unescape_path_name(value))}" for key, _, value in components)
    return usual if _spelled_out(usual) == name else name


def encoded_files(data: InsertEventRequestData) -> list[str]:
    """Files as replication reads them, joined by `]`: `uri#checksum#changeManagerRoot#subdirectory`.

    The two middle parts go together and need a change manager, which is none of ours: both stay empty.
    """
    files = data.filesAdded or []
    directories = data.subDirectoryList or []
    return [
        PART_SEPARATOR.join((name, "", "", directories[position] if position < len(directories) else ""))
        for position, name in enumerate(files)
    ]


def all_write_event_info(connection: Connection, request: GetAllWriteEventInfoRequest) -> list[WriteEventInfo]:
    """What a transaction wrote, of one database or table if these are named; by database, table, partition."""
    query = select(TXN_WRITE_NOTIFICATION_LOG).where(L.WNL_TXNID == request.txnId)
    if request.dbName:
        query = query.where(L.WNL_DATABASE == plain_database(request.dbName))
    if request.tableName:
        query = query.where(L.WNL_TABLE == plain_table(request.tableName))
    rows = connection.execute(query.order_by(L.WNL_DATABASE, L.WNL_TABLE, L.WNL_PARTITION))
    return [
        WriteEventInfo(
            writeId=row.WNL_WRITEID,
            database=row.WNL_DATABASE,
            table=row.WNL_TABLE,
            files=row.WNL_FILES or "",
            partition=_usual(row.WNL_PARTITION),
            tableObj=row.WNL_TABLE_OBJ,
            partitionObj=row.WNL_PARTITION_OBJ,
        )
        for row in rows
    ]


def delete_old_write_notifications(connection: Connection, before_s: int, limit: int) -> int:
    """Delete the oldest rows written before this epoch second, at most `limit`; how many."""
    ids = list(
        connection.execute(
            select(L.WNL_ID).where(L.WNL_EVENT_TIME <= before_s).order_by(L.WNL_ID).limit(limit)
        ).scalars()
    )
    if ids:
        connection.execute(delete(TXN_WRITE_NOTIFICATION_LOG).where(L.WNL_ID.in_(ids)))
    return len(ids)
