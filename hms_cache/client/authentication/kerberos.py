"""GSSAPI (RFC 4752) with Kerberos, the client's side."""

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
"""In the name of a service: the host of its address (Hadoop's `SecurityUtil`)."""

_KRB5_BASE = -1765328384
_UNAVAILABLE = frozenset(_KRB5_BASE + number for number in (156, 154, 212, 215))
"""MIT Kerberos' KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE and what stands for no answer of a KDC."""
_UNKNOWN_SERVER = _KRB5_BASE + 7
"""KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN."""


class Ticket:
    """Whose ticket is used: of a cache of tickets, or one that is asked for with a key."""

    def __init__(self, principal: str = "", keytab: str = "", cache: str = "") -> None:
        """`principal` empty: that of the cache; `cache` empty: that of the environment (KRB5CCNAME).

        Raises ConfigurationError where the library is missing.
        """
        try:
            import gssapi
        except ImportError as error:
            raise ConfigurationError("Kerberos needs gssapi: pip install 'hms-cache[kerberos]'") from error
        self._gssapi: Any = gssapi
        self._principal = principal
        self._store: dict[str, str] = {}
        if keytab:
            # One cache in memory for all connections of this process: a ticket lasts for hours.
            name = hashlib.sha256(f"{principal}\0{keytab}".encode()).hexdigest()[:16]
            self._store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:hms-cache-{name}"}
        elif cache:
            self._store = {"ccache": cache}

    def credentials(self) -> Any:
        """For a client. Asks the KDC if there is a key, and no ticket yet. Raises `gssapi`'s errors."""
        gssapi = self._gssapi
        name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal) if self._principal else None
        options: dict[str, Any] = {"store": self._store} if self._store else {}
        return gssapi.Credentials(name=name, usage="initiate", mechs=[gssapi.MechType.kerberos], **options)

    def principal(self, timeout_s: float) -> str:
        """Whose it is. Raises CredentialsError, KerberosUnavailableError."""
        return within(timeout_s, lambda: str(_explained(lambda: self.credentials().name)))


class GssapiMechanism(ClientMechanism):
    """Both sides show who they are: the server by its answer to the client's ticket."""

    name = "GSSAPI"
    remedy = (
        "check the metastore's principal (server=), that its clock is this machine's, and whether it takes Kerberos"
        " (its authentication.kerberos_enabled)"
    )

    def __init__(self, ticket: Ticket, server: str, host: str, qualities: tuple[str, ...], timeout_s: float) -> None:
        """`server`: the metastore's principal, in which `_HOST` stands for the host of its address. `qualities`: of
        protection, those that will do, the best first. `timeout_s`: for the KDC."""
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
        wanted = flags.mutual_authentication | flags.out_of_sequence_detection | flags.replay_detection
        self._context = gssapi.SecurityContext(
            name=gssapi.Name(self._server, gssapi.NameType.kerberos_principal),
            creds=self._ticket.credentials(),
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=wanted | flags.integrity | flags.confidentiality,
        )
        return self._context.step() or b""

    def step(self, challenge: bytes) -> bytes:
        import gssapi

        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            if self.complete:
                raise AuthenticationRefusedError("GSSAPI: the metastore asks on after it was told everything")
            return self._choose(self._context.unwrap(challenge).message)
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationRefusedError(
                f"GSSAPI: the metastore's answer is not that of {self._server}: {error_text(error)}"
            ) from error

    def _choose(self, offer: bytes) -> bytes:
        import gssapi

        if gssapi.RequirementFlag.mutual_authentication not in self._context.actual_flags:
            raise AuthenticationRefusedError("GSSAPI: the metastore did not show who it is")
        if len(offer) != 4:
            raise AuthenticationRefusedError("GSSAPI: the metastore's offer of protection cannot be read")
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
            raise AuthenticationRefusedError("GSSAPI: the metastore ended before it showed who it is")


def within(timeout_s: float, work: Callable[[], T]) -> T:
    """What `work` answers, which asks a KDC: the library has no limit of its own that could be set here. It goes on,
    unheard, when the time is over. Raises what it raises, and KerberosUnavailableError."""
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
        raise KerberosUnavailableError(f"no KDC has given a ticket within {timeout_s:g} s") from None
    if failure is not None:
        raise failure
    return answer  # type: ignore[return-value]


def _explained(work: Callable[[], T], server: str = "") -> T:
    """Raises CredentialsError and KerberosUnavailableError in place of the library's errors."""
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
            remedy = f"the realm has no {server}: check server=, in which {HOST} is the host as the URI names it"
        raise CredentialsError(f"Kerberos: {why}; {remedy}") from error
