"""Which statistics are claimed as exact, so that Hive answers queries from them without reading a row."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hms_cache.client import MetastoreClient
from hms_cache.jobs.statistics.data_files import NESTED_FILES, RECORDED, Figures
from hms_cache.jobs.statistics.parameters import basic_statistics, not_answerable
from hms_cache.jobs.statistics.recording import Unit, counted, is_counted, is_planned_by, planned_by
from hms_cache.jobs.statistics.rows.listed_files import OTHER_FILES
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, statistics_of
from hms_cache.store.rows.parameters import accurate_columns, are_basic_statistics_accurate
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj, EnvironmentContext
from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess, remote
from tests.jobs.statistics.catalog import run_statistics

DOUBLE, DATE = StatisticsKind.DOUBLE, StatisticsKind.DATE
FIGURES = Figures(1, 10, 7, "x")


def days(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def column(name: str, hive_type: str, kind: StatisticsKind, **values: Any) -> ColumnStatisticsObj:
    return statistics_of(name, hive_type, ColumnValues(kind, **values))


COLUMNS = [
    column("plain", "double", DOUBLE, low=1.0, high=2.0, distinct=2),
    column("infinite", "double", DOUBLE, low=1.0, high=None, distinct=2),
    column("no_numbers", "float", DOUBLE, distinct=1),
    column("cut", "double", DOUBLE, low=0.00001, high=2.0, distinct=2),
    column("single", "float", DOUBLE, low=-1.0, high=0.10000000149011612, distinct=2),
    column("four_places", "double", DOUBLE, low=-0.0625, high=1234.5678, distinct=2),
    column("large", "double", DOUBLE, low=-1e40, high=123456789012345.0, distinct=2),
    column("empty", "double", DOUBLE, nulls=3),
    column("old", "date", DATE, low=days(date(1582, 10, 14)), high=5, distinct=2),
    column("first", "date", DATE, low=days(date(1582, 10, 15)), high=5, distinct=2),
    column("no_dates", "date", DATE, nulls=3),
    column("text", "string", StatisticsKind.STRING, distinct=2, average_length=1.0, maximum_length=1),
    column("number", "int", StatisticsKind.LONG, low=-(10**6), high=2, distinct=2),
]
NOT_CLAIMED = frozenset({"infinite", "no_numbers", "cut", "single", "old"})
CLAIMED = frozenset(one.colName for one in COLUMNS) - NOT_CLAIMED


def claiming(*columns: str) -> dict[str, str]:
    return {"COLUMN_STATS_ACCURATE": json.dumps({"COLUMN_STATS": dict.fromkeys(columns, "true")})}


def test_columns_that_hive_would_answer_wrongly_of() -> None:
    assert not_answerable(COLUMNS) == NOT_CLAIMED


def test_their_claims_are_taken_back_with_the_row_counts() -> None:
    before = claiming("other", *(one.colName for one in COLUMNS))
    after = basic_statistics(before, 3, FIGURES, COLUMNS, None)
    assert accurate_columns(after) == CLAIMED | {"other"} and are_basic_statistics_accurate(after)
    only = basic_statistics(claiming("old"), 3, FIGURES, COLUMNS, None)
    assert only["COLUMN_STATS_ACCURATE"] == '{"BASIC_STATS":"true"}'
    assert "COLUMN_STATS_ACCURATE" not in basic_statistics(before, 3, FIGURES, COLUMNS, "5:10")


def test_an_attempt_is_done_when_nothing_wrong_is_claimed() -> None:
    """Statistics that were just written claim all of their columns, also if the files were recorded before."""
    unit = Unit("p=1", 3, "file:/x", FIGURES, COLUMNS)
    before = claiming("old", "text") | {RECORDED: str(FIGURES)}
    assert not is_counted(unit, before) and not is_planned_by(unit, before)
    assert is_counted(unit, counted(unit, before))
    after = planned_by(unit, before)
    assert is_planned_by(unit, after) and accurate_columns(after) == {"text"} and after[RECORDED] == str(FIGURES)
    assert not is_counted(unit, after | {RECORDED: "others"})


def wide_tables(spark: SparkSession) -> None:
    """More columns than are read at once: the ones that must not be claimed are in the first and in the last group."""
    spark.sql("create database d")
    columns = "x double, " + ", ".join(f"c{number} int" for number in range(100)) + ", d date, y double"
    numbers = ", ".join(f"{number} as c{number}" for number in range(100))
    odd = f"select double('Infinity') as x, {numbers}, date'1500-01-01' as d, 2.0D as y"
    ordinary = f"select 1.0D as x, {numbers}, date'2024-01-01' as d, 1.0D as y"
    spark.sql(f"create table d.wide ({columns}) stored as parquet")
    spark.sql(f"insert into d.wide {odd} union all {ordinary}")
    spark.sql(f"create table d.parted ({columns}) partitioned by (p int) stored as parquet")
    spark.sql(f"insert into d.parted select *, 1 from ({odd} union all {ordinary})")
    spark.sql(f"insert into d.parted select *, 2 from ({ordinary})")
    spark.sql(f"create table d.odd ({columns}) partitioned by (p int) stored as parquet")
    spark.sql(f"insert into d.odd select *, 1 from ({odd})")


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(290)
def test_tables_that_are_read_in_several_passes(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path
) -> None:
    server = start_server("sqlite")
    spark.session(remote(tmp_path, server.uri))
    spark.call(wide_tables)
    every = frozenset({"x", "d", "y", *(f"c{number}" for number in range(100))})
    with MetastoreClient(server.uri) as client:

        def claims() -> dict[str, frozenset[str]]:
            found = {name: client.call("get_table", "d", name).parameters for name in ("wide", "parted", "odd")}
            for one in client.call("get_partitions", "d", "parted", -1):
                found[f"p={one.values[0]}"] = one.parameters
            return {name: every - accurate_columns(parameters) for name, parameters in found.items()}

        for options in ({}, {"all": True}):
            report = spark.call(run_statistics, metastore=server.uri, **options)
            assert report["exit_status"] == 0, report
            found = claims()
            assert {name: found[name] for name in ("wide", "p=1", "p=2")} == {
                "wide": {"x", "d"},
                "p=1": {"x", "d"},
                "p=2": frozenset(),
            }
            # Hive answers by the partitions; the table as a whole has the lowest day, no bound that one of them lacks.
            assert found["odd"] == found["parted"] == {"x", "d"}
        assert spark.call(run_statistics, metastore=server.uri)["tables"]["Plan"] == []


def tables_to_withdraw(spark: SparkSession) -> None:
    spark.sql("create database d")
    spark.sql("create table d.parted (a int) partitioned by (p int) stored as parquet")
    spark.sql("insert into d.parted values (1, 1), (2, 2), (3, 3)")
    spark.sql("create table d.plain (a int) stored as parquet")
    spark.sql("insert into d.plain values (1)")
    spark.sql("create table d.lines (a string) stored as textfile")
    spark.sql("insert into d.lines values ('a header'), ('1')")


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(290)
def test_what_is_known_to_be_no_longer_so_is_not_claimed(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path
) -> None:
    """Whatever prevents the job from computing it: Hive would answer from the claims each day until it is computed."""
    server = start_server("sqlite")
    spark.session(remote(tmp_path, server.uri))
    spark.call(tables_to_withdraw)

    def run(**options: Any) -> dict[str, Any]:
        found: dict[str, Any] = spark.call(run_statistics, metastore=server.uri, **options)
        return found

    with MetastoreClient(server.uri) as client:

        def states() -> dict[str, tuple[bool, bool, bool]]:
            """Whether the number of rows and the column are claimed as exact, and whether there is a mark."""
            found = {name: client.call("get_table", "d", name) for name in ("plain", "lines")}
            found |= {f"p={one.values[0]}": one for one in client.call("get_partitions", "d", "parted", -1)}
            return {
                name: (
                    are_basic_statistics_accurate(one.parameters),
                    accurate_columns(one.parameters) == {"a"},
                    RECORDED in one.parameters,
                )
                for name, one in found.items()
            }

        def alter(table: str, **parameters: str) -> None:
            altered = client.call("get_table", "d", table)
            altered.parameters |= parameters
            context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
            client.call("alter_table_with_environment_context", "d", table, altered, context)

        places = {one.values[0]: one.sd.location for one in client.call("get_partitions", "d", "parted", -1)}
        places["plain"] = client.call("get_table", "d", "plain").sd.location
        paths = {name: Path(place.removeprefix("file:")) for name, place in places.items()}
        [content] = (path.read_bytes() for path in paths["1"].iterdir() if path.name[0] not in "._")
        claimed, taken_back = (True, True, True), (False, False, False)

        assert run()["exit_status"] == 0
        every = dict.fromkeys(("plain", "lines", "p=1", "p=2", "p=3"), claimed)
        assert states() == every
        # Rows of a UNION ALL by Hive, and a file that is being copied, which Spark does not see, and one that cannot
        # be read.
        (paths["1"] / "HIVE_UNION_SUBDIR_1").mkdir()
        (paths["1"] / "HIVE_UNION_SUBDIR_1" / "x").write_bytes(content)
        (paths["plain"] / "x").write_bytes(b"no Parquet")
        (paths["3"] / "y._COPYING_").write_bytes(content)
        report = run()
        assert report["exit_status"] == 3, report
        reasons = {row[1]: row[2] for row in report["tables"]["Failures"]}
        assert (reasons.pop("p=1"), reasons.pop("p=3"), [*reasons]) == (NESTED_FILES, OTHER_FILES, [None])
        assert states() == every | dict.fromkeys(("p=1", "p=3", "plain"), taken_back)
        assert client.call("get_partition", "d", "parted", ["1"]).parameters["numRows"] == "1"
        # There are no claims left.
        before = client.call("get_current_notificationEventId").eventId
        run()
        assert client.call("get_current_notificationEventId").eventId == before
        # Left for the next run.
        (paths["1"] / "HIVE_UNION_SUBDIR_1" / "x").unlink()
        (paths["plain"] / "x").unlink()
        (paths["3"] / "y._COPYING_").unlink()
        for name in ("1", "2", "3"):
            (paths[name] / "x").write_bytes(content)
        assert run(max_bytes="1")["summary"]["left for the next run"] > 0
        postponed = states()
        assert list(postponed.values()).count(claimed) == 2  # the first one, and the table that did not change
        assert all(state in (claimed, taken_back) for state in postponed.values())
        assert run()["exit_status"] == 0
        assert states() == every
        # Tables that Spark would read differently than Hive from now on.
        alter("lines", **{"skip.header.line.count": "1"})
        alter("parted", **{"parquet.column.index.access": "true"})
        assert run()["exit_status"] == 0
        assert states() == dict.fromkeys(every, taken_back) | {"plain": claimed}
        before = client.call("get_current_notificationEventId").eventId
        assert run()["exit_status"] == 0
        assert client.call("get_current_notificationEventId").eventId == before
        alter("lines", **{"skip.header.line.count": "0"})
        alter("parted", **{"parquet.column.index.access": "false"})
        assert run()["exit_status"] == 0
        assert states() == every
        # A number to which another writer has added its rows, which were already counted.
        alter("plain", numRows="2")
        assert run()["exit_status"] == 0
        assert client.call("get_table", "d", "plain").parameters["numRows"] == "1"
        assert states() == every
