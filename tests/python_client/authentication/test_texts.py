"""Texts that describe how a client authenticates: their meaning, and that none reveals a secret."""

from __future__ import annotations

import contextlib
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.authentication.delegation.token_format import KIND, MalformedTokenError, Token
from hms_cache.authentication.servers import Address
from hms_cache.client import (
    BearerToken,
    CredentialsError,
    DelegationToken,
    Kerberos,
    Metastores,
    Password,
    authentication_of,
)
from hms_cache.client.authentication.secret_files import read_secret
from hms_cache.client.authentication.texts import text_of_hive_keys
from hms_cache.client.authentication.token_file import read_token, tokens_of
from hms_cache.client.authentication.values import UNAUTHENTICATED
from hms_cache.errors import ConfigurationError
from tests.clients.spark.test_kerberos import credentials_file

TOKENS = st.builds(
    Token, st.binary(max_size=300), st.binary(max_size=40), st.just(KIND) | st.binary(max_size=9), st.binary(max_size=9)
)
SERVER = "hive/_HOST@EXAMPLE.COM"

MEANT: dict[str, Any] = {
    "": UNAUTHENTICATED,
    "none": UNAUTHENTICATED,
    f"kerberos server={SERVER}": Kerberos(SERVER),
    f"kerberos server={SERVER} principal=etl@E keytab='/a b/c' protection=privacy,auth": Kerberos(
        SERVER, "etl@E", "/a b/c", "", ("auth-conf", "auth")
    ),
    "ldap user='an n' password_file=/p unencrypted=allowed": Password("an n", "/p", True),
    "ldap user=ann password_store=jceks://file/s,user:///": Password("ann", "", False, "jceks://file/s,user:///"),
    "ldap user=ann": Password("ann", "/of/environment"),
    "token file=/t service=s": DelegationToken(None, "/t", "s"),
    "token": DelegationToken(None, "/of/yarn"),
    "jwt": BearerToken("/of/jwt"),
    "jwt file=/j": BearerToken("/j"),
}
ENVIRONMENT = {
    "HMS_PASSWORD_FILE": "/of/environment",
    "HADOOP_TOKEN_FILE_LOCATION": "/of/yarn",
    "HMS_JWT_FILE": "/of/jwt",
}


@pytest.mark.parametrize("text", MEANT)
def test_what_a_text_means(text: str) -> None:
    found = authentication_of(text, ENVIRONMENT)
    assert found == MEANT[text] == pickle.loads(pickle.dumps(found))
    assert hash(found) == hash(MEANT[text])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("s3cret", "auth must begin with one of none, kerberos, ldap, token, jwt"),
        ("kerberos", "needs the metastore's principal"),
        ("kerberos server=hive", "needs the metastore's principal"),
        (f"kerberos server={SERVER} keytab=/k", "principal=…"),
        (f"kerberos server={SERVER} protection=s3cret", "protection"),
        (f"kerberos server={SERVER} server=x", "each once"),
        ("ldap user=ann", "HMS_PASSWORD_FILE"),
        ("ldap user=ann password=s3cret", "name the file that contains it, password_file="),
        ("ldap user=ann:s3cret", "HMS_PASSWORD_FILE"),
        ("ldap user=ann s3cret", "each once and with a value"),
        ("jwt token=s3cret", "name the file that contains it, file="),
        ("token token=s3cret", "name the file"),
        ("jwt", "HMS_JWT"),
        ("token", "HADOOP_TOKEN_FILE_LOCATION"),
        ("ldap user=ann password_file=/p unencrypted=yes", "refused or allowed"),
        ("ldap user=ann password_file=/p password_store=jceks://file/s", "exclude each other"),
        ("ldap 'user=s3cret", "auth:"),
    ],
)
def test_what_is_no_text(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told.replace("…", ".")) as raised:
        authentication_of(text, {})
    assert "s3cret" not in str(raised.value) or "protection" in text


@given(st.text(max_size=60))
def test_any_text_has_a_meaning_or_a_reason(text: str) -> None:
    with contextlib.suppress(ConfigurationError):
        authentication_of(text, {})


HIVE: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "nothing": ({}, {}, ""),
    "sasl off": ({"hive.metastore.sasl.enabled": "false", "hive.metastore.kerberos.principal": SERVER}, {}, ""),
    "ticket": (
        {"hive.metastore.sasl.enabled": "TRUE", "hive.metastore.kerberos.principal": SERVER},
        {},
        f"kerberos server={SERVER}",
    ),
    "new spelling, keytab": (
        {
            "metastore.sasl.enabled": "true",
            "metastore.kerberos.principal": SERVER,
            "spark.kerberos.principal": "etl@E",
            "spark.kerberos.keytab": "/etc/etl keytab",
            "hadoop.rpc.protection": "privacy, integrity",
        },
        {"HADOOP_TOKEN_FILE_LOCATION": "/t"},
        f"kerberos server={SERVER} principal=etl@E 'keytab=/etc/etl keytab' protection=privacy,integrity",
    ),
    "token of YARN": (
        {"hive.metastore.sasl.enabled": "true", "hive.metastore.token.signature": "sig"},
        {"HADOOP_TOKEN_FILE_LOCATION": "/t"},
        "token service=sig",
    ),
    "password": (
        {"hive.metastore.client.auth.mode": "plain", "hive.metastore.client.plain.username": "ann"},
        {},
        "ldap user=ann",
    ),
    "password in a credential provider": (
        {
            "hive.metastore.client.auth.mode": "PLAIN",
            "hive.metastore.client.plain.username": "ann",
            "hadoop.security.credential.provider.path": "jceks://file/a.jceks , user:///",
        },
        {},
        "ldap user=ann password_store=jceks://file/a.jceks,user:///",
    ),
    "password in a file, and a provider": (
        {
            "hive.metastore.client.auth.mode": "PLAIN",
            "hive.metastore.client.plain.username": "ann",
            "hadoop.security.credential.provider.path": "jceks://file/a.jceks",
        },
        {"HMS_PASSWORD_FILE": "/p"},
        "ldap user=ann",
    ),
    "bearer": ({"metastore.client.auth.mode": "JWT"}, {}, "jwt"),
}


