"""Avro schemas: a table of cases, and random ones."""

from __future__ import annotations

import random
from typing import Any

INT, STRING = "int", "string"


def record(*fields: Any, name: str = "r", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


TYPES: list[tuple[Any, str]] = [
    ("null", "void"),
    ("boolean", "boolean"),
    ("int", "int"),
    ("long", "bigint"),
    ("float", "float"),
    ("double", "double"),
    ("bytes", "binary"),
    ("string", "string"),
    ({"type": "string", "avro.java.string": "String"}, "string"),
    (logical("bytes", "decimal", precision=10, scale=2), "decimal(10,2)"),
    (logical("bytes", "DECIMAL", precision=38), "decimal(38,0)"),
    (logical("int", "date"), "date"),
    (logical("int", "time-millis"), "int"),
    (logical("long", "timestamp-millis"), "timestamp"),
    (logical("long", "timestamp-micros"), "bigint"),
    (logical("string", "char", maxLength=3), "char(3)"),
    (logical("string", "varchar", maxLength="7"), "varchar(7)"),
    (logical("string", "uuid"), "string"),
    ({"type": "fixed", "name": "f", "size": 4}, "binary"),
    ({"type": "fixed", "name": "n.f2", "size": 4, "logicalType": "decimal", "precision": 4, "scale": 1}, "binary"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "string"),
    ({"type": "array", "items": "int"}, "array<int>"),
    ({"type": "map", "values": ["null", "long"]}, "map<string,bigint>"),
    (["null", "int"], "int"),
    (["string", "null"], "string"),
    (["null", logical("int", "date")], "date"),
    (["null", {"type": "array", "items": ["null", "string"]}], "array<string>"),
    (["int", "string"], "uniontype<int,string>"),
    (["null", "int", "string"], "uniontype<int,string>"),
    (["int"], "uniontype<int>"),
    (record(field("A", INT, doc="inner"), field("b", ["null", STRING]), name="Inner"), "struct<a:int,b:string>"),
    (
        {"type": "array", "items": record(field("x", {"type": "map", "values": "bytes"}), name="deep")},
        "array<struct<x:map<string,binary>>>",
    ),
]
"""A field's schema and its type in Hive."""

NAMED = record(
    field("one", {"type": "enum", "name": "Kind", "symbols": ["A"]}),
    field("two", "Kind"),
    field("three", "org.x.Kind"),
    field("four", record(field("a", "org.x.Kind"), name="org.y.Other")),
    field("five", {"type": "array", "items": "org.y.Other"}),
    field("six", record(field("a", {"type": "fixed", "name": "F", "size": 1}), name="Third", namespace="z")),
    field("seven", "z.F"),
    namespace="org.x",
)
NAMED_TYPES = [
    "string",
    "string",
    "string",
    "struct<a:string>",
    "array<struct<a:string>>",
    "struct<a:binary>",
    "binary",
]

REFUSED: list[tuple[Any, str]] = [
    ("int", "must be of type RECORD"),
    (["null", record()], "must be of type RECORD"),
    ({"type": "array", "items": "int"}, "must be of type RECORD"),
    ({"type": "record", "name": "r"}, "no fields"),
    (record(field("a", "nothing")), "not a defined name"),
    (record(field("a", "int"), field("a", "int")), "Duplicate field"),
    (record(field("a b", "int")), "Illegal name"),
    (record({"name": "a"}), "No field type"),
    (record(field("next", ["null", "r"])), "Recursive schemas are not supported"),
    (record(field("a", record(field("b", {"type": "array", "items": "s"}), name="s"))), "Recursive schemas"),
    (record(field("a", logical("bytes", "decimal", precision=39))), "Invalid precision or scale"),
    (record(field("a", logical("bytes", "decimal", precision=2, scale=3))), "Invalid precision or scale"),
    (record(field("a", logical("string", "char"))), "maxLength"),
    (record(field("a", ["null", "null"])), "Duplicate in union"),
]


def random_schema(source: random.Random) -> dict[str, Any]:
    """A record of up to eight fields, nested at most four deep."""
    names = iter(range(10_000))

    def kind(depth: int) -> Any:
        choice = source.randrange(10 if depth < 4 else 5)
        if choice < 5:
            simple = [one for one, _ in TYPES[:18]]
            return source.choice(simple)
        if choice == 5:
            return {"type": "array", "items": kind(depth + 1)}
        if choice == 6:
            return {"type": "map", "values": kind(depth + 1)}
        if choice == 7:
            return union(depth)
        if choice == 8:
            return {"type": "fixed", "name": f"F{next(names)}", "size": 3}
        return inner(depth + 1)

    def union(depth: int) -> list[Any]:
        others = source.sample(["int", "string", "double", {"type": "array", "items": "long"}], source.randint(1, 3))
        members = [*others, *(["null"] if source.random() < 0.7 else [])]
        source.shuffle(members)
        return members

    def inner(depth: int) -> dict[str, Any]:
        fields = [field(f"{source.choice('aBc')}{number}", kind(depth)) for number in range(source.randint(1, 4))]
        return record(*fields, name=f"R{next(names)}")

    top = inner(0)
    for each in top["fields"]:
        if source.random() < 0.5:
            each["doc"] = source.choice(["", "what it is", "ä"])
    return top
