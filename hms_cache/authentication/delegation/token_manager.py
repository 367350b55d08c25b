"""Issues, renews, cancels and checks delegation tokens.

Rules: `MetastoreDelegationTokenManager` and `TokenStoreDelegationTokenSecretManager` (Hive 4.0.1) with `DBTokenStore`,
the only store supported: a token is valid on every server of the set, Java's included, and survives restarts. Unlike in
Hive, only the owner, the user who asked for it, or the renewer may cancel a token, and only with its password.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from hms_cache.authentication.delegation.proxy_users import ProxyUsers
from hms_cache.authentication.delegation.token_format import (
    MAX_TEXT_BYTES,
    MalformedTokenError,
    MasterKey,
    StoredToken,
    Token,
    TokenIdentifier,
    from_base64,
    to_base64,
)
from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.values import frozen

SECRET_BYTES = 32
"""Size of the secret of a new key: beyond its block of 64 bytes HMAC-SHA1 gains nothing, and half of it cannot be
guessed."""

_ATTEMPTS = 3
"""Attempts to insert a token whose identifier exists: two tokens of one owner in the same millisecond with the same
random number."""


class TokenError(Exception):
    """A request about a token is refused. The text is sent to the client."""


class TokenStore(Protocol):
    """Stores tokens by identifier, as texts, in the database. Each method is one transaction, except
    `remove_tokens`."""

    def add_token(self, identifier: str, token: str) -> bool:
        """Returns False, without a change, if a token with this identifier exists."""

    def find_token(self, identifiers: Sequence[str]) -> tuple[str, str] | None:
        """Returns (identifier, token) of the one that exists; None if none does."""

    def update_token(self, identifier: str, token: str) -> bool:
        """Returns whether the token existed."""

    def remove_token(self, identifier: str) -> bool:
        """Returns whether the token existed."""

    def remove_tokens(self, identifiers: Sequence[str]) -> int:
        """Returns the number of tokens deleted; one transaction per some hundred tokens."""

    def get_all_token_identifiers(self) -> list[str]:
        """Identifiers of all tokens."""

    def add_master_key(self, key: str) -> int:
        """Returns the number of the new key."""

    def update_master_key(self, number: int, key: str) -> None:
        """Replaces the text of an existing key."""

    def remove_master_key(self, number: int) -> bool:
        """Returns whether the key existed."""

    def master_keys(self) -> list[tuple[int, str]]:
        """All keys as (number, key), ascending."""


@frozen
class TokenOptions:
    """Lifetimes of tokens and keys; Hive's defaults."""

    max_lifetime_s: float = 7 * 86_400.0
    renew_interval_s: float = 86_400.0
    key_update_interval_s: float = 86_400.0
    padded: bool = True
    """Whether identifiers are written with padding as in Hive 4; both forms can be read."""


class Caller(NamedTuple):
    """The client that makes a request."""

    user: str
    principal: str
    address: str
    has_ticket: bool
    """Whether the client authenticated with Kerberos: a token cannot be used to get another one."""


class Cleaned(NamedTuple):
    """Numbers of deleted tokens and keys."""

    tokens: int
    keys: int


