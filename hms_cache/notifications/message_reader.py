"""Decodes a row of the log to an event value.

Only what the event's scope needs is decoded; embedded objects stay text. Nothing here raises because of a row's
contents: a row that cannot be decoded becomes an ``UndecodedEvent`` with what it may concern (P8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.metadata.partition_name_codec import values_of_partition_name
from hms_cache.notifications import events as ev
from hms_cache.notifications import tjson
from hms_cache.notifications.event_types import GRANTS_CHANGED, EventType
from hms_cache.notifications.messages import DEFAULT_MAX_JSON_BYTES, MessageError, decode_message
from hms_cache.notifications.scope import PartitionValues

# Maximum range of one OPEN_TXN event; Hive opens at most 1,000 at a time (metastore.txn.max.open.batch).
_MAX_OPENED_TRANSACTIONS = 1_000_000

Message = dict[str, Any]
_Reader = Callable[[ev.EventHeader, Message], ev.Event]


def read_event(row: ev.NotificationRow, max_json_bytes: int = DEFAULT_MAX_JSON_BYTES) -> ev.Event:
    """The event of this row. Never raises because of the row's contents."""
    header = ev.header_of(row)
    reader = _READERS.get(row.event_type)
    if reader is None:
        return _READERS_OF_ROW.get(row.event_type, _unknown_type)(header)
    try:
        return reader(header, decode_message(row.message, row.message_format, max_json_bytes))
    except MessageError as error:
        return ev.undecoded(header, str(error))
    except Exception as error:  # any contents from another program: it must not stop the stream
        return ev.undecoded(header, f"{type(error).__name__}: {error}")


def _unknown_type(header: ev.EventHeader) -> ev.Event:
    return ev.undecoded(header, f"unknown event type {header.event_type!r}")


# ---- pieces of messages ---------------------------------------------------------------------------------------------


def _text(message: Message, name: str) -> str | None:
    value = message.get(name)
    return value if isinstance(value, str) else None


def _texts(message: Message, name: str) -> tuple[str, ...]:
    value = message.get(name)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _integer(message: Message, name: str) -> int | None:
    value = message.get(name)
    return None if value is None else int(value)


def _required_integer(message: Message, name: str) -> int:
    value = _integer(message, name)
    if value is None:
        raise MessageError(f"no {name}")
    return value


def _integers(values: Any) -> list[int]:
    return [int(value) for value in values] if isinstance(values, list) else []


def _flag(message: Message, name: str) -> bool:
    return str(message.get(name)).lower() == "true"


def _parameters(message: Message) -> dict[str, str] | None:
    value = message.get("parameters")
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else None


def _partition_values(partition_json: str | None) -> PartitionValues | None:
    """The values of a partition object (field 1, a list of strings)."""
    if partition_json is None:
        return None
    return _values_of(tjson.parse_field(partition_json, 1)["lst"][2:])


def _values_of(values: Iterable[Any]) -> PartitionValues | None:
    """The values of a partition. ``None`` (the whole table) if there are none, or if one is not text: Hive never writes
    such a value, and its text in Python's notation would be that of a different partition."""
    texts = tuple(values)
    return texts if texts and all(isinstance(value, str) for value in texts) else None


def _all_known(partitions: Iterable[PartitionValues | None]) -> tuple[PartitionValues, ...] | None:
    """The partitions, or ``None`` (the whole table) if one of them is unknown."""
    listed = list(partitions)
    known = tuple(each for each in listed if each is not None)
    return known if len(known) == len(listed) else None


def _partition_keys(table_json: str | None) -> list[str] | None:
    """The names of a table object's partition keys, in order (field 8, a list of field schemas)."""
    if table_json is None:
        return None
    keys = tjson.parse(table_json)["8"]["lst"][2:]
    return [key["1"]["str"] for key in keys]


