"""Thrift over HTTP, and bearer tokens, of the configuration."""

from __future__ import annotations

from hms_cache.authentication.bearer_tokens import BearerOptions, BearerTokens
from hms_cache.authentication.key_set import KeySet, KeySetError, KeySetOptions
from hms_cache.config import Settings, finite_s
from hms_cache.config.sections import AuthenticationSettings
from hms_cache.errors import StartupError
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.transports.client_networks import client_networks
from hms_cache.server.transports.http import HttpLimits, HttpPort
from hms_cache.server.transports.trusted_networks import TrustedNetworks


def http_port(settings: Settings, tokens: BearerTokens | None, buffers: BufferBudget) -> HttpPort | None:
    """HTTP for one port's settings; None if clients use plain Thrift. Raises StartupError for an unusable
    configuration.

    `tokens`: see `bearer_tokens`.
    """
    server, authentication = settings.server, settings.authentication
    if server.transport_mode != "http":
        if authentication.jwt_jwks_url:
            raise StartupError(
                "authentication.jwt_jwks_url: bearer tokens need HTTP, and server.transport_mode is binary",
                remedy="Set server.transport_mode = http, or give them a port of their own: [[server.listeners]].",
            )
        return None
    if authentication.kerberos_enabled or authentication.plain != "off":
        raise StartupError(
            "server.transport_mode is http, and SASL is not possible with it",
            remedy="Give clients with Kerberos or passwords a port of their own: [[server.listeners]].",
        )
    if authentication.jwt_jwks_url and not (server.tls_enabled or settings.security.accept_insecure):
        raise StartupError(
            "authentication.jwt_jwks_url: clients send tokens unencrypted, and server.tls_enabled is false",
            remedy="Set server.tls_enabled, or accept it, as behind a proxy that does TLS:"
            " --set security.accept_insecure=true.",
        )
    return HttpPort(
        server.http_path,
        tokens if authentication.jwt_jwks_url else None,
        HttpLimits(
            server.http_max_header_bytes,
            server.max_message_bytes,
            server.http_header_timeout_s,
            finite_s(server.message_timeout_s),
        ),
        buffers,
        network_of=client_networks(server.client_ipv6_prefix_length),
        proxies=TrustedNetworks(server.http_forwarded_from),
    )


def bearer_tokens(settings: Settings) -> BearerTokens | None:
    """For the whole server: all ports and the management port use the same keys. None if no tokens are configured.

    Reads the keys. Raises StartupError.
    """
    section = settings.authentication
    if not section.jwt_jwks_url:
        return None
    admin = settings.admin
    if admin.enabled and admin.jwt_rights_claim and not (admin.tls_enabled or settings.security.accept_insecure):
        raise StartupError(
            "admin.jwt_rights_claim: tokens are sent unencrypted, and admin.tls_enabled is false",
            remedy="Set admin.tls_enabled, or accept it, as behind a proxy that does TLS:"
            " --set security.accept_insecure=true.",
        )
    keys = key_set(section)
    try:
        keys.load()
    except KeySetError as error:
        raise StartupError(f"authentication.jwt_jwks_url: {error}", remedy="Is the address right?") from error
    options = BearerOptions(
        algorithms=section.jwt_algorithms,
        issuer=section.jwt_issuer,
        audience=section.jwt_audience,
        user_claim=section.jwt_user_claim,
        leeway_s=section.jwt_leeway_s,
        groups_claim=section.jwt_groups_claim,
        rights_claim=admin.jwt_rights_claim,
    )
    return BearerTokens(keys, options)


def key_set(section: AuthenticationSettings) -> KeySet:
    """The issuer's keys, not read yet. Raises StartupError if the required package is missing."""
    try:
        from jwt.algorithms import has_crypto
    except ImportError as error:
        raise StartupError(
            "authentication.jwt_jwks_url: the package PyJWT is not installed", remedy="Install hms-cache[jwt]."
        ) from error
    if not has_crypto:
        raise StartupError(
            "authentication.jwt_jwks_url: the package cryptography is not installed", remedy="Install hms-cache[jwt]."
        )
    return KeySet(
        KeySetOptions(
            url=section.jwt_jwks_url,
            ca_file=str(section.jwt_ca_file) if section.jwt_ca_file else None,
            timeout_s=section.jwt_timeout_s,
            refresh_interval_s=section.jwt_refresh_interval_s,
            retry_interval_s=section.jwt_retry_interval_s,
        )
    )
