"""A store under test, with access to its database and files, and the objects that tests create."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.message_reader import read_event
from hms_cache.store.contract.environment import (
    NO_OPTIONS,
    EnvironmentOptions,
    ExpectedParameter,
    Writer,
    environment_options,
)
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.sequences import ID_COLUMNS
from hms_cache.store.schema import METADATA, NOTIFICATION_LOG
from hms_cache.thrift_gen.hive_metastore import ttypes

CATALOG = "hive"
DATABASE = "d"

_COUNTED = sorted(set(METADATA.tables) - {"SEQUENCE_TABLE", "NOTIFICATION_LOG", "NOTIFICATION_SEQUENCE"})

IDS_AT_HAND = 100
"""Of each class, before statements are counted: else a write takes a new block of ids now and then, by more of them."""


@dataclass
class StoreUnderTest:
    """`store` is tested; `database` is read directly."""

    store: MetadataStore
    context: StoreContext
    directory: Path
    """The warehouse's directory."""

    first_event_id: int = 0
    """Events before this one were written by other tests."""

    def __post_init__(self) -> None:
        with self.database.loading() as connection:
            last = connection.execute(select(func.max(NOTIFICATION_LOG.c.EVENT_ID))).scalar()
        self.first_event_id = 1 if last is None else last + 1

    @property
    def database(self) -> Database:
        return self.context.database

    def rows(self, *columns: Any) -> list[Any]:
        """The rows in the database."""
        with self.database.loading() as connection:
            return list(connection.execute(select(*columns)).all())

    def counts(self) -> dict[str, int]:
        """As `rows_of_tables`."""
        return rows_of_tables(self.database)

    def notifications(self) -> list[NotificationRow]:
        """All rows of the log since the test began, by id."""
        log = NOTIFICATION_LOG.c
        fields = select(
            log.EVENT_ID,
            log.EVENT_TIME,
            log.EVENT_TYPE,
            log.CAT_NAME,
            log.DB_NAME,
            log.TBL_NAME,
            log.MESSAGE,
            log.MESSAGE_FORMAT,
        )
        with self.database.loading() as connection:
            rows = connection.execute(fields.where(log.EVENT_ID >= self.first_event_id).order_by(log.EVENT_ID)).all()
        return [NotificationRow(*row) for row in rows]

    def events(self) -> list[tuple[str, str | None, str | None]]:
        """(type, database, table) of all events, in order."""
        return [(row.event_type, row.database, row.table) for row in self.notifications()]

    def last_event(self) -> Any:
        """The last event, decoded."""
        return read_event(self.notifications()[-1])

    @contextmanager
    def counting(self) -> Iterator[list[int]]:
        """Yields a list whose only element is the number of statements sent within the block, set at the end."""
        blocks = self.database.id_blocks
        if blocks is not None:
            blocks.give_back(blocks.reserve(dict.fromkeys(ID_COLUMNS, IDS_AT_HAND)))
        before = int(self.database.statements.value())
        counted: list[int] = []
        yield counted
        counted.append(int(self.database.statements.value()) - before)

    def path(self, location: str) -> Path:
        """The local path of a `file:` location."""
        assert location.startswith("file:/")
        return Path(location.removeprefix("file:"))

    def files(self) -> list[str]:
        """All files and directories of the warehouse, relative, sorted."""
        return sorted(
            os.path.relpath(os.path.join(root, name), self.directory)
            for root, directories, files in os.walk(self.directory)
            for name in [*directories, *files]
        )

    # Objects

    def create_database(self, name: str = DATABASE, **fields: Any) -> None:
        """Creates a database."""
        self.store.writes.databases.create_database(ttypes.Database(name=name, ownerName="o", **fields))

    def create_table(self, name: str = "t", **fields: Any) -> ttypes.Table:
        """Creates a table in `DATABASE`; returns it as read."""
        self.store.writes.tables.create_table(table(name, **fields))
        return self.get(name, fields.get("dbName", DATABASE))

    def get(self, name: str = "t", database: str = DATABASE) -> ttypes.Table:
        """Returns a copy of the table that may be changed; a store's answers must not be changed."""
        return copy.deepcopy(self.store.reads.tables.get_table(TableName(CATALOG, database, name)))

    def alter(
        self,
        name: str,
        new: ttypes.Table,
        environment_context: EnvironmentOptions = NO_OPTIONS,
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
        expected_parameter: ExpectedParameter | None = None,
    ) -> None:
        """Alters a table of `DATABASE`."""
        writer = Writer(write_id, valid_write_ids, environment_context)
        self.store.writes.tables.alter_table(
            TableName(CATALOG, DATABASE, name), new, writer=writer, expected_parameter=expected_parameter
        )

    def drop(self, name: str = "t", *, delete_data: bool = True, **more: Any) -> None:
        """Drops a table of `DATABASE`."""
        self.store.writes.tables.drop_table(TableName(CATALOG, DATABASE, name), delete_data=delete_data, **more)

    def add_partitions(
        self,
        name: str,
        *values: tuple[str, ...],
        location: str | None = None,
        parameters: dict[str, str] | None = None,
    ) -> None:
        """Adds partitions like their table, with default locations or, for a single one, the given one."""
        owner = self.get(name)
        partitions = []
        for each in values:
            descriptor = table(name).sd
            descriptor.cols = list(owner.sd.cols)
            descriptor.location = location
            partitions.append(
                ttypes.Partition(
                    values=list(each),
                    dbName=owner.dbName,
                    tableName=name,
                    sd=descriptor,
                    parameters=dict(parameters or {}),
                    catName=CATALOG,
                )
            )
        self.store.writes.partitions.add_partitions(TableName(CATALOG, str(owner.dbName), name), partitions)

    def partitions(self, name: str) -> list[ttypes.Partition]:
        """All partitions of a table, by name."""
        return copy.deepcopy(
            self.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, DATABASE, name))).partitions
        )


