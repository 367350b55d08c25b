"""Partitions are added, read in all ways, and dropped."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByExpression,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionProjection,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import (
    CDS,
    COLUMNS_V2,
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
    SD_PARAMS,
    SDS,
    SERDE_PARAMS,
    SERDES,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Order,
    SerDeInfo,
    SkewedInfo,
)
from tests.store.partitions.catalog import PartitionCatalog, descriptor, partition

T = ("hive", "d", "t")


def some(catalog: PartitionCatalog, *, days: int = 3, hours: int = 4) -> None:
    catalog.create_table()
    catalog.writes.add_partitions(
        TableName(*T), [partition(f"2024-01-0{day}", str(hour)) for day in range(1, days + 1) for hour in range(hours)]
    )


def test_what_is_added_is_read(catalog: PartitionCatalog) -> None:
    location = catalog.create_table()
    sent = partition(
        "2024-01-01",
        "7",
        parameters={"b": "2", "a": "1", "empty": ""},
        sd=descriptor(
            columns=[("id", "bigint"), ("extra", "double")],
            bucketCols=["id", "extra"],
            sortCols=[Order("id", 1), Order("extra", 0)],
            parameters={"p": "q"},
            serdeInfo=SerDeInfo("n", "lib", {"field.delim": "\x01", "line.delim": " ", "x": ""}, "description"),
            skewedInfo=SkewedInfo(["id"], [["1"], ["2", "3"]], {("1",): "file:/one"}),
            storedAsSubDirectories=True,
        ),
    )
    [stored] = catalog.writes.add_partitions(TableName(*T), [sent])
    [read] = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    assert read.values == ["2024-01-01", "7"]
    assert (read.catName, read.dbName, read.tableName, read.writeId) == ("hive", "d", "t", -1)
    assert read.createTime > 0
    assert read.parameters == {
        "a": "1",
        "b": "2",
        "empty": "",
        "transient_lastDdlTime": str(read.createTime),
    }
    assert list(read.parameters) == sorted(read.parameters)
    assert read.sd.location == f"{location}/dt=2024-01-01/hr=7"
    assert read.sd.cols == sent.sd.cols
    assert read.sd.serdeInfo == sent.sd.serdeInfo
    assert read.sd.bucketCols == ["id", "extra"]
    assert read.sd.sortCols == sent.sd.sortCols
    assert read.sd.parameters == {"p": "q"}
    assert read.sd.skewedInfo == sent.sd.skewedInfo
    assert read.sd.storedAsSubDirectories
    assert stored.parameters == read.parameters
    assert stored.sd == read.sd
    assert sent.createTime == 0, "what the client sent is not changed"
    assert Path(f"{catalog.root}/d.db/t/dt=2024-01-01/hr=7").is_dir()
    assert catalog.events() == [("ADD_PARTITION", "t")]


def test_columns_of_the_table_are_shared(catalog: PartitionCatalog) -> None:
    some(catalog, days=1)
    assert len(catalog.rows(CDS)) == 1
    catalog.writes.add_partitions(TableName(*T), [partition("x", "0", sd=descriptor(columns=[("id", "string")]))])
    assert len(catalog.rows(CDS)) == 2


def test_one_partition_by_its_values(catalog: PartitionCatalog) -> None:
    some(catalog)
    assert catalog.reads.get_partition(TableName(*T), ["2024-01-02", "3"]).values == ["2024-01-02", "3"]
    with pytest.raises(NoSuchObjectException) as error:
        catalog.reads.get_partition(TableName(*T), ["2024-01-01", "99"])
    assert error.value.message == "partition values=[2024-01-01, 99]"
    with pytest.raises(MetaException, match="Invalid partition key & values"):
        catalog.reads.get_partition(TableName(*T), ["2024-01-01"])
    with pytest.raises(NoSuchObjectException, match=r"hive\.d\.no table not found"):
        catalog.reads.get_partition(TableName("hive", "d", "no"), ["1", "2"])


def test_names_are_ordered_and_limited_after_selection(catalog: PartitionCatalog) -> None:
    some(catalog)
    names = catalog.reads.get_partition_names(PartitionQuery(TableName(*T)))
    assert names == sorted(names)
    assert len(names) == 12
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), AllPartitions(), 5)) == names[:5]
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), AllPartitions(), 0)) == []
    by_hour = ByPartialValues(("", "3"))
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), by_hour, 2)) == [
        "dt=2024-01-01/hr=3",
        "dt=2024-01-02/hr=3",
    ]
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), AllPartitions(), 4), order="1,0:-+") == [
        "dt=2024-01-01/hr=3",
        "dt=2024-01-02/hr=3",
        "dt=2024-01-03/hr=3",
        "dt=2024-01-01/hr=2",
    ]


def test_selections(catalog: PartitionCatalog) -> None:
    some(catalog)

    def values(selection: PartitionSelection, max_parts: int = -1) -> list[tuple[str, ...]]:
        found = catalog.reads.get_partitions(PartitionQuery(TableName(*T), selection, max_parts)).partitions
        return [tuple(one.values) for one in found]

    assert values(ByNames(("dt=2024-01-02/hr=1", "nothing", "dt=2024-01-01/hr=1", "dt=2024-01-02/hr=1"))) == [
        ("2024-01-01", "1"),
        ("2024-01-02", "1"),
    ]
    assert values(ByValues(("2024-01-03", "0"))) == [("2024-01-03", "0")]
    assert values(ByValues(("2024-01-03", "9"))) == []
    assert values(ByPartialValues(("2024-01-03",))) == [("2024-01-03", str(hour)) for hour in range(4)]
    assert values(ByPartialValues(())) == values(AllPartitions())
    assert values(ByPartialValues(("2024-01-03", "2"))) == [("2024-01-03", "2")]
    assert values(ByFilter('hr >= 2 and dt < "2024-01-03"'), max_parts=3) == [
        ("2024-01-01", "2"),
        ("2024-01-01", "3"),
        ("2024-01-02", "2"),
    ]
    assert values(ByFilter("")) == values(AllPartitions())
    days = [f"2024-01-{day:02}" for day in range(1, 32)]
    for known, of in ((1, 3), (3, 3), (3, 5), (2, 31)):  # as many patterns as values
        listed = ", ".join(f'"{day}"' for day in days[:known] + days[3 : 3 + of - known])
        assert values(ByFilter(f"dt in ({listed})")) == [(day, str(hour)) for day in days[:known] for hour in range(4)]
    with pytest.raises(MetaException, match="Incorrect number of partition values"):
        values(ByPartialValues(("a", "b", "c")))
    with pytest.raises(MetaException):
        values(ByFilter('nokey = "1"'))
    with pytest.raises(MetaException):
        values(ByFilter("dt = = 1"))


def test_counts_and_values(catalog: PartitionCatalog) -> None:
    catalog.create_table()
    catalog.writes.add_partitions(
        TableName(*T), [partition(dt, hour) for dt in ("b", "a") for hour in ("9", "10", "1")]
    )
    assert catalog.reads.get_partition_count(PartitionQuery(TableName(*T))) == 6
    assert catalog.reads.get_partition_count(PartitionQuery(TableName(*T), ByFilter("hr > 1"))) == 4

    def rows(
        *keys: str, selection: PartitionSelection | None = None, max_parts: int = -1, **order: bool
    ) -> list[list[str]]:
        query = PartitionQuery(TableName(*T), selection or AllPartitions(), max_parts)
        return [row.row for row in catalog.reads.get_partition_values(query, keys, **order)]

    assert rows("hr") == [["1"], ["9"], ["10"]]
    assert rows("hr", ascending=False) == [["10"], ["9"], ["1"]]
    assert rows("hr", "dt", selection=ByFilter('dt = "a"')) == [["1", "a"], ["9", "a"], ["10", "a"]]
    assert rows("dt", distinct=False) == [["a"]] * 3 + [["b"]] * 3
    assert rows("hr", max_parts=2) == [["1"], ["9"]]
    with pytest.raises(MetaException):
        rows("nokey")


def test_empty_values_are_answered_as_stored(catalog: PartitionCatalog) -> None:
    catalog.create_table(keys=[("k", "string")])
    catalog.writes.add_partitions(TableName(*T), [partition(""), partition("é/ü%"), partition("日本=")])
    found = catalog.reads.get_partitions(PartitionQuery(TableName(*T))).partitions
    assert [one.values for one in found] == [[""], ["é/ü%"], ["日本="]]
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T))) == [
        "k=__HIVE_DEFAULT_PARTITION__",
        "k=é%2Fü%25",
        "k=日本%3D",
    ]
    assert catalog.reads.get_partition(TableName(*T), [""]).values == [""]


def test_additions_are_all_or_none(catalog: PartitionCatalog) -> None:
    some(catalog, days=1)
    with pytest.raises(AlreadyExistsException, match=r"Partition already exists: Partition\(values:\[2024-01-01, 0\]"):
        catalog.writes.add_partitions(TableName(*T), [partition("new", "0"), partition("2024-01-01", "0")])
    assert not Path(f"{catalog.root}/d.db/t/dt=new").exists()
    with pytest.raises(MetaException, match="Duplicate partitions in the list"):
        catalog.writes.add_partitions(TableName(*T), [partition("new", "0"), partition("new", "0")])
    added = catalog.writes.add_partitions(
        TableName(*T), [partition("new", "0"), partition("2024-01-01", "0")], if_not_exists=True
    )
    assert [one.values for one in added] == [["new", "0"]]
    assert len(catalog.rows(PARTITIONS)) == 5
    assert catalog.events() == [("ADD_PARTITION", "t")] * 2
    assert catalog.writes.add_partitions(TableName(*T), [partition("new", "0")], if_not_exists=True) == []
    assert len(catalog.events()) == 2, "nothing happened, so there is no event"


def test_a_failed_addition_takes_its_directories_back(catalog: PartitionCatalog) -> None:
    catalog.create_table()
    Path(catalog.root, "d.db/t/dt=b").parent.mkdir(parents=True)
    Path(catalog.root, "d.db/t/dt=b").write_text("a file where a directory must be")
    with pytest.raises(MetaException):
        catalog.writes.add_partitions(TableName(*T), [partition("a", "0"), partition("b", "0")])
    assert not Path(catalog.root, "d.db/t/dt=a/hr=0").exists()
    assert catalog.rows(PARTITIONS) == []
    assert catalog.events() == []


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        (partition("a"), MetaException, "Invalid partition key & values"),
        (partition("a", "b", "c"), MetaException, "Invalid partition key & values"),
        (partition("a", "b", values=[]), MetaException, "The partition values cannot be null or empty."),
        (partition("a", "b", tableName="u"), MetaException, "Partition does not belong to target table hive.d.t"),
        (partition("a", "b", dbName=None), MetaException, "The database and table name must be set in the partition."),
        (partition("a", "b", sd=descriptor(serdeInfo=None)), MetaException, "Invalid SerDeInfo object"),
    ],
)
def test_refused_partitions(sqlite_catalog: PartitionCatalog, bad: object, error: type[Exception], text: str) -> None:
    sqlite_catalog.create_table()
    with pytest.raises(error, match=text):
        sqlite_catalog.writes.add_partitions(TableName(*T), [bad])


def test_unknown_table(catalog: PartitionCatalog) -> None:
    with pytest.raises(InvalidObjectException, match=r"Unable to add partitions because hive\.d\.t does not exist"):
        catalog.writes.add_partitions(TableName(*T), [partition("a", "b")])
    with pytest.raises(NoSuchObjectException, match=r"hive\.d\.t table not found"):
        catalog.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=True)


def test_existing_directories_are_counted(sqlite_catalog: PartitionCatalog) -> None:
    sqlite_catalog.create_table()
    directory = Path(sqlite_catalog.root, "d.db/t/dt=a/hr=0")
    directory.mkdir(parents=True)
    directory.joinpath("part-0").write_bytes(b"12345")
    directory.joinpath("_SUCCESS").write_bytes(b"")
    [stored] = sqlite_catalog.writes.add_partitions(
        TableName(*T), [partition("a", "0", parameters={"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'})]
    )
    assert {key: stored.parameters.get(key) for key in ("numFiles", "totalSize", "COLUMN_STATS_ACCURATE")} == {
        "numFiles": "1",
        "totalSize": "5",
        "COLUMN_STATS_ACCURATE": None,
    }
    [sent] = sqlite_catalog.writes.add_partitions(
        TableName(*T),
        [partition("b", "0", parameters={"numFiles": "3", "totalSize": "9", "numFilesErasureCoded": "0"})],
    )
    assert (sent.parameters["numFiles"], sent.parameters["totalSize"]) == ("3", "9")


def test_dropping_leaves_nothing_behind(catalog: PartitionCatalog) -> None:
    some(catalog)
    before = {table.name: len(catalog.rows(table)) for table in (SDS, SERDES, CDS)}
    dropped = catalog.writes.drop_partitions(TableName(*T), ByPartialValues(("2024-01-02",)), delete_data=True)
    assert [one.values for one in dropped] == [["2024-01-02", str(hour)] for hour in range(4)]
    assert not Path(catalog.root, "d.db/t/dt=2024-01-02").exists(), "empty directories above go, too"
    assert Path(catalog.root, "d.db/t/dt=2024-01-01/hr=0").is_dir()
    assert catalog.events() == [("ADD_PARTITION", "t"), ("DROP_PARTITION", "t")]
    catalog.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=True)
    assert Path(catalog.root, "d.db/t").is_dir()
    for table in (PARTITIONS, PARTITION_PARAMS, PARTITION_KEY_VALS, SD_PARAMS):
        assert catalog.rows(table) == []
    assert (before["SDS"], len(catalog.rows(SDS)), len(catalog.rows(SERDES))) == (13, 1, 1)
    assert (len(catalog.rows(SERDE_PARAMS)), len(catalog.rows(CDS)), len(catalog.rows(COLUMNS_V2))) == (1, 1, 2)


def test_dropping_what_is_not_there(catalog: PartitionCatalog) -> None:
    some(catalog, days=1)
    with pytest.raises(NoSuchObjectException, match=r"partition values=\[x, 0\]"):
        catalog.writes.drop_partitions(TableName(*T), ByValues(("x", "0")), delete_data=True)
    for other in ("dt=x/hr=0", "dt=2024-01-01/hr=0"):  # as in Hive, the second time it does not exist
        with pytest.raises(NoSuchObjectException, match="Some partitions to drop are missing"):
            catalog.writes.drop_partitions(TableName(*T), ByNames(("dt=2024-01-01/hr=0", other)), delete_data=True)
    assert len(catalog.rows(PARTITIONS)) == 4
    dropped = catalog.writes.drop_partitions(
        TableName(*T), ByNames(("dt=2024-01-01/hr=0", "dt=x/hr=0")), delete_data=True, if_exists=True
    )
    assert [one.values for one in dropped] == [["2024-01-01", "0"]]


@pytest.mark.parametrize(
    ("table_type", "parameters", "goes"),
    [
        ("MANAGED_TABLE", {}, True),
        ("EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}, False),
        ("EXTERNAL_TABLE", {"EXTERNAL": "TRUE", "external.table.purge": "true"}, True),
    ],
)
@pytest.mark.parametrize("delete_data", [True, False])
def test_whose_data_goes(
    sqlite_catalog: PartitionCatalog, table_type: str, parameters: dict[str, str], goes: bool, delete_data: bool
) -> None:
    sqlite_catalog.create_table(table_type=table_type, parameters=parameters)
    sqlite_catalog.writes.add_partitions(TableName(*T), [partition("a", "0")])
    sqlite_catalog.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=delete_data)
    assert Path(sqlite_catalog.root, "d.db/t/dt=a/hr=0").exists() is not (goes and delete_data)


def test_a_partition_at_its_tables_location_does_not_take_the_table_along(sqlite_catalog: PartitionCatalog) -> None:
    location = sqlite_catalog.create_table()
    sqlite_catalog.writes.add_partitions(
        TableName(*T),
        [
            partition("a", "0", sd=descriptor(location)),
            partition("b", "0", sd=descriptor(location.rpartition("/")[0])),
            partition("c", "0"),
        ],
    )
    sqlite_catalog.writes.drop_partitions(TableName(*T), ByValues(("a", "0")), delete_data=True)
    sqlite_catalog.writes.drop_partitions(TableName(*T), ByValues(("b", "0")), delete_data=True)
    assert Path(sqlite_catalog.root, "d.db/t/dt=c/hr=0").is_dir()


def test_request_limit(sqlite_database: Database, tmp_path: Path) -> None:
    limited = PartitionCatalog(sqlite_database, tmp_path, Settings(catalog=CatalogSettings(partition_request_limit=5)))
    some(limited)
    text = (
        r"Number of partitions scanned \(=12\) on table 't' exceeds limit \(=5\)\. "
        r"This is controlled on the metastore server by metastore\.limit\.partition\.request\."
    )
    with pytest.raises(MetaException, match=text):
        limited.reads.get_partitions(PartitionQuery(TableName(*T)))
    with pytest.raises(MetaException, match="exceeds limit"):
        limited.reads.get_partitions(PartitionQuery(TableName(*T), ByFilter("hr >= 0")))
    assert len(limited.reads.get_partitions(PartitionQuery(TableName(*T), AllPartitions(), 5)).partitions) == 5
    assert (
        len(limited.reads.get_partitions(PartitionQuery(TableName(*T), ByFilter('dt = "2024-01-01"'))).partitions) == 4
    )
    assert len(limited.reads.get_partition_names(PartitionQuery(TableName(*T)))) == 12
    assert len(limited.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=False)) == 12


def test_projections(sqlite_catalog: PartitionCatalog) -> None:
    sqlite_catalog.create_table()
    sqlite_catalog.writes.add_partitions(
        TableName(*T), [partition("a", "0", parameters={"k1": "1", "k2": "2", "x": "3"})]
    )
    requested = PartitionProjection(("values", "sd.location", "parameters"), "k%", "%2")
    [found] = sqlite_catalog.reads.get_partitions(PartitionQuery(TableName(*T)), projection=requested).partitions
    assert (found.values, found.parameters) == (["a", "0"], {"k1": "1"})
    assert found.sd.location is not None
    assert (found.dbName, found.sd.cols, found.sd.inputFormat, found.createTime) == (None, None, None, None)
    with pytest.raises(MetaException, match=r"sd\.nofield"):
        sqlite_catalog.reads.get_partitions(
            PartitionQuery(TableName(*T)), projection=PartitionProjection(("sd.nofield",))
        )
    for field in ("privileges", "colStats", "isStatsCompliant", "VALUES"):  # of replies to other requests, or of none
        with pytest.raises(MetaException, match=rf"projection spec\[{field}\]"):
            sqlite_catalog.reads.get_partitions(
                PartitionQuery(TableName(*T)), projection=PartitionProjection(("values", field))
            )


def test_whitelisted_values(sqlite_database: Database, tmp_path: Path) -> None:
    strict = PartitionCatalog(
        sqlite_database, tmp_path, Settings(catalog=CatalogSettings(partition_name_whitelist_pattern="[a-z0-9]*"))
    )
    strict.create_table()
    strict.writes.add_partitions(TableName(*T), [partition("a", "1")])
    with pytest.raises(MetaException, match=r"Partition value 'A,' contains a character not matched by whitelist"):
        strict.writes.add_partitions(TableName(*T), [partition("A,", "1")])


@pytest.mark.parametrize("database_kind", ["mariadb"])
def test_names_that_mysql_takes_for_equal(catalog: PartitionCatalog) -> None:
    catalog.create_table(keys=[("k", "string")])
    catalog.writes.add_partitions(TableName(*T), [partition("a")])
    text = "the database does not distinguish 'k=a' from another partition name"
    with pytest.raises(AlreadyExistsException, match=text):
        catalog.writes.add_partitions(TableName(*T), [partition("a ")], if_not_exists=True)
    with pytest.raises(AlreadyExistsException, match="does not distinguish 'k=b '"):
        catalog.writes.add_partitions(TableName(*T), [partition("b"), partition("b ")])
    assert catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByValues(("a ",)))).partitions == []
    catalog.writes.rename_partition(TableName(*T), ["a"], partition("a "))
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T))) == ["k=a "]


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"])
def test_values_that_the_database_cannot_hold(catalog: PartitionCatalog) -> None:
    catalog.create_table()
    with pytest.raises(MetaException, match="The database refuses a value"):
        catalog.writes.add_partitions(TableName(*T), [partition("x", "0", parameters={"k" * 300: "v"})])
    assert catalog.rows(PARTITIONS) == []
    assert not Path(catalog.root, "d.db/t/dt=x/hr=0").exists()


@pytest.mark.parametrize("database_kind", ["mariadb"])
def test_texts_beyond_the_character_set_of_hives_own_schema(catalog: PartitionCatalog) -> None:
    """Hive's MySQL script stores names in latin1, where a comparison with other text is an error."""
    catalog.create_table(keys=[("k", "string")])
    catalog.writes.add_partitions(TableName(*T), [partition("a"), partition("é")])
    narrow = "VARCHAR(767) CHARACTER SET latin1 COLLATE latin1_bin"
    with catalog.database.checking() as connection:
        connection.exec_driver_sql(f"ALTER TABLE PARTITIONS MODIFY PART_NAME {narrow}")
    try:
        found = catalog.reads.get_partition_names(PartitionQuery(TableName(*T), ByNames(("k=日", "k=a", "k=é"))))
        assert found == ["k=a", "k=é"]
        assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), ByPartialValues(("日",)))) == []
        with pytest.raises(NoSuchObjectException):
            catalog.reads.get_partition(TableName(*T), ["日"])
        with pytest.raises(MetaException, match="The database refuses a value"):
            catalog.writes.add_partitions(TableName(*T), [partition("日")])
    finally:
        with catalog.database.checking() as connection:
            wide = "VARCHAR(767) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin"
            connection.exec_driver_sql(f"ALTER TABLE PARTITIONS MODIFY PART_NAME {wide}")


