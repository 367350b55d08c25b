"""What Arrow reads from small files compared with what Spark reads: the same statistics, or they are left to Spark."""

from __future__ import annotations

import functools
import io
import re
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc, parquet
from pyspark.sql import SparkSession

from hms_cache.jobs.statistics.columns import StatisticsColumn, statistics_columns
from hms_cache.jobs.statistics.data_files import FigureLister, Figures, UnitFiles
from hms_cache.jobs.statistics.rows import arrow_values, small_files
from hms_cache.jobs.statistics.rows.arrow_values import ParquetRows, values_of
from hms_cache.jobs.statistics.rows.file_index import rows_of_directories, schema_of
from hms_cache.jobs.statistics.rows.listed_files import Listed, OtherFiles, _with_root
from hms_cache.jobs.statistics.rows.small_files import Files, SessionReading, reader
from hms_cache.jobs.statistics.session import reading_tables
from hms_cache.jobs.statistics.transform import statistics_of_row, transform
from hms_cache.metadata.statistics_values import StatisticsKind
from hms_cache.metadata.statistics_values import values_of as values_of_statistics
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatisticsObj,
    FieldSchema,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.clients.spark.session import SparkProcess
from tests.jobs.statistics.catalog import COLUMNS, rows_of_partition

pytestmark = [pytest.mark.spark, pytest.mark.timeout(290)]

_SERDE = {
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
}
_IN_ORC = {name: kind for name, kind in COLUMNS.items() if kind not in ("date", "timestamp")}


def table_of(columns: dict[str, str], file_format: str = "parquet") -> Table:
    fields = [FieldSchema(name, kind) for name, kind in columns.items()]
    descriptor = StorageDescriptor(cols=fields, serdeInfo=SerDeInfo(serializationLib=_SERDE[file_format]))
    return Table(tableName="t", dbName="d", sd=descriptor, parameters={}, partitionKeys=[FieldSchema("p", "string")])


def by_arrow(table: Table, places: dict[str, Path]) -> tuple[dict[str | None, Any], list[str | None]]:
    """Statistics of directories as workers read them, and those that are left to Spark."""
    columns = statistics_columns(table)
    units = [{"name": name, "location": f"file:{path}", "files": ""} for name, path in places.items()]
    with Files() as files:
        found = reader(files, table, columns)(units)
    return {row["name"]: comparable(statistics_of_row(row, columns)) for row in found.rows}, found.left


def by_spark(spark: SparkSession, table: Table, file_format: str, places: dict[str, Path]) -> dict[str | None, Any]:
    columns = statistics_columns(table)
    directories = [(number, f"file:{path}") for number, path in enumerate(places.values())]
    rows = rows_of_directories(spark, file_format, schema_of(table), directories)
    values = [rows["_number_of_directory"].alias("partition")]
    values += [rows[f"`{column.name}`"].alias(f"c{index}") for index, column in enumerate(columns)]
    numbers = spark.createDataFrame([(number,) for number, _ in directories], "partition int")
    found = {row["partition"]: row.asDict() for row in transform(rows.select(values), columns, numbers).collect()}
    return {name: comparable(statistics_of_row(found[number], columns)) for number, name in enumerate(places)}


def comparable(statistics: list[ColumnStatisticsObj]) -> list[str]:
    """Everything in them, as text: NaN and -0.0 are distinguished, and the order in a sparse sketch does not matter."""
    return [f"{one.colName} {values_of_statistics(one)}" for one in statistics]


def compared(
    spark: SparkSession, columns: dict[str, str], file_format: str, directory: Path
) -> tuple[dict[str | None, Any], list[str | None]]:
    """For all directories: the differences between Arrow and Spark, and what is left to Spark."""
    places = {path.name: path for path in sorted(directory.iterdir())}
    table = table_of(columns, file_format)
    ours, left = by_arrow(table, places)
    readable = {name: path for name, path in places.items() if name not in left}
    sparks = by_spark(spark, table, file_format, readable)
    assert set(ours) == set(sparks)
    return {name: [ours[name], sparks[name]] for name in ours if ours[name] != sparks[name]}, left


