"""Parameters whose values are NULL, written by a Hive with an embedded metastore, or on Oracle.

No message can contain them. They count as absent, as in Hive.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.schema import METADATA
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import encode_struct
from tests.cache.world import CATALOG, Server, create_database, partition, table

T = TableName(CATALOG, "d", "t")
PARAMETERS = tuple(one for name, one in sorted(METADATA.tables.items()) if "PARAM_VALUE" in one.c)


def add_null_parameters(server: Server) -> None:
    """One for each object that may have parameters."""
    with server.database.writing() as connection:
        for kind in PARAMETERS:
            [owner] = (column for column in kind.primary_key if column.name != "PARAM_KEY")
            [key] = owner.foreign_keys
            owners = connection.execute(select(key.column)).scalars().all()
            assert owners, kind.name
            rows = [{owner.name: one, "PARAM_KEY": "nothing", "PARAM_VALUE": None} for one in owners]
            connection.execute(insert(kind), rows)
        connection.commit()


def answers(server: Server) -> dict[str, Any]:
    """All replies that contain parameters."""
    reads = server.store.reads
    found: dict[str, Any] = {
        "database": [reads.databases.get_database(DatabaseName(CATALOG, "d"))],
        "table": [reads.tables.get_table(T)],
        "tables": reads.tables.get_tables(DatabaseName(CATALOG, "d"), ("t",)),
        "partition": [reads.partitions.get_partition(T, ("1",))],
        "partitions": reads.partitions.get_partitions(PartitionQuery(T)).partitions,
        "named partitions": reads.partitions.get_partitions(PartitionQuery(T, ByNames(("k=1", "k=2")))).partitions,
        "connector": [server.auxiliary.data_connectors.get("c")],
        "serde": [server.auxiliary.schemas.get_serde("s")],
        "version": server.auxiliary.schemas.get_all_versions(ttypes.ISchemaName(CATALOG, "d", "i")),
    }
    return {name: [encode_struct(one) for one in structs] for name, structs in found.items()}


def fill(server: Server) -> None:
    create_database(server.objects, "d")
    made = table("d", "t", (("k", "string"),), a="1")
    server.objects.writes.tables.create_table(made)
    added = [partition(made, (value,), a="1") for value in ("1", "2")]
    server.objects.writes.partitions.add_partitions(T, added)
    server.auxiliary.data_connectors.create(ttypes.DataConnector("c", "mysql", "jdbc:x", parameters={"a": "1"}))
    schemas = server.auxiliary.schemas
    schemas.add_serde(ttypes.SerDeInfo("s", "lib", {"a": "1"}))
    name = ttypes.ISchemaName(CATALOG, "d", "i")
    schemas.create_schema(ttypes.ISchema(1, "i", CATALOG, "d", 1, 1, True))
    schemas.add_version(ttypes.SchemaVersion(name, 1, 5, [ttypes.FieldSchema("a", "int")], serDe=ttypes.SerDeInfo("u")))


@pytest.mark.parametrize("is_warm", [False, True], ids=["asked once", "from memory"])
def test_they_count_as_absent(initialized_database_url: str, tmp_path: Path, is_warm: bool) -> None:
    with closing(Server(initialized_database_url, tmp_path)) as server:
        fill(server)
        add_null_parameters(server)
        if is_warm:
            answers(server)
        after = answers(server)
    with closing(Server(initialized_database_url, tmp_path)) as server:
        with server.database.writing() as connection:
            for kind in PARAMETERS:
                connection.execute(kind.delete().where(kind.c.PARAM_KEY == "nothing"))
            connection.commit()
        assert after == answers(server)
