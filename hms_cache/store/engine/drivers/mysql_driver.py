"""PyMySQL's connection with quicker ways to write long texts into statements and to read rows.

The driver sends statements whole, with every text escaped in them: character by character, by a table, once one
character becomes two. Event messages are some thousand characters with a quotation mark every ten, so escaping them was
a fifth of what writing statistics of partitions cost. The result here is the driver's own, character by character.

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

from hms_cache.computing import turns
from hms_cache.store.engine.drivers.mysql_rows import BUFFER_BYTES, BufferedResult
from hms_cache.store.engine.drivers.mysql_tls import REQUIRE_TLS
from hms_cache.store.schema.text_planes import UNCOMPARABLE, comparable_parameters

LONG_TEXT_CHARACTERS = 64
"""From here on seven searches of the whole text cost less than looking up each character."""

_ESCAPES = (
    ("\\", "\\\\"),  # first: the others bring backslashes of their own
    ('"', '\\"'),
    ("'", "\\'"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\0", "\\0"),
    ("\032", "\\Z"),
)


def escaped(text: str) -> str:
    """The text as it stands between quotation marks, where the server takes backslashes as escapes (its default)."""
    if len(text) < LONG_TEXT_CHARACTERS:
        return str(escape_string(text))
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text


LARGE_STATEMENT_BYTES = 1024 * 1024
"""From here on it is looked whether the server takes the statement (`max_allowed_packet`): no server takes less."""


class Acknowledged(NamedTuple):
    """What the server says of a statement that answers no rows."""

    rows: int
    """How many it found or made."""
    last_id: int
    """The number given out for it, or set by LAST_INSERT_ID(expression)."""


_OK: Final = 0x00
_HEADER: Final = 4
_SHORTEST: Final = _HEADER + 7
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""Of a number that is longer than a byte, by the byte before it."""


