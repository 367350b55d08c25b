"""Serialization of delegation tokens, compatible with Hadoop and Hive.

Formats: Hadoop's `WritableUtils`, `Text`, `AbstractDelegationTokenIdentifier`, `DelegationKey` and `Token` (3.3),
Hive's `MetastoreDelegationTokenSupport` and `TokenStoreDelegationTokenSecretManager` (3.1.3, 4.0.1). Tokens and keys in
the database can be exchanged with Java servers in both directions.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import NamedTuple

KIND = b"HIVE_DELEGATION_TOKEN"

MAX_TEXT_BYTES = 767
"""Maximum size of an encoded token or key: the width of the columns in Hive's schema."""

_VERSION = 0
_LONG = struct.Struct("!q")


class MalformedTokenError(ValueError):
    """The bytes are not a valid token, identifier or key."""


class TokenIdentifier(NamedTuple):
    """The user that a token stands for, and its times, in epoch milliseconds."""

    owner: str
    """The name as written by the client that asked for the token: often a principal."""
    renewer: str
    """A short name; empty: nobody may renew the token."""
    real_user: str
    """The user who asked for a token for somebody else; empty: the owner did."""
    issued_ms: int
    max_ms: int
    """End of the token's validity, even if renewed."""
    sequence: int
    master_key_id: int

    def encoded(self) -> bytes:
        """The encoded identifier: the bytes that the key signs, and the client's name in DIGEST-MD5."""
        texts = b"".join(_text(name.encode()) for name in (self.owner, self.renewer, self.real_user))
        numbers = (self.issued_ms, self.max_ms, self.sequence, self.master_key_id)
        return bytes([_VERSION]) + texts + b"".join(map(_number, numbers))

    @classmethod
    def decoded(cls, data: bytes) -> TokenIdentifier:
        """Raises MalformedTokenError."""
        reader = Reader(data)
        version = reader.take(1)[0]
        if version != _VERSION:
            raise MalformedTokenError(f"an identifier of version {version}")
        owner, renewer, real_user = reader.name(), reader.name(), reader.name()
        found = cls(owner, renewer, real_user, reader.number(), reader.number(), reader.number(), reader.number())
        reader.end()
        return found


class Token(NamedTuple):
    """The token as given to a client."""

    identifier: bytes
    password: bytes
    kind: bytes = KIND
    service: bytes = b""
    """The metastore that the token is for, if there are several: `hive.metastore.token.signature`, set by the
    client."""

    def to_url(self) -> str:
        """The text form: URL-safe base64 without padding."""
        parts = (_sized(self.identifier), _sized(self.password), _text(self.kind), _text(self.service))
        return base64.urlsafe_b64encode(b"".join(parts)).decode().rstrip("=")

    @classmethod
    def from_url(cls, text: str) -> Token:
        """Raises MalformedTokenError."""
        reader = Reader(from_base64(text))
        found = cls(reader.sized(), reader.sized(), reader.sized(), reader.sized())
        reader.end()
        return found


class StoredToken(NamedTuple):
    """The value that the database stores for a token's identifier."""

    password: bytes
    renew_ms: int
    """End of the current renewal period."""

    def encoded(self) -> bytes:
        """`MetastoreDelegationTokenSupport.encodeDelegationTokenInformation`."""
        return _sized(self.password) + _LONG.pack(self.renew_ms)

    @classmethod
    def decoded(cls, data: bytes) -> StoredToken:
        """Raises MalformedTokenError."""
        reader = Reader(data)
        found = cls(reader.sized(), _LONG.unpack(reader.take(_LONG.size))[0])
        reader.end()
        return found


class MasterKey(NamedTuple):
    """A key that signs tokens."""

    key_id: int
    expiry_ms: int
    """All tokens signed with it have expired by then."""
    secret: bytes

    def encoded(self) -> bytes:
        """`DelegationKey.write`."""
        return _number(self.key_id) + _number(self.expiry_ms) + _sized(self.secret)

    @classmethod
    def decoded(cls, data: bytes) -> MasterKey:
        """Raises MalformedTokenError. A key without a secret is valid: its length is -1."""
        reader = Reader(data)
        key_id, expiry_ms, length = reader.number(), reader.number(), reader.number()
        found = cls(key_id, expiry_ms, reader.take(max(length, 0)))
        reader.end()
        return found


def to_base64(data: bytes, *, padded: bool = True) -> str:
    """The text form in the database: Hive 4 pads, Hive 3 does not."""
    text = base64.urlsafe_b64encode(data).decode()
    return text if padded else text.rstrip("=")


def from_base64(text: str) -> bytes:
    """Accepts both forms. Raises MalformedTokenError."""
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedTokenError("not base64 for URLs") from error


def _number(value: int) -> bytes:
    """Encodes Hadoop's variable-length integer of up to 64 bits."""
    if -112 <= value <= 127:
        return value.to_bytes(1, "big", signed=True)
    head = -112
    if value < 0:
        value, head = ~value, -120
    size = (value.bit_length() + 7) // 8
    return (head - size).to_bytes(1, "big", signed=True) + value.to_bytes(size, "big")


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data


_text = _sized
"""Hadoop's `Text`: the length in bytes, then UTF-8."""


class Reader:
    """Reads values from bytes, front to back. Each method raises MalformedTokenError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise MalformedTokenError("truncated")
        found = self._data[self._position : end]
        self._position = end
        return found

    def number(self) -> int:
        head = int.from_bytes(self.take(1), "big", signed=True)
        if head >= -112:
            return head
        is_negative = head < -120
        value = int.from_bytes(self.take(-(head + (120 if is_negative else 112))), "big")
        if value.bit_length() > 63:
            raise MalformedTokenError("a number of more than 64 bits")
        return ~value if is_negative else value

    def sized(self) -> bytes:
        return self.take(self.number())

    def name(self) -> str:
        try:
            return self.sized().decode()
        except UnicodeDecodeError as error:
            raise MalformedTokenError("a name is not UTF-8") from error

    def end(self) -> None:
        if self._position != len(self._data):
            raise MalformedTokenError("bytes after the end")
