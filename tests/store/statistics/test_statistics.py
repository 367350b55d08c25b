"""Column statistics are written, read, merged and deleted, with parameters and events."""

from __future__ import annotations

import json
from contextlib import closing
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.statistics_sketches import HyperLogLog
from hms_cache.metadata.statistics_values import decimal_struct
from hms_cache.store.contract.environment import Writer
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.store.rows.parameters import accurate_columns
from hms_cache.store.schema import NOTIFICATION_LOG, PART_COL_STATS, PARTITION_PARAMS, TAB_COL_STATS, TABLE_PARAMS, TBLS
from hms_cache.store.statistics.statistics_store import Statistics
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    InvalidObjectException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    StringColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
)
from tests.databases import DatabaseServer
from tests.store.partitions.catalog import PartitionCatalog, partition

T = ("hive", "d", "t")
COLUMNS = [
    ("a_long", "bigint"),
    ("a_double", "double"),
    ("a_string", "varchar(20)"),
    ("a_binary", "binary"),
    ("a_boolean", "boolean"),
    ("a_decimal", "decimal(10,2)"),
    ("a_date", "date"),
    ("a_timestamp", "timestamp"),
    ("old_timestamp", "timestamp"),
]
KEYS = [("dt", "string"), ("hr", "int")]


def sketch(*values: int) -> bytes:
    made = HyperLogLog()
    made.sparse = {value * 977 % (1 << 25): 1 for value in values}
    return made.serialized()


def all_kinds() -> list[ColumnStatisticsObj]:
    data = {
        "a_long": ColumnStatisticsData(longStats=LongColumnStatsData(-5, 1 << 40, 3, 17, sketch(1, 2), b"KLL....")),
        "a_double": ColumnStatisticsData(doubleStats=DoubleColumnStatsData(-0.5, 2.25, 1, 4)),
        "a_string": ColumnStatisticsData(stringStats=StringColumnStatsData(20, 7.25, 2, 9, sketch(3))),
        "a_binary": ColumnStatisticsData(binaryStats=BinaryColumnStatsData(12, 3.5, 6)),
        "a_boolean": ColumnStatisticsData(booleanStats=BooleanColumnStatsData(4, 5, 6)),
        "a_decimal": ColumnStatisticsData(
            decimalStats=DecimalColumnStatsData(decimal_struct(Number("-1.50")), decimal_struct(Number("1E+3")), 0, 8)
        ),
        "a_date": ColumnStatisticsData(dateStats=DateColumnStatsData(Date(-10), Date(19000), 1, 2)),
        "a_timestamp": ColumnStatisticsData(
            timestampStats=TimestampColumnStatsData(Timestamp(-1), Timestamp(1700000000), 1, 2)
        ),
        "old_timestamp": ColumnStatisticsData(longStats=LongColumnStatsData(5, 6, 1, 2)),
    }
    types = dict(COLUMNS)
    return [ColumnStatisticsObj(column, types[column], value) for column, value in sorted(data.items())]


def of_table(*objects: ColumnStatisticsObj, engine: str = "hive") -> ColumnStatistics:
    return ColumnStatistics(ColumnStatisticsDesc(True, "D", "T"), list(objects), engine=engine)


def of_partition(name: str, *objects: ColumnStatisticsObj) -> ColumnStatistics:
    return ColumnStatistics(ColumnStatisticsDesc(False, "d", "t", name), list(objects))


def longs(column: str = "a_long", low: int = 0, high: int = 9, nulls: int = 0, distinct: int = 5) -> Any:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(low, high, nulls, distinct))
    return ColumnStatisticsObj(column, "bigint", data)


@pytest.fixture
def flat(catalog: PartitionCatalog) -> PartitionCatalog:
    catalog.create_table(keys=[], columns=COLUMNS)
    return catalog


@pytest.fixture
def parted(catalog: PartitionCatalog) -> PartitionCatalog:
    catalog.create_table(columns=COLUMNS)
    catalog.writes.add_partitions(TableName(*T), [partition("a", str(hour)) for hour in range(4)])
    return catalog


