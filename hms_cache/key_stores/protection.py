"""How Java's key stores protect keys with a password: Sun's own stream cipher (JKS), and DES three times (JCEKS).

Both are weak by today's measure. They are read because files that use them exist; nothing is written.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from hms_cache.key_stores.errors import CipherMissingError, KeyStoreError

OF_JKS: Final = bytes.fromhex("2b060104012a02110101")
"""Object identifier 1.3.6.1.4.1.42.2.17.1.1, without tag and length."""

OF_JCEKS: Final = bytes.fromhex("2b060104012a021301")
"""Object identifier 1.3.6.1.4.1.42.2.19.1, without tag and length."""

MAX_ITERATIONS: Final = 5_000_000
"""The most that Java accepts (`jdk.jceks.iterationCount`, default 200,000): some seconds of work."""

_SALT_BYTES: Final = 8
_SHA1_BYTES: Final = 20
_KEY_BYTES: Final = 24


def private_key(protected: bytes, password: str) -> bytes:
    """The key of a private key's entry: PKCS #8, DER. `protected`: an EncryptedPrivateKeyInfo, DER.

    :raises KeyStoreError: damaged, or the password is wrong.
    """
    algorithm, encrypted = _children(_content(protected, 0x30), 2)
    parts = _children(_content(algorithm, 0x30))
    identifier = _content(parts[0], 0x06)
    if identifier == OF_JKS:
        return _of_jks(_content(encrypted, 0x04), password)
    if identifier == OF_JCEKS and len(parts) > 1:
        return triple_des(_content(encrypted, 0x04), parts[1], password)
    raise KeyStoreError("a key is protected in an unknown way")


def triple_des(encrypted: bytes, parameters: bytes, password: str) -> bytes:
    """What was encrypted by PBEWithMD5AndTripleDES. `parameters`: salt and number of iterations, DER.

    :raises KeyStoreError: damaged, or the password is wrong.
    """
    try:
        from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
        from cryptography.hazmat.primitives.ciphers import Cipher, modes
        from cryptography.hazmat.primitives.padding import PKCS7
    except ImportError as error:
        raise CipherMissingError from error
    salt, count = _children(_content(parameters, 0x30), 2)
    iterations = int.from_bytes(_content(count, 0x02), "big")
    derived = _derived(_content(salt, 0x04), iterations, password)
    decryptor = Cipher(TripleDES(derived[:_KEY_BYTES]), modes.CBC(derived[_KEY_BYTES:])).decryptor()
    unpadder = PKCS7(_SALT_BYTES * 8).unpadder()
    try:
        padded = decryptor.update(encrypted) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError as error:
        raise KeyStoreError("the password of an entry is wrong") from error


def _derived(salt: bytes, iterations: int, password: str) -> bytes:
    """Key and initialization vector. Each half of the salt gives one half of them."""
    if len(salt) != _SALT_BYTES or not 0 < iterations <= MAX_ITERATIONS:
        raise KeyStoreError("an entry is damaged")
    secret = _ascii(password)
    first, second = bytearray(salt[:4]), salt[4:]
    if first == second:
        # Java wants to reverse the first half, and gets its indices wrong: 0 with 3, and 1 with 2, both into place 2.
        for number in (0, 1):
            first[number], first[2] = first[3 - number], first[number]
    found = b""
    for half in (bytes(first), second):
        for _ in range(iterations):
            half = hashlib.md5(half + secret, usedforsecurity=False).digest()
        found += half
    return found


def _of_jks(protected: bytes, password: str) -> bytes:
    """Decrypts what Sun's `KeyProtector` has encrypted: salt, text, digest of the text."""
    salt, text, digest = protected[:_SHA1_BYTES], protected[_SHA1_BYTES:-_SHA1_BYTES], protected[-_SHA1_BYTES:]
    if len(protected) < 2 * _SHA1_BYTES:
        raise KeyStoreError("a key is damaged")
    secret = password.encode("utf-16-be")
    stream = b""
    last = salt
    while len(stream) < len(text):
        last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
        stream += last
    found = bytes(one ^ other for one, other in zip(text, stream, strict=False))
    if not hmac.compare_digest(digest, hashlib.sha1(secret + found, usedforsecurity=False).digest()):
        raise KeyStoreError("the password of a key is wrong")
    return found


def _ascii(password: str) -> bytes:
    try:
        return password.encode("ascii")
    except UnicodeEncodeError as error:
        raise KeyStoreError("passwords of this kind of key store have ASCII characters only") from error


# ---- DER ----


def _content(element: bytes, tag: int) -> bytes:
    """The content of an element with this tag, which is all of `element`."""
    found, end = _element(element, 0)
    if element[:1] != bytes([tag]) or end != len(element):
        raise KeyStoreError("an entry is damaged")
    return element[end - found : end]


def _children(content: bytes, count: int | None = None) -> list[bytes]:
    """The elements of which `content` consists."""
    found, at = [], 0
    while at < len(content):
        _, end = _element(content, at)
        found.append(content[at:end])
        at = end
    if not found or (count is not None and len(found) != count):
        raise KeyStoreError("an entry is damaged")
    return found


def _element(content: bytes, at: int) -> tuple[int, int]:
    """Length of the content of the element at this place, and where it ends."""
    head = content[at + 1 : at + 2]
    if not head:
        raise KeyStoreError("an entry is damaged")
    length, start = head[0], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(content[start : start + size], "big"), start + size
        if not 0 < size <= 4:
            raise KeyStoreError("an entry is damaged")
    if start + length > len(content):
        raise KeyStoreError("an entry is truncated")
    return length, start + length