class TokenManager:
    """Manages tokens. Thread-safe. All state is in the database, except the current signing key."""

    def __init__(
        self,
        store: TokenStore,
        options: TokenOptions,
        proxy_users: ProxyUsers,
        local_names: LocalNames,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._options = options
        self._proxy_users = proxy_users
        self._local_names = local_names
        self._now_s = now_s
        self._changing_key = threading.Lock()
        """Held while a key is read or created, including the statements: waiting threads need the same key."""
        self._key: MasterKey | None = None

    def issue(self, caller: Caller, owner: str, renewer: str) -> str:
        """Returns a new token for `owner`, as text. Raises TokenError."""
        if not caller.has_ticket:
            raise TokenError("Delegation Token can be issued only with kerberos authentication")
        if not owner:
            raise TokenError("Delegation token owner is null")
        real_user = ""
        owner_user = self._short(owner)
        if owner_user != caller.user:
            refusal = self._proxy_users.refusal(caller.user, owner_user, caller.address, caller.principal)
            if refusal is not None:
                raise TokenError(refusal)
            real_user = caller.principal
        now_ms = self._now_ms()
        max_ms = now_ms + whole_milliseconds(self._options.max_lifetime_s)
        renewer_user = self._short(renewer) if renewer else ""
        key = self._signing_key(now_ms)
        for _ in range(_ATTEMPTS):
            sequence = secrets.randbelow(2**31)
            identifier = TokenIdentifier(owner, renewer_user, real_user, now_ms, max_ms, sequence, key.key_id).encoded()
            name = to_base64(identifier, padded=self._options.padded)
            if len(name) > MAX_TEXT_BYTES:
                raise TokenError("the names of owner, renewer and real user are too long for a token")
            password = hmac.digest(key.secret, identifier, hashlib.sha1)
            if self._store.add_token(name, self._stored(StoredToken(password, self._renewed_until(now_ms, max_ms)))):
                return Token(identifier, password).to_url()
        raise TokenError("no free identifier was found for the token; retry")

    def renew(self, caller: Caller, text: str) -> int:
        """Renews the token. Returns the end of its validity without another renewal, in epoch milliseconds. Raises
        TokenError."""
        token, identifier, name = self._shown(text)
        now_ms = self._now_ms()
        if identifier.max_ms < now_ms:
            raise TokenError(f"{caller.user} tried to renew an expired token of {identifier.owner}")
        if not identifier.renewer:
            raise TokenError(f"{caller.user} tried to renew a token without a renewer")
        if identifier.renewer != caller.user:
            raise TokenError(f"{caller.user} tries to renew a token with renewer {identifier.renewer}")
        renew_ms = self._renewed_until(now_ms, identifier.max_ms)
        if not self._store.update_token(name, self._stored(StoredToken(token.password, renew_ms))):
            raise TokenError(f"token does not exist: of {identifier.owner}")
        return renew_ms

    def cancel(self, caller: Caller, text: str) -> None:
        """Cancels the token. Raises TokenError."""
        _, identifier, name = self._shown(text)
        entitled = {self._short(one) for one in (identifier.owner, identifier.real_user, identifier.renewer) if one}
        if caller.user not in entitled:
            raise TokenError(f"{caller.user} is not authorized to cancel the token")
        if not self._store.remove_token(name):
            raise TokenError(f"token does not exist: of {identifier.owner}")

    def password(self, identifier: bytes) -> tuple[TokenIdentifier, bytes]:
        """Decodes an identifier sent by a client and returns it with the token's password. Raises AuthenticationError
        if the token is not valid."""
        try:
            decoded = TokenIdentifier.decoded(identifier)
            found = self._find(identifier)
        except MalformedTokenError as error:
            raise AuthenticationError(f"DIGEST-MD5: not a delegation token: {error}", "bad_message") from error
        if found is None or decoded.max_ms < self._now_ms():
            raise AuthenticationError("DIGEST-MD5: token expired or does not exist")
        return decoded, found[1].password

    def clean(self) -> Cleaned:
        """Deletes expired tokens and keys. Texts in an unknown format are kept."""
        now_ms = self._now_ms()
        over = []
        for name in self._store.get_all_token_identifiers():
            try:
                is_over = TokenIdentifier.decoded(from_base64(name)).max_ms < now_ms
            except MalformedTokenError:
                continue
            if is_over:
                over.append(name)
        tokens = self._store.remove_tokens(over)
        keys = 0
        for number, key in self._keys():
            keys += key.expiry_ms < now_ms and self._store.remove_master_key(number)
        return Cleaned(tokens, keys)

    # Keys

    def _signing_key(self, now_ms: int) -> MasterKey:
        """A key that outlives the tokens it signs: the newest one of the set, or a new one.

        A key lives for the update interval plus a token's maximum lifetime; it signs while the latter is left.
        """
        lifetime_ms = whole_milliseconds(self._options.max_lifetime_s)
        with self._changing_key:
            if self._key is None or self._key.expiry_ms < now_ms + lifetime_ms:
                newest = max((key for _, key in self._keys() if key.secret), key=lambda k: k.expiry_ms, default=None)
                if newest is None or newest.expiry_ms < now_ms + lifetime_ms:
                    signs_ms = whole_milliseconds(self._options.key_update_interval_s)
                    newest = self._new_key(now_ms + lifetime_ms + signs_ms)
                self._key = newest
            return self._key

    def _new_key(self, expiry_ms: int) -> MasterKey:
        """Creates a key. Its number is known only after the insert, and is then written into it, as Java servers do."""
        secret = secrets.token_bytes(SECRET_BYTES)
        number = self._store.add_master_key(self._text(MasterKey(0, expiry_ms, secret).encoded()))
        key = MasterKey(number, expiry_ms, secret)
        self._store.update_master_key(number, self._text(key.encoded()))
        return key

    def _keys(self) -> list[tuple[int, MasterKey]]:
        found = []
        for number, text in self._store.master_keys():
            try:
                key = MasterKey.decoded(from_base64(text))
            except MalformedTokenError:
                continue
            # otherwise a server is between inserting it and writing its number, or has stopped there
            if key.key_id == number:
                found.append((number, key))
        return found

    # Tokens

    def _shown(self, text: str) -> tuple[Token, TokenIdentifier, str]:
        """The token in a text, after a check of its password, with its identifier in the database."""
        try:
            token = Token.from_url(text)
            identifier = TokenIdentifier.decoded(token.identifier)
            found = self._find(token.identifier)
        except MalformedTokenError as error:
            raise TokenError(f"not a delegation token: {error}") from error
        if found is None:
            raise TokenError(f"token does not exist: of {identifier.owner}")
        name, stored = found
        if not hmac.compare_digest(token.password, stored.password):
            raise TokenError(f"the password of the token of {identifier.owner} is wrong")
        return token, identifier, name

    def _find(self, identifier: bytes) -> tuple[str, StoredToken] | None:
        names = [to_base64(identifier, padded=padded) for padded in (True, False)]
        if len(names[0]) > MAX_TEXT_BYTES:
            return None
        found = self._store.find_token(list(dict.fromkeys(names)))
        return None if found is None else (found[0], StoredToken.decoded(from_base64(found[1])))

    def _stored(self, token: StoredToken) -> str:
        return self._text(token.encoded())

    def _text(self, data: bytes) -> str:
        return to_base64(data, padded=self._options.padded)

    def _renewed_until(self, now_ms: int, max_ms: int) -> int:
        return min(max_ms, now_ms + whole_milliseconds(self._options.renew_interval_s))

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    def _short(self, name: str) -> str:
        """The short name of a principal; a short name is returned unchanged."""
        if "@" not in name and "/" not in name:
            return name
        try:
            return self._local_names.of(name)
        except AuthenticationError as error:
            raise TokenError(str(error)) from error
