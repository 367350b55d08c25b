"""Thrift's SASL negotiation, server side, without a socket.

As in Java's TSaslServerTransport (libthrift 0.9 to 0.16): a message is a status byte, the length of the payload in four
bytes, and the payload. The client sends START with the mechanism's name and then its responses; the server answers with
challenges (OK), COMPLETE, or BAD and ERROR with a text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from hms_cache.authentication.mechanism import AuthenticationError, Mechanism
from hms_cache.input_limits import exceeded, input_limits

START, OK, BAD, ERROR, COMPLETE = 1, 2, 3, 4, 5

MAX_NAME_BYTES = 64
"""Maximum length of a mechanism's name: RFC 4422 allows 20 characters."""

MAX_STEPS = 10
"""Maximum number of responses of a client: GSSAPI takes three, and one more for each further round of its context."""

HEADER = struct.Struct("!BI")
"""Status and length of the payload of a message."""

TRY_AGAIN = "; try again later"
"""End of the text that refuses a client about whom nothing is known now: a directory does not answer. The protocol has
no other way to tell this from a wrong password."""


class Negotiation:
    """Takes bytes, returns responses for the mechanism's `step`, and frames the results.

    Bytes after the last message of the negotiation belong to the client's first call: see `rest`.
    """

    def __init__(self, mechanisms: Mapping[str, Callable[[], Mechanism]]) -> None:
        self._mechanisms = mechanisms
        self._buffer = bytearray()
        self._steps = 0
        self.mechanism: Mechanism | None = None
        self.mechanism_name = ""

    def feed(self, data: bytes) -> None:
        """Adds bytes from the client."""
        self._buffer += data

    @property
    def used_bytes(self) -> int:
        """Number of buffered bytes."""
        return len(self._buffer)

    def next_response(self) -> bytes | None:
        """The next complete response; None if more bytes are needed. Raises AuthenticationError; for a payload that is
        too long, before it has arrived."""
        while True:
            payload = self._next_message()
            if payload is None:
                return None
            if self.mechanism is not None:
                self._steps += 1
                if self._steps > MAX_STEPS:
                    raise AuthenticationError(f"no end after {MAX_STEPS} messages", "bad_message")
                return payload
            self._start(payload)

    def answer(self, challenge: bytes) -> bytes:
        """The message with the mechanism's challenge."""
        assert self.mechanism is not None
        return HEADER.pack(COMPLETE if self.mechanism.complete else OK, len(challenge)) + challenge

    def rest(self) -> bytes:
        """The bytes after the negotiation."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    @staticmethod
    def refusal(error: AuthenticationError) -> bytes:
        """The message that ends a failed negotiation."""
        text = (str(error) + (TRY_AGAIN if error.outcome == "unavailable" else "")).encode()
        return HEADER.pack(BAD if error.outcome == "bad_message" else ERROR, len(text)) + text

    def _next_message(self) -> bytes | None:
        buffer = self._buffer
        if not buffer:
            return None
        status = buffer[0]
        if status not in ((START, BAD, ERROR) if self.mechanism is None else (OK, COMPLETE, BAD, ERROR)):
            raise AuthenticationError(f"not a message of SASL: status {status}", "bad_message")
        if len(buffer) < HEADER.size:
            return None
        length = HEADER.unpack_from(buffer)[1]
        # Java's client sends BAD, with a text, instead of START if it finds no ticket.
        if status == START and length > MAX_NAME_BYTES:
            raise AuthenticationError(
                f"the name of a mechanism has {length} bytes; {MAX_NAME_BYTES} are allowed", "bad_message"
            )
        most = input_limits().sasl_message_bytes
        if length > most:
            setting = exceeded("sasl_message_bytes")
            raise AuthenticationError(
                f"a message of SASL has {length} bytes; {most} are allowed ({setting})", "bad_message"
            )
        end = HEADER.size + length
        if len(buffer) < end:
            return None
        payload = bytes(buffer[HEADER.size : end])
        del buffer[:end]
        if status in (BAD, ERROR):
            raise AuthenticationError("the client gave up", "refused_by_client")
        return payload

    def _start(self, name: bytes) -> None:
        text = name.decode("ascii", "replace")
        make = self._mechanisms.get(text)
        if make is None:
            offered = ", ".join(self._mechanisms)
            raise AuthenticationError(f"Unsupported mechanism type {text!r}; this server has {offered}", "bad_message")
        self.mechanism = make()
        self.mechanism_name = name.decode("ascii")
