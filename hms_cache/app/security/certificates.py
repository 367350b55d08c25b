"""Loads certificates and keys of the configuration into the TLS context of a listener."""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_cache.app.security.certificate_files import content_of, reason_of, trust
from hms_cache.app.security.revocation import load_revocation_lists
from hms_cache.config.sections import ServerSettings
from hms_cache.errors import StartupError
from hms_cache.key_stores.java_key_store import is_java_key_store, private_key, read_key_store

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_NO_KEY = "it holds no certificate with a key"

_PKCS12_TAG = b"\x30"
"""Tag of the ASN.1 sequence with which a PKCS12 file begins; PEM is text."""

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
"""Ciphers for TLS 1.2: those with forward secrecy and authenticated encryption (RFC 7525, 4.2); Java 8 supports
some."""

ENDS_SOON_S = 30 * 24 * 3600.0
"""A certificate that expires within a month is reported: corporate authorities take their time."""

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python does not define."""


def server_context(settings: ServerSettings, *, asks_clients: bool = True) -> ssl.SSLContext:
    """The context described by the settings `tls_*`, from the current files. Raises StartupError.

    `asks_clients`: requests client certificates if the settings say so.
    """
    assert settings.tls_certificate_file is not None, "the settings were checked"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[
        settings.tls_minimum_version
    ]
    # A client could keep the loop busy with handshakes on one connection.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    try:
        context.set_ciphers(settings.tls_ciphers or _CIPHERS)
    except ssl.SSLError as error:
        raise StartupError(
            f"server.tls_ciphers: OpenSSL knows none of {settings.tls_ciphers!r}",
            remedy="`openssl ciphers -v` lists the names.",
        ) from error
    _load_certificate(context, settings)
    if asks_clients and settings.tls_client_certificates != "none":
        _load_client_authorities(context, settings)
    return context


def end_of_certificate_s(settings: ServerSettings) -> float | None:
    """Expiry of the certificate, in seconds since 1970; None if OpenSSL does not report it. Raises StartupError.

    Only the certificate itself is trusted, so it can be read even if clients would refuse it.
    """
    context = server_context(settings, asks_clients=False)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    try:
        certificate = shake_hands(context, trusting, None).getpeercert(binary_form=True)
        assert certificate is not None, "every server shows one"
        trusting.load_verify_locations(cadata=certificate)
        trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        trusting.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
        trusting.verify_mode = ssl.CERT_REQUIRED
        shown = shake_hands(context, trusting, None).getpeercert()
    except ssl.SSLError:
        return None
    return float(ssl.cert_time_to_seconds(str(shown["notAfter"]))) if shown else None


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None) -> ssl.SSLObject:
    """The client's end after a handshake in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asks = client.wrap_bio(to_client, to_server, server_hostname=name)
    answers = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        for end in (asks, answers):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if end is asks:
                return asks
    raise AssertionError("a handshake of TLS is two round trips")


def _load_certificate(context: ssl.SSLContext, settings: ServerSettings) -> None:
    file = settings.tls_certificate_file
    assert file is not None
    password = settings.tls_key_password.get_secret_value()
    content = content_of(file, "server.tls_certificate_file")
    try:
        if is_java_key_store(content) or content.startswith(_PKCS12_TAG):
            with _pem_of_key_store(file, content, password) as (pem, pem_password):
                context.load_cert_chain(pem, password=pem_password)
        else:
            # A function, so that OpenSSL does not ask for a missing password on the terminal.
            context.load_cert_chain(file, settings.tls_key_file, password=lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        key_file = settings.tls_key_file or file
        raise StartupError(
            f"server.tls_certificate_file, tls_key_file: no use of {file} and {key_file}: {reason_of(error)}",
            remedy="Both must be PEM, or one file PKCS12, JKS or JCEKS; the key must be the certificate's and its"
            " password right.",
        ) from error


@contextmanager
def _pem_of_key_store(file: Path, content: bytes, password: str) -> Iterator[tuple[str, str]]:
    """Yields a file with certificate and key in PEM, the only format that OpenSSL can read here, and its password.

    The key is encrypted with a random password: the file's permissions are not the only protection while it exists.
    """
    try:
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
    except ImportError as error:
        kind = "a key store of Java's" if is_java_key_store(content) else "PKCS12"
        raise StartupError(
            f"server.tls_certificate_file: {file} is {kind}, which needs the package cryptography",
            remedy="Install hms-cache[tls], or convert it to PEM: keytool -importkeystore -deststoretype pkcs12, then"
            " openssl pkcs12 -in FILE -out FILE.pem -nodes",
        ) from error
    key, certificates = (_in_java_key_store if is_java_key_store(content) else _in_pkcs12)(content, password)
    pem_password = secrets.token_hex(32)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(pem_password.encode()))
    pem += b"".join(one.public_bytes(Encoding.PEM) for one in certificates)
    handle, name = tempfile.mkstemp(prefix="hms-cache-", suffix=".pem")  # readable by this user only
    try:
        with os.fdopen(handle, "wb") as writing:
            writing.write(pem)
        yield name, pem_password
    finally:
        os.unlink(name)


def _in_pkcs12(content: bytes, password: str) -> tuple[Any, list[Certificate]]:
    """The private key, and its certificate followed by the others. Raises ValueError."""
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    key, certificate, others = load_key_and_certificates(content, password.encode() if password else None)
    if key is None or certificate is None:
        raise ValueError(_NO_KEY)
    return key, [certificate, *others]


def _in_java_key_store(content: bytes, password: str) -> tuple[Any, list[Certificate]]:
    """The first private key, and its certificate followed by those of the authorities. The store and the key have the
    same password, as Hive requires. Raises ValueError."""
    from cryptography.hazmat.primitives.serialization import load_der_private_key
    from cryptography.x509 import load_der_x509_certificate

    entries = read_key_store(content, password).private_keys
    if not entries or not entries[0].chain:
        raise ValueError(_NO_KEY)
    key = load_der_private_key(private_key(entries[0], password), None)
    return key, [load_der_x509_certificate(one) for one in entries[0].chain]


def _load_client_authorities(context: ssl.SSLContext, settings: ServerSettings) -> None:
    file = settings.tls_client_ca_file
    assert file is not None
    content_of(file, "server.tls_client_ca_file")
    trust(
        context,
        file,
        f"server.tls_client_ca_file: {file} holds no certificates in PEM",
        "Export them: keytool -exportcert -rfc, or openssl x509 -outform pem.",
    )
    if settings.tls_client_crl_file is not None:
        load_revocation_lists(context, settings.tls_client_crl_file)
    required = settings.tls_client_certificates == "required"
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
