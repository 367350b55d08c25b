"""The ports of the configuration, each with its TLS, transport and mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hms_cache.app.security.authentication import mechanisms
from hms_cache.app.security.certificates import server_context
from hms_cache.app.security.http_port import bearer_tokens, http_port
from hms_cache.authentication.bearer_tokens import BearerTokens
from hms_cache.authentication.delegation.token_manager import TokenManager
from hms_cache.config import Settings, finite_s
from hms_cache.config.sections import AuthenticationSettings, ServerSettings
from hms_cache.config.sections.listeners import MECHANISMS
from hms_cache.errors import StartupError
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.layer import Handshakes
from hms_cache.server.port import Port
from hms_cache.server.transports.client_networks import client_networks
from hms_cache.server.transports.plain_calls import refusal_of_plain_call
from hms_cache.server.transports.proxy_headers import TrustedProxies
from hms_cache.server.transports.sasl import SaslPort
from hms_cache.server.transports.tls import TlsPort
from hms_cache.values import frozen

_SETTINGS = {
    "kerberos": "authentication.kerberos_enabled",
    "ldap": "authentication.plain",
    "jwt": "authentication.jwt_jwks_url",
}
"""The settings that enable each mechanism."""


def settings_of_ports(settings: Settings) -> tuple[tuple[str, Settings], ...]:
    """For each port, its name in the settings, and the settings as if it were the only port. Raises StartupError for
    invalid mechanisms."""
    ready = _ready(settings.authentication)
    found: list[tuple[str, Settings]] = []
    used: set[str] = set()
    for index, server in enumerate(settings.server.ports()):
        name = f"server.listeners[{index - 1}]" if index else "server"
        chosen = _chosen(name, server, ready, is_alone=not settings.server.listeners)
        used |= chosen
        section = _only(settings.authentication, chosen)
        if index and settings.server.listeners[index - 1].quality_of_protection:
            qualities = settings.server.listeners[index - 1].quality_of_protection
            section = section.model_copy(update={"quality_of_protection": qualities})
        found.append((name, settings.model_copy(update={"server": server, "authentication": section})))
    unused = sorted(ready - used - ({"jwt"} if settings.admin.jwt_rights_claim else set()))
    if unused:
        raise StartupError(
            f"{_SETTINGS[unused[0]]} is set, and no port asks for it",
            remedy="Add a port for it, [[server.listeners]], or name it in a port's mechanisms.",
        )
    return tuple(found)


def _ready(section: AuthenticationSettings) -> frozenset[str]:
    is_on = {"kerberos": section.kerberos_enabled, "ldap": section.plain == "ldap", "jwt": bool(section.jwt_jwks_url)}
    return frozenset(name for name, on in is_on.items() if on)


def _chosen(name: str, server: ServerSettings, ready: frozenset[str], *, is_alone: bool) -> frozenset[str]:
    """The mechanisms of one port."""
    for one in server.mechanisms:
        if one != "none" and one not in ready:
            raise StartupError(
                f"{name}.mechanisms: {one} is not set up", remedy=f"Set {_SETTINGS[one]}; see docs/security.md."
            )
    if server.mechanisms:
        return frozenset(server.mechanisms) - {"none"}
    if is_alone:  # combinations that are not possible are refused elsewhere
        return ready
    possible = ready & MECHANISMS[server.transport_mode]
    if ready and not possible:
        raise StartupError(
            f"{name}: nothing of what is set up in [authentication] is possible with transport_mode ="
            f" {server.transport_mode}, so its clients would not authenticate",
            remedy='Say that this is meant: mechanisms = ["none"].',
        )
    return possible


def _only(section: AuthenticationSettings, chosen: frozenset[str]) -> AuthenticationSettings:
    return section.model_copy(
        update={
            "kerberos_enabled": "kerberos" in chosen,
            "plain": section.plain if "ldap" in chosen else "off",
            "jwt_jwks_url": section.jwt_jwks_url if "jwt" in chosen else "",
        }
    )


@frozen
class Ports:
    """All ports, the main one first."""

    ports: tuple[Port, ...]
    tokens: BearerTokens | None
    """Checks bearer tokens; None if no tokens are configured."""

    def renewed(self, server: ServerSettings) -> Callable[[], None]:
        """Loads certificates and keys from the current files, and returns a function that applies them to new
        connections. `server` has these ports.

        Raises StartupError without a change.
        """
        renewed = [
            (port.tls, server_context(one))
            for port, one in zip(self.ports, server.ports(), strict=True)
            if port.tls is not None and one.tls_certificate_file is not None
        ]

        def install() -> None:
            for tls, context in renewed:
                tls.context = context

        return install

    def handshakes(self) -> Mapping[tuple[str, ...], float]:
        """Outcomes of TLS handshakes, over all ports."""
        return _outcomes(port.tls for port in self.ports)

    def proxy_headers(self) -> Mapping[tuple[str, ...], float]:
        """Outcomes of headers of the PROXY protocol. All ports have the same proxies."""
        return _outcomes(port.proxies for port in self.ports[:1])

    def authentications(self) -> Mapping[tuple[str, ...], float]:
        """Outcomes of authentications, over all ports."""
        return _outcomes(part for port in self.ports for part in (port.sasl, port.http))

    def close(self) -> None:
        """Ends the threads of authentication."""
        for port in self.ports:
            if port.sasl is not None:
                port.sasl.close()
            if port.http is not None:
                port.http.close()


def _outcomes(parts: Iterable[Handshakes | None]) -> dict[tuple[str, ...], float]:
    counts: dict[tuple[str, ...], float] = {}
    for part in parts:
        for outcome, count in part.outcomes.items() if part is not None else ():
            counts[(outcome,)] = counts.get((outcome,), 0) + count
    return counts


def open_ports(settings: Settings, delegation: TokenManager | None, buffers: BufferBudget) -> Ports:
    """Creates the ports, not listening yet. Raises StartupError for an unusable configuration, or an insecure one that
    is not accepted."""
    each = settings_of_ports(settings)
    tokens = bearer_tokens(settings)
    ports: list[Port] = []
    made = Ports((), tokens)
    proxies = _proxies(settings.server)
    try:
        for name, one in each:
            port = port_of(name, one, delegation, tokens, buffers, is_alone=len(each) == 1)
            port.proxies = proxies
            ports.append(port)
            made = Ports(tuple(ports), tokens)
    except BaseException:
        made.close()
        raise
    return made


def _proxies(server: ServerSettings) -> TrustedProxies | None:
    if not server.proxy_protocol_from:
        return None
    return TrustedProxies(server.proxy_protocol_from, finite_s(server.first_call_timeout_s), server.max_connections)


def port_of(
    name: str,
    settings: Settings,
    delegation: TokenManager | None,
    tokens: BearerTokens | None,
    buffers: BufferBudget,
    *,
    is_alone: bool,
) -> Port:
    """Creates one port from its own settings (`settings_of_ports`). Raises StartupError."""
    server = settings.server
    try:
        found = mechanisms(settings, delegation)
        http = http_port(settings, tokens, buffers)
        tls = None
        if server.tls_enabled:
            tls = TlsPort(server_context(server), server.tls_handshake_timeout_s, refusal_of_plain_call, buffers)
    except StartupError as error:
        if is_alone:
            raise
        raise StartupError(f"{name} (port {server.port}): {error.problem}", remedy=error.remedy) from error
    sasl = None
    if found:
        sasl = SaslPort(
            found,
            settings.authentication.handshake_timeout_s,
            finite_s(server.message_timeout_s) or 0,
            server.max_message_bytes,
            buffers,
            client_networks(server.client_ipv6_prefix_length),
        )
    names = (*(("JWT",) if http is not None and http.tokens is not None else ()), *found)
    return Port(server.host, server.port, names, tls, sasl, http)
