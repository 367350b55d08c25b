"""``hms-cache check`` for TLS, authentication and authorization: tries what clients will use.

Only what is enabled is tried, with the server's own account.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from hms_cache.app.security.authentication import directory_options, kerberos_options
from hms_cache.app.security.authorization import authenticates, policy_file, policy_service, require_authentication
from hms_cache.app.security.certificates import ENDS_SOON_S, handshake, server_context
from hms_cache.app.security.expiry import DAY_S
from hms_cache.app.security.groups import directory_groups
from hms_cache.app.security.http_port import key_set
from hms_cache.app.security.ports import settings_of_ports
from hms_cache.app.security.revocation import end_of_revocation_lists_s
from hms_cache.authentication.directory import Directory
from hms_cache.authentication.key_set import KeySetError
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authorization.decisions import Action, SecuredObject, UndecidedError
from hms_cache.config import Settings
from hms_cache.errors import StartupError

if TYPE_CHECKING:
    from pathlib import Path

    from hms_cache.app.checks import Findings

T = TypeVar("T")

_STRANGER = "hms-cache-check"
"""A user that exists in no directory."""


def _made(findings: Findings, make: Callable[[], T]) -> T | None:
    """The result of `make`; None if the settings are invalid, which is reported."""
    try:
        return make()
    except StartupError as error:
        findings.error(error.problem, error.remedy)
        return None


def check_security(findings: Findings, settings: Settings) -> None:
    """Runs all of them, each only if it is enabled."""
    ports = _made(findings, lambda: settings_of_ports(settings))
    if ports is None:
        return
    if len(ports) == 1:
        _check_ports(findings, ports)
    else:
        with findings.check(f"each of the {len(ports)} ports can be opened as it is set"):
            _check_ports(findings, ports)
    _check_trusted_clients(findings, settings)
    if any(one.server.tls_enabled for _, one in ports) or (settings.admin.enabled and settings.admin.tls_enabled):
        with findings.check("the TLS certificate is good"):
            _check_certificate(findings, settings)
    if settings.authentication.kerberos_enabled:
        with findings.check("the keytab has the principal's key, and the KDC takes it"):
            _check_keytab(findings, settings)
    if settings.authentication.plain == "ldap":
        with findings.check("the directory answers"):
            _check_directory(findings, settings)
    if settings.authentication.jwt_jwks_url:
        with findings.check("the issuer's keys can be read and used"):
            _check_issuer(findings, settings)
    if settings.authorization.provider != "off":
        with findings.check("the policy can be used"):
            _check_policy(findings, settings)


def _check_ports(findings: Findings, ports: Sequence[tuple[str, Settings]]) -> None:
    authenticating = [one for _, one in ports if authenticates(one)]
    for name, one in ports:
        where = f"{name} (port {one.server.port})" if len(ports) > 1 else name
        section = one.authentication
        try:
            require_authentication(one)
        except StartupError as error:
            findings.error(error.problem, error.remedy)
        in_the_clear = [
            what
            for what, is_on in (("passwords", section.plain == "ldap"), ("tokens", bool(section.jwt_jwks_url)))
            if is_on and not one.server.tls_enabled
        ]
        for what in in_the_clear:
            warn = findings.warning if one.security.accept_insecure else findings.error
            warn(f"{where}: {what} reach this server in the clear", "Set tls_enabled of the port.")
        if one.server.tls_enabled and one.server.tls_client_certificates != "none":
            try:
                server_context(one.server)
                _check_revocation_lists(findings, where, one.server.tls_client_crl_file)
            except StartupError as error:
                # The certificate has a check of its own.
                if "tls_client_ca_file" in error.problem or "tls_client_crl_file" in error.problem:
                    findings.error(f"{where}: {error.problem}", error.remedy)
        if authenticating and not authenticates(one):
            findings.warning(
                f"{where} does not authenticate clients, although other ports do",
                "Everybody who can reach it may do everything under any name: keep it only until its clients have"
                " moved, and block all others.",
            )
        if one.server.transport_mode == "http" and (section.kerberos_enabled or section.plain != "off"):
            findings.error(
                f"{where}: SASL is not possible over HTTP", "Give it a port of its own: [[server.listeners]]."
            )
        if one.server.transport_mode != "http" and section.jwt_jwks_url:
            findings.error(f"{where}: bearer tokens need HTTP", "Give them a port: [[server.listeners]].")


def _check_trusted_clients(findings: Findings, settings: Settings) -> None:
    """Checks the connections to services whose answers grant access: they must be on this machine or authenticate,
    since anyone who can modify their replies gains access.

    Addresses are reported without the part before the host, which may contain a password.
    """
    section, policy = settings.authentication, settings.authorization
    uses_directory = section.plain == "ldap" or policy.directory_groups or section.proxy_groups == "directory"
    for name, addresses, scheme, better, what in (
        (
            "authentication.ldap_url",
            section.ldap_url if uses_directory else "",
            "ldap",
            "ldaps",
            "passwords and groups",
        ),
        ("authentication.jwt_jwks_url", section.jwt_jwks_url, "http", "https", "the issuer's keys"),
        ("authorization.opa_url", policy.opa_url if policy.provider == "opa" else "", "http", "https", "decisions"),
    ):
        for parts in map(urlsplit, addresses.split()):
            if parts.scheme == scheme and not is_loopback(parts.hostname or ""):
                findings.warning(
                    f"{name}: {what} are sent to {parts.hostname} without TLS",
                    f"Anyone on the network path can change them: give an address of {better}:.",
                )


def is_loopback(host: str) -> bool:
    """Whether an address, or the name `localhost`, is of this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_revocation_lists(findings: Findings, where: str, file: Path | None) -> None:
    """Raises StartupError."""
    ends_s = end_of_revocation_lists_s(file) if file is not None else None
    if ends_s is None or ends_s - time.time() > DAY_S:
        return
    remedy = "Put the authority's new list in place of it and send the server SIGHUP."
    if ends_s < time.time():
        problem = f"{where}: a list of server.tls_client_crl_file has ended: clients with a certificate are refused"
        findings.error(problem, remedy)
    else:
        findings.warning(f"{where}: a list of server.tls_client_crl_file ends within a day", remedy)


