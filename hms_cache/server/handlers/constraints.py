"""Table constraints. The seven reads share one store read; Hive's clients ask them one by one."""

from __future__ import annotations

from thrift.Thrift import TApplicationException

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.server.handlers.names import optional_database_name, requested_table, version
from hms_cache.thrift_gen.base import TBase
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllTableConstraintsResponse,
    CheckConstraintsResponse,
    DefaultConstraintsResponse,
    ForeignKeysResponse,
    InvalidObjectException,
    NoSuchObjectException,
    NotNullConstraintsResponse,
    PrimaryKeysResponse,
    SQLAllTableConstraints,
    UniqueConstraintsResponse,
)

handlers = HandlerTable()


def _constraints(call: Call, request: TBase) -> SQLAllTableConstraints:
    """A missing table has no constraints (Hive 4.0.1, and the tests of its client expect this)."""
    try:
        return call.stores.reads.constraints.get_table_constraints(requested_table(request), version=version(request))
    except NoSuchObjectException:
        return SQLAllTableConstraints([], [], [], [], [], [])


@handlers.read("get_primary_keys")
def get_primary_keys(call: Call, arguments: methods.get_primary_keys_args) -> PrimaryKeysResponse:
    return PrimaryKeysResponse(primaryKeys=_constraints(call, arguments.request).primaryKeys)


@handlers.read("get_unique_constraints")
def get_unique_constraints(call: Call, arguments: methods.get_unique_constraints_args) -> UniqueConstraintsResponse:
    return UniqueConstraintsResponse(uniqueConstraints=_constraints(call, arguments.request).uniqueConstraints)


@handlers.read("get_not_null_constraints")
def get_not_null_constraints(
    call: Call, arguments: methods.get_not_null_constraints_args
) -> NotNullConstraintsResponse:
    return NotNullConstraintsResponse(notNullConstraints=_constraints(call, arguments.request).notNullConstraints)


@handlers.read("get_default_constraints")
def get_default_constraints(call: Call, arguments: methods.get_default_constraints_args) -> DefaultConstraintsResponse:
    return DefaultConstraintsResponse(defaultConstraints=_constraints(call, arguments.request).defaultConstraints)


@handlers.read("get_check_constraints")
def get_check_constraints(call: Call, arguments: methods.get_check_constraints_args) -> CheckConstraintsResponse:
    return CheckConstraintsResponse(checkConstraints=_constraints(call, arguments.request).checkConstraints)


@handlers.read("get_all_table_constraints")
def get_all_table_constraints(
    call: Call, arguments: methods.get_all_table_constraints_args
) -> AllTableConstraintsResponse:
    return AllTableConstraintsResponse(allTableConstraints=_constraints(call, arguments.request))


@handlers.read("get_foreign_keys")
def get_foreign_keys(call: Call, arguments: methods.get_foreign_keys_args) -> ForeignKeysResponse:
    request = arguments.request
    catalog, parent = optional_database_name(request.parent_db_name, request.catName)
    _, child = optional_database_name(request.foreign_db_name, catalog)
    try:
        keys = call.stores.reads.constraints.get_foreign_keys(
            catalog,
            (parent or None, request.parent_tbl_name or None),
            (child or None, request.foreign_tbl_name or None),
            version=version(request),
        )
    except NoSuchObjectException:
        keys = []
    return ForeignKeysResponse(foreignKeys=keys)


def _add(call: Call, constraints: SQLAllTableConstraints) -> None:
    try:
        call.stores.writes.constraints.add_constraints(constraints)
    except InvalidObjectException as error:
        raise _not_declared(call, error) from error


def _not_declared(call: Call, error: InvalidObjectException | NoSuchObjectException) -> TApplicationException:
    """Hive raises InvalidObjectException here, which none of these methods declares: clients see a fault."""
    text = f"Internal error processing {call.method}: {error.message}"
    return TApplicationException(TApplicationException.INTERNAL_ERROR, text)


@handlers.write("add_primary_key")
def add_primary_key(call: Call, arguments: methods.add_primary_key_args) -> None:
    _add(call, SQLAllTableConstraints(primaryKeys=arguments.req.primaryKeyCols))


@handlers.write("add_foreign_key")
def add_foreign_key(call: Call, arguments: methods.add_foreign_key_args) -> None:
    _add(call, SQLAllTableConstraints(foreignKeys=arguments.req.foreignKeyCols))


@handlers.write("add_unique_constraint")
def add_unique_constraint(call: Call, arguments: methods.add_unique_constraint_args) -> None:
    _add(call, SQLAllTableConstraints(uniqueConstraints=arguments.req.uniqueConstraintCols))


@handlers.write("add_not_null_constraint")
def add_not_null_constraint(call: Call, arguments: methods.add_not_null_constraint_args) -> None:
    _add(call, SQLAllTableConstraints(notNullConstraints=arguments.req.notNullConstraintCols))


@handlers.write("add_default_constraint")
def add_default_constraint(call: Call, arguments: methods.add_default_constraint_args) -> None:
    _add(call, SQLAllTableConstraints(defaultConstraints=arguments.req.defaultConstraintCols))


@handlers.write("add_check_constraint")
def add_check_constraint(call: Call, arguments: methods.add_check_constraint_args) -> None:
    _add(call, SQLAllTableConstraints(checkConstraints=arguments.req.checkConstraintCols))


@handlers.write("drop_constraint")
def drop_constraint(call: Call, arguments: methods.drop_constraint_args) -> None:
    try:
        call.stores.writes.constraints.drop_constraint(requested_table(arguments.req), arguments.req.constraintname)
    except NoSuchObjectException as error:
        raise _not_declared(call, error) from error
