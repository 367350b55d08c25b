"""TLS to MariaDB and MySQL, as the URL's parameters ask for it.

``ssl_mode`` has the meaning of the MySQL client's ``--ssl-mode``:

================  ==========================================================================================
DISABLED          no TLS
PREFERRED         TLS if the server offers it; nothing is verified (the driver's default)
REQUIRED          TLS, or no connection; nothing is verified
VERIFY_CA         and the server's certificate is signed by an authority of ``ssl_ca``, else of the system's
VERIFY_IDENTITY   and it is made out to the host's name (the default with ``ssl_ca``)
================  ==========================================================================================

``ssl_ca``, ``ssl_capath``, ``ssl_cert`` and ``ssl_key`` name PEM files. ``ssl_ca`` and ``ssl_cert`` may also name key
stores (PKCS12, JKS, JCEKS), with their passwords in ``ssl_ca_password`` and ``ssl_key_password``.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from hms_cache.errors import ConfigurationError
from hms_cache.key_stores.certificates import certificate_with_key, is_key_store, trusted_certificates
from hms_cache.key_stores.errors import KeyStoreError

#: Connection option: connect with TLS or not at all. Removed before the driver sees the options.
REQUIRE_TLS = "hms_cache_require_tls"

_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_NAMES = (
    "ssl_mode",
    "ssl_ca",
    "ssl_ca_password",
    "ssl_capath",
    "ssl_cert",
    "ssl_key",
    "ssl_key_password",
    "ssl_cipher",
)
_PASSWORDS = ("ssl_ca_password", "ssl_key_password")


def _preferred() -> ssl.SSLContext:
    """TLS if the server offers it, without verification: no certificates are read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_PREFERRED = _preferred()
"""Used without TLS parameters. The driver would create one per connection, and read the system's certificates for it,
which takes 25 ms."""


def pop_tls_options(url: URL) -> tuple[URL, dict[str, Any]]:
    """The URL without its TLS parameters, and the connection options for them.

    Raises ConfigurationError for an invalid mode, a file that cannot be read, or an unknown parameter.
    """
    given = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    about = {name: value for name, value in given.items() if name.startswith(("ssl", "tls"))}
    if not about:
        return url, {"ssl": _PREFERRED}
    checks_name = about.pop("ssl_check_hostname", "true").lower() not in ("false", "0", "no")
    unknown = [name for name in about if name not in _NAMES]
    if unknown:
        raise ConfigurationError(f"database.url: no parameter {', '.join(unknown)}: {', '.join(_NAMES)} are")
    has_authorities = "ssl_ca" in about or "ssl_capath" in about
    fallback = "REQUIRED" if not has_authorities else "VERIFY_IDENTITY" if checks_name else "VERIFY_CA"
    mode = about.pop("ssl_mode", fallback).upper()
    if mode not in _MODES:
        raise ConfigurationError(f"database.url: ssl_mode must be one of {', '.join(_MODES)}")
    plain = url.difference_update_query([name for name in given if name.startswith(("ssl", "tls"))])
    if mode == "DISABLED":
        return plain, {"ssl_disabled": True}
    try:
        context = _context(mode, about)
    except (OSError, ssl.SSLError, KeyStoreError) as error:
        raise ConfigurationError(f"database.url: TLS cannot be set up with {_files(about)}: {error}") from error
    return plain, {"ssl": context, REQUIRE_TLS: mode != "PREFERRED"}


def _context(mode: str, files: Mapping[str, str]) -> ssl.SSLContext:
    authorities = _key_store(files.get("ssl_ca"))
    if authorities is None:
        context = ssl.create_default_context(cafile=files.get("ssl_ca"), capath=files.get("ssl_capath"))
    else:
        trusted = b"".join(trusted_certificates(authorities, files.get("ssl_ca_password", "")))
        context = ssl.create_default_context(cadata=trusted, capath=files.get("ssl_capath"))
    # Certificates that MySQL generates lack X.509 fields on which Python 3.13 insists.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = mode == "VERIFY_IDENTITY"
    context.verify_mode = ssl.CERT_REQUIRED if mode.startswith("VERIFY") else ssl.CERT_NONE
    own = _key_store(files.get("ssl_cert"))
    if own is not None:
        with certificate_with_key(own, files.get("ssl_key_password", "")) as (file, password):
            context.load_cert_chain(file, password=password)
    elif "ssl_cert" in files:
        # Without a password OpenSSL would ask for one on the terminal.
        context.load_cert_chain(files["ssl_cert"], files.get("ssl_key"), files.get("ssl_key_password", ""))
    if "ssl_cipher" in files:
        context.set_ciphers(files["ssl_cipher"])
    return context


def _key_store(file: str | None) -> bytes | None:
    """The content of a key store; None for a file in PEM. Raises OSError."""
    content = Path(file).read_bytes() if file is not None else b""
    return content if is_key_store(content) else None


def _files(files: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in files.items() if name not in _PASSWORDS) or "the system's"
