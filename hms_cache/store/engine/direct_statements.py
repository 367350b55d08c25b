"""Sends frequent statements as bare packets to MySQL and MariaDB: several in one round trip, without SQLAlchemy's
execution.

Statements are SQLAlchemy Core in the module of their entity, as usual. Here their text is compiled once per engine,
with constants written into it. A call inserts its values, escaped by the driver, and reads the server's
acknowledgements. Executing a statement in the usual way takes six times the processor time, for a context, a cursor and
a result that are not needed.

Several statements are sent as one packet. The server executes them until one fails. Later ones can depend on earlier
ones only through the server's state: `row_count` and `func.last_insert_id()`.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, Dialect, Executable, Insert, Integer, func
from sqlalchemy.sql.compiler import SQLCompiler

from hms_cache.store.engine.drivers.mysql_driver import MySqlConnection

Values = Mapping[str, Any]
"""Values of a statement's parameters, by name; a list for an expanding one."""

Statement = tuple["Direct", Values | Sequence[Values]]
"""A statement and its values; for `DirectRows` the values of each row."""


def row_count() -> ColumnElement[int]:
    """Number of rows that the previous statement found. On MySQL and MariaDB."""
    return func.row_count(type_=Integer)


class Direct:
    """A statement, created once as a module constant. It returns no rows, except as a `DirectQuery`."""

    __slots__ = ("_columns", "_statement")

    def __init__(self, statement: Executable, columns: Sequence[str] | None = None) -> None:
        """`columns`: for an INSERT that does not name its columns."""
        # Without this, SQLAlchemy makes MariaDB return the new key.
        self._statement = statement.inline() if isinstance(statement, Insert) else statement
        self._columns = None if columns is None else list(columns)

    def compiled(self, dialect: Dialect) -> SQLCompiler:
        """The statement as SQLAlchemy compiles it."""
        statement: Any = self._statement
        return cast(SQLCompiler, statement.compile(dialect=dialect, column_keys=self._columns))

    def filled(self, driver: MySqlConnection, dialect: Dialect, values: Any) -> tuple[str, str]:
        """A text for logs without values, and the text to send with them."""
        text, conversions, _ = _text_of(self, dialect)
        return text, _filled(driver, text, conversions, values)


class DirectQuery(Direct):
    """A statement that returns rows: named tuples with the values that SQLAlchemy would return.

    Its constants may be any texts: those that are not plain words are sent with the values. Also for PostgreSQL
    (`read_plans`).
    """

    __slots__ = ("_is_kept", "_parts")

    def __init__(self, statement: Executable, *, is_kept: bool = True) -> None:
        """`is_kept`: False for a statement that is made for one call; its compiled form is discarded with it."""
        super().__init__(statement)
        self._is_kept = is_kept
        self._parts: _Parts | None = None
        """Only for a statement that is not kept."""

    @property
    def statement(self) -> Executable:
        """The statement for execution by SQLAlchemy."""
        return self._statement

    def filled(self, driver: MySqlConnection, dialect: Dialect, values: Any) -> tuple[str, str]:
        text, conversions, constants = self._made(dialect).text
        return text, _filled(driver, text, conversions, {**constants, **values} if constants else values)

    def with_values(self, dialect: Dialect, values: Values) -> tuple[str, dict[str, Any]]:
        """The text with placeholders like `%(name)s`, and all values, for a driver that takes both."""
        text, conversions, constants = self._made(dialect).text
        return text, {**constants, **_converted(conversions, values)}

    def _made(self, dialect: Dialect) -> _Parts:
        if self._is_kept:
            return _parts_of(self, dialect)
        if self._parts is None:
            self._parts = _parts_of.__wrapped__(self, dialect)
        return self._parts

    def rows(self, dialect: Dialect, found: Iterable[Sequence[Any]]) -> list[Any]:
        """Converts the driver's rows to those of this statement."""
        row, conversions = self._made(dialect).row
        if not conversions:
            return list(map(row, found))
        return [
            row([conversions[at](value) if at in conversions else value for at, value in enumerate(one)])
            for one in found
        ]


class DirectRows(Direct):
    """An INSERT of one row that is sent for any number of rows."""

    __slots__ = ()

    def filled(self, driver: MySqlConnection, dialect: Dialect, values: Any) -> tuple[str, str]:
        """Like `Direct.filled`, with the values of each row."""
        text, conversions, _ = _text_of(self, dialect)
        head, row, rest = _parts_of_insert(text)
        return text, f"{head}{', '.join(_row_texts(driver, row, conversions, values))}{rest}"

    def packets(self, driver: MySqlConnection, dialect: Dialect, values: Sequence[Values]) -> tuple[str, list[str]]:
        """Like `filled`, in several texts that are each below `CHARACTERS_OF_A_PACKET`, unless a single row is
        longer."""
        text, conversions, _ = _text_of(self, dialect)
        head, row, rest = _parts_of_insert(text)
        found: list[str] = []
        held: list[str] = []
        size = 0
        for one in _row_texts(driver, row, conversions, values):
            if held and size + len(one) > CHARACTERS_OF_A_PACKET:
                found.append(f"{head}{', '.join(held)}{rest}")
                held, size = [], 0
            held.append(one)
            size += len(one)
        if held:
            found.append(f"{head}{', '.join(held)}{rest}")
        return text, found


