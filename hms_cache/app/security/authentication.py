"""Creates the authentication mechanisms from the configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from hms_cache.app.security.delegation import local_names, passwords_of_tokens, server_principal
from hms_cache.authentication.delegation.token_manager import TokenManager
from hms_cache.authentication.digest_md5 import DigestMd5Mechanism
from hms_cache.authentication.directory import Directory, DirectoryOptions
from hms_cache.authentication.directory_filters import FilterOptions
from hms_cache.authentication.kerberos import GssapiMechanism, KerberosOptions
from hms_cache.authentication.mechanism import Mechanism
from hms_cache.authentication.plain import PlainMechanism
from hms_cache.config import Settings
from hms_cache.config.sections import AuthenticationSettings
from hms_cache.errors import StartupError


def mechanisms(settings: Settings, tokens: TokenManager | None = None) -> dict[str, Callable[[], Mechanism]]:
    """Mechanisms by SASL name; empty if clients need not authenticate. Raises StartupError for an unusable
    configuration."""
    found: dict[str, Callable[[], Mechanism]] = {}
    if settings.authentication.kerberos_enabled:
        options = kerberos_options(settings.authentication)
        found["GSSAPI"] = partial(GssapiMechanism, options)
        if tokens is not None:
            found["DIGEST-MD5"] = partial(
                DigestMd5Mechanism, passwords_of_tokens(tokens, options.local_names), options.qualities
            )
    if settings.authentication.plain == "ldap":
        if not (settings.server.tls_enabled or settings.security.accept_insecure):
            raise StartupError(
                "authentication.plain sends passwords unencrypted, and server.tls_enabled is false",
                remedy="Set server.tls_enabled, or accept it: --set security.accept_insecure=true.",
            )
        found["PLAIN"] = partial(
            PlainMechanism,
            Directory(directory_options(settings.authentication)).check,
            is_folded=settings.authentication.ldap_user_case == "lower",
        )
    return found


def kerberos_options(settings: AuthenticationSettings) -> KerberosOptions:
    """The server's name and key. Raises StartupError if the keytab does not contain the key."""
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise StartupError(
            f"authentication.kerberos_enabled: the package gssapi is not installed: {error}",
            remedy="Install hms-cache[kerberos]; it is compiled against libkrb5-dev.",
        ) from error
    principal = server_principal(settings)
    keytab = settings.kerberos_keytab_file or Path()
    try:
        keytab.read_bytes()
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        store = {"keytab": f"FILE:{keytab}"}
        gssapi.Credentials(name=name, usage="accept", mechs=[gssapi.MechType.kerberos], store=store)
    except (OSError, gssapi.exceptions.GSSError) as error:
        raise StartupError(
            f"authentication.kerberos_keytab_file: no key of {principal} in {keytab}: {error}",
            remedy=f"`klist -k {keytab}` lists what it has; authentication.kerberos_principal names the key.",
        ) from error
    return KerberosOptions(principal, keytab, tuple(settings.quality_of_protection), local_names(settings))


def directory_options(settings: AuthenticationSettings) -> DirectoryOptions:
    """The directory that checks users' passwords. Raises StartupError if the required package is missing or a filter is
    invalid."""
    try:
        from ldap3.core.exceptions import LDAPInvalidFilterError
        from ldap3.operation.search import parse_filter
    except ImportError as error:
        raise StartupError(
            "authentication.plain = ldap: the package ldap3 is not installed", remedy="Install hms-cache[ldap]."
        ) from error
    for name in ("ldap_custom_query", "ldap_user_search_filter", "ldap_group_search_filter"):
        text = getattr(settings, name)
        try:
            if text:
                parse_filter(text.replace("{0}", "u").replace("{1}", "u"), None, False, True, None, False)
        except LDAPInvalidFilterError as error:
            raise StartupError(
                f"authentication.{name}: no filter of LDAP: {error}", remedy="An example: (&(uid={0})(l=Paris))."
            ) from error
    return DirectoryOptions(
        urls=tuple(settings.ldap_url.split()),
        name_patterns=tuple(filter(None, settings.ldap_user_dn_pattern.split(":"))),
        base=settings.ldap_base_dn,
        name_attribute=settings.ldap_guid_key,
        domain=settings.ldap_domain,
        ca_file=str(settings.ldap_ca_file) if settings.ldap_ca_file else None,
        timeout_s=settings.ldap_timeout_s,
        account=settings.ldap_bind_dn,
        account_password=settings.ldap_bind_password.get_secret_value(),
        filters=_filters(settings),
    )


def _filters(settings: AuthenticationSettings) -> FilterOptions:
    patterns = tuple(filter(None, settings.ldap_group_dn_pattern.split(":"))) or (f"=%s,{settings.ldap_base_dn}",)
    return FilterOptions(
        users=frozenset(name.lower() for name in settings.ldap_user_filter),
        groups=frozenset(name.lower() for name in settings.ldap_group_filter),
        # As in Hive: a pattern without a name is the base itself.
        group_bases=tuple(one.partition(",")[2] if "=%s" in one else one for one in patterns),
        group_class=settings.ldap_group_class_key,
        group_key=settings.ldap_group_membership_key,
        group_name_attribute=settings.ldap_guid_key,
        user_key=settings.ldap_user_membership_key,
        base=settings.ldap_base_dn,
        query=settings.ldap_custom_query,
        user_search=settings.ldap_user_search_filter,
        group_search=settings.ldap_group_search_filter,
        group_search_base=settings.ldap_group_base_dn,
    )
