"""Few statements, and no more with more partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, update

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    Grantee,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import execute_plan
from hms_cache.store.partitions import joined_names
from hms_cache.store.partitions import reads as partition_reads
from hms_cache.store.partitions import selection as partition_selection
from hms_cache.store.partitions.joined_names import names_of_all_plan
from hms_cache.store.partitions.partitioned_tables import find_partitioned_table
from hms_cache.store.schema import PARTITIONS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    EnvironmentContext,
    Partition,
    SerDeInfo,
    SkewedInfo,
)
from tests.databases import count_statements
from tests.store.partitions.catalog import PartitionCatalog, descriptor, partition

T = ("hive", "d", "t")
KEEP_STATISTICS = environment_options(EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}))
MAX_FOR_A_READ = 10


def many(count: int) -> list[Partition]:
    return [partition(f"d{n // 24:05d}", str(n % 24), parameters={"numRows": str(n), "k": "v"}) for n in range(count)]


def varied(number: int) -> Partition:
    """Partitions that differ in each field of a descriptor."""
    serde = SerDeInfo("n", f"lib{number % 2}", {"field.delim": " " if number % 3 else "", "x": str(number % 5)})
    return partition(
        f"v{number}",
        "0",
        sd=descriptor(
            columns=[("id", "bigint"), (f"c{number % 4}", "string")],
            serdeInfo=serde,
            inputFormat="in " if number % 2 else "in",
            bucketCols=["id"] * (number % 3),
            parameters={"p": "", "q": " "} if number % 2 else {},
            skewedInfo=SkewedInfo(["id"], [["1"]], {("1",): f"file:/{number}"}) if number % 4 == 0 else None,
        ),
        parameters={"\x01key": "\x02value", "empty": ""} if number % 7 == 0 else {"a": "1"},
    )


def counted(catalog: PartitionCatalog, action: Callable[[], object]) -> int:
    before = catalog.statements()
    action()
    return catalog.statements() - before


@pytest.fixture
def unmanaged(initialized_database: Database, tmp_path: Path) -> PartitionCatalog:
    """A catalog whose store does not access the file system."""
    return PartitionCatalog(initialized_database, tmp_path, files="leave")


def test_reads_take_few_statements_whatever_their_size(unmanaged: PartitionCatalog) -> None:
    catalog = unmanaged
    catalog.create_table()
    catalog.writes.add_partitions(TableName(*T), many(1500))
    names = tuple(catalog.reads.get_partition_names(PartitionQuery(TableName(*T))))
    selections: list[PartitionSelection] = [
        AllPartitions(),
        ByNames(names[:1]),
        ByNames(names[::2]),
        ByNames(names),
        ByValues(("d00003", "7")),
        ByPartialValues(("d00003",)),
        ByPartialValues(("", "7")),
        ByFilter('dt = "d00003"'),
        ByFilter("hr > 3"),
    ]
    for selection in selections:

        def read(selection: PartitionSelection = selection) -> object:
            return catalog.reads.get_partitions(PartitionQuery(TableName(*T), selection), grantee=Grantee("u", ("g",)))

        assert counted(catalog, read) <= MAX_FOR_A_READ, selection
    assert counted(catalog, lambda: catalog.reads.get_partition(TableName(*T), ["d00003", "7"])) <= 6
    # If there are round trips, the assumed table is read together with the requested data.
    executions = 2 if catalog.database.is_sqlite else 1
    assert counted(catalog, lambda: catalog.reads.get_partition_names(PartitionQuery(TableName(*T)))) == executions
    assert counted(catalog, lambda: catalog.reads.get_partition_count(PartitionQuery(TableName(*T)))) == executions


def test_writes_take_few_statements_whatever_their_size(unmanaged: PartitionCatalog) -> None:
    catalog = unmanaged
    catalog.create_table()
    few = counted(catalog, lambda: catalog.writes.add_partitions(TableName(*T), many(100)))
    assert few <= 40
    added = many(2100)[100:]
    assert counted(catalog, lambda: catalog.writes.add_partitions(TableName(*T), added)) <= few + 5
    stored = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    for one in stored:
        one.parameters = {**one.parameters, "numRows": "0", "new": "x"}
        del one.parameters["k"]
        one.sd.location += "/moved"
    altered = counted(
        catalog,
        lambda: catalog.writes.alter_partitions(TableName(*T), stored[:100], writer=Writer(options=KEEP_STATISTICS)),
    )
    assert altered <= 40
    assert (
        counted(
            catalog,
            lambda: catalog.writes.alter_partitions(TableName(*T), stored, writer=Writer(options=KEEP_STATISTICS)),
        )
        <= altered + 5
    )
    again = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    assert [one.sd.location for one in again] == [one.sd.location for one in stored]
    assert [one.parameters for one in again] == [dict(sorted(one.parameters.items())) for one in stored]
    dropped = counted(
        catalog, lambda: catalog.writes.drop_partitions(TableName(*T), ByPartialValues(("d00003",)), delete_data=False)
    )
    assert dropped <= 40
    assert (
        counted(catalog, lambda: catalog.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=False))
        <= dropped + 5
    )


def test_grouped_reading_is_exact(unmanaged: PartitionCatalog) -> None:
    """The server groups equal descriptors; trailing blanks, separators in values and empty texts must be preserved."""
    catalog = unmanaged
    catalog.create_table()
    sent = [varied(number) for number in range(250)]
    stored = {tuple(one.values): one for one in catalog.writes.add_partitions(TableName(*T), sent)}
    for selection in (AllPartitions(), ByNames(tuple(f"dt=v{number}/hr=0" for number in range(150)))):
        for one in catalog.reads.get_partitions(PartitionQuery(TableName(*T), selection)).partitions:
            expected = stored[tuple(one.values)]
            expected.sd.skewedInfo = expected.sd.skewedInfo or SkewedInfo([], [], {})
            assert one == expected


def test_lists_that_are_too_long_are_read_in_other_ways(
    unmanaged: PartitionCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = unmanaged
    catalog.create_table()
    sent = many(60)
    catalog.writes.add_partitions(TableName(*T), sent)
    expected = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    for module in (partition_reads, partition_selection):
        monkeypatch.setattr(module, "MAX_LISTED", 20)
    monkeypatch.setattr(partition_reads, "FEW", 5)
    names = tuple(f"dt={one.values[0]}/hr={one.values[1]}" for one in expected)
    assert (
        catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByNames(names[10:50]))).partitions == expected[10:50]
    )
    assert (
        catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByNames(names[10:22]))).partitions == expected[10:22]
    )


@pytest.mark.parametrize("database_kind", ["mariadb"])
def test_a_server_that_cuts_lists_short(unmanaged: PartitionCatalog) -> None:
    """MySQL's default of `group_concat_max_len` is 1,024 bytes."""
    catalog = unmanaged
    catalog.create_table()
    catalog.writes.add_partitions(TableName(*T), [*many(400), partition("long", "0", parameters={"k": "x" * 3000})])
    expected = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    for limit in (1024, 1025, 1026, 1027, 1028):
        with catalog.database.loading() as connection:
            connection.exec_driver_sql(f"SET SESSION group_concat_max_len={limit}")
            header = find_partitioned_table(connection, TableName(*T))
            rows = partition_reads.read_partition_rows(
                connection, header, partition_selection.SelectedPartitions(None, None)
            )
            names = execute_plan(connection, names_of_all_plan(connection, header))
            connection.exec_driver_sql("SET SESSION group_concat_max_len=16777216")
        assert partition_reads.partitions_of_rows(rows) == expected
        assert names == rows.names


