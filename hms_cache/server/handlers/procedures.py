"""Stored procedures and packages of HPL/SQL."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException, Package, StoredProcedure

handlers = HandlerTable()


@handlers.write("create_stored_procedure", about=lambda a: f"{a.proc.dbName}.{a.proc.name}")
def create_stored_procedure(call: Call, arguments: methods.create_stored_procedure_args) -> None:
    call.stores.auxiliary.procedures.save_procedure(arguments.proc)


@handlers.read("get_stored_procedure")
def get_stored_procedure(call: Call, arguments: methods.get_stored_procedure_args) -> StoredProcedure:
    request = arguments.request
    return call.stores.auxiliary.procedures.get_procedure(request.catName, request.dbName, request.procName)


@handlers.write("drop_stored_procedure")
def drop_stored_procedure(call: Call, arguments: methods.drop_stored_procedure_args) -> None:
    request = arguments.request
    call.stores.auxiliary.procedures.drop_procedure(request.catName, request.dbName, request.procName)


@handlers.read("get_all_stored_procedures")
def get_all_stored_procedures(call: Call, arguments: methods.get_all_stored_procedures_args) -> list[str]:
    return call.stores.auxiliary.procedures.get_procedure_names(arguments.request.catName, arguments.request.dbName)


@handlers.write("add_package")
def add_package(call: Call, arguments: methods.add_package_args) -> None:
    try:
        call.stores.auxiliary.procedures.save_package(arguments.request)
    except NoSuchObjectException as error:
        # The method declares MetaException only.
        raise MetaException(error.message) from error


@handlers.read("find_package")
def find_package(call: Call, arguments: methods.find_package_args) -> Package:
    request = arguments.request
    return call.stores.auxiliary.procedures.get_package(request.catName, request.dbName, request.packageName)


@handlers.write("drop_package")
def drop_package(call: Call, arguments: methods.drop_package_args) -> None:
    request = arguments.request
    call.stores.auxiliary.procedures.drop_package(request.catName, request.dbName, request.packageName)


@handlers.read("get_all_packages")
def get_all_packages(call: Call, arguments: methods.get_all_packages_args) -> list[str]:
    return call.stores.auxiliary.procedures.get_package_names(arguments.request.catName, arguments.request.dbName)
