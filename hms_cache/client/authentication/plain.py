"""PLAIN (RFC 4616), the client's side: a name and a password."""

from __future__ import annotations

from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.errors import AuthenticationRefusedError


class PlainMechanism(ClientMechanism):
    """The password goes over the wire as it is: whoever opens the connection knows that it is protected."""

    name = "PLAIN"
    remedy = "check the name and the password, and whether the metastore takes passwords (its authentication.plain)"

    def __init__(self, user: str, password: str) -> None:
        super().__init__()
        self.secret = password
        self._message = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        self.complete = True
        return self._message

    def step(self, challenge: bytes) -> bytes:
        raise AuthenticationRefusedError("PLAIN: the metastore asks on after it was told everything")

    def end(self, challenge: bytes) -> None:
        """Nothing follows the password: by it the server does not show who it is. TLS does."""
