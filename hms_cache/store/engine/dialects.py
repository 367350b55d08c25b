"""Differences between SQLite, MySQL/MariaDB and PostgreSQL: error codes, counters, clocks, proofs of being a
primary."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from sqlalchemy import Column, ColumnElement, Connection, Integer, Update, bindparam, func, text, update
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DataError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.dml import ReturningUpdate
from sqlalchemy.sql.functions import FunctionElement

from hms_cache.store.engine.errors import DatabaseUnavailable, RetryableConflict
from hms_cache.store.schema import METADATA, text_planes
from hms_cache.store.schema.column_types import MYSQL_DIALECTS

DialectName = Literal["sqlite", "mysql", "postgresql"]

T = TypeVar("T")

#: Deadlock, lock wait timeout, MariaDB's "record has changed since last read", and a transaction that a group of MySQL
#: servers has rolled back at COMMIT. A Galera cluster reports the last one as a deadlock.
_MYSQL_CONFLICTS = frozenset({1213, 1205, 1020, 3101})

#: Too many connections, shutdown, statement timeouts (MySQL's and MariaDB's), killed, and the client library's own
#: 2xxx.
_MYSQL_UNAVAILABLE = frozenset(
    {1040, 1053, 1203, 1226, 1317, 1927, 1969, 3024, 4031, 2002, 2003, 2006, 2013, 2014, 2055}
)

#: The server lacks space or memory for the statement, but the connection remains usable: disk full, table full, out of
#: memory, sort memory, resources, threads, or space for locks.
_MYSQL_LACKS_ROOM = frozenset({1021, 1114, 1037, 1038, 1041, 1135, 1206})

#: File errors of the server or a storage engine, with the system's error number in the text; 28 is "disk full".
_MYSQL_FILE_ERRORS = frozenset({1026, 1030, 3})
_DISK_FULL = re.compile(r"err(?:no|code|or)\W{0,3}28\b", re.IGNORECASE)

#: serialization_failure, deadlock_detected, lock_not_available.
_POSTGRESQL_CONFLICTS = frozenset({"40001", "40P01", "55P03"})

#: Not the primary: the server is read-only (``innodb_read_only``), or a Galera node without a quorum (1180 for a
#: transaction that loses it). The connection is dropped, since a new one may lead to the primary.
_MYSQL_NOT_PRIMARY = frozenset({1836, 1047, 1180})

#: "The server is running with the --read-only option"; the same number is used for other options.
_MYSQL_OPTION_PREVENTS = 1290

#: Statement timeout, read-only transaction (on a replica), input/output error; in addition all of classes 08
#: (connections), 53 (disk full, out of memory, too many connections) and 57P (shutdown, crash, startup, database
#: dropped, idle session ended).
_POSTGRESQL_UNAVAILABLE = frozenset({"57014", "25006", "58030"})

#: Errors of a single statement, after which the connection remains usable.
_POSTGRESQL_STATEMENT_FAILED = ("53", "57014", "58030")

#: Limits of the server that a value exceeds although its column could store it: a row of an index has at most 2,704
#: bytes, that is 676 characters of four bytes.
_POSTGRESQL_TOO_LARGE = "54"

#: Texts of psycopg (libpq) and SQLite if a statement has too many parameters.
_TOO_MANY_VALUES = re.compile(r"number of parameters must be between|\Atoo many SQL variables")


def is_of_too_many_values(error: BaseException | None) -> bool:
    """Whether a statement had more parameters than the database allows. The error text states the limit, except
    SQLite's."""
    return error is not None and _TOO_MANY_VALUES.search(str(error)) is not None


_SQLITE_BUSY, _SQLITE_LOCKED = 5, 6

#: A text is longer than its column allows (`text_types.LimitedText`).
_SQLITE_CHECK = 275

#: SQLite's text if a LIKE pattern has more than 50,000 bytes; there is no error code.
_SQLITE_LONG_PATTERN = "LIKE or GLOB pattern too complex"

#: Out of memory, input/output error, disk full, cannot open, not a database.
_SQLITE_UNAVAILABLE = frozenset({7, 10, 13, 14, 26})

#: The file system has become read-only, or another file has taken the name. An open connection does not recover.
_SQLITE_READ_ONLY = 8


def dialect_name(name: str) -> DialectName:
    """SQLAlchemy's dialect name, with MariaDB counted as MySQL."""
    return cast(DialectName, "mysql" if name == "mariadb" else name)


