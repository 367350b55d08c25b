"""Contract of creating and reading tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import insert

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings, WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName, database_name, table_name
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import TBL_PRIVS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, as_received, columns, environment, external, table

NOW = 1_700_000_000


def test_create_and_get(catalog: StoreUnderTest) -> None:
    sent = table("Ev", dbName=" D ", keys=[("Dt", "string"), ("hr", "int")], parameters={"z": "1", "a": "2"})
    sent.sd.cols[1].comment = "text"
    catalog.store.writes.tables.create_table(sent)
    found = catalog.get("ev")
    expected = table(
        "ev",
        keys=[("dt", "string"), ("hr", "int")],
        parameters={"a": "2", "transient_lastDdlTime": str(NOW), "z": "1"},
        location=f"file:{catalog.directory}/d.db/ev",
        createTime=NOW,
        temporary=None,
        rewriteEnabled=False,
        catName="hive",
        ownerType=ttypes.PrincipalType.USER,
        writeId=0,
        id=found.id,
    )
    expected.sd.cols[1].comment = "text"
    expected.sd.storedAsSubDirectories = False
    assert found == expected
    assert found.id > 0
    assert list(found.parameters) == sorted(found.parameters)
    assert catalog.files() == ["d.db", "d.db/ev"]
    event = catalog.last_event()
    assert (event.table(), event.files, event.table_type) == (as_received(found), (), "MANAGED_TABLE")
    assert catalog.events()[-1] == ("CREATE_TABLE", "d", "ev")


def test_every_part_of_a_descriptor_comes_back(catalog: StoreUnderTest) -> None:
    sent = table(cols=columns(("c", "string"), ("b", "int"), ("a", "array<struct<x:int>>")))
    sent.retention, sent.lastAccessTime, sent.owner, sent.ownerType = 5, 6, "role", ttypes.PrincipalType.ROLE
    sent.sd.bucketCols = ["b", "a"]
    sent.sd.sortCols = [ttypes.Order("b", 1), ttypes.Order("a", 0)]
    sent.sd.numBuckets, sent.sd.compressed, sent.sd.storedAsSubDirectories = 4, True, True
    sent.sd.parameters = {"p": "é\n", "empty": ""}
    sent.sd.skewedInfo = ttypes.SkewedInfo(
        skewedColNames=["c", "b"],
        skewedColValues=[["x", "1"], ["y", "2"]],
        skewedColValueLocationMaps={("x", "1"): "file:/s/1", ("y", "2"): "file:/s/2"},
    )
    sent.sd.serdeInfo.name, sent.sd.serdeInfo.description = "n", "about"
    sent.sd.serdeInfo.serializerClass, sent.sd.serdeInfo.deserializerClass = "s", "ds"
    sent.sd.serdeInfo.serdeType = ttypes.SerdeType.HIVE
    catalog.store.writes.tables.create_table(sent)
    found = catalog.get()
    sent.sd.location = found.sd.location
    assert found.sd == sent.sd
    assert (found.retention, found.lastAccessTime, found.owner, found.ownerType) == (5, 6, "role", 2)
    catalog.drop()
    assert catalog.counts()["SKEWED_STRING_LIST_VALUES"] == 0


def test_missing_table_has_hives_text(catalog: StoreUnderTest) -> None:
    for database in ("d", "nope"):
        with pytest.raises(ttypes.NoSuchObjectException) as raised:
            catalog.store.reads.tables.get_table(table_name(CATALOG, database, "EV"))
        assert raised.value.message == f"hive.{database}.EV table not found"


def test_refused_tables_leave_nothing(catalog: StoreUnderTest) -> None:
    before = catalog.counts(), catalog.events(), catalog.files()
    cases = [
        (table("ä"), ttypes.InvalidObjectException, "ä is not a valid object name"),
        (table(" "), ttypes.InvalidObjectException, "  is not a valid object name"),
        (table(dbName="nope"), ttypes.InvalidObjectException, "database hive.nope"),
        (table(dbName=None), ttypes.MetaException, "Null database name is not allowed"),
        (table(cols=columns(("a", "nothing"))), ttypes.InvalidObjectException, "Invalid column type: nothing"),
        (table(keys=[("k", "x y")]), ttypes.InvalidObjectException, "Invalid partition column type: x y"),
        (table(cols=columns(("a", "int"), ("A", "int"))), ttypes.InvalidObjectException, "a appears more than once"),
        (table(location="file:/"), ttypes.InvalidObjectException, "t location must not be root path"),
        (table(location="nosuch://h/x"), ttypes.MetaException, 'No FileSystem for scheme "nosuch"'),
    ]
    for sent, error, text in cases:
        with pytest.raises(error) as raised:
            catalog.store.writes.tables.create_table(sent)
        assert text in raised.value.message
    assert (catalog.counts(), catalog.events(), catalog.files()) == before


def test_a_name_is_taken_once(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    before = catalog.counts(), catalog.events()
    with pytest.raises(ttypes.AlreadyExistsException) as raised:
        catalog.store.writes.tables.create_table(table("T", location=f"file:{catalog.directory}/new"))
    assert raised.value.message == "Table hive.d.T already exists"
    assert (catalog.counts(), catalog.events()) == before
    assert catalog.files() == ["d.db", "d.db/t"]


@pytest.mark.parametrize(
    ("kind", "parameters", "stored"),
    [
        ("MANAGED_TABLE", {}, "MANAGED_TABLE"),
        ("MANAGED_TABLE", {"EXTERNAL": "TRUE"}, "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", {"EXTERNAL": "true"}, "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", {}, "MANAGED_TABLE"),
        ("VIRTUAL_VIEW", {}, "VIRTUAL_VIEW"),
        ("MATERIALIZED_VIEW", {}, "MATERIALIZED_VIEW"),
    ],
)
def test_table_types(catalog: StoreUnderTest, kind: str, parameters: dict[str, str], stored: str) -> None:
    catalog.store.writes.tables.create_table(table(tableType=kind, parameters=parameters))
    assert catalog.get().tableType == stored


@pytest.mark.parametrize(
    ("kind", "requested", "stored", "external"),
    [
        ("MANAGED_TABLE", "true", "EXTERNAL_TABLE", "TRUE"),
        ("MANAGED_TABLE", "no", "MANAGED_TABLE", None),
        ("VIRTUAL_VIEW", "true", "VIRTUAL_VIEW", None),
    ],
)
def test_hive_4_asks_in_the_context_for_an_external_table(
    catalog: StoreUnderTest, kind: str, requested: str, stored: str, external: str | None
) -> None:
    """For each Iceberg table that its user did not declare external."""
    options = environment(create_table_as_external=requested)
    catalog.store.writes.tables.create_table(table(tableType=kind, parameters={"k": "v"}), options=options)
    found = catalog.get()
    assert (found.tableType, found.parameters.get("EXTERNAL")) == (stored, external)


def test_views_have_no_directory(catalog: StoreUnderTest) -> None:
    view = table("v", tableType="VIRTUAL_VIEW", viewOriginalText="select", viewExpandedText="select 1 -- ä")
    catalog.store.writes.tables.create_table(view)
    found = catalog.get("v")
    assert (found.viewOriginalText, found.viewExpandedText) == ("select", "select 1 -- ä")
    assert found.sd.location is None
    assert catalog.files() == ["d.db"]


def test_special_characters_in_names(catalog: StoreUnderTest) -> None:
    catalog.create_table("a b/c")
    assert catalog.get("a b/c").sd.location == f"file:{catalog.directory}/d.db/a-32-b-47-c"


def test_column_names_are_stored_in_lower_case(catalog: StoreUnderTest) -> None:
    catalog.create_table(cols=columns(("Id", "bigint")))
    assert [column.name for column in catalog.get().sd.cols] == ["id"]


def test_server_made_parameters_are_not_stored(catalog: StoreUnderTest) -> None:
    catalog.create_table(
        parameters={"created_with_ctas": "true", "created_with_ctlt": "true", "DO_NOT_UPDATE_STATS": "true"}
    )
    assert set(catalog.get().parameters) == {"transient_lastDdlTime"}


def test_the_word_not_to_measure_stays_where_the_context_says_it_too(catalog: StoreUnderTest) -> None:
    sent = table("t", parameters={"DO_NOT_UPDATE_STATS": "true"})
    catalog.store.writes.tables.create_table(sent, options=environment(DO_NOT_UPDATE_STATS="true"))
    assert set(catalog.get().parameters) == {"DO_NOT_UPDATE_STATS", "transient_lastDdlTime"}


def test_a_given_ddl_time_stays(catalog: StoreUnderTest) -> None:
    assert catalog.create_table(parameters={"transient_lastDdlTime": "7"}).parameters == {"transient_lastDdlTime": "7"}


def _fill(directory: Path) -> None:
    (directory / "sub").mkdir(parents=True)
    (directory / "a").write_bytes(b"12345")
    (directory / "sub" / "b").write_bytes(b"123")
    (directory / "_hidden").write_bytes(b"1")
    (directory / "sub" / ".crc").write_bytes(b"1")


def test_statistics_of_an_existing_directory(catalog: StoreUnderTest) -> None:
    _fill(catalog.directory / "data")
    location = f"file:{catalog.directory}/data"
    catalog.store.writes.tables.create_table(external("a", location=location))
    found = catalog.get("a").parameters
    assert (found["numFiles"], found["totalSize"], found["numFilesErasureCoded"]) == ("2", "8", "0")
    assert "COLUMN_STATS_ACCURATE" not in found
    catalog.store.writes.tables.create_table(
        external("b", location=location), options=environment(STATS_GENERATED="TASK")
    )
    assert catalog.get("b").parameters["COLUMN_STATS_ACCURATE"] == '{"BASIC_STATS":"true"}'
    for name, properties in (("c", {"DO_NOT_UPDATE_STATS": "true"}), ("e", {"DO_NOT_POPULATE_QUICK_STATS": "true"})):
        catalog.store.writes.tables.create_table(external(name, location=location), options=environment(**properties))
        assert "numFiles" not in catalog.get(name).parameters
    catalog.store.writes.tables.create_table(external("p", location=location, keys=[("k", "int")]))
    assert "numFiles" not in catalog.get("p").parameters


@pytest.mark.parametrize("request_text", [b'{"enabled":true,"columnNames":["b"]}', b'{"enabled":true}'])
def test_statistics_of_a_new_table_are_known_where_hive_4_asks_for_it(
    request_text: bytes, catalog: StoreUnderTest
) -> None:
    """Traced from Hive 4.0.1, whose inserts then add to them."""
    zeros = {"numFiles": "0", "numRows": "0", "totalSize": "0", "rawDataSize": "0", "numFilesErasureCoded": "0"}
    claims = ["b"] if b"columnNames" in request_text else ["a", "b"]
    accurate = {"BASIC_STATS": "true", "COLUMN_STATS": dict.fromkeys(claims, "true")}
    sent = table(cols=columns(("a", "int"), ("b", "string")))
    sent.dictionary = ttypes.ObjectDictionary({"setStatsStateForCreateTable": [request_text]})
    catalog.store.writes.tables.create_table(sent)
    assert catalog.get().parameters == {
        **zeros,
        "COLUMN_STATS_ACCURATE": json.dumps(accurate, separators=(",", ":")),
        "transient_lastDdlTime": str(NOW),
    }


@pytest.mark.parametrize("request_text", [b'{"enabled":false}', b"{", b"[]", b"\xff"])
def test_nothing_is_claimed_where_nobody_asks_for_it(request_text: bytes, catalog: StoreUnderTest) -> None:
    sent = table()
    sent.dictionary = ttypes.ObjectDictionary({"setStatsStateForCreateTable": [request_text], "other": [b"1"]})
    catalog.store.writes.tables.create_table(sent)
    assert list(catalog.get().parameters) == ["transient_lastDdlTime"]


def test_a_new_table_over_files_claims_nothing(catalog: StoreUnderTest) -> None:
    _fill(catalog.directory / "data")
    sent = external(location=f"file:{catalog.directory}/data")
    sent.dictionary = ttypes.ObjectDictionary({"setStatsStateForCreateTable": [b'{"enabled":true}']})
    catalog.store.writes.tables.create_table(sent)
    found = catalog.get().parameters
    assert found["numFiles"] == "2"
    assert "COLUMN_STATS_ACCURATE" not in found


class TestWithoutGathering:
    @pytest.fixture
    def store_settings(self) -> Settings:
        return Settings(catalog=CatalogSettings(statistics_autogather=False, special_characters_in_table_names=False))

    def test_statistics_and_names(self, catalog: StoreUnderTest) -> None:
        _fill(catalog.directory / "data")
        catalog.store.writes.tables.create_table(external(location=f"file:{catalog.directory}/data"))
        assert "numFiles" not in catalog.get().parameters
        with pytest.raises(ttypes.InvalidObjectException, match="a-b is not a valid object name"):
            catalog.create_table("a-b")


class TestFilesLeftAlone:
    @pytest.fixture
    def warehouse_settings(self) -> WarehouseSettings:
        return WarehouseSettings(directory="s3a://bucket/warehouse", files="leave")

    def test_no_file_system_is_touched(self, catalog: StoreUnderTest) -> None:
        assert catalog.create_table().sd.location == "s3a://bucket/warehouse/d.db/t"
        new = table("u", location="s3a://bucket/warehouse/d.db/t")
        catalog.alter("t", new)
        assert catalog.get("u").sd.location == "s3a://bucket/warehouse/d.db/t", "nothing was moved"
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, "d", "u"))
        catalog.drop("u")
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)


def test_privileges_come_along(catalog: StoreUnderTest) -> None:
    grant = ttypes.PrivilegeGrantInfo("INSERT", -1, "root", ttypes.PrincipalType.USER, True)
    select_grant = ttypes.PrivilegeGrantInfo("SELECT", -1, "root", ttypes.PrincipalType.ROLE, False)
    privileges = ttypes.PrincipalPrivilegeSet(
        userPrivileges={"root": [grant, select_grant]}, groupPrivileges=None, rolePrivileges={"r": [select_grant]}
    )
    catalog.create_table(privileges=privileges)
    rows = catalog.rows(
        TBL_PRIVS.c.PRINCIPAL_NAME,
        TBL_PRIVS.c.PRINCIPAL_TYPE,
        TBL_PRIVS.c.TBL_PRIV,
        TBL_PRIVS.c.GRANTOR_TYPE,
        TBL_PRIVS.c.GRANT_OPTION,
        TBL_PRIVS.c.CREATE_TIME,
        TBL_PRIVS.c.AUTHORIZER,
    )
    assert sorted(tuple(row) for row in rows) == [
        ("r", "ROLE", "SELECT", "ROLE", 0, NOW, "SQL"),
        ("root", "USER", "INSERT", "USER", 1, NOW, "SQL"),
        ("root", "USER", "SELECT", "ROLE", 0, NOW, "SQL"),
    ]
    assert catalog.get().privileges is None
    catalog.drop()
    assert catalog.counts()["TBL_PRIVS"] == 0


def test_write_ids_are_stored(catalog: StoreUnderTest) -> None:
    """Of transactional tables only, with Hive's -1 for none."""
    transactional = {"transactional": "true"}
    assert catalog.create_table("a", writeId=5, parameters=transactional).writeId == 5
    assert catalog.create_table("b", writeId=-1, parameters=transactional).writeId == -1
    assert catalog.create_table("c", writeId=5).writeId == 0


