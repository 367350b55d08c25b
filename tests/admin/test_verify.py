"""``verify`` detects a difference in each kind of cached data, and reports none where there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from hms_cache.cache.entries import STATISTICS, Entry, Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import TableMeta
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.wire.codec import encode_struct
from tests.admin.running import Running
from tests.admin.test_commands import new_partition, new_table

SALES = TableName("hive", "shop", "sales")
PLAIN = TableName("hive", "shop", "plain")
ACCOUNTS = TableName("hive", "shop", "accounts")
HIDDEN = TableName("hive", "shop", "hidden")
SHOP = DatabaseName("hive", "shop")
PARTITIONS = ("ds=1", "ds=2", "ds=3")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path, cache__warm="off", cache__refill="none")
    create(server)
    yield server
    server.close()


def create(server: Running) -> None:
    client = server.client
    client.create_database(ttypes.Database(name="shop"))
    client.create_table(new_table("sales", keys=("ds",)))
    client.create_table(new_table("plain"))
    hidden = new_table("hidden")
    hidden.parameters = {"hms_cache.sync": "false"}
    client.create_table(hidden)
    accounts = new_table("accounts")
    accounts.parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    client.create_table(accounts)
    client.add_partitions([new_partition(value) for value in ("1", "2", "3")])
    for table, partition in (("plain", None), *(("sales", name) for name in PARTITIONS)):
        description = ttypes.ColumnStatisticsDesc(
            isTblLevel=partition is None, dbName="shop", tableName=table, partName=partition
        )
        numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=5)
        column = ttypes.ColumnStatisticsObj("id", "int", ttypes.ColumnStatisticsData(longStats=numbers))
        statistics = ttypes.ColumnStatistics(description, [column])
        if partition is None:
            client.update_table_column_statistics(statistics)
        else:
            client.update_partition_column_statistics(statistics)
    client.create_function(
        ttypes.Function(
            functionName="twice",
            dbName="shop",
            className="a.B",
            ownerName="o",
            ownerType=1,
            createTime=1,
            functionType=1,
            resourceUris=[],
        )
    )


def read_everything(server: Running) -> None:
    """Twice, so that everything is cached, including encoded replies."""
    client = server.client
    for _ in range(2):
        client.get_all_databases()
        client.get_database("shop")
        client.get_all_tables("shop")
        client.get_functions("shop", "*")
        client.get_partitions("shop", "sales", -1)
        for table in ("plain", "accounts", "hidden"):
            client.get_table("shop", table)
        client.get_primary_keys(ttypes.PrimaryKeysRequest(db_name="shop", tbl_name="plain"))
        client.get_table_column_statistics("shop", "plain", "id")
        client.get_partitions_statistics_req(ttypes.PartitionsStatsRequest("shop", "sales", ["id"], list(PARTITIONS)))
        client.get_aggr_stats_for(ttypes.PartitionsStatsRequest("shop", "sales", ["id"], list(PARTITIONS)))


def shared_of(server: Running) -> SharedCache:
    assert server.sources.cache is not None
    return server.sources.cache.shared


def other_statistics(shared: SharedCache, table: TableName, facet: Facet, aggregate: bool) -> None:
    for answer in shared.tables[table].facets[facet].values():
        if isinstance(answer, dict) is not aggregate:
            columns = answer.colStats if aggregate else [one.statistics for found in answer.values() for one in found]
            columns[0].statsData.longStats.numDVs += 1


def other_parameter(shared: SharedCache) -> None:
    entry = shared.tables[PLAIN]
    entry.facets[Facet.TABLE].parameters["planted"] = "x"
    entry.encoded_table = encode_struct(entry.facets[Facet.TABLE])


def lost_partition(shared: SharedCache) -> None:
    held = shared.tables[SALES].facets[Facet.PARTITIONS]
    shared.tables[SALES].facets[Facet.PARTITIONS] = PartitionSet(held.keys, held.all().structs()[:2], complete=True)


def lost_column_statistics(shared: SharedCache) -> None:
    for answer in shared.tables[PLAIN].facets[Facet.TABLE_STATISTICS].values():
        answer["id"] = ()


def other_reply(shared: SharedCache, entry: Entry, method: str) -> None:
    (answer,) = (found for key in entry.answers if (found := shared.answers.find(key)) and found.method == method)
    right = answer.render
    answer.render = lambda sequence: bytes(right(sequence)).replace(b"plain", b"plane")


def excluded(shared: SharedCache) -> None:
    entry = shared.tables[PLAIN]
    entry.facets, entry.weights = {Facet.EXCLUDED: True}, {Facet.EXCLUDED: entry.weight()}
    entry.table_id = entry.encoded_table = None
    for facet in STATISTICS:
        shared.statistics_weight -= shared.statistics.pop((PLAIN, facet), 0)
    shared.answers.drop(entry)
    shared.indexes.note(PLAIN, entry)
    shared.names_by_id = {number: name for number, name in shared.names_by_id.items() if name != PLAIN}


def read_as_transactional(shared: SharedCache) -> None:
    entry = shared.tables[PLAIN]
    entry.is_transactional = True
    shared.indexes.note(PLAIN, entry)


PLANTED: dict[str, tuple[Callable[[SharedCache], object], str]] = {
    "table": (other_parameter, "shop.plain: the table differs"),
    "tag": (
        lambda shared: setattr(
            shared.tables[ACCOUNTS], "tag", ValidWriteIdList.parse("shop.accounts:9:9223372036854775807::")
        ),
        "shop.accounts: the write-id tag says too much",
    ),
    "transactional": (
        read_as_transactional,
        "shop.plain: it is read as transactional",
    ),
    "excluded": (excluded, "shop.plain: it is excluded from the cache"),
    "constraints": (
        lambda shared: setattr(shared.tables[PLAIN].facets[Facet.CONSTRAINTS], "notNullConstraints", None),
        "shop.plain: constraints differ",
    ),
    "partition lost": (lost_partition, "partition ds=3 is in the database and not"),
    "table statistics": (
        lambda shared: other_statistics(shared, PLAIN, Facet.TABLE_STATISTICS, False),
        "shop.plain: hive statistics of id of the table differ",
    ),
    "table statistics lost": (lost_column_statistics, "shop.plain: hive statistics of id of the table differ"),
    "partition statistics": (
        lambda shared: other_statistics(shared, SALES, Facet.PARTITION_STATISTICS, False),
        "shop.sales: hive statistics of id of 3 partitions differ",
    ),
    "merged statistics": (
        lambda shared: other_statistics(shared, SALES, Facet.PARTITION_STATISTICS, True),
        "shop.sales: hive statistics of id merged over 3 partitions differ",
    ),
    "database": (
        lambda shared: setattr(shared.databases[SHOP].facets[Facet.DATABASE], "description", "planted"),
        "hive.shop: database differ",
    ),
    "table names": (
        lambda shared: (
            shared.databases[SHOP]
            .facets[Facet.TABLE_NAMES]
            .update(invented=TableMeta(dbName="shop", tableName="invented"))
        ),
        "hive.shop: table_names differ",
    ),
    "table type": (
        lambda shared: setattr(shared.databases[SHOP].facets[Facet.TABLE_NAMES]["plain"], "tableType", "VIRTUAL_VIEW"),
        "hive.shop: table_names differ",
    ),
    "functions": (
        lambda shared: setattr(shared.databases[SHOP].facets[Facet.FUNCTIONS][0], "className", "planted"),
        "hive.shop: functions differ",
    ),
    "database names": (
        lambda shared: shared.catalogs["hive"].facets[Facet.DATABASE_NAMES].append("invented"),
        "hive: database_names differ",
    ),
    "reply about a table": (
        lambda shared: other_reply(shared, shared.tables[PLAIN], "get_table"),
        "a cached reply differs: get_table",
    ),
    "reply about names": (
        lambda shared: other_reply(shared, shared.databases[SHOP], "get_all_tables"),
        "a cached reply differs: get_all",
    ),
}


def test_a_difference_of_each_kind_is_found(running: Running) -> None:
    shared = shared_of(running)
    for name, (plant, expected) in PLANTED.items():
        read_everything(running)
        result, _ = running.command("verify")
        assert result["ok"], (name, result)
        numbers = result["numbers"]
        assert (numbers["tables"], numbers["databases"], numbers["catalogs"], numbers["undecided"]) == (4, 1, 1, 0)
        assert numbers["partitions"] == 3 and numbers["statistics"] == 3 and numbers["replies"] >= 8
        with shared.view():
            plant(shared)
        result, finished = running.command("verify")
        found = " ".join(result["details"])
        assert not result["ok"] and not finished["ok"] and expected in found, (name, result)
        running.command("flush")


def test_every_facet_is_compared(running: Running) -> None:
    """A facet that is added to the cache needs a difference planted here."""
    read_everything(running)
    shared = shared_of(running)
    with shared.view():
        entries = (*shared.tables.values(), *shared.databases.values(), *shared.catalogs.values())
        assert {facet for entry in entries for facet in entry.facets} == set(Facet)


def test_a_sample_has_tables_and_databases(running: Running) -> None:
    read_everything(running)
    numbers = running.command("verify", "sample=1&seed=3")[0]["numbers"]
    assert (numbers["tables"], numbers["databases"], numbers["catalogs"]) == (1, 1, 1)


@pytest.mark.parametrize("staleness", [0, "inf"])
def test_nothing_differs_while_everything_changes(tmp_path: Path, staleness: object) -> None:
    server = Running(tmp_path, cache__warm="off", cache__max_staleness_ms=staleness)
    other = Running(tmp_path, cache__enabled=False)
    try:
        create(server)
        failures: list[BaseException] = []

        def write() -> None:
            try:
                for round_ in range(6):
                    change_everything(other, round_)
            except BaseException as error:
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        compared = 0
        while writer.is_alive() or not compared:
            read_everything_that_is_there(server)
            result, _ = server.command("verify")
            assert result["ok"], result
            compared += sum(result["numbers"][kind] for kind in ("tables", "databases", "catalogs"))
        writer.join()
        assert failures == []
        server.command("sync", "wait_s=30")
        read_everything(server)
        result, _ = server.command("verify")
        assert result["ok"] and result["numbers"]["undecided"] == 0 and result["numbers"]["replies"] >= 8, result
    finally:
        other.close()
        server.close()


def read_everything_that_is_there(server: Running) -> None:
    try:
        read_everything(server)
    except (ttypes.NoSuchObjectException, ttypes.MetaException):
        return  # it was dropped just then


def change_everything(server: Running, round_: int) -> None:
    """One change of each kind, all logged."""
    client = server.client
    plain = client.get_table("shop", "plain")
    plain.parameters["round"] = str(round_)
    client.alter_table("shop", "plain", plain)
    client.add_partitions([new_partition(f"r{round_}")])
    changed = client.get_partition("shop", "sales", ["1"])
    changed.parameters["round"] = str(round_)
    client.alter_partition("shop", "sales", changed)
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=round_ + 1)
    column = ttypes.ColumnStatisticsObj("id", "int", ttypes.ColumnStatisticsData(longStats=numbers))
    for table, partition in (("plain", None), ("sales", "ds=2")):
        description = ttypes.ColumnStatisticsDesc(
            isTblLevel=partition is None, dbName="shop", tableName=table, partName=partition
        )
        statistics = ttypes.ColumnStatistics(description, [column])
        if partition is None:
            client.update_table_column_statistics(statistics)
        else:
            client.update_partition_column_statistics(statistics)
    client.create_table(new_table(f"t{round_}"))
    client.create_database(ttypes.Database(name=f"d{round_}"))
    key = ttypes.SQLPrimaryKey(
        table_db="shop", table_name="plain", column_name="id", key_seq=1, pk_name=f"pk{round_}", enable_cstr=False,
        validate_cstr=False, rely_cstr=False,
    )  # fmt: skip
    client.add_primary_key(ttypes.AddPrimaryKeyRequest([key]))
    client.drop_constraint(ttypes.DropConstraintRequest("shop", "plain", f"pk{round_}"))
    client.drop_partition_by_name("shop", "sales", f"ds=r{round_}", True)
    client.drop_table("shop", f"t{round_}", True)
    client.drop_database(f"d{round_}", True, False)