class MySqlConnection(Connection):  # type: ignore[misc]  # the driver has no types
    """As the driver's, in all but the time it takes, and that it never does without TLS that is required."""

    _rfile: Any
    _sock: Any
    _next_seq_id: int

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._requires_tls = options.pop(REQUIRE_TLS, False)
        # A packet may hold several statements.
        options["client_flag"] = options.get("client_flag", 0) | CLIENT.MULTI_STATEMENTS
        self.rolls_back_later = False
        """Whether `rollback` waits for no answer: reads have nothing to learn from it."""
        self._owes_answer = False
        self._largest_statement_bytes: int | None = None
        """None until a large one is sent."""
        self._has_committed = False
        self.has_refused = False
        """Whether the server has refused a statement of the last packet, and with it those after it: COMMIT, too."""
        super().__init__(*arguments, **options)

    def connect(self, sock: Any = None) -> None:
        """Connects, with a larger buffer to read from than the driver's. Nothing has been read ahead at this moment."""
        super().connect(sock)
        self._rfile.close()
        self._rfile = self._sock.makefile("rb", buffering=BUFFER_BYTES)

    def _read_query_result(self, unbuffered: bool = False) -> int:
        """The answer to a statement; how many rows it has or changed."""
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
        """The driver's first step: what the server can do. Nothing of ours has been sent yet."""
        super()._get_server_information()
        # The driver takes any context of ours for a demand; ssl_mode=PREFERRED is none.
        self._ssl_required = self._requires_tls
        if self._requires_tls and not self.server_capabilities & CLIENT.SSL:
            raise OperationalError(
                CR.CR_CONN_HOST_ERROR, "TLS is required by the URL's ssl_mode, and the server does not offer it"
            )

    def literal(self, value: Any) -> str:
        """A value as it stands in a statement, whatever its type."""
        if type(value) is int:
            return str(value)
        return "NULL" if value is None else self.escape(value)

    def send_together(
        self, statements: Sequence[str], *, queries: Collection[int] = (), commits: bool = False
    ) -> list[Any]:
        """Sends statements, which are filled in, as one packet; what was said of each: `Acknowledged`, or the rows of
        those whose numbers are among `queries`.

        They are carried out until one fails, whose error is raised. `commits`: COMMIT is the last of them, its answer
        is left out, and `commit` has nothing left to do.
        """
        self.has_refused = False
        texts = [*statements, "COMMIT"] if commits else statements
        # As the driver's `query`: what came as bytes that are no text goes out as these bytes.
        self._execute_command(COMMAND.COM_QUERY, ";".join(texts).encode(self.encoding, "surrogateescape"))
        answers: list[Any] = []
        stops = [*sorted(queries), len(texts)]
        try:
            for stop in stops:
                while len(answers) < stop:
                    if not self._take_acknowledgements(stop, answers):
                        answers.append(self._acknowledgement())
                if stop < len(texts):
                    answers.append(self._rows())
        except BaseException as error:
            self._close_unless_answered(error)
            # The driver closes it when nothing comes.
            self.has_refused = len(answers) < len(statements) and self._sock is not None
            raise
        if commits:
            self._has_committed = True
            answers.pop()
        return answers

    def _close_unless_answered(self, error: BaseException) -> None:
        """After an error amid the answers, such as want of memory. One that the server sent is the last of them (or the
        driver's own, which has closed the connection); after another one the rest would be taken for what the next
        statement is answered."""
        if not isinstance(error, MySQLError) or not error.args or not isinstance(error.args[0], int):
            self._force_close()

    def _rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows that are the next answer. Raises the error that it is, or that it does not come."""
        result = BufferedResult(self)
        result.read()
        if result.rows is None:
            self._force_close()  # what follows would be taken for another statement's
            raise OperationalError(CR.CR_MALFORMED_PACKET, "a statement that answers rows has answered none")
        rows: tuple[tuple[Any, ...], ...] = result.rows
        return rows

    def _take_acknowledgements(self, count: int, answers: list[Acknowledged]) -> bool:
        """Appends those that stand whole in the buffer, up to so many in all; whether there was one."""
        try:
            buffer = self._rfile.peek(1)
        except OSError:  # the driver's own read fails, too, and says so in its way
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
        """The next packet, as the driver reads it. Raises the error that it is, or that it does not come."""
        packet = self._read_packet()
        if not packet.is_ok_packet():
            self._force_close()  # rows of it would be taken for the next statement's
            raise OperationalError(CR.CR_MALFORMED_PACKET, "a statement that answers no rows has answered some")
        ok = OKPacketWrapper(packet)
        self.server_status = ok.server_status
        return Acknowledged(ok.affected_rows, ok.insert_id)

    def commit(self) -> None:
        """Ends the transaction, if it was not ended by the last packet."""
        if self._has_committed:
            self._has_committed = False
            return
        super().commit()

    def rollback(self) -> None:
        """Ends the transaction. With `rolls_back_later` the answer is read before the next command: a round trip less.

        The server ends its snapshot at once all the same. A connection that is lost is found so by its next use.
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
        """Reads the answer to ROLLBACK that nobody waited for, which has mostly come long since."""
        if self._owes_answer:
            self._owes_answer = False
            self._read_ok_packet()

    def _execute_command(self, command: Any, sql: Any) -> None:
        """Sends a command. A thread that computes by turns gives its turn to another until the answer begins to come:
        the driver reads answers packet by packet, and would not say when it waits."""
        self._has_committed = False
        try:
            if self._sock:  # else the driver says that it is closed
                self._settle()
                if len(sql) >= LARGE_STATEMENT_BYTES // 4:  # characters have four bytes at most
                    sql = self._allowed(sql)
            super()._execute_command(command, sql)
            if turns.pause():
                with suppress(OSError):  # the driver's own read fails, too, and says so in its way
                    self._rfile.peek(1)
                turns.resume()
        except BaseException as error:
            self._close_unless_answered(error)
            raise

    def _allowed(self, sql: Any) -> bytes:
        """The statement's bytes. Raises DataError if they are more than the server takes.

        It would close the connection in the middle, which looks as if it had gone: the statement was sent again, the
        client told to retry, and the pool's other connections were thrown away with this one.
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
        """A value as it stands in a statement."""
        if type(obj) is str and not self.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES:
            return f"'{escaped(obj)}'"
        return str(super().escape(obj, mapping))


class ComparingCursor(Cursor):  # type: ignore[misc]  # the driver has no types
    """As the driver's; a text that a column has no characters for is in no row, instead of an error of collations."""

    def execute(self, query: str, args: Any = None) -> int:
        """Sends a statement; how many rows it has answered or changed."""
        try:
            return int(super().execute(query, args))
        except OperationalError as error:
            if error.args[0] not in UNCOMPARABLE:
                raise
            failure = error
        # Columns of utf8mb3 lack the characters beyond the basic plane only.
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
            if error.args[0] in UNCOMPARABLE:
                raise _Uncomparable from error
            raise


class _Uncomparable(Exception):
    """Still not comparable."""


def _number(buffer: bytes, at: int) -> tuple[int, int]:
    """A number of the length that it begins with, and where it ends."""
    first = buffer[at]
    if first < 0xFB:
        return first, at + 1
    end = at + 1 + _LENGTH_BYTES[first]
    return int.from_bytes(buffer[at + 1 : end], "little"), end


def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> MySqlConnection:
    """SQLAlchemy's `do_connect` listener: what the pool's connections are."""
    return MySqlConnection(*arguments, **{"cursorclass": ComparingCursor, **options})