def translate_error(context: ExceptionContext) -> None:
    """SQLAlchemy ``handle_error`` listener: raises `RetryableConflict` or `DatabaseUnavailable` for such errors.

    Other errors stay SQLAlchemy's own. If MySQL cannot compare a value, or a value exceeds a limit of PostgreSQL or
    SQLite, the error is `DataError`, as for any value that the database refuses.
    """
    original = context.original_exception
    hides_values = context.engine is None or context.engine.hide_parameters
    if hides_values:
        _remove_values(context, original)
    if getattr(original, "sqlstate", None) is None and _TOO_MANY_VALUES.search(str(original)):
        # psycopg detects this itself, with an exception class that usually means a lost connection.
        raise DataError(context.statement, None, original) from original
    had_connection = context.connection is not None
    found = classify(dialect_name(context.dialect.name), original, had_connection=had_connection)
    if found is None and context.is_disconnect:
        found = DatabaseUnavailable(str(original), connection_lost=had_connection)
    if found is not None:
        if isinstance(found, DatabaseUnavailable) and found.connection_lost:
            # SQLAlchemy does not know all such errors. This makes it drop the connection and all that are older than
            # it.
            context.is_disconnect = True
        raise found from original
    if context.dialect.name in ("mysql", "mariadb"):
        is_refused = text_planes.is_uncomparable(original)
    elif context.dialect.name == "sqlite":
        is_refused = (
            getattr(original, "sqlite_errorcode", None) == _SQLITE_CHECK or str(original) == _SQLITE_LONG_PATTERN
        )
    else:
        is_refused = (getattr(original, "sqlstate", None) or "").startswith(_POSTGRESQL_TOO_LARGE)
    if is_refused:
        raise DataError(context.statement, context.parameters, original, hides_values) from original


def _remove_values(context: ExceptionContext, original: BaseException) -> None:
    """Removes values from error texts: databases quote what clients have sent, and what others have stored."""
    message, diagnosis = str(original), getattr(original, "diag", None)
    if diagnosis is not None and diagnosis.message_primary:
        # Further lines contain the refused row, the existing key, and parameters.
        hint = f"\nHINT: {diagnosis.message_hint}" if diagnosis.message_hint else ""
        first = diagnosis.message_primary
        if (getattr(original, "sqlstate", None) or "").startswith(_POSTGRESQL_DATA):
            first = without_values_on_postgresql(first)
        left = f"{first}{hint}"
        original.args = (left, *original.args[1:])
    elif context.dialect.name in MYSQL_DIALECTS and len(original.args) == 2:
        number, text_of_server = original.args
        original.args = (number, without_values_on_mysql(number, str(text_of_server)))
    if context.sqlalchemy_exception is not None and str(original) != message:
        text, *rest = context.sqlalchemy_exception.args
        context.sqlalchemy_exception.args = (str(text).replace(message, str(original)), *rest)


def without_values_on_mysql(number: object, message: str) -> str:
    """An error's text without values. The error number tells whether the text contains any."""
    return _without_quoted(message, "'") if number in _MYSQL_QUOTES_VALUES else message


def without_values_on_postgresql(message: str) -> str:
    """The first line of a data exception without values, in each language in which a server may write it."""
    return _without_quoted(_OTHER_QUOTES.sub('"', message), '"')


_OTHER_QUOTES = re.compile("[«»„“”‟‹›「」『』]")

#: Errors with quoted values: duplicate entries, syntax errors (which quote the statement), and values of a wrong type,
#: out of range or of another character set.
_MYSQL_QUOTES_VALUES = frozenset(
    {1062, 1064, 1149, 1292, 1300, 1366, 1367, 1411, 1525, 1586, 1690, 1761, 1762, 1859, 3854}
)

#: The class of data exceptions: "invalid input syntax for type numeric: …".
_POSTGRESQL_DATA = "22"

#: Text that MySQL and MariaDB put after a value: the key or column that it was meant for.
_PLACE = re.compile(r" for (?:key|column) (?:'[^' ]*'|`[^' ]*)(?: at row [0-9]+)?\Z")


def _without_quoted(message: str, quote: str) -> str:
    """A text without its quoted parts, except names in the schema. A value may contain quotes itself."""
    outside, *pieces = message.split(quote)
    if not pieces or (len(pieces) % 2 == 0 and all(one.upper() in _names_of_schema() for one in pieces[::2])):
        return message
    place = _PLACE.search(message)
    if place is not None and place.start() > len(outside):
        return f"{outside}{quote}…{quote}{place[0]}"
    return f"{outside}{quote}…{quote}"


