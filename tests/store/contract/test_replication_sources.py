"""What is refused in a database that is a source of replication, and the effects in a database that was loaded."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.message_reader import read_event
from hms_cache.store.contract.environment import Writer
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, environment, table
from tests.store.contract.test_table_changes import changed

SETS_LOCATION = environment(alterTableOpType="alterLocation")
"""As Hive sends it with ALTER TABLE … SET LOCATION; it compares without case."""


def replicate(catalog: StoreUnderTest, name: str, policies: str = "1,2") -> None:
    """Makes the database a source of replication; without policies, an ordinary database."""
    database = catalog.store.reads.databases.get_database(DatabaseName(CATALOG, name))
    database.parameters = {"repl.source.for": policies}
    catalog.store.writes.databases.alter_database(DatabaseName(CATALOG, name), database)


@pytest.mark.parametrize("source", ["d", "e"])
def test_tables_are_not_renamed_out_of_it_or_into_it(catalog: StoreUnderTest, source: str) -> None:
    catalog.create_database("e")
    found = catalog.create_table()
    replicate(catalog, source)
    before = catalog.files()
    with pytest.raises(ttypes.MetaException) as raised:
        catalog.alter("t", changed(found, dbName="e", tableName="u"))
    assert raised.value.message == "Alter table not allowed for table hive.d.tto new table = hive.e.u"
    assert (catalog.get(), catalog.files()) == (found, before)
    catalog.alter("t", changed(found, tableName="u"))
    replicate(catalog, source, "")
    catalog.alter("u", changed(catalog.get("u"), dbName="e"))
    assert catalog.get("u", "e").sd.location == f"file:{catalog.directory}/e.db/u"


@pytest.mark.parametrize("source", ["d", "e"])
def test_partitions_are_not_exchanged_out_of_it_or_into_it(catalog: StoreUnderTest, source: str) -> None:
    catalog.create_database("e")
    catalog.create_table(keys=[("dt", "string")])
    for database, name in (("d", "other"), ("e", "t")):
        catalog.create_table(name, dbName=database, keys=[("dt", "string")])
    catalog.add_partitions("t", ("1",), ("2",))
    replicate(catalog, source)
    exchange = catalog.store.writes.partitions.exchange_partitions
    here, there = TableName(CATALOG, "d", "t"), TableName(CATALOG, "e", "t")
    with pytest.raises(ttypes.MetaException) as raised:
        exchange({"dt": "1"}, here, there)
    assert raised.value.message == "Exchange partition not allowed for hive.d.t Dest db : e"
    exchange({"dt": "1"}, here, TableName(CATALOG, "d", "other"))
    replicate(catalog, source, "")
    exchange({"dt": "2"}, here, there)


@pytest.mark.parametrize(("kind", "is_refused"), [("MANAGED_TABLE", True), ("EXTERNAL_TABLE", False)])
def test_locations_of_managed_tables_stay(catalog: StoreUnderTest, kind: str, is_refused: bool) -> None:
    parameters = {"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {}
    found = catalog.create_table(keys=[("dt", "string")], tableType=kind, parameters=parameters)
    catalog.add_partitions("t", ("1",))
    [partition] = catalog.partitions("t")
    found.sd.location = partition.sd.location = f"file:{catalog.directory}/elsewhere"

    def alter() -> None:
        catalog.alter("t", found, SETS_LOCATION)

    def alter_partition() -> None:
        writer = Writer(options=SETS_LOCATION)
        catalog.store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [partition], writer=writer)

    replicate(catalog, "d")
    for change in (alter_partition, alter):
        if is_refused:
            text = r"Cannot change location of a managed table hive\.d\.t as it is enabled for replication\."
            with pytest.raises(ttypes.InvalidOperationException, match=text):
                change()
        else:
            change()
    replicate(catalog, "d", "")
    alter_partition()
    alter()
    assert catalog.get().sd.location == catalog.partitions("t")[0].sd.location == f"file:{catalog.directory}/elsewhere"


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"EXTERNAL": "TRUE"},
            "Table type cannot be changed from MANAGED_TABLE to EXTERNAL_TABLE for the table hive.d.t"
            " as it is enabled for replication.",
        ),
        (
            {"transactional": "true", "transactional_properties": "insert_only"},
            "A non-Acid table cannot be converted to an Acid table for the table hive.d.t"
            " as it is enabled for replication.",
        ),
    ],
)
def test_tables_keep_their_kind(catalog: StoreUnderTest, parameters: dict[str, str], text: str) -> None:
    found = catalog.create_table()
    replicate(catalog, "d")
    with pytest.raises(ttypes.InvalidOperationException) as raised:
        catalog.alter("t", changed(found, parameters=parameters))
    assert raised.value.message == text
    catalog.alter("t", changed(found, parameters={"other": "x"}))
    replicate(catalog, "d", "")
    catalog.alter("t", changed(found, parameters=parameters))


@pytest.mark.parametrize("new_name", ["t", "u"])
@pytest.mark.parametrize("is_loaded", [True, False])
def test_partitions_follow_what_replication_has_put_elsewhere(
    catalog: StoreUnderTest, new_name: str, is_loaded: bool
) -> None:
    found = catalog.create_table(keys=[("dt", "string")])
    outside = f"file:{catalog.directory}/outside"
    catalog.add_partitions("t", ("1",))
    catalog.add_partitions("t", ("2",), location=outside)
    before, old = catalog.files(), found.sd.location
    found.sd.location = f"file:{catalog.directory}/loaded"
    options = environment(REPL_DATA_LOCATION_CHANGED="true") if is_loaded else environment(other="x")
    catalog.alter("t", changed(found, tableName=new_name), options)
    followed = f"{found.sd.location}/dt=1" if is_loaded else f"{old}/dt=1"
    assert [partition.sd.location for partition in catalog.partitions(new_name)] == [followed, outside]
    assert catalog.files() == before


def write(catalog: StoreUnderTest, *names: str) -> None:
    """Files in the warehouse, as a client writes them before it adds what they belong to."""
    for name in names:
        path = catalog.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rows")


def told(catalog: StoreUnderTest, *names: str) -> tuple[str, ...]:
    """The files as events name them: without checksum, change manager and subdirectory."""
    return tuple(f"file:{catalog.directory}/{name}###" for name in names)


KINDS: dict[str, dict[str, Any]] = {
    "managed": {},
    "external": {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}},
    "transactional": {"parameters": {"transactional": "true", "transactional_properties": "insert_only"}},
}
"""Files of external tables are copied without events, those of transactional ones are named by their transactions."""


@pytest.mark.parametrize(("kind", "is_source"), [*((kind, True) for kind in KINDS), ("managed", False)])
def test_files_of_new_partitions_are_told(catalog: StoreUnderTest, kind: str, is_source: bool) -> None:
    """The replica copies what the event names: rows of a partition that were written before it was added were lost."""
    if is_source:
        replicate(catalog, "d")
    catalog.create_table(keys=[("dt", "string")], **KINDS[kind])
    place = catalog.get().sd.location.rpartition("/warehouse/")[2]
    write(catalog, f"{place}/dt=1/b", f"{place}/dt=1/a", f"{place}/dt=1/_SUCCESS", f"{place}/dt=1/below/c")
    catalog.add_partitions("t", ("1",), ("2",))
    replicate(catalog, "d", "")
    added: Any = read_event(catalog.notifications()[-2])
    listed = [(one.partition_name, one.files) for one in added.files]
    if kind == "managed" and is_source:
        assert listed == [("dt=1", told(catalog, f"{place}/dt=1/a", f"{place}/dt=1/b")), ("dt=2", ())]
    else:
        assert listed == []


@pytest.mark.parametrize(("kind", "is_source"), [("managed", True), ("managed", False), ("external", True)])
def test_files_of_a_new_table_are_told(catalog: StoreUnderTest, kind: str, is_source: bool) -> None:
    """CREATE TABLE AS SELECT moves its files into the table's directory before it creates the table."""
    if is_source:
        replicate(catalog, "d")
    write(catalog, "placed/f")
    made = table("t", **KINDS[kind])
    made.sd.location = f"file:{catalog.directory}/placed"
    catalog.store.writes.tables.create_table(made)
    created = catalog.last_event()
    replicate(catalog, "d", "")
    is_told = kind == "managed" and is_source
    assert created.files == (told(catalog, "placed/f") if is_told else ())


def test_files_of_exchanged_partitions_are_told_where_they_are_now(catalog: StoreUnderTest) -> None:
    replicate(catalog, "d")
    for name in ("t", "u"):
        catalog.create_table(name, keys=[("dt", "string")])
    catalog.add_partitions("t", ("1",))
    old, new = (catalog.get(name).sd.location.rpartition("/warehouse/")[2] for name in ("t", "u"))
    write(catalog, f"{old}/dt=1/f")
    names = [TableName(CATALOG, "d", name) for name in ("t", "u")]
    catalog.store.writes.partitions.exchange_partitions({"dt": "1"}, *names)
    added: Any = read_event(catalog.notifications()[-2])
    replicate(catalog, "d", "")
    assert [(one.partition_name, one.files) for one in added.files] == [("dt=1", told(catalog, f"{new}/dt=1/f"))]
