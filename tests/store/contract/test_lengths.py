"""Texts as long as their columns are stored, longer ones are refused, on each kind of database in the same way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import CHAR, String, text

from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import METADATA
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, create_database, partition, table

T = TableName(CATALOG, "d", "t")


def name_database(server: Server, given: str) -> None:
    server.objects.writes.databases.create_database(ttypes.Database(name=given, locationUri="file:/w/d"))


def describe_database(server: Server, given: str) -> None:
    server.objects.writes.databases.create_database(ttypes.Database(name="e", description=given))


def name_table(server: Server, given: str) -> None:
    made = table("d", given)
    made.sd.location = "file:/w/t"
    server.objects.writes.tables.create_table(made)


def name_owner(server: Server, given: str) -> None:
    made = table("d", "u")
    made.owner = given
    server.objects.writes.tables.create_table(made)


def name_column(server: Server, given: str) -> None:
    made = table("d", "u")
    made.sd.cols[0].name = given
    server.objects.writes.tables.create_table(made)


def name_parameter(server: Server, given: str) -> None:
    server.objects.writes.tables.create_table(table("d", "u", **{given: "v"}))


def give_partition_value(server: Server, given: str) -> None:
    made = server.objects.reads.tables.get_table(T)
    added = partition(made, (given,))
    added.sd.location = "file:/w/p"
    server.objects.writes.partitions.add_partitions(T, [added])


def name_role(server: Server, given: str) -> None:
    server.auxiliary.roles.create_role(given, "o")


@pytest.mark.parametrize(
    ("write", "longest"),
    [
        (name_database, 128),
        (describe_database, 4000),
        (name_table, 256),
        (name_owner, 767),
        (name_column, 767),
        (name_parameter, 256),
        (give_partition_value, 256),
        (name_role, 128),
    ],
)
def test_a_text_that_is_longer_than_its_column(
    initialized_database_url: str, tmp_path: Path, write: Callable[[Server, str], None], longest: int
) -> None:
    with closing(Server(initialized_database_url, tmp_path / "warehouse")) as server:
        create_database(server.objects, "d")
        server.objects.writes.tables.create_table(table("d", "t", keys=(("p", "string"),)))
        head = server.log.current_event_id()
        with pytest.raises(ttypes.MetaException, match="The database refuses a value"):
            write(server, "x" * (longest + 1))
        assert server.log.current_event_id() == head
        write(server, "x" * longest)


def test_sqlite_is_told_the_length_of_each_text(sqlite_database: Database) -> None:
    """SQLite itself accepts any length: what is stored there could not be moved to another database."""
    with sqlite_database.loading() as connection:
        definitions = dict(
            connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table'")).tuples().all()
        )
    limited = 0
    for name, table_ in METADATA.tables.items():
        for column in table_.columns:
            length = column.type.length if isinstance(column.type, String) else None
            if length and not isinstance(column.type, CHAR):  # codes, which clients cannot choose
                assert f'CHECK (length("{column.name}") <= {length})' in definitions[name], column
                limited += 1
    assert limited > 200
