"""What is created, and where, if a Hive 4 metastore translates."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings, WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.translation.metadata_translation import MetadataTranslation
from hms_cache.store.warehouse import Warehouse
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.manual_clock import ManualClock


class Translating:
    """Translations over one database `d`."""

    def __init__(self, database: Database, directory: Path) -> None:
        self.database = database
        self.directory = directory
        self.managed, self.external = f"file:{directory}/managed", f"file:{directory}/external"
        self.d = ttypes.Database("d", None, f"{self.managed}/d.db", {}, catalogName="hive")

    def by(self, external: str | None = None, **settings: str) -> MetadataTranslation:
        """A translation with these settings; enabled, and with an external warehouse, by default."""
        warehouse = Warehouse(
            WarehouseSettings(
                directory=self.managed, external_directory=self.external if external is None else external
            )
        )
        values = Settings(catalog=CatalogSettings(**{"metadata_translation": "hive4", **settings}))  # type: ignore[arg-type]
        clock = ManualClock()
        return MetadataTranslation(StoreContext(self.database, MessageBuilder(clock=clock), warehouse, values, clock))

    def get_database(self, name: DatabaseName) -> ttypes.Database:
        if name.database != "d":
            raise ttypes.NoSuchObjectException("none")
        return self.d


@pytest.fixture
def world(sqlite_database: Database, tmp_path: Path) -> Translating:
    return Translating(sqlite_database, tmp_path)


def table(kind: str = "MANAGED_TABLE", location: str | None = None, **parameters: str) -> ttypes.Table:
    descriptor = ttypes.StorageDescriptor(cols=[], location=location)
    return ttypes.Table("t", "d", sd=descriptor, tableType=kind, parameters=parameters, catName="hive")


def test_a_managed_table_that_is_not_transactional_becomes_external(world: Translating) -> None:
    given = table(transactional="false", k="v")
    before = copy.deepcopy(given)
    made = world.by().table_to_create(given, None, world.get_database)
    assert given == before
    assert (made.tableType, made.sd.location) == ("EXTERNAL_TABLE", f"{world.external}/d.db/t")
    assert made.parameters == {
        "k": "v",
        "EXTERNAL": "TRUE",
        "external.table.purge": "TRUE",
        "TRANSLATED_TO_EXTERNAL": "TRUE",
    }
    kept = world.by().table_to_create(table(location="file:/x/t"), None, world.get_database)
    assert kept.sd.location == "file:/x/t"
    without = world.by(external="").table_to_create(table(), None, world.get_database)
    assert without.sd.location == f"{world.managed}/d.db/t"
    world.d.locationUri = "file:/elsewhere"
    assert world.by().table_to_create(table(), None, world.get_database).sd.location == "file:/elsewhere/t"


def test_a_place_that_is_taken(world: Translating) -> None:
    taken = world.directory / "external" / "d.db"
    for name in ("t", "t_1", "1_t"):
        (taken / name).mkdir(parents=True)
    expected = {"force": "t", "seqsuffix": "t_2", "seqprefix": "2_t"}
    for mode, name in expected.items():
        made = world.by(translated_location_mode=mode).table_to_create(table(), None, world.get_database)
        assert made.sd.location == f"{world.external}/d.db/{name}"
    with pytest.raises(ttypes.MetaException, match="Default location is not available for table: file:"):
        world.by(translated_location_mode="prohibit").table_to_create(table(), None, world.get_database)


def test_transactional_tables_need_a_client_that_can_write_them(world: Translating) -> None:
    translation = world.by()
    acid, insert_only = {"transactional": "true"}, {"transactional_properties": "insert_only"}
    made = translation.table_to_create(table(**acid), ["HIVEFULLACIDWRITE"], world.get_database)
    assert (made.tableType, made.sd.location) == ("MANAGED_TABLE", f"{world.managed}/d.db/t")
    world.d.managedLocationUri = "file:/m"
    made = translation.table_to_create(table(**insert_only), ["HIVEMANAGEDINSERTWRITE"], world.get_database)
    assert (made.tableType, made.sd.location) == ("MANAGED_TABLE", "file:/m/t")
    for parameters, has, text in (
        (acid, [], "Processor has no capabilities, cannot create an ACID table"),
        (acid, ["CONNECTORWRITE"], r"create a FULL ACID table:\[HIVEFULLACIDWRITE, HIVEMANAGESTATS, HIVECACHEINV"),
        (insert_only, ["X"], r"create a INSERT ACID table:\[HIVEMANAGEDINSERTWRITE, HIVEMANAGESTATS"),
    ):
        with pytest.raises(ttypes.MetaException, match=text):
            translation.table_to_create(table(**parameters), has, world.get_database)
    world.d.parameters = {"EXTERNAL_TABLES_ONLY": "true"}
    with pytest.raises(ttypes.MetaException, match="not allowed when the property 'EXTERNAL_TABLES_ONLY'='TRUE'"):
        translation.table_to_create(table(**acid), ["HIVEFULLACIDWRITE"], world.get_database)
    as_external = table(create_table_as_external="true", **insert_only)
    assert translation.table_to_create(as_external, None, world.get_database).tableType == "EXTERNAL_TABLE"


def test_locations_where_tables_must_not_lie(world: Translating) -> None:
    translation, acid = world.by(), {"transactional": "true"}
    outside = table(location="file:/x/t", **acid)
    inside = table("EXTERNAL_TABLE", f"{world.managed}/x")
    with pytest.raises(ttypes.MetaException, match="should be located within managed warehouse root directory"):
        translation.table_to_create(outside, ["HIVEFULLACIDWRITE"], world.get_database)
    with pytest.raises(ttypes.MetaException, match="should not be located within managed warehouse root directory"):
        translation.table_to_create(inside, None, world.get_database)
    assert world.by(external="").table_to_create(inside, None, world.get_database) == inside
    made = translation.table_to_create(table("EXTERNAL_TABLE"), None, world.get_database)
    assert made.sd.location == f"{world.external}/d.db/t"
    for changed, before in (
        (outside, table(location=f"{world.managed}/d.db/t", **acid)),
        (inside, table("EXTERNAL_TABLE", "file:/y")),
    ):
        with pytest.raises(ttypes.MetaException, match="managed warehouse root directory"):
            translation.check_alteration(lambda before=before: before, changed, world.get_database)
        translation.check_alteration(lambda changed=changed: changed, changed, world.get_database)
    world.d.managedLocationUri = "file:/m"
    with pytest.raises(ttypes.MetaException, match="it has to be within database's managed location"):
        translation.table_to_create(outside, ["HIVEFULLACIDWRITE"], world.get_database)
    missing = table()
    missing.dbName = "e"
    with pytest.raises(ttypes.MetaException, match="Database e for table t could not be found"):
        translation.table_to_create(missing, None, world.get_database)


def test_a_database_shows_its_external_directory(world: Translating) -> None:
    translation = world.by()
    seen = translation.database(world.d, None)
    assert (seen.locationUri, seen.managedLocationUri) == (f"{world.external}/d.db", None)
    seen = translation.database(world.d, ["HIVEFULLACIDWRITE"])
    assert (seen.locationUri, seen.managedLocationUri) == (f"{world.external}/d.db", f"{world.managed}/d.db")
    assert world.d.locationUri == f"{world.managed}/d.db"
    assert translation.database(world.d, ["MANAGE_RAW_METADATA"]) is world.d
    default = ttypes.Database("default", None, world.managed, {}, catalogName="hive")
    assert translation.database(default, None).locationUri == world.external
    elsewhere = ttypes.Database("e", None, "file:/e", {}, catalogName="hive")
    assert translation.database(elsewhere, None) is elsewhere


def test_nothing_is_translated_when_it_is_off_or_not_wanted(world: Translating) -> None:
    off = world.by(metadata_translation="off")
    given = table()
    assert off.table_to_create(given, None, world.get_database) is given
    assert off.table(given, ["EXTREAD"]) is given
    assert off.database(world.d, None) is world.d
    off.check_alteration(
        lambda: table("EXTERNAL_TABLE", "file:/y"), table("EXTERNAL_TABLE", f"{world.managed}/x"), world.get_database
    )
    on = world.by()
    for capabilities in (None, [], ["EXTREAD", "MANAGERAWMETADATA"]):
        assert on.table(given, capabilities) is given
    view = table("VIRTUAL_VIEW")
    assert on.table_to_create(view, None, world.get_database) is view
    given.catName = "other"
    assert on.table_to_create(given, None, world.get_database) is given
