"""The client's side of PLAIN (RFC 4616): a name and a password."""

from __future__ import annotations

from hms_cache.client.authentication.mechanism import ClientMechanism
from hms_cache.client.errors import AuthenticationRefusedError


class PlainMechanism(ClientMechanism):
    """Sends the password unencrypted: the caller must protect the connection."""

    name = "PLAIN"
    remedy = "check the name and the password, and whether the metastore accepts passwords (its authentication.plain)"

    def __init__(self, user: str, password: str) -> None:
        super().__init__()
        self.secret = password
        self._message = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        self.complete = True
        return self._message

    def step(self, challenge: bytes) -> bytes:
        raise AuthenticationRefusedError("PLAIN: the metastore sends another challenge after the client's last message")

    def end(self, challenge: bytes) -> None:
        """Nothing to check: with PLAIN, the server does not prove its identity; TLS does that."""
