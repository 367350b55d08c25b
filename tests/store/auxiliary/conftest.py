"""Fixtures of the tests of the auxiliary stores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.auxiliary.auxiliary_store import AuxiliaryStores
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.warehouse import Warehouse
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.manual_clock import ManualClock


@dataclass
class World:
    """The stores on one database, and the clock that they share."""

    database: Database
    clock: ManualClock
    objects: ObjectStore
    stores: AuxiliaryStores

    def create_table(self, name: str, *keys: str) -> None:
        """A table in the database `d` with the columns a and b."""
        descriptor = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("a", "int"), ttypes.FieldSchema("b", "string")],
            inputFormat="i",
            outputFormat="o",
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(serializationLib="l", parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
        partition_keys = [ttypes.FieldSchema(key, "string") for key in keys]
        self.objects.writes.tables.create_table(
            ttypes.Table(
                tableName=name,
                dbName="d",
                catName="hive",
                owner="o",
                sd=descriptor,
                partitionKeys=partition_keys,
                parameters={},
                tableType="MANAGED_TABLE",
            )
        )

    def add_partition(self, table: str, *values: str) -> None:
        """A partition of a table of `d`."""
        sd = self.objects.reads.tables.get_table(TableName("hive", "d", table)).sd
        sd.location = None
        partition = ttypes.Partition(list(values), "d", table, sd=sd, parameters={}, catName="hive")
        self.objects.writes.partitions.add_partitions(TableName("hive", "d", table), [partition])


def make_world(database: Database, directory: Path) -> World:
    """With an empty database `d`."""
    clock = ManualClock()
    warehouse = Warehouse(WarehouseSettings(directory=f"file:{directory}/warehouse"))
    context = StoreContext(database, MessageBuilder(clock=clock), warehouse, Settings(), clock)
    world = World(database, clock, ObjectStore(context), AuxiliaryStores(context))
    world.objects.writes.databases.create_database(ttypes.Database(name="d", ownerName="o", catalogName="hive"))
    return world


@pytest.fixture
def world(initialized_database: Database, tmp_path: Path) -> World:
    """On each kind of database in turn."""
    return make_world(initialized_database, tmp_path)


@pytest.fixture
def sqlite_world(sqlite_database: Database, tmp_path: Path) -> World:
    """On SQLite, for tests that do not depend on the database."""
    return make_world(sqlite_database, tmp_path)
