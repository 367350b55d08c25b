"""Reads certificates and keys from key stores in JKS, JCEKS and PKCS12."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hms_cache.key_stores.errors import CipherMissingError, KeyStoreError
from hms_cache.key_stores.java_key_store import is_java_key_store, private_key, read_key_store

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_PKCS12_TAG = b"\x30"
"""Tag of the ASN.1 sequence with which a PKCS12 file begins; PEM is text."""


def is_key_store(content: bytes) -> bool:
    """Returns whether a file with this content is a key store. PEM files are not."""
    return is_java_key_store(content) or content.startswith(_PKCS12_TAG)


def trusted_certificates(content: bytes, password: str) -> tuple[bytes, ...]:
    """Returns the certificates that a key store declares trusted, in DER.

    :raises KeyStoreError: it has none, is damaged, or the password is wrong.
    """
    if is_java_key_store(content):
        found = read_key_store(content, password).certificates
    else:
        found = tuple(_der(one) for one in _pkcs12(content, password)[1])
    if not found:
        raise KeyStoreError("it holds no trusted certificate")
    return found


@contextmanager
def certificate_with_key(content: bytes, password: str) -> Iterator[tuple[str, str]]:
    """Yields a file with the store's first key and its certificates in PEM, the only format that OpenSSL can read from
    Python, and its password. The store and the key have the same password, as Hive requires.

    The key is encrypted with a random password: the file's permissions are not its only protection while it exists.

    :raises KeyStoreError: there is none, the store is damaged, or the password is wrong.
    """
    key, certificates = (_in_java_key_store if is_java_key_store(content) else _in_pkcs12)(content, password)
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

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
    (key, certificate), others = _pkcs12(content, password)
    if key is None or certificate is None:
        raise KeyStoreError(_NO_KEY)
    return key, [certificate, *others]


_NO_KEY = "it holds no certificate with a key"


def _pkcs12(content: bytes, password: str) -> tuple[tuple[Any, Certificate | None], list[Certificate]]:
    """Returns the key with its certificate, if there are any, and the other certificates."""
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates
    except ImportError as error:
        raise CipherMissingError from error
    try:
        key, certificate, others = load_key_and_certificates(content, password.encode() if password else None)
    except ValueError as error:
        raise KeyStoreError(str(error)) from error
    return (key, certificate), others


def _in_java_key_store(content: bytes, password: str) -> tuple[Any, list[Certificate]]:
    try:
        from cryptography.hazmat.primitives.serialization import load_der_private_key
        from cryptography.x509 import load_der_x509_certificate
    except ImportError as error:
        raise CipherMissingError from error
    entries = read_key_store(content, password).private_keys
    if not entries or not entries[0].chain:
        raise KeyStoreError(_NO_KEY)
    try:
        key = load_der_private_key(private_key(entries[0], password), None)
        return key, [load_der_x509_certificate(one) for one in entries[0].chain]
    except ValueError as error:
        raise KeyStoreError(str(error)) from error


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)
