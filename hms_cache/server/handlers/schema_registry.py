"""Schemas, their versions, and serdes by name."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import FindSchemasByColsResp, ISchema, SchemaVersion, SerDeInfo

handlers = HandlerTable()


@handlers.write("create_ischema", about=lambda a: a.schema.name)
def create_ischema(call: Call, arguments: methods.create_ischema_args) -> None:
    call.stores.auxiliary.schemas.create_schema(arguments.schema)


@handlers.write("alter_ischema", about=lambda a: a.rqst.name.schemaName)
def alter_ischema(call: Call, arguments: methods.alter_ischema_args) -> None:
    call.stores.auxiliary.schemas.alter_schema(arguments.rqst.name, arguments.rqst.newSchema)


@handlers.read("get_ischema")
def get_ischema(call: Call, arguments: methods.get_ischema_args) -> ISchema:
    return call.stores.auxiliary.schemas.get_schema(arguments.name)


@handlers.write("drop_ischema", about=lambda a: a.name.schemaName)
def drop_ischema(call: Call, arguments: methods.drop_ischema_args) -> None:
    call.stores.auxiliary.schemas.drop_schema(arguments.name)


@handlers.write("add_schema_version", about=lambda a: a.schemaVersion.version)
def add_schema_version(call: Call, arguments: methods.add_schema_version_args) -> None:
    call.stores.auxiliary.schemas.add_version(arguments.schemaVersion)


@handlers.read("get_schema_version")
def get_schema_version(call: Call, arguments: methods.get_schema_version_args) -> SchemaVersion:
    return call.stores.auxiliary.schemas.get_version(arguments.schemaVersion)


@handlers.read("get_schema_latest_version")
def get_schema_latest_version(call: Call, arguments: methods.get_schema_latest_version_args) -> SchemaVersion:
    return call.stores.auxiliary.schemas.get_latest_version(arguments.schemaName)


@handlers.read("get_schema_all_versions")
def get_schema_all_versions(call: Call, arguments: methods.get_schema_all_versions_args) -> list[SchemaVersion]:
    return call.stores.auxiliary.schemas.get_all_versions(arguments.schemaName)


@handlers.write("drop_schema_version", about=lambda a: a.schemaVersion.version)
def drop_schema_version(call: Call, arguments: methods.drop_schema_version_args) -> None:
    call.stores.auxiliary.schemas.drop_version(arguments.schemaVersion)


@handlers.read("get_schemas_by_cols")
def get_schemas_by_cols(call: Call, arguments: methods.get_schemas_by_cols_args) -> FindSchemasByColsResp:
    request = arguments.rqst
    schemas = call.stores.auxiliary.schemas
    return FindSchemasByColsResp(schemas.find_versions(request.colName, request.colNamespace, request.type))


@handlers.write("map_schema_version_to_serde", about=lambda a: a.rqst.serdeName)
def map_schema_version_to_serde(call: Call, arguments: methods.map_schema_version_to_serde_args) -> None:
    call.stores.auxiliary.schemas.map_version_to_serde(arguments.rqst.schemaVersion, arguments.rqst.serdeName)


@handlers.write("set_schema_version_state", about=lambda a: a.rqst.state)
def set_schema_version_state(call: Call, arguments: methods.set_schema_version_state_args) -> None:
    call.stores.auxiliary.schemas.set_version_state(arguments.rqst.schemaVersion, arguments.rqst.state)


@handlers.write("add_serde", about=lambda a: a.serde.name)
def add_serde(call: Call, arguments: methods.add_serde_args) -> None:
    call.stores.auxiliary.schemas.add_serde(arguments.serde)


@handlers.read("get_serde")
def get_serde(call: Call, arguments: methods.get_serde_args) -> SerDeInfo:
    return call.stores.auxiliary.schemas.get_serde(arguments.rqst.serdeName)
