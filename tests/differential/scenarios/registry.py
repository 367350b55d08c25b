"""The schema registry: schemas, their versions, serdes by name."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlterISchemaRequest,
    Catalog,
    CreateCatalogRequest,
    FindSchemasByColsRqst,
    GetSerdeRequest,
    ISchema,
    ISchemaName,
    MapSchemaVersionToSerdeRequest,
    SchemaVersion,
    SchemaVersionDescriptor,
    SerDeInfo,
    SerdeType,
    SetSchemaVersionStateRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import columns, database
from tests.differential.reasons import COPIED_SERDE, DATABASE_ERROR, UNNAMED_SERDE

HIVE, AVRO = 1, 2
NONE, BACKWARD, FORWARD = 1, 2, 3
LATEST, ALL = 1, 2


def name(schema: str | None = "s", place: str | None = "d", catalog: str | None = "hive") -> ISchemaName:
    return ISchemaName(catalog, place, schema)


def schema(called: str | None = "s", **fields: Any) -> ISchema:
    given = {
        "schemaType": HIVE,
        "catName": "hive",
        "dbName": "d",
        "compatibility": BACKWARD,
        "validationLevel": ALL,
        "canEvolve": True,
    }
    return ISchema(**{**given, "name": called, **fields})


def version(number: int | None, of: ISchemaName | None = None, **fields: Any) -> SchemaVersion:
    given = {"version": number, "createdAt": 100 + (number or 0), "cols": columns("a:int:ns", "b:string")}
    return SchemaVersion(**{**given, "schema": of or name(), **fields})


def serde(called: str | None = "sd", **fields: Any) -> SerDeInfo:
    given = {"serializationLib": "lib", "parameters": {"x": "y"}}
    return SerDeInfo(**{**given, "name": called, **fields})


def at(number: int | None, of: ISchemaName | None = None) -> SchemaVersionDescriptor:
    return SchemaVersionDescriptor(of or name(), number)


def find(column: str | None = None, namespace: str | None = None, kind: str | None = None) -> Call:
    return call("get_schemas_by_cols", FindSchemasByColsRqst(column, namespace, kind), is_ordered=False)


def state(number: int, value: int | None, of: ISchemaName | None = None) -> Call:
    return call("set_schema_version_state", SetSchemaVersionStateRequest(at(number, of), value))


def mapped(number: int, to: str | None, of: ISchemaName | None = None) -> Call:
    return call("map_schema_version_to_serde", MapSchemaVersionToSerdeRequest(at(number, of), to))


NOWHERE = (name("none"), name(place="none"), name(catalog="none"), name(None), name(place=None))

SCHEMAS = Scenario.of(
    "schemas",
    call("create_database", database()),
    call("create_ischema", schema()),
    call("get_ischema", name()),
    call("get_ischema", name("S", "D", "HIVE")),
    call("create_ischema", schema()),
    call("create_ischema", schema("S")),
    call("create_ischema", schema("Mixed", schemaType=AVRO, schemaGroup="Group", description="text", canEvolve=False)),
    call("get_ischema", name("mixed")),
    call("create_ischema", schema(dbName="none")),
    call("create_ischema", schema(catName="none")),
    call("create_ischema", schema("second", catName=None)),
    call("create_ischema", schema("second", compatibility=None)),
    call("create_ischema", schema("third", schemaType=None)),
    call("create_ischema", schema("fourth", validationLevel=None)),
    call("create_ischema", schema(None)),
    call("create_ischema", schema(dbName=None)),
    call("create_ischema", schema("strange name!")),
    call("get_ischema", name("strange name!")),
    [call("get_ischema", one) for one in NOWHERE],
    call("alter_ischema", AlterISchemaRequest(name(), schema(compatibility=FORWARD, validationLevel=LATEST))),
    call("get_ischema", name()),
    call(
        "alter_ischema", AlterISchemaRequest(name(), schema("t", schemaGroup="g", description="new", canEvolve=False))
    ),
    call("get_ischema", name()),
    call("alter_ischema", AlterISchemaRequest(name(), schema(schemaType=AVRO))),
    call("get_ischema", name()),
    [call("alter_ischema", AlterISchemaRequest(one, schema())) for one in NOWHERE],
    call("drop_ischema", name("MIXED")),
    call("drop_ischema", name("mixed")),
    [call("drop_ischema", one) for one in NOWHERE],
    call("drop_database", "d", True, False, differs=DATABASE_ERROR),
    call("drop_ischema", name()),
    call("get_ischema", name()),
)

VERSIONS = Scenario.of(
    "versions",
    call("create_database", database()),
    call("create_ischema", schema()),
    call("create_ischema", schema("other")),
    call("get_schema_latest_version", name()),
    call("get_schema_all_versions", name()),
    call("add_schema_version", version(1)),
    call("add_schema_version", version(1)),
    call("add_schema_version", version(3, state=5, description="d", schemaText="{}", fingerprint="f", name="three")),
    call(
        "add_schema_version", version(2, serDe=serde("inline", description="sd", serdeType=SerdeType.SCHEMA_REGISTRY))
    ),
    call("add_schema_version", version(1, name("other"), cols=columns("a:string:NS", "C:int"))),
    call("add_schema_version", version(9, name("other"), cols=[])),
    call("add_schema_version", version(8, name("other"), createdAt=None)),
    call("add_schema_version", version(None)),
    [call("add_schema_version", version(1, one)) for one in NOWHERE],
    call("get_schema_version", at(1)),
    call("get_schema_version", at(2)),
    call("get_schema_version", at(3, name("S", "D"))),
    call("get_schema_version", at(4)),
    call("get_schema_version", at(9, name("other"))),
    [call("get_schema_version", at(1, one)) for one in NOWHERE],
    call("get_schema_latest_version", name()),
    call("get_schema_all_versions", name(), is_ordered=False),
    [call("get_schema_latest_version", one) for one in NOWHERE],
    [call("get_schema_all_versions", one) for one in NOWHERE],
    find("a"),
    find("A"),
    find("a", "ns"),
    find("a", "NS"),
    find(None, "ns"),
    find("a", None, "int"),
    find("a", None, "INT"),
    find(None, None, "int"),
    find(),
    find("none"),
    find("c"),
    find(""),
    state(1, 2),
    call("get_schema_version", at(1)),
    state(1, 8),
    state(1, 1),
    call("get_schema_version", at(1)),
    state(7, 1),
    state(1, 1, name("none")),
    state(1, None),
    call("add_serde", serde()),
    call("add_serde", serde()),
    call("add_serde", serde("SD", parameters=None)),
    call("add_serde", serde("full", description="d", serializerClass="s", deserializerClass="e", serdeType=1)),
    call("add_serde", serde(""), differs=UNNAMED_SERDE),
    call("get_serde", GetSerdeRequest("sd")),
    call("get_serde", GetSerdeRequest("SD")),
    call("get_serde", GetSerdeRequest("full")),
    call("get_serde", GetSerdeRequest("inline")),
    call("get_serde", GetSerdeRequest("none")),
    mapped(1, "sd"),
    call("get_schema_version", at(1)),
    mapped(2, "full"),
    call("get_schema_version", at(2)),
    mapped(1, "none"),
    mapped(7, "sd"),
    mapped(1, "sd", name("none")),
    call("drop_ischema", name()),
    call("drop_schema_version", at(1)),
    call("drop_schema_version", at(1)),
    call("drop_schema_version", at(1, name("none"))),
    call("get_schema_all_versions", name(), is_ordered=False),
    call("drop_schema_version", at(2)),
    call("drop_schema_version", at(3)),
    call("get_schema_latest_version", name()),
    call("drop_ischema", name()),
    call("get_serde", GetSerdeRequest("sd"), differs=COPIED_SERDE),
    call("get_serde", GetSerdeRequest("inline")),
    call("drop_database", "d", True, True, differs=DATABASE_ERROR),
)

CATALOGS = Scenario.of(
    "schemas in catalogs",
    call("create_catalog", CreateCatalogRequest(Catalog("c", None, "{warehouse}/managed/c"))),
    call("create_database", database(catalogName="c")),
    call("create_ischema", schema(catName="c")),
    call("add_schema_version", version(1, name(catalog="c"))),
    call("get_ischema", name(catalog="C")),
    call("get_schema_latest_version", name(catalog="c")),
    call("get_schema_latest_version", name()),
    find("a"),
    call("drop_schema_version", at(1, name(catalog="c"))),
    call("drop_ischema", name(catalog="c")),
)

SCENARIOS = (SCHEMAS, VERSIONS, CATALOGS)