def test_get_tables(catalog: StoreUnderTest) -> None:
    for name in ("a", "b", "c"):
        catalog.create_table(name, cols=columns((f"c_{name}", "int")), parameters={"n": name})
    found = catalog.store.reads.tables.get_tables(database_name(CATALOG, "D"), ["C", "nope", "a", "c"])
    assert found == [catalog.get("c"), catalog.get("a")]
    assert catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), []) == []
    assert catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "default"), ["a"]) == []
    with pytest.raises(ttypes.UnknownDBException, match=r"Could not find database hive\.nope: database hive\.nope"):
        catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "nope"), ["a"])


def test_table_names(catalog: StoreUnderTest) -> None:
    for name in ("b", "a_x", "aax"):
        catalog.create_table(name)
    catalog.store.writes.tables.create_table(table("v", tableType="VIRTUAL_VIEW"))
    names = catalog.store.reads.tables.get_table_names
    assert names(database_name(CATALOG, "D")) == ["a_x", "aax", "b", "v"]
    assert names(DatabaseName(CATALOG, "d"), "A_*|v") == ["a_x", "v"]
    assert names(DatabaseName(CATALOG, "d"), None, "VIRTUAL_VIEW") == ["v"]
    assert names(DatabaseName(CATALOG, "d"), "*x", "MANAGED_TABLE") == ["a_x", "aax"]
    assert names(DatabaseName(CATALOG, "nope")) == []


