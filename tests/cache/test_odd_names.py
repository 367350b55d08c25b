"""Names with characters that have a meaning elsewhere: in patterns of names, in LIKE, in paths, in write-id lists.

Databases and tables may contain them with `metastore.support.special.characters.tablename`, which is on by default.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.cache.event_rules import changed_columns
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.verification.verify import verify
from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.notifications import events as ev
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import AllPartitions, PartitionQuery
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table

NAMES = [
    "a|b",
    "a|",
    "|",
    "a||b",
    "a | b",
    "a.b",
    "*",
    ".",
    "a*",
    "a%b",
    "a_b",
    "a#b",
    "@a",
    "a:b",
    "a,b",
    "a/b",
    "a'b",
]
QUICK = ("a|b", "*", "a%b", "@a", "a:b", "a/b")
"""What every run tries; the soak tries all names."""

PLAIN = ("a", "b")
"""What a pattern made of these names would find beside them, or instead."""


def reads(name: str) -> Iterator[tuple[str, Callable[[MetadataStore], Any]]]:
    """Requests for a database of the name, a table and a function of the name in it, and objects that do not exist."""
    database = DatabaseName(CATALOG, name)
    yield "database", lambda store: store.reads.databases.get_database(database)
    yield "databases", lambda store: store.reads.databases.get_database_names(CATALOG)
    yield "tables", lambda store: store.reads.tables.get_table_names(database)
    yield "matching", lambda store: store.reads.tables.get_table_names(database, "t*|a*")
    yield "functions", lambda store: store.reads.functions.get_function_names(database)
    yield "meta", lambda store: store.reads.tables.get_table_meta(CATALOG, None, None)
    yield "meta by name", lambda store: store.reads.tables.get_table_meta(CATALOG, name, None)
    yield "function", lambda store: store.reads.functions.get_function(FunctionName(CATALOG, name, "f"))
    for one in dict.fromkeys((name, "t", *PLAIN)):
        key = TableName(*database, one)
        yield f"table {one}", lambda store, key=key: store.reads.tables.get_table(key)
        yield f"partitions {one}", lambda store, key=key: store.reads.partitions.get_partitions(PartitionQuery(key))
        yield f"objects {one}", lambda store, one=one: store.reads.tables.get_tables(database, [one])


def function(database: str, name: str) -> ttypes.Function:
    return ttypes.Function(
        functionName=name,
        dbName=database,
        className="c",
        ownerName="o",
        ownerType=ttypes.PrincipalType.USER,
        createTime=1,
        functionType=ttypes.FunctionType.JAVA,
        resourceUris=[],
        catName=CATALOG,
    )


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.soak, pytest.mark.long]) for one in NAMES],
)
def test_memory_answers_as_the_database(initialized_database_url: str, tmp_path: Path, name: str) -> None:
    with closing(Server(initialized_database_url, tmp_path)) as server:
        store = server.objects

        def compare(when: str) -> None:
            server.poller.step()
            for _ in range(2):
                for what, read in reads(name):
                    answer = encoded(lambda read=read: read(server.store))  # type: ignore[misc]
                    assert answer == encoded(lambda read=read: read(store)), (when, what)  # type: ignore[misc]

        for database in (*PLAIN, name):
            create_database(store, database)
        store.writes.tables.create_table(table(PLAIN[0], "t"))
        compare("empty")
        for one in ("t", name):
            store.writes.tables.create_table(table(name, one, (("p", "string"),)))
        store.writes.functions.create_function(function(name, "f"))
        compare("made")
        assert server.reasons().count(Reason.HIT) > 10
        key = TableName(CATALOG, name, name)
        store.writes.partitions.add_partitions(key, [partition(store.reads.tables.get_table(key), ("1",))])
        compare("a partition")
        store.writes.tables.alter_table(key, changed_table(store, name, name, k="1"))
        compare("altered")
        report = verify(server.cache.shared, server.objects.reads, server.cache.loader)
        assert report.differences == [] and report.compared["tables"]
        store.writes.tables.drop_table(key, delete_data=False)
        store.writes.functions.drop_function(FunctionName(CATALOG, name, "f"))
        compare("dropped")


@pytest.mark.parametrize("name", ["a:b", "a:5:7", "a,b", "a.b", "a|b"])
@pytest.mark.parametrize("is_of_database", [False, True], ids=["table", "database"])
def test_lists_of_write_ids(
    sqlite_database: Database, tmp_path: Path, name: str, is_of_database: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A `:` separates the fields of a list. A table with one in its name has no tag, but is cached."""
    key = TableName(CATALOG, *((name, "t") if is_of_database else ("d", name)))
    with closing(Server(sqlite_database.url.render_as_string(hide_password=False), tmp_path)) as server:
        store, client = server.objects, server.transactions
        create_database(store, key.database)
        made = table(key.database, key.table, (("p", "string"),), transactional="true")
        for direction in ("Input", "Output"):
            setattr(made.sd, f"{direction.lower()}Format", f"org.apache.hadoop.hive.ql.io.orc.Orc{direction}Format")
        store.writes.tables.create_table(made)
        for _ in range(2):
            txn = client.open()
            client.allocate([txn], key.table, key.database)
            client.commit(txn)
        server.poller.step()
        for text in (None, *(f"{key.database}.{key.table}:{mark}:9223372036854775807::" for mark in (1, 2))):
            version = ReadVersion(valid_write_ids=text)
            for read in (
                lambda store, version=version: store.reads.tables.get_table(key, version=version),
                lambda store, version=version: store.reads.partitions.get_partitions(
                    PartitionQuery(key, AllPartitions(), version=version)
                ),
            ):
                for _ in range(3):
                    answer = encoded(lambda read=read: read(server.store))  # type: ignore[misc]
                    assert answer == encoded(lambda read=read: read(store)), text  # type: ignore[misc]
        assert server.reasons().count(Reason.HIT) >= 4
        assert verify(server.cache.shared, server.objects.reads, server.cache.loader).differences == []
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


