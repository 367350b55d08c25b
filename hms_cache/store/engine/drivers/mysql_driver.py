"""PyMySQL's connection with faster escaping of long texts and faster reading of rows.

The driver sends complete statements with all texts escaped in them. As soon as one character needs an escape, it looks
up each character in a table. Event messages have some thousand characters with a quotation mark every ten, so escaping
took a fifth of the time of writing partition statistics. The result here is the same as the driver's.

Rows are read by `mysql_rows.BufferedResult`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, CR, SERVER_STATUS
from pymysql.constants.ER import NET_PACKET_TOO_LARGE
from pymysql.converters import escape_string
from pymysql.cursors import Cursor
from pymysql.err import DataError, MySQLError, OperationalError
from pymysql.protocol import OKPacketWrapper

from hms_cache.computing import scheduler
from hms_cache.store.engine.drivers.mysql_rows import BUFFER_BYTES, BufferedResult
from hms_cache.store.engine.drivers.mysql_tls import REQUIRE_TLS
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.schema.text_planes import comparable_parameters, is_uncomparable

LONG_TEXT_CHARACTERS = 64
"""From this length on, seven searches of the whole text are faster than looking up each character."""

_ESCAPES = (
    ("\\", "\\\\"),  # first, because the other escapes contain backslashes
    ('"', '\\"'),
    ("'", "\\'"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\0", "\\0"),
    ("\032", "\\Z"),
)


def escaped(text: str) -> str:
    """The text as it stands between quotation marks, if the server takes backslashes as escapes (its default)."""
    if len(text) < LONG_TEXT_CHARACTERS:
        return str(escape_string(text))
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text


LARGE_STATEMENT_BYTES = 1024 * 1024
"""From this length on, the statement is compared with the server's limit (`max_allowed_packet`). No server has a lower
limit."""


class Acknowledged(NamedTuple):
    """The server's reply to a statement that returns no rows."""

    rows: int
    """Number of rows found or inserted."""
    last_id: int
    """The generated id, or the value set by LAST_INSERT_ID(expression)."""


