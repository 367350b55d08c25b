"""Delegation tokens in files: as text, and in the files that YARN and Spark give to containers.

Hadoop's files (`Credentials`, hadoop-common 3.3) begin with ``HDTS`` and a version: 0 is written with Hadoop's own
numbers, 1 is a message of protocol buffers (`CredentialsProto` of Security.proto).
"""

from __future__ import annotations

from collections.abc import Iterator

from hms_cache.authentication.delegation.token_format import (
    KIND,
    MalformedTokenError,
    Reader,
    Token,
)
from hms_cache.client.authentication.secret_files import read_bytes
from hms_cache.client.errors import CredentialsError

_MAGIC = b"HDTS"

MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of Hadoop's file, which contains tokens of all services of a job."""

_WHAT = "a delegation token"


def read_token(path: str, service: str = "") -> Token:
    """Reads the metastore's token for this service (`hive.metastore.token.signature`) from a file of either form.

    Raises CredentialsError.
    """
    content = read_bytes(path, _WHAT, MAX_BYTES)
    try:
        if not content.startswith(_MAGIC):
            return Token.from_url(content.strip().decode("ascii", "replace"))
        found = [token for token in tokens_of(content) if token.kind == KIND]
    except MalformedTokenError:
        # Not `from`: no part of the file may be shown.
        raise CredentialsError(f"{path} contains no delegation token, neither as text nor as a Hadoop file") from None
    for token in found:
        if token.service == service.encode():
            return token
    services = sorted(token.service.decode("utf-8", "backslashreplace") for token in found)
    there = f"it has tokens for {', '.join(map(repr, services))} (service=)" if services else "it has none at all"
    raise CredentialsError(f"{path} has no metastore token for the service {service!r}; {there}")


def tokens_of(content: bytes) -> list[Token]:
    """Returns all tokens in a Hadoop file. Raises MalformedTokenError."""
    version = content[len(_MAGIC) : len(_MAGIC) + 1]
    rest = content[len(_MAGIC) + 1 :]
    if not content.startswith(_MAGIC) or version not in (b"\0", b"\1"):
        raise MalformedTokenError("it is not a token file of Hadoop")
    return _of_writable(rest) if version == b"\0" else _of_protobuf(rest)


def _of_writable(data: bytes) -> list[Token]:
    reader = Reader(data)
    tokens: list[Token] = []
    for _ in range(reader.number()):
        reader.sized()  # the alias
        tokens.append(Token(reader.sized(), reader.sized(), reader.sized(), reader.sized()))
    return tokens  # secrets of other kinds follow


def _of_protobuf(data: bytes) -> list[Token]:
    length, start = _varint(data, 0)
    if start + length > len(data):
        raise MalformedTokenError("truncated")
    tokens: list[Token] = []
    for number, entry in _fields(data[start : start + length]):
        if number != 1:
            continue  # a secret
        for inner, value in _fields(entry):
            if inner == 2:
                parts = dict(_fields(value))
                tokens.append(Token(*(parts.get(field, b"") for field in (1, 2, 3, 4))))
    return tokens


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the fields by number; all of them have a length. Raises MalformedTokenError."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        if key & 7 != 2:
            raise MalformedTokenError("a field has an unexpected type")
        length, position = _varint(data, position)
        if position + length > len(data):
            raise MalformedTokenError("truncated")
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Returns a number and the position after it. Raises MalformedTokenError."""
    value = 0
    for index in range(position, min(position + 5, len(data))):
        value |= (data[index] & 0x7F) << (7 * (index - position))
        if data[index] < 0x80:
            return value, index + 1
    raise MalformedTokenError("a number is invalid")
