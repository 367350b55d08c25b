"""Fuzz targets before authentication: SASL's messages, tokens, and the rules of a site."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from functools import cache
from pathlib import Path

from hms_cache.authentication.delegation.proxy_users import ProxyUsers
from hms_cache.authentication.delegation.token_format import (
    MalformedTokenError,
    MasterKey,
    StoredToken,
    Token,
    TokenIdentifier,
    from_base64,
)
from hms_cache.authentication.digest_md5 import DigestLayer, DigestMd5Mechanism
from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authentication.negotiation import Negotiation
from hms_cache.authentication.plain import PlainMechanism
from hms_cache.client import authentication_of
from hms_cache.client.authentication.digest_md5 import DigestMd5Mechanism as ClientDigest
from hms_cache.client.authentication.negotiation import negotiate
from hms_cache.client.authentication.token_file import tokens_of


def _refuse(*_: object) -> None:
    raise AuthenticationError("no")


def _password_of(identifier: bytes) -> tuple[str, str, str, bytes]:
    found = TokenIdentifier.decoded(identifier)
    return found.owner, found.owner, found.real_user, b"secret"


def _digest() -> DigestMd5Mechanism:
    def password_of(identifier: bytes) -> tuple[str, str, str, bytes]:
        try:
            return _password_of(identifier)
        except MalformedTokenError as error:
            raise AuthenticationError(str(error)) from error

    return DigestMd5Mechanism(password_of, ("auth", "auth-int"))


def read_sasl(data: bytes) -> None:
    """All messages of a negotiation, with the mechanisms that do not need a KDC; none succeeds."""
    negotiation = Negotiation({"PLAIN": lambda: PlainMechanism(_refuse), "DIGEST-MD5": _digest})
    for start in range(0, len(data), 7):
        negotiation.feed(data[start : start + 7])
        while (response := negotiation.next_response()) is not None:
            mechanism = negotiation.mechanism
            assert mechanism is not None
            challenge = mechanism.step(response)
            assert not mechanism.complete, "nobody can have signed with the nonce of this run"
            negotiation.answer(challenge)


def read_digest_response(data: bytes) -> None:
    """The client's second message."""
    mechanism = _digest()
    mechanism.step(b"")
    mechanism.step(data)
    raise AssertionError("nobody can have signed with the nonce of this run")


def read_sealed(data: bytes) -> None:
    """A frame after the negotiation."""
    DigestLayer(b"s" * 16, encrypts=False).unwrap(data)
    raise AssertionError("nobody has the key")


def read_token(data: bytes) -> None:
    """What clients send to renew or cancel, and what others have written to the database."""
    for decode in (TokenIdentifier.decoded, StoredToken.decoded, MasterKey.decoded):
        try:
            found = decode(data)
            assert decode(found.encoded()) == found
        except MalformedTokenError:
            pass
    text = data.decode("latin-1")
    assert isinstance(from_base64(text), bytes)
    token = Token.from_url(text)
    assert Token.from_url(token.to_url()) == token


def read_token_file(data: bytes) -> None:
    """A container's token file from YARN, in either version."""
    for version in (b"\0", b"\1"):
        with contextlib.suppress(MalformedTokenError):
            tokens_of(b"HDTS" + version + data)
    tokens_of(data)


def read_server(data: bytes) -> None:
    """What a server sends to a client with a token; none proves that it knows the token."""
    position = 0

    def receive(size: int) -> bytes:
        nonlocal position
        found = data[position : position + size]
        position += size
        if len(found) < size:
            raise EOFError
        return found

    negotiate(ClientDigest(Token(b"identifier", b"password"), ("auth", "auth-int")), lambda _: None, receive)
    raise AssertionError("nobody can have signed with the nonce of this run")


def read_client_text(text: str) -> None:
    """How a client authenticates."""
    authentication_of(text, {})


def read_proxy_users(text: str) -> None:
    """A site's rules, and their results."""
    ProxyUsers(text, lambda user: frozenset({"g"})).refusal("a", "b", "10.0.0.1")


def read_principal(text: str) -> None:
    """A principal, and as rules."""
    for rules in ("RULE:[2:$1](.*)s/a/b/g/L DEFAULT", text):
        try:
            names = LocalNames(rules, "R")
        except ValueError:
            continue
        with contextlib.suppress(AuthenticationError):
            names.of(text)


@cache
def _tokens() -> object:
    from hms_cache.authentication.bearer_tokens import BearerOptions, BearerTokens
    from hms_cache.authentication.key_set import KeySet, KeySetOptions

    keys = KeySet(KeySetOptions(_key_document(), None, 1, 1e9, 1e9))
    keys.load()
    return BearerTokens(keys, BearerOptions(("RS256", "ES256"), "", (), "sub", 0))


@cache
def _key_document() -> str:
    import tempfile

    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt.algorithms import ECAlgorithm

    entry = json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))
    path = Path(tempfile.mkdtemp()) / "jwks.json"
    path.write_text(json.dumps({"keys": [entry | {"kid": "k", "use": "sig"}]}))
    return f"file:{path}"


def read_bearer(text: str) -> None:
    """A client's token; none is signed by the key."""
    from hms_cache.authentication.bearer_tokens import BearerTokens

    tokens = _tokens()
    assert isinstance(tokens, BearerTokens)
    tokens.check(text)
    raise AssertionError("nobody has the key")


def bearer_pieces() -> tuple[bytes, ...]:
    """Parts of tokens: headers, claims, signatures."""

    def part(told: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=")

    headers = [
        {"alg": alg, "kid": kid} for alg in ("RS256", "ES256", "none", "HS256", 7, None) for kid in ("k", 1, None)
    ]
    claims = [{"sub": "a", "exp": time.time() + 10**6}, {"sub": ["a"], "exp": "x"}, {"exp": 1e308}, []]
    return (*map(part, headers), *map(part, claims), b".", b"..", b"A" * 86, b"=", b"\0", b"e30")