_OK: Final = 0x00
_HEADER: Final = 4
_SHORTEST: Final = _HEADER + 7
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""Length of a number that is longer than a byte, by the byte before it."""


class MySqlConnection(Connection):  # type: ignore[misc]  # the driver has no types
    """The driver's connection, but faster, and never without TLS if TLS is required."""

    _rfile: Any
    _sock: Any
    _next_seq_id: int

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._requires_tls = options.pop(REQUIRE_TLS, False)
        # A packet may hold several statements.
        options["client_flag"] = options.get("client_flag", 0) | CLIENT.MULTI_STATEMENTS
        self.rolls_back_later = False
        """Whether `rollback` returns without waiting for the reply, which reads do not need."""
        self.is_node_of_cluster = False
        """Whether the session is on a node of a Galera cluster. Not known of connections for loads."""
        self._owes_answer = False
        self._largest_statement_bytes: int | None = None
        """None until a large statement is sent."""
        self._has_committed = False
        self.has_refused = False
        """Whether the server has refused a statement of the last packet, and therefore skipped those after it,
        including COMMIT."""
        super().__init__(*arguments, **options)

    def connect(self, sock: Any = None) -> None:
        """Connects, with a larger read buffer than the driver's. Nothing has been read ahead at this point."""
        super().connect(sock)
        self._rfile.close()
        self._rfile = self._sock.makefile("rb", buffering=BUFFER_BYTES)

    def _read_query_result(self, unbuffered: bool = False) -> int:
        """Reads the reply to a statement, and returns the number of rows in it or changed."""
        if unbuffered:
            return int(super()._read_query_result(unbuffered))
        self._result = None
        result = BufferedResult(self)
        try:
            result.read()
        except BaseException as error:
            self._close_unless_answered(error)
            raise
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return int(result.affected_rows)

    def _get_server_information(self) -> None:
        """The driver's first step reads the server's capabilities. No data of this client has been sent yet."""
        super()._get_server_information()
        # The driver treats any TLS context as required; with ssl_mode=PREFERRED it is not.
        self._ssl_required = self._requires_tls
        if self._requires_tls and not self.server_capabilities & CLIENT.SSL:
            raise OperationalError(
                CR.CR_CONN_HOST_ERROR, "TLS is required by the URL's ssl_mode, and the server does not offer it"
            )

    def literal(self, value: Any) -> str:
        """The SQL literal of a value of any type."""
        if type(value) is int:
            return str(value)
        return "NULL" if value is None else self.escape(value)

    def send_together(
        self, statements: Sequence[str], *, queries: Collection[int] = (), commits: bool = False
    ) -> list[Any]:
        """Sends complete statements as one packet, and returns for each an `Acknowledged`, or rows if its number is in
        `queries`.

        The server executes them until one fails, whose error is raised. `commits`: COMMIT is appended; its reply is not
        returned, and the next `commit` does nothing.
        """
        self.has_refused = False
        texts = [*statements, "COMMIT"] if commits else statements
        # As in the driver's `query`: bytes that arrived as invalid text are sent as the same bytes.
        self._execute_command(COMMAND.COM_QUERY, ";".join(texts).encode(self.encoding, "surrogateescape"))
        answers: list[Any] = []
        stops = [*sorted(queries), len(texts)]
        try:
            for stop in stops:
                while len(answers) < stop:
                    if not self._read_acknowledgements(stop, answers):
                        answers.append(self._acknowledgement())
                if stop < len(texts):
                    answers.append(self._rows())
        except BaseException as error:
            self._close_unless_answered(error)
            # The driver closes the connection if no reply arrives.
            self.has_refused = len(answers) < len(statements) and self._sock is not None
            raise
        if commits:
            self._has_committed = True
            answers.pop()
        return answers

    def _close_unless_answered(self, error: BaseException) -> None:
        """After an error between replies, such as lack of memory. An error that the server sent is the last reply (and
        after the driver's own errors the connection is closed); after any other error, the remaining replies would be
        taken for those of the next statement."""
        if not isinstance(error, MySQLError) or not error.args or not isinstance(error.args[0], int):
            self._force_close()

    def _rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows of the next reply. Raises the error that the reply contains, or that it does not arrive."""
        result = BufferedResult(self)
        result.read()
        if result.rows is None:
            self._force_close()  # the rest would be taken for another statement's reply
            raise OperationalError(CR.CR_MALFORMED_PACKET, "a statement that answers rows has answered none")
        rows: tuple[tuple[Any, ...], ...] = result.rows
        return rows

    def _read_acknowledgements(self, count: int, answers: list[Acknowledged]) -> bool:
        """Appends the acknowledgements that are complete in the buffer, until there are `count`. Returns whether there
        was one."""
        try:
            buffer = self._rfile.peek(1)
        except OSError:  # the driver's own read fails, too, and raises its error
            return False
        position, size, sequence = 0, len(buffer), self._next_seq_id
        while len(answers) < count and position + _SHORTEST <= size:
            end = position + _HEADER + (buffer[position] | buffer[position + 1] << 8 | buffer[position + 2] << 16)
            if (
                not position + _SHORTEST <= end <= size
                or buffer[position + 3] != sequence
                or buffer[position + 4] != _OK
            ):
                break
            rows, at = _number(buffer, position + _HEADER + 1)
            last_id, at = _number(buffer, at)
            self.server_status = buffer[at] | buffer[at + 1] << 8
            answers.append(Acknowledged(rows, last_id))
            sequence = (sequence + 1) & 255
            position = end
        if not position:
            return False
        self._rfile.read(position)
        self._next_seq_id = sequence
        return True

    def _acknowledgement(self) -> Acknowledged:
        """The next acknowledgement, as the driver reads it. Raises the error that the reply contains, or that it does
        not arrive."""
        packet = self._read_packet()
        if not packet.is_ok_packet():
            self._force_close()  # the rows would be taken for the next statement's reply
            raise OperationalError(CR.CR_MALFORMED_PACKET, "a statement that answers no rows has answered some")
        ok = OKPacketWrapper(packet)
        self.server_status = ok.server_status
        return Acknowledged(ok.affected_rows, ok.insert_id)

    def commit(self) -> None:
        """Ends the transaction, unless the last packet has ended it."""
        if self._has_committed:
            self._has_committed = False
            return
        super().commit()

    def rollback(self) -> None:
        """Ends the transaction. With `rolls_back_later` the reply is read before the next command, which saves a round
        trip.

        The server ends the snapshot immediately in any case. A lost connection is noticed at its next use.
        """
        if not self.rolls_back_later:
            super().rollback()
            return
        if self._has_committed:
            self._has_committed = False
            return
        self._settle()
        super()._execute_command(COMMAND.COM_QUERY, "ROLLBACK")
        self._owes_answer = True

    def _settle(self) -> None:
        """Reads the outstanding reply to ROLLBACK, which has usually arrived long before."""
        if self._owes_answer:
            self._owes_answer = False
            self._read_ok_packet()

    def _execute_command(self, command: Any, sql: Any) -> None:
        """Sends a command. A thread that computes in turns yields its turn until the reply begins to arrive: the driver
        reads packet by packet and does not report that it waits."""
        self._has_committed = False
        try:
            if self._sock:  # otherwise the driver raises that it is closed
                self._settle()
                if len(sql) >= LARGE_STATEMENT_BYTES // 4:  # a character has at most four bytes
                    sql = self._allowed(sql)
            super()._execute_command(command, sql)
            if scheduler.pause():
                with suppress(OSError):  # the driver's own read fails, too, and raises its error
                    self._rfile.peek(1)
                scheduler.resume()
        except BaseException as error:
            self._close_unless_answered(error)
            raise

    def _allowed(self, sql: Any) -> bytes:
        """The statement's bytes. Raises DataError if they exceed the server's limit.

        The server would close the connection while receiving, which looks like a lost connection: the statement would
        be sent again, the client told to retry, and the pool's other connections dropped with this one.
        """
        data: bytes = sql.encode(self.encoding, "surrogateescape") if isinstance(sql, str) else bytes(sql)
        if len(data) >= LARGE_STATEMENT_BYTES:
            if self._largest_statement_bytes is None:
                super()._execute_command(COMMAND.COM_QUERY, "SELECT @@max_allowed_packet")
                self._read_query_result()
                assert self._result is not None
                self._largest_statement_bytes = int(self._result.rows[0][0])
            if len(data) >= self._largest_statement_bytes:
                raise DataError(
                    NET_PACKET_TOO_LARGE,
                    f"a statement of {len(data)} bytes; the database takes less than {self._largest_statement_bytes}"
                    " (its max_allowed_packet)",
                )
        return data

    def escape(self, obj: Any, mapping: Any = None) -> str:
        """The SQL literal of a value."""
        if type(obj) is str and not self.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES:
            return f"'{escaped(obj)}'"
        return str(super().escape(obj, mapping))


class ComparingCursor(Cursor):  # type: ignore[misc]  # the driver has no types
    """The driver's cursor, but a comparison with a text that the column cannot represent finds no row instead of
    raising a collation error."""

    def execute(self, query: str, args: Any = None) -> int:
        """Sends a statement and returns the number of rows in the reply or changed."""
        try:
            return int(super().execute(query, args))
        except OperationalError as error:
            if not is_uncomparable(error):
                raise
            failure = error
        # Columns of utf8mb3 lack only the characters outside the basic plane.
        for plane in (2, 1):
            comparable = comparable_parameters(query, args, plane)
            if comparable is not None:
                with suppress(_Uncomparable):
                    return self._execute_comparable(query, comparable)
        raise failure

    def _execute_comparable(self, query: str, parameters: Any) -> int:
        try:
            return int(super().execute(query, parameters))
        except OperationalError as error:
            if is_uncomparable(error):
                raise _Uncomparable from error
            raise


class _Uncomparable(Exception):
    """The statement is still not comparable."""


def _number(buffer: bytes, at: int) -> tuple[int, int]:
    """Decodes a number with a length prefix; returns it with the index after it."""
    first = buffer[at]
    if first < 0xFB:
        return first, at + 1
    end = at + 1 + _LENGTH_BYTES[first]
    return int.from_bytes(buffer[at + 1 : end], "little"), end


def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> MySqlConnection:
    """SQLAlchemy's `do_connect` listener: opens the pool's connections.

    Raises DatabaseUnavailable if the account's password cannot be sent: without TLS, MySQL 8 and later expect it
    encrypted with the server's key.
    """
    try:
        return MySqlConnection(*arguments, **{"cursorclass": ComparingCursor, **options})
    except RuntimeError as error:  # PyMySQL's, for a package that is missing
        raise DatabaseUnavailable(
            "the database accepts the password only encrypted: remove ssl_mode=DISABLED (useSSL=false) from"
            " database.url, or install hms-cache[tls]"
        ) from error
