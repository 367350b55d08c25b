"""JSON Web Tokens of clients (RFC 7519, RFC 8725): checks signature, issuer, audience and times.

Facts about Hive: `JWTValidator` (4.0.1) checks the signature by the JWKS and the times, and uses the subject as the
user. Here, issuer and audience are checked as well, and only the configured algorithms are accepted.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hms_cache.authentication.key_set import IssuerKey, KeySet, KeySetError
from hms_cache.authentication.local_names import MAX_PRINCIPAL_CHARACTERS
from hms_cache.authentication.mechanism import AuthenticationError, Identity
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.values import frozen

MECHANISM = "JWT"

MAX_KEPT = 10_000
"""Maximum number of tokens whose signature need not be checked again. A token takes some 300 bytes, plus its groups and
rights."""

MAX_KEPT_BYTES = 32 * 1024 * 1024
"""Maximum size of all of them. A token of a user in 200 groups takes 20 kB, and a user may have any number of
tokens."""

_TOKEN_BYTES = 300
_PLACE_BYTES = 32
"""Memory of an entry in a set of texts."""

_MAX_KEYS_TRIED = 16
"""Maximum number of keys tried for a token that names no key."""


@frozen
class BearerOptions:
    """Requirements for tokens."""

    algorithms: tuple[str, ...]
    """Accepted signature algorithms. The settings allow only asymmetric ones, and never `none`."""
    issuer: str
    """Required issuer; empty: any."""
    audience: tuple[str, ...]
    """The token must name one of these; empty: the audience is not checked."""
    user_claim: str
    leeway_s: float
    groups_claim: str = ""
    """Claim with the user's groups: a list, or a single group. Empty: tokens name no groups."""
    rights_claim: str = ""
    """Claim with the bearer's rights on the management port: a list, or words. Empty: tokens name no rights."""


class Bearer(NamedTuple):
    """The sender of a token, and the rights that the token names."""

    identity: Identity
    rights: frozenset[str]


class _CachedToken(NamedTuple):
    """A checked token."""

    bearer: Bearer
    expiry_s: float
    generation: int
    """Generation of the keys that the token was checked with."""

    @property
    def size_bytes(self) -> int:
        """Approximate memory of the entry."""
        identity, rights = self.bearer
        names = (*identity.groups, *rights, identity.user, identity.principal)
        return _TOKEN_BYTES + sum(sys.getsizeof(name) + _PLACE_BYTES for name in names)


