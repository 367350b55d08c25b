"""Type stubs of the generated protocol: what the Thrift compiler does not say of fields, arguments and results.

What may be None says docs/decisions/0010-the-protocol-has-types.md: a field without a keyword, or with a default, is
there; an `optional` field without a default may be None. Constructors take None for every field.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HEADER = "# Generated from thrift_idl by tools/generate_thrift.py; do not edit.\n\n"

SCALARS = {
    "bool": "bool",
    **dict.fromkeys(("i8", "i16", "i32", "i64"), "int"),
    "double": "float",
    "string": "str",
    "binary": "bytes",
    "void": "None",
}

FILLED = {
    "Table": ("catName", "id"),
    "Partition": ("catName",),
    "PartitionSpec": ("catName",),
    "Function": ("catName",),
    "ColumnStatisticsDesc": ("catName", "lastAnalyzed", "partName"),
    "SQLPrimaryKey": ("catName",),
    "SQLForeignKey": ("catName",),
    "SQLUniqueConstraint": ("catName",),
    "SQLNotNullConstraint": ("catName",),
    "SQLDefaultConstraint": ("catName",),
    "SQLCheckConstraint": ("catName",),
    "SQLAllTableConstraints": (
        *("primaryKeys", "foreignKeys", "uniqueConstraints"),
        *("notNullConstraints", "defaultConstraints", "checkConstraints"),
    ),
    "CreationMetadata": ("sourceTables",),
}
"""Optional fields that are there nonetheless: the server fills them at its edge or makes the struct itself.

`partName` is there in statistics of partitions, and nobody reads it in those of tables.
"""

SENT = {
    "WMCreateResourcePlanRequest": ("resourcePlan",),
    "WMGetResourcePlanRequest": ("resourcePlanName",),
    "WMValidateResourcePlanRequest": ("resourcePlanName",),
    "WMDropResourcePlanRequest": ("resourcePlanName",),
    "WMCreateTriggerRequest": ("trigger",),
    "WMAlterTriggerRequest": ("trigger",),
    "WMDropTriggerRequest": ("resourcePlanName", "triggerName"),
    "WMGetTriggersForResourePlanRequest": ("resourcePlanName",),
    "WMCreatePoolRequest": ("pool",),
    "WMAlterPoolRequest": ("pool", "poolPath"),
    "WMDropPoolRequest": ("resourcePlanName", "poolPath"),
    "WMCreateOrUpdateMappingRequest": ("mapping",),
    "WMDropMappingRequest": ("mapping",),
    "WMCreateOrDropTriggerToPoolMappingRequest": ("resourcePlanName", "triggerName", "poolPath"),
}
"""Optional fields without which a request means nothing: every client sends them."""


NULLABLE = {"Table": ("tableType", "temporary")}
"""Fields without `optional`, or with a default, that are None nonetheless: in rows of old tables, or left out."""


def write_stubs(compiler: str, idl: Path, package: Path, module_base: str) -> None:
    """Write the stubs of one IDL file into its package; `module_base` is the package that holds all of them."""
    described = _described(compiler, idl, package)
    package.joinpath("__init__.pyi").write_text(HEADER)
    package.joinpath("ttypes.pyi").write_text(HEADER + "".join(_types(described, module_base)))
    package.joinpath("constants.pyi").write_text(HEADER + "".join(_constants(described)))
    for service in described["services"]:
        text = HEADER + "".join(_service(service, module_base))
        package.joinpath(f"{service['name']}.pyi").write_text(text)


def _described(compiler: str, idl: Path, scratch: Path) -> Any:
    """The IDL as the compiler's JSON generator describes it."""
    described = scratch / f"{idl.stem}.json"
    subprocess.run([compiler, "--gen", "json", "-out", str(scratch), str(idl)], check=True)
    try:
        return json.loads(described.read_text())
    finally:
        described.unlink()