def files_of_spark(spark: SparkSession, *, directory: str, file_format: str, columns: dict[str, str]) -> dict[str, Any]:
    """Rows of all types as Spark writes them, its timestamps of 64 and of 96 bits; a directory without files, and one
    without values."""
    schema = schema_of(table_of(columns, "orc"))  # of Parquet small integers are read wider
    places = list(COLUMNS)
    kinds = ["TIMESTAMP_MICROS", "INT96", "TIMESTAMP_MILLIS"]
    for number in range(9):
        rows = [[row[places.index(name)] for name in columns] for row in rows_of_partition(number, 300)]
        if number == 7:
            rows = [[None] * len(columns)] * 5
        spark.conf.set("spark.sql.parquet.outputTimestampType", kinds[number % 3])
        frame = spark.createDataFrame(rows, schema)
        frame.repartition(1 + number % 2).write.format(file_format).save(f"{directory}/{number}")
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    Path(f"{directory}/none").mkdir()
    Path(f"{directory}/0/below").mkdir()
    Path(f"{directory}/0/below/x.{file_format}").write_bytes(b"not read")
    wrong, left = compared(spark, columns, file_format, Path(directory))
    return {"wrong": wrong, "left": left}


@pytest.mark.soak
@pytest.mark.parametrize(("file_format", "columns"), [("parquet", COLUMNS), ("orc", _IN_ORC)])
def test_files_of_spark(job_spark: SparkProcess, tmp_path: Path, file_format: str, columns: dict[str, str]) -> None:
    """None is left to Spark."""
    found = job_spark.call(files_of_spark, directory=str(tmp_path / "files"), file_format=file_format, columns=columns)
    assert found == {"wrong": {}, "left": []}


# ---- files of other writers, one column each: a name, the column's type in Hive, and the contents of the file

_MOMENT = datetime(2024, 2, 29, 12, 30, 1, 250_000, UTC)
_FILES: dict[str, tuple[str, pa.Array, bool]] = {
    # read
    "long": ("bigint", pa.array([1, None, -(2**63)]), True),
    "byte": ("tinyint", pa.array([1, -128], pa.int8()), True),
    "bytes as text": ("string", pa.array([b"a", "é".encode(), None], pa.binary()), True),
    "no utf-8 as text": ("string", pa.array([b"\xff\xfe", b"a"], pa.binary()), True),
    "text as bytes": ("binary", pa.array(["abc", "é"]), True),
    "large text": ("varchar(10)", pa.array(["abc", "é"], pa.large_string()), True),
    "small decimal": ("decimal(9,2)", pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(9, 2)), True),
    "large decimal": ("decimal(38,10)", pa.array([Decimal("12345678901234567890.123")], pa.decimal128(38, 10)), True),
    "inexact decimal": ("decimal(15,15)", pa.array([Decimal("0.1"), Decimal("0.3")], pa.decimal128(15, 15)), True),
    "moment in another zone": ("timestamp", pa.array([_MOMENT, None], pa.timestamp("us", "Asia/Tokyo")), True),
    "moment in ms": ("timestamp", pa.array([_MOMENT], pa.timestamp("ms", "UTC")), True),
    "day": ("date", pa.array([date(1, 1, 1), date(9999, 12, 31)]), True),
    "nan": ("double", pa.array([float("nan"), -0.0, 0.0]), True),
    "only nulls": ("int", pa.nulls(3, pa.int32()), True),
    "no rows": ("int", pa.nulls(0, pa.int32()), True),
    # not certain
    "int for long": ("bigint", pa.array([1], pa.int32()), False),
    "int for byte": ("tinyint", pa.array([1], pa.int32()), False),
    "float for double": ("double", pa.array([1.5], pa.float32()), False),
    "unsigned": ("int", pa.array([1], pa.uint32()), False),
    "another scale": ("decimal(9,2)", pa.array([Decimal("1.500")], pa.decimal128(9, 3)), False),
    "local moment": ("timestamp", pa.array([datetime(2024, 1, 1)], pa.timestamp("us")), False),
    "moment in ns": ("timestamp", pa.array([datetime(2024, 1, 1)], pa.timestamp("ns", "UTC")), False),
    "text for int": ("int", pa.array(["1"]), False),
    "struct for int": ("int", pa.array([{"a": 1}]), False),
    "categories": ("string", pa.array(["a", "b", "a"]).dictionary_encode(), False),
}


def parquet_bytes(values: pa.Array, name: str = "c", **options: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table({name: values}), file, **options)
    return file.getvalue()


