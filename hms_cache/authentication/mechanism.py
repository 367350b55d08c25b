"""What a SASL mechanism is to the negotiation (RFC 4422)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol


class AuthenticationError(Exception):
    """The client is not who it says, or cannot show it. The text is told to the client."""

    def __init__(self, text: str, outcome: str = "refused") -> None:
        """`outcome`: under which it is counted."""
        super().__init__(text)
        self.outcome = outcome


class SecurityLayer(Protocol):
    """Protection of what is sent after the negotiation, where one was agreed on."""

    piece_bytes: int
    """What becomes a token that the client takes, at most."""

    def wrap(self, data: bytes | memoryview) -> bytes:
        """What is sent for `data`."""

    def unwrap(self, data: bytes) -> bytes:
        """What was sent. Raises AuthenticationError when it was changed on its way, or is none of the client's."""


class Identity(NamedTuple):
    """Who a client has shown to be."""

    user: str
    """The short name, as Hadoop's: who it is to the catalog and to the policy."""
    principal: str
    """The name under which it authenticated."""
    mechanism: str
    """By SASL's name."""
    real_user: str = ""
    """Who acts for it: who asked for the token of somebody else. Empty: nobody does."""
    groups: frozenset[str] = frozenset()
    """Those that the issuer of its bearer token names."""


class Mechanism(ABC):
    """One client's authentication."""

    def __init__(self) -> None:
        self.user = ""
        """Who it is, once `complete`: a short name, as Hadoop's."""
        self.principal = ""
        """The name that authenticated, of which `user` was made."""
        self.real_user = ""
        """As `Identity.real_user`, once `complete`."""
        self.complete = False
        self.layer: SecurityLayer | None = None
        """None: what follows is sent as it is."""

    @abstractmethod
    def step(self, response: bytes) -> bytes:
        """Takes a response, returns the next challenge. May block: on a keytab, or a directory. Raises
        AuthenticationError.
        """
