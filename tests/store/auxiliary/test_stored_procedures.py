"""Stored procedures and packages."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, select

from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.schema import DBS, STORED_PROCS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import World


def test_procedures(world: World) -> None:
    procedures = world.stores.procedures
    long_source = "x" * 100_000
    procedures.save_procedure(ttypes.StoredProcedure("Q", "D", None, "o", long_source))
    procedures.save_procedure(ttypes.StoredProcedure("a", "d", "hive", "o", "1"))
    procedures.save_procedure(ttypes.StoredProcedure("a", "d", "hive", "p", "2"))
    assert procedures.get_procedure("hive", "D", "Q") == ttypes.StoredProcedure("Q", "d", "hive", "o", long_source)
    assert procedures.get_procedure("hive", "d", "a") == ttypes.StoredProcedure("a", "d", "hive", "p", "2")
    assert procedures.get_procedure_names("hive", "d") == procedures.get_procedure_names("hive", None) == ["Q", "a"]
    assert procedures.get_procedure_names("hive", "other") == []
    procedures.drop_procedure("hive", "d", "Q")
    procedures.drop_procedure("hive", "d", "Q")
    with pytest.raises(ttypes.NoSuchObjectException, match=r"HPL/SQL StoredProcedure d\.Q does not exist"):
        procedures.get_procedure("hive", "d", "Q")
    with pytest.raises(ttypes.NoSuchObjectException, match=r"There is no database hive\.nope"):
        procedures.save_procedure(ttypes.StoredProcedure("a", "nope", "hive", "o", "1"))
    with pytest.raises(ttypes.MetaException):
        procedures.save_procedure(ttypes.StoredProcedure("a", "d", "hive", "o", None))


def test_packages(world: World) -> None:
    procedures = world.stores.procedures
    procedures.save_package(ttypes.AddPackageRequest("hive", "d", "p", "o", "h1", "b1"))
    procedures.save_package(ttypes.AddPackageRequest("hive", "d", "p", "o", "h2", "b2"))
    assert procedures.get_package("hive", "d", "p") == ttypes.Package("hive", "d", "p", "o", "h2", "b2")
    assert procedures.get_package_names("hive", None) == ["p"]
    world.objects.writes.databases.drop_database(DatabaseName("hive", "d"), delete_data=False, cascade=True)
    assert procedures.get_package_names("hive", None) == []
    with pytest.raises(ttypes.NoSuchObjectException, match=r"HPL/SQL package d\.p does not exist"):
        procedures.get_package("hive", "d", "p")


def test_names_are_found_in_any_case(world: World) -> None:
    """HPL/SQL creates `Area` as `AREA`, and requests it as spelled by the program that calls or drops it."""
    procedures = world.stores.procedures
    procedures.save_procedure(ttypes.StoredProcedure("AREA", "d", "hive", "o", "1"))
    procedures.save_package(ttypes.AddPackageRequest("hive", "d", "AREA", "o", "h", "b"))
    assert procedures.get_procedure("hive", "d", "area") == procedures.get_procedure("hive", "d", "Area")
    assert procedures.get_procedure("hive", "d", "area").name == "AREA"
    assert procedures.get_package("hive", "d", "aReA").packageName == "AREA"
    procedures.save_procedure(ttypes.StoredProcedure("area", "d", "hive", "p", "2"))
    assert procedures.get_procedure("hive", "d", "AREA") == ttypes.StoredProcedure("area", "d", "hive", "p", "2")
    assert procedures.get_procedure_names("hive", "d") == ["area"]
    procedures.drop_procedure("hive", "d", "aREA")
    procedures.drop_package("hive", "d", "area")
    assert procedures.get_procedure_names("hive", "d") == procedures.get_package_names("hive", "d") == []


def test_of_two_names_that_differ_in_case_each_is_found(world: World) -> None:
    """Hive has created both, if the database can store them."""
    if world.database.dialect == "mysql":
        pytest.skip("there is no place for both")
    row = {"CREATE_TIME": 1, "DB_ID": 1, "OWNER_NAME": "o"}
    with world.database.writing() as connection:
        row["DB_ID"] = connection.execute(select(DBS.c.DB_ID).where(DBS.c.NAME == "d")).scalar_one()
        rows = [{**row, "SP_ID": 900 + number, "NAME": name, "SOURCE": name} for number, name in enumerate(("P", "p"))]
        connection.execute(insert(STORED_PROCS), rows)
        connection.commit()
    procedures = world.stores.procedures
    assert [procedures.get_procedure("hive", "d", name).source for name in ("p", "P")] == ["p", "P"]
    procedures.save_procedure(ttypes.StoredProcedure("p", "d", "hive", "o", "new"))
    assert [procedures.get_procedure("hive", "d", name).source for name in ("p", "P")] == ["new", "P"]
    procedures.drop_procedure("hive", "d", "P")
    assert procedures.get_procedure_names("hive", "d") == ["p"]
