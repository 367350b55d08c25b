"""The mark stored beside statistics: only their files can have changed them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hms_cache.jobs.files.directories import AWAY
from hms_cache.jobs.statistics.data_files import (
    RECORDED,
    FigureLister,
    Figures,
    Mark,
    _Place,
    _row,
    reading_of,
    unit_files,
)
from hms_cache.jobs.statistics.parameters import basic_statistics
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, statistics_of
from hms_cache.store.rows.parameters import withdraw_double_counted
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

TEXT = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
COLUMNS = [
    statistics_of("n", "int", ColumnValues(StatisticsKind.LONG, low=1, high=2, distinct=2)),
    statistics_of("x", "double", ColumnValues(StatisticsKind.DOUBLE, low=0.1, high=None, distinct=2)),
]


def table_of(columns: dict[str, str], provider: str = "hive", **of_serde: str) -> Table:
    fields = [FieldSchema(name, kind, "a comment") for name, kind in columns.items()]
    descriptor = StorageDescriptor(cols=fields, serdeInfo=SerDeInfo(serializationLib=TEXT, parameters=of_serde))
    return Table("t", "d", sd=descriptor, parameters={"spark.sql.sources.provider": provider})


def claiming(*columns: str) -> str:
    return json.dumps({"BASIC_STATS": "true", "COLUMN_STATS": dict.fromkeys(columns, "true")})


def test_marks_as_text() -> None:
    figures = Figures(1, 10, 7, "x")
    mark = Mark(figures, 3, "ab", 2)
    assert Mark.read(str(mark)) == mark and str(mark) == "1:10:7:x:3:ab:2"
    # Those of earlier releases contain too little: their claims may be wrong.
    earlier = ("1:10:7", str(figures))
    for text in (None, "", *earlier, "1:10:7:x:3:ab", "1:10:7:x:three:ab:2", "1:10:7:x:3:ab:2:4", "a:10:7:x:3:ab:2"):
        assert Mark.read(text) is None


def test_a_metastore_reads_marks() -> None:
    """It withdraws the claim of an INSERT that has added its rows to a count of its own files."""
    before = {RECORDED: str(Mark(Figures(1, 10, 7, "x"), 3, "ab", 2)), "numRows": "3"}
    after = {**before, "numRows": "6", "numFiles": "1", "totalSize": "10", "COLUMN_STATS_ACCURATE": claiming("n")}
    withdraw_double_counted(before, after, are_files_listed=True)
    assert after == {"numRows": "6", "numFiles": "1", "totalSize": "10"}


def computed(place: Path, table: Table) -> dict[str, str]:
    """The parameters of what was computed there."""
    figures = FigureLister().figures(f"file:{place}")[0]
    assert figures is not None
    before = {"COLUMN_STATS_ACCURATE": claiming("n", "x")}
    return basic_statistics(before, 3, figures, COLUMNS, None, reading_of(table))


def is_current(place: Path, table: Table, parameters: dict[str, str], root: Path | None = None) -> bool:
    """Whether the job has nothing to do there."""
    row = {"catalog": "hive", "database": "d", "table": "t", "snapshot": None}
    found = _Place("p=1", f"file:{place}", parameters, reading=reading_of(table), table=f"file:{root or place.parent}")
    return unit_files(_row(row, FigureLister(), {}, None, found)).is_current


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "t" / "p=1"
    made.mkdir(parents=True)
    (made / "f").write_bytes(b"12345")
    return made


def test_what_others_wrote_beside_the_files_is_noticed(place: Path) -> None:
    table = table_of({"n": "int", "x": "double"}, **{"field.delim": ","})
    now = computed(place, table)
    assert json.loads(now["COLUMN_STATS_ACCURATE"])["COLUMN_STATS"] == {"n": "true"}
    assert is_current(place, table, now)
    # A writer that adds its rows to the number it has read counts those twice that the job had found in its files.
    assert not is_current(place, table, now | {"numRows": "5"})
    assert not is_current(place, table, {name: value for name, value in now.items() if name != "numRows"})
    # The metastore claims statistics as exact when they are written: the job ended before it withdrew this.
    assert not is_current(place, table, now | {"COLUMN_STATS_ACCURATE": claiming("n", "x")})
    # A writer that claims less does no harm.
    assert is_current(place, table, now | {"COLUMN_STATS_ACCURATE": "", "comment": "of others"})
    (place / "g").write_bytes(b"1")
    assert not is_current(place, table, now)


@pytest.mark.parametrize(
    ("columns", "of_serde"),
    [
        ({"n": "tinyint", "x": "double"}, {"field.delim": ","}),
        ({"x": "double", "n": "int"}, {"field.delim": ","}),
        ({"n": "int", "x": "double", "more": "array<int>"}, {"field.delim": ","}),
        ({"n": "int", "x": "double"}, {"field.delim": ";"}),
        ({"n": "int", "x": "double"}, {"field.delim": ",", "serialization.null.format": "NULL"}),
    ],
    ids=["type", "order", "column", "delimiter", "null"],
)
def test_rows_that_are_read_otherwise(place: Path, columns: dict[str, str], of_serde: dict[str, str]) -> None:
    """Without any change of files: no metastore invalidates the statistics of a table without partitions."""
    now = computed(place, table_of({"n": "int", "x": "double"}, **{"field.delim": ","}))
    assert not is_current(place, table_of(columns, **of_serde), now)


def test_options_of_sparks_own_tables(place: Path) -> None:
    def table(**of_serde: str) -> Table:
        return table_of({"n": "int", "x": "double"}, "csv", **of_serde)

    now = computed(place, table(header="false", path="file:/x"))
    assert is_current(place, table(path="file:/renamed", header="false"), now)
    assert not is_current(place, table(header="true"), now)


def test_a_file_system_that_is_not_mounted(tmp_path: Path) -> None:
    """It has counted no rows of others."""
    table = table_of({"n": "int"})

    def found(place: Path, root: Path) -> Any:
        row = {"catalog": "hive", "database": "d", "table": "t", "snapshot": None}
        there = _Place("p=1", f"file:{place}", {}, reading=reading_of(table), table=f"file:{root}")
        answer = unit_files(_row(row, FigureLister(), {}, None, there))
        return answer.figures, answer.problem

    mount = tmp_path / "mount"
    mount.mkdir()
    root = mount / "d.db" / "t"
    elsewhere = tmp_path / "archive" / "t" / "1"
    nothing = (Figures(0, 0, 0), None)
    assert found(root / "a=1" / "b=1", root) == found(root, root) == found(elsewhere, root) == (None, AWAY)
    # A table or partition that another client has deleted has no rows.
    root.parent.mkdir()
    elsewhere.parent.mkdir(parents=True)
    assert found(root / "a=1" / "b=1", root) == found(root, root) == found(elsewhere, root) == nothing
    root.mkdir()
    assert found(root / "a=1" / "b=1", root) == found(root, root) == nothing
    (root / "a=2").symlink_to(tmp_path / "not_mounted", target_is_directory=True)
    assert found(root / "a=2" / "b=1", root) == (None, AWAY)
