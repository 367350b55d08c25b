"""Serdes of tables to which schemas of the registry are mapped, by their name: they remain when the table is
dropped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import ByValues
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, create_database, partition, table

SCHEMA = ttypes.ISchemaName(CATALOG, "e", "i")
VERSION = ttypes.SchemaVersionDescriptor(SCHEMA, 1)
T = TableName(CATALOG, "d", "t")


def drop_table(server: Server) -> None:
    server.objects.writes.tables.drop_table(T, delete_data=False)


def drop_partition(server: Server) -> None:
    server.objects.writes.partitions.drop_partitions(T, ByValues(("1",)), delete_data=False)


def drop_database(server: Server) -> None:
    server.objects.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=False, cascade=True)


@pytest.mark.parametrize("drop", [drop_table, drop_partition, drop_database])
def test_what_has_the_serde_can_be_dropped(
    initialized_database_url: str, tmp_path: Path, drop: Callable[[Server], None]
) -> None:
    with closing(Server(initialized_database_url, tmp_path)) as server:
        create_database(server.objects, "d")
        create_database(server.objects, "e")
        made = table("d", "t", (("k", "string"),))
        added = partition(made, ("1",))
        (added if drop is drop_partition else made).sd.serdeInfo.name = "named"
        server.objects.writes.tables.create_table(made)
        server.objects.writes.partitions.add_partitions(T, [added])
        schemas = server.auxiliary.schemas
        schemas.create_schema(ttypes.ISchema(1, "i", CATALOG, "e", 1, 1, True))
        schemas.add_version(ttypes.SchemaVersion(SCHEMA, 1, 5, [ttypes.FieldSchema("a", "int")]))
        schemas.map_version_to_serde(VERSION, "named")
        before = schemas.get_version(VERSION).serDe
        assert before is not None
        assert before.serdeType is None
        drop(server)
        assert schemas.get_version(VERSION).serDe == before
        schemas.drop_version(VERSION)
        schemas.drop_schema(SCHEMA)
