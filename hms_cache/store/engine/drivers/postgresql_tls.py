"""TLS to PostgreSQL with certificates and keys in Java's formats, which libpq does not read.

``sslrootcert`` may name a key store (PKCS12, JKS, JCEKS), with its password in ``sslrootcert_password``, or a
certificate in DER. ``sslkey`` may name a key store, which then also contains the certificate, or a key in PKCS8 (DER),
as in pgjdbc; ``sslpassword`` is its password. libpq gets the same in PEM, in files in memory. All other parameters are
left to libpq.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL

from hms_cache.errors import ConfigurationError
from hms_cache.key_stores.certificates import (
    certificate_and_key_in_pem,
    is_key_store,
    key_in_pem,
    trusted_certificates,
)
from hms_cache.key_stores.errors import KeyStoreError
from hms_cache.key_stores.java_key_store import is_java_key_store
from hms_cache.key_stores.private_file import PrivateFile

_PASSWORD: Final = "sslrootcert_password"

_PKCS12_SUFFIXES: Final = (".p12", ".pfx")
"""By which pgjdbc tells a key store from a key."""

_NOT_FILES: Final = ("", "system")


class PostgresqlTls:
    """The URL's parameters for TLS, as libpq understands them."""

    def __init__(self, url: URL) -> None:
        """:raises ConfigurationError: a file of Java's formats cannot be read."""
        self._files: list[PrivateFile] = []
        """Read again by each connection."""
        given = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
        options: dict[str, str] = {}
        for name, convert in (("sslrootcert", self._authorities), ("sslkey", self._key)):
            content = _java_content(given.get(name, ""))
            if content is not None:
                try:
                    options |= convert(content, given)
                except (KeyStoreError, OSError) as error:
                    raise ConfigurationError(
                        f"database.url: TLS cannot be set up with {name}={given[name]}: {error}"
                    ) from error
        plain = url.difference_update_query([_PASSWORD])
        self.url = plain.update_query_dict(options) if options else plain
        """The URL for libpq."""

    def _authorities(self, content: bytes, given: dict[str, str]) -> dict[str, str]:
        found = trusted_certificates(content, given.get(_PASSWORD, ""))
        return {"sslrootcert": self._path("".join(map(ssl.DER_cert_to_PEM_cert, found)).encode())}

    def _key(self, content: bytes, given: dict[str, str]) -> dict[str, str]:
        password = given.get("sslpassword", "")
        if not (is_java_key_store(content) or given["sslkey"].lower().endswith(_PKCS12_SUFFIXES)):
            pem, pem_password = key_in_pem(content, password)
            return {"sslkey": self._path(pem), "sslpassword": pem_password}
        pem, pem_password = certificate_and_key_in_pem(content, password)
        path = self._path(pem)
        return {"sslcert": path, "sslkey": path, "sslpassword": pem_password}

    def _path(self, pem: bytes) -> str:
        self._files.append(PrivateFile(pem))
        return self._files[-1].path


def _java_content(file: str) -> bytes | None:
    """The content of a file in one of Java's formats; None if libpq can read it, or reports that it is missing."""
    if file in _NOT_FILES:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError:
        return None
    return content if is_key_store(content) else None
