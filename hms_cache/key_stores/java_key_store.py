"""Reads files in JKS and JCEKS: a list of entries with their aliases, followed by a digest.

The digest covers the password and the entries, so it shows whether both are right, as in Java's `KeyStore.load`.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from hms_cache.key_stores import protection
from hms_cache.key_stores.errors import KeyStoreError
from hms_cache.key_stores.java_objects import modified_utf8, read_object
from hms_cache.values import frozen

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_PRIVATE_KEY, _CERTIFICATE, _SECRET_KEY = 1, 2, 3
_VERSIONS: Final = (1, 2)
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
"""What Java puts between password and content."""


@frozen
class PrivateKey:
    """`protected`: see :func:`private_key`; `chain`: certificates in DER, its own first."""

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]


@frozen
class SecretKey:
    """`sealed`: the encrypted key; `parameters`: salt and number of iterations, in DER."""

    alias: str
    sealed: bytes
    parameters: bytes


@frozen
class JavaKeyStore:
    """The entries in the order of the file. Keys are still encrypted. `certificates`: those that are trusted, in
    DER."""

    private_keys: tuple[PrivateKey, ...]
    certificates: tuple[bytes, ...]
    secret_keys: tuple[SecretKey, ...]


def is_java_key_store(content: bytes) -> bool:
    """Returns whether a file with this content is JKS or JCEKS."""
    return content.startswith((_JKS, _JCEKS))


def read_key_store(content: bytes, password: str) -> JavaKeyStore:
    """Reads a file of JKS or JCEKS.

    :raises KeyStoreError: damaged, or the password is wrong.
    """
    text, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    expected = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + text, usedforsecurity=False).digest()
    if not is_java_key_store(content):
        raise KeyStoreError("it is no key store of Java's")
    if not hmac.compare_digest(digest, expected):
        raise KeyStoreError("its password is wrong, or the file is damaged")
    return _Reader(text).key_store()


def private_key(entry: PrivateKey, password: str) -> bytes:
    """Decrypts a private key. Returns it in PKCS #8 (DER). Raises KeyStoreError."""
    return protection.private_key(entry.protected, password)


def secret_key(entry: SecretKey, password: str) -> bytes:
    """Decrypts a secret key. Returns its bytes. Raises KeyStoreError."""
    found, _ = read_object(protection.triple_des(entry.sealed, entry.parameters, password))
    key = found.get("key") if isinstance(found, dict) else None
    if not isinstance(key, bytes):
        raise KeyStoreError(f"the entry {entry.alias} is no secret key")
    return key


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = len(_JKS)

    def key_store(self) -> JavaKeyStore:
        version, count = self._number(), self._number()
        if version not in _VERSIONS:
            raise KeyStoreError(f"its version, {version}, is unknown")
        private_keys, certificates, secret_keys = [], [], []
        for _ in range(count):
            kind, alias = self._number(), self._text()
            self._take(8)  # when it was made
            if kind == _PRIVATE_KEY:
                protected = self._block()
                chain = tuple(self._certificate(version) for _ in range(self._number()))
                private_keys.append(PrivateKey(alias, protected, chain))
            elif kind == _CERTIFICATE:
                certificates.append(self._certificate(version))
            elif kind == _SECRET_KEY:
                secret_keys.append(self._sealed(alias))
            else:
                raise KeyStoreError(f"an entry is of an unknown kind ({kind})")
        return JavaKeyStore(tuple(private_keys), tuple(certificates), tuple(secret_keys))

    def _sealed(self, alias: str) -> SecretKey:
        found, self._at = read_object(self._content, self._at)
        fields = found if isinstance(found, dict) else {}
        sealed, parameters = fields.get("encryptedContent"), fields.get("encodedParams")
        if not isinstance(sealed, bytes) or not isinstance(parameters, bytes):
            raise KeyStoreError(f"the entry {alias} is damaged")
        return SecretKey(alias, sealed, parameters)

    def _certificate(self, version: int) -> bytes:
        if version > 1:
            self._text()  # its type: X.509
        return self._block()

    def _block(self) -> bytes:
        return self._take(self._number())

    def _text(self) -> str:
        return modified_utf8(self._take(int.from_bytes(self._take(2), "big")))

    def _number(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def _take(self, count: int) -> bytes:
        found = self._content[self._at : self._at + count]
        if len(found) != count:
            raise KeyStoreError("it is truncated")
        self._at += count
        return found
