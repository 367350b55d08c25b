"""The key stores in `data/`."""

from __future__ import annotations

import hashlib
from pathlib import Path

DATA = Path(__file__).parent / "data"
PASSWORD = "changeit"
AUTHORITY = DATA / "ca.pem"
CHAINS = {"jks": DATA / "chain.jks", "jceks": DATA / "chain.jceks"}
PASSWORDS = DATA / "passwords.jceks"
DATABASE_PASSWORD = "a päss wörd €😀"
KEY_PASSWORD = "second"
USERS = DATA / "users.jceks"
PROTECTED = DATA / "protected.jceks"
PROTECTION = "a good password"

_DIGEST_BYTES = 20


def with_digest(content: bytes, password: str) -> bytes:
    """Other contents with the digest that Java would have written."""
    return content + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()


def without_digest(file: Path) -> bytes:
    return file.read_bytes()[:-_DIGEST_BYTES]


def trust_store(certificates: list[bytes], password: str) -> bytes:
    """As keytool writes a store with only these certificates (DER)."""
    content = b"\xfe\xed\xfe\xed" + (2).to_bytes(4) + len(certificates).to_bytes(4)
    for number, one in enumerate(certificates):
        alias = f"ca{number}".encode()
        content += (2).to_bytes(4) + len(alias).to_bytes(2) + alias + bytes(8)
        content += len(b"X.509").to_bytes(2) + b"X.509" + len(one).to_bytes(4) + one
    return with_digest(content, password)
