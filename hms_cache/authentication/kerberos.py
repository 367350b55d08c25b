"""GSSAPI (RFC 4752) with Kerberos: verifies clients' tickets with the server's keytab.

Kerberos only, as in the RFC and Java's server: the library would also negotiate other mechanisms of the machine
(SPNEGO).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError, Mechanism
from hms_cache.values import frozen

QUALITIES = {"auth": 1, "auth-int": 2, "auth-conf": 4}
"""Bits of the security layers offered and chosen (RFC 4752, 3.3)."""

LARGEST_TOKEN_BYTES = 0xFFFFFF
"""Maximum of the field."""

PIECE_BYTES = 64 * 1024
"""Piece size of a wrapped reply: the maximum that Java's clients accept."""


@frozen
class KerberosOptions:
    """The server's principal and keytab, and the mapping of clients to users."""

    principal: str
    """Contains the host name, not `_HOST`."""
    keytab: Path
    qualities: tuple[str, ...]
    local_names: LocalNames


class GssapiMechanism(Mechanism):
    """Authentication of one client by its ticket.

    The keytab is read anew for each client: a new one needs no restart.
    """

    def __init__(self, options: KerberosOptions) -> None:
        super().__init__()
        self._options = options
        self._context: Any = None
        self._offered = False

    def step(self, response: bytes) -> bytes:
        """See `Mechanism.step`: the tokens of the context, then the choice of the layer."""
        import gssapi

        try:
            if self._context is None or not self._context.complete:
                return self._establish(response)
            if not self._offered:
                if response:
                    raise AuthenticationError("GSSAPI: a response where none is expected", "bad_message")
                return self._offer()
            return self._choose(response)
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationError(f"GSSAPI: {error_text(error)}") from error

    def _establish(self, token: bytes) -> bytes:
        import gssapi

        if self._context is None:
            name = gssapi.Name(self._options.principal, gssapi.NameType.kerberos_principal)
            credentials = gssapi.Credentials(
                name=name,
                usage="accept",
                mechs=[gssapi.MechType.kerberos],
                store={"keytab": f"FILE:{self._options.keytab}"},
            )
            self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        answer: bytes | None = self._context.step(token)
        if not self._context.complete:
            return answer or b""
        self.principal = str(self._context.initiator_name)
        return answer or self._offer()

    def _offer(self) -> bytes:
        self._offered = True
        layers = sum(QUALITIES[name] for name in self._options.qualities)
        largest = LARGEST_TOKEN_BYTES if layers > QUALITIES["auth"] else 0
        message: bytes = self._context.wrap(struct.pack("!I", layers << 24 | largest), False).message
        return message

    def _choose(self, response: bytes) -> bytes:
        choice: bytes = self._context.unwrap(response).message
        if len(choice) < 4:
            raise AuthenticationError("GSSAPI: the choice of a layer is truncated", "bad_message")
        layer = choice[0]
        allowed = {QUALITIES[name]: name for name in self._options.qualities}
        if layer not in allowed:
            offered = ", ".join(self._options.qualities)
            raise AuthenticationError(f"GSSAPI: the server's qualities of protection are {offered}", "refused")
        other = choice[4:].decode("utf-8", "replace")
        if other and other != self.principal:
            raise AuthenticationError(f"{self.principal} cannot act as {other!r}")
        self.user = self._options.local_names.of(self.principal)
        if layer != QUALITIES["auth"]:
            largest = int.from_bytes(choice[1:4], "big") or PIECE_BYTES
            self.layer = GssapiLayer(self._context, allowed[layer] == "auth-conf", largest)
        self.complete = True
        return b""


class GssapiLayer:
    """auth-int and auth-conf, of either side."""

    def __init__(self, context: Any, encrypts: bool, largest_token_bytes: int) -> None:
        self._context = context
        self._encrypts = encrypts
        limit = int(context.get_wrap_size_limit(min(largest_token_bytes, PIECE_BYTES), encrypts))
        self.piece_bytes = max(limit, 1024)
        """Maximum size of data whose token the client accepts."""

    def wrap(self, data: bytes | memoryview) -> bytes:
        return bytes(self._context.wrap(bytes(data), self._encrypts).message)

    def unwrap(self, data: bytes) -> bytes:
        import gssapi

        try:
            found = self._context.unwrap(data)
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationError(f"GSSAPI: {error_text(error)}", "bad_message") from error
        if self._encrypts and not found.encrypted:
            raise AuthenticationError("GSSAPI: auth-conf was agreed on, and a message is not encrypted", "bad_message")
        return bytes(found.message)


def error_text(error: Any) -> str:
    """The library's message, without its codes."""
    texts = [*error.get_all_statuses(error.maj_code, True), *error.get_all_statuses(error.min_code, False)]
    return ": ".join(text for text in texts if text) if texts else type(error).__name__
