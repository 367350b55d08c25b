"""TXN_WRITE_NOTIFICATION_LOG: the files that transactions wrote, for replication.

Source: Hive 4.0 `DbNotificationListener.addWriteNotificationLog`, `ReplChangeManager.encodeFileUri`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, select
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import escape_path_name
from hms_cache.notifications.tjson import write_struct
from hms_cache.store.engine.bulk_writes import insert_rows, upsert_rows
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import TXN_WRITE_NOTIFICATION_LOG
from hms_cache.store.schema.column_types import MYSQL_DIALECTS
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
_AT_ONCE = "another write of the transaction was reported at the same moment"

_PLACE_COLUMNS = ("WNL_TXNID", "WNL_DATABASE", "WNL_TABLE")
_KEPT_COLUMNS = (L.WNL_ID, L.WNL_TXNID, L.WNL_WRITEID, L.WNL_DATABASE, L.WNL_TABLE, L.WNL_PARTITION, L.WNL_FILES)
"""Columns that do not change when files are added to a row, and the files."""


@frozen
class TableWrite:
    """One write to record: the objects as in the catalog, and the files. `partition_name` is `k=v/…` or empty."""

    txn_id: int
    write_id: int
    table: Table
    partition: Partition | None
    partition_name: str
    files: InsertEventRequestData


_Place = tuple[int, str, str]
"""Transaction, database and table of a write: the prefix of a row's primary key."""

_NAMES_IN_A_STATEMENT = 1_000


def add_write_notifications(transaction: WriteTransaction, writes: Sequence[TableWrite], now_s: int) -> None:
    """Records the writes. A transaction's second write to the same table or partition adds its files to the first.

    Files that are recorded already come from a repeated call. The number of statements depends on the number of tables,
    not of partitions, unless the database considers some partition names equal.
    """
    by_place: dict[_Place, list[TableWrite]] = {}
    for write in writes:
        place = (write.txn_id, plain_database(write.table.dbName), plain_table(write.table.tableName))
        by_place.setdefault(place, []).append(write)
    tables: dict[int, str] = {}
    for place, of_place in by_place.items():
        _add_to_table(transaction, place, of_place, tables, now_s)


def _add_to_table(
    transaction: WriteTransaction, place: _Place, writes: Sequence[TableWrite], tables: dict[int, str], now_s: int
) -> None:
    """`tables`: serialized tables by the `id()` of their objects, which the writes keep alive."""
    connection = transaction.connection
    names = {write.partition_name for write in writes}
    stored = _rows_of(connection, place, sorted(names))
    added: dict[str, dict[str, Any]] = {}
    changed: dict[str, dict[str, Any]] = {}
    similar = not stored.keys() <= names
    one_by_one = [write for write in writes if similar and write.partition_name not in stored]
    together = [write for write in writes if not similar or write.partition_name in stored]
    for write in together:
        name = write.partition_name
        known = added.get(name) or changed.get(name) or stored.get(name)
        values = _values(write, known, tables, now_s)
        if values is None:
            continue
        if known is None:
            key = dict(zip(_PLACE_COLUMNS, place, strict=True))
            added[name] = {**key, "WNL_PARTITION": name, "WNL_WRITEID": write.write_id, **values}
        else:
            (added if name in added else changed)[name] = {**known, **values}
    upsert_rows(connection, TXN_WRITE_NOTIFICATION_LOG, list(changed.values()))
    ids = transaction.ids(_ID_MODEL, len(added))
    rows = [{"WNL_ID": number, **row} for number, row in zip(ids, added.values(), strict=True)]
    try:
        insert_rows(connection, TXN_WRITE_NOTIFICATION_LOG, rows)
    except IntegrityError as error:
        if connection.dialect.name not in MYSQL_DIALECTS:
            raise RetryableConflict(_AT_ONCE) from error
        # The database considers some names equal: rows written so far are found now.
        one_by_one += [write for write in together if write.partition_name in added]
    for write in one_by_one:
        _add_one(transaction, place, write, tables, now_s)