def _check_certificate(findings: Findings, settings: Settings) -> None:
    context = _made(findings, lambda: server_context(settings.server, requests_client_certificates=False))
    if context is None:
        return
    file = settings.server.tls_certificate_file
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    certificate = handshake(context, trusting, None).getpeercert(binary_form=True)
    assert certificate is not None, "every server shows one"
    # Only the certificate itself is trusted: this leaves the checks of dates and names.
    trusting.load_verify_locations(cadata=certificate)
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.verify_mode = ssl.CERT_REQUIRED
    try:
        shown = handshake(context, trusting, None).getpeercert()
    except ssl.SSLCertVerificationError as error:
        findings.error(
            f"clients will refuse the certificate {file}: {error.verify_message}",
            "Put a new certificate in place of the files and send the server SIGHUP.",
        )
        return
    assert shown is not None
    remaining_s = ssl.cert_time_to_seconds(str(shown["notAfter"])) - time.time()
    if remaining_s < ENDS_SOON_S:
        findings.warning(
            f"the certificate {file} ends in {remaining_s / 86400:.0f} days, on {shown['notAfter']}",
            "Put a new one in its place and send the server SIGHUP.",
        )
    name = socket.getfqdn().lower()
    trusting.check_hostname = True
    try:
        handshake(context, trusting, name)
    except ssl.SSLCertVerificationError:
        found: Any = shown.get("subjectAltName", ())
        names = ", ".join(value for _, value in found)
        findings.warning(
            f"the certificate {file} is made out to {names or 'no name'}, and this machine is {name}",
            "Clients that check names must reach the server under one of the certificate's.",
        )