def table_parameters(catalog: PartitionCatalog) -> dict[str, str]:
    return {row.PARAM_KEY: row.PARAM_VALUE for row in catalog.rows(TABLE_PARAMS)}


def test_every_kind_comes_back_as_it_was_written(initialized_database: Database, tmp_path: Path) -> None:
    settings = Settings(catalog=CatalogSettings(statistics_sketches=True, statistics_histograms=True))
    catalog = PartitionCatalog(initialized_database, tmp_path, settings)
    catalog.create_table(keys=[], columns=COLUMNS)
    store = Statistics(catalog.context)
    store.update_table_column_statistics(of_table(*all_kinds()))
    found = store.get_table_column_statistics(StatisticsQuery(TableName(*T), [column.upper() for column, _ in COLUMNS]))
    assert found.statsObj == all_kinds()
    description = found.statsDesc
    assert (description.isTblLevel, description.catName, description.dbName, description.tableName) == (
        True,
        "hive",
        "d",
        "t",
    )
    assert description.lastAnalyzed > 0
    assert found.engine == "hive"
    assert found.isStatsCompliant is None


def test_bit_vectors_are_answered_only_where_asked_for(flat: PartitionCatalog) -> None:
    store = Statistics(flat.context)
    store.update_table_column_statistics(of_table(*all_kinds()))
    found = store.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a_long", "a_string", "nothing"]))
    assert [one.colName for one in found.statsObj] == ["a_long", "a_string"]
    assert found.statsObj[0].statsData.longStats.bitVectors is None
    assert found.statsObj[0].statsData.longStats.histogram is None
    assert found.statsObj[1].statsData.stringStats.numDVs == 9


def test_statistics_mark_columns_as_accurate(flat: PartitionCatalog) -> None:
    store = Statistics(flat.context)
    store.update_table_column_statistics(of_table(longs()))
    store.update_table_column_statistics(of_table(longs("A_DOUBLE")))
    assert json.loads(table_parameters(flat)["COLUMN_STATS_ACCURATE"]) == {
        "COLUMN_STATS": {"a_double": "true", "a_long": "true"}
    }
    assert flat.events() == [("UPDATE_TBL_COL_STAT_EVENT", "t")] * 2


@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"])
def test_columns_may_have_more_characters_than_tables(database_server: DatabaseServer, tmp_path: Path) -> None:
    """Hive's script for MySQL stores all names in latin1; sites with names of columns in Chinese only change theirs."""
    url = database_server.create_database()
    with closing(Database(url)) as database:
        init_schema(database)
        narrow = "VARCHAR(256) CHARACTER SET latin1 COLLATE latin1_bin"
        with database.checking() as connection:
            connection.exec_driver_sql(f"ALTER TABLE TBLS MODIFY TBL_NAME {narrow}")
    with closing(Database(url)) as database:
        catalog = PartitionCatalog(database, tmp_path)
        catalog.create_table("flat", keys=[], columns=[("名称", "bigint"), ("a", "bigint")])
        catalog.create_table(columns=[("名称", "bigint"), ("a", "bigint")])
        catalog.writes.add_partitions(TableName(*T), [partition("a", "0")])
        store, requested = Statistics(catalog.context), ["a", "名称"]
        store.update_table_column_statistics(
            ColumnStatistics(ColumnStatisticsDesc(True, "d", "flat"), [longs("名称"), longs("a")])
        )
        store.update_partition_column_statistics([of_partition("dt=a/hr=0", longs("名称"), longs("a"))])
        flat = store.get_table_column_statistics(StatisticsQuery(TableName("hive", "d", "flat"), requested))
        [found] = store.get_partition_column_statistics(StatisticsQuery(TableName(*T), requested), ["dt=a/hr=0"])
        for one in (flat, found):
            assert [each.colName for each in one.statsObj] == requested
        assert store.get_aggregate_statistics(StatisticsQuery(TableName(*T), requested), ["dt=a/hr=0"]).partsFound == 1
    database_server.drop_database(url)