def _rows_of(connection: Connection, place: _Place, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The rows of these partitions by name, locked. On MySQL also those with names that it considers equal."""
    of_table = and_(*(L[column] == value for column, value in zip(_PLACE_COLUMNS, place, strict=True)))
    found: dict[str, dict[str, Any]] = {}
    for some in batches(names, _NAMES_IN_A_STATEMENT):
        requested = L.WNL_PARTITION == some[0] if len(some) == 1 else L.WNL_PARTITION.in_(some)
        rows = connection.execute(select(*_KEPT_COLUMNS).where(of_table, requested).with_for_update())
        found |= {row["WNL_PARTITION"]: dict(row) for row in rows.mappings()}
    return found


def _values(
    write: TableWrite, known: Mapping[str, Any] | None, tables: dict[int, str], now_s: int
) -> dict[str, Any] | None:
    """The values that a write changes in its row; None if it changes nothing."""
    there = known["WNL_FILES"].split(FILE_SEPARATOR) if known is not None and known["WNL_FILES"] else []
    known_files = set(there)
    files = [one for one in encoded_files(write.files) if one not in known_files]
    if known is not None and not files:
        return None
    text = tables.get(id(write.table))
    if text is None:
        text = tables[id(write.table)] = write_struct(write.table)
    return {
        "WNL_TABLE_OBJ": text,
        "WNL_PARTITION_OBJ": None if write.partition is None else write_struct(write.partition),
        "WNL_FILES": FILE_SEPARATOR.join([*files, *there]),
        "WNL_EVENT_TIME": now_s,
    }


def _add_one(
    transaction: WriteTransaction, place: _Place, write: TableWrite, tables: dict[int, str], now_s: int
) -> None:
    """Records a write to a partition whose name the database may consider equal to another one."""
    connection = transaction.connection
    name, known = _name_and_row(connection, place, write.partition_name)
    values = _values(write, known, tables, now_s)
    if values is None:
        return
    if known is not None:
        upsert_rows(connection, TXN_WRITE_NOTIFICATION_LOG, [{**known, **values}])
        return
    key = dict(zip(_PLACE_COLUMNS, place, strict=True))
    row = {**key, "WNL_PARTITION": name, "WNL_WRITEID": write.write_id, **values}
    try:
        insert_rows(connection, TXN_WRITE_NOTIFICATION_LOG, [{"WNL_ID": transaction.id(_ID_MODEL), **row}])
    except IntegrityError as error:
        raise RetryableConflict(_AT_ONCE) from error


def _name_and_row(connection: Connection, place: _Place, name: str) -> tuple[str, dict[str, Any] | None]:
    """The name to store for the partition, and its row if there is one.

    MySQL also finds the row of a name that it considers equal, and its key does not allow another row: Hive adds the
    files to that row, and replication takes them for files of one partition. Here the name is written in a form that
    differs.
    """
    for spelling in (name, _spelled_out(name)):
        rows = _rows_of(connection, place, [spelling])
        if not rows or spelling in rows:
            return spelling, rows.get(spelling)
    raise MetaException(f"The database takes the partition {name} for another one of the transaction")


def _spelled_out(name: str) -> str:
    """The partition's name with its values as `%XX`, which every parser of names reads as the same values."""
    pieces = []
    for component in name.split("/"):
        key, equals, value = component.partition("=")
        letters = (f"%{ord(one):02X}" if ord(one) < 256 else one for one in unescape_path_name(value))
        pieces.append(key + equals + "".join(letters))
    return "/".join(pieces)


def _usual(name: str) -> str:
    """The usual form of a name from `_spelled_out`; any other name unchanged."""
    components = [component.partition("=") for component in name.split("/")]
    usual = "/".join(f"{key}={escape_path_name(unescape_path_name(value))}" for key, _, value in components)
    return usual if _spelled_out(usual) == name else name


def encoded_files(data: InsertEventRequestData) -> list[str]:
    """Files as replication parses them, joined by `]`: `uri#checksum#changeManagerRoot#subdirectory`.

    The two middle parts belong together and need a change manager, which this server does not have: both are empty.
    """
    files = data.filesAdded or []
    directories = data.subDirectoryList or []
    return [
        PART_SEPARATOR.join((name, "", "", directories[position] if position < len(directories) else ""))
        for position, name in enumerate(files)
    ]


def all_write_event_info(connection: Connection, request: GetAllWriteEventInfoRequest) -> list[WriteEventInfo]:
    """The writes of a transaction, optionally of one database or table; by database, table, partition."""
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
    """Deletes the oldest rows written before this epoch second, at most `limit`; returns their number."""
    ids = list(
        connection.execute(
            select(L.WNL_ID).where(L.WNL_EVENT_TIME <= before_s).order_by(L.WNL_ID).limit(limit)
        ).scalars()
    )
    if ids:
        connection.execute(delete(TXN_WRITE_NOTIFICATION_LOG).where(L.WNL_ID.in_(ids)))
    return len(ids)
