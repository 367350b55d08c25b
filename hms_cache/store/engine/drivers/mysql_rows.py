"""Reads rows of MySQL's text protocol from the connection's buffer, many at a time.

PyMySQL reads each row as a packet of its own: two reads of the buffered socket, an object for the packet, and three
calls per column. Reading 10,000 partitions took longer than everything done with them. Here, packets that are complete
in the buffer are read in one loop; the driver reads the rest: incomplete packets, the end of the rows, errors. The
values are the same as the driver's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pymysql.connections import MySQLResult
from pymysql.err import InternalError

BUFFER_BYTES = 65_536
"""Size of a connection's read buffer: some 200 rows of partitions. With the driver's 8 KiB, one of 27 rows crosses the
end of the buffer and is read the slow way."""

_MAX_DESCRIPTIONS = 512
"""Maximum number of kept column descriptions. The program has some hundred statements that return rows; if there are
more, all are dropped."""

_HEADER = 4  # three bytes of length, one of sequence
_LONG_PACKET = 0xFFFFFF  # another packet continues it
_NULL, _TWO_BYTES, _THREE_BYTES, _EIGHT_BYTES = 251, 252, 253, 254

_Convert = Callable[[bytes], Any]


def _decoded(encoding: str, converter: Callable[[str], Any], data: bytes) -> Any:
    return converter(data.decode(encoding))


def _conversion(encoding: str | None, converter: Callable[[Any], Any] | None) -> _Convert:
    """How the driver converts the bytes of a value of this column."""
    if encoding is None:
        return converter or bytes
    if converter is None:
        return bytes.decode if encoding in ("utf8", "utf-8") else partial(_text, encoding)
    if converter is int:
        return int
    return partial(_decoded, encoding, converter)


def _text(encoding: str, data: bytes) -> str:
    return data.decode(encoding)


class _Description:
    """The server's description of the columns of a result, and how their values are read."""

    __slots__ = ("conversions", "converters", "description", "fields")

    def __init__(self, result: MySQLResult) -> None:
        self.fields = result.fields
        self.converters = result.converters
        self.description = result.description
        self.conversions = [_conversion(encoding, converter) for encoding, converter in result.converters]


_descriptions: dict[tuple[str, bytes], _Description] = {}
"""By the connection's encoding and the bytes of the descriptions. Single operations on a dictionary are atomic."""


class BufferedResult(MySQLResult):  # type: ignore[misc]  # the driver has no types
    """The driver's result, but faster."""

    connection: Any
    conversions: list[_Convert]

    def _get_descriptions(self) -> None:
        """Reads the column descriptions. The same statement returns the same bytes each time; they are parsed only
        once."""
        connection = self.connection
        described = self._buffered_descriptions()
        known = _descriptions.get((connection.encoding, described)) if described else None
        if known is None:
            super()._get_descriptions()
            known = _Description(self)
            if described:
                if len(_descriptions) >= _MAX_DESCRIPTIONS:
                    _descriptions.clear()
                _descriptions[connection.encoding, described] = known
        else:
            connection._rfile.read(len(described))
            connection._next_seq_id = (connection._next_seq_id + self.field_count) % 256
            self.fields, self.converters, self.description = known.fields, known.converters, known.description
            end = connection._read_packet()
            assert end.is_eof_packet(), "Protocol error, expecting EOF"
        self.conversions = known.conversions

    def _buffered_descriptions(self) -> bytes:
        """The packets with the column descriptions if all of them are in the buffer, otherwise nothing. Does not
        consume them."""
        buffer = self.connection._rfile.peek(1)
        position, size, sequence = 0, len(buffer), self.connection._next_seq_id
        for _ in range(self.field_count):
            if position + _HEADER >= size:
                return b""
            length = buffer[position] | buffer[position + 1] << 8 | buffer[position + 2] << 16
            # The driver handles anything that is not a description in the expected order.
            if buffer[position + 3] != sequence or length == _LONG_PACKET or buffer[position + _HEADER] >= _NULL:
                return b""
            position += _HEADER + length
            sequence = (sequence + 1) & 255
        return bytes(buffer[:position]) if position <= size else b""

    def _read_rowdata_packet(self) -> None:
        """Reads all rows as tuples, in the order of the server."""
        connection = self.connection
        rows: list[tuple[Any, ...]] = []
        while True:
            self._read_rows(connection, rows)
            packet = connection._read_packet()
            if self._check_packet_is_eof(packet):
                self.connection = None
                break
            rows.append(self._read_row_from_packet(packet))
        self.affected_rows = len(rows)
        self.rows = tuple(rows)

    def _read_rows(self, connection: Any, rows: list[tuple[Any, ...]]) -> None:
        """Appends rows that are complete in the buffer, refills it while data arrives in time, and stops at anything
        else."""
        reader, conversions = connection._rfile, self.conversions
        while True:
            try:
                buffer = reader.peek(1)
            except OSError:  # the driver's next read fails, too, and raises its error
                return
            taken, sequence = _rows_of(buffer, connection._next_seq_id, conversions, rows)
            if not taken:
                return
            reader.read(taken)
            connection._next_seq_id = sequence
            if taken < len(buffer):
                return


def _rows_of(buffer: bytes, sequence: int, conversions: list[_Convert], rows: list[tuple[Any, ...]]) -> tuple[int, int]:
    """Appends the rows at the beginning of the buffer. Returns their number of bytes, and the number of the next
    packet.

    Raises InternalError for a row whose values reach beyond its packet.
    """
    position, size = 0, len(buffer)
    while position + _HEADER < size:
        length = buffer[position] | buffer[position + 1] << 8 | buffer[position + 2] << 16
        at = position + _HEADER
        end = at + length
        if end > size or not length or length == _LONG_PACKET or buffer[position + 3] != sequence or buffer[at] >= 254:
            break
        row: list[Any] = []
        for convert in conversions:
            if at >= end:  # as in the driver, a row may have fewer values than columns
                break
            count = buffer[at]
            at += 1
            if count == _NULL:
                row.append(None)
                continue
            if count > _NULL:
                width = 2 if count == _TWO_BYTES else 3 if count == _THREE_BYTES else 8
                count = int.from_bytes(buffer[at : at + width], "little")
                at += width
            row.append(convert(buffer[at : at + count]))
            at += count
        if at > end:
            raise InternalError(f"a row's values take {at - end} bytes more than its packet has")
        rows.append(tuple(row))
        sequence = (sequence + 1) & 255
        position = end
    return position, sequence
