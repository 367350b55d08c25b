"""The interface of a client's SASL mechanism for the negotiation (RFC 4422)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.authentication.mechanism import SecurityLayer


class ClientMechanism(ABC):
    """The client's side of one negotiation.

    Its methods raise AuthenticationRefusedError if the server does not follow the mechanism, CredentialsError,
    KerberosUnavailableError and ConfigurationError.
    """

    name: str
    """The name in SASL."""

    remedy: str
    """What to do if the server refuses the client."""

    secret = ""
    """The secret that is sent to the server, to be masked in texts."""

    def __init__(self) -> None:
        self.complete = False
        """Whether the client has sent its last message."""
        self.layer: SecurityLayer | None = None
        """Protection of the messages after the negotiation; None: they are not protected."""

    @abstractmethod
    def first(self) -> bytes:
        """Returns the response that is sent with the name. May block."""

    @abstractmethod
    def step(self, challenge: bytes) -> bytes:
        """Returns the response to a challenge."""

    @abstractmethod
    def end(self, challenge: bytes) -> None:
        """Called with the server's last challenge. Raises AuthenticationRefusedError if the negotiation is not
        complete: a server that ends early has not proven its identity."""


def chosen_quality(offered: frozenset[str], accepted: tuple[str, ...]) -> str | None:
    """Returns the first accepted quality of protection that the server offers, or None."""
    return next((one for one in accepted if one in offered), None)


def no_quality(offered: frozenset[str], accepted: tuple[str, ...]) -> str:
    """Explains why no quality was chosen."""
    names = ", ".join(sorted(offered)) or "none"
    return f"the metastore offers the qualities of protection {names}, but the client accepts {', '.join(accepted)}"
