"""DIGEST-MD5 (RFC 2831) for clients with a delegation token: the server's side, and what both sides compute.

As Hadoop's clients implement it: the user name is the token's identifier and the password is the token's, both in
base64; the realm is `default` and the digest URI `null/default` (`SaslRpcServer`, hadoop-common 3.3; Java's
`DigestMD5Client`). The password is random, so the weakness of MD5 matters less than for passwords of people; the token
was requested over Kerberos.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import struct
from collections.abc import Callable, Sequence
from hashlib import md5
from typing import Any

from hms_cache.authentication.mechanism import AuthenticationError, Mechanism

REALM = "default"
DIGEST_URI = "null/default"
NONCE_COUNT = b"00000001"
"""A nonce is used once."""

MAX_RESPONSE_BYTES = 4096
"""Maximum size of a message (RFC 2831, 2.1.2)."""

_LARGEST_TOKEN_BYTES = 64 * 1024
"""Default size of messages that a client accepts (RFC 2831, 2.1.2: maxbuf)."""

_OVERHEAD_BYTES = 26
"""Maximum overhead of a protected message: padding, code, type and number."""

_PIECE_BYTES = 16 * 1024
"""Piece size for a long message: 3DES takes half a millisecond for a piece, without releasing the GIL."""

_DIRECTIVE = re.compile(rb'\s*+([A-Za-z-]{1,32}+)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^",\s]*+))\s*+(?:,|$)', re.DOTALL)
_NO_BODY = b":" + b"0" * 32

PasswordOf = Callable[[bytes], tuple[str, str, str, bytes]]
"""Returns (user, principal, real user, password) for a token's identifier. May block. Raises AuthenticationError."""


class DigestMd5Mechanism(Mechanism):
    """Authentication of one client by its token."""

    def __init__(self, password_of: PasswordOf, qualities: Sequence[str]) -> None:
        super().__init__()
        self._password_of = password_of
        self._qualities = tuple(qualities)
        self._nonce = b""

    def step(self, response: bytes) -> bytes:
        """See `Mechanism.step`: sends the challenge, then checks the response."""
        if self._nonce:
            return self._check(response)
        if response:
            raise AuthenticationError("DIGEST-MD5: a response where none is expected", "bad_message")
        self._nonce = base64.b64encode(secrets.token_bytes(30))
        cipher = b',cipher="3des"' if "auth-conf" in self._qualities else b""
        return b'realm="%s",nonce="%s",charset=utf-8,algorithm=md5-sess,qop="%s",maxbuf=65536%s' % (
            REALM.encode(),
            self._nonce,
            ",".join(self._qualities).encode(),
            cipher,
        )

    def _check(self, response: bytes) -> bytes:
        response_fields = directives(response)
        quality = response_fields.get("qop", b"auth").decode("ascii", "replace")
        name, cnonce, uri = (
            response_fields.get("username", b""),
            response_fields.get("cnonce", b""),
            response_fields.get("digest-uri", b""),
        )
        for is_right, what in (
            (response_fields.get("nonce") == self._nonce, "another nonce"),
            (response_fields.get("nc") == NONCE_COUNT, "another count of the nonce"),
            (response_fields.get("realm", b"").decode("utf-8", "replace") == REALM, "another realm"),
            (uri.decode("utf-8", "replace").lower() == DIGEST_URI, "another digest-uri"),
            (bool(cnonce), "no cnonce"),
            (response_fields.get("authzid", name) == name, "a token cannot act for another one"),
            (response_fields.get("charset", b"utf-8").lower() == b"utf-8", "another charset"),
            (re.fullmatch(rb"[0-9]{1,9}", response_fields.get("maxbuf", b"0")) is not None, "maxbuf is not a number"),
        ):
            if not is_right:
                raise AuthenticationError(f"DIGEST-MD5: {what}", "bad_message")
        if quality not in self._qualities:
            raise AuthenticationError(
                f"DIGEST-MD5: the server's qualities of protection are {', '.join(self._qualities)}", "refused"
            )
        if quality == "auth-conf" and response_fields.get("cipher") != b"3des":
            raise AuthenticationError("DIGEST-MD5: the server's cipher is 3des", "refused")
        try:
            identifier = base64.b64decode(name, validate=True)
        except (binascii.Error, ValueError) as error:
            raise AuthenticationError("DIGEST-MD5: the name is no token's identifier", "bad_message") from error
        user, principal, real_user, password = self._password_of(identifier)
        digest = Digest(
            name, REALM.encode(), password, self._nonce, cnonce, quality, uri, response_fields.get("authzid")
        )
        if not hmac.compare_digest(digest.of_client(), response_fields.get("response", b"")):
            raise AuthenticationError("DIGEST-MD5: the password of the token is wrong")
        self.user, self.principal, self.real_user = user, principal, real_user
        if quality != "auth":
            largest = int(response_fields.get("maxbuf", b"0")) or _LARGEST_TOKEN_BYTES
            self.layer = DigestLayer(digest.session, encrypts=quality == "auth-conf", largest_token_bytes=largest)
        self.complete = True
        return b"rspauth=" + digest.of_server()


class Digest:
    """The values that both sides compute from the password and the exchanged messages."""

    def __init__(
        self,
        name: bytes,
        realm: bytes,
        password: bytes,
        nonce: bytes,
        cnonce: bytes,
        quality: str,
        uri: bytes,
        authzid: bytes | None = None,
    ) -> None:
        start = md5(b":".join((name, realm, base64.b64encode(password))), usedforsecurity=False).digest()
        a1 = b":".join((start, nonce, cnonce, *(() if authzid is None else (authzid,))))
        self.session = md5(a1, usedforsecurity=False).digest()
        """What the keys of messages come from."""
        self._parts = (self.session.hex().encode(), nonce, NONCE_COUNT, cnonce, quality.encode())
        self._uri = uri + (b"" if quality == "auth" else _NO_BODY)

    def of_client(self) -> bytes:
        """What shows the server that the client knows the password."""
        return self._proof(b"AUTHENTICATE")

    def of_server(self) -> bytes:
        """What shows the client that the server knows it."""
        return self._proof(b"")

    def _proof(self, method: bytes) -> bytes:
        return _hex(b":".join((*self._parts, _hex(method + b":" + self._uri))))


