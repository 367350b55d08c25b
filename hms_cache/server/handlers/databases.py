"""Catalogs and databases."""

from __future__ import annotations

import time

from hms_cache.clock import stored_s
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import database_name, optional_database_name
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AsyncOperationResp,
    Database,
    Function,
    GetCatalogResponse,
    GetCatalogsResponse,
    GetDatabaseObjectsResponse,
    MetaException,
)

handlers = HandlerTable()


@handlers.read("get_catalog", about=lambda a: a.catName.name)
def get_catalog(call: Call, arguments: methods.get_catalog_args) -> GetCatalogResponse:
    if arguments.catName.name is None:
        raise MetaException("Catalog name cannot be null")
    return GetCatalogResponse(catalog=call.stores.reads.catalogs.get_catalog(arguments.catName.name))


@handlers.read("get_catalogs")
def get_catalogs(call: Call, arguments: methods.get_catalogs_args) -> GetCatalogsResponse:
    return GetCatalogsResponse(names=call.stores.reads.catalogs.get_catalog_names())


@handlers.write("create_catalog")
def create_catalog(call: Call, arguments: methods.create_catalog_args) -> None:
    call.stores.writes.catalogs.create_catalog(arguments.catalog.catalog)


@handlers.write("alter_catalog")
def alter_catalog(call: Call, arguments: methods.alter_catalog_args) -> None:
    call.stores.writes.catalogs.alter_catalog(arguments.rqst.name, arguments.rqst.newCat)


@handlers.write("drop_catalog")
def drop_catalog(call: Call, arguments: methods.drop_catalog_args) -> None:
    request = arguments.catName
    if request.name is None:
        raise MetaException("Catalog name cannot be null")
    call.stores.writes.catalogs.drop_catalog(request.name, if_exists=bool(request.ifExists))


@handlers.read("get_database", about=lambda a: a.name)
def get_database(call: Call, arguments: methods.get_database_args) -> Database:
    found = call.stores.reads.databases.get_database(database_name(arguments.name))
    return call.stores.auxiliary.translation.database(found, None)


@handlers.read("get_database_req", about=lambda a: a.request.name)
def get_database_req(call: Call, arguments: methods.get_database_req_args) -> Database:
    request = arguments.request
    found = call.stores.reads.databases.get_database(database_name(request.name, request.catalogName))
    return call.stores.auxiliary.translation.database(found, request.processorCapabilities)


@handlers.read("get_databases", about=lambda a: a.pattern)
def get_databases(call: Call, arguments: methods.get_databases_args) -> list[str]:
    if arguments.pattern == "":
        return []  # a pattern of no name; absent it stands for all names
    catalog, pattern = optional_database_name(arguments.pattern)
    return call.stores.reads.databases.get_database_names(catalog, pattern)


@handlers.read("get_all_databases")
def get_all_databases(call: Call, arguments: methods.get_all_databases_args) -> list[str]:
    return call.stores.reads.databases.get_database_names("hive")


@handlers.read("get_databases_req")
def get_databases_req(call: Call, arguments: methods.get_databases_req_args) -> GetDatabaseObjectsResponse:
    catalog, pattern = optional_database_name(arguments.request.pattern, arguments.request.catalogName)
    return GetDatabaseObjectsResponse(databases=call.stores.reads.databases.get_databases(catalog, pattern))


@handlers.write("create_database", about=lambda a: a.database)
def create_database(call: Call, arguments: methods.create_database_args) -> None:
    database: Database = arguments.database
    _create(call, database)


@handlers.write("create_database_req")
def create_database_req(call: Call, arguments: methods.create_database_req_args) -> None:
    request = arguments.createDatabaseRequest
    database = Database(
        name=request.databaseName,
        description=request.description,
        locationUri=request.locationUri,
        parameters=request.parameters,
        privileges=request.privileges,
        ownerName=request.ownerName,
        ownerType=request.ownerType,
        catalogName=request.catalogName,
        createTime=request.createTime,
        managedLocationUri=request.managedLocationUri,
        type=request.type if isinstance(request.type, int) else None,
    )
    if request.dataConnectorName is not None:
        database.connector_name = request.dataConnectorName
        database.remote_dbname = request.remote_dbname
    _create(call, database)


def _create(call: Call, database: Database) -> None:
    # The store gets the names as they were sent, for its error texts.
    database.catalogName, database.name = database_name(database.name, database.catalogName).as_sent
    fill_creation_fields(call, database)
    call.stores.writes.databases.create_database(database)


def fill_creation_fields(call: Call, new: Database | Function) -> None:
    """The owner and the time of creation of a new object, if the client gives none."""
    if new.ownerName is None:
        new.ownerName = call.session.user
    if not new.createTime:
        new.createTime = stored_s(time.time())


@handlers.write("alter_database")
def alter_database(call: Call, arguments: methods.alter_database_args) -> None:
    _alter(call, arguments.dbname, arguments.db)


@handlers.write("alter_database_req", about=lambda a: a.alterDbReq.oldDbName)
def alter_database_req(call: Call, arguments: methods.alter_database_req_args) -> None:
    _alter(call, arguments.alterDbReq.oldDbName, arguments.alterDbReq.newDb)


def _alter(call: Call, text: str, database: Database) -> None:
    # The name alone determines the catalog, as in Hive, whose own clients put it there.
    name = database_name(text)
    if database.name is not None:
        database.name = database_name(database.name, name.catalog).database
    call.stores.writes.databases.alter_database(name, database)


@handlers.write("drop_database", about=lambda a: a.name)
def drop_database(call: Call, arguments: methods.drop_database_args) -> None:
    call.stores.writes.databases.drop_database(
        database_name(arguments.name), delete_data=bool(arguments.deleteData), cascade=bool(arguments.cascade)
    )


@handlers.write("drop_database_req", about=lambda a: a.req.name)
def drop_database_req(call: Call, arguments: methods.drop_database_req_args) -> AsyncOperationResp:
    """Hive's newest client expects an answer where 4.0's method is void. The drop is complete when this returns."""
    request = arguments.req
    call.stores.writes.databases.drop_database(
        database_name(request.name, request.catalogName),
        delete_data=bool(request.deleteData),
        cascade=bool(request.cascade),
        if_exists=bool(request.ignoreUnknownDb),
        soft_txn_id=(request.txnId or 0) if request.softDelete else 0,
        keeps_managed_directory=request.deleteManagedDir is False,
    )
    return AsyncOperationResp(id="", finished=True)
