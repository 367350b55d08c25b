"""Tokens in a file, each bound to a user, for listeners of the change feed.

A line contains a user's name, blanks, and a token, or ``sha256:`` and the token's digest in hexadecimal; lines that
begin with ``#`` are comments. Only digests are kept in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from hms_cache.authentication.local_names import MAX_PRINCIPAL_CHARACTERS

LEAST_CHARACTERS = 16
"""Minimum length of a token: a shorter one could be guessed over the network."""

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)


class ListenerTokensError(ValueError):
    """The file cannot be used; the message says where and why, without the token."""


class ListenerTokens:
    """The tokens of one file; replaced as a whole on reload. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        """Raises ListenerTokensError.

        :param path: None: no tokens.
        """
        self._users = self.read(path)

    @staticmethod
    def read(path: Path | None) -> Mapping[bytes, str]:
        """The tokens in the file, for `take`. Raises ListenerTokensError."""
        if path is None:
            return {}
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ListenerTokensError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        try:
            return _parsed(text)
        except ListenerTokensError as error:
            raise ListenerTokensError(f"{path}, {error}") from error

    def replace_tokens(self, users: Mapping[bytes, str]) -> None:
        """Replaces the tokens."""
        self._users = users

    def user_of(self, token: str) -> str | None:
        """The user of a token; None if the token is unknown."""
        return self._users.get(hashlib.sha256(token.encode("utf-8", "replace")).digest())


def _parsed(text: str) -> Mapping[bytes, str]:
    users: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise ListenerTokensError(f"line {number}: needs a user's name and a token")
        user, token = words
        if len(user) > MAX_PRINCIPAL_CHARACTERS or not user.isprintable():
            raise ListenerTokensError(f"line {number}: the first word is no user's name")
        digest = _DIGEST.fullmatch(token)
        if digest is None and (token.startswith("sha256:") or len(token) < LEAST_CHARACTERS):
            raise ListenerTokensError(
                f"line {number}: a token has {LEAST_CHARACTERS} characters or more, a digest 64 of 0-9 and a-f"
            )
        key = bytes.fromhex(digest[1]) if digest is not None else hashlib.sha256(token.encode()).digest()
        if users.setdefault(key, user) != user:
            raise ListenerTokensError(f"line {number}: the token of another user")
    return users