class DigestLayer:
    """auth-int and auth-conf (RFC 2831, 2.3 and 2.4). Messages are numbered per direction."""

    def __init__(
        self,
        session: bytes,
        *,
        encrypts: bool,
        is_server: bool = True,
        largest_token_bytes: int = _LARGEST_TOKEN_BYTES,
    ) -> None:
        """:param largest_token_bytes: maximum message size that the client accepts; values below 1 KiB are raised to
        it, as they would cost more than the reply."""
        self.piece_bytes = max(1024, min(largest_token_bytes - _OVERHEAD_BYTES, 32 * 1024))

        def signing(way: bytes) -> bytes:
            return md5(
                session + b"Digest session key to %s signing key magic constant" % way, usedforsecurity=False
            ).digest()

        out, back = (
            (b"server-to-client", b"client-to-server") if is_server else (b"client-to-server", b"server-to-client")
        )
        self._own_key, self._other_key = signing(out), signing(back)
        self._sent = self._received = 0
        self._seal = self._open = None
        if encrypts:
            self._seal = _triple_des(session, out).encryptor()
            self._open = _triple_des(session, back).decryptor()

    def wrap(self, data: bytes | memoryview) -> bytes:
        """The protected message for `data`."""
        plain = bytes(data)
        number = struct.pack("!I", self._sent)
        self._sent = (self._sent + 1) & 0xFFFFFFFF
        mac = _mac(self._own_key, number, plain)
        if self._seal is None:
            return plain + mac + b"\0\1" + number
        padding = 8 - (len(plain) + len(mac)) % 8
        sealed: bytes = self._seal.update(plain + bytes([padding]) * padding + mac)
        return sealed + b"\0\1" + number

    def unwrap(self, data: bytes) -> bytes:
        """The data of a protected message. Raises AuthenticationError if it was changed, repeated, omitted or
        reordered."""
        number = struct.pack("!I", self._received)
        if len(data) < 16 or data[-6:] != b"\0\1" + number:
            raise AuthenticationError("DIGEST-MD5: a message out of its order", "bad_message")
        body = data[:-6]
        if self._open is not None:
            if len(body) % 8:
                raise AuthenticationError("DIGEST-MD5: a truncated message", "bad_message")
            opened = _by_pieces(self._open.update, body)
            # The last byte of the padding precedes the code; a wrong one fails with the code, with the same text.
            padding = opened[-11] if len(opened) > 10 else 0
            is_possible = 1 <= padding <= min(8, len(opened) - 10)
            body = opened[: -10 - padding] + opened[-10:] if is_possible else b"\0" * 10
        plain, mac = body[:-10], body[-10:]
        if not hmac.compare_digest(mac, _mac(self._other_key, number, plain)):
            raise AuthenticationError("DIGEST-MD5: a message was changed on its way", "bad_message")
        self._received = (self._received + 1) & 0xFFFFFFFF
        return plain


def _by_pieces(update: Callable[[memoryview], bytes], body: bytes) -> bytes:
    """Processes a long body piece by piece, so that other threads can run in between."""
    if len(body) <= _PIECE_BYTES:
        return update(memoryview(body))
    view = memoryview(body)
    return b"".join(update(view[start : start + _PIECE_BYTES]) for start in range(0, len(view), _PIECE_BYTES))


def _triple_des(session: bytes, way: bytes) -> Any:
    """The cipher of one direction: two keys of 56 bits, the first one used again, in CBC mode across messages."""
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

    try:
        from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    except ImportError:  # cryptography < 43
        from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES

    key = md5(session + b"Digest H(A1) to %s sealing key magic constant" % way, usedforsecurity=False).digest()
    first, second = _with_parity(key[:7]), _with_parity(key[7:14])
    return Cipher(TripleDES(first + second + first), modes.CBC(key[8:]))


def _with_parity(key: bytes) -> bytes:
    """Converts 56 bits to a DES key: seven bits per byte, followed by an odd parity bit."""
    bits = int.from_bytes(key, "big")
    parts = [(bits >> shift) & 0x7F for shift in range(49, -1, -7)]
    return bytes(part << 1 | (part.bit_count() + 1) % 2 for part in parts)


def _mac(key: bytes, number: bytes, data: bytes) -> bytes:
    return hmac.digest(key, number + data, "md5")[:10]


def _hex(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).hexdigest().encode()


def directives(response: bytes) -> dict[str, bytes]:
    """Parses `name=value` and `name="value"`, separated by commas, from either side. Raises AuthenticationError."""
    if len(response) > MAX_RESPONSE_BYTES:
        raise AuthenticationError(f"DIGEST-MD5: a response of {len(response)} bytes", "bad_message")
    found: dict[str, bytes] = {}
    position = 0
    while position < len(response):
        match = _DIRECTIVE.match(response, position)
        name = match[1].decode().lower() if match else ""
        if match is None or name in found:
            raise AuthenticationError("DIGEST-MD5: not a response", "bad_message")
        quoted = match[2]
        found[name] = re.sub(rb"\\(.)", rb"\1", quoted, flags=re.DOTALL) if quoted is not None else match[3]
        position = match.end()
    return found
