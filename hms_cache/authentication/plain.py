"""PLAIN (RFC 4616): a name and a password, checked by whoever knows them."""

from __future__ import annotations

from collections.abc import Callable

from hms_cache.authentication.mechanism import AuthenticationError, Mechanism

MAX_CHARACTERS = 1024
"""Of names and password, each."""

CheckPassword = Callable[[str, str], None]
"""Takes user and password; may block. Raises AuthenticationError."""


class PlainMechanism(Mechanism):
    """One client's authentication by its password."""

    def __init__(self, check: CheckPassword, *, is_folded: bool = False) -> None:
        """`is_folded`: the user's name is in lower case here, however the client writes it."""
        super().__init__()
        self._check = check
        self._is_folded = is_folded

    def step(self, response: bytes) -> bytes:
        """As `Mechanism.step`; there is one."""
        try:
            acting_as, user, password = response.decode().split("\0")
        except ValueError as error:
            raise AuthenticationError("PLAIN: not a name and a password", "bad_message") from error
        if not user or max(map(len, (acting_as, user, password))) > MAX_CHARACTERS:
            raise AuthenticationError("PLAIN: no name, or one that is too long", "bad_message")
        if acting_as not in ("", user):
            raise AuthenticationError(f"{user!r} cannot act as {acting_as!r}")
        if not password:
            # A directory takes an empty password for "nobody" and says yes (RFC 4513, 5.1.2).
            raise AuthenticationError("PLAIN: the password is empty")
        self._check(user, password)
        self.user = self.principal = _lower(user) if self._is_folded else user
        self.complete = True
        return b""


def _lower(user: str) -> str:
    """Each letter by itself, as directories compare names: no two accounts become one user.

    Python's own ways would do that. `casefold` makes ss of ß, which OpenLDAP takes for two names, and `lower` makes
    another letter of a sigma at the end of a word.
    """
    return "".join(map(str.lower, user))
