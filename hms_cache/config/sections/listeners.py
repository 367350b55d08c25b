"""One more port of the metastore, beside the one that the section itself describes."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hms_cache.config.quantities import Words
from hms_cache.config.setting import Section, setting

Mechanism = Literal["kerberos", "ldap", "jwt", "none"]

MECHANISMS: dict[str, frozenset[str]] = {
    "binary": frozenset(("kerberos", "ldap", "none")),
    "http": frozenset(("jwt", "none")),
}
"""What each transport can carry."""

MAX_LISTENERS = 16


def problem_of_mechanisms(mechanisms: tuple[str, ...], transport_mode: str) -> str | None:
    """Why clients of a port cannot authenticate so."""
    known = frozenset().union(*MECHANISMS.values())
    unknown = [name for name in mechanisms if name not in known]
    if unknown:
        return f"mechanisms knows {', '.join(sorted(known))}, not {', '.join(unknown)}"
    if "none" in mechanisms and len(mechanisms) > 1:
        return "mechanisms: none stands alone: a client that need not authenticate does not"
    odd = [name for name in mechanisms if name not in MECHANISMS[transport_mode]]
    if odd:
        return f"mechanisms: {', '.join(odd)} does not go over transport_mode = {transport_mode}"
    return None


OF_THE_SERVER = ("port", "host", "transport_mode", "tls_enabled", "tls_client_certificates", "mechanisms")
"""What a listener says in place of the settings of these names in the section `server`."""


class ListenerSettings(Section):
    """A port. What is not said here is as the section says."""

    port: int = setting(..., ge=0, le=65535)
    """Port to listen on; 0 picks a free one."""
    host: str = setting("")
    """Address to listen on. Empty: `server.host`."""
    transport_mode: Literal["binary", "http"] = setting("binary")
    """As `server.transport_mode`."""
    tls_enabled: bool = setting(False)
    """As `server.tls_enabled`; certificate, key, versions and ciphers are those of `server.tls_…`."""
    tls_client_certificates: Literal["", "none", "optional", "required"] = setting("")
    """As `server.tls_client_certificates`, and that where it is empty."""
    mechanisms: Words = setting(())
    """As `server.mechanisms`."""
    quality_of_protection: Words = setting(())
    """As `authentication.quality_of_protection`, and that where it is empty."""

    def __str__(self) -> str:
        tls = f" tls{f':{self.tls_client_certificates}' if self.tls_client_certificates else ''}"
        where = f"{self.host}:{self.port}" if self.host else str(self.port)
        return f"{where} {self.transport_mode}{tls if self.tls_enabled else ''} {'+'.join(self.mechanisms)}".strip()


def _listeners(value: Any) -> Any:
    """A text, as the environment and the command line have it, is what TOML has behind `listeners =`."""
    if not isinstance(value, str):
        return value
    try:
        return tuple(tomllib.loads(f"listeners = {value}")["listeners"]) if value.strip() else ()
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ValueError("a text must be a list of TOML, such as [{port = 9084, tls_enabled = true}]") from error


Listeners = Annotated[tuple[ListenerSettings, ...], BeforeValidator(_listeners)]