def files_of_arrow(spark: SparkSession, *, directory: str) -> dict[str, Any]:
    found = {}
    for name, (kind, values, _) in _FILES.items():
        place = Path(directory) / name
        (place / "1").mkdir(parents=True)
        (place / "1" / "x.parquet").write_bytes(parquet_bytes(values))
        (place / "2").mkdir(parents=True)
        (place / "2" / "x.parquet").write_bytes(parquet_bytes(values, "C", store_schema=False))
        (place / "2" / "empty").write_bytes(b"")
        wrong, left = compared(spark, {"c": kind}, "parquet", place)
        found[name] = {"wrong": wrong, "left": left}
    return found


@pytest.mark.soak
def test_files_of_arrow(job_spark: SparkProcess, tmp_path: Path) -> None:
    """Each type that a file may have for a column: without the schema that Arrow adds, some have Spark's own types."""
    found = job_spark.call(files_of_arrow, directory=str(tmp_path))
    assert {name: one["wrong"] for name, one in found.items() if one["wrong"]} == {}
    for name, (_, _, is_read) in _FILES.items():
        assert ("1" not in found[name]["left"]) is is_read, (name, found[name])


def too_large(spark: SparkSession, *, directory: str) -> dict[str, Any]:
    columns = {"b": "tinyint", "s": "smallint", "same": "tinyint"}
    [found] = by_spark(spark, table_of(columns), "parquet", {"p": Path(directory)}).values()
    return {"found": found}


@pytest.mark.soak
@pytest.mark.short
def test_numbers_too_large_for_their_column_are_null(job_spark: SparkProcess, tmp_path: Path) -> None:
    """A column that was `int` once: Hive reads NULL where Spark keeps the lower bits, and would answer from bounds that
    no row has."""
    values = {"b": [1, 300, -129, None, 127], "s": [40_000, -32_769, 32_767, 5, -32_768], "same": [1, None, 2, -3, 4]}
    files = {"old": pa.table({name: pa.array(of, pa.int32()) for name, of in values.items()})}
    files["new"] = pa.table({name: pa.array([3], kind()) for name, kind in zip("bs", (pa.int8, pa.int16), strict=True)})
    for name, content in files.items():
        parquet.write_table(content, tmp_path / f"{name}.parquet")
    found = job_spark.call(too_large, directory=str(tmp_path))["found"]
    figures = [re.findall(r"(nulls|low|high|distinct)=(-?\d+)", one) for one in found]
    assert [dict(one) for one in figures] == [
        {"nulls": "3", "distinct": "3", "low": "1", "high": "127"},
        {"nulls": "2", "distinct": "4", "low": "-32768", "high": "32767"},
        {"nulls": "2", "distinct": "4", "low": "-3", "high": "4"},
    ]


# ---- without Spark


def place_of(directory: Path, **files: bytes) -> Path:
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return directory


LONG = {"c": "bigint", "moment": "timestamp"}


def legacy(**metadata: str) -> bytes:
    told = {f"org.apache.spark.{name}": value for name, value in metadata.items()}
    file = io.BytesIO()
    parquet.write_table(pa.table({"c": [1]}).replace_schema_metadata(told), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("file_format", "content"),
    [
        ("parquet", b"no file of Parquet at all, though long enough"),
        ("parquet", parquet_bytes(pa.array([1]))[:-9]),
        ("parquet", legacy(version="2.4.8")),
        ("parquet", legacy(version="3.0.3")),
        ("parquet", legacy(version="4.1.0", legacyDateTime="")),
        ("parquet", legacy(version="4.1.0", legacyINT96="")),
        ("orc", b"ORC"),
    ],
)
def test_what_is_not_certain_is_left_to_spark_and_so_is_what_follows(
    tmp_path: Path, file_format: str, content: bytes
) -> None:
    """A unit is left as a whole, and one that was read before remains."""
    good = parquet_bytes(pa.array([7]))
    if file_format == "orc":
        made = io.BytesIO()
        orc.write_table(pa.table({"c": [7]}), made)
        good = made.getvalue()
    places = {
        "a": place_of(tmp_path / "a", x=good),
        "b": place_of(tmp_path / "b", w=good, x=content, y=good),
        "c": place_of(tmp_path / "c", x=good),
    }
    columns = LONG if file_format == "parquet" else {"c": "bigint"}
    found, left = by_arrow(table_of(columns, file_format), places)
    assert ([*found], left) == (["a"], ["b", "c"])


