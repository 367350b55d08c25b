"""Contract of databases."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName, database_name
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import DBS, FUNCS, TBLS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, external, table


def test_create_fills_in_what_hive_fills_in(under_test: StoreUnderTest) -> None:
    under_test.store.writes.databases.create_database(
        ttypes.Database(name="  MiXed ", description="d", parameters={"b": "2", "a": "1"})
    )
    found = under_test.store.reads.databases.get_database(database_name("HIVE", "mixed"))
    assert found == ttypes.Database(
        name="mixed",
        description="d",
        locationUri=f"file:{under_test.directory}/mixed.db",
        parameters={"a": "1", "b": "2"},
        ownerName="hive",
        ownerType=ttypes.PrincipalType.USER,
        catalogName="hive",
        createTime=1_700_000_000,
        type=ttypes.DatabaseType.NATIVE,
    )
    assert list(found.parameters) == ["a", "b"]
    assert under_test.files() == ["mixed.db"]
    event = under_test.last_event()
    assert under_test.events() == [("CREATE_DATABASE", "mixed", None)]
    assert event.database() == found


def test_given_location_is_kept_as_hive_writes_it(under_test: StoreUnderTest) -> None:
    under_test.create_database("x", locationUri=f"file://{under_test.directory}//elsewhere/")
    assert (
        under_test.store.reads.databases.get_database(DatabaseName(CATALOG, "x")).locationUri
        == f"file:{under_test.directory}/elsewhere"
    )
    assert under_test.files() == ["elsewhere"]


def test_names_are_checked_and_taken_once(under_test: StoreUnderTest) -> None:
    for name in ("ä", " "):
        with pytest.raises(ttypes.InvalidObjectException, match=f"{name} is not a valid database name"):
            under_test.create_database(name)
    under_test.create_database("x")
    with pytest.raises(ttypes.AlreadyExistsException, match="Database X already exists"):
        under_test.create_database("X")
    with pytest.raises(ttypes.InvalidObjectException, match="No such catalog nope"):
        under_test.create_database("y", catalogName="nope")
    assert under_test.events() == [("CREATE_DATABASE", "x", None)]


def test_missing_database_has_hives_text(under_test: StoreUnderTest) -> None:
    with pytest.raises(ttypes.NoSuchObjectException) as raised:
        under_test.store.reads.databases.get_database(database_name(CATALOG, "Nope"))
    assert raised.value.message == "database hive.Nope"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, ["a_b", "aab", "b", "default"]),
        ("*", ["a_b", "aab", "b", "default"]),
        ("a*", ["a_b", "aab"]),
        ("A*|B", ["a_b", "aab", "b"]),
        ("a_b", ["a_b"]),
        ("a.b", ["a_b", "aab"]),
        (".*b", ["a_b", "aab"]),
        (".*", ["a_b", "aab", "b", "default"]),
        ("%", []),
        ("", []),
    ],
)
def test_names_by_pattern(under_test: StoreUnderTest, pattern: str | None, expected: list[str]) -> None:
    for name in ("b", "aab", "a_b"):
        under_test.create_database(name)
    assert under_test.store.reads.databases.get_database_names(CATALOG, pattern) == expected
    assert under_test.store.reads.databases.get_database_names("other", pattern) == []
    whole = under_test.store.reads.databases.get_databases(CATALOG, pattern)
    assert whole == [under_test.store.reads.databases.get_database(DatabaseName(CATALOG, name)) for name in expected]
    assert under_test.store.reads.databases.get_databases("other", pattern) == []


def test_databases_are_answered_whole_and_in_order(under_test: StoreUnderTest) -> None:
    under_test.create_database("b", description="of b", parameters={"z": "1", "a": "2"})
    under_test.create_database("a")
    found = under_test.store.reads.databases.get_databases("HIVE", "A|b")
    assert [(each.name, each.description, each.parameters) for each in found] == [
        ("a", None, {}),
        ("b", "of b", {"a": "2", "z": "1"}),
    ]
    assert list(found[1].parameters) == ["a", "z"]


def test_alter_replaces_what_hive_replaces(catalog: StoreUnderTest) -> None:
    before = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    new = ttypes.Database(
        name="ignored",
        description=" ",
        locationUri="file:///other//place",
        parameters={"z": "1"},
        ownerName="n",
        ownerType=ttypes.PrincipalType.ROLE,
    )
    catalog.store.writes.databases.alter_database(database_name(CATALOG, "D"), new)
    after = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    assert (after.name, after.description, after.createTime) == ("d", before.description, before.createTime)
    assert (after.locationUri, after.parameters) == ("file:/other/place", {"z": "1"})
    assert (after.ownerName, after.ownerType) == ("n", ttypes.PrincipalType.ROLE)
    event = catalog.last_event()
    assert (event.before(), event.after()) == (before, after)
    with pytest.raises(ttypes.NoSuchObjectException):
        catalog.store.writes.databases.alter_database(DatabaseName(CATALOG, "nope"), new)


@pytest.mark.parametrize(
    ("old", "new", "is_noted"),
    [
        ({}, {"repl.last.id": "8"}, True),
        ({"repl.last.id": "7"}, {"repl.last.id": "8"}, True),
        ({"repl.last.id": "8"}, {"repl.last.id": "8"}, False),
        ({}, {"k": "v"}, False),
        ({"repl.last.id": "7"}, {}, False),
        ({"repl.last.id": "7"}, {"repl.last.id": "8", "repl.resume.started": "true"}, False),
        ({"repl.last.id": "7"}, {"repl.last.id": "8", "repl.resume.started": "no"}, True),
    ],
)
def test_what_replication_applied_is_noted_with_the_last_event_here(
    catalog: StoreUnderTest, old: dict[str, str], new: dict[str, str], is_noted: bool
) -> None:
    """By it, a replication in the other direction knows what was written here since; `REPL LOAD` leaves it to the
    metastore."""
    before = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    before.parameters = old
    catalog.store.writes.databases.alter_database(DatabaseName(CATALOG, "d"), before)
    stored = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d")).parameters.get(
        "repl.target.last.id"
    )
    last = catalog.notifications()[-1].event_id
    before.parameters = {**new, **({"repl.target.last.id": stored} if stored else {})}
    catalog.store.writes.databases.alter_database(DatabaseName(CATALOG, "d"), before)
    found = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d")).parameters
    assert found == {
        **new,
        **({"repl.target.last.id": str(last) if is_noted else stored} if is_noted or stored else {}),
    }
    # Replicas of this database have markers of their own.
    assert catalog.last_event().after().parameters == {key: value for key, value in found.items() if key == "k"}


def test_an_altered_managed_location_is_kept_as_it_is_sent(under_test: StoreUnderTest) -> None:
    """As in Hive, which stores the other one in its full form. Another spelling means the same place."""
    place = f"{under_test.directory}/managed"
    under_test.create_database("x", managedLocationUri=f"file:{place}")
    under_test.store.writes.tables.create_table(table("t", dbName="x", location=f"file:{place}/t"))
    name = DatabaseName(CATALOG, "x")
    for spelling in (place, f"file://{place}/", f"file:{place}"):
        altered = ttypes.Database(
            name="x", managedLocationUri=spelling, locationUri=f"file://{under_test.directory}//x.db/"
        )
        under_test.store.writes.databases.alter_database(name, altered)
        found = under_test.store.reads.databases.get_database(name)
        assert (found.managedLocationUri, found.locationUri) == (spelling, f"file:{under_test.directory}/x.db")
    under_test.store.writes.databases.drop_database(name, delete_data=True, cascade=True)
    assert under_test.files() == []


@pytest.mark.parametrize("cascade", [False, True])
def test_a_source_of_replication_is_not_dropped(catalog: StoreUnderTest, cascade: bool) -> None:
    before = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    before.parameters = {"repl.source.for": "1,2"}
    catalog.store.writes.databases.alter_database(DatabaseName(CATALOG, "d"), before)
    with pytest.raises(ttypes.InvalidOperationException) as raised:
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=cascade)
    assert raised.value.message == "can not drop a database which is a source of replication"
    assert catalog.files() == ["d.db"]
    before.parameters = {"repl.source.for": ""}
    catalog.store.writes.databases.alter_database(DatabaseName(CATALOG, "d"), before)
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=cascade)


def test_drop_without_cascade_wants_an_empty_database(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    with pytest.raises(ttypes.InvalidOperationException) as raised:
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=False)
    assert raised.value.message == "Database d is not empty. One or more tables exist."
    catalog.drop()
    catalog.store.writes.functions.create_function(
        ttypes.Function("f", "d", "c", "o", ttypes.PrincipalType.USER, 0, ttypes.FunctionType.JAVA, [])
    )
    with pytest.raises(ttypes.InvalidOperationException, match="One or more functions exist"):
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=False)
    assert catalog.files() == ["d.db"]


def test_drop_with_cascade_takes_all_along(catalog: StoreUnderTest) -> None:
    empty = catalog.counts() | {"DBS": 1}
    catalog.create_table("a", keys=[("dt", "string")])
    catalog.add_partitions("a", ("1",), ("2",))
    catalog.store.writes.tables.create_table(external("b", location=f"file:{catalog.directory}/outside"))
    catalog.store.writes.tables.create_table(table("v", tableType="VIRTUAL_VIEW", viewOriginalText="q"))
    catalog.store.writes.functions.create_function(
        ttypes.Function("f", "d", "c", "o", ttypes.PrincipalType.USER, 0, ttypes.FunctionType.JAVA, [])
    )
    catalog.store.writes.databases.drop_database(database_name(CATALOG, "D"), delete_data=True, cascade=True)
    assert catalog.counts() == empty
    assert catalog.files() == ["outside"], "data of external tables stays"
    assert catalog.events()[-5:] == [
        ("DROP_FUNCTION", "d", None),
        ("DROP_TABLE", "d", "a"),
        ("DROP_TABLE", "d", "b"),
        ("DROP_TABLE", "d", "v"),
        ("DROP_DATABASE", "d", None),
    ]


def test_drop_keeps_the_directory_where_foreign_data_lies(catalog: StoreUnderTest) -> None:
    catalog.create_table("mine")
    catalog.store.writes.tables.create_table(external("theirs"))
    catalog.create_database("other", locationUri=f"file:{catalog.directory}/third.db")
    catalog.create_database("third", locationUri=f"file:{catalog.directory}/third.db/deep")
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "other"), delete_data=True, cascade=True)
    assert catalog.files() == ["d.db", "d.db/theirs", "third.db", "third.db/deep"]


def test_drop_keeps_data_that_external_tables_share(catalog: StoreUnderTest) -> None:
    place = f"file:{catalog.directory}/shared"
    catalog.create_table("mine", location=place)
    catalog.store.writes.tables.create_table(external("theirs", location=place))
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    assert catalog.files() == ["shared"]


def test_drop_keeps_data_when_asked(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=False, cascade=True)
    assert catalog.files() == ["d.db", "d.db/t"]


def test_drop_of_a_missing_or_the_default_database(under_test: StoreUnderTest) -> None:
    with pytest.raises(ttypes.NoSuchObjectException, match=r"database hive\.x"):
        under_test.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=True)
    under_test.store.writes.databases.drop_database(
        DatabaseName(CATALOG, "x"), delete_data=True, cascade=True, if_exists=True
    )
    with pytest.raises(ttypes.MetaException, match="Can not drop default database in catalog hive"):
        under_test.store.writes.databases.drop_database(
            DatabaseName(CATALOG, "default"), delete_data=True, cascade=True
        )
    assert under_test.events() == []


@pytest.mark.parametrize("store_kind", ["object"])
def test_statement_counts(catalog: StoreUnderTest) -> None:
    with catalog.counting() as counted:
        catalog.store.reads.databases.get_database(DatabaseName(CATALOG, "d"))
    assert counted[0] <= 1
    with catalog.counting() as counted:
        catalog.store.reads.databases.get_database_names(CATALOG, "d*")
    assert counted[0] <= 1
    catalog.create_table("a")
    with catalog.counting() as few:
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    catalog.create_database()
    for number in range(12):
        catalog.create_table(f"t{number}")
    with catalog.counting() as many:
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=True, cascade=True)
    assert many == few, "the number of tables does not matter"


def test_rows_of_other_writers_are_read(under_test: StoreUnderTest) -> None:
    """A Java metastore of 3.1 omits owner types and times."""
    values = {"DB_ID": 77, "NAME": "old", "CTLG_NAME": "hive", "DB_LOCATION_URI": "hdfs://nn/old", "TYPE": "NATIVE"}
    run_write(under_test.database, lambda transaction: transaction.connection.execute(insert(DBS).values(values)))
    found = under_test.store.reads.databases.get_database(DatabaseName(CATALOG, "old"))
    assert (found.locationUri, found.ownerType, found.createTime) == ("hdfs://nn/old", None, None)


class TestExternalWarehouse:
    """`metastore.warehouse.external.dir`."""

    @pytest.fixture
    def warehouse_settings(self, tmp_path: object) -> WarehouseSettings:
        return WarehouseSettings(
            directory=f"file:{tmp_path}/warehouse/managed", external_directory=f"file:{tmp_path}/warehouse/external"
        )

    def test_locations(self, under_test: StoreUnderTest) -> None:
        under_test.create_database("x")
        root = under_test.directory
        assert (
            under_test.store.reads.databases.get_database(DatabaseName(CATALOG, "x")).locationUri
            == f"file:{root}/external/x.db"
        )
        under_test.store.writes.tables.create_table(table("m", dbName="x"))
        under_test.store.writes.tables.create_table(external("e", dbName="x"))
        assert under_test.get("m", "x").sd.location == f"file:{root}/managed/x.db/m"
        assert under_test.get("e", "x").sd.location == f"file:{root}/external/x.db/e"

    def test_drop_removes_both_directories(self, under_test: StoreUnderTest) -> None:
        under_test.create_database("x")
        under_test.store.writes.tables.create_table(table("m", dbName="x"))
        under_test.store.writes.tables.drop_table(TableName(CATALOG, "x", "m"), delete_data=False)
        under_test.store.writes.databases.drop_database(DatabaseName(CATALOG, "x"), delete_data=True, cascade=True)
        assert under_test.files() == ["external", "managed"]


def test_nothing_is_left_of_dropped_functions_and_tables(catalog: StoreUnderTest) -> None:
    catalog.create_table()
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, "d"), delete_data=False, cascade=True)
    assert catalog.rows(TBLS.c.TBL_ID) == []
    assert catalog.rows(FUNCS.c.FUNC_ID) == []
