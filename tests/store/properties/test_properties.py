"""Properties on each kind of database, and through a server."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, select, update

from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import METASTORE_DB_PROPERTIES
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import World, make_world, sqlite_world, world

__all__ = ["make_world", "sqlite_world", "world"]


def test_maps_of_metastore_databases_and_tables(world: World) -> None:
    properties = world.stores.properties
    properties.set(
        "hms", {"version": "1", "d.owner": "o", "d.t.policy": "snappy", "d.t.fill": "9", "d.u.policy": "zlib"}
    )
    properties.set("hms", {"d.t.fill": "10", "d.T.policy": "other", "d.t.u.deep.er": "x", "d_x.owner": "p"})
    everything = properties.get("hms", None, None, None)
    assert everything == {
        "hms": {"version": "1"},
        "d": {"owner": "o"},
        "d.T": {"policy": "other"},
        "d.t": {"fill": "10", "policy": "snappy"},
        "d.t.u": {"deep.er": "x"},
        "d.u": {"policy": "zlib"},
        "d_x": {"owner": "p"},
    }
    assert list(everything["d.t"]) == ["fill", "policy"]
    assert set(properties.get("hms", "d.t", None, [])) == {"d.t", "d.t.u"}
    assert properties.get("hms", "d_", None, None) == {"d_x": {"owner": "p"}}
    assert properties.get("hms", "d.", "policy == 'snappy' && fill > 9", ["fill"]) == {"d.t": {"fill": "10"}}
    assert properties.get("hms", "d.", "policy != null", ["fill", "absent"]) == {"d.t": {"fill": "10"}}
    assert properties.get("hms", "d.", "fill > 10", None) == {}


def test_rows_look_like_those_of_hive(world: World) -> None:
    rows = METASTORE_DB_PROPERTIES.c
    statement = select(rows.PROPERTY_VALUE, rows.DESCRIPTION).where(rows.PROPERTY_KEY == "hms.d.t")

    def row() -> tuple[str, str]:
        with world.database.checking() as connection:
            return tuple(connection.execute(statement).one())  # type: ignore[return-value]

    world.stores.properties.set("hms", {"d.t.a": "1"})
    first = row()
    assert first[1].startswith("Metastore property created 2023-11-1")
    world.stores.properties.set("hms", {"d.t.a": "2"})
    second = row()
    assert second[1].startswith("Metastore property updated 2023-11-1")
    assert first[0] != second[0]
    identity = world.stores.identity.get()
    assert properties_of(world) == {"d.t": {"a": "2"}}
    assert world.stores.identity.get() == identity


def properties_of(world: World) -> dict[str, dict[str, str]]:
    return world.stores.properties.get("hms", None, None, None)


def test_refusals(sqlite_world: World) -> None:
    properties = sqlite_world.stores.properties
    for refused in (lambda: properties.set("x", {"a": "1"}), lambda: properties.get("x", None, None, None)):
        with pytest.raises(ttypes.NoSuchObjectException, match="no PropertyManager namespace is declared, namespace x"):
            refused()
    with pytest.raises(ttypes.MetaException, match=r"The properties of hms\.d: a text of 70000 bytes"):
        properties.set("hms", {"d.a": "x" * 70_000, "b": "1"})
    assert properties_of(sqlite_world) == {}
    properties.set("hms", {})
    properties.set("hms", {"d.a": "1"})
    with pytest.raises(ttypes.MetaException, match="The predicate of get_properties: parsing error in 'a ='"):
        properties.get("hms", None, "a =", None)
    with pytest.raises(ttypes.MetaException, match="The predicate of get_properties: 'x' cannot be taken as a number"):
        properties.get("hms", None, "'x' > 5", None)
    rows = METASTORE_DB_PROPERTIES
    typed = {"PROPERTY_KEY": "hms.e", "PROPERTY_VALUE": "v", "PROPERTYCONTENT": b"\xac\xed\x00\x05"}
    run_write(sqlite_world.database, lambda transaction: transaction.connection.execute(insert(rows).values(typed)))
    for broken in (lambda: properties_of(sqlite_world), lambda: properties.set("hms", {"e.a": "1"})):
        with pytest.raises(ttypes.MetaException, match=r"The properties of hms\.e cannot be read: no property map"):
            broken()
    other = update(rows).where(rows.c.PROPERTY_KEY == "hms.e").values(PROPERTY_KEY="HMS.e")
    run_write(sqlite_world.database, lambda transaction: transaction.connection.execute(other))
    assert properties_of(sqlite_world) == {"d": {"a": "1"}}
