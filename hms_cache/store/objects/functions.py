"""Permanent functions. Facts: `HMSHandler.create_function`, `drop_function`, `ObjectStore` (3.1, 4.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.enumerations import known
from hms_cache.metadata.names import (
    is_valid_name,
    matching_names,
    name_pattern,
    normalize_catalog,
    normalize_identifier,
)
from hms_cache.metadata.object_names import DatabaseName, FunctionName, database_name
from hms_cache.metadata.principals import USER, principal_type, principal_type_name
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.functions import FunctionReads, FunctionWrites
from hms_cache.store.engine.bulk_writes import delete_together
from hms_cache.store.engine.context import PartOfStore, StoreContext
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.text_conditions import may_match
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.rows.database_rows import read_database_id
from hms_cache.store.schema import DBS, FUNC_RU, FUNCS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    Function,
    FunctionType,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    ResourceType,
    ResourceUri,
)

_COLUMNS = (
    FUNCS.c.FUNC_ID,
    FUNCS.c.FUNC_NAME,
    FUNCS.c.CLASS_NAME,
    FUNCS.c.OWNER_NAME,
    FUNCS.c.OWNER_TYPE,
    FUNCS.c.CREATE_TIME,
    FUNCS.c.FUNC_TYPE,
    DBS.c.NAME.label("DATABASE_NAME"),
    DBS.c.CTLG_NAME,
    FUNC_RU.c.RESOURCE_TYPE,
    FUNC_RU.c.RESOURCE_URI,
)
_FUNCTIONS = (
    select(*_COLUMNS)
    .select_from(FUNCS.join(DBS, DBS.c.DB_ID == FUNCS.c.DB_ID).outerjoin(FUNC_RU, FUNC_RU.c.FUNC_ID == FUNCS.c.FUNC_ID))
    .where(DBS.c.CTLG_NAME == bindparam("catalog"))
    .order_by(DBS.c.NAME, FUNCS.c.FUNC_NAME, FUNC_RU.c.INTEGER_IDX)
)

_LOCK = (
    select(FUNCS.c.FUNC_ID)
    .where(
        FUNCS.c.FUNC_NAME == bindparam("function"),
        FUNCS.c.DB_ID
        == select(DBS.c.DB_ID)
        .where(DBS.c.NAME == bindparam("database"), DBS.c.CTLG_NAME == bindparam("catalog"))
        .scalar_subquery(),
    )
    .with_for_update()
)


class Functions(PartOfStore, FunctionReads, FunctionWrites):
    """Reads and writes of functions."""

    def get_function(self, function: FunctionName) -> Function:
        found = run_read(self._database, lambda connection: _read_function(connection, *function))
        if found is None:
            raise NoSuchObjectException(
                f"Function {function.as_sent.database}.{function.as_sent.function} does not exist"
            )
        return found[1]

    def get_function_names(self, database: DatabaseName, pattern: str | None = None) -> list[str]:
        statement = (
            select(FUNCS.c.FUNC_NAME)
            .join(DBS, DBS.c.DB_ID == FUNCS.c.DB_ID)
            .where(
                DBS.c.CTLG_NAME == database.catalog,
                DBS.c.NAME == database.database,
                *may_match(FUNCS.c.FUNC_NAME, pattern),
            )
        )
        names = run_read(self._database, lambda connection: connection.execute(statement).scalars().all())
        return matching_names(names, pattern)

    def get_functions(self, catalog: str, database: str | None = None, pattern: str | None = None) -> list[Function]:
        names = normalize_catalog(catalog), None if database is None else normalize_identifier(database)
        found = run_read(self._database, lambda connection: read_functions(connection, *names, pattern))
        return [function for _, function in found]

    def create_function(self, function: Function) -> None:
        new = copied(function)
        sent = _check(new)
        if new.ownerName is None:
            new.ownerName = self._context.server_user
        new.createTime = self._context.now_s()

        def create(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            database_id = read_database_id(connection, new.catName, new.dbName)
            if database_id is None:
                raise NoSuchObjectException(f"database {sent}")
            if _read_function(connection, new.catName, new.dbName, new.functionName) is not None:
                raise AlreadyExistsException(f"Function {function.functionName} already exists")
            function_id = transaction.id("MFunction")
            values = {"FUNC_ID": function_id, "DB_ID": database_id, "CREATE_TIME": new.createTime, **_values(new)}
            try:
                connection.execute(insert(FUNCS).values(values))
            except IntegrityError as error:
                raise RetryableConflict(f"somebody else created function {new.functionName}") from error
            _insert_resources(connection, function_id, new)
            transaction.append_event(self._context.messages.build_create_function(new))

        run_write(self._database, create, ids={"MFunction": 1})

    def alter_function(self, name: FunctionName, function: Function) -> None:
        new = copied(function)
        sent = _check(new)
        if new.catName != name.catalog:
            raise MetaException("You cannot move a function between catalogs")

        def alter(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            database_id = read_database_id(connection, new.catName, new.dbName)
            if database_id is None:
                raise InvalidObjectException(f"Database {sent.database} doesn't exist.")
            found = _lock_function(connection, name)
            if found is None:
                raise MetaException(f"function {name.function} doesn't exist")
            function_id, before = found
            is_renamed = (new.dbName, new.functionName) != (before.dbName, before.functionName)
            if is_renamed and _read_function(connection, new.catName, new.dbName, new.functionName) is not None:
                raise MetaException(f"Function {new.dbName}.{new.functionName} already exists")
            values = {"DB_ID": database_id, **_values(new)}
            try:
                connection.execute(update(FUNCS).where(FUNCS.c.FUNC_ID == function_id).values(values))
            except IntegrityError as error:
                raise RetryableConflict(f"function {new.functionName} was created, or its database dropped") from error
            connection.execute(delete(FUNC_RU).where(FUNC_RU.c.FUNC_ID == function_id))
            _insert_resources(connection, function_id, new)
            # Hive has no event for an altered function (4.0.1) and does not cache functions. These two events, in one
            # transaction, show the new state to every reader of the log.
            transaction.append_event(self._context.messages.build_drop_function(before))
            transaction.append_event(self._context.messages.build_create_function(new))

        run_write(self._database, alter)

    def drop_function(self, name: FunctionName) -> None:

        def drop(transaction: WriteTransaction) -> None:
            found = _lock_function(transaction.connection, name)
            if found is None:
                raise NoSuchObjectException(f"Function {name.as_sent.function} does not exist")
            drop_functions(self._context, transaction, [found])

        run_write(self._database, drop)


def read_functions(
    connection: Connection, catalog: str, database: str | None, pattern: str | None
) -> list[tuple[int, Function]]:
    """(FUNC_ID, function) of the matching functions by (database, name), in one statement."""
    statement = _FUNCTIONS.where(*may_match(FUNCS.c.FUNC_NAME, pattern))
    if database is not None:
        statement = statement.where(DBS.c.NAME == database)
    found = _functions(connection.execute(statement, {"catalog": catalog}).all())
    if pattern is not None:
        match = name_pattern(pattern).matches
        found = [(function_id, function) for function_id, function in found if match(function.functionName)]
    return sorted(found, key=lambda pair: (pair[1].dbName, pair[1].functionName))


def drop_functions_of_database(
    context: StoreContext, transaction: WriteTransaction, catalog: str, database: str, database_id: int
) -> None:
    """Drops all functions of a database inside a transaction. The database's row is locked."""
    connection = transaction.connection
    functions = read_functions(connection, catalog, database, None)
    if functions and connection.dialect.name != "sqlite":
        # No function is added meanwhile, but those found may be changed, or moved to another database.
        locked = select(FUNCS.c.FUNC_ID).where(FUNCS.c.DB_ID == database_id).order_by(FUNCS.c.FUNC_ID)
        connection.execute(locked.with_for_update()).all()
        functions = read_functions(connection, catalog, database, None)
    drop_functions(context, transaction, functions)


