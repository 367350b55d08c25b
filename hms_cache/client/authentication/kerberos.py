"""The client's side of GSSAPI (RFC 4752) with Kerberos."""

from __future__ import annotations

import hashlib
import queue
import struct
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from hms_cache.authentication.kerberos import LARGEST_TOKEN_BYTES, PIECE_BYTES, QUALITIES, GssapiLayer, error_text
from hms_cache.client.authentication.mechanism import ClientMechanism, chosen_quality, no_quality
from hms_cache.client.errors import AuthenticationRefusedError, CredentialsError, KerberosUnavailableError
from hms_cache.errors import ConfigurationError

T = TypeVar("T")

HOST = "_HOST"
"""Placeholder in a principal for the host of the address (Hadoop's `SecurityUtil`)."""

_KRB5_BASE = -1765328384
_UNAVAILABLE = frozenset(_KRB5_BASE + number for number in (156, 154, 212, 215))
"""MIT Kerberos' KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE, and other codes for a KDC that does not answer."""
_UNKNOWN_SERVER = _KRB5_BASE + 7
"""KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN."""


class Ticket:
    """The client's ticket: from a ticket cache, or requested with the key in a keytab."""

    def __init__(self, principal: str = "", keytab: str = "", cache: str = "") -> None:
        """Raises ConfigurationError if the library is missing.

        :param principal: empty: that of the cache.
        :param cache: empty: that of the environment (KRB5CCNAME).
        """
        try:
            import gssapi
        except ImportError as error:
            raise ConfigurationError("Kerberos needs gssapi: pip install 'hms-cache[kerberos]'") from error
        self._gssapi: Any = gssapi
        self._principal = principal
        self._store: dict[str, str] = {}
        if keytab:
            # One cache in memory for all connections of this process, because a ticket is valid for hours.
            name = hashlib.sha256(f"{principal}\0{keytab}".encode()).hexdigest()[:16]
            self._store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:hms-cache-{name}"}
        elif cache:
            self._store = {"ccache": cache}

    def credentials(self) -> Any:
        """Returns credentials for a client. With a key, requests a ticket from the KDC if there is none yet. Raises
        `gssapi`'s errors."""
        gssapi = self._gssapi
        name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal) if self._principal else None
        options: dict[str, Any] = {"store": self._store} if self._store else {}
        return gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], **options)

    def principal(self, timeout_s: float) -> str:
        """Returns the ticket's principal. Raises CredentialsError, KerberosUnavailableError."""
        return within(timeout_s, lambda: str(_explained(lambda: self.credentials().name)))


class GssapiMechanism(ClientMechanism):
    """Both sides authenticate: the server by its answer to the client's ticket."""

    name = "GSSAPI"
    remedy = (
        "check the metastore's principal (server=), that its clock agrees with this machine's, and whether it accepts"
        " Kerberos (its authentication.kerberos_enabled)"
    )

    def __init__(self, ticket: Ticket, server: str, host: str, qualities: tuple[str, ...], timeout_s: float) -> None:
        """Stores the parameters; `first` requests the ticket.

        :param server: the metastore's principal, in which `_HOST` stands for the host of its address.
        :param qualities: accepted qualities of protection, the preferred one first.
        :param timeout_s: for the KDC.
        """
        super().__init__()
        self._ticket = ticket
        self._server = server.replace(HOST, host.lower())
        self._qualities = qualities
        self._timeout_s = timeout_s
        self._context: Any = None

    def first(self) -> bytes:
        return within(self._timeout_s, lambda: _explained(self._begin, self._server))

    def _begin(self) -> bytes:
        import gssapi

        flags = gssapi.RequirementFlag
        required = flags.mutual_authentication | flags.out_of_sequence_detection | flags.replay_detection
        self._context = gssapi.SecurityContext(
            name=gssapi.Name(self._server, gssapi.NameType.kerberos_principal),
            creds=self._ticket.credentials(),
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=required | flags.integrity | flags.confidentiality,
        )
        return self._context.step() or b""

    def step(self, challenge: bytes) -> bytes:
        import gssapi

        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            if self.complete:
                raise AuthenticationRefusedError(
                    "GSSAPI: the metastore sends another challenge after the client's last message"
                )
            return self._choose(self._context.unwrap(challenge).message)
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationRefusedError(
                f"GSSAPI: the metastore's answer is not that of {self._server}: {error_text(error)}"
            ) from error

    def _choose(self, offer: bytes) -> bytes:
        import gssapi

        if gssapi.RequirementFlag.mutual_authentication not in self._context.actual_flags:
            raise AuthenticationRefusedError("GSSAPI: the metastore did not prove its identity")
        if len(offer) != 4:
            raise AuthenticationRefusedError("GSSAPI: the metastore's offer of protection cannot be decoded")
        offered = frozenset(name for name, bit in QUALITIES.items() if offer[0] & bit)
        quality = chosen_quality(offered, self._qualities)
        if quality is None:
            raise AuthenticationRefusedError(f"GSSAPI: {no_quality(offered, self._qualities)}")
        largest = 0
        if quality != "auth":
            largest = LARGEST_TOKEN_BYTES
            theirs = int.from_bytes(offer[1:], "big") or PIECE_BYTES
            self.layer = GssapiLayer(self._context, quality == "auth-conf", theirs)
        self.complete = True
        choice = struct.pack("!I", QUALITIES[quality] << 24 | largest)
        return bytes(self._context.wrap(choice, False).message)

    def end(self, challenge: bytes) -> None:
        if not self.complete:
            raise AuthenticationRefusedError("GSSAPI: the metastore ended before it proved its identity")


def within(timeout_s: float, work: Callable[[], T]) -> T:
    """Runs `work`, which sends a request to a KDC, with a time limit, because the library has none that can be set
    here. If the time is exceeded, `work` continues in the background and its result is ignored. Raises the exceptions
    of `work`, and KerberosUnavailableError."""
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=run, name="hms-kerberos", daemon=True).start()
    try:
        answer, failure = answers.get(timeout=timeout_s)
    except queue.Empty:
        raise KerberosUnavailableError(f"no KDC issued a ticket within {timeout_s:g} s") from None
    if failure is not None:
        raise failure
    return answer  # type: ignore[return-value]


def _explained(work: Callable[[], T], server: str = "") -> T:
    """Runs `work`. Raises CredentialsError or KerberosUnavailableError instead of the library's errors."""
    import gssapi

    try:
        return work()
    except gssapi.exceptions.GSSError as error:
        code = int(error.min_code or 0)
        code = code - (1 << 32) if code >= 1 << 31 else code
        why = error_text(error)
        if code in _UNAVAILABLE or "Cannot contact any KDC" in why:
            raise KerberosUnavailableError(f"Kerberos: {why}") from error
        remedy = "get a ticket with kinit, or name a keytab and its principal (keytab=, principal=)"
        if code == _UNKNOWN_SERVER or "not found in Kerberos database" in why:
            remedy = f"the realm has no {server}: check server=, in which {HOST} stands for the host in the URI"
        raise CredentialsError(f"Kerberos: {why}; {remedy}") from error
