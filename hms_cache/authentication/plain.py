"""PLAIN (RFC 4616): a name and a password, checked by a callback."""

from __future__ import annotations

from collections.abc import Callable

from hms_cache.authentication.mechanism import AuthenticationError, Mechanism

MAX_CHARACTERS = 1024
"""Maximum length of names and of the password."""

CheckPassword = Callable[[str, str], None]
"""Checks a user and a password. May block. Raises AuthenticationError."""


class PlainMechanism(Mechanism):
    """Authentication of one client by its password."""

    def __init__(self, check: CheckPassword, *, is_folded: bool = False) -> None:
        """:param is_folded: whether the user's name is converted to lower case."""
        super().__init__()
        self._check = check
        self._is_folded = is_folded

    def step(self, response: bytes) -> bytes:
        """See `Mechanism.step`; there is only one step."""
        try:
            acting_as, user, password = response.decode().split("\0")
        except ValueError as error:
            raise AuthenticationError("PLAIN: not a name and a password", "bad_message") from error
        if not user or max(map(len, (acting_as, user, password))) > MAX_CHARACTERS:
            raise AuthenticationError("PLAIN: no name, or one that is too long", "bad_message")
        if acting_as not in ("", user):
            raise AuthenticationError(f"{user!r} cannot act as {acting_as!r}")
        if not password:
            # A directory treats an empty password as an anonymous bind, which succeeds (RFC 4513, 5.1.2).
            raise AuthenticationError("PLAIN: the password is empty")
        self._check(user, password)
        self.user = self.principal = _lower(user) if self._is_folded else user
        self.complete = True
        return b""


def _lower(user: str) -> str:
    """Lower case of each character separately, as directories compare names, so that no two accounts become one user.

    Python's functions on the whole text would merge some: `casefold` turns ß into ss, which OpenLDAP distinguishes, and
    `lower` maps a sigma at the end of a word to another letter.
    """
    return "".join(map(str.lower, user))
