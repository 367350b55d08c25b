"""The schema registry."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from hms_cache.store.auxiliary.schema_registry import SchemaRegistry
from hms_cache.store.schema import SERDES
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    FieldSchema,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    MetaException,
    NoSuchObjectException,
    SchemaCompatibility,
    SchemaType,
    SchemaValidation,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
    SerdeType,
)
from tests.store.auxiliary.conftest import World

NAME = ISchemaName("hive", "d", "s")
POLICY = (SchemaCompatibility.FORWARD, SchemaValidation.ALL, True)


def version(number: int | None, *columns: FieldSchema, **fields: object) -> SchemaVersion:
    return SchemaVersion(schema=NAME, version=number, createdAt=5, cols=list(columns), **fields)


@pytest.fixture
def schemas(world: World) -> SchemaRegistry:
    return world.stores.schemas


def test_schemas(schemas: SchemaRegistry) -> None:
    schema = ISchema(SchemaType.AVRO, "s", "hive", "d", *POLICY, "g", "x")
    schemas.create_schema(ISchema(SchemaType.AVRO, "S", None, "D", *POLICY, "g", "x"))
    assert schemas.get_schema(ISchemaName("hive", "D", "S")) == schema
    with pytest.raises(AlreadyExistsException, match=r"Schema with name d\.s already exists"):
        schemas.create_schema(schema)
    changed = (SchemaCompatibility.NONE, SchemaValidation.LATEST, False)
    schemas.alter_schema(NAME, ISchema(SchemaType.HIVE, "other", "hive", "d", *changed))
    assert schemas.get_schema(NAME) == ISchema(SchemaType.AVRO, "s", "hive", "d", *changed, "g", "x")
    schemas.add_version(version(1))
    with pytest.raises(InvalidOperationException, match="cannot be dropped, it has at least one valid version"):
        schemas.drop_schema(NAME)
    schemas.drop_version(SchemaVersionDescriptor(NAME, 1))
    schemas.drop_schema(NAME)
    for action in (
        lambda: schemas.get_schema(NAME),
        lambda: schemas.drop_schema(NAME),
        lambda: schemas.alter_schema(NAME, schema),
        lambda: schemas.add_version(version(1)),
        lambda: schemas.get_all_versions(NAME),
        lambda: schemas.create_schema(ISchema(SchemaType.AVRO, "s", "hive", "nope", *POLICY)),
    ):
        with pytest.raises(NoSuchObjectException):
            action()


def test_versions(schemas: SchemaRegistry) -> None:
    schemas.create_schema(ISchema(SchemaType.AVRO, "s", "hive", "d", *POLICY))
    a, b = FieldSchema("a", "int", "n"), FieldSchema("b", "string", None)
    serde = SerDeInfo("named", "lib", {"k": "v"}, "x", "ser", "de", SerdeType.SCHEMA_REGISTRY)
    first = version(1, b, a, description="x", schemaText="t", fingerprint="f", name="v1", serDe=serde)
    second = version(2, a, state=SchemaVersionState.ENABLED)
    schemas.add_version(first)
    schemas.add_version(second)
    # Without a state it has none, and none is stored.
    schemas.set_version_state(SchemaVersionDescriptor(NAME, 1), None)
    assert schemas.get_version(SchemaVersionDescriptor(NAME, 1)) == first
    assert schemas.find_versions(None, "N", None) == []
    assert schemas.get_all_versions(NAME) == [second, first]
    assert schemas.get_latest_version(NAME) == second
    with pytest.raises(AlreadyExistsException, match="version 2 already exists"):
        schemas.add_version(second)
    both = [SchemaVersionDescriptor(NAME, 2), SchemaVersionDescriptor(NAME, 1)]
    assert schemas.find_versions("A", None, None) == schemas.find_versions(None, "n", "int") == both
    assert schemas.find_versions("b", None, "string") == both[1:]
    assert schemas.find_versions("b", None, "STRING") == both[1:]
    assert schemas.find_versions("b", None, "int") == []
    with pytest.raises(MetaException, match="You must specify column name"):
        schemas.find_versions(None, None, "int")
    schemas.set_version_state(both[0], SchemaVersionState.DELETED)
    schemas.map_version_to_serde(both[0], "named")
    latest = schemas.get_latest_version(NAME)
    assert (latest.state, latest.serDe) == (SchemaVersionState.DELETED, serde)
    with pytest.raises(NoSuchObjectException, match="No SerDe named nope"):
        schemas.map_version_to_serde(both[0], "nope")
    schemas.drop_version(both[0])
    for action in (
        lambda: schemas.drop_version(both[0]),
        lambda: schemas.get_version(both[0]),
        lambda: schemas.set_version_state(both[0], 1),
    ):
        with pytest.raises(NoSuchObjectException, match="No schema version SchemaVersionDescriptor"):
            action()
    assert schemas.get_latest_version(NAME) == first


def test_a_version_without_a_number_is_version_0(schemas: SchemaRegistry) -> None:
    schemas.create_schema(ISchema(SchemaType.AVRO, "s", "hive", "d", *POLICY))
    schemas.add_version(version(None))
    assert schemas.get_latest_version(NAME).version == 0
    assert schemas.get_version(SchemaVersionDescriptor(NAME, None)) == schemas.get_latest_version(NAME)


def test_serdes(schemas: SchemaRegistry) -> None:
    serde = SerDeInfo("x", "lib", {"k": "v"}, None, None, None, SerdeType.HIVE)
    schemas.add_serde(serde)
    assert schemas.get_serde("x") == serde
    with pytest.raises(AlreadyExistsException, match="Serde with name x already exists"):
        schemas.add_serde(serde)
    with pytest.raises(NoSuchObjectException, match="No SerDe named y"):
        schemas.get_serde("y")


def test_a_serde_without_a_type_is_stored_and_answered_as_by_hive(schemas: SchemaRegistry, world: World) -> None:
    """With 0, like those of tables; 0 is not a type of the protocol, but was sent to clients."""
    schemas.add_serde(SerDeInfo("x", "lib"))
    with world.database.loading() as connection:
        assert connection.execute(select(SERDES.c.SERDE_TYPE)).scalars().all() == [0]
    assert schemas.get_serde("x") == SerDeInfo("x", "lib", {})
