"""Reads certificates and keys from key stores in JKS, JCEKS and PKCS12."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hms_cache.key_stores.errors import CipherMissingError, KeyStoreError
from hms_cache.key_stores.java_key_store import is_java_key_store, private_key, read_key_store
from hms_cache.key_stores.private_file import PrivateFile

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_PKCS12_TAG = b"\x30"
"""Tag of the ASN.1 sequence with which a PKCS12 file begins; PEM is text."""


def is_key_store(content: bytes) -> bool:
    """Returns whether a file with this content is a key store. PEM files are not."""
    return is_java_key_store(content) or content.startswith(_PKCS12_TAG)


def trusted_certificates(content: bytes, password: str) -> tuple[bytes, ...]:
    """Returns the certificates that a key store declares trusted, in DER; a single certificate in DER is also accepted.

    :raises KeyStoreError: it has none, is damaged, or the password is wrong.
    """
    if is_java_key_store(content):
        found = read_key_store(content, password).certificates
    elif _is_certificate(content):
        found = (content,)
    else:
        found = tuple(_der(one) for one in _pkcs12(content, password)[1])
    if not found:
        raise KeyStoreError("it holds no trusted certificate")
    return found


def certificate_and_key_in_pem(content: bytes, password: str) -> tuple[bytes, str]:
    """Returns the store's first key and its certificates in PEM, the only format that OpenSSL and libpq read here, and
    the random password with which the key is encrypted. The store and the key have the same password, as Hive requires.

    :raises KeyStoreError: there is none, the store is damaged, or the password is wrong.
    """
    key, certificates = (_in_java_key_store if is_java_key_store(content) else _in_pkcs12)(content, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    pem, pem_password = _encrypted(key)
    return pem + b"".join(one.public_bytes(Encoding.PEM) for one in certificates), pem_password


def key_in_pem(content: bytes, password: str) -> tuple[bytes, str]:
    """Like `certificate_and_key_in_pem`, for a key in PKCS8 (DER) without its certificate.

    :raises KeyStoreError: it is damaged, or the password is wrong.
    """
    try:
        from cryptography.hazmat.primitives.serialization import load_der_private_key
    except ImportError as error:
        raise CipherMissingError from error
    try:
        return _encrypted(load_der_private_key(content, password.encode() if password else None))
    except (ValueError, TypeError) as error:  # TypeError: a password is missing, or there is nothing to decrypt
        raise KeyStoreError(str(error)) from error


@contextmanager
def certificate_with_key(content: bytes, password: str) -> Iterator[tuple[str, str]]:
    """Yields the path of a file with the result of `certificate_and_key_in_pem`, and its password.

    :raises KeyStoreError: as there.
    """
    pem, pem_password = certificate_and_key_in_pem(content, password)
    with PrivateFile(pem) as file:
        yield file.path, pem_password


def _encrypted(key: Any) -> tuple[bytes, str]:
    """The file's permissions are not the only protection of the key."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    pem_password = secrets.token_hex(32)
    protection = BestAvailableEncryption(pem_password.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection), pem_password


def _is_certificate(content: bytes) -> bool:
    try:
        from cryptography.x509 import load_der_x509_certificate
    except ImportError as error:
        raise CipherMissingError from error
    try:
        load_der_x509_certificate(content)
    except ValueError:
        return False
    return True


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
