"""Contract of functions and of catalogs."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName, function_name
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, as_received, table


def function(name: str = "f", **fields: Any) -> ttypes.Function:
    values: dict[str, Any] = {
        "functionName": name,
        "dbName": "d",
        "className": "c",
        "ownerName": "o",
        "ownerType": ttypes.PrincipalType.ROLE,
        "createTime": 0,
        "functionType": ttypes.FunctionType.JAVA,
        "resourceUris": [
            ttypes.ResourceUri(ttypes.ResourceType.JAR, "z.jar"),
            ttypes.ResourceUri(ttypes.ResourceType.FILE, "a.txt"),
        ],
        "catName": "hive",
    }
    return ttypes.Function(**(values | fields))


class TestFunctions:
    def test_create_and_get(self, catalog: StoreUnderTest) -> None:
        catalog.store.writes.functions.create_function(function("F", dbName="D"))
        found = catalog.store.reads.functions.get_function(function_name(CATALOG, "D", "F"))
        assert found == function("f", createTime=1_700_000_000)
        assert catalog.events()[-1] == ("CREATE_FUNCTION", "d", None)
        assert catalog.last_event().function() == as_received(found)

    def test_missing(self, catalog: StoreUnderTest) -> None:
        with pytest.raises(ttypes.NoSuchObjectException) as raised:
            catalog.store.reads.functions.get_function(function_name(CATALOG, "d", "F1"))
        assert raised.value.message == "Function d.F1 does not exist"
        with pytest.raises(ttypes.NoSuchObjectException, match="Function f1 does not exist"):
            catalog.store.writes.functions.drop_function(FunctionName(CATALOG, "d", "f1"))
        with pytest.raises(ttypes.NoSuchObjectException, match=r"database hive\.nope"):
            catalog.store.writes.functions.create_function(function(dbName="nope"))

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"functionName": "a-b"}, ttypes.InvalidObjectException),
            ({"className": None}, ttypes.InvalidObjectException),
            ({"functionType": None}, ttypes.MetaException),
            ({"ownerType": None}, ttypes.MetaException),
            ({"dbName": None}, ttypes.MetaException),
        ],
    )
    def test_refused(self, catalog: StoreUnderTest, fields: dict[str, Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            catalog.store.writes.functions.create_function(function(**fields))

    def test_taken_names(self, catalog: StoreUnderTest) -> None:
        catalog.store.writes.functions.create_function(function())
        with pytest.raises(ttypes.AlreadyExistsException, match="Function F already exists"):
            catalog.store.writes.functions.create_function(function("F"))

    def test_lists(self, catalog: StoreUnderTest) -> None:
        catalog.create_database("c")
        for name, database in (("b", "d"), ("a", "d"), ("z", "c")):
            catalog.store.writes.functions.create_function(function(name, dbName=database))
        assert catalog.store.reads.functions.get_function_names(DatabaseName(CATALOG, "d")) == ["a", "b"]
        assert catalog.store.reads.functions.get_function_names(DatabaseName(CATALOG, "d"), "B*") == ["b"]
        names = [(each.dbName, each.functionName) for each in catalog.store.reads.functions.get_functions(CATALOG)]
        assert names == [("c", "z"), ("d", "a"), ("d", "b")]
        found = catalog.store.reads.functions.get_functions(CATALOG, "d", "a|x")
        assert [(each.functionName, len(each.resourceUris)) for each in found] == [("a", 2)]
        with catalog.counting() as counted:
            catalog.store.reads.functions.get_functions(CATALOG)
        assert counted[0] <= 1

    def test_alter(self, catalog: StoreUnderTest) -> None:
        catalog.create_database("e")
        catalog.store.writes.functions.create_function(function("f"))
        catalog.store.writes.functions.create_function(function("g"))
        before = len(catalog.events())
        catalog.store.writes.functions.alter_function(
            function_name(CATALOG, "d", "F"), function("h", dbName="e", className="x", resourceUris=[])
        )
        found = catalog.store.reads.functions.get_function(FunctionName(CATALOG, "e", "h"))
        assert (found.className, found.resourceUris, found.createTime) == ("x", [], 1_700_000_000)
        with pytest.raises(ttypes.MetaException, match=r"Function d\.g already exists"):
            catalog.store.writes.functions.alter_function(FunctionName(CATALOG, "e", "h"), function("g"))
        catalog.store.writes.functions.alter_function(FunctionName(CATALOG, "d", "g"), function("g", ownerName=None))
        assert catalog.store.reads.functions.get_function(FunctionName(CATALOG, "d", "g")).ownerName is None, (
            "only who creates one is its owner"
        )
        with pytest.raises(ttypes.MetaException, match="function f doesn't exist"):
            catalog.store.writes.functions.alter_function(function_name(CATALOG, "d", "F"), function("f"))
        # Hive has no event for it: these two have the same meaning for a reader of the log.
        assert [event[0] for event in catalog.events()[before:]] == ["DROP_FUNCTION", "CREATE_FUNCTION"] * 2

    def test_drop(self, catalog: StoreUnderTest) -> None:
        catalog.store.writes.functions.create_function(function())
        catalog.store.writes.functions.drop_function(function_name(CATALOG, "D", "F"))
        assert catalog.store.reads.functions.get_function_names(DatabaseName(CATALOG, "d")) == []
        assert catalog.events()[-1] == ("DROP_FUNCTION", "d", None)
        assert catalog.counts()["FUNC_RU"] == 0


class TestCatalogs:
    def create(self, under_test: StoreUnderTest, name: str = "spark") -> None:
        location = f"file://{under_test.directory}/{name}/"
        under_test.store.writes.catalogs.create_catalog(
            ttypes.Catalog(name=name, description="x", locationUri=location)
        )

    def test_create_makes_a_default_database(self, under_test: StoreUnderTest) -> None:
        self.create(under_test, "Spark")
        location = f"file://{under_test.directory}/Spark/"
        found = under_test.store.reads.catalogs.get_catalog("SPARK")
        assert found == ttypes.Catalog("spark", "x", location, 1_700_000_000)
        assert under_test.store.reads.catalogs.get_catalog_names() == ["hive", "spark"]
        default = under_test.store.reads.databases.get_database(DatabaseName("spark", "default"))
        assert (default.locationUri, default.catalogName) == (location.replace("//", "").rstrip("/"), "spark")
        assert default.description == "Default database for catalog Spark"

    def test_its_objects_are_apart(self, under_test: StoreUnderTest) -> None:
        self.create(under_test)
        under_test.create_database("d")
        under_test.create_database("d", catalogName="spark")
        under_test.store.writes.tables.create_table(table("t", catName="spark"))
        place = f"file:{under_test.directory}/spark/d.db"
        assert under_test.store.reads.databases.get_database(DatabaseName("spark", "d")).locationUri == place
        found = under_test.store.reads.tables.get_table(TableName("spark", "d", "t"))
        assert (found.catName, found.sd.location) == ("spark", f"{place}/t")
        with pytest.raises(ttypes.NoSuchObjectException):
            under_test.store.reads.tables.get_table(TableName("hive", "d", "t"))
        assert under_test.store.reads.databases.get_database_names("spark") == ["d", "default"]

    def test_refused(self, under_test: StoreUnderTest) -> None:
        with pytest.raises(ttypes.AlreadyExistsException, match="Catalog hive already exists"):
            self.create(under_test, "hive")
        with pytest.raises(ttypes.InvalidObjectException, match="a-b is not a valid catalog name"):
            self.create(under_test, "a-b")
        with pytest.raises(ttypes.InvalidObjectException, match="You must specify a path for the catalog"):
            under_test.store.writes.catalogs.create_catalog(ttypes.Catalog(name="x"))
        with pytest.raises(ttypes.NoSuchObjectException, match="No catalog nope"):
            under_test.store.reads.catalogs.get_catalog("nope")

    def test_alter(self, under_test: StoreUnderTest) -> None:
        self.create(under_test)
        under_test.store.writes.catalogs.alter_catalog("Spark", ttypes.Catalog("spark", "new", "file:///other"))
        found = under_test.store.reads.catalogs.get_catalog("spark")
        assert (found.description, found.locationUri) == ("new", "file:///other")
        with pytest.raises(ttypes.InvalidOperationException):
            under_test.store.writes.catalogs.alter_catalog("spark", ttypes.Catalog("other", "new", "file:///other"))
        with pytest.raises(ttypes.NoSuchObjectException):
            under_test.store.writes.catalogs.alter_catalog("nope", ttypes.Catalog("nope", "new", "file:///other"))

    def test_a_moved_catalog_leaves_no_directory(self, under_test: StoreUnderTest) -> None:
        """Its default database remains where the catalog was created."""
        self.create(under_test)
        made = under_test.files()
        assert made
        under_test.store.writes.catalogs.alter_catalog(
            "spark", ttypes.Catalog("spark", "x", f"file:{under_test.directory}/elsewhere")
        )
        assert under_test.files() == made
        under_test.store.writes.catalogs.drop_catalog("spark")
        assert under_test.files() == []

    def test_drop(self, under_test: StoreUnderTest) -> None:
        before = under_test.counts()
        self.create(under_test)
        under_test.create_database("d", catalogName="spark")
        with pytest.raises(ttypes.InvalidOperationException, match="There are non-default databases in the catalog"):
            under_test.store.writes.catalogs.drop_catalog("spark")
        under_test.store.writes.databases.drop_database(DatabaseName("spark", "d"), delete_data=True, cascade=False)
        under_test.store.writes.tables.create_table(table("t", catName="spark", dbName="default"))
        with pytest.raises(ttypes.InvalidOperationException, match="There are still objects in the default database"):
            under_test.store.writes.catalogs.drop_catalog("spark")
        under_test.store.writes.tables.drop_table(TableName("spark", "default", "t"), delete_data=True)
        under_test.store.writes.catalogs.drop_catalog("SPARK")
        assert under_test.counts() == before
        assert under_test.files() == []
        with pytest.raises(ttypes.NoSuchObjectException):
            under_test.store.writes.catalogs.drop_catalog("spark")
        under_test.store.writes.catalogs.drop_catalog("spark", if_exists=True)
        with pytest.raises(ttypes.MetaException, match="Can not drop hive catalog"):
            under_test.store.writes.catalogs.drop_catalog("hive")
