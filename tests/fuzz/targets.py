"""The fuzz targets: each reader of texts or bytes that a client, a site file or a foreign writer sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from thrift.transport.TTransport import TTransportException

from hms_cache.authentication.delegation.token_format import MalformedTokenError
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authorization.policy import PolicyError, parse_policy
from hms_cache.client import AuthenticationRefusedError
from hms_cache.config import database_url
from hms_cache.config.quantities import parse_duration_s, parse_size_bytes
from hms_cache.config.site_file import read_site_files, settings_of_site
from hms_cache.errors import ConfigurationError
from hms_cache.expressions import FilterError, parse_expression, parse_filter
from hms_cache.expressions.kryo import KryoError, read_expression
from hms_cache.key_stores.errors import KeyStoreError
from hms_cache.metadata.column_types import are_compatible, type_name
from hms_cache.metadata.names import is_valid_name, name_pattern, normalize_identifier
from hms_cache.metadata.partition_name_codec import values_of_partition_name
from hms_cache.metadata.partition_names import escape_path_name, parse_partition_name
from hms_cache.metadata.quartz_schedule import parse_schedule
from hms_cache.notifications.tjson import TJsonError, parse, read_struct
from hms_cache.patterns.java_regex import JavaRegex, JavaRegexError
from hms_cache.store.avro_schemas import AvroSchemaError, columns_of_schema
from hms_cache.store.properties.selection import SelectionError, matches
from hms_cache.store.properties.selection import parse_expression as parse_selection
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table
from hms_cache.txn import IdListFormatError, ValidTxnList, ValidTxnWriteIdList, ValidWriteIdList
from hms_cache.wire import MessageReader, WireError
from hms_cache.wire.encodings import ENCODINGS
from tests.fuzz import authentication_targets as before
from tests.fuzz import configuration_targets as configuration
from tests.recordings.recording import DIRECTORY, read_recording
from tests.wire.strategies import framed

CORPUS = Path(__file__).with_name("corpus")
MAX_IDS = 10_000
"""In one list: below the server's limit, so that a short range costs no time here."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reader. Any input results in a value or one of the `declared` exceptions."""

    read: Callable[[bytes], object]
    declared: tuple[type[Exception], ...]
    pieces: tuple[bytes, ...]
    """What inputs are made of, beside those of the corpus."""
    fixed_bytes: int = 4 << 20
    """Memory that any input may take."""
    bytes_per_byte: int = 1_000
    """Memory that each byte of an input may take beyond it."""


def _read_site(data: bytes) -> None:
    """A site file, and the resulting settings."""
    with NamedTemporaryFile(suffix=".xml") as file:
        file.write(data)
        file.flush()
        settings_of_site(read_site_files((Path(file.name),), {"USER": "u"}))


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode(errors="replace"))