class BearerTokens:
    """Checks tokens. Thread-safe."""

    def __init__(self, keys: KeySet, options: BearerOptions, now_s: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._options = options
        self._now_s = now_s
        self._lock = threading.Lock()
        """Guards `_kept`."""
        self._kept: OrderedDict[bytes, _CachedToken] = OrderedDict()
        """By digest, least recently used first."""
        self.kept_bytes = 0

    def cached_identity(self, token: str) -> Identity | None:
        """The identity for a token that was checked before and is still valid; None otherwise. Does not block."""
        bearer = self.cached_bearer(token)
        return None if bearer is None else bearer.identity

    def check(self, token: str) -> Identity:
        """The identity for a token. May block on the server of the keys. Raises AuthenticationError."""
        return self.check_bearer(token).identity

    def cached_bearer(self, token: str) -> Bearer | None:
        """Like `known`. Returns None for every token if the keys are due to be read again; the check of this token then
        reads them. Otherwise a key that the issuer has removed would be trusted as long as all tokens are known."""
        if not self._keys.is_current:
            return None
        digest = _digest(token)
        with self._lock:
            found = self._kept.get(digest)
            if found is None:
                return None
            if found.expiry_s <= self._now_s() or found.generation != self._keys.generation:
                self._forget(digest)
                return None
            self._kept.move_to_end(digest)
            return found.bearer

    def check_bearer(self, token: str) -> Bearer:
        """Like `check`."""
        try:
            return self._checked(token)
        except AuthenticationError:
            raise
        except Exception as error:  # JSON nesting and numbers beyond limits of Python
            raise AuthenticationError("not a JSON Web Token", "bad_message") from error

    def _checked(self, token: str) -> Bearer:
        import jwt

        most = input_limits().bearer_token_bytes
        if len(token) > most:
            setting = exceeded("bearer_token_bytes")
            raise AuthenticationError(f"the token has more than {most} bytes ({setting})", "bad_message")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise AuthenticationError("not a JSON Web Token", "bad_message") from error
        if "crit" in header:  # RFC 7515, 4.1.11: reject unknown critical extensions
            raise AuthenticationError("the token needs an extension that this server does not have")
        algorithm = header.get("alg")
        if algorithm not in self._options.algorithms:
            allowed = ", ".join(self._options.algorithms)
            raise AuthenticationError(f"the token's algorithm is {algorithm!r}; this server allows {allowed}")
        key_id = header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise AuthenticationError("not a JSON Web Token", "bad_message")
        try:
            generation = self._keys.generation
            candidates = self._keys.candidates(key_id)[:_MAX_KEYS_TRIED]
        except KeySetError as error:
            raise AuthenticationError("the issuer's keys cannot be read; retry", "unavailable") from error
        claims = self._verified(token, candidates, str(algorithm))
        user = claims.get(self._options.user_claim)
        if not isinstance(user, str) or not user or len(user) > MAX_PRINCIPAL_CHARACTERS or not user.isprintable():
            raise AuthenticationError(f"the token's claim {self._options.user_claim!r} is not a user's name")
        identity = Identity(user, str(claims.get("sub", user)), MECHANISM, groups=self._groups(claims))
        bearer = Bearer(identity, rights_in(claims, self._options.rights_claim))
        self._keep(_digest(token), _CachedToken(bearer, float(claims["exp"]) + self._options.leeway_s, generation))
        return bearer

    def _keep(self, digest: bytes, kept: _CachedToken) -> None:
        size_bytes = kept.size_bytes
        with self._lock:
            self._forget(digest)
            self._kept[digest] = kept
            self.kept_bytes += size_bytes
            while len(self._kept) > MAX_KEPT or self.kept_bytes > MAX_KEPT_BYTES:
                self._forget(next(iter(self._kept)))

    def _forget(self, digest: bytes) -> None:
        """Removes a token. The caller holds the lock."""
        kept = self._kept.pop(digest, None)
        if kept is not None:
            self.kept_bytes -= kept.size_bytes

    def _groups(self, claims: dict[str, Any]) -> frozenset[str]:
        """The groups in the claims; none if the claim is missing or an empty list. Raises AuthenticationError if the
        claim is not a list of groups."""
        claim = self._options.groups_claim
        found = claims.get(claim, []) if claim else []
        texts = [found] if isinstance(found, str) else found
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise AuthenticationError(f"the token's claim {claim!r} is not a list of groups")
        return frozenset(texts)

    def _verified(self, token: str, candidates: list[IssuerKey], algorithm: str) -> dict[str, Any]:
        import jwt

        options = self._options
        for candidate in candidates:
            key = candidate.of(algorithm)
            if key is None:
                continue
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    issuer=options.issuer or None,
                    audience=list(options.audience) or None,
                    leeway=options.leeway_s,
                    options={"require": ["exp"], "verify_aud": bool(options.audience)},
                )
            except jwt.InvalidSignatureError:
                continue
            except jwt.ExpiredSignatureError as error:
                raise AuthenticationError("the token has expired") from error
            except jwt.InvalidAudienceError as error:
                raise AuthenticationError("the token is for another audience") from error
            except jwt.InvalidIssuerError as error:
                raise AuthenticationError("the token is of another issuer") from error
            except jwt.PyJWTError as error:
                raise AuthenticationError(f"the token is refused: {error}") from error
            if options.issuer and claims.get("iss") != options.issuer:  # PyJWT 2.10.0 accepted a part of it
                raise AuthenticationError("the token is of another issuer")
            return claims
        raise AuthenticationError("no key of the issuer has signed the token")


def is_token_shaped(text: str) -> bool:
    """Whether a text may be an issuer's token: three parts separated by dots. Anything else need not be checked."""
    return text.count(".") == 2


def rights_in(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """The words in a claim; none if it is missing, or is neither a text nor a list of texts.

    `name` may be a path with dots, as Keycloak's `realm_access.roles`; a claim with the whole name takes precedence.
    """
    if not name:
        return frozenset()
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return frozenset(found.split())
    return frozenset(one for one in found if isinstance(one, str)) if isinstance(found, list) else frozenset()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
