"""Tables, views, materialized views, fields and schemas."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from hms_cache.cache.encoded_tables import EncodedTables
from hms_cache.clock import stored_s
from hms_cache.metadata.names import name_pattern
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.server.calls import Call, HandlerTable, audit_about, consistent_snapshot
from hms_cache.server.handlers.names import (
    database_name,
    optional_database_name,
    requested_table,
    table_name,
    version,
    write_id,
    writer,
)
from hms_cache.server.handlers.projections import project_tables
from hms_cache.store.contract.environment import ExpectedParameter, Writer, environment_options
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.store.tables.transactional import INSERT_ONLY
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlterTableResponse,
    AsyncOperationResp,
    CreationMetadata,
    EnvironmentContext,
    ExtendedTableInfo,
    FieldSchema,
    GetFieldsResponse,
    GetSchemaResponse,
    GetTableResult,
    GetTablesExtRequestFields,
    GetTablesResult,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    SQLAllTableConstraints,
    Table,
    TableMeta,
    TruncateTableResponse,
    UnknownDBException,
    UnknownTableException,
)

handlers = HandlerTable()

TABLE_TYPES = ("MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "MATERIALIZED_VIEW")
"""What `get_tables_by_type` may ask for (Hive's TableType)."""

INSERT_ONLY_TABLES = 2
"""ClientCapability that a caller must have to see a table with transactional_properties=insert_only (Hive 3 and
later)."""


@handlers.read("get_table", audit=lambda a: f"get_table : db={a.dbname} tbl={a.tbl_name}")
def get_table(call: Call, arguments: methods.get_table_args) -> Table:
    """Clients that send this cannot declare what they support, so insert-only tables are not shown to them."""
    table = call.stores.reads.tables.get_table(table_name(arguments.dbname, arguments.tbl_name))
    _check_capabilities(call, table, None)
    return table


@handlers.read("get_table_req", audit=lambda a: f"get_table : db={a.req.dbName} tbl={a.req.tblName}")
def get_table_req(call: Call, arguments: methods.get_table_req_args) -> GetTableResult:
    request = arguments.req
    engine = (request.engine or "hive") if request.getColumnStats else None
    table = call.stores.reads.tables.get_table(
        requested_table(request), version=version(request), statistics_engine=engine
    )
    _check_capabilities(call, table, request.capabilities)
    seen = call.stores.auxiliary.translation.table(table, request.processorCapabilities)
    return GetTableResult(table=seen, isStatsCompliant=table.isStatsCompliant)


def _check_capabilities(call: Call, table: Table, capabilities: Any) -> None:
    properties = (table.parameters or {}).get("transactional_properties")
    if properties is None or properties.lower() != INSERT_ONLY:
        return
    if not call.stores.auxiliary.settings.client_capability_check:
        return
    values = (capabilities.values if capabilities is not None else None) or []
    if INSERT_ONLY_TABLES not in values:
        raise MetaException(
            f"Your client does not appear to support insert-only tables. To skip capability checks, please set "
            f"metastore.client.capability.check to false. This setting can be set globally, or on the client for the "
            f"current metastore session. Table {table.dbName}.{table.tableName}"
        )


def _check_capabilities_of_all(call: Call, tables: list[Table], capabilities: Any) -> None:
    for table in tables.frozen if isinstance(tables, EncodedTables) and tables.is_encoded else tables:
        _check_capabilities(call, table, capabilities)


@handlers.read("get_table_objects_by_name")
def get_table_objects_by_name(call: Call, arguments: methods.get_table_objects_by_name_args) -> list[Table]:
    name = database_name(arguments.dbname)
    tables = call.only_readable(call.stores.reads.tables.get_tables(name, arguments.tbl_names or []))
    _check_capabilities_of_all(call, tables, None)
    return tables


@handlers.read("get_table_objects_by_name_req")
@consistent_snapshot
def get_table_objects_by_name_req(call: Call, arguments: methods.get_table_objects_by_name_req_args) -> GetTablesResult:
    request = arguments.req
    if not request.dbName:
        raise UnknownDBException("DB name is null or empty")
    name = database_name(request.dbName, request.catName)
    names = request.tblNames
    if names is None:
        if request.tablesPattern is None:
            raise InvalidOperationException(f"{request.dbName} cannot find null tables")
        tables = _matching_tables(call, *name, request.tablesPattern)
    else:
        if request.tablesPattern is not None:
            matching = name_pattern(request.tablesPattern)
            names = [one for one in names if matching.matches(one)]
        tables = call.stores.reads.tables.get_tables(name, names)
    tables = call.only_readable(tables)
    if not tables and names is None and _is_pattern(name.database):
        raise UnknownDBException(f"Could not find database {name.catalog}.{name.database}")
    tables = project_tables(tables, request.projectionSpec)
    # Hive checks its answer: if no parameters are requested, no capability is needed.
    _check_capabilities_of_all(call, tables, request.capabilities)
    return GetTablesResult(tables=tables)


def _matching_tables(call: Call, catalog: str, database: str, pattern: str) -> list[Table]:
    """The database's tables; if its name contains a `*`, those of all databases that match.

    Only this method takes a pattern there: Hive 4's client uses it to request names of tables.
    """
    if not _is_pattern(database):
        return call.stores.reads.tables.get_tables(
            DatabaseName(catalog, database),
            call.stores.reads.tables.get_table_names(DatabaseName(catalog, database), pattern),
        )
    names: dict[str, list[str]] = {}
    for found in call.stores.reads.tables.get_table_meta(catalog, database, pattern):
        names.setdefault(found.dbName, []).append(found.tableName)
    return [
        table
        for name, tables in names.items()
        for table in call.stores.reads.tables.get_tables(DatabaseName(catalog, name), tables)
    ]


def _is_pattern(database: str) -> bool:
    return "*" in database and "|" not in database


@handlers.read("get_tables", about=lambda a: f"db={a.db_name} pat={a.pattern}")
def get_tables(call: Call, arguments: methods.get_tables_args) -> list[str]:
    return call.stores.reads.tables.get_table_names(database_name(arguments.db_name), arguments.pattern)


@handlers.read("get_all_tables", about=lambda a: f"db={a.db_name}")
def get_all_tables(call: Call, arguments: methods.get_all_tables_args) -> list[str]:
    return call.stores.reads.tables.get_table_names(database_name(arguments.db_name))


@handlers.read("get_tables_by_type", about=lambda a: f"db={a.db_name} pat={a.pattern},type={a.tableType}")
def get_tables_by_type(call: Call, arguments: methods.get_tables_by_type_args) -> list[str]:
    if arguments.tableType not in TABLE_TYPES:
        raise MetaException(f"There is no table type {arguments.tableType}: {', '.join(TABLE_TYPES)}")
    return call.stores.reads.tables.get_table_names(
        database_name(arguments.db_name), arguments.pattern, arguments.tableType
    )


@handlers.read("get_table_meta")
def get_table_meta(call: Call, arguments: methods.get_table_meta_args) -> list[TableMeta]:
    catalog, databases = optional_database_name(arguments.db_patterns)
    return call.stores.reads.tables.get_table_meta(
        catalog, databases, arguments.tbl_patterns, arguments.tbl_types or ()
    )


@handlers.read("get_table_names_by_filter")
def get_table_names_by_filter(call: Call, arguments: methods.get_table_names_by_filter_args) -> list[str]:
    catalog, database = optional_database_name(arguments.dbname)
    if not catalog or not database:
        raise UnknownDBException("DB name is null or empty")
    if arguments.filter is None:
        raise InvalidOperationException(f"{arguments.dbname} cannot apply null filter")
    limit = -1 if arguments.max_tables is None else arguments.max_tables
    name = database_name(database, catalog)
    # Names that are not shown do not count.
    of_store = limit if call.readable_names is None else -1
    try:
        names = call.stores.reads.tables.get_table_names_by_filter(name, arguments.filter, of_store)
    except UnknownDBException:
        return []
    if call.readable_names is not None:
        names = call.readable_names(name, names)
    return names if limit < 0 else names[:limit]


@handlers.read("get_tables_ext")
@consistent_snapshot
def get_tables_ext(call: Call, arguments: methods.get_tables_ext_args) -> list[ExtendedTableInfo]:
    request = arguments.req
    name = database_name(request.database, request.catalog)
    names = call.stores.reads.tables.get_table_names(name, request.tableNamePattern)
    if call.readable_names is not None:
        names = call.readable_names(name, names)
    if request.limit and request.limit > 0:
        names = names[: request.limit]
    translation = call.stores.auxiliary.translation
    if not translation.reports_access:
        return [ExtendedTableInfo(tblName=table) for table in names]
    return [
        _extended(translation.table(table, request.processorCapabilities), request.requestedFields)
        for table in call.stores.reads.tables.get_tables(name, names)
    ]


def _extended(table: Table, mask: int) -> ExtendedTableInfo:
    """What a client may do with the table, and what the table requires; each only if its bit is set in the mask."""
    answer = ExtendedTableInfo(tblName=table.tableName)
    if mask & GetTablesExtRequestFields.ACCESS_TYPE:
        answer.accessType = table.accessType
    if mask & GetTablesExtRequestFields.PROCESSOR_CAPABILITIES:
        answer.requiredReadCapabilities = table.requiredReadCapabilities
        answer.requiredWriteCapabilities = table.requiredWriteCapabilities
    return answer


@handlers.read("get_materialized_views_for_rewriting")
def get_materialized_views_for_rewriting(
    call: Call, arguments: methods.get_materialized_views_for_rewriting_args
) -> list[str]:
    names = call.stores.reads.tables.get_materialized_view_names(*database_name(arguments.db_name))
    return [table for _, table in names]


@handlers.read("get_all_materialized_view_objects_for_rewriting")
@consistent_snapshot
def get_all_materialized_view_objects_for_rewriting(
    call: Call, arguments: methods.get_all_materialized_view_objects_for_rewriting_args
) -> list[Table]:
    by_database: dict[str, list[str]] = {}
    for database, table in call.stores.reads.tables.get_materialized_view_names("hive"):
        by_database.setdefault(database, []).append(table)
    return [
        table
        for database, names in by_database.items()
        for table in call.stores.reads.tables.get_tables(DatabaseName("hive", database), names)
    ]


# Fields and schemas: the table's columns, and those with the partition keys


def _fields(
    call: Call, database: str, table: str, catalog: str | None, *, keys: bool, version: ReadVersion = ANY_VERSION
) -> list[FieldSchema]:
    # Hive takes `db.table.column` here for complex types of old DDL: the part before the dot is the table.
    name = table_name(database, table if table is None else table.split(".")[0], catalog)
    try:
        found = call.stores.reads.tables.get_table(name, version=version)
    except NoSuchObjectException as error:
        raise UnknownTableException(error.message) from error
    columns, is_of_file = call.stores.auxiliary.storage_schemas.fields_of(found)
    if is_of_file:
        call.keep_no_answer()
    return columns + list(found.partitionKeys or []) if keys else columns


@handlers.read("get_fields", "get_fields_with_environment_context")
def get_fields(
    call: Call, arguments: methods.get_fields_args | methods.get_fields_with_environment_context_args
) -> list[FieldSchema]:
    return _fields(call, arguments.db_name, arguments.table_name, None, keys=False)


@handlers.read("get_fields_req")
def get_fields_req(call: Call, arguments: methods.get_fields_req_args) -> GetFieldsResponse:
    request = arguments.req
    fields = _fields(call, request.dbName, request.tblName, request.catName, keys=False, version=version(request))
    return GetFieldsResponse(fields=fields)


@handlers.read("get_schema", "get_schema_with_environment_context")
def get_schema(
    call: Call, arguments: methods.get_schema_args | methods.get_schema_with_environment_context_args
) -> list[FieldSchema]:
    return _fields(call, arguments.db_name, arguments.table_name, None, keys=True)


@handlers.read("get_schema_req")
def get_schema_req(call: Call, arguments: methods.get_schema_req_args) -> GetSchemaResponse:
    request = arguments.req
    fields = _fields(call, request.dbName, request.tblName, request.catName, keys=True, version=version(request))
    return GetSchemaResponse(fields=fields)


# Writes


def _create(
    call: Call,
    table: Table,
    environment_context: EnvironmentContext | None = None,
    constraints: SQLAllTableConstraints | None = None,
    capabilities: list[str] | None = None,
) -> None:
    # The store gets the names as they were sent, for its error texts.
    table.catName, table.dbName = database_name(table.dbName, table.catName).as_sent
    table = call.stores.auxiliary.translation.table_to_create(
        table, capabilities, call.stores.reads.databases.get_database
    )
    if not table.createTime:
        table.createTime = stored_s(time.time())
    if table.owner is None and call.session.principal is not None:
        table.owner = call.session.user  # Hive's server leaves it to the client; nobody's table is for administrators
    if table.creationMetadata is not None:
        _set_time(table.creationMetadata)
    call.stores.writes.tables.create_table(
        table, options=environment_options(environment_context), constraints=constraints
    )


def _set_time(metadata: CreationMetadata) -> None:
    """A view's data are as of now, unless the client gives another time."""
    if not metadata.materializationTime:
        metadata.materializationTime = int(time.time() * 1000)


@handlers.write("create_table", about=lambda a: a.tbl)
def create_table(call: Call, arguments: methods.create_table_args) -> None:
    _create(call, arguments.tbl)


@handlers.write("create_table_with_environment_context", about=lambda a: a.tbl)
def create_table_with_environment_context(
    call: Call, arguments: methods.create_table_with_environment_context_args
) -> None:
    _create(call, arguments.tbl, arguments.environment_context)


_KINDS_OF_CONSTRAINTS = (
    *("primaryKeys", "foreignKeys", "uniqueConstraints"),
    *("notNullConstraints", "defaultConstraints", "checkConstraints"),
)


def _constraints(source: Any) -> SQLAllTableConstraints:
    return SQLAllTableConstraints(**{kind: getattr(source, kind) for kind in _KINDS_OF_CONSTRAINTS})


@handlers.write("create_table_with_constraints", audit=audit_about("create_table", lambda a: a.tbl))
def create_table_with_constraints(call: Call, arguments: methods.create_table_with_constraints_args) -> None:
    _create(call, arguments.tbl, None, _constraints(arguments))


@handlers.write("create_table_req", about=lambda a: a.request.table)
def create_table_req(call: Call, arguments: methods.create_table_req_args) -> None:
    request = arguments.request
    _create(call, request.table, request.envContext, _constraints(request), request.processorCapabilities)


@handlers.read("translate_table_dryrun", about=lambda a: a.request.table)
def translate_table_dryrun(call: Call, arguments: methods.translate_table_dryrun_args) -> Table:
    """The table that `create_table_req` would create; nothing is created. Without translation, it is the same table."""
    request = arguments.request
    table: Table = request.table
    table.catName, table.dbName = database_name(table.dbName, table.catName)
    translation = call.stores.auxiliary.translation
    return translation.table_to_create(table, request.processorCapabilities, call.stores.reads.databases.get_database)


def _alter(
    call: Call,
    database: str,
    name: str,
    table: Table,
    environment_context: EnvironmentContext | None,
    *,
    catalog: str | None = None,
    cascade: bool = False,
    expected_key: str | None = None,
    expected_value: str | None = None,
    valid_write_ids: str | None = None,
) -> None:
    """The writer's id is in the table: Hive's server ignores the one in a request (`alter_table_core`).

    Key and value of an expected parameter may each be in the request, which has precedence, or in the environment.
    """
    old = table_name(database, name, catalog)
    table.catName, table.dbName = database_name(table.dbName, table.catName or old.as_sent.catalog).as_sent
    call.stores.auxiliary.translation.check_alteration(
        lambda: call.stores.reads.tables.get_table(old), table, call.stores.reads.databases.get_database
    )
    options = environment_options(environment_context)
    key = options.expected_key if expected_key is None else expected_key
    value = options.expected_value if expected_value is None else expected_value
    expected = None if key is None or value is None else ExpectedParameter(key, value)
    call.stores.writes.tables.alter_table(
        old,
        table,
        writer=Writer(write_id(table.writeId), valid_write_ids, replace(options, cascades=cascade or options.cascades)),
        expected_parameter=expected,
    )


def _renaming(arguments: Any) -> str:
    """The text of an audit line for a table that may get another name."""
    return f"db={arguments.dbname} tbl={arguments.tbl_name} newtbl={arguments.new_tbl.tableName}"


@handlers.write("alter_table", about=_renaming)
def alter_table(call: Call, arguments: methods.alter_table_args) -> None:
    _alter(call, arguments.dbname, arguments.tbl_name, arguments.new_tbl, None)


@handlers.write("alter_table_with_environment_context", about=_renaming)
def alter_table_with_environment_context(
    call: Call, arguments: methods.alter_table_with_environment_context_args
) -> None:
    _alter(call, arguments.dbname, arguments.tbl_name, arguments.new_tbl, arguments.environment_context)


@handlers.write("alter_table_with_cascade", audit=lambda a: f"alter_table: db={a.dbname} tbl={a.tbl_name}")
def alter_table_with_cascade(call: Call, arguments: methods.alter_table_with_cascade_args) -> None:
    _alter(call, arguments.dbname, arguments.tbl_name, arguments.new_tbl, None, cascade=bool(arguments.cascade))


@handlers.write("alter_table_req", about=lambda a: f"db={a.req.dbName} tbl={a.req.tableName}")
def alter_table_req(call: Call, arguments: methods.alter_table_req_args) -> AlterTableResponse:
    request = arguments.req
    _alter(
        call,
        request.dbName,
        request.tableName,
        request.table,
        request.environmentContext,
        catalog=request.catName,
        expected_key=request.expectedParameterKey,
        expected_value=request.expectedParameterValue,
        valid_write_ids=request.validWriteIdList or None,
    )
    return AlterTableResponse()


@handlers.write("drop_table", audit=lambda a: f"drop_table : db={a.dbname} tbl={a.name}")
def drop_table(call: Call, arguments: methods.drop_table_args) -> None:
    call.stores.writes.tables.drop_table(
        table_name(arguments.dbname, arguments.name), delete_data=bool(arguments.deleteData)
    )


@handlers.write("drop_table_with_environment_context", audit=lambda a: f"drop_table : db={a.dbname} tbl={a.name}")
def drop_table_with_environment_context(
    call: Call, arguments: methods.drop_table_with_environment_context_args
) -> None:
    call.stores.writes.tables.drop_table(
        table_name(arguments.dbname, arguments.name),
        delete_data=bool(arguments.deleteData),
        options=environment_options(arguments.environment_context),
    )


@handlers.write(
    "drop_table_req", audit=lambda a: f"drop_table : db={a.dropTableReq.dbName} tbl={a.dropTableReq.tableName}"
)
def drop_table_req(call: Call, arguments: methods.drop_table_req_args) -> AsyncOperationResp:
    request = arguments.dropTableReq
    call.stores.writes.tables.drop_table(
        requested_table(request), delete_data=bool(request.deleteData), options=environment_options(request.envContext)
    )
    return AsyncOperationResp(id="", finished=True)


@handlers.write("truncate_table", audit=lambda a: f"truncate_table : db={a.dbName} tbl={a.tableName}")
def truncate_table(call: Call, arguments: methods.truncate_table_args) -> None:
    call.stores.writes.tables.truncate_table(table_name(arguments.dbName, arguments.tableName), arguments.partNames)


@handlers.write("truncate_table_req", audit=lambda a: f"truncate_table : db={a.req.dbName} tbl={a.req.tableName}")
def truncate_table_req(call: Call, arguments: methods.truncate_table_req_args) -> TruncateTableResponse:
    request = arguments.req
    call.stores.writes.tables.truncate_table(
        requested_table(request),
        request.partNames,
        writer=writer(request, environment_options(request.environmentContext)),
    )
    return TruncateTableResponse()


@handlers.write("update_creation_metadata")
def update_creation_metadata(call: Call, arguments: methods.update_creation_metadata_args) -> None:
    name = table_name(arguments.dbname, arguments.tbl_name, arguments.catName)
    metadata = arguments.creation_metadata
    _set_time(metadata)
    call.stores.writes.tables.update_creation_metadata(name, metadata)


@handlers.write(
    "update_table_params",
    about=lambda a: ", ".join(f"{u.db_name}.{u.table_name}" for u in a.updates or ()),
)
def update_table_params(call: Call, arguments: methods.update_table_params_args) -> None:
    for update in arguments.updates or ():
        name = table_name(update.db_name, update.table_name, update.cat_name)
        update.cat_name, update.db_name, update.table_name = name
    call.stores.writes.tables.update_table_parameters(arguments.updates or [])