@pytest.mark.parametrize("name", HIVE)
def test_what_hives_keys_mean(name: str) -> None:
    keys, environment, text = HIVE[name]
    found = text_of_hive_keys(keys.get, environment)
    assert found == text
    authentication_of(found, ENVIRONMENT)


URIS = {
    "thrift://a": Address("a"),
    "thrift+tls://a:1": Address("a", 1, True),
    "http://a": Address("a", 80, False, "/metastore"),
    "https://a:1/x/": Address("a", 1, True, "/x"),
    "http://[::1]:9083/metastore": Address("::1", 9083, False, "/metastore"),
    "thrift://[::1]:9083": Address("::1", 9083),
}


@pytest.mark.parametrize("uri", URIS)
def test_uris(uri: str) -> None:
    assert Address.parse(uri) == URIS[uri] == Address.parse(str(URIS[uri]))


@pytest.mark.parametrize(
    "uri",
    ["thrift://ann:s3cret@a", "http://s3cret@a", "http://a/x?token=1", "http://a/x#y", "ftp://a", "http://a/\x7f"],
)
def test_what_is_no_uri(uri: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Metastores(uri).addresses  # noqa: B018
    assert "s3cret" not in str(raised.value)


def protobuf(*tokens: Token) -> bytes:
    """As Hadoop writes version 1."""

    def number(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)

    def field(tag: int, data: bytes) -> bytes:
        return number(tag << 3 | 2) + number(len(data)) + data

    entries = b""
    for token in tokens:
        parts = (token.identifier, token.password, token.kind, token.service)
        inner = b"".join(field(tag, part) for tag, part in enumerate(parts, 1))
        entries += field(1, field(1, b"alias") + field(2, inner))
    entries += field(2, field(1, b"secret") + field(3, b"of another"))
    return b"HDTS\1" + number(len(entries)) + entries


def writable(*tokens: Token) -> bytes:
    """As Hadoop writes version 0."""

    def sized(data: bytes) -> bytes:
        return (bytes([len(data)]) if len(data) < 128 else b"\x8e" + struct.pack("!H", len(data))) + data

    return (
        b"HDTS\0" + bytes([len(tokens)]) + b"".join(sized(b"a") + b"".join(map(sized, one)) for one in tokens) + b"\0"
    )


@pytest.mark.parametrize("form", [writable, protobuf])
@given(tokens=st.lists(TOKENS, max_size=5))
def test_hadoops_files_are_read_as_they_were_written(form: Any, tokens: list[Token]) -> None:
    assert tokens_of(form(*tokens)) == tokens


@given(st.sampled_from([b"HDTS\0", b"HDTS\1", b"HDTS", b""]), st.binary(max_size=80))
def test_any_bytes_are_a_file_or_a_reason(start: bytes, data: bytes) -> None:
    with contextlib.suppress(MalformedTokenError):
        tokens_of(start + data)


@pytest.mark.parametrize("form", [writable, protobuf])
def test_the_metastores_token_of_the_service(tmp_path: Path, form: Any) -> None:
    file = tmp_path / "tokens"
    tokens = [
        Token(b"hdfs", b"1", b"HDFS_DELEGATION_TOKEN", b"nn:8020"),
        Token(b"of sig", b"2", KIND, b"sig"),
        Token(b"plain", b"3", KIND, b""),
    ]
    file.write_bytes(form(*tokens))
    assert read_token(str(file)) == tokens[2]
    assert read_token(str(file), "sig") == tokens[1]
    with pytest.raises(CredentialsError, match=r"for the service 'x'; it has tokens for '', 'sig' \(service=\)"):
        read_token(str(file), "x")
    file.write_bytes(form(tokens[0]))
    with pytest.raises(CredentialsError, match="it has none"):
        read_token(str(file))


def test_the_text_of_a_token_and_what_is_none(tmp_path: Path) -> None:
    token = Token(b"identifier", b"password")
    file = tmp_path / "token"
    file.write_text(f"\n{token.to_url()}\n")
    assert read_token(str(file)) == token
    credentials_file(file, token)
    assert read_token(str(file)) == token
    for content in (b"s3cret", b"HDTS\2s3cret", b"HDTS", b"\xff\xfe", b""):
        file.write_bytes(content)
        with pytest.raises(CredentialsError) as raised:
            read_token(str(file))
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"  \n", b"\xff\n", b"a\0b", b"x" * 70_000])
def test_what_is_no_secret(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(CredentialsError):
        read_secret(str(file), "the password")


def test_a_secret_is_the_first_line_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(" pässword \r\nsecond\n".encode())
    assert read_secret(str(file), "the password") == " pässword "
    with pytest.raises(CredentialsError, match="cannot be read"):
        read_secret("/no/such\0", "the password")