def test_table_names_by_filter(catalog: StoreUnderTest) -> None:
    catalog.create_table("a", owner="x", parameters={"table_type": "ICEBERG"})
    catalog.create_table("b", owner="y", lastAccessTime=5, parameters={"table_type": "iceberg"})
    catalog.create_table("c", owner="x")
    by_filter = catalog.store.reads.tables.get_table_names_by_filter
    assert by_filter(DatabaseName(CATALOG, "d"), 'hive_filter_field_params__table_type like "ICEBERG"') == ["a"]
    assert by_filter(DatabaseName(CATALOG, "d"), 'hive_filter_field_owner__ = "x"') == ["a", "c"]
    assert by_filter(DatabaseName(CATALOG, "d"), 'hive_filter_field_owner__ = "x"', 1) == ["a"]
    assert by_filter(DatabaseName(CATALOG, "d"), "hive_filter_field_last_access__ > 4") == ["b"]
    with pytest.raises(ttypes.MetaException):
        by_filter(DatabaseName(CATALOG, "d"), "nonsense (")
    with pytest.raises(ttypes.UnknownDBException):
        by_filter(DatabaseName(CATALOG, "nope"), "hive_filter_field_last_access__ > 4")


def test_table_meta(catalog: StoreUnderTest) -> None:
    catalog.create_database("e")
    catalog.create_table("b", parameters={"comment": "about"})
    catalog.create_table("a", dbName="e", tableType="VIRTUAL_VIEW")
    meta = catalog.store.reads.tables.get_table_meta
    many = [f"TYPE_{number}" for number in range(70_000)]
    assert meta(CATALOG, "*", "*", many) == []
    assert meta(CATALOG, "*", "*", [*many, "MANAGED_TABLE"]) == meta(CATALOG, "*", "*", ["MANAGED_TABLE"]) != []
    expected = ttypes.TableMeta(
        dbName="d",
        tableName="b",
        tableType="MANAGED_TABLE",
        comments="about",
        catName="hive",
        ownerName="o",
        ownerType=ttypes.PrincipalType.USER,
    )
    assert meta(CATALOG, "*", "*")[0] == expected
    assert [each.tableName for each in meta(CATALOG, None, None)] == ["b", "a"]
    assert [each.tableName for each in meta(CATALOG, "E|x", "*")] == ["a"]
    assert [each.tableName for each in meta(CATALOG, "*", "*", ["VIRTUAL_VIEW"])] == ["a"]