def test_all_names_come_as_one_text_unless_it_does_not_add_up(unmanaged: PartitionCatalog) -> None:
    """The texts of names are unchanged: trailing blanks, letters of any script, and separators in other writers'
    names."""
    catalog = unmanaged
    catalog.create_table()
    with catalog.database.loading() as connection:
        header = find_partitioned_table(connection, TableName(*T))
        assert execute_plan(connection, names_of_all_plan(connection, header)) == []
    values = ["a ", "a", "A", "\x01", "\x02", "a,b", "\t", "%", "é"]
    catalog.writes.add_partitions(TableName(*T), [partition(value, "1") for value in values])
    for has_separator in (False, True):
        with catalog.database.write_engine.begin() as connection:
            if has_separator:
                change = update(PARTITIONS).where(PARTITIONS.c.PART_NAME == "dt=a,b/hr=1")
                connection.execute(change.values(PART_NAME="dt=a\x01b/hr=1"))
        with catalog.database.loading() as connection, count_statements(catalog.database) as seen:
            names = execute_plan(connection, names_of_all_plan(connection, header))
            assert names == sorted(name for _, name in partition_selection.all_names(connection, header))
            assert len(names) == len(values)
            assert any("\x01" in name for name in names) == has_separator
        assert seen.count == 2 + 2 * has_separator


def test_names_that_are_too_long_for_one_text_come_in_several(
    unmanaged: PartitionCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = unmanaged
    catalog.create_table()
    catalog.writes.add_partitions(TableName(*T), [partition(f"{number}", "1") for number in range(23)])
    monkeypatch.setattr(joined_names, "_IN_PARTS_QUERY", DirectQuery(joined_names._in_parts(4)))
    cut = func.substr(func.aggregate_strings(PARTITIONS.c.PART_NAME, "\x01"), 1, 40)
    whole = joined_names._JOINED
    columns = [*list(whole.selected_columns)[:2], cut]
    monkeypatch.setattr(joined_names, "_JOINED_QUERY", DirectQuery(whole.with_only_columns(*columns)))
    with catalog.database.loading() as connection:
        header = find_partitioned_table(connection, TableName(*T))
        with count_statements(catalog.database) as seen:
            names = execute_plan(connection, names_of_all_plan(connection, header))
            assert names == sorted(f"dt={number}/hr=1" for number in range(23))
        assert seen.count == 2


@pytest.mark.parametrize(
    "text",
    ["4\x02", "1\x023\x02a\x01b", "2\x024\x02a\x01b", "1\x023\x02a\x01\x01b", "1\x023\x02a\x01\x02b"],
    ids=["longer than the server's packets", "cut within", "cut after one", "key end within", "pair end within"],
)
def test_a_text_of_parameters_that_does_not_add_up_is_not_believed(text: str) -> None:
    good = "2\x026\x02key\x011\x02b\x01c"
    assert partition_reads._parameters_of_texts([good, "0\x02"]) == [{"b": "c", "key": "1"}, {}]
    assert partition_reads._parameters_of_texts([good, text]) is None
