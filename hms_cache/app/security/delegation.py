"""Delegation tokens of the configuration."""

from __future__ import annotations

import socket
from collections.abc import Callable

from hms_cache.authentication.delegation.proxy_users import GroupsOf, ProxyUsers
from hms_cache.authentication.delegation.token_format import TokenIdentifier
from hms_cache.authentication.delegation.token_manager import TokenManager, TokenOptions
from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.config import Settings
from hms_cache.config.sections import AuthenticationSettings
from hms_cache.errors import StartupError
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.security.tokens import Tokens


def token_manager(settings: Settings, tokens: Tokens, groups_of: GroupsOf, *, is_hive_3: bool) -> TokenManager | None:
    """None if clients cannot get tickets to request tokens, or if tokens are disabled. Raises StartupError.

    `groups_of`: groups of the users for whom proxy users act.
    """
    section = settings.authentication
    if not (section.kerberos_enabled and section.delegation_tokens):
        return None
    try:
        proxy_users = ProxyUsers(section.proxy_users, groups_of)
    except ValueError as error:
        raise StartupError(f"authentication.proxy_users: {error}", remedy="See docs/security.md.") from error
    options = TokenOptions(
        max_lifetime_s=section.token_max_lifetime_s,
        renew_interval_s=section.token_renew_interval_s,
        key_update_interval_s=section.token_key_update_interval_s,
        padded=not is_hive_3,
    )
    return TokenManager(tokens, options, proxy_users, local_names(section))


def server_principal(settings: AuthenticationSettings) -> str:
    """The server's principal, with the host's name inserted."""
    return settings.kerberos_principal.replace("_HOST", socket.getfqdn().lower())


def local_names(settings: AuthenticationSettings) -> LocalNames:
    """The rules that map principals to users. Raises StartupError."""
    principal = server_principal(settings)
    try:
        return LocalNames(settings.auth_to_local, principal.rpartition("@")[2] if "@" in principal else "")
    except ValueError as error:
        raise StartupError(f"authentication.auth_to_local: {error}", remedy="See docs/security.md.") from error


def passwords_of_tokens(tokens: TokenManager, names: LocalNames) -> Callable[[bytes], tuple[str, str, str, bytes]]:
    """Looks up passwords for `DigestMd5Mechanism`."""

    def read_token(identifier: bytes) -> tuple[str, str, str, bytes]:
        try:
            token, password = tokens.password(identifier)
        except DatabaseUnavailable as error:
            raise AuthenticationError(
                "DIGEST-MD5: the database of the tokens is unavailable; retry", "unavailable"
            ) from error
        return user_of(token, names), token.owner, token.real_user, password

    return read_token


def user_of(token: TokenIdentifier, names: LocalNames) -> str:
    """The short name of a token's owner. Raises AuthenticationError."""
    owner = token.owner
    return names.of(owner) if "@" in owner or "/" in owner else owner
