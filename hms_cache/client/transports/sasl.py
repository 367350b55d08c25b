"""The client's side of Thrift over SASL. After the negotiation, each message is a length of four bytes and the data,
which is protected if that was negotiated."""

from __future__ import annotations

import struct
from io import BytesIO

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportBase, TTransportException

from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.authentication.negotiation import negotiate

MAX_PROTECTED_BYTES = 256 * 1024 * 1024
"""Maximum size of a protected message from a server, which is unwrapped as a whole. Java servers send a reply of any
length in one message; Java clients accept 100 MB."""

MAX_EMPTY_MESSAGES = 100
"""Maximum number of consecutive empty messages: with more, a server could keep the client busy."""

_PLAIN_BYTES = 1024 * 1024
"""Maximum size of an unprotected message: a longer request is sent in several messages."""

_READ_BYTES = 256 * 1024
_LENGTH = struct.Struct("!I")


class SaslTransport(TTransportBase):  # type: ignore[misc]  # untyped
    """Uses an open Thrift socket, which it closes when it is closed."""

    def __init__(self, socket: TSocket, mechanism: ClientMechanism) -> None:
        self._socket = socket
        self._mechanism = mechanism
        self._unsent = BytesIO()
        self._clear = memoryview(b"")
        """Unwrapped data that is not read yet."""
        self._remaining_bytes = 0
        """Number of bytes of an unprotected message that are not read yet."""

    def open(self) -> None:
        """Negotiates. Raises AuthenticationRefusedError, the exceptions of the mechanism, and TTransportException."""
        negotiate(self._mechanism, self._socket.write, self._exactly)

    def isOpen(self) -> bool:
        return bool(self._socket.isOpen())

    def close(self) -> None:
        self._socket.close()

    def read(self, sz: int) -> bytes:
        """Returns at most `sz` bytes, and at least one."""
        if not self._clear and not self._remaining_bytes:
            self._next_message()
        if self._remaining_bytes:
            data: bytes = self._socket.read(min(sz, self._remaining_bytes))
            self._remaining_bytes -= len(data)
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
                raise TTransportException(TTransportException.SIZE_LIMIT, f"a SASL message has {length} bytes")
            if layer is None:
                self._remaining_bytes = length
            else:
                try:
                    self._clear = memoryview(layer.unwrap(self._exactly(length)))
                except AuthenticationError as error:
                    raise TTransportException(TTransportException.UNKNOWN, f"{error} (from the metastore)") from error
            if self._remaining_bytes or self._clear:
                return
        raise TTransportException(TTransportException.UNKNOWN, f"{MAX_EMPTY_MESSAGES} consecutive empty SASL messages")

    def _exactly(self, size: int) -> bytes:
        """Reads exactly this number of bytes. Memory is allocated only for data that has arrived."""
        data = bytearray()
        while len(data) < size:
            data += self._socket.read(min(size - len(data), _READ_BYTES))
        return bytes(data)