SPELLINGS = ("a", "A", "a ", " a", "A\t", "\u00e1", "ab")


def statistics(of: str, partition_name: str | None, column: str, maximum: int) -> ttypes.ColumnStatistics:
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=maximum, numNulls=0, numDVs=3)
    return ttypes.ColumnStatistics(
        ttypes.ColumnStatisticsDesc(partition_name is None, "d", of, partition_name),
        [ttypes.ColumnStatisticsObj(column, "bigint", ttypes.ColumnStatisticsData(longStats=numbers))],
        engine="hive",
    )


def test_columns_by_other_spellings(initialized_database_url: str, tmp_path: Path) -> None:
    """A read finds a column regardless of case, but with the same letters and blanks; a deletion trims the blanks, as
    in Hive (`ObjectStore.deleteTableColumnStatistics`), and its event names what it deleted."""
    flat, parts = TableName(CATALOG, "d", "flat"), TableName(CATALOG, "d", "parts")
    with closing(Server(initialized_database_url, tmp_path)) as server:
        store = server.objects
        create_database(store, "d")
        for key, keys in ((flat, ()), (parts, (("p", "string"),))):
            made = table("d", key.table, keys)
            for column in made.sd.cols:
                column.type = "bigint"
            store.writes.tables.create_table(made)
        store.writes.partitions.add_partitions(parts, [partition(store.reads.tables.get_table(parts), ("1",))])

        def compare(when: str) -> list[str]:
            """After the events: the spellings by which a column of the table was found."""
            server.poller.step()
            found = []
            for one in SPELLINGS:
                for what, read in (
                    (
                        "table",
                        lambda reads, one=one: reads.get_table_column_statistics(StatisticsQuery(flat, [one, "b"])),
                    ),
                    (
                        "parts",
                        lambda reads, one=one: reads.get_partition_column_statistics(
                            StatisticsQuery(parts, [one, "b"]), ["p=1"]
                        ),
                    ),
                    (
                        "all",
                        lambda reads, one=one: reads.get_aggregate_statistics(
                            StatisticsQuery(parts, [one, "b"]), ["p=1"]
                        ),
                    ),
                ):
                    for _ in range(2):
                        answer = encoded(lambda read=read: read(server.store.reads.statistics))  # type: ignore[misc]
                        expected = encoded(lambda read=read: read(store.reads.statistics))  # type: ignore[misc]
                        assert answer == expected, (when, what, one)
                held = server.store.reads.statistics.get_table_column_statistics(StatisticsQuery(flat, [one]))
                found += [one] if held.statsObj else []
            return found

        for number, spelling in enumerate(("a", "A", "a ", " A", "a\t")):
            for column in ("a", "b"):
                store.writes.statistics.update_table_column_statistics(statistics("flat", None, column, number))
                store.writes.statistics.update_partition_column_statistics([statistics("parts", "p=1", column, number)])
            assert compare("written") == ["a", "A"]
            store.writes.statistics.delete_table_column_statistics(flat, [spelling])
            store.writes.statistics.delete_partition_column_statistics(parts, ["p=1"], [spelling])
            assert compare(f"{spelling!r} deleted") == []
        assert Reason.HIT in server.reasons()


@pytest.mark.parametrize("spelling", ["a", "A", "a ", " A"])
def test_a_deletion_by_java_names_the_column_as_its_client_spelt_it(spelling: str) -> None:
    """HMSHandler only lowers the case for the event; its store trims the blanks, too (Hive 4.0.1)."""
    row = ev.EventHeader(1, 0, "DELETE_TBL_COL_STAT_EVENT", CATALOG, "d", "t")
    assert changed_columns(ev.TableColumnStatisticsDeleted(row, None, spelling)) == {"a"}
    assert changed_columns(ev.PartitionColumnStatisticsDeleted(row, None, None, spelling)) == {"a"}