def drop_functions(
    context: StoreContext, transaction: WriteTransaction, functions: Sequence[tuple[int, Function]]
) -> None:
    """Drops functions inside a transaction, with an event each. Their rows are locked."""
    if not functions:
        return
    ids = [function_id for function_id, _ in functions]
    delete_together(transaction.connection, [(FUNC_RU.c.FUNC_ID, ids), (FUNCS.c.FUNC_ID, ids)])
    for _, function in functions:
        transaction.append_event(context.messages.build_drop_function(function))


def _read_function(connection: Connection, catalog: str, database: str, name: str) -> tuple[int, Function] | None:
    statement = _FUNCTIONS.where(DBS.c.NAME == database, FUNCS.c.FUNC_NAME == name)
    found = _functions(comparable_rows(connection, statement, {"catalog": catalog}))
    return found[0] if found else None


def _lock_function(connection: Connection, function: FunctionName) -> tuple[int, Function] | None:
    """As `lock_database` for a function."""
    names = {"catalog": function.catalog, "database": function.database, "function": function.function}
    # SQLite has one writer at a time.
    if connection.dialect.name != "sqlite" and not comparable_rows(connection, _LOCK, names):
        return None
    return _read_function(connection, *function)


def _functions(rows: Sequence[Any]) -> list[tuple[int, Function]]:
    found: dict[int, Function] = {}
    for row in rows:
        function = found.get(row.FUNC_ID)
        if function is None:
            found[row.FUNC_ID] = function = Function(
                functionName=row.FUNC_NAME,
                dbName=row.DATABASE_NAME,
                className=row.CLASS_NAME,
                ownerName=row.OWNER_NAME,
                ownerType=PrincipalType._NAMES_TO_VALUES.get(row.OWNER_TYPE) if row.OWNER_TYPE else None,
                createTime=row.CREATE_TIME,
                functionType=row.FUNC_TYPE,
                resourceUris=[],
                catName=row.CTLG_NAME,
            )
        if row.RESOURCE_TYPE is not None:
            function.resourceUris.append(ResourceUri(resourceType=row.RESOURCE_TYPE, uri=row.RESOURCE_URI))
    return list(found.items())