def _type(kind: str, details: Any) -> str:
    """A Python type, from a type's id and the description that goes with it."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind == "list":
        return f"list[{_type(details['elemTypeId'], details.get('elemType'))}]"
    if kind == "set":
        return f"set[{_type(details['elemTypeId'], details.get('elemType'))}]"
    if kind == "map":
        key = _type(details["keyTypeId"], details.get("keyType"))
        if key.startswith("list["):  # a list has no hash: the decoder makes tuples of it
            key = f"tuple[{key[5:-1]}, ...]"
        return f"dict[{key}, {_type(details['valueTypeId'], details.get('valueType'))}]"
    return str(details["class"])


def _field(field: Any) -> str:
    return _type(field["typeId"], field.get("type"))


def _may_be_none(struct: str, field: Any) -> bool:
    if field["name"] in NULLABLE.get(struct, ()):
        return True
    if field["name"] in FILLED.get(struct, ()) or field["name"] in SENT.get(struct, ()):
        return False
    return field["required"] == "optional" and "default" not in field


def _struct(name: str, base: str, fields: Iterable[tuple[str, str, bool]]) -> Iterator[str]:
    """A class; `fields`: name, type, whether it may be None once the struct is made."""
    fields = list(fields)
    yield f"class {name}({base}):\n"
    for field, of_type, may_be_none in fields:
        yield f"    {field}: {of_type}{' | None' if may_be_none else ''}\n"
    parameters = "".join(f", {field}: {of_type} | None = ..." for field, of_type, _ in fields)
    yield f"    def __init__(self{parameters}) -> None: ...\n\n"


def _types(described: Any, module_base: str) -> Iterator[str]:
    yield f"from typing import Final\n\nfrom {module_base}.base import TBase, ThriftException\n\n"
    for enum in described["enums"]:
        yield f"class {enum['name']}(TBase):\n"
        yield "    _VALUES_TO_NAMES: Final[dict[int, str]]\n    _NAMES_TO_VALUES: Final[dict[str, int]]\n"
        for member in enum["members"]:
            yield f"    {member['name']}: Final[int]\n"
        yield "\n"
    for struct in described["structs"]:
        fields = [(field["name"], _field(field), _may_be_none(struct["name"], field)) for field in struct["fields"]]
        yield from _struct(struct["name"], "ThriftException" if struct["isException"] else "TBase", fields)


def _constants(described: Any) -> Iterator[str]:
    yield "from typing import Final\n\n"
    for constant in described["constants"]:
        yield f"{constant['name']}: Final[{_type(constant['typeId'], constant.get('type'))}]\n"


def _service(service: Any, module_base: str) -> Iterator[str]:
    """Each method's arguments and results, then the client."""
    package, _, parent = service.get("extends", "").rpartition(".")
    yield "from typing import Any\n\n"
    yield f"from {module_base}.base import TBase\n"
    if parent:
        yield f"from {module_base}.{package} import {parent}\n"
    yield "from .ttypes import *\n\n"
    yield f"class Iface({parent + '.Iface' if parent else ''}): ...\n\n".replace("()", "")
    yield f"class Client({parent + '.Client, ' if parent else ''}Iface):\n"
    if not parent:
        yield "    def __init__(self, iprot: Any, oprot: Any = ...) -> None: ...\n"
    for function in service["functions"]:
        parameters = "".join(f", {field['name']}: {_field(field)} | None" for field in function["arguments"])
        yield f"    def {function['name']}(self{parameters}) -> {_returned(function)}: ...\n"
    yield f"\nclass Processor({parent + '.Processor, ' if parent else ''}Iface):\n"
    yield "    def __init__(self, handler: Any) -> None: ...\n"
    yield "    def process(self, iprot: Any, oprot: Any) -> bool | None: ...\n\n"
    for function in service["functions"]:
        arguments = [(field["name"], _field(field), False) for field in function["arguments"]]
        yield from _struct(f"{function['name']}_args", "TBase", arguments)
        if function["oneway"]:
            continue
        results = [(field["name"], _field(field), True) for field in function["exceptions"]]
        if _returned(function) != "None":
            results.insert(0, ("success", _returned(function), True))
        yield from _struct(f"{function['name']}_result", "TBase", results)


def _returned(function: Any) -> str:
    return _type(function["returnTypeId"], function.get("returnType"))
