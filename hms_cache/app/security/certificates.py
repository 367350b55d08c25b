"""Loads certificates and keys of the configuration into the TLS context of a listener."""

from __future__ import annotations

import ssl

from hms_cache.app.security.certificate_files import content_of, reason_of, trust
from hms_cache.app.security.revocation import load_revocation_lists
from hms_cache.config.sections import ServerSettings
from hms_cache.errors import StartupError
from hms_cache.key_stores.certificates import certificate_with_key, is_key_store
from hms_cache.key_stores.errors import CipherMissingError

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
"""Ciphers for TLS 1.2: those with forward secrecy and authenticated encryption (RFC 7525, 4.2); Java 8 supports
some."""

ENDS_SOON_S = 30 * 24 * 3600.0
"""A certificate that expires within a month is reported: corporate authorities take their time."""

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python does not define."""


def server_context(settings: ServerSettings, *, requests_client_certificates: bool = True) -> ssl.SSLContext:
    """The context described by the settings `tls_*`, from the current files. Raises StartupError.

    `requests_client_certificates`: requests client certificates if the settings say so.
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
    if requests_client_certificates and settings.tls_client_certificates != "none":
        _load_client_authorities(context, settings)
    return context


def end_of_certificate_s(settings: ServerSettings) -> float | None:
    """Expiry of the certificate, in seconds since 1970; None if OpenSSL does not report it. Raises StartupError.

    Only the certificate itself is trusted, so it can be read even if clients would refuse it.
    """
    context = server_context(settings, requests_client_certificates=False)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    try:
        certificate = handshake(context, trusting, None).getpeercert(binary_form=True)
        assert certificate is not None, "every server shows one"
        trusting.load_verify_locations(cadata=certificate)
        trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        trusting.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
        trusting.verify_mode = ssl.CERT_REQUIRED
        shown = handshake(context, trusting, None).getpeercert()
    except ssl.SSLError:
        return None
    return float(ssl.cert_time_to_seconds(str(shown["notAfter"]))) if shown else None


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None) -> ssl.SSLObject:
    """The client's end after a handshake in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server, server_hostname=name)
    answers = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        for end in (client_end, answers):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if end is client_end:
                return client_end
    raise AssertionError("a handshake of TLS is two round trips")


def _load_certificate(context: ssl.SSLContext, settings: ServerSettings) -> None:
    file = settings.tls_certificate_file
    assert file is not None
    password = settings.tls_key_password.get_secret_value()
    content = content_of(file, "server.tls_certificate_file")
    try:
        if is_key_store(content):
            with certificate_with_key(content, password) as (pem, pem_password):
                context.load_cert_chain(pem, password=pem_password)
        else:
            # A function, so that OpenSSL does not ask for a missing password on the terminal.
            context.load_cert_chain(file, settings.tls_key_file, password=lambda: password)
    except CipherMissingError as error:
        raise StartupError(
            f"server.tls_certificate_file: {file} is a key store, which needs the package cryptography",
            remedy="Install hms-cache[tls], or convert it to PEM: keytool -importkeystore -deststoretype pkcs12, then"
            " openssl pkcs12 -in FILE -out FILE.pem -nodes",
        ) from error
    except (ssl.SSLError, OSError, ValueError) as error:
        key_file = settings.tls_key_file or file
        raise StartupError(
            f"server.tls_certificate_file, tls_key_file: no use of {file} and {key_file}: {reason_of(error)}",
            remedy="Both must be PEM, or one file PKCS12, JKS or JCEKS; the key must be the certificate's and its"
            " password right.",
        ) from error


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