def _partitions_by_key(maps: Any, table_json: str | None) -> tuple[PartitionValues, ...] | None:
    """Values in the order of the table's partition keys, since the order of a map in a message has no meaning.

    ``None`` (the whole table) if keys and maps do not match.
    """
    if not isinstance(maps, list) or not all(isinstance(entry, dict) for entry in maps):
        return None
    try:
        if all(len(entry) == 1 for entry in maps):
            return _all_known(_values_of(entry.values()) for entry in maps)
        keys = _partition_keys(table_json)
        if keys is None or any(len(entry) != len(keys) for entry in maps):
            return None
        return _all_known(_values_of(entry[key] for key in keys) for entry in maps)
    except (tjson.TJsonError, KeyError, TypeError, IndexError):
        return None


def _partitions_of(
    message: Message, partition_jsons: tuple[str, ...], table_json: str | None
) -> tuple[PartitionValues, ...] | None:
    """The values in the objects that the message lists beside the maps, which is cheaper than decoding the table.

    Uses the maps if the two lists do not match.
    """
    maps = message.get("partitions")
    if isinstance(maps, list) and len(maps) == len(partition_jsons):
        known = _all_known(_readable_values(text) for text in partition_jsons)
        if known is not None:
            return known
    elif not maps and partition_jsons:  # objects of partitions that it does not name
        return None
    return _partitions_by_key(maps, table_json)


def _readable_values(partition_json: str | None) -> PartitionValues | None:
    """The values, or ``None`` (the whole table) if the embedded object is missing or cannot be decoded."""
    try:
        return _partition_values(partition_json)
    except (tjson.TJsonError, KeyError, TypeError, IndexError):
        return None


# ---- one reader for each type ---------------------------------------------------------------------------------------