def _check_keytab(findings: Findings, settings: Settings) -> None:
    options = _made(findings, lambda: kerberos_options(settings.authentication))
    if options is None:
        return
    import gssapi

    name = gssapi.Name(options.principal, gssapi.NameType.kerberos_principal)
    store = {"client_keytab": f"FILE:{options.keytab}", "ccache": f"MEMORY:{secrets.token_hex(8)}"}
    try:
        # The server requests a ticket for itself, and decrypts it with its own key, as it does with those of clients.
        own = gssapi.Credentials(name=name, usage="initiate", store=store)
        client = gssapi.SecurityContext(name=name, creds=own, usage="initiate")
        keys = {"keytab": f"FILE:{options.keytab}"}
        accepting = gssapi.Credentials(name=name, usage="accept", mechs=[gssapi.MechType.kerberos], store=keys)
        gssapi.SecurityContext(creds=accepting, usage="accept").step(client.step())
    except gssapi.exceptions.GSSError as error:
        findings.error(
            f"the KDC and the keytab {options.keytab} do not agree on {options.principal}: {error}",
            "Is the KDC of /etc/krb5.conf reached, and does the keytab have the newest key? Clients will be"
            " refused; `kinit -k -t KEYTAB PRINCIPAL` says the same.",
        )


def _check_directory(findings: Findings, settings: Settings) -> None:
    options = _made(findings, lambda: directory_options(settings.authentication))
    if options is None:
        return
    for url in options.urls:
        try:
            Directory(replace(options, urls=(url,))).check(_STRANGER, secrets.token_hex(16))
        except AuthenticationError as error:
            if error.outcome == "unavailable":
                findings.error(
                    f"the directory {url} does not answer", "Check authentication.ldap_url, ldap_ca_file, the network."
                )
        else:
            findings.error(
                f"the directory {url} accepts any password",
                "Does authentication.ldap_user_dn_pattern name users, and does the directory refuse unknown ones?",
            )


def _check_issuer(findings: Findings, settings: Settings) -> None:
    section = settings.authentication
    try:
        keys = key_set(section)
        keys.load()
        found = keys.candidates(None)
    except (StartupError, KeySetError) as error:
        problem = error.problem if isinstance(error, StartupError) else f"authentication.jwt_jwks_url: {error}"
        findings.error(problem, "Clients' tokens will be refused with 401: is the address right, and its server up?")
        return
    if not any(key.of(algorithm) is not None for key in found for algorithm in section.jwt_algorithms):
        findings.error(
            f"authentication.jwt_jwks_url: no key there is for {', '.join(section.jwt_algorithms)}",
            "Every token will be refused with 401: add the issuer's algorithm to authentication.jwt_algorithms.",
        )
    if not section.jwt_issuer and not section.jwt_audience:
        findings.warning(
            "all tokens of the issuer are accepted, including those for other services",
            "Set authentication.jwt_audience, and jwt_issuer.",
        )


def _check_policy(findings: Findings, settings: Settings) -> None:
    try:
        policy = policy_file(settings)
        groups = directory_groups(settings)
        service = policy_service(settings)
    except StartupError as error:
        findings.error(error.problem, error.remedy)
        return
    if policy is not None and not policy.grants:
        findings.warning(
            f"{settings.authorization.policy_file} grants nothing to anyone",
            "Every call will be refused: add [[grants]].",
        )
    if groups is not None:
        try:
            groups.of(_STRANGER)
        except UndecidedError:
            findings.error(
                "authorization.directory_groups: the directory does not answer ldap_bind_dn's search for users",
                "Every call will be refused: are ldap_url, ldap_bind_dn and its password right?",
            )
    if service is not None:
        try:
            service.decide(_STRANGER, [(Action.READ, SecuredObject("hive", "default", "t"))])
        except UndecidedError as error:
            findings.error(f"authorization.opa_url: {error.__cause__ or error}", "Every call will be refused.")
