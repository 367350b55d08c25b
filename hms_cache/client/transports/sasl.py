"""Thrift over SASL, the client's side: after the negotiation each message is a length in four bytes, and as many bytes,
protected where that was agreed on."""

from __future__ import annotations

import struct
from io import BytesIO

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportBase, TTransportException

from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.authentication.negotiation import negotiate

MAX_PROTECTED_BYTES = 256 * 1024 * 1024
"""Of a protected message of a server, which is unwrapped as a whole. Java's servers send a reply in one, however long;
Java's clients take 100 MB."""

MAX_EMPTY_MESSAGES = 100
"""In a row: a server that sends nothing else would keep the client busy."""

_PLAIN_BYTES = 1024 * 1024
"""Of an unprotected message: a long request is sent in several."""

_READ_BYTES = 256 * 1024
_LENGTH = struct.Struct("!I")


class SaslTransport(TTransportBase):  # type: ignore[misc]  # untyped
    """Over an open socket of Thrift's, which it closes with itself."""

    def __init__(self, socket: TSocket, mechanism: ClientMechanism) -> None:
        self._socket = socket
        self._mechanism = mechanism
        self._unsent = BytesIO()
        self._clear = memoryview(b"")
        """What was unwrapped and is not read yet."""
        self._left_bytes = 0
        """Of an unprotected message that are not read yet."""

    def open(self) -> None:
        """Negotiates. Raises AuthenticationRefusedError, what the mechanism raises, and TTransportException."""
        negotiate(self._mechanism, self._socket.write, self._exactly)

    def isOpen(self) -> bool:
        return bool(self._socket.isOpen())

    def close(self) -> None:
        self._socket.close()

    def read(self, sz: int) -> bytes:
        """At most so many bytes, at least one."""
        if not self._clear and not self._left_bytes:
            self._next_message()
        if self._left_bytes:
            data: bytes = self._socket.read(min(sz, self._left_bytes))
            self._left_bytes -= len(data)
            return data
        data = bytes(self._clear[:sz])
        self._clear = self._clear[sz:]
        return data

    def write(self, buf: bytes) -> None:
        self._unsent.write(buf)

    def flush(self) -> None:
        request = self._unsent.getbuffer()
        self._unsent = BytesIO()
        layer = self._mechanism.layer
        size = _PLAIN_BYTES if layer is None else layer.piece_bytes
        for start in range(0, len(request), size):
            piece: bytes | memoryview = request[start : start + size]
            if layer is not None:
                piece = layer.wrap(piece)
            self._socket.write(_LENGTH.pack(len(piece)) + piece)

    def _next_message(self) -> None:
        layer = self._mechanism.layer
        for _ in range(MAX_EMPTY_MESSAGES):
            (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
            if length > (0x7FFFFFFF if layer is None else MAX_PROTECTED_BYTES):
                raise TTransportException(TTransportException.SIZE_LIMIT, f"a message of SASL with {length} bytes")
            if layer is None:
                self._left_bytes = length
            else:
                try:
                    self._clear = memoryview(layer.unwrap(self._exactly(length)))
                except AuthenticationError as error:
                    raise TTransportException(TTransportException.UNKNOWN, f"{error} (from the metastore)") from error
            if self._left_bytes or self._clear:
                return
        raise TTransportException(TTransportException.UNKNOWN, f"{MAX_EMPTY_MESSAGES} empty messages of SASL in a row")

    def _exactly(self, size: int) -> bytes:
        """So many bytes. What is announced takes no memory before it is there."""
        data = bytearray()
        while len(data) < size:
            data += self._socket.read(min(size - len(data), _READ_BYTES))
        return bytes(data)
