"""Any object in a database prevents its drop without `cascade`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.schema import DBS, METADATA
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.auxiliary.conftest import World

DATABASE = DatabaseName("hive", "d")

PARTS_OF_IT = {"DATABASE_PARAMS", "DB_PRIVS"}
"""Tables whose rows are the database's own."""


def function(world: World) -> None:
    java = ttypes.FunctionType.JAVA
    created = ttypes.Function("f", "d", "c", "o", ttypes.PrincipalType.USER, 0, java, [], catName="hive")
    world.objects.writes.functions.create_function(created)


def procedure(world: World) -> None:
    world.stores.procedures.save_procedure(ttypes.StoredProcedure("p", "d", "hive", "o", "source"))


def package(world: World) -> None:
    world.stores.procedures.save_package(ttypes.AddPackageRequest("hive", "d", "p", "o", "header", "body"))


def schema(world: World) -> None:
    policy = (ttypes.SchemaCompatibility.FORWARD, ttypes.SchemaValidation.ALL, True)
    world.stores.schemas.create_schema(ttypes.ISchema(ttypes.SchemaType.AVRO, "s", "hive", "d", *policy))


CONTENTS: dict[str, tuple[Callable[[World], None], str]] = {
    "TBLS": (lambda world: world.create_table("t"), "tables"),
    "FUNCS": (function, "functions"),
    "STORED_PROCS": (procedure, "stored procedures"),
    "PACKAGES": (package, "packages"),
    "I_SCHEMA": (schema, "schemas"),
}


def test_every_kind_is_among_them() -> None:
    referring = {
        table.name for table in METADATA.sorted_tables for key in table.foreign_keys if key.column.table is DBS
    }
    assert referring - PARTS_OF_IT == set(CONTENTS)


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_database_with_contents_stays(world: World, kind: str) -> None:
    create, things = CONTENTS[kind]
    create(world)
    with pytest.raises(ttypes.InvalidOperationException, match=f"d is not empty. One or more {things} exist"):
        world.objects.writes.databases.drop_database(DATABASE, delete_data=True, cascade=False)
    assert world.objects.reads.databases.get_database(DATABASE).name == "d"