@lru_cache
def _names_of_schema() -> frozenset[str]:
    """Names of tables, columns, keys and indexes, in upper case."""
    names = {"PRIMARY"}
    for table in METADATA.tables.values():
        elements = (*table.columns, *table.indexes, *table.constraints)
        names.update(str(one.name).upper() for one in (table, *elements) if one.name is not None)
    return frozenset(names)


def is_uncomparable(error: DataError) -> bool:
    """Whether MySQL could not compare a text with a column, so that no value of the column equals it."""
    original = error.orig
    return original is not None and text_planes.is_uncomparable(original)


def classify(
    dialect: DialectName, error: BaseException, *, had_connection: bool = True
) -> RetryableConflict | DatabaseUnavailable | None:
    """What a driver's error means; None if it is neither a conflict nor an outage.

    :param had_connection: False while connecting: then no connection was lost.
    """
    if dialect == "mysql":
        conflict, unavailable, lost = _classify_mysql(error)
    elif dialect == "postgresql":
        conflict, unavailable, lost = _classify_postgresql(error)
    else:
        conflict, unavailable, lost = _classify_sqlite(error)
    if conflict:
        return RetryableConflict(str(error))
    if unavailable:
        return DatabaseUnavailable(str(error), connection_lost=lost and had_connection)
    return None


def _classify_mysql(error: BaseException) -> tuple[bool, bool, bool]:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else None
    # PyMySQL raises InterfaceError(0, "") when it is given a connection that it has already closed.
    closed = type(error).__name__ == "InterfaceError" and code == 0
    read_only = code == _MYSQL_OPTION_PREVENTS and "read" in str(error.args[1:]).lower()
    if code in _MYSQL_LACKS_ROOM or (code in _MYSQL_FILE_ERRORS and _DISK_FULL.search(str(error.args[1:]))):
        return False, True, False
    unavailable = code in _MYSQL_UNAVAILABLE or code in _MYSQL_NOT_PRIMARY or read_only or closed
    return code in _MYSQL_CONFLICTS, unavailable, unavailable and code not in (1317, 1969, 3024)


def _classify_postgresql(error: BaseException) -> tuple[bool, bool, bool]:
    state = getattr(error, "sqlstate", None)
    if state is None:
        # psycopg sets no SQLSTATE for errors that it detects itself: connection refused, reset, closed.
        lost = type(error).__name__ == "OperationalError" and not _TOO_MANY_VALUES.search(str(error))
        return False, lost, lost
    unavailable = state in _POSTGRESQL_UNAVAILABLE or state.startswith(("08", "53", "57P"))
    is_lost = unavailable and not state.startswith(_POSTGRESQL_STATEMENT_FAILED)
    return state in _POSTGRESQL_CONFLICTS, unavailable, is_lost


def _classify_sqlite(error: BaseException) -> tuple[bool, bool, bool]:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    read_only = primary == _SQLITE_READ_ONLY
    return primary in (_SQLITE_BUSY, _SQLITE_LOCKED), read_only or primary in _SQLITE_UNAVAILABLE, read_only