CHARACTERS_OF_A_PACKET = 1_000_000
"""Maximum length of rows that are inserted together: the driver's own limit, far below the smallest limit of servers (4
MB)."""

_PLACE = re.compile(r"%\((\w+)\)s")


@lru_cache(maxsize=1024)
def _parts_of_insert(text: str) -> tuple[str, str, str]:
    """Splits an INSERT into the text before its row, the row, and the text after it. Only the row has placeholders."""
    head, values, rest = text.partition(" VALUES ")
    end = _end_of_row(rest)
    row, rest = rest[:end], rest[end:]
    if not end or _PLACE.search(head + rest):
        raise TypeError(f"this is to be an INSERT of one row: {text}")
    return (head + values) % (), row, rest % ()


def _end_of_row(text: str) -> int:
    """The index after the parenthesis that closes the first one; 0 if there is none."""
    depth, quoted = 0, False
    for index, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
            if not depth:
                return index + 1 if character == ")" else 0
    return 0


def _row_texts(
    driver: MySqlConnection, row: str, conversions: Mapping[str, Any], values: Sequence[Values]
) -> list[str]:
    """The text of each row. Works column by column, because many columns have the same value in all rows."""
    if not values:
        return []
    if _PLACE.sub("", row).strip("(), "):
        return [_filled(driver, row, conversions, one) for one in values]
    literal = driver.literal
    columns = []
    for name in _PLACE.findall(row):
        column = [one[name] for one in values]
        if (convert := conversions.get(name)) is not None:
            column = [convert(value) for value in column]
        first = column[0]
        if all(value is first for value in column):
            columns.append([literal(first)] * len(column))
        else:
            columns.append([str(value) if type(value) is int else literal(value) for value in column])
    return [f"({', '.join(one)})" for one in zip(*columns, strict=True)]


def _filled(driver: MySqlConnection, text: str, conversions: Mapping[str, Any], values: Values) -> str:
    literal = driver.literal
    return text % {
        name: literal(value) if value != [] else _NOTHING for name, value in _converted(conversions, values).items()
    }


_NOTHING = "(SELECT NULL FROM DUAL WHERE FALSE)"
"""An empty list: no value is in it, and every value is not in it."""


def _converted(conversions: Mapping[str, Any], values: Values) -> Values:
    if not conversions:
        return values
    return {**values, **{name: convert(values[name]) for name, convert in conversions.items()}}


class _Text(NamedTuple):
    """A statement's text with placeholders like `%(name)s`; conversions of values, by name if there are any; and
    constants that are sent with the values."""

    text: str
    conversions: Mapping[str, Any]
    constants: Mapping[str, Any]


class _Row(NamedTuple):
    """The row type of a query; conversions of values, by position if there are any."""

    make: Callable[[Iterable[Any]], Any]
    conversions: Mapping[int, Callable[[Any], Any]]


class _Parts(NamedTuple):
    """What is made of a compiled query."""

    text: _Text
    row: _Row


@lru_cache(maxsize=1024)
def _parts_of(statement: DirectQuery, dialect: Dialect) -> _Parts:
    compiled = statement.compiled(dialect)
    return _Parts(_as_text(statement, compiled, dialect), _as_row(compiled, dialect))


def _as_row(compiled: SQLCompiler, dialect: Dialect) -> _Row:
    columns = compiled._result_columns
    conversions = {
        at: convert
        for at, column in enumerate(columns)
        if (convert := column.type.dialect_impl(dialect).result_processor(dialect, None)) is not None
    }
    row = cast(Any, namedtuple)("Row", [column.keyname for column in columns], rename=True)
    return _Row(row._make, conversions)


_EXPANDING = re.compile(r"(NOT )?IN \(__\[POSTCOMPILE_(\w+?)\]\)")
_WRITTEN = re.compile(r"__\[POSTCOMPILE_(\w+?)\]")
_PLAIN = re.compile(r"[\w ./-]*")


@lru_cache(maxsize=1024)
def _text_of(statement: Direct, dialect: Dialect) -> _Text:
    return _as_text(statement, statement.compiled(dialect), dialect)