def test_statistics_are_judged_by_the_readers_list(catalog: StoreUnderTest) -> None:
    accurate = '{"BASIC_STATS":"true"}'
    catalog.create_table(writeId=7, parameters={"transactional": "true", "COLUMN_STATS_ACCURATE": accurate})
    get = catalog.store.reads.tables.get_table
    assert get(TableName(CATALOG, "d", "t")).isStatsCompliant is None
    covered = get(TableName(CATALOG, "d", "t"), version=ReadVersion("d.t:9:9223372036854775807::"))
    assert (covered.isStatsCompliant, covered.parameters["COLUMN_STATS_ACCURATE"]) == (True, accurate)
    for text in ("d.t:6:9223372036854775807::", "d.t:9:7:7:", "d.t:9:9223372036854775807::7"):
        found = get(TableName(CATALOG, "d", "t"), version=ReadVersion(text))
        assert (found.isStatsCompliant, found.parameters.get("COLUMN_STATS_ACCURATE")) == (False, None)
        assert catalog.store.reads.tables.get_tables(
            DatabaseName(CATALOG, "d"), ["t"], version=ReadVersion(valid_write_ids=text)
        ) == [found]
    with pytest.raises(ttypes.MetaException):
        get(TableName(CATALOG, "d", "t"), version=ReadVersion("d.t:nonsense"))
    catalog.create_table("plain")
    assert get(TableName(CATALOG, "d", "plain"), version=ReadVersion("d.plain:1:1::")).isStatsCompliant is None


