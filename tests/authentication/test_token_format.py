"""Tokens, identifiers and keys in Hadoop's bytes. The texts were made by Hive 4.0.1's and Hadoop 3.3's classes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.authentication.delegation.token_format import (
    MalformedTokenError,
    MasterKey,
    StoredToken,
    Token,
    TokenIdentifier,
    from_base64,
    to_base64,
)

NAMES = st.text(max_size=40)
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
IDENTIFIERS = st.builds(TokenIdentifier, NAMES, NAMES, NAMES, LONGS, LONGS, INTS, INTS)


@given(IDENTIFIERS)
def test_an_identifier_is_read_as_it_was_written(identifier: TokenIdentifier) -> None:
    assert TokenIdentifier.decoded(identifier.encoded()) == identifier


@given(st.builds(Token, st.binary(max_size=300), st.binary(max_size=40), st.binary(max_size=9), st.binary(max_size=9)))
def test_a_token_is_read_as_it_was_written(token: Token) -> None:
    text = token.to_url()
    assert Token.from_url(text) == token == Token.from_url(text + "=" * (-len(text) % 4))
    assert not set(text) & set("=+/")


@given(st.builds(StoredToken, st.binary(max_size=40), LONGS), st.builds(MasterKey, INTS, LONGS, st.binary(max_size=64)))
def test_what_the_database_keeps_is_read_as_it_was_written(stored: StoredToken, key: MasterKey) -> None:
    assert StoredToken.decoded(stored.encoded()) == stored
    assert MasterKey.decoded(key.encoded()) == key


@given(st.binary(max_size=200), st.booleans())
def test_base64_with_and_without_padding(data: bytes, padded: bool) -> None:
    assert from_base64(to_base64(data, padded=padded)) == data


@given(IDENTIFIERS, st.data())
def test_what_is_cut_off_or_longer_is_refused(identifier: TokenIdentifier, data: st.DataObject) -> None:
    encoded = identifier.encoded()
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    for wrong in (cut, encoded + b"\0", b"\1" + encoded[1:]):
        with pytest.raises(MalformedTokenError):
            TokenIdentifier.decoded(wrong)


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode()))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (TokenIdentifier.decoded, StoredToken.decoded, MasterKey.decoded):
        with contextlib.suppress(MalformedTokenError):
            decode(data)
    with contextlib.suppress(MalformedTokenError):
        Token.from_url(data.decode("latin-1"))


def test_a_key_without_a_secret() -> None:
    """Java writes -1 for its length."""
    assert MasterKey.decoded(b"\x03\x05\xff") == MasterKey(3, 5, b"")
