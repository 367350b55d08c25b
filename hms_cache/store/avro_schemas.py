"""Derives table columns from an Avro schema, as Hive's AvroSerDe does.

Facts: `SchemaToTypeInfo`, `AvroObjectInspectorGenerator`, `AvroSerdeUtils` (Hive 3.1.3); the Avro specification 1.8 for
names, namespaces and unions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hms_cache.errors import HmsCacheError
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema

_PRIMITIVES = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_NAMED = ("record", "error", "enum", "fixed")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_PRECISION = 38
_MAX_DEPTH = 100
"""Limit on nested schemas: far deeper than any table needs, and far below the interpreter's recursion limit."""


class AvroSchemaError(HmsCacheError):
    """The text is not an Avro schema, or Hive cannot create a table from it."""


def columns_of_schema(text: str) -> list[FieldSchema]:
    """Returns the columns of a table with this Avro schema (JSON text): names in lower case, comments from `doc`.

    Raises AvroSchemaError.
    """
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AvroSchemaError(f"the schema is not JSON: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        found = schema.get("type") if isinstance(schema, dict) else type(schema).__name__
        raise AvroSchemaError(f"Schema for table must be of type RECORD. Received type: {found}")
    return _Schema().columns(schema)


class _Schema:
    """State of one parse: the types named so far, by full name."""

    def __init__(self) -> None:
        self._types: dict[str, str | None] = {}
        """The value is None for a record whose fields are still being parsed."""
        self._characters = 0
        self._max_characters = input_limits().avro_type_characters

    def columns(self, record: Mapping[str, Any]) -> list[FieldSchema]:
        name, namespace = _full_name(record, "")
        self._types[name] = None
        found = self._fields(record, namespace, 1)
        return [FieldSchema(field, kind, comment) for field, kind, comment in found]

    def _fields(self, record: Mapping[str, Any], namespace: str, depth: int) -> list[tuple[str, str, str]]:
        fields = record.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError("Record has no fields")
        found: list[tuple[str, str, str]] = []
        seen: set[str] = set()
        for field in fields:
            if not isinstance(field, dict) or "type" not in field:
                raise AvroSchemaError(f"No field type: {field}")
            name = _checked_name(field.get("name"))
            if name in seen:
                raise AvroSchemaError(f"Duplicate field {name} in record {record.get('name')}")
            seen.add(name)
            doc = field.get("doc")
            kind = self._type(field["type"], namespace, depth + 1)
            found.append((name.lower(), kind, doc if isinstance(doc, str) else ""))
        return found

    def _type(self, schema: Any, namespace: str, depth: int) -> str:
        """Returns the Hive type of a schema. The length of each type is added to the limit every time it is used: in a
        schema in which each named type uses the previous one twice, the text doubles with every level."""
        if depth > _MAX_DEPTH:
            raise AvroSchemaError(f"the schema is nested more than {_MAX_DEPTH} levels deep")
        kind = self._any_type(schema, namespace, depth)
        self._characters += len(kind)
        if self._characters > self._max_characters:
            setting = exceeded("avro_type_characters")
            raise AvroSchemaError(f"its types written out have more than {self._max_characters} characters ({setting})")
        return kind

    def _any_type(self, schema: Any, namespace: str, depth: int) -> str:
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or self._named(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict) or not isinstance(schema.get("type"), str):
            raise AvroSchemaError(f"No type: {schema}")
        kind = schema["type"]
        if kind in _PRIMITIVES:
            return _logical_type(schema) or _PRIMITIVES[kind]
        if kind in _NAMED:
            return self._new_type(schema, namespace, depth)
        if kind == "array":
            return f"array<{self._type(schema.get('items'), namespace, depth + 1)}>"
        if kind == "map":
            return f"map<string,{self._type(schema.get('values'), namespace, depth + 1)}>"
        # A type name may be wrapped in an object.
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> str:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            if candidate in self._types:
                kind = self._types[candidate]
                if kind is None:
                    raise AvroSchemaError(f"Recursive schemas are not supported. Recursive schema was {candidate}")
                return kind
        raise AvroSchemaError(f'"{name}" is not a defined name')

    def _new_type(self, schema: Mapping[str, Any], namespace: str, depth: int) -> str:
        name, own_namespace = _full_name(schema, namespace)
        if name in self._types:
            raise AvroSchemaError(f"Can't redefine: {name}")
        if schema["type"] == "enum":
            if not isinstance(schema.get("symbols"), list):
                raise AvroSchemaError(f"Enum has no symbols: {name}")
            self._types[name] = "string"
        elif schema["type"] == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or isinstance(size, bool):
                raise AvroSchemaError(f"Invalid or no size: {name}")
            # A fixed type is binary even if its logical type is decimal: Hive supports decimals only on bytes.
            self._types[name] = "binary"
        else:
            self._types[name] = None
            fields = self._fields(schema, own_namespace, depth)
            self._types[name] = f"struct<{','.join(f'{field}:{kind}' for field, kind, _ in fields)}>"
        found = self._types[name]
        assert found is not None
        return found

    def _union(self, members: Sequence[Any], namespace: str, depth: int) -> str:
        """The Hive type of a union. A union with null is the other type, since every Hive column is nullable."""
        kinds = [self._type(member, namespace, depth + 1) for member in members]
        others = [kind for member, kind in zip(members, kinds, strict=True) if not _is_null(member)]
        if len(kinds) - len(others) > 1:
            raise AvroSchemaError('Duplicate in union: "null"')
        if len(kinds) > len(others) and len(others) == 1:
            return others[0]
        return f"uniontype<{','.join(others if len(kinds) > 1 else kinds)}>"


def _is_null(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, dict) and schema.get("type") == "null")


def _logical_type(schema: Mapping[str, Any]) -> str | None:
    """The Hive type of a primitive with a logical type; None if Hive does not support the logical type."""
    kind, logical = schema["type"], schema.get("logicalType")
    if not isinstance(logical, str):
        return None
    if kind == "bytes" and logical.lower() == "decimal":
        precision, scale = _whole(schema.get("precision")), _whole(schema.get("scale"))
        if not 1 <= precision <= _MAX_PRECISION or not 0 <= scale <= precision:
            raise AvroSchemaError("Invalid precision or scale for decimal type")
        return f"decimal({precision},{scale})"
    if kind == "string" and logical.lower() in ("char", "varchar"):
        length = schema.get("maxLength")
        try:
            return f"{logical.lower()}({int(length)})"  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:  # JSON may hold infinity
            raise AvroSchemaError(f"Failed to obtain maxLength value from file schema: {schema}") from error
    if kind == "int" and logical == "date":
        return "date"
    if kind == "long" and logical == "timestamp-millis":
        return "timestamp"
    return None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _full_name(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The full name of a named type, and the namespace for types inside it."""
    name = schema.get("name")
    if not isinstance(name, str):
        raise AvroSchemaError("No name in schema")
    own, _, last = name.rpartition(".")
    if not own:
        given = schema.get("namespace")
        own = given if isinstance(given, str) else namespace
    _checked_name(last)
    return (f"{own}.{last}" if own else last), own


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise AvroSchemaError(f"Illegal name: {name}")
    return name
