"""Revocation lists (CRLs): certificates of clients that their authorities have withdrawn.

OpenSSL checks certificates with them; here they are loaded, and checked for mistakes that OpenSSL would silently
accept.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from hms_cache.app.security.certificate_files import content_of, trust
from hms_cache.errors import StartupError

if TYPE_CHECKING:
    from cryptography.x509 import CertificateRevocationList

_SETTING = "server.tls_client_crl_file"
_BEGIN, _END = b"-----BEGIN X509 CRL-----", b"-----END X509 CRL-----"


def load_revocation_lists(context: ssl.SSLContext, file: Path) -> None:
    """Makes the context refuse certificates that a list in the file withdraws, and certificates of authorities without
    a valid list (OpenSSL's `X509_V_FLAG_CRL_CHECK_ALL`). Raises StartupError."""
    if not _lists_in(file):
        raise StartupError(
            f"{_SETTING}: {file} holds no revocation lists in PEM",
            remedy="Convert them: openssl crl -inform der -in LIST -out LIST.pem",
        )
    before = context.cert_store_stats()["x509"]
    trust(context, file, f"{_SETTING}: no use of {file}", "It must hold nothing but revocation lists in PEM.")
    if context.cert_store_stats()["x509"] != before:
        # OpenSSL would add it to the authorities that may sign client certificates.
        raise StartupError(
            f"{_SETTING}: {file} holds certificates, too",
            remedy="Authorities go into server.tls_client_ca_file; leave the revocation lists alone in this file.",
        )
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def end_of_revocation_lists_s(file: Path) -> float | None:
    """The earliest expiry, in seconds since 1970; None: they do not expire. Raises StartupError."""
    ends = [one.next_update_utc for one in _lists_in(file)]
    return min((one.timestamp() for one in ends if one is not None), default=None)


def _lists_in(file: Path) -> list[CertificateRevocationList]:
    content = content_of(file, _SETTING)
    try:
        from cryptography.x509 import load_pem_x509_crl
    except ImportError as error:
        raise StartupError(f"{_SETTING} needs the package cryptography", remedy="Install hms-cache[tls].") from error
    try:
        return [load_pem_x509_crl(_BEGIN + one.partition(_END)[0] + _END) for one in content.split(_BEGIN)[1:]]
    except ValueError as error:
        raise StartupError(
            f"{_SETTING}: {file} holds a revocation list that cannot be read: {error}",
            remedy="Fetch it again from the authority.",
        ) from error