def _as_text(statement: Direct, compiled: SQLCompiler, dialect: Dialect) -> _Text:
    is_postgresql = dialect.name == "postgresql"
    places: dict[str, str] = {}
    conversions: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    types: dict[str, str] = {}
    for bind, name in compiled.bind_names.items():
        convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
        places[name] = f"%({name})s"
        if bind.expanding:
            types[name] = "BIGINT" if isinstance(bind.type, Integer) else "VARCHAR"
        if bind.required:
            if convert is not None:
                conversions[name] = convert
            continue
        value = bind.effective_value
        if not isinstance(statement, DirectQuery):
            places[name] = _constant(value)
        elif bind.literal_execute or not (is_postgresql or bind.expanding):
            value = convert(value) if convert is not None else value
            if _is_plain(value):
                places[name] = _constant(value)
            else:
                constants[name] = value
        else:
            constants[name] = convert(value) if convert is not None else value
    if is_postgresql:
        text = _EXPANDING.sub(
            lambda found: f"{'<> ALL' if found[1] else '= ANY'} (%({found[2]})s::{types[found[2]]}[])", compiled.string
        )
    else:
        # The driver adds the parentheses of a list.
        text = _EXPANDING.sub(r"\1IN %(\2)s", compiled.string)
    text = _WRITTEN.sub(r"%(\1)s", text)
    # Percent signs stay doubled, because values are formatted into the text a second time.
    return _Text(text.replace("%%", "%%%%") % places, conversions, constants)


def _is_plain(value: Any) -> bool:
    return isinstance(value, int) or value is None or (isinstance(value, str) and _PLAIN.fullmatch(value) is not None)


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


def supports_direct_statements(connection: Connection) -> bool:
    """Whether `execute_directly` is supported on this connection."""
    return isinstance(connection.connection.dbapi_connection, MySqlConnection)


def execute_directly(connection: Connection, statements: Iterable[Statement], *, commits: bool = False) -> list[Any]:
    """Sends the statements as one packet; returns an `Acknowledged` or rows for each.

    `commits`: the packet ends with COMMIT, which is executed if all statements succeed; `Connection.commit` still has
    to be called. Raises what `Connection.execute` does, for any of them.
    """
    driver = cast(MySqlConnection, connection.connection.dbapi_connection)
    texts: list[str] = []
    filled: list[str] = []
    queries: dict[int, DirectQuery] = {}
    for statement, values in statements:
        if isinstance(statement, DirectQuery):
            queries[len(texts)] = statement
        text, full = statement.filled(driver, connection.dialect, values)
        texts.append(text)
        filled.append(full)
    answers = _sent(connection, "; ".join(texts), filled, queries=queries, commits=commits)
    for number, query in queries.items():
        answers[number] = query.rows(connection.dialect, answers[number])
    return answers


def execute_in_packets(connection: Connection, statements: Iterable[Statement]) -> None:
    """Sends statements that return no rows, in order, in as few packets as possible, each below
    `CHARACTERS_OF_A_PACKET` unless a single statement is longer. Raises what `Connection.execute` does."""
    driver = cast(MySqlConnection, connection.connection.dbapi_connection)
    shown: list[str] = []
    packets: list[list[str]] = []
    size = 0
    for statement, values in statements:
        text, full = statement.filled(driver, connection.dialect, values)
        shown.append(text)
        if not packets or size + len(full) > CHARACTERS_OF_A_PACKET:
            packets.append([])
            size = 0
        packets[-1].append(full)
        size += len(full)
    _sent(connection, "; ".join(shown), *packets)


def insert_directly(connection: Connection, statement: DirectRows, rows: Sequence[Values]) -> None:
    """Inserts any number of rows, in packets of a safe length. Raises what `Connection.execute` does."""
    driver = cast(MySqlConnection, connection.connection.dbapi_connection)
    text, packets = statement.packets(driver, connection.dialect, rows)
    _sent(connection, text, *([packet] for packet in packets))


def _sent(
    connection: Connection, shown: str, *packets: Sequence[str], queries: Collection[int] = (), commits: bool = False
) -> list[Any]:
    """Sends packets one after the other. SQLAlchemy's events see one execution, as for the driver's own bulk insert."""
    driver = cast(MySqlConnection, connection.connection.dbapi_connection)
    return executed_as_one(
        connection,
        shown,
        lambda: [one for filled in packets for one in driver.send_together(filled, queries=queries, commits=commits)],
    )


def executed_as_one(connection: Connection, shown: str, send: Callable[[], list[Any]]) -> list[Any]:
    """Runs `send` inside a transaction, and reports it to SQLAlchemy's events as one execution of the text `shown`.
    Raises what `Connection.execute` does."""
    if not connection.in_transaction():
        connection.begin()
    events = connection.engine.dispatch
    for listener in events.before_cursor_execute:
        listener(connection, None, shown, (), None, False)
    try:
        answers = send()
    except BaseException as error:
        connection._handle_dbapi_exception(error, shown, None, None, None)
    for listener in events.after_cursor_execute:
        listener(connection, None, shown, (), None, False)
    return answers
