"""Messages of members as frames: length, proof, JSON. No sockets.

Before anything else is read, both sides prove that they know the shared secret. Each sends a random challenge, and
answers the other's with an HMAC that also contains its role, so that an answer cannot be sent back. Both challenges
determine a key for this connection. Each frame has an HMAC over its direction, its number and its text, so that frames
cannot be changed, repeated, left out or reordered.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import struct
from typing import Final

CHALLENGE_BYTES: Final = 32
PROOF_BYTES: Final = 32
MAX_FRAME_BYTES: Final = 1024
"""Maximum size. A message is a word, a number and at most eight more (`scopes.MAX_TABLES`), of 20 digits; the name of a
member has 32 letters."""

HEADER: Final = struct.Struct(">I")


class BadFrameError(Exception):
    """The received bytes are not a valid frame: no proof of the secret, too long, or changed in transit."""


def challenge() -> bytes:
    """The handshake of one side of a connection."""
    return secrets.token_bytes(CHALLENGE_BYTES)


def proof(secret: bytes, role: bytes, own: bytes, other: bytes) -> bytes:
    """Proves that this side, in this role, knows the secret and has received the other's challenge."""
    return hmac.digest(secret, b"hms-cache lease 1 " + role + own + other, hashlib.sha256)


def is_proof(given: bytes, secret: bytes, role: bytes, own: bytes, other: bytes) -> bool:
    """Whether the other side, in its role, gave its proof. Takes the same time for every input."""
    return hmac.compare_digest(given, proof(secret, role, own, other))


class Channel:
    """The frames of one connection, after both sides have proved that they know the secret."""

    def __init__(self, secret: bytes, of_caller: bytes, of_called: bytes, *, calls: bool) -> None:
        key = hmac.digest(secret, b"hms-cache lease 1 frames" + of_caller + of_called, hashlib.sha256)
        self._keys = (key + b">", key + b"<") if calls else (key + b"<", key + b">")
        self._sent = 0
        self._received = 0

    def encode(self, message: tuple[str | int | None, ...]) -> bytes:
        """One frame."""
        text = json.dumps(message, separators=(",", ":")).encode()
        sealed = self._seal(self._keys[0], self._sent, text)
        self._sent += 1
        return HEADER.pack(PROOF_BYTES + len(text)) + sealed + text

    def decode(self, body: bytes) -> list[str | int | None]:
        """The message of a frame's body. Raises BadFrameError."""
        sealed, text = body[:PROOF_BYTES], body[PROOF_BYTES:]
        if not hmac.compare_digest(sealed, self._seal(self._keys[1], self._received, text)):
            raise BadFrameError("a frame without its proof")
        self._received += 1
        try:
            message = json.loads(text)
        except ValueError as error:
            raise BadFrameError("a frame that is no message") from error
        if not isinstance(message, list) or not message or not isinstance(message[0], str):
            raise BadFrameError("a frame that is no message")
        if not all(one is None or type(one) is int for one in message[1:]):
            raise BadFrameError("a frame that is no message")
        return message

    @staticmethod
    def _seal(key: bytes, number: int, text: bytes) -> bytes:
        return hmac.digest(key, number.to_bytes(8, "big") + text, hashlib.sha256)


def body_length(header: bytes) -> int:
    """The length of a frame's body. Raises BadFrameError."""
    (length,) = HEADER.unpack(header)
    if not PROOF_BYTES < length <= MAX_FRAME_BYTES:
        raise BadFrameError(f"a frame of {length} bytes")
    return int(length)