def test_an_update_replaces_and_engines_are_apart(flat: PartitionCatalog) -> None:
    store = Statistics(flat.context)
    store.update_table_column_statistics(of_table(longs(high=9), longs("a_date")))
    store.update_table_column_statistics(of_table(longs(high=77)))
    store.update_table_column_statistics(of_table(longs(high=5), engine="impala"))

    def high(engine: str) -> list[int]:
        found = store.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a_long"], engine))
        return [one.statsData.longStats.highValue for one in found.statsObj]

    assert (high("hive"), high("impala"), high("nobody")) == ([77], [5], [])
    assert len(flat.rows(TAB_COL_STATS)) == 3


@pytest.mark.parametrize(
    ("statistics", "error", "text"),
    [
        (of_table(longs("no_such")), MetaException, "Column no_such doesn't exist in table t in database d"),
        (
            of_table(ColumnStatisticsObj("a_long", "bigint", ColumnStatisticsData())),
            InvalidObjectException,
            "no statistics of a known type",
        ),
        (
            ColumnStatistics(ColumnStatisticsDesc(True, "d", "absent"), [longs()]),
            NoSuchObjectException,
            r"hive\.d\.absent table not found",
        ),
        (ColumnStatistics(None, [longs()]), InvalidObjectException, "Invalid column stats object"),
    ],
)
def test_refused_statistics(
    sqlite_catalog: PartitionCatalog, statistics: ColumnStatistics, error: type[Exception], text: str
) -> None:
    sqlite_catalog.create_table(keys=[], columns=COLUMNS)
    with pytest.raises(error, match=text):
        Statistics(sqlite_catalog.context).update_table_column_statistics(statistics)
    assert sqlite_catalog.rows(TAB_COL_STATS) == []
    assert sqlite_catalog.events() == []


def test_statistics_of_partitions(parted: PartitionCatalog) -> None:
    store = Statistics(parted.context)
    store.update_partition_column_statistics(
        [of_partition(f"DT=a/hr={hour}", longs(high=hour), longs("a_date", nulls=hour)) for hour in (2, 0, 1)]
    )
    names = [f"dt=a/hr={hour}" for hour in range(4)]
    found = store.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a_long", "a_date", "a_double"]), names
    )
    assert [one.statsDesc.partName for one in found] == names[:3]
    assert [[each.colName for each in one.statsObj] for one in found] == [["a_date", "a_long"]] * 3
    assert [one.statsObj[1].statsData.longStats.highValue for one in found] == [0, 1, 2]
    assert store.get_partition_column_statistics(StatisticsQuery(TableName(*T), []), names) == []
    assert store.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["a_long"]), ["dt=x/hr=0"]) == []
    accurate = parted.reads.get_partition(TableName(*T), ["a", "1"]).parameters["COLUMN_STATS_ACCURATE"]
    assert json.loads(accurate) == {"COLUMN_STATS": {"a_date": "true", "a_long": "true"}}
    assert parted.events()[1:] == [("UPDATE_PART_COL_STAT_EVENT", "t")] * 3
    messages = [row.MESSAGE for row in parted.rows(NOTIFICATION_LOG) if row.EVENT_TYPE.startswith("UPDATE")]
    assert sorted(json.loads(message)["partVals"][1] for message in messages) == ["0", "1", "2"]


MANY_COLUMNS = ["a_long", *(f"c{number}" for number in range(66_000))]
"""More than PostgreSQL takes parameters in a statement, 65,535."""


def test_more_columns_may_be_named_than_a_statement_takes(flat: PartitionCatalog) -> None:
    store = Statistics(flat.context)
    store.update_table_column_statistics(of_table(longs(), longs("a_date")))
    found = store.get_table_column_statistics(StatisticsQuery(TableName(*T), MANY_COLUMNS))
    assert [one.colName for one in found.statsObj] == ["a_long"]


def test_more_columns_of_partitions_may_be_named_than_a_statement_takes(parted: PartitionCatalog) -> None:
    store = Statistics(parted.context)
    store.update_partition_column_statistics([of_partition("dt=a/hr=1", longs(), longs("a_date"))])
    [found] = store.get_partition_column_statistics(StatisticsQuery(TableName(*T), MANY_COLUMNS), ["dt=a/hr=1"])
    assert [one.colName for one in found.statsObj] == ["a_long"]
    aggregated = store.get_aggregate_statistics(StatisticsQuery(TableName(*T), MANY_COLUMNS), ["dt=a/hr=1"])
    assert [one.colName for one in aggregated.colStats] == ["a_long"]


