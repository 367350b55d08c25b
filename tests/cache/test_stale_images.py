"""Alters by a metastore that has read the table before another server's alter, and reverts it (P1).

Hive reads what it alters without a lock, and with its CachedStore from a copy that may be minutes old. Both images in
its event show the table without the other alter, so they are equal in what it reverts.
`tests/differential/test_one_database.py` shows Hive 4.0.1 doing it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, delete, update

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.contract.partitions import ByFilter, PartitionQuery
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.schema import DATABASE_PARAMS, PARTITION_KEYS, TABLE_PARAMS, TBLS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

T = TableName(CATALOG, "d", "t")
D = DatabaseName(CATALOG, "d")

TakeBack = Callable[[Connection, int], object]
"""What Hive's alter does to the rows of the table with this id."""


def set_comment(one: ttypes.Table) -> None:
    one.parameters["comment"] = "theirs"


def set_owner(one: ttypes.Table) -> None:
    one.owner = "theirs"


def set_key_type(one: ttypes.Table) -> None:
    one.partitionKeys[0].type = "int"


ALTERS: dict[str, tuple[Callable[[ttypes.Table], None], TakeBack]] = {
    "comment": (
        set_comment,
        lambda connection, table_id: connection.execute(
            delete(TABLE_PARAMS).where(TABLE_PARAMS.c.TBL_ID == table_id, TABLE_PARAMS.c.PARAM_KEY == "comment")
        ),
    ),
    "owner": (
        set_owner,
        lambda connection, table_id: connection.execute(
            update(TBLS).where(TBLS.c.TBL_ID == table_id).values(OWNER="tester")
        ),
    ),
    "key": (
        set_key_type,
        lambda connection, table_id: connection.execute(
            update(PARTITION_KEYS).where(PARTITION_KEYS.c.TBL_ID == table_id).values(PKEY_TYPE="string")
        ),
    ),
}


def disagreements(server: Server) -> list[str]:
    """Reads that memory answers differently than the database."""
    reads = {
        "meta": lambda reads: reads.tables.get_table_meta(CATALOG, "d", "*"),
        "filter": lambda reads: reads.partitions.get_partitions(PartitionQuery(T, ByFilter("p = '1'"))),
        "numeric filter": lambda reads: reads.partitions.get_partitions(PartitionQuery(T, ByFilter("p = 1"))),
        "all": lambda reads: reads.partitions.get_partitions(PartitionQuery(T)),
        "table": lambda reads: reads.tables.get_table(T),
    }
    return [
        name
        for name, ask in reads.items()
        for _ in range(2)
        if encoded(lambda ask=ask: ask(server.store.reads)) != encoded(lambda ask=ask: ask(server.objects.reads))
    ]


def make(server: Server) -> ttypes.Table:
    """The table as Hive reads it, before others alter it."""
    create_database(server.objects, "d")
    server.objects.writes.tables.create_table(table("d", "t", (("p", "string"),)))
    found = server.objects.reads.tables.get_table(T)
    server.objects.writes.partitions.add_partitions(T, [partition(found, (value,)) for value in ("1", "01", "2")])
    return found


def alter_as_hive(server: Server, read: ttypes.Table, take_back: TakeBack) -> None:
    """Sets a parameter of the table as Hive has read it."""
    altered = copy.deepcopy(read)
    altered.parameters["k"] = "new"

    def alter(transaction: WriteTransaction) -> None:
        connection = transaction.connection
        take_back(connection, read.id)
        connection.execute(TABLE_PARAMS.insert().values(TBL_ID=read.id, PARAM_KEY="k", PARAM_VALUE="new"))
        transaction.append_event(MessageBuilder(MessageFormat.GZIP_JSON).build_alter_table(read, altered))

    run_write(server.database, alter)


@pytest.mark.parametrize("peers", ["hive4", "hive3"])
@pytest.mark.parametrize("name", ALTERS)
def test_what_an_alter_takes_back_unseen_is_not_held(name: str, peers: str, servers: MakeServer) -> None:
    here, elsewhere = servers(CacheOptions(peers=peers)), servers(CacheOptions(peers=peers))
    read = make(elsewhere)
    change, take_back = ALTERS[name]
    altered = copy.deepcopy(read)
    change(altered)
    elsewhere.objects.writes.tables.alter_table(T, altered)
    assert disagreements(here) == []
    alter_as_hive(elsewhere, read, take_back)
    assert disagreements(here) == []


def test_what_is_loaded_while_an_alter_takes_it_back_is_not_kept(servers: MakeServer) -> None:
    """The load shows the table before Hive's alter, and would be installed after it."""
    here, elsewhere = servers(CacheOptions(peers="hive4")), servers(CacheOptions(peers="hive4"))
    read = make(elsewhere)
    change, take_back = ALTERS["key"]
    altered = copy.deepcopy(read)
    change(altered)
    elsewhere.objects.writes.tables.alter_table(T, altered)
    here.store.reads.tables.get_table(T)
    here.store.reads.tables.get_table_meta(CATALOG, "d", "*")
    alters = iter((read,))

    def overtake() -> None:
        for one in alters:
            alter_as_hive(elsewhere, one, take_back)
            here.poller.step()

    here.during_loads(overtake)
    here.store.reads.partitions.get_partitions(PartitionQuery(T))
    assert disagreements(here) == []


def test_what_an_alter_leaves_as_it_is_held_stays(servers: MakeServer) -> None:
    here, elsewhere = servers(CacheOptions(peers="hive4")), servers()
    read = make(elsewhere)
    assert disagreements(here) == []
    alter_as_hive(elsewhere, read, lambda connection, table_id: None)
    here.poller.step()
    entry, of_database = here.cache.shared.entry(T), here.cache.shared.entry(D)
    assert entry is not None and of_database is not None
    assert Facet.PARTITIONS in entry.facets
    assert Facet.TABLE_NAMES in of_database.facets
    assert disagreements(here) == []


def test_a_database_that_must_not_be_cached_any_more_is_not(servers: MakeServer) -> None:
    """Hive alters another property of a database from a copy in which `hms_cache.sync` is still set."""
    here, elsewhere = servers(CacheOptions(peers="hive4")), servers(CacheOptions(peers="hive4"))
    make(elsewhere)
    read = copy.deepcopy(elsewhere.objects.reads.databases.get_database(D))
    read.parameters = {"hms_cache.sync": "false"}
    altered = copy.deepcopy(read)
    altered.parameters["k"] = "new"
    assert disagreements(here) == []

    def alter(transaction: WriteTransaction) -> None:
        rows = [{"PARAM_KEY": key, "PARAM_VALUE": value} for key, value in altered.parameters.items()]
        connection = transaction.connection
        database_id = connection.exec_driver_sql("SELECT DB_ID FROM DBS WHERE NAME = 'd'").scalar()
        connection.execute(DATABASE_PARAMS.insert(), [{"DB_ID": database_id, **row} for row in rows])
        row = MessageBuilder().build_alter_database(read, altered)
        assert row.event_type == EventType.ALTER_DATABASE
        transaction.append_event(row)

    run_write(elsewhere.database, alter)
    here.store.reads.tables.get_table(T)
    entry = here.cache.shared.entry(T)
    assert entry is not None and [*entry.facets] == [Facet.EXCLUDED]
    assert disagreements(here) == []