def allocate_from_counter(
    connection: Connection,
    column: Column[Any],
    amount: int,
    where: ColumnElement[bool] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> int | None:
    """Locks the counter's row until the transaction ends, adds ``amount``, and returns the previous value; None if
    there is no row.

    One statement on each database: ``RETURNING``, or MySQL's ``LAST_INSERT_ID(expression)``, whose value arrives with
    the acknowledgement. If ``where`` is a module constant that takes its values from ``parameters``, the statement is
    compiled only once.
    """
    given = {"counter_amount": amount, **(parameters or {})}
    if connection.dialect.name == "mysql":
        result = connection.execute(_allocation_query_on_mysql(column, where), given)
        return None if result.rowcount == 0 else result.lastrowid
    after = connection.execute(_allocation_query(column, where), given).scalar()
    return None if after is None else cast(int, after) - amount


#: Statements kept: one per counter, and some whose conditions are not constant.
_MAX_COUNTER_STATEMENTS = 64


@lru_cache(_MAX_COUNTER_STATEMENTS)
def _allocation_query_on_mysql(column: Column[Any], where: ColumnElement[bool] | None) -> Update:
    amount = bindparam("counter_amount", type_=Integer())
    statement = update(column.table).values({column: func.last_insert_id(column) + amount})
    return statement if where is None else statement.where(where)


@lru_cache(_MAX_COUNTER_STATEMENTS)
def _allocation_query(column: Column[Any], where: ColumnElement[bool] | None) -> ReturningUpdate[Any]:
    statement = update(column.table).values({column: column + bindparam("counter_amount", type_=Integer())})
    return (statement if where is None else statement.where(where)).returning(column)


def database_time_ms(connection: Connection) -> int:
    """The database's clock in epoch milliseconds; with SQLite, the machine's.

    Transactions and locks use it, so that the servers of a set agree.
    """
    match dialect_name(connection.dialect.name):
        case "mysql":
            seconds = connection.execute(text("SELECT UNIX_TIMESTAMP(NOW(3))")).scalar_one()
        case "postgresql":
            seconds = connection.execute(text("SELECT EXTRACT(EPOCH FROM clock_timestamp())")).scalar_one()
        case _:
            seconds = time.time()
    return round(float(seconds) * 1000)


def reason_of_stale_reads(connection: Connection) -> str | None:
    """Why a read here may miss a commit acknowledged elsewhere; None if it cannot.

    Applies to replicas, to Galera clusters unless reads wait for the applier (``wsrep_sync_wait``), and to groups of
    MySQL servers with several primaries.
    """
    match dialect_name(connection.dialect.name):
        case "mysql":
            variables = dict(
                connection.exec_driver_sql(
                    "SHOW VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_on', 'wsrep_sync_wait',"
                    " 'group_replication_single_primary_mode')"
                )
                .tuples()
                .all()
            )
            if variables.get("read_only") not in (None, "OFF"):
                return "the database is read-only: a replica, most likely"
            if variables.get("wsrep_on") == "ON" and not int(variables.get("wsrep_sync_wait") or 0) & 1:
                return "the database is a Galera cluster whose reads do not wait for it (wsrep_sync_wait has no bit 1)"
            if variables.get("group_replication_single_primary_mode") == "OFF":
                return "the database is a group of MySQL servers with several primaries"
        case "postgresql":
            if connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one():
                return "the database is in recovery: a replica"
        case _:
            pass
    return None


_FLUSHES_EACH_COMMIT: Final = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
_KEEPS_EACH_COMMIT: Final = ("fsync", "synchronous_commit")


def settings_that_lose_commits(connection: Connection) -> list[str]:
    """Settings of the database with which a crash of it, or of its machine, may lose committed transactions."""
    match dialect_name(connection.dialect.name):
        case "mysql":
            names = ", ".join(f"'{name}'" for name in (*_FLUSHES_EACH_COMMIT, "log_bin"))
            found = dict(
                connection.exec_driver_sql(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})").tuples().all()
            )
            if found.get("log_bin") != "ON":
                found.pop("sync_binlog", None)
            expected = _FLUSHES_EACH_COMMIT.items()
            return [f"{name} = {found[name]}" for name, safe in expected if found.get(name, safe) != safe]
        case "postgresql":
            return [
                f"{name} = off"
                for name in _KEEPS_EACH_COMMIT
                if connection.execute(text(f"SHOW {name}")).scalar_one() == "off"
            ]
        case _:
            return []


class SqlFunction(FunctionElement[T]):
    """A function that databases spell differently; `{0}`, `{1}`, … are its arguments."""

    sql: ClassVar[str]
    """The spelling for databases without one of their own below."""
    sql_on_sqlite: ClassVar[str | None] = None
    sql_on_mysql: ClassVar[str | None] = None
    """The spelling for MySQL and MariaDB."""
    sql_on_postgresql: ClassVar[str | None] = None


@compiles(SqlFunction)
def _sql_of_function(element: SqlFunction[Any], compiler: Any, **keywords: Any) -> str:
    sql_on = {
        "sqlite": element.sql_on_sqlite,
        "postgresql": element.sql_on_postgresql,
        **dict.fromkeys(MYSQL_DIALECTS, element.sql_on_mysql),
    }
    sql = sql_on.get(compiler.dialect.name) or element.sql
    return sql.format(*(compiler.process(argument, **keywords) for argument in element.clauses))


class CharacterCount(SqlFunction[int]):
    """Number of characters of a text. MySQL's `length` counts bytes."""

    name = "character_count"
    type = Integer()
    inherit_cache = True
    sql = "char_length({0})"
    sql_on_sqlite = "length({0})"