def test_names_that_differ_in_case_only_are_left_to_spark(tmp_path: Path) -> None:
    file = io.BytesIO()
    parquet.write_table(pa.table({"c": [1], "C": [2]}), file)
    assert by_arrow(table_of({"c": "bigint"}), {"a": place_of(tmp_path / "a", x=file.getvalue())})[1] == ["a"]


def test_files_of_several_schemas(tmp_path: Path) -> None:
    """One without the column counts as nulls, and so does one without any column of the table; a hidden one does
    not."""
    places = {
        "a": place_of(tmp_path / "a", x=parquet_bytes(pa.array([3, 5])), y=parquet_bytes(pa.array([1]), "other")),
        "b": place_of(tmp_path / "b", _x=parquet_bytes(pa.array([9])), y=parquet_bytes(pa.array([4, None]), "C")),
        "c": tmp_path / "is not there",
    }
    table = table_of({"c": "bigint"})
    with Files() as files:
        read = reader(files, table, statistics_columns(table))
        rows, left = read({"name": name, "location": f"file:{path}", "files": ""} for name, path in places.items())
    told = {row["name"]: (row["rows"], row["nulls0"], row["low0"], row["high0"]) for row in rows}
    assert told == {"a": (3, 1, 3, 5), "b": (2, 1, 4, 4), "c": (0, None, None, None)} and left == []


def orc_bytes(**columns: Any) -> bytes:
    file = io.BytesIO()
    orc.write_table(pa.table(columns), file)
    return file.getvalue()


@pytest.mark.parametrize("of_a_partial", [1, 7, 15, 1_000])
def test_no_row_of_a_unit_is_lost_where_others_cannot_be_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_a_partial: int
) -> None:
    """Rows of several units are reduced together: the ones that fail with another's are left to Spark with it."""
    monkeypatch.setattr(small_files, "ROWS_OF_A_PARTIAL", of_a_partial)

    def content(unit: str, moment: int) -> bytes:
        numbers = pa.array(range(10), pa.int32())
        moments = pa.array([moment] * 10, pa.int64()).cast(pa.timestamp(unit, "UTC"))
        file = io.BytesIO()
        parquet.write_table(pa.table({"id": numbers, "moment": moments}), file, row_group_size=4)
        return file.getvalue()

    files = {
        "a": content("us", 10**15),
        "b": content("ms", 10**12),
        "c": content("ms", 10**16),  # beyond the range of microseconds
        "d": content("ms", 10**12),
        "e": content("us", 10**15),
    }
    units = [
        {"name": name, "location": f"file:{place_of(tmp_path / name, x=one)}", "files": ""}
        for name, one in files.items()
    ]
    table = table_of({"id": "int", "moment": "timestamp"})
    with Files() as opened:
        read = reader(opened, table, statistics_columns(table))
        rows, left = read(units)
        assert "c" in left and sorted([*left, *(row["name"] for row in rows)]) == sorted(files)
        assert {(row["rows"], row["low0"], row["high0"], row["nulls1"]) for row in rows} == {(10, 0, 9, 0)}
        # The following files are probably similar.
        assert read(units[:1]) == ([], ["a"])


def test_columns_of_orc_are_told_by_their_position(tmp_path: Path) -> None:
    """As in Hive. Arrow has names: a file with others, in another order, with more or fewer is left to Spark."""
    ones, tens = pa.array([1, 2], pa.int32()), pa.array([10, 20], pa.int32())
    table = table_of({"a": "int", "B": "int", "l": "array<int>"}, "orc")
    lists = pa.array([[1], [2]], pa.list_(pa.int32()))
    files = {
        "same": orc_bytes(A=ones, b=tens, l=lists),
        "renamed": orc_bytes(first=ones, b=tens, l=lists),
        "before names": orc_bytes(_col0=ones, _col1=tens, _col2=lists),
        "swapped": orc_bytes(b=ones, a=tens, l=lists),
        "fewer": orc_bytes(a=ones, b=tens),
        "more": orc_bytes(a=ones, b=tens, l=lists, m=ones),
    }
    for name, content in files.items():
        found, left = by_arrow(table, {name: place_of(tmp_path / name, x=content)})
        assert ([*found], left) == (([name], []) if name == "same" else ([], [name])), name