def _database_created(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.DatabaseCreated(header, _text(message, "dbJson"))


def _database_altered(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.DatabaseAltered(header, _text(message, "dbObjBeforeJson"), _text(message, "dbObjAfterJson"))


def _database_dropped(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.DatabaseDropped(header, _text(message, "dbJson"))


def _catalog_created(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.CatalogCreated(header, _text(message, "catalog") or header.catalog)


def _catalog_dropped(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.CatalogDropped(header, _text(message, "catalog") or header.catalog)


def _catalog_altered(header: ev.EventHeader, message: Message) -> ev.Event:
    before = _text(message, "catObjBeforeJson")
    name = header.catalog
    if before is not None:
        name = str(tjson.parse(before)["1"]["str"])
    return ev.CatalogAltered(header, name, before, _text(message, "catObjAfterJson"))


def _table_created(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.TableCreated(
        header, _text(message, "tableObjJson"), _text(message, "tableType"), _texts(message, "files")
    )


def _table_dropped(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.TableDropped(header, _text(message, "tableObjJson"), _text(message, "tableType"))


def _table_altered(header: ev.EventHeader, message: Message) -> ev.Event:
    old_database, old_table = _text(message, "db"), _text(message, "table")
    new_name = table_name(header.catalog, header.database, header.table) if header.database and header.table else None
    old_name = table_name(header.catalog, old_database, old_table) if old_database and old_table else None
    return ev.TableAltered(
        header,
        old_name=old_name,
        new_name=new_name,
        is_truncate=_flag(message, "isTruncateOp"),
        write_id=_integer(message, "writeId"),
        table_type=_text(message, "tableType"),
        before_json=_text(message, "tableObjBeforeJson"),
        after_json=_text(message, "tableObjAfterJson"),
    )


def _partitions_added(header: ev.EventHeader, message: Message) -> ev.Event:
    table_json = _text(message, "tableObjJson")
    partition_jsons = _texts(message, "partitionListJson")
    entries = message.get("partitionFiles")
    files = tuple(
        ev.PartitionFiles(str(entry.get("partitionName")), _texts(entry, "files"))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    )
    return ev.PartitionsAdded(
        header,
        table_json,
        _partitions_of(message, partition_jsons, table_json),
        _text(message, "tableType"),
        partition_jsons,
        files,
    )


def _partition_altered(header: ev.EventHeader, message: Message) -> ev.Event:
    table_json = _text(message, "tableObjJson")
    before, after = _text(message, "partitionObjBeforeJson"), _text(message, "partitionObjAfterJson")
    old, new = _readable_values(before), _readable_values(after)
    if old is None and (named := _partitions_by_key([message.get("keyValues")], table_json)):
        old = named[0]
    return ev.PartitionAltered(
        header,
        table_json,
        None if old is None or new is None else tuple(dict.fromkeys((old, new))),
        _flag(message, "isTruncateOp"),
        _integer(message, "writeId"),
        before,
        after,
    )


def _partitions_altered(header: ev.EventHeader, message: Message) -> ev.Event:
    table_json, partition_jsons = _text(message, "tableObjJson"), _texts(message, "partitionListJson")
    return ev.PartitionsAltered(
        header,
        table_json,
        _partitions_of(message, partition_jsons, table_json),
        _flag(message, "isTruncateOp"),
        _integer(message, "writeId"),
        partition_jsons,
    )


def _partitions_dropped(header: ev.EventHeader, message: Message) -> ev.Event:
    table_json = _text(message, "tableObjJson")
    partitions = _partitions_by_key(message.get("partitions"), table_json)
    return ev.PartitionsDropped(header, table_json, partitions, _text(message, "tableType"))


def _about_one_partition(
    message: Message, flag: str
) -> tuple[str | None, tuple[PartitionValues, ...] | None, bool, str | None]:
    """The table, the partition's values, the flag's value, and the partition."""
    partition_json = _text(message, "ptnObjJson")
    values = _readable_values(partition_json)
    of_one = None if values is None else (values,)
    return _text(message, "tableObjJson"), of_one, _flag(message, flag), partition_json


def _data_inserted(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.DataInserted(header, *_about_one_partition(message, "replace"), _texts(message, "files"))


def _table_reloaded(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.TableReloaded(header, *_about_one_partition(message, "refreshEvent"))


def _function_created(header: ev.EventHeader, message: Message) -> ev.Event:
    function_json = _text(message, "functionObjJson")
    name = None if function_json is None else str(tjson.parse(function_json)["1"]["str"])
    return ev.FunctionCreated(header, name, function_json)


def _function_dropped(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.FunctionDropped(header, _text(message, "functionName"))


def _constraints_added(event_class: type[ev.ConstraintsAdded], field: str) -> _Reader:
    def read(header: ev.EventHeader, message: Message) -> ev.Event:
        jsons = _texts(message, field)
        tables = frozenset(_table_of_constraint(header, event_class, text) for text in jsons)
        return event_class(header, jsons, tables or None)

    return read


def _table_of_constraint(header: ev.EventHeader, event_class: type[ev.ConstraintsAdded], text: str) -> TableName:
    catalog, database, table = event_class.table_fields
    fields = tjson.parse(text)
    return table_name(
        fields.get(catalog, {}).get("str") or header.catalog, fields[database]["str"], fields[table]["str"]
    )


def _foreign_key_added(header: ev.EventHeader, message: Message) -> ev.Event:
    jsons = _texts(message, "foreignKeyListJson")
    tables: set[TableName] = set()
    for text in jsons:
        # SQLForeignKey: parent database and table are fields 1 and 2, the child's 4 and 5, the catalog 15.
        fields = tjson.parse(text)
        catalog = fields.get("15", {}).get("str") or header.catalog
        tables.add(table_name(catalog, fields["1"]["str"], fields["2"]["str"]))
        tables.add(table_name(catalog, fields["4"]["str"], fields["5"]["str"]))
    return ev.ForeignKeyAdded(header, jsons, frozenset(tables) if tables else None)


def _constraint_dropped(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.ConstraintDropped(header, _text(message, "constraintName"))


def _transactions_opened(header: ev.EventHeader, message: Message) -> ev.Event:
    listed = message.get("txnIds")
    if isinstance(listed, list):
        return ev.TransactionsOpened(header, frozenset(_integers(listed)))
    first, last = _required_integer(message, "fromTxnId"), _required_integer(message, "toTxnId")
    if not 0 <= last - first < _MAX_OPENED_TRANSACTIONS:
        return ev.TransactionsOpened(header, None)
    return ev.TransactionsOpened(header, range(first, last + 1))


def _transaction_committed(header: ev.EventHeader, message: Message) -> ev.Event:
    databases, tables = _texts(message, "databases"), _texts(message, "tables")
    # If they are set, the lists correspond to each other.
    complete = bool(tables) and len(tables) == len(databases)
    names = frozenset(table_name(header.catalog, *pair) for pair in zip(databases, tables, strict=False))
    return ev.TransactionCommitted(header, _required_integer(message, "txnid"), names if complete else None)


def _transaction_aborted(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.TransactionAborted(header, _required_integer(message, "txnid"), _texts(message, "dbsUpdated"))


def _write_ids_allocated(header: ev.EventHeader, message: Message) -> ev.Event:
    transactions, write_ids = _integers(message.get("txnIdList")), _integers(message.get("writeIdList"))
    if len(transactions) != len(write_ids) or not transactions:
        raise MessageError("txnIdList and writeIdList do not fit together")
    pairs = zip(transactions, write_ids, strict=True)
    return ev.WriteIdsAllocated(
        _named_by_message(header, message, "dbName", "tableName"),
        tuple(ev.TransactionWriteId(transaction, write_id) for transaction, write_id in pairs),
    )


def _named_by_message(header: ev.EventHeader, message: Message, database: str, table: str) -> ev.EventHeader:
    """The header, with names from the message where the columns are null."""
    return header._replace(
        database=header.database or _text(message, database), table=header.table or _text(message, table)
    )


def _acid_data_written(header: ev.EventHeader, message: Message) -> ev.Event:
    partition = _text(message, "partition")
    return ev.AcidDataWritten(
        _named_by_message(header, message, "database", "table"),
        _required_integer(message, "txnid"),
        _required_integer(message, "writeId"),
        values_of_partition_name(partition) if partition else None,
        _text(message, "tableObjJson"),
        _text(message, "partitionObjJson"),
        _texts(message, "files"),
    )


def _compaction_committed(header: ev.EventHeader, message: Message) -> ev.Event:
    partition = _text(message, "partName")
    values = values_of_partition_name(partition) if partition else None
    return ev.CompactionCommitted(
        _named_by_message(header, message, "dbname", "tableName"),
        None,
        None if values is None else (values,),
        _integer(message, "txnid") or 0,
        _integer(message, "compactionId") or 0,
        _text(message, "type"),
    )


def _table_statistics_updated(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.TableColumnStatisticsUpdated(
        header,
        _text(message, "tableObjJson"),
        _integer(message, "writeId"),
        _parameters(message),
        _text(message, "colStatsJson"),
    )


def _table_statistics_deleted(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.TableColumnStatisticsDeleted(header, None, _text(message, "colName"))


def _listed_values(values: Any) -> tuple[PartitionValues, ...] | None:
    return _all_known([_values_of(values)]) if isinstance(values, list) else None


def _partition_statistics_updated(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.PartitionColumnStatisticsUpdated(
        header,
        _text(message, "tableObjJson"),
        _listed_values(message.get("partVals")),
        _integer(message, "writeId"),
        _parameters(message),
        _text(message, "colStatsJson"),
    )


def _partition_statistics_deleted(header: ev.EventHeader, message: Message) -> ev.Event:
    return ev.PartitionColumnStatisticsDeleted(
        header, None, _listed_values(message.get("partValues")), _text(message, "colName")
    )


_READERS: dict[str, _Reader] = {
    EventType.CREATE_DATABASE: _database_created,
    EventType.ALTER_DATABASE: _database_altered,
    EventType.DROP_DATABASE: _database_dropped,
    EventType.CREATE_CATALOG: _catalog_created,
    EventType.ALTER_CATALOG: _catalog_altered,
    EventType.DROP_CATALOG: _catalog_dropped,
    EventType.CREATE_TABLE: _table_created,
    EventType.ALTER_TABLE: _table_altered,
    EventType.DROP_TABLE: _table_dropped,
    EventType.ADD_PARTITION: _partitions_added,
    EventType.ALTER_PARTITION: _partition_altered,
    EventType.ALTER_PARTITIONS: _partitions_altered,
    EventType.DROP_PARTITION: _partitions_dropped,
    EventType.INSERT: _data_inserted,
    EventType.RELOAD: _table_reloaded,
    EventType.CREATE_FUNCTION: _function_created,
    EventType.DROP_FUNCTION: _function_dropped,
    EventType.ADD_PRIMARYKEY: _constraints_added(ev.PrimaryKeyAdded, "primaryKeyListJson"),
    EventType.ADD_FOREIGNKEY: _foreign_key_added,
    EventType.ADD_UNIQUECONSTRAINT: _constraints_added(ev.UniqueConstraintAdded, "uniqueConstraintListJson"),
    EventType.ADD_NOTNULLCONSTRAINT: _constraints_added(ev.NotNullConstraintAdded, "notNullConstraintListJson"),
    EventType.ADD_DEFAULTCONSTRAINT: _constraints_added(ev.DefaultConstraintAdded, "defaultConstraintListJson"),
    EventType.ADD_CHECKCONSTRAINT: _constraints_added(ev.CheckConstraintAdded, "checkConstraintListJson"),
    EventType.DROP_CONSTRAINT: _constraint_dropped,
    EventType.OPEN_TXN: _transactions_opened,
    EventType.COMMIT_TXN: _transaction_committed,
    EventType.ABORT_TXN: _transaction_aborted,
    EventType.ALLOC_WRITE_ID_EVENT: _write_ids_allocated,
    EventType.ACID_WRITE_EVENT: _acid_data_written,
    EventType.COMMIT_COMPACTION_EVENT: _compaction_committed,
    EventType.UPDATE_TBL_COL_STAT_EVENT: _table_statistics_updated,
    EventType.DELETE_TBL_COL_STAT_EVENT: _table_statistics_deleted,
    EventType.UPDATE_PART_COL_STAT_EVENT: _partition_statistics_updated,
    EventType.DELETE_PART_COL_STAT_EVENT: _partition_statistics_deleted,
}

# Types whose messages no Hive release writes into the log: only the columns are used.
_READERS_OF_ROW: dict[str, Callable[[ev.EventHeader], ev.Event]] = {
    GRANTS_CHANGED: ev.GrantsChanged,
    EventType.CREATE_ISCHEMA: ev.OtherObjectChanged,
    EventType.ALTER_ISCHEMA: ev.OtherObjectChanged,
    EventType.DROP_ISCHEMA: ev.OtherObjectChanged,
    EventType.ADD_SCHEMA_VERSION: ev.OtherObjectChanged,
    EventType.ALTER_SCHEMA_VERSION: ev.OtherObjectChanged,
    EventType.DROP_SCHEMA_VERSION: ev.OtherObjectChanged,
    EventType.CREATE_DATACONNECTOR: ev.OtherObjectChanged,
    EventType.ALTER_DATACONNECTOR: ev.OtherObjectChanged,
    EventType.DROP_DATACONNECTOR: ev.OtherObjectChanged,
    EventType.BATCH_ACID_WRITE_EVENT: ev.BatchWritten,
    EventType.UPDATE_PART_COL_STAT_EVENT_BATCH: ev.BatchWritten,
}


def read_events(rows: Iterable[ev.NotificationRow]) -> list[ev.Event]:
    """The events of these rows, in order."""
    return [read_event(row) for row in rows]
