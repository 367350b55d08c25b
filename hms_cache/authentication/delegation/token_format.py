"""Bytes of delegation tokens, as Hadoop and Hive write them.

Formats: Hadoop's `WritableUtils`, `Text`, `AbstractDelegationTokenIdentifier`, `DelegationKey` and `Token` (3.3),
Hive's `MetastoreDelegationTokenSupport` and `TokenStoreDelegationTokenSecretManager` (3.1.3, 4.0.1). Tokens and keys
that Java's servers have written to the database are read here, and the reverse.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import NamedTuple

KIND = b"HIVE_DELEGATION_TOKEN"

MAX_TEXT_BYTES = 767
"""Of what a token or key becomes in the database: the columns of Hive's schema end there."""

_VERSION = 0
_LONG = struct.Struct("!q")


class MalformedTokenError(ValueError):
    """Bytes that are no token, identifier or key."""


class TokenIdentifier(NamedTuple):
    """Who a token stands for, and how long. Times are in milliseconds since 1970."""

    owner: str
    """As who asked for it wrote the name: often a principal."""
    renewer: str
    """A short name; empty: nobody may renew it."""
    real_user: str
    """Who asked for the token of somebody else; empty: the owner did."""
    issued_ms: int
    max_ms: int
    """After it the token is of no use."""
    sequence: int
    master_key_id: int

    def encoded(self) -> bytes:
        """Its bytes: what the key signs, and the client's name in DIGEST-MD5."""
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
    """What a client is given."""

    identifier: bytes
    password: bytes
    kind: bytes = KIND
    service: bytes = b""
    """Which of several metastores it is for: `hive.metastore.token.signature` of the client, which sets it."""

    def to_url(self) -> str:
        """The text that travels: base64 for URLs, without padding."""
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
    """What the database keeps of a token beside its identifier."""

    password: bytes
    renew_ms: int
    """Until when it was last renewed."""

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
    """What tokens are signed with."""

    key_id: int
    expiry_ms: int
    """Tokens that it signed have ended by then."""
    secret: bytes

    def encoded(self) -> bytes:
        """`DelegationKey.write`."""
        return _number(self.key_id) + _number(self.expiry_ms) + _sized(self.secret)

    @classmethod
    def decoded(cls, data: bytes) -> MasterKey:
        """Raises MalformedTokenError. A key without a secret is one: -1 stands for its length."""
        reader = Reader(data)
        key_id, expiry_ms, length = reader.number(), reader.number(), reader.number()
        found = cls(key_id, expiry_ms, reader.take(max(length, 0)))
        reader.end()
        return found


def to_base64(data: bytes, *, padded: bool = True) -> str:
    """As the database has it: Hive 4 pads, Hive 3 does not."""
    text = base64.urlsafe_b64encode(data).decode()
    return text if padded else text.rstrip("=")


def from_base64(text: str) -> bytes:
    """Of either form. Raises MalformedTokenError."""
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedTokenError("not base64 for URLs") from error


def _number(value: int) -> bytes:
    """Hadoop's variable-length integer of up to 64 bits."""
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
"""Hadoop's `Text` is the length in bytes and UTF-8."""


class Reader:
    """Takes values off the front of some bytes; each method raises MalformedTokenError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise MalformedTokenError("cut off")
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
