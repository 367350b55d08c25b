"""What a database finds by another spelling of a catalog's name is never cached, since no event contains this
spelling."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import DatabaseName, TableName, table_name
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.cache.world import CATALOG, Server, changed_table, create_database, partition, table


@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
@pytest.mark.parametrize("spelling", ["hiv\u00e9", "h\u00efve"])
def test_a_catalog_by_another_spelling(
    database_kind: str, empty_database: Database, database_url: str, tmp_path: Path, spelling: str
) -> None:
    init_schema(empty_database)
    with empty_database.writing() as connection:
        # As in Hive's script for MySQL.
        connection.execute(text("ALTER TABLE DBS DROP FOREIGN KEY CTLG_FK1"))
        of_hive = "VARCHAR(256) CHARACTER SET latin1 NOT NULL DEFAULT 'hive'"
        connection.execute(text(f"ALTER TABLE DBS MODIFY CTLG_NAME {of_hive}"))
        connection.commit()
    with closing(Server(database_url, tmp_path / "warehouse")) as server:
        create_database(server.objects, "d")
        made = table("d", "t", (("p", "string"),))
        server.objects.writes.tables.create_table(made)
        name, other = TableName(CATALOG, "d", "t"), TableName(spelling.lower(), "d", "t")
        for number in (1, 2):
            server.objects.writes.partitions.add_partitions(name, [partition(made, (str(number),))])
            changed = changed_table(server.objects, "d", "t", k=str(number))
            server.objects.writes.tables.alter_table(name, changed)
            server.poller.step()
            for requested in (name, other, name, other):
                reads = server.store.reads
                assert reads.tables.get_table(requested).parameters["k"] == str(number), requested
                assert len(reads.partitions.get_partitions(PartitionQuery(requested)).partitions) == number, requested
                # A name is normalized when a request arrives, and by this read: no catalog is treated like a missing
                # one.
                found = reads.tables.get_table_meta(requested.catalog, "d", None)
                assert [one.tableName for one in found] == (["t"] if requested == name else [])
                assert reads.databases.get_database(requested.in_database).name == "d"
            assert Reason.HIT in server.reasons()
            with pytest.raises(NoSuchObjectException):
                server.store.reads.tables.get_table(table_name(spelling, "d", "t"))
        held = server.cache.shared
        assert {key.catalog for key in held.tables} | {key.catalog for key in held.databases} == {CATALOG}
        assert DatabaseName(*other[:2]) not in held.databases
