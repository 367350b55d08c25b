"""What a SASL mechanism of a client is to the negotiation (RFC 4422)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.authentication.mechanism import SecurityLayer


class ClientMechanism(ABC):
    """The client's part of one negotiation.

    Its methods raise AuthenticationRefusedError when the server does not do its part, CredentialsError,
    KerberosUnavailableError and ConfigurationError.
    """

    name: str
    """SASL's."""

    remedy: str
    """What to do when the server refuses it."""

    secret = ""
    """What the server is told, and nobody else."""

    def __init__(self) -> None:
        self.complete = False
        """Whether the client has said everything."""
        self.layer: SecurityLayer | None = None
        """Protection of what follows; None: it is sent as it is."""

    @abstractmethod
    def first(self) -> bytes:
        """The response that is sent with the name. May block."""

    @abstractmethod
    def step(self, challenge: bytes) -> bytes:
        """The response to a challenge."""

    @abstractmethod
    def end(self, challenge: bytes) -> None:
        """The server says that it is done, with this last challenge. Raises AuthenticationRefusedError if it cannot be:
        a server that ends early has not shown who it is."""


def chosen_quality(offered: frozenset[str], wanted: tuple[str, ...]) -> str | None:
    """The first wanted quality of protection that the server offers; None: there is none."""
    return next((one for one in wanted if one in offered), None)


def no_quality(offered: frozenset[str], wanted: tuple[str, ...]) -> str:
    """Why none was chosen."""
    told = ", ".join(sorted(offered)) or "none"
    return f"the metastore offers the qualities of protection {told}, and the client takes {', '.join(wanted)}"
