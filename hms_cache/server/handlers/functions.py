"""Permanent functions."""

from __future__ import annotations

from hms_cache.metadata.object_names import FunctionName, function_name
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.databases import fill_creation_fields
from hms_cache.server.handlers.names import database_name
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Function,
    GetAllFunctionsResponse,
    GetFunctionsResponse,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
)

handlers = HandlerTable()


@handlers.read("get_function", about=lambda a: f"{a.dbName}.{a.funcName}")
def get_function(call: Call, arguments: methods.get_function_args) -> Function:
    name = _named(arguments.dbName, arguments.funcName)
    try:
        return call.stores.reads.functions.get_function(name)
    except NoSuchObjectException as error:
        # Spark recognizes a missing function by the text, which contains the database as it was sent, after the
        # catalog, as Hive's does (`HMSHandler.get_function`, 4.0.1).
        text = f"Function {arguments.dbName}.{arguments.funcName} does not exist"
        raise NoSuchObjectException(text) from error


def _named(database: str | None, function: str | None) -> FunctionName:
    if function is None:
        raise MetaException("Database and function name cannot be null.")
    return function_name(*database_name(database).as_sent, function)


@handlers.read("get_functions", about=lambda a: f"db={a.dbName} pat={a.pattern}")
def get_functions(call: Call, arguments: methods.get_functions_args) -> list[str]:
    return call.stores.reads.functions.get_function_names(database_name(arguments.dbName), arguments.pattern)


@handlers.read("get_functions_req")
def get_functions_req(call: Call, arguments: methods.get_functions_req_args) -> GetFunctionsResponse:
    request = arguments.request
    database = database_name(request.dbName, request.catalogName)
    if request.returnNames is None or request.returnNames:
        names = call.stores.reads.functions.get_function_names(database, request.pattern)
        return GetFunctionsResponse(function_names=names)
    return GetFunctionsResponse(functions=call.stores.reads.functions.get_functions(*database, request.pattern))


@handlers.read("get_all_functions")
def get_all_functions(call: Call, arguments: methods.get_all_functions_args) -> GetAllFunctionsResponse:
    return GetAllFunctionsResponse(functions=call.stores.reads.functions.get_functions("hive"))


@handlers.write("create_function", about=lambda a: f"{a.func.dbName}.{a.func.functionName}")
def create_function(call: Call, arguments: methods.create_function_args) -> None:
    function: Function = arguments.func
    if function.dbName is not None:
        # The store gets the names as they were sent, for its error texts.
        function.catName, function.dbName = database_name(function.dbName, function.catName).as_sent
    fill_creation_fields(call, function)
    call.stores.writes.functions.create_function(function)


@handlers.write("alter_function", about=lambda a: f"{a.dbName}.{a.funcName}")
def alter_function(call: Call, arguments: methods.alter_function_args) -> None:
    function: Function = arguments.newFunc
    if function is None:
        raise MetaException("Function cannot be null.")
    if function.dbName is None:
        raise MetaException("Database name in Function cannot be null.")
    name = _named(arguments.dbName, arguments.funcName)
    if database_name(function.dbName, function.catName or name.catalog).catalog != name.catalog:
        raise InvalidObjectException("You cannot move a function between catalogs")
    function.catName, function.dbName = database_name(function.dbName, name.catalog).as_sent
    call.stores.writes.functions.alter_function(name, function)


@handlers.write("drop_function", about=lambda a: f"{a.dbName}.{a.funcName}")
def drop_function(call: Call, arguments: methods.drop_function_args) -> None:
    call.stores.writes.functions.drop_function(_named(arguments.dbName, arguments.funcName))
