"""The contents of a set of Thrift classes, in one form for all sources, so that they can be compared.

A type is a text: `string`, `binary`, `i64`, `list<struct:Partition>`. Enums are `i32`, as on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from thrift.Thrift import TType

_SCALARS = {
    TType.BOOL: "bool",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "double",
}


@dataclass(frozen=True)
class FieldFact:
    name: str
    type: str


@dataclass
class ProtocolFacts:
    """structs: name to fields by id; argument and result structs are among them, as `…_args` and `…_result`."""

    source: str
    structs: dict[str, dict[int, FieldFact]] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> set[str]:
        return {name.removesuffix("_args") for name in self.structs if name.endswith("_args")}

    def is_oneway(self, method: str) -> bool:
        return f"{method}_result" not in self.structs


def type_of(field_type: int, detail: Any) -> str:
    """The type of a `thrift_spec` entry."""
    if field_type == TType.STRING:
        return "binary" if detail == "BINARY" else "string"
    if field_type == TType.STRUCT:
        return f"struct:{detail[0].__name__}"
    if field_type in (TType.LIST, TType.SET):
        container = "list" if field_type == TType.LIST else "set"
        return f"{container}<{type_of(detail[0], detail[1])}>"
    if field_type == TType.MAP:
        return f"map<{type_of(detail[0], detail[1])}, {type_of(detail[2], detail[3])}>"
    return _SCALARS[field_type]


def python_facts(source: str, modules: Iterable[ModuleType]) -> ProtocolFacts:
    """The contents of generated Python modules (structs, service, constants)."""
    facts = ProtocolFacts(source)
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, type) and hasattr(value, "_NAMES_TO_VALUES"):
                facts.enums[name] = dict(value._NAMES_TO_VALUES)
            elif isinstance(value, type) and hasattr(value, "thrift_spec"):
                facts.structs[name] = {
                    entry[0]: FieldFact(entry[2], type_of(entry[1], entry[3]))
                    for entry in value.thrift_spec or ()
                    if entry is not None
                }
            elif name.isupper() and isinstance(value, str | int):
                facts.constants[name] = value
    return facts


def _java_type(described: Any) -> str:
    if isinstance(described, list):
        return f"{described[0]}<{', '.join(_java_type(part) for part in described[1:])}>"
    return "i32" if described.startswith("enum:") else str(described)


def java_facts(source: str, document: Mapping[str, Any]) -> ProtocolFacts:
    """The contents printed by ThriftFacts.java."""
    structs = {
        name: {entry["id"]: FieldFact(entry["name"], _java_type(entry["type"])) for entry in struct["fields"]}
        for name, struct in document["structs"].items()
    }
    return ProtocolFacts(source, structs, document["enums"], document["constants"])
