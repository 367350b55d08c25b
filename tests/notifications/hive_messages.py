"""Hive's own readers and writers of messages, as a Java program that answers line by line."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.protocol.releases import BRIEF, class_path, java_program

_HADOOP = ("org.apache.hadoop:hadoop-client-api:3.3.6", "org.apache.hadoop:hadoop-client-runtime:3.3.6")
_JACKSON_MODULES = ("jackson-core", "jackson-databind", "jackson-annotations")


def _jackson(version: str) -> tuple[str, ...]:
    return tuple(f"com.fasterxml.jackson.core:{module}:{version}" for module in _JACKSON_MODULES)


#: Release to the jars that its messaging classes need; ``hive-exec`` contains Hive's other classes.
RELEASES: dict[str, tuple[str, ...]] = {
    "3.1.3": (
        "org.apache.hive:hive-standalone-metastore:3.1.3",
        "org.apache.thrift:libthrift:0.9.3",
        "com.google.guava:guava:19.0",
        "commons-lang:commons-lang:2.6",
        "org.apache.commons:commons-lang3:3.9",
        "org.codehaus.jackson:jackson-mapper-asl:1.9.13",
        "org.codehaus.jackson:jackson-core-asl:1.9.13",
        *_jackson("2.12.0"),
    ),
    "4.0.1": (
        "org.apache.hive:hive-standalone-metastore-server:4.0.1",
        "org.apache.hive:hive-standalone-metastore-common:4.0.1",
        "org.apache.hive:hive-storage-api:4.0.1",
        "org.apache.thrift:libthrift:0.16.0",
        "com.google.guava:guava:22.0",
        "org.apache.commons:commons-lang3:3.12.0",
        *_jackson("2.16.1"),
    ),
    "4.1.0": ("org.apache.hive:hive-exec:4.1.0", *_jackson("2.16.1")),
}
_SHARED = (
    *_HADOOP,
    "org.slf4j:slf4j-api:1.7.36",
    "commons-logging:commons-logging:1.2",
    "commons-io:commons-io:2.15.1",
    "org.apache.thrift:libfb303:0.9.3",
)
#: 4.1 was compiled for it.
_JAVA = 17


class HiveMessages:
    """A running release; `close` ends it."""

    def __init__(self, release: str) -> None:
        self.release = release
        jars = class_path(*RELEASES[release], *_SHARED)
        source = Path(__file__).parent / "java" / "HiveMessages.java"
        self._process = subprocess.Popen(
            [java_program(_JAVA), *BRIEF, "-cp", jars, str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def _ask(self, *fields: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(fields) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        assert answer, "the Java program ended"
        return answer

    def read(self, method: str, message_format: str, message: str) -> dict[str, Any]:
        """What the getters of the message return that ``method`` builds from it. Fails if Hive cannot read it."""
        answer = self._ask("read", method, message_format, _encode(message))
        facts: dict[str, Any] = {}
        for fact in answer.split("\t"):
            name, _, value = fact.partition("=")
            if name == "failed":
                raise AssertionError(f"Hive {self.release} cannot read it: {_decode(value)}")
            facts[name] = _value(value)
        return facts

    def write(self, method: str, message_format: str, *arguments: str) -> str:
        """The message that the builder's ``method`` creates from these arguments (see the functions below)."""
        answer = self._ask("write", method, message_format, *arguments)
        if answer.startswith("failed="):
            raise AssertionError(f"Hive {self.release} cannot write it: {_decode(answer[7:])}")
        return _decode(answer)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decode(text: str) -> str:
    return base64.b64decode(text).decode()


# ---- arguments ------------------------------------------------------------------------------------------------------

NULL = "null:"


def text(value: str) -> str:
    return f"text:{_encode(value)}"


def number(value: int) -> str:
    return f"long:{value}"


def flag(value: bool) -> str:
    return f"flag:{str(value).lower()}"


def thrift(struct: Any) -> str:
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocol(buffer))
    return f"thrift:{type(struct).__name__}:{base64.b64encode(buffer.getvalue()).decode()}"


def many(kind: str, *arguments: str) -> str:
    """``list``, ``iterator``, ``map``, ``files`` or ``compaction`` of arguments."""
    return f"{kind}:" + ",".join(_encode(argument) for argument in arguments)


# ---- answers --------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?\d+")


def _value(described: str) -> Any:
    value, rest = _parse(described)
    assert rest == "", described
    return value


def _parse(described: str) -> tuple[Any, str]:
    """One value of ``HiveMessages.describe`` and the text after it."""
    if described.startswith(("[", "{")):
        return _parse_many(described)
    token = re.match(r"[^,\]}>]*", described)
    assert token is not None
    word, rest = token.group(), described[token.end() :]
    if word == "-":
        return None, rest
    if word in ("true", "false"):
        return word == "true", rest
    if _NUMBER.fullmatch(word):
        return int(word), rest
    kind, _, value = word.partition(":")
    if kind == "text":
        return _decode(value), rest
    if kind == "failed":
        return Unreadable(_decode(value)), rest
    name, _, encoded = value.partition(":")
    struct = getattr(ttypes, name)()
    struct.read(TBinaryProtocol(TMemoryBuffer(base64.b64decode(encoded))))
    return struct, rest


def _parse_many(described: str) -> tuple[Any, str]:
    is_map = described[0] == "{"
    items: list[Any] = []
    rest = described[1:]
    while not rest.startswith(("]", "}")):
        item, rest = _parse(rest.removeprefix(","))
        if is_map:
            value, rest = _parse(rest.removeprefix(">"))
            item = (item, value)
        items.append(item)
    return (dict(items) if is_map else items), rest[1:]


class Unreadable(str):
    """What a getter threw."""

    __slots__ = ()