def by_position(spark: SparkSession, *, directory: str) -> list[list[Any]]:
    with reading_tables(spark):
        rows = rows_of_directories(spark, "orc", schema_of(table_of({"a": "int", "b": "int"})), [(0, directory)])
        return [[row["a"], row["b"]] for row in rows.collect()]


@pytest.mark.soak
@pytest.mark.short
def test_spark_reads_columns_of_orc_by_their_position(job_spark: SparkProcess, tmp_path: Path) -> None:
    """For a file with more of them than the table, it reports that it cannot."""
    ones, tens = pa.array([1, 2], pa.int32()), pa.array([10, 20], pa.int32())
    place = place_of(
        tmp_path / "t",
        same=orc_bytes(a=ones, b=tens),
        renamed=orc_bytes(b=ones, c=tens),
        fewer=orc_bytes(c=pa.array([3], pa.int32())),
    )
    wide = place_of(tmp_path / "u", more=orc_bytes(x=ones, y=tens, a=ones))
    with pytest.raises(AssertionError, match="no idea which columns were dropped"):
        job_spark.call(by_position, directory=f"file:{wide}")
    found = job_spark.call(by_position, directory=f"file:{place}")
    assert sorted(found, key=str) == sorted([[1, 10], [2, 20], [1, 10], [2, 20], [3, None]], key=str)


_ROW = st.tuples(st.booleans() | st.none(), st.integers(-5, 5) | st.none(), st.text(max_size=3) | st.none())


@given(st.lists(st.lists(st.lists(_ROW, max_size=6), max_size=4), max_size=5), st.integers(1, 9), st.integers(0, 3))
def test_portions_make_no_difference(
    units: list[list[list[tuple[Any, ...]]]], of_a_partial: int, of_a_batch: int
) -> None:
    """However many rows are reduced at a time, and however few a batch has, the statistics of units are the same."""
    columns = {"flag": "boolean", "number": "bigint", "text": "string"}
    table = table_of(columns)
    schema = pa.schema([("flag", pa.bool_()), ("number", pa.int64()), ("text", pa.string())])

    def found(directory: str) -> object:
        return by_arrow(table, {path.name: path for path in Path(directory).iterdir()})

    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        for number, files in enumerate(units):
            unit = Path(directory) / str(number)
            unit.mkdir()
            for index, rows in enumerate(files):
                arrays = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
                parquet.write_table(pa.table(arrays, schema=schema), unit / f"{index}", row_group_size=4)
        whole = found(directory)
        patch.setattr(small_files, "ROWS_OF_A_PARTIAL", of_a_partial)
        if of_a_batch:
            patch.setattr(arrow_values, "ROWS_OF_A_BATCH", of_a_batch)
        assert found(directory) == whole


@pytest.mark.soak
def test_a_file_of_one_long_text_is_read_in_small_batches() -> None:
    """A few KB in the file, but a GB in memory."""
    content = parquet_bytes(pa.array(["x" * 500_000]).take(pa.array([0] * 2_000)))
    column = StatisticsColumn("c", "string", StatisticsKind.STRING)
    sizes = []
    for batch in ParquetRows([column]).batches(content):
        values = values_of(pa.Table.from_batches([batch]), [column])
        sizes.append(values.nbytes)
    assert len(content) < 1 << 20 and max(sizes) <= arrow_values.BYTES_OF_A_BATCH < sum(sizes)


class _Session:
    def __init__(self, **settings: str) -> None:
        self._settings = {"spark.sql.session.timeZone": "UTC"} | small_files._SETTINGS | settings
        self.conf = self

    def get(self, name: str) -> str:
        return self._settings[name]


@pytest.mark.parametrize(
    ("columns", "file_format", "settings", "may_be"),
    [
        (COLUMNS, "parquet", {}, True),
        (_IN_ORC, "orc", {}, True),
        (COLUMNS, "orc", {}, False),
        (COLUMNS, "parquet", {"spark.sql.session.timeZone": "Europe/Berlin"}, False),
        (_IN_ORC, "parquet", {"spark.sql.session.timeZone": "Europe/Berlin"}, True),
        (_IN_ORC, "parquet", {"spark.sql.caseSensitive": "true"}, False),
        (_IN_ORC, "parquet", {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}, False),
        ({"c": "char(3)"}, "parquet", {}, False),
        ({"a.b": "int"}, "parquet", {}, False),
        ({f"c{number}": "int" for number in range(101)}, "parquet", {}, False),
    ],
)
def test_tables_that_spark_reads(
    columns: dict[str, str], file_format: str, settings: dict[str, str], may_be: bool
) -> None:
    session: Any = _Session(**settings)
    table = table_of(columns, file_format)
    assert SessionReading.of(session).may_be_replaced(table, statistics_columns(table)) is may_be