@pytest.mark.parametrize("merges", [False, True])
def test_the_keys_of_a_partition_may_come_in_any_order(parted: PartitionCatalog, merges: bool) -> None:
    """Hive finds the partition by its values, and this client spells the name freely."""
    store = Statistics(parted.context)
    if merges:  # with what is there
        store.update_partition_column_statistics([of_partition(f"dt=a/hr={hour}", longs(low=8)) for hour in (1, 2, 3)])
    for name, low in (("hr=1/dt=a", 1), ("HR=2/DT=a", 2), ("dt=a/hr=3", 3)):
        given = [of_partition(name, longs(low=low))]
        if merges:
            store.merge_column_statistics(given)
        else:
            store.update_partition_column_statistics(given)
    names = [f"dt=a/hr={hour}" for hour in range(4)]
    found = store.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["a_long"]), names)
    lows = {one.statsDesc.partName: one.statsObj[0].statsData.longStats.lowValue for one in found}
    assert lows == {"dt=a/hr=1": 1, "dt=a/hr=2": 2, "dt=a/hr=3": 3}
    both = [of_partition("dt=a/hr=1", longs(low=-5)), of_partition("hr=1/dt=a", longs(low=-7, high=70))]
    store.update_partition_column_statistics(both)
    [found_again] = store.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["a_long"]), ["dt=a/hr=1"])
    assert found_again.statsObj[0].statsData.longStats.lowValue == -7
    for name, error in (
        ("hr=9/dt=a", NoSuchObjectException),
        ("dt=a", InvalidObjectException),
        ("dt=a/day=1", InvalidObjectException),
    ):
        with pytest.raises(error):
            store.update_partition_column_statistics([of_partition(name, longs())])


def test_partition_statistics_are_all_or_none(parted: PartitionCatalog) -> None:
    store = Statistics(parted.context)
    with pytest.raises(NoSuchObjectException, match="Partition for which stats is gathered doesn't exist"):
        store.update_partition_column_statistics(
            [of_partition("dt=a/hr=0", longs()), of_partition("dt=x/hr=0", longs())]
        )
    assert parted.rows(PART_COL_STATS) == []


def test_merging_is_for_accurate_columns_only(flat: PartitionCatalog) -> None:
    store = Statistics(flat.context)
    store.merge_column_statistics([of_table(longs())])
    assert flat.rows(TAB_COL_STATS) == [], "nothing says that what is there (nothing) is accurate"
    store.update_table_column_statistics(of_table(longs(low=0, high=9, nulls=1, distinct=5)))
    store.merge_column_statistics([of_table(longs(low=-3, high=7, nulls=2, distinct=6), longs("a_date"))])
    [row] = flat.rows(TAB_COL_STATS)
    assert (row.LONG_LOW_VALUE, row.LONG_HIGH_VALUE, row.NUM_NULLS, row.NUM_DISTINCTS) == (-3, 9, 3, 6)
    with pytest.raises(MetaException, match="Expecting only 1 ColumnStatistics"):
        store.merge_column_statistics([of_table(longs()), of_table(longs())])


