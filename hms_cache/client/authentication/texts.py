"""Parses texts that say how a client authenticates, and makes such texts from the keys of Hive's and Spark's
configuration.

A text is a mechanism followed by words `name=value`; values that contain blanks are quoted::

    none
    kerberos server=hive/_HOST@EXAMPLE.COM principal=etl@EXAMPLE.COM keytab=/etc/etl.keytab protection=auth-conf
    ldap user=ann password_file=/etc/ann.password
    ldap user=ann password_store=jceks://file/etc/ann.jceks
    token file=/run/tokens
    jwt file=/run/token

A text contains no secret, so it can be shown on a command line, in a plan, in a log and on Spark's pages.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from hms_cache.client.authentication.values import (
    BEARER_FILE_VARIABLE,
    BEARER_VARIABLE,
    PASSWORD_FILE_VARIABLE,
    QUALITIES,
    TOKEN_FILE_VARIABLE,
    UNAUTHENTICATED,
    Authentication,
    BearerToken,
    DelegationToken,
    Kerberos,
    Password,
)
from hms_cache.errors import ConfigurationError

_WORDS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "kerberos": ("server", "principal", "keytab", "ticket_cache", "protection"),
    "ldap": ("user", "password_file", "password_store", "unencrypted"),
    "token": ("file", "service", "protection"),
    "jwt": ("file", "unencrypted"),
}
"""Names that may follow each mechanism."""

_SECRETS = ("password", "token", "secret", "jwt")
"""Names whose value would be a secret."""

_PROTECTION = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
"""Qualities of protection by their names in `hadoop.rpc.protection`."""


def authentication_of(text: str, environment: Mapping[str, str] = os.environ) -> Authentication:
    """Parses a text. Files that it does not name are taken from the environment. Raises ConfigurationError."""
    try:
        mechanism, *others = shlex.split(text) or ["none"]
    except ValueError as error:
        raise ConfigurationError(f"auth: {error}") from error
    known = _WORDS.get(mechanism)
    if known is None:
        # The text is not quoted: it may be a password in the wrong place.
        raise ConfigurationError(f"auth must begin with one of {', '.join(_WORDS)}")
    given: dict[str, str] = {}
    for word in others:
        name, separator, value = word.partition("=")
        if name in _SECRETS and separator and name not in known:
            raise ConfigurationError(
                f"auth: it cannot contain {name}: name the file that contains it, {_file(mechanism)}"
            )
        if name not in known or not separator or not value or name in given:
            words = ", ".join(f"{one}=…" for one in known) or "nothing"
            raise ConfigurationError(f"auth: {mechanism} can be followed by {words}, each once and with a value")
        given[name] = value
    return _MAKERS[mechanism](given, environment)


def _file(mechanism: str) -> str:
    return "password_file=…" if mechanism == "ldap" else "file=…"


def _kerberos(given: Mapping[str, str], environment: Mapping[str, str]) -> Authentication:
    server, principal, keytab = (given.get(name, "") for name in ("server", "principal", "keytab"))
    if "/" not in server:
        raise ConfigurationError("auth: kerberos needs the metastore's principal, server=hive/_HOST@REALM")
    if keytab and not principal:
        raise ConfigurationError("auth: keytab=… needs the principal whose key it contains, principal=…")
    return Kerberos(server, principal, keytab, given.get("ticket_cache", ""), _qualities(given))


def _ldap(given: Mapping[str, str], environment: Mapping[str, str]) -> Authentication:
    user, store = given.get("user", ""), given.get("password_store", "")
    file = given.get("password_file", "")
    if file and store:
        raise ConfigurationError("auth: password_file=… and password_store=… exclude each other")
    file = file or ("" if store else environment.get(PASSWORD_FILE_VARIABLE, ""))
    if not user or not (file or store):
        raise ConfigurationError(
            "auth: ldap needs user=… and password_file=… or password_store=…, or the name of the file in"
            f" {PASSWORD_FILE_VARIABLE}"
        )
    return Password(user, file, _unencrypted(given), store)


def _token(given: Mapping[str, str], environment: Mapping[str, str]) -> Authentication:
    file = given.get("file") or environment.get(TOKEN_FILE_VARIABLE, "")
    if not file:
        raise ConfigurationError(f"auth: token needs file=…, or the name of the file in {TOKEN_FILE_VARIABLE}")
    return DelegationToken(None, file, given.get("service", ""), _qualities(given))


def _jwt(given: Mapping[str, str], environment: Mapping[str, str]) -> Authentication:
    file = given.get("file") or environment.get(BEARER_FILE_VARIABLE, "")
    if not file and not environment.get(BEARER_VARIABLE):
        raise ConfigurationError(
            f"auth: jwt needs file=…, the name of the file in {BEARER_FILE_VARIABLE}, or the token in {BEARER_VARIABLE}"
        )
    return BearerToken(file, _unencrypted(given))


_MAKERS: Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], Authentication]] = {
    "none": lambda given, environment: UNAUTHENTICATED,
    "kerberos": _kerberos,
    "ldap": _ldap,
    "token": _token,
    "jwt": _jwt,
}


def _qualities(given: Mapping[str, str]) -> tuple[str, ...]:
    text = given.get("protection")
    if text is None:
        return ()
    chosen = [_PROTECTION.get(one, one) for one in text.replace(",", " ").split()]
    if not chosen or set(chosen) - set(QUALITIES):
        raise ConfigurationError(f"auth: protection={text!r}: it can be {', '.join(QUALITIES)}")
    return tuple(dict.fromkeys(chosen))


def _unencrypted(given: Mapping[str, str]) -> bool:
    text = given.get("unencrypted", "refused")
    if text not in ("refused", "allowed"):
        raise ConfigurationError("auth: unencrypted= must be refused or allowed")
    return text == "allowed"


def text_of_hive_keys(key: Callable[[str], str | None], environment: Mapping[str, str] = os.environ) -> str:
    """Returns the text for the authentication of a Hive client with this configuration; empty if it does not
    authenticate.

    :param key: returns the value of a key of Hive's, Hadoop's or Spark's configuration, or None if it is not set.
    """

    def of_metastore(name: str) -> str:
        """Reads the key under either spelling: Hive 3 and later know both."""
        return (key(f"hive.metastore.{name}") or key(f"metastore.{name}") or "").strip()

    mode = of_metastore("client.auth.mode").upper()
    if mode == "JWT":
        return "jwt"
    if mode == "PLAIN":
        user = of_metastore("client.plain.username")
        has_file = bool(environment.get(PASSWORD_FILE_VARIABLE))
        store = "" if has_file else (key("hadoop.security.credential.provider.path") or "")
        return _text("ldap", user=user, password_store="".join(store.split()))
    if of_metastore("sasl.enabled").lower() != "true":
        return ""
    protection = ",".join((key("hadoop.rpc.protection") or "").replace(",", " ").lower().split())
    service = of_metastore("token.signature")
    principal, keytab = key("spark.kerberos.principal") or "", key("spark.kerberos.keytab") or ""
    if environment.get(TOKEN_FILE_VARIABLE) and not keytab:
        # Like Hive's client, uses an existing token before a ticket.
        return _text("token", service=service, protection=protection)
    server = of_metastore("kerberos.principal")
    return _text("kerberos", server=server, principal=principal if keytab else "", keytab=keytab, protection=protection)


def _text(mechanism: str, **words: Any) -> str:
    return shlex.join([mechanism, *(f"{name}={value}" for name, value in words.items() if value)])
