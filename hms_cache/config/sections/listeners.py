"""Further ports of the metastore, in addition to the one of the section."""

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
"""Mechanisms that each transport supports."""

MAX_LISTENERS = 16


def problem_of_mechanisms(mechanisms: tuple[str, ...], transport_mode: str) -> str | None:
    """Returns the reason why a port cannot use these mechanisms, if any."""
    known = frozenset().union(*MECHANISMS.values())
    unknown = [name for name in mechanisms if name not in known]
    if unknown:
        return f"mechanisms can be {', '.join(sorted(known))}, not {', '.join(unknown)}"
    if "none" in mechanisms and len(mechanisms) > 1:
        return "mechanisms: none cannot be combined with others, because clients need not authenticate then"
    odd = [name for name in mechanisms if name not in MECHANISMS[transport_mode]]
    if odd:
        return f"mechanisms: transport_mode = {transport_mode} does not support {', '.join(odd)}"
    return None


OF_THE_SERVER = ("port", "host", "transport_mode", "tls_enabled", "tls_client_certificates", "mechanisms")
"""Keys of a listener that replace the settings with these names in the section `server`."""


class ListenerSettings(Section):
    """A further port. Keys that are not set have the values of the section."""

    port: int = setting(..., ge=0, le=65535)
    """Port to listen on; 0 picks a free one."""
    host: str = setting("")
    """Address to listen on. Empty: `server.host`."""
    transport_mode: Literal["binary", "http"] = setting("binary")
    """Like `server.transport_mode`."""
    tls_enabled: bool = setting(False)
    """Like `server.tls_enabled`. Certificate, key, versions and ciphers are those of `server.tls_…`."""
    tls_client_certificates: Literal["", "none", "optional", "required"] = setting("")
    """Like `server.tls_client_certificates`. Empty: the value of that setting."""
    mechanisms: Words = setting(())
    """Like `server.mechanisms`."""
    quality_of_protection: Words = setting(())
    """Like `authentication.quality_of_protection`. Empty: the value of that setting."""

    def __str__(self) -> str:
        tls = f" tls{f':{self.tls_client_certificates}' if self.tls_client_certificates else ''}"
        where = f"{self.host}:{self.port}" if self.host else str(self.port)
        return f"{where} {self.transport_mode}{tls if self.tls_enabled else ''} {'+'.join(self.mechanisms)}".strip()


def _listeners(value: Any) -> Any:
    """Parses a text from the environment or the command line, with the syntax of TOML after `listeners =`."""
    if not isinstance(value, str):
        return value
    try:
        return tuple(tomllib.loads(f"listeners = {value}")["listeners"]) if value.strip() else ()
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ValueError("must be a list in TOML, such as [{port = 9084, tls_enabled = true}]") from error


Listeners = Annotated[tuple[ListenerSettings, ...], BeforeValidator(_listeners)]