def test_merging_partitions(parted: PartitionCatalog) -> None:
    store = Statistics(parted.context)
    store.update_partition_column_statistics([of_partition("dt=a/hr=0", longs(nulls=1)), of_partition("dt=a/hr=1")])
    store.merge_column_statistics(
        [
            of_partition("dt=a/hr=0", longs(nulls=2)),
            of_partition("dt=a/hr=0", longs(nulls=4)),
            of_partition("dt=a/hr=1", longs(nulls=8)),
        ]
    )
    [row] = parted.rows(PART_COL_STATS)
    assert (row.PARTITION_NAME, row.NUM_NULLS) == ("dt=a/hr=0", 7)


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("column", "given", "stored"),
    [
        ("a_double", DoubleColumnStatsData(NAN, NAN, 1, 4), DoubleColumnStatsData(None, None, 1, 4)),
        ("a_double", DoubleColumnStatsData(-INFINITE, 2.5, 1, 4), DoubleColumnStatsData(None, 2.5, 1, 4)),
        ("a_double", DoubleColumnStatsData(-1e30, INFINITE, 1, 4), DoubleColumnStatsData(-1e30, None, 1, 4)),
        ("a_string", StringColumnStatsData(20, NAN, 2, 9), StringColumnStatsData(20, 0.0, 2, 9)),
        ("a_binary", BinaryColumnStatsData(12, INFINITE, 6), BinaryColumnStatsData(12, 0.0, 6)),
    ],
)
def test_what_is_no_number_bounds_nothing(catalog: PartitionCatalog, column: str, given: Any, stored: Any) -> None:
    """MySQL has neither NaN nor infinities and SQLite no NaN: all databases store the same, and events contain it."""
    member = {"a_double": "doubleStats", "a_string": "stringStats", "a_binary": "binaryStats"}[column]
    catalog.create_table(keys=[], columns=COLUMNS)
    store = Statistics(catalog.context)
    one = ColumnStatisticsObj(column, dict(COLUMNS)[column], ColumnStatisticsData(**{member: given}))
    store.update_table_column_statistics(of_table(one))
    [found] = store.get_table_column_statistics(StatisticsQuery(TableName(*T), [column])).statsObj
    assert getattr(found.statsData, member) == stored
    [message] = [row.MESSAGE for row in catalog.rows(NOTIFICATION_LOG) if "UPDATE_TBL_COL_STAT" in row.EVENT_TYPE]
    assert "NaN" not in message
    assert "Infinity" not in message
    # An unknown bound must not be used for max().
    assert (column in accurate_columns(table_parameters(catalog))) is (column != "a_double")


@pytest.mark.parametrize("given", [NAN, INFINITE])
@pytest.mark.parametrize("of_partitions", [False, True])
def test_what_is_merged_with_no_number_is_exact_no_more(
    catalog: PartitionCatalog, given: float, of_partitions: bool
) -> None:
    """The old bound is not the new one, even if the new one cannot be stored."""
    catalog.create_table(keys=KEYS if of_partitions else [], columns=COLUMNS)
    name = "dt=a/hr=1" if of_partitions else None
    if of_partitions:
        catalog.writes.add_partitions(TableName(*T), [partition("a", "1")])
    store = Statistics(catalog.context)

    def merge(high: float) -> None:
        data = ColumnStatisticsData(doubleStats=DoubleColumnStatsData(0.5, high, 1, 4))
        own = [ColumnStatisticsObj("a_double", "double", data), longs(nulls=1)]
        store.merge_column_statistics([of_table(*own) if name is None else of_partition(name, *own)])

    first = [
        ColumnStatisticsObj(
            "a_double", "double", ColumnStatisticsData(doubleStats=DoubleColumnStatsData(0.5, 5.5, 1, 4))
        ),
        longs(nulls=1),
    ]
    if name is None:
        store.update_table_column_statistics(of_table(*first))
    else:
        store.update_partition_column_statistics([of_partition(name, *first)])
    for high in (7.5, given, 8.5):
        merge(high)
    table = PARTITION_PARAMS if of_partitions else TABLE_PARAMS
    claimed = accurate_columns({row.PARAM_KEY: row.PARAM_VALUE for row in catalog.rows(table)})
    assert claimed == {"a_long"}
    if name is None:
        found = store.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a_double", "a_long"])).statsObj
    else:
        [of_one] = store.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["a_double", "a_long"]), [name])
        found = of_one.statsObj
    doubles, whole = (one.statsData for one in found)
    assert (doubles.doubleStats.highValue, doubles.doubleStats.numNulls, whole.longStats.numNulls) == (
        None,
        3,
        4,
    )