def test_names_that_no_statement_holds_hide_no_others(catalog: PartitionCatalog) -> None:
    """Servers limit the length of a statement (`max_allowed_packet`); names in a request are not limited otherwise."""
    catalog.create_table()
    catalog.writes.add_partitions(TableName(*T), [partition("a", "1"), partition("b", "2")])
    endless = f"dt={'x' * 20_000_000}/hr=1"
    long = tuple(f"dt={number}{'x' * 9_000}/hr=1" for number in range(2_000))
    for others in ((endless,), long, (*long, endless, "dt=雪/hr=1")):
        requested = ByNames(("dt=a/hr=1", *others, "dt=b/hr=2", "dt=b/hr=3"))
        answer = catalog.reads.get_partitions(PartitionQuery(TableName(*T), requested))
        assert [one.values for one in answer.partitions] == [["a", "1"], ["b", "2"]]
        assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), requested)) == ["dt=a/hr=1", "dt=b/hr=2"]
    assert (
        catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByValues(("x" * 20_000_000, "1")))).partitions == []
    )


@pytest.mark.parametrize(
    "text", ["x" * 60_000, "a" + "_" * 30_000, "a\0", "\0", "a\x01b", "A" * 5_000], ids=lambda text: ascii(text[:4])
)
def test_texts_that_no_value_has_hide_no_others(catalog: PartitionCatalog, text: str) -> None:
    """SQLite refuses long patterns of LIKE, PostgreSQL texts with NUL."""
    catalog.create_table()
    values = ["a", "b", "y"]
    catalog.writes.add_partitions(TableName(*T), [partition(value, "1") for value in values])
    of_filters = {
        f"dt = '{text}'": [],
        f"dt = '{text}' or dt = 'a'": ["a"],
        f"dt in ('{text}', 'b', 'a')": ["a", "b"],
        f"dt = '{text}' and hr = 1": [],
        f"dt != '{text}'": values,
        f"dt > '{text}'": [value for value in values if value > text],
        f"dt <= '{text}'": [value for value in values if value <= text],
        f"dt like '{text.replace('_', 'u')}%'": [],
        f"dt like '{text.replace('_', 'u')}%' or dt = 'y'": ["y"],
    }
    selections: list[tuple[PartitionSelection, list[str]]] = [
        *((ByFilter(filter_text), wanted) for filter_text, wanted in of_filters.items()),
        *((ByExpression(filter_text.encode(), plain_text=True), wanted) for filter_text, wanted in of_filters.items()),
        (ByPartialValues((text,)), []),
        (ByPartialValues((text, "1")), []),
        (ByValues((text, "1")), []),
        (ByNames((f"dt={text}/hr=1", "dt=b/hr=1")), ["b"]),
        (ByNames((f"dt={text}/hr=1",)), []),
    ]
    for selection, wanted in selections:
        names = [f"dt={value}/hr=1" for value in wanted]
        assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), selection)) == names, selection
        found = catalog.reads.get_partitions(PartitionQuery(TableName(*T), selection)).partitions
        assert [one.values[0] for one in found] == wanted, selection


def test_two_writers_of_one_partition(catalog: PartitionCatalog) -> None:
    """The second one finds the partition, whichever wins the race."""
    catalog.create_table()
    outcomes: list[str] = []
    start = threading.Barrier(4, timeout=30)

    def write(number: int) -> None:
        start.wait()
        try:
            catalog.writes.add_partitions(TableName(*T), [partition("a", "0"), partition(f"own{number}", "0")])
            outcomes.append("added")
        except AlreadyExistsException:
            outcomes.append("exists")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["added", "exists", "exists", "exists"]
    assert len(catalog.rows(PARTITIONS)) == 2
    assert catalog.events() == [("ADD_PARTITION", "t")]