@pytest.mark.parametrize("store_kind", ["object"])
def test_statement_counts(catalog: StoreUnderTest) -> None:
    catalog.create_table("a", keys=[("k", "int")])
    with catalog.counting() as counted:
        catalog.store.reads.tables.get_table(TableName(CATALOG, "d", "a"))
    assert counted[0] <= 2, "of six allowed, begin and commit included"
    with catalog.counting() as one:
        catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), ["a"])
    for number in range(20):
        catalog.create_table(f"t{number}")
    names = catalog.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d"))
    with catalog.counting() as many:
        assert len(catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), names)) == 21
    assert many == one
    with catalog.counting() as counted:
        catalog.store.reads.tables.get_table_meta(CATALOG, "*", "*")
    assert counted[0] <= 1
    with catalog.counting() as counted:
        catalog.store.writes.tables.create_table(table("z", keys=[("k", "int")], parameters={"a": "b"}))
    assert counted[0] <= 20, "ids of the three servers included"


def test_a_privilege_that_somebody_granted_goes_with_the_table(catalog: StoreUnderTest) -> None:
    table_id = catalog.create_table().id
    run_write(
        catalog.database,
        lambda transaction: transaction.connection.execute(
            insert(TBL_PRIVS).values(TBL_GRANT_ID=1, CREATE_TIME=1, GRANT_OPTION=0, TBL_ID=table_id)
        ),
    )
    catalog.drop()
    assert catalog.counts()["TBL_PRIVS"] == 0


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("x" * 60_000, []), ("\u00e9" * 30_000, []), ("_%\\" * 20_000, []), ("x" * 60_000 + "|t*", ["t"])],
    ids=["letters", "of two bytes", "signs of LIKE", "an alternative"],
)
def test_a_pattern_longer_than_databases_take(catalog: StoreUnderTest, pattern: str, found: list[str]) -> None:
    """SQLite refuses a LIKE of more than 50,000 bytes; no name is as long."""
    catalog.store.writes.tables.create_table(table("t"))
    reads = catalog.store.reads
    assert reads.tables.get_table_names(DatabaseName(CATALOG, "d"), pattern) == found
    assert [one.tableName for one in reads.tables.get_table_meta(CATALOG, "*", pattern)] == found
    assert reads.tables.get_table_meta(CATALOG, pattern.partition("|")[0], "*") == []
    assert reads.databases.get_database_names(CATALOG, pattern.partition("|")[0]) == []
    assert reads.functions.get_function_names(DatabaseName(CATALOG, "d"), pattern) == []