def test_deleting(flat: PartitionCatalog) -> None:
    store = Statistics(flat.context)
    store.update_table_column_statistics(of_table(longs(), longs("a_date"), longs("a_double")))
    store.delete_table_column_statistics(TableName(*T), ["A_LONG"])
    assert [
        one.colName
        for one in store.get_table_column_statistics(StatisticsQuery(TableName(*T), ["a_long", "a_date"])).statsObj
    ] == ["a_date"]
    store.delete_table_column_statistics(TableName(*T))
    assert flat.rows(TAB_COL_STATS) == []
    with pytest.raises(NoSuchObjectException, match="Column stats doesn't exist for db=d table=t col=a_long"):
        store.delete_table_column_statistics(TableName(*T), ["a_long"])
    store.delete_table_column_statistics(TableName(*T))
    assert flat.events()[1:] == [("DELETE_TBL_COL_STAT_EVENT", "t")] * 2


def test_deleting_of_partitions(parted: PartitionCatalog) -> None:
    store = Statistics(parted.context)
    store.update_partition_column_statistics(
        [of_partition(f"dt=a/hr={hour}", longs(), longs("a_date")) for hour in range(3)]
    )
    store.delete_partition_column_statistics(TableName(*T), ["dt=a/hr=0", "dt=a/hr=1"], ["a_long"])
    left = sorted((row.PARTITION_NAME, row.COLUMN_NAME) for row in parted.rows(PART_COL_STATS))
    assert left == [
        ("dt=a/hr=0", "a_date"),
        ("dt=a/hr=1", "a_date"),
        ("dt=a/hr=2", "a_date"),
        ("dt=a/hr=2", "a_long"),
    ]
    with pytest.raises(NoSuchObjectException, match="for which stats deletion is requested doesn't exist"):
        store.delete_partition_column_statistics(TableName(*T), ["dt=x/hr=0"])
    with pytest.raises(NoSuchObjectException, match="Column stats doesn't exist for table"):
        store.delete_partition_column_statistics(TableName(*T), ["dt=a/hr=3"], ["a_long"])
    store.delete_partition_column_statistics(TableName(*T), ["dt=a/hr=3"])
    assert parted.events()[-2:] == [("DELETE_PART_COL_STAT_EVENT", "t")] * 2


@pytest.mark.parametrize("columns", [[], ["a_long"]], ids=["whole", "one column"])
@pytest.mark.parametrize(("engine", "left"), [(None, []), ("hive", ["impala"]), ("impala", ["hive"])])
def test_who_deletes_without_an_engine_deletes_those_of_all(
    parted: PartitionCatalog, columns: list[str], engine: str | None, left: list[str]
) -> None:
    """Like clients before Hive 4, which have none."""
    store, name = Statistics(parted.context), "dt=a/hr=0"
    for own in ("hive", "impala"):
        store.update_table_column_statistics(of_table(longs(), engine=own))
        one = of_partition(name, longs())
        one.engine = own
        store.update_partition_column_statistics([one])
    store.delete_table_column_statistics(TableName(*T), columns, engine=engine)
    store.delete_partition_column_statistics(TableName(*T), [name], columns, engine=engine)
    for table in (TAB_COL_STATS, PART_COL_STATS):
        assert [row.ENGINE for row in parted.rows(table)] == left
    store.delete_column_statistics(TableName(*T), of_table=True)
    store.delete_column_statistics(TableName(*T))
    assert not parted.rows(TAB_COL_STATS) and not parted.rows(PART_COL_STATS)


def test_aggregation_over_partitions(parted: PartitionCatalog) -> None:
    store = Statistics(parted.context)
    names = [f"dt=a/hr={hour}" for hour in range(4)]
    store.update_partition_column_statistics(
        [of_partition(name, longs(low=i, high=10 * i, nulls=i, distinct=i + 1)) for i, name in enumerate(names)]
    )
    found = store.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["a_long"]), names)
    data = found.colStats[0].statsData.longStats
    assert (found.partsFound, data.lowValue, data.highValue, data.numNulls, data.numDVs) == (4, 0, 30, 6, 4)
    assert store.get_aggregate_statistics(StatisticsQuery(TableName(*T), []), names).partsFound == 0
    assert store.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["a_long"]), []).colStats == []
    assert store.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["a_long", "a_date"]), names).partsFound == 0


