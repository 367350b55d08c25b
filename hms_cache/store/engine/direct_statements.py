"""Hot statements as bare packets, for MySQL and MariaDB: several in one round trip, past what executes the others.

A statement is SQLAlchemy Core in the module of its entity like any other. Here its text is made once for each engine,
with what never changes written into it, and a call fills in its values, escaped by the driver, and reads the server's
acknowledgements. To execute a statement as usual takes six times the processor time: a context, a cursor and a result
are made for it that nobody asks.

Several statements go to the server as one packet and are carried out until one fails. Later ones can depend on earlier
ones only by what the server itself remembers: `row_count` and `func.last_insert_id()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Dialect, Executable, Insert, Integer
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from hms_cache.store.engine.mysql_driver import Acknowledged, MySqlConnection

Values = Mapping[str, Any]
"""Of a statement's parameters, by name; a list for one that expands."""

Statement = tuple["Direct", Values | Sequence[Values]]
"""A statement and its values: of each row, for `DirectRows`."""


class row_count(FunctionElement[int]):
    """How many rows the statement before this one found. On MySQL and MariaDB."""

    type = Integer()
    inherit_cache = True


@compiles(row_count, "mysql")
@compiles(row_count, "mariadb")
def _row_count_on_mysql(element: row_count, compiler: Any, **_: Any) -> str:
    return "ROW_COUNT()"


class Direct:
    """A statement that answers no rows, to be made once, as a constant of its module."""

    __slots__ = ("_columns", "_statement")

    def __init__(self, statement: Executable, columns: Sequence[str] | None = None) -> None:
        """`columns`: of an INSERT that names none."""
        # Else SQLAlchemy lets MariaDB answer the new key.
        self._statement = statement.inline() if isinstance(statement, Insert) else statement
        self._columns = None if columns is None else list(columns)

    def compiled(self, dialect: Dialect) -> SQLCompiler:
        """As SQLAlchemy compiles it."""
        statement: Any = self._statement
        return cast(SQLCompiler, statement.compile(dialect=dialect, column_keys=self._columns))

    def filled(self, driver: MySqlConnection, dialect: Dialect, values: Any) -> tuple[str, str]:
        """What may be shown of it, and its text with the values."""
        text, conversions = _text_of(self, dialect)
        return text, _filled(driver, text, conversions, values)


class DirectRows(Direct):
    """An INSERT of one row; it is sent for a sequence of them, whose number may be another each time."""

    __slots__ = ()

    def filled(self, driver: MySqlConnection, dialect: Dialect, values: Any) -> tuple[str, str]:
        """As `Direct.filled`, with the values of each row."""
        text, conversions = _text_of(self, dialect)
        head, _, row = text.partition(" VALUES ")
        rows = ", ".join([_filled(driver, row, conversions, one) for one in values])
        return text, f"{head} VALUES {rows}"


def _filled(driver: MySqlConnection, text: str, conversions: Mapping[str, Any], values: Values) -> str:
    literal = driver.literal
    if conversions:
        values = {**values, **{name: convert(values[name]) for name, convert in conversions.items()}}
    return text % {name: literal(value) for name, value in values.items()}


class _Text(NamedTuple):
    """A statement's text with places like `%(name)s`, and how values are converted, where they are."""

    text: str
    conversions: Mapping[str, Any]


_EXPANDING = re.compile(r"\(__\[POSTCOMPILE_(\w+?)\]\)")
_PLAIN = re.compile(r"[\w ./-]*")


@lru_cache(maxsize=1024)
def _text_of(statement: Direct, dialect: Dialect) -> _Text:
    compiled = statement.compiled(dialect)
    constants: dict[str, str] = {}
    conversions: dict[str, Any] = {}
    for bind, name in compiled.bind_names.items():
        if bind.required:
            constants[name] = f"%({name})s"
            if (convert := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None:
                conversions[name] = convert
        else:
            constants[name] = _constant(bind.effective_value)
    # The driver writes a list with its parentheses.
    text = _EXPANDING.sub(r"%(\1)s", compiled.string)
    # Percent signs stay doubled: the text is filled in a second time, with the values.
    return _Text(text.replace("%%", "%%%%") % constants, conversions)


def _constant(value: Any) -> str:
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_constant, value))})"
    if value is None:
        return "NULL"
    if not isinstance(value, str) or not _PLAIN.fullmatch(value):
        raise TypeError(f"this is to be a parameter of the statement: {value!r}")
    return f"'{value}'"


def takes_direct_statements(connection: Connection) -> bool:
    """Whether `execute_directly` may be called."""
    return isinstance(connection.connection.dbapi_connection, MySqlConnection)


def execute_directly(
    connection: Connection, statements: Iterable[Statement], *, commits: bool = False
) -> list[Acknowledged]:
    """Send the statements as one packet; what the server answered to each.

    `commits`: COMMIT goes with them; it is carried out when all of them were, and `Connection.commit` is still to be
    called. Raises what `Connection.execute` does, for any of them.
    """
    driver = cast(MySqlConnection, connection.connection.dbapi_connection)
    dialect = connection.dialect
    texts: list[str] = []
    filled: list[str] = []
    for statement, values in statements:
        text, full = statement.filled(driver, dialect, values)
        texts.append(text)
        filled.append(full)
    if not connection.in_transaction():
        connection.begin()
    events = connection.engine.dispatch
    shown = "; ".join(texts)
    for listener in events.before_cursor_execute:
        listener(connection, None, shown, (), None, False)
    try:
        acknowledged = driver.send_together(filled, commits=commits)
    except BaseException as error:
        connection._handle_dbapi_exception(error, shown, None, None, None)
    for listener in events.after_cursor_execute:
        listener(connection, None, shown, (), None, False)
    return acknowledged