def _pieces(*texts: str) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _read_wire(data: bytes) -> None:
    """In one piece, in portions as from a socket, and in the shortest turns: all find the same messages."""
    found = []
    for portion, slice_s in ((len(data), None), (max(1, len(data) // 7), None), (len(data), 0.0)):
        reader = MessageReader(max_message_bytes=1 << 20, max_message_objects=10_000, slice_s=slice_s)
        names: list[object] = []
        found.append(names)
        try:
            for start in range(0, len(data), max(1, portion)):
                reader.feed(data[start : start + portion])
                while (message := reader.next_message()) is not None or reader.is_ready:
                    if message is not None:
                        names.append((message.name, message.sequence_id))
                assert reader.buffered_bytes <= len(data)
            reader.end()
        except WireError as error:
            assert str(error)
        finally:
            reader.close()
    assert found[0] == found[1] == found[2]


@cache
def recorded_requests() -> tuple[bytes, ...]:
    """One request of each method that clients really sent, plain and in frames."""
    first = {
        call.method: call.request
        for path in sorted(DIRECTORY.glob("*.xz"))
        for call in read_recording(path)
        if call.request
    }
    in_frames = next(encoding for encoding in ENCODINGS if encoding.framed)
    return (*first.values(), *(framed(in_frames, request) for request in first.values()))


def _read_write_ids(text: str) -> None:
    for read in (ValidWriteIdList.parse, ValidTxnWriteIdList.parse):
        try:
            read(text, MAX_IDS)
        except IdListFormatError as error:
            assert str(error)


def _read_selection(text: str) -> None:
    expression = parse_selection(text)
    matches(expression, {"a": "9" * 1_000, "b": "x"})


def _read_url(text: str) -> None:
    url = database_url.sqlalchemy_url(text)
    database_url.masked(url)
    database_url.secrets_of(url)
    database_url.verifies_server(url)
    database_url.refused_protection(text)


def _read_names(text: str) -> None:
    is_valid_name(text)
    normalize_identifier(text)
    pattern = name_pattern(text)
    for name in ("default", "a" * 200, text[:200]):
        pattern.matches(name)


def _read_partition_name(text: str) -> None:
    values = values_of_partition_name(text)
    parse_partition_name(text)
    for value in values or ():
        escaped = escape_path_name(value)
        if value and len(escaped) < 10_000 and all(0 < ord(character) < 0xD800 for character in value):
            assert values_of_partition_name(f"k={escaped}") == (value,)


def _read_types(text: str) -> None:
    type_name(text)
    are_compatible(text, "bigint")


def _read_quantities(text: str) -> None:
    for read in (parse_size_bytes, lambda each: parse_duration_s(each, "s")):
        try:
            read(text)
        except ValueError as error:
            assert str(error)


_JDBC = _pieces(
    *("jdbc:", "mysql://", "mariadb:", "postgresql:", "sqlite:///", "derby:", "//", "/", "?", "&", ";", "=", ":", "@"),
    *("h", "user", "password", "p%40", "%", "%zz", ",", "[::1]", "[", "]", "useSSL", "sslmode", "verify-full", "true"),
    *("sslMode=", "ssl=", "serverSslCert=", "99999", "#", "é", "\0", "(", ")", "address="),
)

TARGETS: dict[str, Target] = {
    "wire": Target(_read_wire, (), (b"\x80\x01\x00\x01", b"\x82\x21", b"\x00\x00\x00\x01", b"\x0c", b"\x0f", b"\xff")),
    "filter": Target(
        _text(parse_filter),
        (FilterError,),
        _pieces(
            *("p", " ", "'", '"', "\\", "`", "(", ")", " and ", " or ", "not ", "=", "<>", " like ", " in ", "1", "-"),
            *(" between ", "date ", "timestamp ", "'2024-01-01'", ",", "struct(", "9" * 30, "é", "\0"),
        ),
    ),
    "expression": Target(
        parse_expression,
        (FilterError, KryoError),
        (*_pieces("p = 1", "(", " and "), b"\xff", b"\x00", b"\x01\x00", b"\x01\x01"),
    ),
    "kryo": Target(
        lambda data: read_expression(data, id),
        (KryoError,),
        (
            *(b"\x01\x00java.util.Arrays$ArrayLis\xf4\x01", b"\x01\x00java.util.ArrayLis\xf4\x01", b"\x01\x00\x01"),
            *(b"\xff\x7f", b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3\x01", b"\x00", b"\x01"),
        ),
        bytes_per_byte=8_000,
    ),
    "tjson": Target(
        _text(parse),
        (TJsonError,),
        _pieces(*'[]{}":,1e-a \\', "null", "true", "\\u00", '"1":{"str":"', '{"lst":["i32",2,', "9" * 5_000),
    ),
    "tjson_struct": Target(
        _text(lambda text: read_struct(text, Table)),
        (TJsonError,),
        _pieces('{"1":{"str":"', '"}', ',"4":{"i32":', '"8":{"lst":["rec",1,{', "}", "]", "9", "-", "\\", ",", "null"),
    ),
    "write_ids": Target(
        _text(_read_write_ids), (), _pieces("d.t", ":", ",", "-", "1", "9" * 19, "+", "null", "\u0663", "$", " ")
    ),
    "txn_ids": Target(
        _text(lambda text: ValidTxnList.parse(text, MAX_IDS)),
        (IdListFormatError,),
        _pieces(":", ",", "-", "1", "5", "9" * 19, "+", "\u0663", " ", "1-9"),
    ),
    "database_url": Target(_text(_read_url), (ValueError,), _JDBC),
    "quantities": Target(
        _text(_read_quantities), (), _pieces("1", "9" * 400, ".", "e", "-", "KiB", "ms", "s", " ", "inf")
    ),
    "names": Target(
        _text(_read_names), (MetaException,), _pieces("a", "*", ".", "|", "_", "%", "\\", "İ", "\0", "..", " ")
    ),
    "java_regex": Target(
        _text(lambda text: JavaRegex(text).matches("ab" * 50)),
        (JavaRegexError,),
        _pieces(
            *"ab()[]{}|*+?^$.-&\\", "\\Q", "\\E", "\\p{L}", "(?i)", "(?:", "{0,30}", "&&", "[^", "\\x{10FFFF}", "\\u00"
        ),
        fixed_bytes=64 << 20,
        bytes_per_byte=20_000,
    ),
    "partition_name": Target(
        _text(_read_partition_name),
        (MetaException,),
        _pieces("%", "%4", "41", "=", "/", "a", "+", "\uff11", "%00", "%7F", "é", "__HIVE_DEFAULT_PARTITION__"),
    ),
    "column_type": Target(
        _text(_read_types), (), _pieces("int", "struct<", "map<", ">", ",", ":", "decimal(", ")", "1", "é")
    ),
    "selection": Target(
        _text(_read_selection),
        (SelectionError,),
        _pieces(*" '\\()[]{}+*/-!", "a", "b", "&&", "||", "==", "=~", "!~", "9" * 30, "size", "empty ", "'x'", "not "),
    ),
    "avro_schema": Target(
        _text(columns_of_schema),
        (AvroSchemaError,),
        _pieces(
            *(
                '{"type":"record","name":"r","fields":[',
                '{"name":"a","type":',
                "]}",
                '"int"',
                '["null","int"]',
                "}",
                ",",
            ),
            *('{"type":"array","items":', '{"type":"map","values":', "[", "1e999", "NaN", '"\\ud800"', '"r"', "null"),
        ),
    ),
    "sasl": Target(
        before.read_sasl,
        (AuthenticationError,),
        (
            *(b"\x01\0\0\0\x05PLAIN", b"\x01\0\0\0\x0aDIGEST-MD5", b"\x02\0\0\0\x00", b"\x05\0\0\0\x06", b"\0a\0b"),
            *(b"\x02\0\0\0\x20", b"\x03", b"\x04\xff\xff\xff\xff", b"\x01\0\0\0\x06GSSAPI", b"nonce=", b"\x02\0\x02"),
        ),
    ),
    "digest_response": Target(
        before.read_digest_response,
        (AuthenticationError,),
        _pieces(
            *('username="', '"', ",", "realm=default", "nonce=", "nc=00000001", "cnonce=x", "qop=auth", "=", "\\"),
            *("digest-uri=null/default", "response=", "charset=utf-8", 'a="\\"', "authzid=", "cipher=3des", "é", " "),
        ),
    ),
    "sealed": Target(before.read_sealed, (AuthenticationError,), (b"\0\1\0\0\0\0", b"\0", b"x" * 10)),
    "token": Target(
        before.read_token,
        (MalformedTokenError,),
        (*_pieces("A", "AA", "_-", "=", "+/", "FUhJVkVfREVMRUdBVElPTl9UT0tFTg"), b"\x8f", b"\x87", b"\x00", b"\xff"),
    ),
    "token_file": Target(
        before.read_token_file,
        (MalformedTokenError,),
        (
            *(
                b"HDTS\0",
                b"HDTS\1",
                b"\1",
                b"\x0a",
                b"\x12",
                b"\x15HIVE_DELEGATION_TOKEN",
                b"\x00",
                b"\xff",
                b"\x8f",
                b"\x87",
            ),
            *(b"\x0a\x02\x12\x00", b"\x80\x80"),
        ),
    ),
    "server_of_a_client": Target(
        before.read_server,
        (AuthenticationRefusedError, TTransportException, EOFError),
        (
            *(b"\x02\0\0\0\x40", b"\x05\0\0\0\x00", b"\x04\0\0\0\x02no", b"\x02\0\2\0\0", b"\x80", b"rspauth="),
            *_pieces(
                'realm="default",', 'nonce="n",', "algorithm=md5-sess,", 'qop="auth,auth-int",', "maxbuf=65536", '"\\"'
            ),
        ),
    ),
    "client_text": Target(
        _text(before.read_client_text),
        (ConfigurationError,),
        _pieces(
            "kerberos ",
            "ldap ",
            "jwt",
            "token ",
            "server=a/b",
            "user=",
            "file=",
            "'",
            '"',
            "\\",
            "=",
            "protection=",
            "é",
            "\0",
        ),
    ),
    "bearer": Target(_text(before.read_bearer), (AuthenticationError,), before.bearer_pieces()),
    "proxy_users": Target(
        _text(before.read_proxy_users),
        (ValueError,),
        _pieces("a", " ", "users=", "groups=", "hosts=", "*", ",", ";", "10.0.0.0/8", "/", "::1/129", "=", "é", "b"),
    ),
    "principal": Target(
        _text(before.read_principal),
        (),
        _pieces("a", "/", "@", "R", "RULE:[", "1:$1", "]", "(.*)", "s/", "/g", "L", "DEFAULT", "$", "(", "\\", " "),
    ),
    "policy": Target(
        _text(lambda text: parse_policy(text).decisions("alice")),
        (PolicyError,),
        _pieces(
            *("[[grants]]\n", "[groups]\n", "[roles]\n", "a", "=", "[", "]", '"', '"alice"', "*", ",", "\n", "{", "}"),
            *('to = "user:alice"\n', 'on = "d.t"\n', 'actions = ["read"]\n', "1", "1979-05-27", "é", "\0", ".", "'"),
        ),
    ),
    "site": Target(
        _read_site,
        (ConfigurationError,),
        _pieces(
            *("<configuration>", "</configuration>", "<property>", "</property>", "<name>", "</name>", "<value>"),
            *("</value>", "metastore.thrift.port", "javax.jdo.option.ConnectionURL", "hive.metastore.uris", "${", "}"),
            *(
                "env.USER",
                ":-",
                "1s",
                "9083",
                "&amp;",
                "&a;",
                "<!DOCTYPE c [<!ENTITY a 'aaaa'>",
                "]>",
                "<final>true",
                "é",
            ),
        ),
        fixed_bytes=16 << 20,  # as much as its texts may have, some times
    ),
    "hive_values": Target(
        _text(configuration.read_hive_values),
        (),
        _pieces(
            *(
                "hive.metastore.",
                "metastore.",
                "javax.jdo.option.",
                "ConnectionURL",
                "ConnectionPassword",
                "=",
                "\n",
                ".",
            ),
            *("jdbc:mysql://u:", "p w", "@h/d", "cached.rawstore.", "é", "\0", "password", "${", "}"),
        ),
    ),
    "protected_frames": Target(
        configuration.read_protected_frames,
        (),
        (b"\0\0\0\2ok", b"\0\0\0\4okab", b"\0\0\0\0", b"\0\0\x27", b"\xff", b"ok", b"\0\0\0\1", b"\0\0"),
    ),
    "key_store": Target(
        configuration.read_key_store_and_objects,
        (KeyStoreError,),
        (
            b"\xfe\xed\xfe\xed",
            b"\xce\xce\xce\xce\0\0\0\2",
            b"\0\0\0\1",
            b"\xff\xff\xff\xff",
            b"\xac\xed\0\5",
            b"sr\0\1a",
            b"ur\0\2[B",
        ),
    ),
    "gssapi_choice": Target(
        configuration.read_gssapi_choice,
        (AuthenticationError,),
        (b"\1\0\0\0", b"\4\0\xff\xff", b"\0", b"\2", b"\4\xff\xff\xff", b"alice@R", b"bob@R", b"\xff", b"\0\0\0\0"),
    ),
    "resource_plan": Target(
        _text(configuration.read_resource_plan),
        (),
        _pieces("p", "\n", "a.b", ".", "=", "1", "-1", "2147483647", "nan", "1e999", "fair", "\0", "é", " ", "a" * 300),
    ),
    "quartz": Target(
        _text(lambda text: parse_schedule(text).next_epoch_s(1_700_000_000)),
        (ValueError,),
        _pieces("*", " ", "?", "0", "/", "-", ",", "L", "W", "#", "MON", "JAN", "2099", "9" * 30, "0 0 0 ? * "),
    ),
}
"""Limits and why: lists of ids hold bits and integers; Kryo's reader keeps an account of its own; a regular expression
remembers up to 10,000 sets of states."""


def seeds_of(name: str) -> tuple[bytes, ...]:
    """The committed corpus of a target; for the wire also what engines sent."""
    path = CORPUS / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    seeds = tuple(bytes.fromhex(line) for line in lines if line and not line.startswith("#"))
    return seeds + recorded_requests() if name == "wire" else seeds
