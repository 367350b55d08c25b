"""Permanent functions."""

from __future__ import annotations

import time

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import database_name
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Function,
    GetAllFunctionsResponse,
    GetFunctionsResponse,
    MetaException,
)

handlers = HandlerTable()


@handlers.read("get_function", audit=lambda a: f"get_function: {a.dbName}.{a.funcName}")
def get_function(call: Call, arguments: methods.get_function_args) -> Function:
    return call.stores.raw.get_function(*database_name(arguments.dbName), _required(arguments.funcName))


def _required(name: str | None) -> str:
    if name is None:
        raise MetaException("Database and function name cannot be null.")
    return name


@handlers.read("get_functions", audit=lambda a: f"get_functions: db={a.dbName} pat={a.pattern}")
def get_functions(call: Call, arguments: methods.get_functions_args) -> list[str]:
    return call.stores.raw.get_function_names(*database_name(arguments.dbName), arguments.pattern)


@handlers.read("get_functions_req")
def get_functions_req(call: Call, arguments: methods.get_functions_req_args) -> GetFunctionsResponse:
    request = arguments.request
    catalog, database = database_name(request.dbName, request.catalogName)
    if request.returnNames is None or request.returnNames:
        names = call.stores.raw.get_function_names(catalog, database, request.pattern)
        return GetFunctionsResponse(function_names=names)
    return GetFunctionsResponse(functions=call.stores.raw.get_functions(catalog, database, request.pattern))


@handlers.read("get_all_functions")
def get_all_functions(call: Call, arguments: methods.get_all_functions_args) -> GetAllFunctionsResponse:
    return GetAllFunctionsResponse(functions=call.stores.raw.get_functions("hive"))


@handlers.write("create_function", audit=lambda a: f"create_function: {a.func.dbName}.{a.func.functionName}")
def create_function(call: Call, arguments: methods.create_function_args) -> None:
    function: Function = arguments.func
    function.catName, function.dbName = database_name(function.dbName, function.catName)
    if not function.createTime:
        function.createTime = int(time.time())
    call.stores.raw.create_function(function)


@handlers.write("alter_function", audit=lambda a: f"alter_function: {a.dbName}.{a.funcName}")
def alter_function(call: Call, arguments: methods.alter_function_args) -> None:
    function: Function = arguments.newFunc
    if function is None:
        raise MetaException("Function cannot be null.")
    if function.dbName is None:
        raise MetaException("Database name in Function cannot be null.")
    catalog, database = database_name(arguments.dbName, function.catName)
    function.catName, function.dbName = database_name(function.dbName, catalog)
    call.stores.raw.alter_function(catalog, database, _required(arguments.funcName), function)


@handlers.write("drop_function", audit=lambda a: f"drop_function: {a.dbName}.{a.funcName}")
def drop_function(call: Call, arguments: methods.drop_function_args) -> None:
    call.stores.raw.drop_function(*database_name(arguments.dbName), arguments.funcName)