def _check(function: Function) -> DatabaseName:
    """Checks and normalizes the function, as `HMSHandler.validateFunctionInfo` does. Returns the database as named."""
    if function.functionName is None:
        raise MetaException("Function name cannot be null.")
    if function.dbName is None:
        raise MetaException("Database name in Function cannot be null.")
    if not is_valid_name(function.functionName, special_characters=False):
        raise InvalidObjectException(f"{function.functionName} is not a valid object name")
    if function.className is None:
        raise InvalidObjectException("Function class name cannot be null")
    if principal_type(function.ownerType) is None:
        raise MetaException("Function owner type cannot be null.")
    if known(FunctionType, function.functionType) is None:
        raise MetaException("Function type cannot be null.")
    if any(known(ResourceType, resource.resourceType) is None for resource in function.resourceUris or ()):
        raise MetaException("Resource type cannot be null.")
    function.functionName = normalize_identifier(function.functionName)
    database = database_name(function.catName, function.dbName)
    function.catName, function.dbName = database
    function.resourceUris = list(function.resourceUris or ())
    return database.as_sent


def _values(function: Function) -> dict[str, Any]:
    return {
        "FUNC_NAME": function.functionName,
        "CLASS_NAME": function.className,
        "OWNER_NAME": function.ownerName,
        "OWNER_TYPE": principal_type_name(function.ownerType) or USER,
        "FUNC_TYPE": function.functionType,
    }


def _insert_resources(connection: Connection, function_id: int, function: Function) -> None:
    if function.resourceUris:
        connection.execute(
            insert(FUNC_RU),
            [
                {
                    "FUNC_ID": function_id,
                    "RESOURCE_TYPE": resource.resourceType,
                    "RESOURCE_URI": resource.uri,
                    "INTEGER_IDX": position,
                }
                for position, resource in enumerate(function.resourceUris)
            ],
        )
