"""Builds the rows that writes of the store append to the notification log.

Each method takes the Thrift objects of one write and returns the row (or rows) that Hive's ``DbNotificationListener``
would write: the same JSON fields, the same names in the columns. Names are used as they are in the objects; the caller
passes what it stored (normalized).

Lists of partitions whose message would exceed ``max_message_bytes`` are split into several events of the same type,
because MySQL's default ``max_allowed_packet`` was 4 MiB and readers hold a whole message in memory. A message about one
object cannot be split and is written whole. Rows of several partitions are generated on demand: each may contain a
table of any width, and the consumer enforces a limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hms_cache.clock import Clock, SystemClock
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import name_of_table
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.events import EventRow, PartitionFiles, TransactionWriteId
from hms_cache.notifications.messages import MessageFormat, encode_message
from hms_cache.notifications.replication_properties import without_replication_properties
from hms_cache.notifications.tjson import write_struct
from hms_cache.thrift_gen.hive_metastore import ttypes

DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024

_TYPE_OF_CONSTRAINT: dict[Any, tuple[EventType, str]] = {
    ttypes.SQLPrimaryKey: (EventType.ADD_PRIMARYKEY, "primaryKeyListJson"),
    ttypes.SQLForeignKey: (EventType.ADD_FOREIGNKEY, "foreignKeyListJson"),
    ttypes.SQLUniqueConstraint: (EventType.ADD_UNIQUECONSTRAINT, "uniqueConstraintListJson"),
    ttypes.SQLNotNullConstraint: (EventType.ADD_NOTNULLCONSTRAINT, "notNullConstraintListJson"),
    ttypes.SQLDefaultConstraint: (EventType.ADD_DEFAULTCONSTRAINT, "defaultConstraintListJson"),
    ttypes.SQLCheckConstraint: (EventType.ADD_CHECKCONSTRAINT, "checkConstraintListJson"),
}

Fields = dict[str, Any]


class MessageBuilder:
    """Builds rows in one message format.

    ``server`` and ``service_principal`` are part of every message: the server's ``metastore.thrift.uris`` and its
    Kerberos principal, both empty if not configured. Has no other state; thread-safe.
    """

    def __init__(
        self,
        message_format: MessageFormat = MessageFormat.GZIP_JSON,
        *,
        server: str = "",
        service_principal: str = "",
        clock: Clock | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        self._format = message_format
        self._head = _members({"server": server, "servicePrincipal": service_principal})
        self._clock: Clock = clock or SystemClock()
        self._max_message_bytes = max_message_bytes

    # ---- databases and catalogs ----

    def build_create_database(self, database: ttypes.Database) -> EventRow:
        return self._database_row(
            EventType.CREATE_DATABASE, database, {"db": database.name, "dbJson": write_struct(database)}
        )

    def build_alter_database(self, before: ttypes.Database, after: ttypes.Database) -> EventRow:
        """The columns name the old database. If an alter changes only properties of replication, both images are
        equal."""
        images = [write_struct(without_replication_properties(image)) for image in (before, after)]
        fields = {"db": before.name, "dbObjBeforeJson": images[0], "dbObjAfterJson": images[1]}
        return self._database_row(EventType.ALTER_DATABASE, before, fields)

    def build_drop_database(self, database: ttypes.Database) -> EventRow:
        return self._database_row(
            EventType.DROP_DATABASE, database, {"db": database.name, "dbJson": write_struct(database)}
        )

    def build_create_catalog(self, catalog: ttypes.Catalog) -> EventRow:
        """Hive has the message but never logs it; its own readers skip the type."""
        return self._row(EventType.CREATE_CATALOG, catalog.name, None, None, {"catalog": catalog.name})

    def build_alter_catalog(self, before: ttypes.Catalog, after: ttypes.Catalog) -> EventRow:
        fields = {"catObjBeforeJson": write_struct(before), "catObjAfterJson": write_struct(after)}
        return self._row(EventType.ALTER_CATALOG, before.name, None, None, fields)

    def build_drop_catalog(self, catalog: ttypes.Catalog) -> EventRow:
        return self._row(EventType.DROP_CATALOG, catalog.name, None, None, {"catalog": catalog.name})

    # ---- tables ----

    def build_create_table(self, table: ttypes.Table, files: Iterable[str] = ()) -> EventRow:
        return self._table_row(EventType.CREATE_TABLE, table, {**self._table_fields(table), "files": list(files)})

    def build_alter_table(
        self, before: ttypes.Table, after: ttypes.Table, *, is_truncate: bool = False, write_id: int = -1
    ) -> EventRow:
        """The columns have the new names, the message the old ones."""
        fields = {
            "db": before.dbName,
            "table": before.tableName,
            "tableType": before.tableType,
            "tableObjBeforeJson": write_struct(before),
            "tableObjAfterJson": write_struct(after),
            "isTruncateOp": _text_of(is_truncate),
            "writeId": write_id,
        }
        row = self._table_row(EventType.ALTER_TABLE, after, fields)
        return row._replace(keeps_name=name_of_table(before) == name_of_table(after))

    def build_drop_table(self, table: ttypes.Table) -> EventRow:
        return self._table_row(EventType.DROP_TABLE, table, self._table_fields(table))

    # ---- partitions ----

    def build_add_partitions(
        self,
        table: ttypes.Table,
        partitions: Sequence[ttypes.Partition],
        files: Mapping[tuple[str, ...], PartitionFiles] | None = None,
    ) -> Iterator[EventRow]:
        """``files`` by partition values."""

        def fields(first: int, jsons: list[str]) -> Fields:
            chosen = partitions[first : first + len(jsons)]
            listed = [files[tuple(each.values)] for each in chosen if tuple(each.values) in files] if files else []
            return {
                "partitions": [_key_values(table, partition.values) for partition in chosen],
                "partitionListJson": jsons,
                "partitionFiles": [{"partitionName": one.partition_name, "files": list(one.files)} for one in listed],
            }

        jsons = map(write_struct, partitions)
        return self._partition_rows(EventType.ADD_PARTITION, table, self._table_fields(table), jsons, fields)

    def build_alter_partition_each(
        self,
        table: ttypes.Table,
        changes: Sequence[tuple[ttypes.Partition, ttypes.Partition]],
        *,
        is_truncate: bool = False,
        write_id: int = -1,
    ) -> Iterator[EventRow]:
        """One ALTER_PARTITION for each (before, after), as Hive up to 4.0 logs ``alter_partitions``.

        A rename of a partition is always logged in this way: ALTER_PARTITIONS has no field for old values.
        """
        common = _members({**self._table_fields(table), "isTruncateOp": _text_of(is_truncate), "writeId": write_id})
        return (
            self._table_row(
                EventType.ALTER_PARTITION,
                table,
                {
                    "keyValues": _key_values(table, before.values),
                    "partitionObjBeforeJson": write_struct(before),
                    "partitionObjAfterJson": write_struct(after),
                },
                before=common,
            )
            for before, after in changes
        )

    def build_alter_partitions(
        self, table: ttypes.Table, partitions: Sequence[ttypes.Partition], *, is_truncate: bool = False
    ) -> Iterator[EventRow]:
        """ALTER_PARTITIONS with the new images, as Hive 4.1 and later log ``alter_partitions``.

        An event has one write id, and Hive refuses one whose partitions have different ones (4.1,
        ``AlterPartitionsMessage.checkValid``), so there is one event per write id.
        """
        by_write_id: dict[int, list[ttypes.Partition]] = {}
        for partition in partitions:
            by_write_id.setdefault(-1 if partition.writeId is None else partition.writeId, []).append(partition)
        common = {**self._table_fields(table), "isTruncateOp": _text_of(is_truncate)}
        for write_id, group in by_write_id.items():
            yield from self._alter_partitions_rows(table, group, {**common, "writeId": write_id})

    def _alter_partitions_rows(
        self, table: ttypes.Table, partitions: Sequence[ttypes.Partition], common: Fields
    ) -> Iterator[EventRow]:
        def fields(first: int, jsons: list[str]) -> Fields:
            chosen = partitions[first : first + len(jsons)]
            return {
                "partitions": [_key_values(table, partition.values) for partition in chosen],
                "partitionListJson": jsons,
            }

        jsons = map(write_struct, partitions)
        return self._partition_rows(EventType.ALTER_PARTITIONS, table, common, jsons, fields)

    def build_drop_partitions(
        self, table: ttypes.Table, partition_values: Sequence[Sequence[str]]
    ) -> Iterator[EventRow]:
        maps = [_key_values(table, values) for values in partition_values]
        return self._partition_rows(
            EventType.DROP_PARTITION,
            table,
            self._table_fields(table),
            map(json.dumps, maps),
            lambda first, weights: {"partitions": maps[first : first + len(weights)]},
        )

    def build_insert(
        self,
        table: ttypes.Table,
        partition: ttypes.Partition | None = None,
        *,
        is_replace: bool = False,
        files: Iterable[str] = (),
    ) -> EventRow:
        fields = {
            **self._table_fields(table),
            "ptnObjJson": None if partition is None else write_struct(partition),
            "replace": _text_of(is_replace),
            "files": list(files),
        }
        return self._table_row(EventType.INSERT, table, fields)

    def build_reload(
        self, table: ttypes.Table, partition: ttypes.Partition | None = None, *, is_refresh: bool = True
    ) -> EventRow:
        fields = {
            "db": table.dbName,
            "table": table.tableName,
            "tableObjJson": write_struct(table),
            "ptnObjJson": None if partition is None else write_struct(partition),
            "refreshEvent": _text_of(is_refresh),
        }
        return self._table_row(EventType.RELOAD, table, fields)

    # ---- functions ----

    def build_create_function(self, function: ttypes.Function) -> EventRow:
        fields = {"db": function.dbName, "functionObjJson": write_struct(function)}
        return self._row(EventType.CREATE_FUNCTION, _catalog_of(function), function.dbName, None, fields)

    def build_drop_function(self, function: ttypes.Function) -> EventRow:
        fields = {"db": function.dbName, "functionName": function.functionName}
        return self._row(EventType.DROP_FUNCTION, _catalog_of(function), function.dbName, None, fields)

    # ---- constraints ----

    def build_add_constraints(self, table: ttypes.Table, constraints: Sequence[Any]) -> EventRow:
        """Constraints of one kind on one table; for foreign keys ``table`` is the parent.

        Raises ``ValueError`` for an empty or mixed list, and for foreign keys that do not all refer to ``table``, since
        the row has one parent.
        """
        kinds = {type(constraint) for constraint in constraints}
        if len(kinds) != 1:
            raise ValueError("one event holds constraints of one kind")
        event_type, field = _TYPE_OF_CONSTRAINT[kinds.pop()]
        if event_type is EventType.ADD_FOREIGNKEY and any(
            (key.pktable_db, key.pktable_name) != (table.dbName, table.tableName) for key in constraints
        ):
            raise ValueError("one event holds foreign keys to one parent table")
        return self._table_row(event_type, table, {field: [write_struct(each) for each in constraints]})

    def build_drop_constraint(self, table: ttypes.Table, constraint_name: str) -> EventRow:
        fields = {"dbName": table.dbName, "tableName": table.tableName, "constraintName": constraint_name}
        return self._table_row(EventType.DROP_CONSTRAINT, table, fields)

    # ---- transactions: all columns null, or without a catalog, as Hive's direct-SQL listener path writes them ----

    def build_open_transactions(self, first_transaction_id: int, last_transaction_id: int) -> EventRow:
        fields = {"txnIds": None, "fromTxnId": first_transaction_id, "toTxnId": last_transaction_id}
        return self._row(EventType.OPEN_TXN, None, None, None, fields)

    def build_commit_transaction(self, transaction_id: int, *, keeps_tables: bool = False) -> EventRow:
        """``keeps_tables``: the commit sets no table parameter."""
        unused = ("writeIds", "databases", "tables", "partitions", "tableObjs", "partitionObjs", "files")
        fields = {"txnid": transaction_id, **dict.fromkeys(unused, None)}
        return self._row(EventType.COMMIT_TXN, None, None, None, fields)._replace(keeps_tables=keeps_tables)

    def build_abort_transaction(self, transaction_id: int, databases: Iterable[str] = ()) -> EventRow:
        """``databases``: those in which the transaction has write ids."""
        return self._row(
            EventType.ABORT_TXN, None, None, None, {"txnid": transaction_id, "dbsUpdated": list(databases)}
        )

    def build_allocate_write_ids(
        self, database: str, table: str, write_ids: Sequence[TransactionWriteId | tuple[int, int]]
    ) -> EventRow:
        """``write_ids``: (transaction id, write id) pairs."""
        fields = {
            "dbName": database,
            "tableName": table,
            "txnIdList": [transaction_id for transaction_id, _ in write_ids],
            "writeIdList": [write_id for _, write_id in write_ids],
        }
        return self._row(EventType.ALLOC_WRITE_ID_EVENT, None, database, table, fields)

    def build_commit_compaction(
        self,
        transaction_id: int,
        compaction_id: int,
        compaction_type: str,
        database: str,
        table: str,
        partition_name: str | None = None,
    ) -> EventRow:
        """``compaction_type``: the name of Hive's enum value, ``MAJOR``, ``MINOR`` or ``REBALANCE``."""
        fields = {
            "txnid": transaction_id,
            "compactionId": compaction_id,
            "type": compaction_type,
            "dbname": database,
            "tableName": table,
            "partName": partition_name,
        }
        return self._row(EventType.COMMIT_COMPACTION_EVENT, None, database, table, fields)

    # ---- column statistics ----

    def build_update_table_column_statistics(
        self,
        table: ttypes.Table,
        statistics: ttypes.ColumnStatistics,
        *,
        write_id: int = -1,
        parameters: Mapping[str, str] | None = None,
    ) -> EventRow:
        fields = _statistics_fields(table, statistics, write_id, parameters) | {"tableObjJson": write_struct(table)}
        return self._table_row(EventType.UPDATE_TBL_COL_STAT_EVENT, table, fields)

    def build_delete_table_column_statistics(self, table: ttypes.Table, column: str | None) -> EventRow:
        """``column`` is ``None`` if the statistics of all columns are deleted."""
        return self._table_row(
            EventType.DELETE_TBL_COL_STAT_EVENT, table, {"database": table.dbName, "colName": column}
        )

    def build_update_partition_column_statistics_each(
        self,
        table: ttypes.Table,
        changes: Iterable[tuple[Sequence[str], ttypes.ColumnStatistics, Mapping[str, str] | None]],
        *,
        write_id: int = -1,
    ) -> Iterator[EventRow]:
        """One event for each (partition values, statistics, the partition's new parameters)."""
        common = _members({"tableObjJson": write_struct(table)})
        return (
            self._table_row(
                EventType.UPDATE_PART_COL_STAT_EVENT,
                table,
                _statistics_fields(table, statistics, write_id, parameters) | {"partVals": list(values)},
                after=common,
            )
            for values, statistics, parameters in changes
        )

    def build_delete_partition_column_statistics(
        self, table: ttypes.Table, partition_name: str, partition_values: Sequence[str], column: str | None
    ) -> EventRow:
        """``column`` is ``None`` if the statistics of all columns are deleted."""
        fields = {
            "database": table.dbName,
            "colName": column,
            "partName": partition_name,
            "partValues": list(partition_values),
        }
        return self._table_row(EventType.DELETE_PART_COL_STAT_EVENT, table, fields)

    # ---- rows ----

    def _row(
        self,
        event_type: EventType,
        catalog: str | None,
        database: str | None,
        table: str | None,
        fields: Fields,
        *,
        before: str = "",
        after: str = "",
    ) -> EventRow:
        """`before` and `after`: encoded members that many events share (`_members`)."""
        message = encode_message(self._json(fields, before, after), self._format)
        return EventRow(event_type.value, catalog, database, table, message, self._format.value)

    def _json(self, fields: Fields, before: str = "", after: str = "") -> str:
        parts = (self._head, before, _members(fields), after, f'"timestamp":{int(self._clock.epoch_s())}')
        return f"{{{','.join(part for part in parts if part)}}}"

    def _table_fields(self, table: ttypes.Table) -> Fields:
        return {
            "db": table.dbName,
            "table": table.tableName,
            "tableType": table.tableType,
            "tableObjJson": write_struct(table),
        }

    def _table_row(
        self, event_type: EventType, table: ttypes.Table, fields: Fields, *, before: str = "", after: str = ""
    ) -> EventRow:
        owner = (_catalog_of(table), table.dbName, table.tableName)
        return self._row(event_type, *owner, fields, before=before, after=after)

    def _database_row(self, event_type: EventType, database: ttypes.Database, fields: Fields) -> EventRow:
        catalog = database.catalogName or DEFAULT_CATALOG
        return self._row(event_type, catalog, database.name, None, fields)

    def _partition_rows(
        self,
        event_type: EventType,
        table: ttypes.Table,
        common: Fields,
        texts: Iterable[str],
        fields: Callable[[int, list[str]], Fields],
    ) -> Iterator[EventRow]:
        """One event, or as many as the limit requires. ``texts`` are the entries by which size is measured; ``fields``
        takes the index of the first of some entries, and these.

        The JSON is measured before compression, since readers hold it. If gzip and base64 make it longer, it is halved
        until it fits.
        """
        limit = self._max_message_bytes
        room = max(1, limit - _weight(json.dumps(common)) - 1024)
        first = filled = 0
        some: list[str] = []
        for index, text in enumerate(texts):
            weight = _weight(text) + 256
            if some and filled + weight > room:
                yield from self._halved(event_type, table, common, fields, first, some)
                first, filled, some = index, 0, []
            some.append(text)
            filled += weight
        if some:
            yield from self._halved(event_type, table, common, fields, first, some)

    def _halved(
        self,
        event_type: EventType,
        table: ttypes.Table,
        common: Fields,
        fields: Callable[[int, list[str]], Fields],
        first: int,
        texts: list[str],
    ) -> list[EventRow]:
        row = self._table_row(event_type, table, {**common, **fields(first, texts)})
        if len(texts) <= 1 or len(row.message) <= self._max_message_bytes:
            return [row]
        middle = len(texts) // 2
        return [
            *self._halved(event_type, table, common, fields, first, texts[:middle]),
            *self._halved(event_type, table, common, fields, first + middle, texts[middle:]),
        ]


def _weight(text: str) -> int:
    """An upper bound of the text's size as a JSON string in UTF-8."""
    quotes = text.count('"') + text.count("\\")
    return (len(text) if text.isascii() else len(text.encode())) + quotes


def _catalog_of(owner: Any) -> str:
    return owner.catName or DEFAULT_CATALOG


def _key_values(table: ttypes.Table, values: Sequence[str]) -> dict[str, str]:
    return {key.name: value for key, value in zip(table.partitionKeys or (), values, strict=True)}


def _text_of(flag: bool) -> str:
    return "true" if flag else "false"


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _members(fields: Fields) -> str:
    """The members of a JSON object, without its braces."""
    return _ENCODER.encode(fields)[1:-1]


def _statistics_fields(
    table: ttypes.Table, statistics: ttypes.ColumnStatistics, write_id: int, parameters: Mapping[str, str] | None
) -> dict[str, Any]:
    return {
        "writeId": write_id,
        "database": table.dbName,
        "colStatsJson": write_struct(statistics),
        "parameters": None if parameters is None else dict(parameters),
    }
