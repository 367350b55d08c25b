"""A store over a fresh database, with partitioned tables in it, for the tests of partitions and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import insert, select

from hms_cache.clock import Clock, SystemClock
from hms_cache.config import Settings
from hms_cache.config.sections import WarehouseSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database, features_of
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.partition_store import PartitionWriter, StoredPartitions
from hms_cache.store.rows.storage_descriptor_writes import insert_storage_descriptors
from hms_cache.store.schema import DBS, NOTIFICATION_LOG, PARTITION_KEYS, TABLE_PARAMS, TBLS
from hms_cache.store.warehouse import Warehouse
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    FieldSchema,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)

KEYS = (("dt", "string"), ("hr", "int"))
COLUMNS = (("id", "bigint"), ("v", "string"))


class PartitionCatalog:
    """A database `d`, its store context, and direct access to both for tests."""

    def __init__(
        self,
        database: Database,
        directory: Path,
        settings: Settings | None = None,
        *,
        files: Literal["manage", "leave"] = "manage",
        clock: Clock | None = None,
    ) -> None:
        self.database = database
        self.root = directory
        self.context = StoreContext(
            self.database,
            MessageBuilder(MessageFormat.JSON),
            Warehouse(WarehouseSettings(directory=str(directory), files=files)),
            settings or Settings(),
            clock or SystemClock(),
        )
        self.reads = StoredPartitions(self.context)
        self.writes = PartitionWriter(self.context)
        run_write(self.database, self._create_database, ids={"MDatabase": 1})

    def _create_database(self, transaction: WriteTransaction) -> None:
        self.database_id = transaction.id("MDatabase")
        row = {"DB_ID": self.database_id, "NAME": "d", "CTLG_NAME": "hive", "TYPE": "NATIVE"}
        row = features_of(transaction.connection).writable(DBS, {**row, "DB_LOCATION_URI": f"file:{self.root}/d.db"})
        transaction.connection.execute(insert(DBS).values(row))

    def create_table(
        self,
        name: str = "t",
        keys: Sequence[tuple[str, str]] = KEYS,
        *,
        table_type: str = "MANAGED_TABLE",
        parameters: Mapping[str, str] | None = None,
        columns: Sequence[tuple[str, str]] = COLUMNS,
    ) -> str:
        """Creates the table. Returns its location."""
        location = f"file:{self.root}/d.db/{name}"

        def create(transaction: WriteTransaction) -> None:
            [sd_id] = insert_storage_descriptors(transaction, [descriptor(location, columns)])
            table_id = transaction.id("MTable")
            connection = transaction.connection
            connection.execute(
                insert(TBLS).values(
                    TBL_ID=table_id,
                    DB_ID=self.database_id,
                    SD_ID=sd_id,
                    TBL_NAME=name,
                    TBL_TYPE=table_type,
                    OWNER="o",
                    OWNER_TYPE="USER",
                    CREATE_TIME=1,
                    LAST_ACCESS_TIME=0,
                    RETENTION=0,
                    IS_REWRITE_ENABLED=False,
                )
            )
            for position, (key, type_) in enumerate(keys):
                connection.execute(
                    insert(PARTITION_KEYS).values(TBL_ID=table_id, PKEY_NAME=key, PKEY_TYPE=type_, INTEGER_IDX=position)
                )
            for key, value in (parameters or {}).items():
                connection.execute(insert(TABLE_PARAMS).values(TBL_ID=table_id, PARAM_KEY=key, PARAM_VALUE=value))

        run_write(self.database, create)
        return location

    def rows(self, table: Any, *columns: Any) -> list[Any]:
        """The contents of the database, read directly."""
        with self.database.loading() as connection:
            return list(connection.execute(select(*(columns or table.c))).all())

    def events(self) -> list[tuple[str, str | None]]:
        """(type, table) of all events, in order."""
        rows = self.rows(
            NOTIFICATION_LOG, NOTIFICATION_LOG.c.EVENT_ID, NOTIFICATION_LOG.c.EVENT_TYPE, NOTIFICATION_LOG.c.TBL_NAME
        )
        return [(row[1], row[2]) for row in sorted(rows)]

    def statements(self) -> int:
        """Statements sent so far."""
        return int(self.database.statements.value())


def descriptor(
    location: str | None = None, columns: Sequence[tuple[str, str]] = COLUMNS, **changes: Any
) -> StorageDescriptor:
    """A Parquet descriptor as sent by Spark."""
    package = "org.apache.hadoop.hive.ql.io.parquet"
    values: dict[str, Any] = {
        "cols": [FieldSchema(name=name, type=type_) for name, type_ in columns],
        "location": location,
        "inputFormat": f"{package}.MapredParquetInputFormat",
        "outputFormat": f"{package}.MapredParquetOutputFormat",
        "compressed": False,
        "numBuckets": -1,
        "serdeInfo": SerDeInfo(
            serializationLib=f"{package}.serde.ParquetHiveSerDe", parameters={"serialization.format": "1"}
        ),
        "bucketCols": [],
        "sortCols": [],
        "parameters": {},
        "skewedInfo": SkewedInfo([], [], {}),
        "storedAsSubDirectories": False,
    }
    return StorageDescriptor(**{**values, **changes})


def partition(*values: str, table: str = "t", **changes: Any) -> Partition:
    """A partition as a client sends it."""
    fields: dict[str, Any] = {
        "values": list(values),
        "dbName": "d",
        "tableName": table,
        "createTime": 0,
        "lastAccessTime": 0,
        "sd": descriptor(),
        "parameters": {},
    }
    return Partition(**{**fields, **changes})