def test_what_is_small() -> None:
    def unit(size: int, **more: Any) -> UnitFiles:
        figures = FigureLister().figures("file:/is/not/there")[0]
        assert figures is not None
        return UnitFiles("file:/x", figures._replace(files=1, bytes=size), None, None, None, **more)

    assert small_files.is_small(unit(small_files.UNIT_BYTES))
    assert not small_files.is_small(unit(small_files.UNIT_BYTES + 1))
    assert not small_files.is_small(unit(1, layout=()))
    assert not small_files.is_small(UnitFiles("file:/x", None, "gone", None, None))


def test_files_that_cannot_be_seen_for_a_moment_are_not_taken_for_none(tmp_path: Path) -> None:
    """What was read must be what was listed."""
    place = place_of(tmp_path / "t", x=parquet_bytes(pa.array([1, 2])))
    table = table_of({"c": "bigint"})
    columns = statistics_columns(table)
    figures = FigureLister().figures(f"file:{place}")[0]
    assert figures is not None
    for location, listed, left in (
        (place, figures, []),
        (place, figures._replace(bytes=figures.bytes + 1), ["p=1"]),
        (tmp_path / "away", figures, ["p=1"]),
        (tmp_path / "away", Figures(0, 0, 0), []),
    ):
        with Files() as files:
            unit = {"name": "p=1", "location": f"file:{location}", "files": str(listed)}
            found = reader(files, table, columns)([unit])
        assert (found.left, len(found.rows)) == (left, 1 - len(left))


def seen_by_spark(spark: SparkSession, *, directories: list[str], listed: list[tuple[int, int]]) -> Any:
    """Rows of directories; or the numbers of those whose files differ from the listed ones."""
    known = {number: Listed(*one) for number, one in enumerate(listed)}
    try:
        rows = rows_of_directories(
            spark, "parquet", schema_of(table_of({"c": "bigint"})), list(enumerate(directories)), known
        )
    except OtherFiles as error:
        return sorted(error.numbers)
    return rows.count()


@pytest.mark.soak
def test_spark_has_to_see_the_files_that_were_listed(job_spark: SparkProcess, tmp_path: Path) -> None:
    """Those that it skips have rows in Hive, and those that Hive skips have none."""
    content = parquet_bytes(pa.array([1, 2]))
    names = {
        "plain": ["x"],
        "summary": ["x", "_metadata", "_common_metadata", ".crc", "_SUCCESS"],
        "odd é %41 +{a}": ["x y", "z"],
        "copying": ["x", "y._COPYING_"],
        "equals": ["x", "_a=1.parquet"],
        "away": [],
    }
    places = []
    listed: list[tuple[int, int]] = []
    for name, files in names.items():
        place = tmp_path / name
        place.mkdir()
        for file in files:
            (place / file).write_bytes(content)
        figures = FigureLister().figures(f"file:{place}")[0]
        assert figures is not None
        places.append(f"file:{place}")
        listed.append((figures.files, figures.bytes))
    (tmp_path / "away").rmdir()
    listed[-1] = (1, len(content))
    call = functools.partial(job_spark.call, seen_by_spark)
    assert call(directories=places, listed=listed) == [3, 4, 5]
    assert call(directories=places[:3], listed=listed[:3]) == 8
    # Two partitions in one directory, and another spelling of it.
    twice = [places[0], places[0], places[0].replace("file:/", "file:///")]
    assert call(directories=twice, listed=[listed[0]] * 3) == 6
    assert call(directories=places[3:4], listed=listed[3:4]) == [0]


def test_the_root_of_a_bucket() -> None:
    assert _with_root("s3a://lake") == _with_root("s3a://lake/") == "s3a://lake/"
    assert [_with_root(one) for one in ("s3a://lake/t", "file:/x")] == ["s3a://lake/t", "file:/x"]
