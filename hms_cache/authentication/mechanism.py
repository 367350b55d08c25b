"""Interface between a SASL mechanism and the negotiation (RFC 4422)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol


class AuthenticationError(Exception):
    """The client's identity is not proven. The text is sent to the client."""

    def __init__(self, text: str, outcome: str = "refused") -> None:
        """:param outcome: label under which it is counted."""
        super().__init__(text)
        self.outcome = outcome


class SecurityLayer(Protocol):
    """Protects the data after the negotiation, if a layer was agreed on."""

    piece_bytes: int
    """Maximum size of data whose token the client accepts."""

    def wrap(self, data: bytes | memoryview) -> bytes:
        """The token for `data`."""

    def unwrap(self, data: bytes) -> bytes:
        """The data in a token. Raises AuthenticationError if it was changed or is not from the client."""


class Identity(NamedTuple):
    """The proven identity of a client."""

    user: str
    """The short name, as in Hadoop: the user for the catalog and for the policy."""
    principal: str
    """The name under which the client authenticated."""
    mechanism: str
    """SASL's name of it."""
    real_user: str = ""
    """The user who acts for `user`: the one who asked for the token. Empty: nobody does."""
    groups: frozenset[str] = frozenset()
    """The groups in its bearer token."""


class Mechanism(ABC):
    """Authentication of one client."""

    def __init__(self) -> None:
        self.user = ""
        """The user, once `complete`: a short name, as in Hadoop."""
        self.principal = ""
        """The authenticated name, from which `user` is derived."""
        self.real_user = ""
        """See `Identity.real_user`; set once `complete`."""
        self.complete = False
        self.layer: SecurityLayer | None = None
        """None: data after the negotiation is not protected."""

    @abstractmethod
    def step(self, response: bytes) -> bytes:
        """Takes a response and returns the next challenge. May block on a keytab or a directory. Raises
        AuthenticationError."""