def test_statistics_and_snapshots(sqlite_catalog: PartitionCatalog) -> None:
    catalog = sqlite_catalog
    catalog.create_table(columns=COLUMNS, parameters={"transactional": "true"})
    accurate = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    catalog.writes.add_partitions(
        TableName(*T), [partition("a", str(hour), parameters=accurate) for hour in range(2)], writer=Writer(write_id=1)
    )
    store = Statistics(catalog.context)
    names = ["dt=a/hr=0", "dt=a/hr=1"]
    with pytest.raises(MetaException, match=r"Cannot change stats state for a transactional table d\.t"):
        store.update_partition_column_statistics([of_partition(names[0], longs())])
    sees_two, sees_one = "d.t:2:9223372036854775807::", "d.t:1:9223372036854775807::"
    store.update_partition_column_statistics(
        [of_partition(name, longs()) for name in names], writer=Writer(write_id=2, valid_write_ids=sees_two)
    )
    fits = store.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a_long"], version=ReadVersion(valid_write_ids=sees_two)), names
    )
    assert [one.isStatsCompliant for one in fits] == [True, True]
    older = store.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a_long"], version=ReadVersion(valid_write_ids=sees_one)), names
    )
    assert [one.isStatsCompliant for one in older] == [False, False]
    assert (
        store.get_aggregate_statistics(
            StatisticsQuery(TableName(*T), ["a_long"], version=ReadVersion(valid_write_ids=sees_two)), names
        ).partsFound
        == 2
    )
    unseen = store.get_aggregate_statistics(
        StatisticsQuery(TableName(*T), ["a_long"], version=ReadVersion(valid_write_ids=sees_one)), names
    )
    assert (unseen.partsFound, unseen.colStats, unseen.isStatsCompliant) == (0, [], False)
    with pytest.raises(MetaException, match="Cannot delete stats via this API for a transactional table"):
        store.delete_partition_column_statistics(TableName(*T), names)


@pytest.mark.parametrize("write_id", [3, None])
@pytest.mark.parametrize("is_partitioned", [True, False])
def test_a_merge_over_unseen_statistics_takes_their_claim_back(
    sqlite_catalog: PartitionCatalog, is_partitioned: bool, write_id: int | None
) -> None:
    """They remain statistics of a transaction, also if the merging client names none: without one, they would be valid
    for each reader."""
    catalog = sqlite_catalog
    accurate = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    parameters = {"transactional": "true"} | ({} if is_partitioned else accurate)
    catalog.create_table(columns=COLUMNS, parameters=parameters, **({} if is_partitioned else {"keys": []}))
    if is_partitioned:
        parts = [partition("a", "0", parameters=accurate)]
        catalog.writes.add_partitions(TableName(*T), parts, writer=Writer(write_id=1))
    store = Statistics(catalog.context)
    own = of_partition("dt=a/hr=0", longs(nulls=1)) if is_partitioned else of_table(longs(nulls=1))
    first = Writer(write_id=2, valid_write_ids="d.t:2:9223372036854775807::")
    if is_partitioned:
        store.update_partition_column_statistics([own], writer=first)
    else:
        store.update_table_column_statistics(own, writer=first)
    store.merge_column_statistics([own], writer=Writer(write_id=write_id, valid_write_ids="d.t:3:2:2:"))
    query = StatisticsQuery(TableName(*T), ["a_long"], version=ReadVersion("d.t:3:9223372036854775807::"))
    if is_partitioned:
        [row] = catalog.rows(PART_COL_STATS)
        [found] = store.get_partition_column_statistics(query, ["dt=a/hr=0"])
        after = catalog.reads.get_partition(TableName(*T), ["a", "0"])
        assert ("COLUMN_STATS_ACCURATE" in after.parameters, after.writeId) == (False, write_id or 2)
    else:
        [row] = catalog.rows(TAB_COL_STATS)
        found = store.get_table_column_statistics(query)
        assert "COLUMN_STATS_ACCURATE" not in table_parameters(catalog)
        assert [row.WRITE_ID for row in catalog.rows(TBLS)] == [write_id or 2]
    assert (row.NUM_NULLS, found.isStatsCompliant) == (1, False)
