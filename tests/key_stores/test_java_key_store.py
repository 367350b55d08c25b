"""Files written by Java are read correctly; damaged ones raise only KeyStoreError."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate
from hypothesis import example, given
from hypothesis import strategies as st

from hms_cache.key_stores.certificates import trusted_certificates
from hms_cache.key_stores.errors import KeyStoreError
from hms_cache.key_stores.java_key_store import is_java_key_store, private_key, read_key_store, secret_key
from hms_cache.key_stores.java_objects import modified_utf8, read_object
from hms_cache.key_stores.protection import triple_des
from tests.key_stores.samples import (
    AUTHORITY,
    CHAINS,
    DATABASE_PASSWORD,
    KEY_PASSWORD,
    PASSWORD,
    PASSWORDS,
    PROTECTED,
    PROTECTION,
    with_digest,
    without_digest,
)


@pytest.mark.parametrize("kind", CHAINS)
def test_a_private_key_and_its_chain_are_read(kind: str) -> None:
    store = read_key_store(CHAINS[kind].read_bytes(), PASSWORD)
    (entry,) = store.private_keys
    assert entry.alias == "server"
    key = load_der_private_key(private_key(entry, PASSWORD), None)
    own, authority = (load_der_x509_certificate(one) for one in entry.chain)
    raw = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    assert key.public_key().public_bytes(*raw) == own.public_key().public_bytes(*raw)
    assert authority == load_pem_x509_certificate(AUTHORITY.read_bytes())
    assert store.certificates == (entry.chain[1],)
    own.verify_directly_issued_by(authority)


def test_passwords_of_hadoop_are_read() -> None:
    store = read_key_store(PASSWORDS.read_bytes(), "none")
    found = {one.alias: secret_key(one, "none").decode() for one in store.secret_keys}
    assert found == {
        "javax.jdo.option.connectionpassword": DATABASE_PASSWORD,
        "metastore.keystore.password": KEY_PASSWORD,
    }
    (one,) = read_key_store(PROTECTED.read_bytes(), PROTECTION).secret_keys
    assert secret_key(one, PROTECTION) == b"changeit"


@pytest.mark.parametrize("file", [*CHAINS.values(), PASSWORDS, PROTECTED], ids=lambda file: file.name)
@pytest.mark.parametrize("password", ["", "wrong", "ä"])
def test_a_wrong_password_is_noticed(file: Path, password: str) -> None:
    with pytest.raises(KeyStoreError, match="password is wrong"):
        read_key_store(file.read_bytes(), password)


def test_a_key_with_another_password_than_its_store_is_noticed() -> None:
    (jks,) = read_key_store(CHAINS["jks"].read_bytes(), PASSWORD).private_keys
    (secret,) = read_key_store(PROTECTED.read_bytes(), PROTECTION).secret_keys
    with pytest.raises(KeyStoreError, match="password of a key is wrong"):
        private_key(jks, "other")
    with pytest.raises(KeyStoreError):
        secret_key(secret, "other")
    with pytest.raises(KeyStoreError, match="ASCII"):
        secret_key(secret, "wörd")


@pytest.mark.parametrize("content", [b"", b"\xfe\xed", b"-----BEGIN CERTIFICATE-----", b"\x30\x82\x01\x00" + bytes(40)])
def test_other_files_are_none(content: bytes) -> None:
    assert not is_java_key_store(content)
    with pytest.raises(KeyStoreError):
        read_key_store(content, PASSWORD)


@pytest.mark.parametrize("file", [*CHAINS.values(), PASSWORDS], ids=lambda file: file.name)
def test_a_file_that_is_cut_off_is_damaged(file: Path) -> None:
    content = without_digest(file)
    for end in range(len(content)):
        with pytest.raises(KeyStoreError):
            read_key_store(with_digest(content[:end], PASSWORD), PASSWORD)


@given(
    file=st.sampled_from([*CHAINS.values(), PASSWORDS, PROTECTED]),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4),
)
@example(file=PASSWORDS, changes=[(8, 0xFF)])  # four billion entries
def test_damage_raises_nothing_else(file: Path, changes: list[tuple[int, int]]) -> None:
    content = bytearray(without_digest(file))
    for place, byte in changes:
        content[place % len(content)] = byte
    try:
        store = read_key_store(with_digest(bytes(content), PASSWORD), PASSWORD)
        for entry in store.private_keys:
            if len(entry.protected) < 100:  # a number of iterations among the damage would take its time
                private_key(entry, PASSWORD)
    except KeyStoreError:
        pass


@given(st.binary(max_size=80))
def test_nothing_else_comes_of_a_serialized_object(content: bytes) -> None:
    for start in (b"", b"\xac\xed\x00\x05", b"\xac\xed\x00\x05sr\x00\x01a" + bytes(8) + b"\x02"):
        with suppress(KeyStoreError):
            read_object(start + content)


def test_an_object_within_objects_without_end_is_refused() -> None:
    """Each class has a field whose type is named by another object."""
    one = b"sr\x00\x01a" + bytes(8) + b"\x02\x00\x01L\x00\x01f"
    with pytest.raises(KeyStoreError, match=r"nested too deeply|unexpected kind"):
        read_object(b"\xac\xed\x00\x05" + one * 10_000)


@given(st.text())
def test_texts_are_read_as_java_writes_them(text: str) -> None:
    utf16 = text.encode("utf-16-be", "surrogatepass")
    halves = [chr(int.from_bytes(utf16[at : at + 2], "big")) for at in range(0, len(utf16), 2)]
    written = b"".join(b"\xc0\x80" if one == "\0" else one.encode("utf-8", "surrogatepass") for one in halves)
    assert modified_utf8(written) == text


def test_the_number_of_iterations_has_a_limit() -> None:
    parameters = bytes.fromhex("300f0408") + b"12345678" + bytes.fromhex("0203ffffff")
    with pytest.raises(KeyStoreError, match="damaged"):
        triple_des(bytes(16), parameters, PASSWORD)


@pytest.mark.parametrize("kind", CHAINS)
def test_what_was_read_is_what_openssl_takes(kind: str, tmp_path: Path) -> None:
    (entry,) = read_key_store(CHAINS[kind].read_bytes(), PASSWORD).private_keys
    pem = ssl.DER_cert_to_PEM_cert(entry.chain[0])
    key = ssl.DER_cert_to_PEM_cert(private_key(entry, PASSWORD)).replace("CERTIFICATE", "PRIVATE KEY")
    file = tmp_path / "both.pem"
    file.write_text(key + pem)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)


@pytest.mark.parametrize("kind", CHAINS)
def test_trusted_certificates_are_those_declared_so(kind: str) -> None:
    (trusted,) = trusted_certificates(CHAINS[kind].read_bytes(), PASSWORD)
    assert load_der_x509_certificate(trusted) == load_pem_x509_certificate(AUTHORITY.read_bytes())
    with pytest.raises(KeyStoreError, match="no trusted certificate"):
        trusted_certificates(PASSWORDS.read_bytes(), "none")
