"""The client's side of DIGEST-MD5 (RFC 2831) with a delegation token, as Hadoop's clients use it."""

from __future__ import annotations

import base64
import hmac
import secrets

from hms_cache.authentication.delegation.token_format import Token
from hms_cache.authentication.digest_md5 import DIGEST_URI, NONCE_COUNT, Digest, DigestLayer, directives
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.client.authentication.mechanism import ClientMechanism, chosen_quality, no_quality
from hms_cache.client.errors import AuthenticationRefusedError, CredentialsError

_LARGEST_TOKEN_BYTES = 64 * 1024
"""The maximum that Hadoop's clients announce. Java servers send longer messages anyway."""


class DigestMd5Mechanism(ClientMechanism):
    """Authenticates with a token. The server proves that it knows the token's password, too."""

    name = "DIGEST-MD5"
    remedy = "the token may have expired, been cancelled, or belong to another metastore: get a new one"

    def __init__(self, token: Token, qualities: tuple[str, ...]) -> None:
        """:param qualities: accepted qualities of protection, the preferred one first."""
        super().__init__()
        self._token = token
        self._qualities = qualities
        self._quality = ""
        self._largest = 0
        self._digest: Digest | None = None
        self._is_shown = False

    def first(self) -> bytes:
        return b""

    def step(self, challenge: bytes) -> bytes:
        if self._digest is None:
            return self._response(challenge)
        self._check(challenge)
        return b""

    def end(self, challenge: bytes) -> None:
        if not self._is_shown:
            self._check(challenge)
        if self._quality != "auth":
            assert self._digest is not None
            self.layer = DigestLayer(
                self._digest.session,
                encrypts=self._quality == "auth-conf",
                is_server=False,
                largest_token_bytes=self._largest,
            )

    def _response(self, challenge: bytes) -> bytes:
        try:
            given = directives(challenge)
        except AuthenticationError as error:
            raise AuthenticationRefusedError(f"{error} (from the metastore)") from error
        nonce, realm = given.get("nonce", b""), given.get("realm", b"")
        largest = given.get("maxbuf", b"65536")
        if given.get("algorithm", b"") != b"md5-sess" or not nonce or not largest.isdigit() or len(largest) > 9:
            raise AuthenticationRefusedError("DIGEST-MD5: the metastore's challenge cannot be used")
        if any(byte in nonce + realm for byte in b'"\\') or not realm:
            raise AuthenticationRefusedError("DIGEST-MD5: the metastore's challenge cannot be used")
        offered = frozenset(one.strip().decode("ascii", "replace") for one in given.get("qop", b"auth").split(b","))
        ciphers = {one.strip() for one in given.get("cipher", b"").split(b",")}
        if b"3des" not in ciphers:  # the others are not secure (RFC 6331)
            offered -= {"auth-conf"}
        quality = chosen_quality(offered, self._qualities)
        if quality is None:
            raise AuthenticationRefusedError(f"DIGEST-MD5: {no_quality(offered, self._qualities)}")
        if quality == "auth-conf":
            _require_cipher()
        name = base64.b64encode(self._token.identifier)
        cnonce = base64.b64encode(secrets.token_bytes(30))
        uri = DIGEST_URI.encode()
        self._quality, self._largest = quality, int(largest)
        self._digest = Digest(name, realm, self._token.password, nonce, cnonce, quality, uri)
        self.complete = True
        return (
            b'charset=utf-8,username="%s",realm="%s",nonce="%s",nc=%s,cnonce="%s",digest-uri="%s",maxbuf=%d,'
            b"response=%s,qop=%s"
            % (
                name,
                realm,
                nonce,
                NONCE_COUNT,
                cnonce,
                uri,
                _LARGEST_TOKEN_BYTES,
                self._digest.of_client(),
                quality.encode(),
            )
        ) + (b",cipher=3des" if quality == "auth-conf" else b"")

    def _check(self, challenge: bytes) -> None:
        """Raises AuthenticationRefusedError if the server does not prove that it knows the password."""
        _, _, shown = challenge.partition(b"rspauth=")
        if self._digest is None or not hmac.compare_digest(shown.strip(b'" '), self._digest.of_server()):
            raise AuthenticationRefusedError(
                "DIGEST-MD5: the metastore did not prove that it knows the token's password, so it is another one"
            )
        self._is_shown = True


def _require_cipher() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise CredentialsError(
            "a delegation token with protection=auth-conf needs the package cryptography: pip install"
            " 'hms-cache[kerberos]', or use protection=auth-int"
        ) from error
