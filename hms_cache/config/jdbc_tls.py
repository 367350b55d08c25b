"""Converts TLS parameters of JDBC URLs to options of our drivers.

Sources: MySQL Connector/J 5.1 and 8 (``useSSL``, ``requireSSL``, ``verifyServerCertificate``, ``sslMode``), MariaDB
Connector/J 2 and 3 (``useSsl``, ``sslMode``, ``trustServerCertificate``, ``serverSslCert``), pgjdbc 42 (``ssl``,
``sslmode``, ``sslfactory``, …). If versions differ, the stricter meaning is used, so that a request for TLS is never
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Names of parameters that may protect the connection. An unknown one among them is reported, never ignored.
_SOUNDS_LIKE_PROTECTION = re.compile(
    r"(?i)ssl|tls|trust|keystore|keypassword|certificate|cipher|kerberos|gss|krb|channelbinding|requireauth"
)

_MODES = {
    "disabled": "DISABLED",
    "disable": "DISABLED",
    "preferred": "PREFERRED",
    "required": "REQUIRED",
    "trust": "REQUIRED",
    "verify_ca": "VERIFY_CA",
    "verify-ca": "VERIFY_CA",
    "verify_identity": "VERIFY_IDENTITY",
    "verify-full": "VERIFY_IDENTITY",
}

#: Parameters that do not affect the protection of the connection.
_MYSQL_WITHOUT_WEIGHT = frozenset(
    {
        "truststoretype",
        "keystoretype",
        "trustcertificatekeystoretype",
        "clientcertificatekeystoretype",
        "fallbacktosystemtruststore",
        "fallbacktosystemkeystore",
        "tcpnodelay",
    }
)
_PASSWORDS = frozenset(
    {
        "truststorepassword",
        "trustcertificatekeystorepassword",
        "keystorepassword",
        "clientcertificatekeystorepassword",
        "keypassword",
        "sslpassword",
    }
)
"""Their values are kept as they are: a blank at an end belongs to the password."""
_POSTGRESQL_SAME = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl")
_POSTGRESQL_WITHOUT_WEIGHT = frozenset(
    {
        "sslfactoryarg",
        "sslresponsetimeout",
        "gssresponsetimeout",
        "gsslib",
        "usespnego",
        "kerberosservername",
        "jaasapplicationname",
    }
)

_MYSQL_STORES = (
    ("serversslcert", (), "ssl_ca", ""),
    ("truststore", ("truststorepassword",), "ssl_ca", "ssl_ca_password"),
    ("trustcertificatekeystoreurl", ("trustcertificatekeystorepassword",), "ssl_ca", "ssl_ca_password"),
    ("keystore", ("keystorepassword", "keypassword"), "ssl_cert", "ssl_key_password"),
    ("clientcertificatekeystoreurl", ("clientcertificatekeystorepassword",), "ssl_cert", "ssl_key_password"),
)
"""Parameters that name files and their passwords, and our drivers' parameters for both; the first that is given counts.
A file may be PEM or a key store. A store and its key have one password."""

_UNKNOWN = "it is not supported: remove it if the connection is sufficiently protected without it"


@dataclass(slots=True)
class Translated:
    """``options``: options of our drivers. ``refused``: each parameter that cannot be honoured, with the remedy."""

    options: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def is_about_protection(name: str) -> bool:
    """Whether a JDBC parameter of this name protects the connection."""
    return _SOUNDS_LIKE_PROTECTION.search(name) is not None


def translate(database: str, parameters: Mapping[str, str]) -> Translated:
    """Translates parameters about protection.

    :param database: ``mysql``, ``mariadb`` or ``postgresql``.
    """
    given = {
        name: value if name in _PASSWORDS else value.strip()
        for name, value in ((written.lower(), value) for written, value in parameters.items())
    }
    if database in ("mysql", "mariadb"):
        return _of_mysql(given, is_mariadb=database == "mariadb")
    return _of_postgresql(given)


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() in ("", "true", "yes", "1")


def _of_mysql(given: Mapping[str, str], *, is_mariadb: bool) -> Translated:
    found = Translated()
    remaining = dict(given)
    mode = _mysql_mode(remaining, found, is_mariadb=is_mariadb)
    if mode == "DISABLED":
        found.options["ssl_mode"] = mode
        return found
    verifies = mode in ("VERIFY_CA", "VERIFY_IDENTITY")
    for store, passwords, option, password_option in _MYSQL_STORES:
        path = remaining.pop(store, "").removeprefix("file://").removeprefix("file:")
        password = next((given[one] for one in passwords if given.get(one)), "")
        if not path or option in found.options:
            continue
        if path.startswith(("-----BEGIN", "classpath:")) or "://" in path:
            found.refused[store] = "write it to a file and name this file"
        elif option == "ssl_cert" or verifies or mode is None:
            found.options[option] = path
            if password:
                found.options[password_option] = password
    if mode is None and "ssl_ca" in found.options:
        mode = "VERIFY_IDENTITY"
    if mode is not None:
        found.options["ssl_mode"] = mode
    for name in ("enabledtlsprotocols", "tlsversions", "enabledsslprotocolsuites"):
        versions = [version.strip().lower() for version in remaining.pop(name, "").split(",") if version.strip()]
        if versions and "tlsv1.2" not in versions:
            found.refused[name] = "only TLS 1.2 and 1.3 are supported: name both, or remove the parameter"
    for name in remaining:
        if name not in _MYSQL_WITHOUT_WEIGHT and name not in _PASSWORDS:
            found.refused[name] = _UNKNOWN
    return found


def _mysql_mode(remaining: dict[str, str], found: Translated, *, is_mariadb: bool) -> str | None:
    """Returns the mode, and removes the parameters that determine it from ``left``."""
    named = remaining.pop("sslmode", "")
    use, require = remaining.pop("usessl", None), remaining.pop("requiressl", None)
    verify = remaining.pop("verifyservercertificate", None)
    trust, no_name = (
        remaining.pop("trustservercertificate", None),
        remaining.pop("disablesslhostnameverification", None),
    )
    if named:
        if named.lower() not in _MODES:
            found.refused["sslmode"] = f"{named} is not a mode: use {', '.join(dict.fromkeys(_MODES.values()))}"
            return "REQUIRED"
        return _MODES[named.lower()]
    if use is not None and not _is_true(use):
        return "DISABLED"
    if not (use is not None or _is_true(require) or _is_true(verify)):
        return None
    if is_mariadb:
        return "REQUIRED" if _is_true(trust) else "VERIFY_CA" if _is_true(no_name) else "VERIFY_IDENTITY"
    has_trust = any(name in remaining for name in ("serversslcert", "trustcertificatekeystoreurl"))
    return "VERIFY_CA" if _is_true(verify) or (verify is None and has_trust) else "REQUIRED"


def _of_postgresql(given: Mapping[str, str]) -> Translated:
    found = Translated()
    remaining = dict(given)
    for name in _POSTGRESQL_SAME:
        value = remaining.pop(name, "")
        if value:
            found.options[name] = value
    requested = remaining.pop("ssl", None)
    factory = remaining.pop("sslfactory", "").rpartition(".")[2]
    if _is_true(requested) and found.options.get("sslmode", "prefer") in ("disable", "allow", "prefer"):
        # pgjdbc since 42.2.5: ssl=true verifies everything, unless a mode requires less. A mode that allows unencrypted
        # connections is not used.
        found.options["sslmode"] = "verify-full"
    mode = found.options.get("sslmode")
    if mode is not None and mode not in ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"):
        found.refused["sslmode"] = f"{mode} is not a mode: use require, verify-ca or verify-full"
        found.options["sslmode"] = "verify-full"
    if mode == "disable":
        return found
    if factory == "NonValidatingFactory":
        found.options["sslmode"] = "require"
    elif factory == "DefaultJavaSSLFactory":
        found.options |= {"sslmode": "verify-full", "sslrootcert": "system"}
    elif factory not in ("", "LibPQFactory", "jdbc4.LibPQFactory"):
        found.refused["sslfactory"] = "Java classes are not supported: use sslmode and sslrootcert"
    binding = remaining.pop("channelbinding", "")
    if binding:
        found.options["channel_binding"] = binding
    encryption = remaining.pop("gssencmode", "")
    if encryption:
        found.options["gssencmode"] = encryption
    authentication = remaining.pop("requireauth", "")
    if authentication:
        found.options["require_auth"] = authentication
    for name, value in remaining.items():
        if name not in _POSTGRESQL_WITHOUT_WEIGHT and value:
            found.refused[name] = _UNKNOWN
    return found
