"""The columns and conditions of a query decide what is read, and never change its result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources.catalog import HmsCatalogReader, HmsCatalogSource
from hms_cache.jobs.sources.catalog_schemas import SCHEMAS
from hms_cache.jobs.sources.events import SCHEMA as EVENTS
from hms_cache.jobs.sources.events import EventOptions, HmsEventsReader, HmsEventsSource
from hms_cache.jobs.sources.options import SliceSize
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.store.engine.database import Database
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog

datasource = pytest.importorskip("pyspark.sql.datasource")
types = pytest.importorskip("pyspark.sql.types")

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def filters() -> list[tuple[Any, Callable[[dict[str, Any]], bool]]]:
    """Conditions as Spark pushes them down, with their meaning."""
    of = datasource
    return [
        (of.EqualTo(("database",), "sales"), lambda row: row["database"] == "sales"),
        (of.EqualTo(("database",), None), lambda row: False),
        (of.In(("table",), ("big", "small", None)), lambda row: row.get("table") in ("big", "small")),
        (of.StringStartsWith(("table",), "s"), lambda row: row["table"].startswith("s")),
        (of.EqualNullSafe(("partition",), "day=x%3Dy"), lambda row: row["partition"] == "day=x%3Dy"),
        (of.StringStartsWith(("partition",), "day=d1"), lambda row: (row["partition"] or "").startswith("day=d1")),
        (of.In(("partition",), ("day=d0/hour=3", "nothing")), lambda row: row["partition"] == "day=d0/hour=3"),
        (of.EqualNullSafe(("partition",), None), lambda row: row["partition"] is None),
        (of.EqualTo(("num_rows",), 7), lambda row: row["num_rows"] == 7),
        (of.Not(of.EqualTo(("table",), "big")), lambda row: row["table"] != "big"),
    ]


def fill(uri: str) -> None:
    with closing(Catalog(uri)) as catalog:
        catalog.database("sales")
        catalog.database("other")
        catalog.table("sales", "big", keys=["day", "hour"])
        catalog.partitions("sales", "big", [(f"d{number // 10}", f"{number % 10}") for number in range(25)])
        catalog.table("sales", "small", keys=["day"])
        catalog.partitions("sales", "small", [("x=y",), ("__HIVE_DEFAULT_PARTITION__",)])
        catalog.table("other", "plain", numRows="7")
        catalog.statistics("other", "plain")
        catalog.statistics("sales", "small", "day=x%3Dy")
        catalog.statistics("sales", "big", "day=d0/hour=3")


def columns_of(kind: str, names: list[str]) -> Any:
    return types.StructType([SCHEMAS[kind][name] for name in names])


def rows_of(reader: Any) -> list[Row]:
    return [row for part in reader.partitions() for row in reader.read(part)]


def some_columns(kind: str) -> Iterator[list[str]]:
    names = SCHEMAS[kind].names
    yield names
    yield [name for name in ("table", "database") if name in names]
    yield [name for name in ("values", "partition", "table") if name in names] or names[:2]
    yield [names[-1], names[0]]
    yield names[1:2]
    yield []


@pytest.mark.soak
@pytest.mark.long
def test_the_answer_is_that_of_reading_all(start_server: ServerStarter, filters: list[Any]) -> None:
    server = start_server("sqlite")
    fill(server.uri)
    pushed = 0
    for origin in (Origin(metastore=server.uri), Origin(database=server.database_url)):
        for kind, size in zip(SCHEMAS, itertools.cycle((1_000, 10)), strict=False):
            schema = SCHEMAS[kind].names
            read = HmsCatalogReader(kind, origin, TableScope(), slice_size=SliceSize(500, size))
            everything = rows_of(read)
            assert len(everything) >= 3
            chosen = [(one, meaning) for one, meaning in filters if _column(one) in schema]
            for names, wanted in zip(some_columns(kind), _combinations(chosen), strict=False):
                reader = HmsCatalogReader(
                    kind, origin, TableScope(), slice_size=SliceSize(500, size), columns=columns_of(kind, names)
                )
                left = list(reader.pushFilters([one for one, _ in wanted]))
                pushed += len(wanted) - len(left)
                taken = [meaning for one, meaning in wanted if one not in left]
                expected = [
                    tuple(named[name] for name in names)
                    for named in (dict(zip(schema, row, strict=True)) for row in everything)
                    if all(meaning(named) for meaning in taken)
                ]
                assert sorted(rows_of(reader), key=repr) == sorted(expected, key=repr), (kind, names, wanted)
    assert pushed > 40


def _column(condition: Any) -> str:
    return str((condition.child if hasattr(condition, "child") else condition).attribute[0])


def _combinations(chosen: list[Any]) -> Iterator[list[Any]]:
    """None, each one, and some together; as many as there are selections of columns."""
    return itertools.cycle([[], *([one] for one in chosen), chosen[:2], chosen[1:4]])


@pytest.mark.soak
def test_names_alone_are_read_where_they_are_enough(
    start_server: ServerStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server("sqlite")
    fill(server.uri)
    called: list[str] = []
    call = MetastoreClient.call

    def listening(self: MetastoreClient, method: str, *arguments: Any) -> Any:
        called.append(method)
        return call(self, method, *arguments)

    monkeypatch.setattr(MetastoreClient, "call", listening)
    for kind, names in (
        ("databases", ["database"]),
        ("tables", ["table", "database"]),
        ("partitions", ["partition", "values", "table"]),
    ):
        called.clear()
        reader = HmsCatalogReader(kind, Origin(metastore=server.uri), TableScope(), columns=columns_of(kind, names))
        planned = list(reader.partitions())
        asked_for_plan = list(called)
        assert [row for part in planned for row in reader.read(part)]
        reading = called[len(asked_for_plan) :]
        assert set(reading) <= {"get_partition_names"}, kind
    called.clear()
    reader = HmsCatalogReader("partitions", Origin(metastore=server.uri), TableScope())
    assert not list(reader.pushFilters([datasource.EqualTo(("partition",), "day=d1/hour=1")]))
    assert [row[3] for row in rows_of(reader)] == ["day=d1/hour=1"]
    assert called.count("get_partitions_by_names_req") == 1


def test_events(sqlite_database: Database) -> None:
    from tests.jobs.sources.test_event_range import append, trim

    append(sqlite_database, 20)
    append(sqlite_database, 5, "u")
    trim(sqlite_database, 2)
    url = sqlite_database.url.render_as_string(hide_password=False)

    def read(*pushed: Any, columns: Any = EVENTS) -> list[Row]:
        reader = HmsEventsReader(EventOptions.of_options({"database": url}, columns))
        left = list(reader.pushFilters(list(pushed)))
        assert left == [one for one in pushed if isinstance(one, datasource.StringStartsWith)]
        return rows_of(reader)

    of = datasource
    ids = types.StructType([EVENTS["event_id"]])
    assert [row[0] for row in read()] == list(range(3, 26))
    for condition, expected in (
        (of.GreaterThan(("event_id",), 22), [23, 24, 25]),
        (of.GreaterThanOrEqual(("event_id",), 1), list(range(3, 26))),
        (of.LessThan(("event_id",), 5), [3, 4]),
        (of.LessThanOrEqual(("event_id",), 0), []),
        (of.EqualTo(("event_id",), 9), [9]),
        (of.In(("table",), ("t4", "u0", None)), [5, 21]),
        (of.EqualTo(("event_type",), None), []),
        (of.StringStartsWith(("table",), "u"), list(range(3, 26))),
    ):
        assert [row[0] for row in read(condition, columns=ids)] == expected, condition
    both = read(of.LessThan(("event_id",), 24), of.In(("table",), ("u1", "u4")), of.EqualTo(("table",), "u1"))
    assert [row[0] for row in both] == [22] and both[0][6]
    assert read(of.EqualTo(("event_id",), 9), columns=types.StructType([EVENTS["table"], EVENTS["event_id"]])) == [
        ("t8", 9)
    ]


def test_a_table_keeps_its_options_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"DATABASE": "mysql://hive@db/metastore", "password_variable": "SECRET", "kind": "partitions"}
    schema = HmsCatalogSource(options | {"columns": "table, num_rows"}).schema()
    assert schema.names == ["table", "num_rows"]
    again = types.StructType.fromJson(schema.jsonValue())
    with pytest.raises(ConfigurationError, match="SECRET"):
        HmsCatalogSource({}).reader(again)
    monkeypatch.setenv("SECRET", "p/w")
    reader = HmsCatalogSource({}).reader(again)
    assert (reader._kind, reader._origin.database) == ("partitions", "mysql://hive:p%2Fw@db/metastore")
    for url in ("mysql://hive:open@db/metastore", "jdbc:postgresql://db/metastore?user=hive&password=open"):
        schema = HmsEventsSource({"database": url}).schema()
        assert "open" not in schema.json()
        with pytest.raises(ConfigurationError, match="stores no password"):
            HmsEventsSource({}).reader(schema)
        assert HmsEventsSource({"database": url}).reader(schema)._options.origin.database == url


def test_a_column_that_is_not_there_is_said() -> None:
    with pytest.raises(ConfigurationError, match="no column owners"):
        HmsCatalogSource({"metastore": "thrift://a:1", "columns": "table,owners"}).schema()
    requested = types.StructType([types.StructField("num_rows", types.StringType())])
    with pytest.raises(ConfigurationError, match="no column num_rows string"):
        HmsCatalogSource({"metastore": "thrift://a:1"}).reader(requested)
