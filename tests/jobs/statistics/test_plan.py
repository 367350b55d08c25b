"""What a run processes: how much of it, and which tables it omits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.statistics.data_files import Figures, UnitFiles
from hms_cache.jobs.statistics.plan import TableWork, limit_work, refusal
from hms_cache.jobs.statistics.reading import PARTITIONS_OF_A_SCAN, portions, unreadable_partitions
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE, make_partition_name
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table


def work_of(sizes: list[int] | None, number: int) -> TableWork:
    """A table with partitions of these sizes, all to be computed; None: without partitions."""

    def unit(size: int) -> UnitFiles:
        return UnitFiles("file:/nowhere", Figures(1, size, 0), None, None, None)

    table = Table(tableName=f"t{number}", dbName="d", catName="hive", partitionKeys=[FieldSchema("p", "string", None)])
    one = TableWork(table, [], None if sizes is None else [f"p={index}" for index in range(len(sizes))])
    one.files = {None: unit(7)} if sizes is None else {f"p={index}": unit(size) for index, size in enumerate(sizes)}
    one.choose(everything=True, changes=None, lacking=set(), files=one.files)
    return one


_TABLES = st.lists(st.none() | st.lists(st.integers(0, 50), max_size=6), max_size=6)


@given(_TABLES, st.integers(1, 120))
def test_nightly_runs_get_through_everything_in_order(tables: list[list[int] | None], max_bytes: int) -> None:
    todo = [
        (number, name)
        for number, sizes in enumerate(tables)
        for name in ([None] if sizes is None else [f"p={index}" for index in range(len(sizes))])
    ]
    done: list[tuple[int, str | None]] = []
    while True:
        work = [work_of(sizes, number) for number, sizes in enumerate(tables)]
        for number, one in enumerate(work):  # what earlier runs computed
            one.chosen = [name for name in one.chosen if (number, name) not in done]
            one.is_chosen = one.is_chosen and (number, None) not in done
        waiting = len(todo) - len(done)
        postponed = limit_work(work, max_bytes)
        sizes_read = [size for one in work for size in one.chosen_bytes()]
        read = [
            (number, name)
            for number, one in enumerate(work)
            for name in ([None] if one.is_chosen else list(one.chosen))
        ]
        assert postponed == waiting - len(read) == sum(one.postponed for one in work)
        assert sum(sizes_read) <= max_bytes or len(sizes_read) == 1
        # A table that waits for some of its partitions is not merged.
        assert all(one.has_work == bool(one.chosen or one.is_chosen) for one in work if one.postponed)
        done += read
        if not postponed:
            break
        assert read, "each run gets on"
    assert done == todo


@given(
    st.lists(st.none() | st.lists(st.integers(1, 50), min_size=1, max_size=6), min_size=1, max_size=6),
    st.data(),
    st.integers(0, 10_000),
)
def test_what_fails_each_time_keeps_nothing_waiting_for_ever(
    tables: list[list[int] | None], data: st.DataObject, first_night: int
) -> None:
    """One that is damaged, or changes all the time, may be larger than everything that is read in a night."""
    waiting = {
        (number, name)
        for number, sizes in enumerate(tables)
        for name in ([None] if sizes is None else [f"p={index}" for index in range(len(sizes))])
    }
    failing = data.draw(st.sets(st.sampled_from(sorted(waiting, key=str)), max_size=3))
    for night in range(first_night, first_night + 2_000):
        if waiting == failing:
            return
        work = [work_of(sizes, number) for number, sizes in enumerate(tables)]
        for number, one in enumerate(work):
            one.chosen = [name for name in one.chosen if (number, name) in waiting]
            one.is_chosen = one.is_chosen and (number, None) in waiting
        before = [list(one.chosen) for one in work]
        limit_work(work, 10, night)
        for number, one in enumerate(work):
            assert one.chosen == [name for name in before[number] if name in set(one.chosen)]
            read = {(number, name) for name in ([None] if one.is_chosen else one.chosen)}
            waiting -= read - failing
    assert waiting == failing


@pytest.mark.parametrize(
    ("sizes", "chosen", "whole"),
    [
        ([10, 10], 2, True),
        ([10, 10], 1, False),
        ([100, 100, 10], 2, True),  # almost nothing is read in vain
        ([100, 100, 11], 2, False),
        ([0, 0, 0], 1, True),
        ([1] * 1_200, 1_100, False),
    ],
)
def test_what_need_not_be_read_is_not(sizes: list[int], chosen: int, whole: bool) -> None:
    """The first partitions of these sizes are chosen."""
    one = work_of(sizes, 0)
    names = one.chosen[:chosen]
    found = portions(names, one.names, one.files)
    assert [name for portion in found for name in portion.names or ()] == names
    assert all(portion.is_whole == whole for portion in found)
    assert all(len(portion.names or ()) <= PARTITIONS_OF_A_SCAN for portion in found if not portion.is_whole)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.data())
def test_by_directory_nothing_else_is_read(sizes: list[int], data: st.DataObject) -> None:
    one = work_of(sizes, 0)
    chosen = data.draw(st.lists(st.sampled_from(one.names or []), unique=True, min_size=1))
    [portion] = portions(chosen, one.names, one.files, by_directory=True)
    assert portion.names == tuple(chosen) and portion.is_whole, "no filter is needed"


def of_format(
    library: str, input_format: str | None = None, columns: Sequence[tuple[str, str]] = (), **parameters: str
) -> StorageDescriptor:
    serde = SerDeInfo(serializationLib=library, parameters=parameters)
    cols = [FieldSchema(*column) for column in columns]
    return StorageDescriptor(cols=cols, serdeInfo=serde, inputFormat=input_format)


@pytest.mark.parametrize(
    ("parameters", "library", "catalog", "told"),
    [
        ({}, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", "hive", None),
        ({"transactional_properties": "insert_only"}, "org.apache…ParquetHiveSerDe", None, None),
        ({"transactional_properties": "insert_only"}, "…LazySimpleSerDe", "hive", "neither ORC nor Parquet"),
        ({}, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", "c2", "of the default catalog only"),
    ],
)
def test_transactional_tables_that_are_left_alone(
    parameters: dict[str, str], library: str, catalog: str | None, told: str | None
) -> None:
    parameters = {"transactional": "true"} | parameters
    table = Table(tableName="t", dbName="d", tableType="MANAGED_TABLE", parameters=parameters, catName=catalog)
    table.sd = of_format(library)
    reason = refusal(table)
    assert reason is None if told is None else told in (reason or "")


@pytest.mark.parametrize(
    ("parameters", "kind", "told"),
    [
        ({}, "MANAGED_TABLE", None),
        ({"spark.sql.sources.provider": "parquet"}, "EXTERNAL_TABLE", None),
        ({"table_type": "ICEBERG"}, "EXTERNAL_TABLE", "Iceberg keeps"),
        ({"spark.sql.sources.provider": "delta"}, "EXTERNAL_TABLE", "Delta Lake keeps"),
        ({"transactional": "true"}, "MANAGED_TABLE", "transactional"),
        ({"storage_handler": "org.example.Handler"}, "EXTERNAL_TABLE", "org.example.Handler"),
        ({"table_type": "ICEBERG"}, "VIRTUAL_VIEW", None),
    ],
)
def test_what_is_left_alone_is_named(parameters: dict[str, str], kind: str, told: str | None) -> None:
    reason = refusal(Table(tableName="t", dbName="d", tableType=kind, parameters=parameters, sd=StorageDescriptor()))
    assert reason is None if told is None else told in (reason or "")


def test_a_table_that_another_program_made_without_a_descriptor_is_named() -> None:
    assert refusal(Table(tableName="t", dbName="d", tableType="MANAGED_TABLE")) == "it has no storage descriptor"


_LINES = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_ORC = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
_PARQUET_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_BY_POSITION = {"parquet.column.index.access": "TRUE"}


@pytest.mark.parametrize(
    ("parameters", "storage", "told"),
    [
        ({}, of_format(_LINES, "org.apache.hadoop.mapred.TextInputFormat"), None),
        ({"skip.header.line.count": "0", "skip.footer.line.count": ""}, of_format(_LINES), None),
        ({"skip.header.line.count": "1"}, of_format(_LINES), "skip.header.line.count"),
        ({"skip.footer.line.count": "2"}, of_format("org.apache.hadoop.hive.serde2.OpenCSVSerde"), "not rows"),
        ({}, of_format(_LINES, **{"skip.header.line.count": "1"}), "skip.header.line.count"),
        # For a table of Spark's own, its options matter.
        ({"skip.header.line.count": "1", "spark.sql.sources.provider": "csv"}, of_format(_LINES), None),
        ({"spark.sql.sources.provider": "csv"}, of_format(_LINES, columns=[("col", "array<string>")]), "only Spark"),
        ({}, of_format(_LINES, columns=[("col", "array<string>")]), None),
        ({"skip.header.line.count": "1"}, of_format(_PARQUET, _PARQUET_INPUT), None),
        ({}, of_format(_PARQUET), None),
        (_BY_POSITION, of_format(_PARQUET, _PARQUET_INPUT), "parquet.column.index.access"),
        ({}, of_format(_PARQUET, _PARQUET_INPUT, **_BY_POSITION), "parquet.column.index.access"),
        (_BY_POSITION, of_format(_ORC, "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"), None),
        ({}, of_format(_PARQUET, "org.apache.hudi.hadoop.HoodieParquetInputFormat"), "HoodieParquetInputFormat"),
        ({}, of_format(_PARQUET, "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"), "Symlink"),
        ({}, of_format(_LINES, "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"), "Symlink"),
    ],
)
def test_what_hive_reads_otherwise_is_left_alone(
    parameters: dict[str, str], storage: StorageDescriptor, told: str | None
) -> None:
    table = Table(tableName="t", dbName="d", tableType="EXTERNAL_TABLE", parameters=parameters, sd=storage)
    reason = refusal(table)
    assert reason is None if told is None else told in (reason or "")


@pytest.mark.parametrize(
    ("hive_type", "alike", "apart", "none"),
    [
        ("int", ["7", "007", "+7"], ["8", "-7"], ["x", "1_0", "3000000000"]),
        ("decimal(5,2)", ["1.5", "1.50", "01.5"], ["1.51"], ["1.555", "12345", "x"]),
        ("decimal(38,10)", ["1", "1.0"], ["1234567890123456789012345678.0000000001"], ["NaN"]),
        ("float", ["0.1", "0.10000000149", "1e-1"], ["0.2"], ["x"]),
        ("double", ["NaN", "nan"], ["0.1", "0.10000000149"], ["x"]),
        ("date", ["2024-01-05", "2024-1-5"], ["2024-01-06"], ["2024-02-30", "today"]),
        ("timestamp", ["2024-01-05 00:00:00", "2024-01-05 00:00:00.0"], ["2024-01-05 00:00:01"], ["never"]),
        ("boolean", ["true", "TRUE"], ["false"], ["maybe"]),
        ("string", [], ["1", "1.0", "01"], []),
    ],
)
def test_partitions_that_spark_cannot_tell_apart(
    hive_type: str, alike: list[str], apart: list[str], none: list[str]
) -> None:
    """Several spellings of one value, and values of another type, as which Spark reads the rows without a value."""
    table = Table(partitionKeys=[FieldSchema("q", "string"), FieldSchema("p", hive_type)])
    every = [*alike, *apart, *none, DEFAULT_PARTITION_VALUE]
    names = {text: make_partition_name(["q", "p"], ["x", text]) for text in every}
    found = unreadable_partitions(table, list(names.values()))
    assert sorted(found) == sorted(names[text] for text in [*alike, *none])
    # With another value of the other key, each is unambiguous.
    others = [make_partition_name(["q", "p"], [str(number), text]) for number, text in enumerate([*alike, *apart])]
    assert unreadable_partitions(table, others) == []
