"""Stored procedures and packages."""

from __future__ import annotations

import pytest

from hms_cache.metadata.object_names import DatabaseName
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
