"""The job on real servers: what it writes, compared with the rows, read from the database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.stores import build_database_stores
from hms_cache.client import MetastoreClient
from hms_cache.config import Settings
from hms_cache.config.sections.catalog import CatalogSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.metadata.statistics_sketches import HyperLogLog
from hms_cache.metadata.statistics_values import values_of
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics
from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess, remote
from tests.databases import closing
from tests.jobs.hive_sketches import hive_sketches
from tests.jobs.statistics.catalog import (
    COLUMNS,
    append,
    create,
    create_plain,
    expected,
    keys,
    rows_of_partition,
    run_statistics,
)
from tests.jobs.verify.test_verify import compare

pytestmark = [pytest.mark.spark, pytest.mark.timeout(290)]

ERROR = 0.13
"""Four times 1.04 / sqrt(1,024)."""


class Stored:
    """Statistics as they are in the database, with their bit vectors."""

    def __init__(self, database: Database) -> None:
        settings = Settings(catalog=CatalogSettings(statistics_sketches=True))
        self._store = build_database_stores(settings, database).objects

    def of_table(self, table: str) -> ColumnStatistics:
        return self._store.reads.statistics.get_table_column_statistics(
            StatisticsQuery(TableName("hive", "default", table), list(COLUMNS))
        )

    def of_partitions(self, table: str, names: Sequence[str]) -> dict[str, ColumnStatistics]:
        found = self._store.reads.statistics.get_partition_column_statistics(
            StatisticsQuery(TableName("hive", "default", table), list(COLUMNS)), names
        )
        return {one.statsDesc.partName: one for one in found}


def name_of(number: int) -> str:
    region, bucket = keys(number)
    return make_partition_name(["region", "bucket"], [region, str(bucket)])


def values_in(column: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [row[list(COLUMNS).index(column)] for row in rows]


def assert_statistics(found: ColumnStatistics, *parts: Sequence[tuple[Any, ...]]) -> None:
    """Statistics of the rows in all parts; of several, bounds and lengths are those of the parts."""
    by_column = {one.colName: one for one in found.statsObj}
    assert by_column.keys() == COLUMNS.keys()
    for column, one in by_column.items():
        assert one.colType == COLUMNS[column]
        values = values_of(one)
        wanted = expected(column, [value for part in parts for value in values_in(column, part)])
        each = [expected(column, values_in(column, part)) for part in parts]
        of_parts = [one.values for one in each]
        # If one part with values has no bound, because it is infinite, the whole has none.
        lows: list[Any] = [part.values.low for part in each if part.distinct]
        highs: list[Any] = [part.values.high for part in each if part.distinct]
        low = None if None in lows else min(lows, default=None)
        assert (values.low, values.high) == (low, None if None in highs else max(highs, default=None)), column
        for figure in ("kind", "nulls", "trues", "falses", "maximum_length"):
            assert getattr(values, figure) == getattr(wanted.values, figure), (column, figure)
        # Hive's schema for MySQL keeps four decimal places.
        assert values.average_length == pytest.approx(max(part.average_length for part in of_parts), abs=5.01e-5)
        assert abs(values.distinct - wanted.distinct) <= ERROR * wanted.distinct, column
        if values.kind.has_distinct_values:
            assert values.bit_vector is not None
            assert HyperLogLog.read(values.bit_vector).count() == max(1, values.distinct)


def start(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path, database: str
) -> tuple[Any, dict[str, Any]]:
    """On SQLite, stored bit vectors come from the database, otherwise from the server."""
    from_database = database == "sqlite"
    server = start_server(database, **{"catalog.statistics_sketches": "false" if from_database else "true"})
    conf = remote(tmp_path, server.uri) | {"spark.hadoop.hive.exec.max.dynamic.partitions": "10000"}
    spark.session(conf)
    options = {"metastore": server.uri, "state": str(tmp_path / "state" / "places.json")}
    return server, options | ({"database": server.database_url} if from_database else {})


@pytest.mark.parametrize(
    ("database_kind", "read_by_spark"),
    [
        pytest.param("sqlite", False, marks=[pytest.mark.soak, pytest.mark.short]),
        pytest.param("sqlite", True, marks=pytest.mark.soak),
        pytest.param("mariadb", False, marks=[pytest.mark.mariadb, pytest.mark.soak]),
    ],
)
def test_statistics_of_all_types(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path, database_kind: str, read_by_spark: bool
) -> None:
    server, options = start(spark, start_server, tmp_path, database_kind)
    options["read_by_spark"] = read_by_spark
    spark.call(create, table="sales", partitions=9, rows=40)
    spark.call(create_plain, table="plain", rows=300)

    plan = spark.call(run_statistics, dry_run=True, **options)
    assert plan["tables"]["Plan"] == [
        ["default.plain", len(COLUMNS), None, 0, 1, 1, None],
        ["default.sales", len(COLUMNS), 9, 0, 9, 9, None],
    ]
    with closing(Database(server.database_url)) as database:
        stored = Stored(database)
        assert stored.of_table("plain").statsObj == []
        assert not Path(options["state"]).exists()

        # Without the database; the server on SQLite returns no bit vectors: the table's come from what is written.
        first = spark.call(run_statistics, **{name: value for name, value in options.items() if name != "database"})
        assert (first["exit_status"], first["summary"]["failures"]) == (0, 0), first
        assert (first["summary"]["partitions written"], first["summary"]["rows read"]) == (9, 9 * 40 + 300)
        assert "Notes" not in first["tables"]
        content = {number: rows_of_partition(number, 40) for number in range(9)}
        found = stored.of_partitions("sales", [name_of(number) for number in content])
        for number, rows in content.items():
            assert_statistics(found[name_of(number)], rows)
        assert_statistics(stored.of_table("plain"), rows_of_partition(0, 300))
        assert_statistics(stored.of_table("sales"), *content.values())

        again = spark.call(run_statistics, **options)
        assert (again["summary"]["tables computed"], again["summary"]["partitioned tables merged"]) == (0, 0), again
        assert compare([server.uri], server.database_url)[0] == set()

        before = found
        spark.call(append, table="sales", numbers=[1, 4, 20], rows=30, seed=1)
        next_one = spark.call(run_statistics, **options)
        assert next_one["tables"]["Plan"] == [["default.sales", len(COLUMNS), 10, 3, 1, 3, None]]
        assert next_one["summary"]["partitions written"] == 3
        for number in (1, 4, 20):
            content[number] = content.get(number, []) + rows_of_partition(number, 30, 1)
        found = stored.of_partitions("sales", [name_of(number) for number in content])
        for number, rows in content.items():
            assert_statistics(found[name_of(number)], rows)
            if number not in (1, 4, 20):
                assert found[name_of(number)] == before[name_of(number)]
        assert_statistics(stored.of_table("sales"), *content.values())
    # The server shows them, too: its cache followed the writes.
    with MetastoreClient(server.uri) as client:
        [requested] = client.call("get_table_column_statistics", "default", "sales", "whole").statsObj
        nulls = [value for rows in content.values() for value in values_in("whole", rows)].count(None)
        assert values_of(requested).nulls == nulls


@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_thousand_partitions_and_ten_that_changed(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path
) -> None:
    server, options = start(spark, start_server, tmp_path, "mariadb")
    spark.call(create, table="sales", partitions=1_000, rows=20)
    first = spark.call(run_statistics, **options)
    assert (first["exit_status"], first["summary"]["partitions written"]) == (0, 1_000), first
    changed = list(range(5, 1_000, 100))
    spark.call(append, table="sales", numbers=changed, rows=10, seed=1)
    second = spark.call(run_statistics, **options)
    assert second["tables"]["Plan"] == [["default.sales", len(COLUMNS), 1_000, 10, 0, 10, None]]
    assert second["summary"]["partitions written"] == 10
    assert second["summary"]["rows read"] == 300
    content = {number: rows_of_partition(number, 20) for number in range(1_000)}
    for number in changed:
        content[number] += rows_of_partition(number, 10, 1)
    with closing(Database(server.database_url)) as database:
        stored = Stored(database)
        found = stored.of_partitions("sales", [name_of(number) for number in content])
        for number, rows in content.items():
            assert_statistics(found[name_of(number)], rows)
        whole = stored.of_table("sales")
    assert_statistics(whole, *content.values())
    sketches = [
        (values.distinct, values.bit_vector)
        for statistics in [whole, *list(found.values())[:100]]
        for values in map(values_of, statistics.statsObj)
        if values.bit_vector is not None
    ]
    for (distinct, _), (estimate, _) in zip(
        sketches, hive_sketches([("merge", [data]) for _, data in sketches]), strict=True
    ):
        assert max(1, distinct) == max(1, estimate)