def rows_of_tables(database: Database) -> dict[str, int]:
    """Rows per table, without the tables of ids and events; in one statement, as it is read after each test."""
    with database.loading() as connection:
        quote = connection.dialect.identifier_preparer.quote
        counts = [f"SELECT '{name}', COUNT(*) FROM {quote(name)}" for name in _COUNTED]
        return dict(connection.exec_driver_sql(" UNION ALL ".join(counts)).tuples().all())


def columns(*pairs: tuple[str, str]) -> list[ttypes.FieldSchema]:
    """Columns without comments."""
    return [ttypes.FieldSchema(name=name, type=kind) for name, kind in pairs]


def table(name: str = "t", **fields: Any) -> ttypes.Table:
    """A Parquet table as sent by Spark, a transactional one in ORC; `cols`, `location` and `keys` are put in their
    places."""
    package = "org.apache.hadoop.hive.ql.io.parquet"
    formats = (f"{package}.MapredParquetInputFormat", f"{package}.MapredParquetOutputFormat")
    if fields.get("parameters", {}).get("transactional"):
        formats = (
            "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        )
    descriptor = ttypes.StorageDescriptor(
        cols=fields.pop("cols", None) or columns(("id", "bigint"), ("v", "string")),
        location=fields.pop("location", None),
        inputFormat=formats[0],
        outputFormat=formats[1],
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(
            serializationLib=f"{package}.serde.ParquetHiveSerDe", parameters={"serialization.format": "1"}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
        skewedInfo=ttypes.SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
    )
    values: dict[str, Any] = {
        "tableName": name,
        "dbName": DATABASE,
        "owner": "o",
        "createTime": 0,
        "lastAccessTime": 0,
        "retention": 0,
        "sd": descriptor,
        "partitionKeys": columns(*fields.pop("keys", ())),
        "parameters": {},
        "tableType": "MANAGED_TABLE",
    }
    return ttypes.Table(**(values | fields))


def external(name: str = "t", **fields: Any) -> ttypes.Table:
    """The same as an external table."""
    parameters = {"EXTERNAL": "TRUE", **fields.pop("parameters", {})}
    return table(name, tableType="EXTERNAL_TABLE", parameters=parameters, **fields)


def as_received(struct: Any) -> Any:
    """Returns the struct as a reader of its encoded form gets it: absent fields with defaults have these."""
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocol(buffer))
    copy = type(struct)()
    copy.read(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())))
    return copy


def environment(**properties: str) -> EnvironmentOptions:
    """An environment context."""
    return environment_options(ttypes.EnvironmentContext(properties=properties))
