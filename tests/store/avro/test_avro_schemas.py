"""Columns of Avro schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hms_cache.store.avro_schemas import AvroSchemaError, columns_of_schema
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema
from tests.store.avro.schemas import NAMED, NAMED_TYPES, REFUSED, TYPES, field, record


@pytest.mark.parametrize(("schema", "expected"), TYPES, ids=lambda value: json.dumps(value)[:60])
def test_types(schema: Any, expected: str) -> None:
    text = json.dumps(record(field("Col", schema, doc="c"), field("second", "int")))
    assert columns_of_schema(text) == [FieldSchema("col", expected, "c"), FieldSchema("second", "int", "")]


def test_named_types_are_found_in_their_namespace_and_by_full_name() -> None:
    assert [column.type for column in columns_of_schema(json.dumps(NAMED))] == NAMED_TYPES


@pytest.mark.parametrize(("schema", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(schema: Any, message: str) -> None:
    with pytest.raises(AvroSchemaError, match=message):
        columns_of_schema(json.dumps(schema))


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000, '{"type":"record"}', "1", "null"])
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(AvroSchemaError):
        columns_of_schema(text)


def test_named_types_that_double_have_a_limit() -> None:
    """Each record twice in the next: 3 kB of schema, 2 ** 40 types. Also as many columns of one large type."""
    kinds: list[Any] = [record(field("a", "int"), name="R0")]
    kinds += [record(field("x", f"R{n}"), field("y", f"R{n}"), name=f"R{n + 1}") for n in range(40)]
    with pytest.raises(AvroSchemaError, match="avro_type_characters"):
        columns_of_schema(json.dumps(record(*(field(f"f{n}", kind) for n, kind in enumerate(kinds)), name="T")))
    many = [field("first", kinds[0]), *(field(f"f{n}", kind) for n, kind in enumerate(kinds[1:16]))]
    many += [field(f"g{n}", "R15") for n in range(100)]
    with pytest.raises(AvroSchemaError, match="avro_type_characters"):
        columns_of_schema(json.dumps(record(*many, name="T")))


def test_nesting_has_a_limit() -> None:
    schema: Any = "int"
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    with pytest.raises(AvroSchemaError, match="nested more than 100 levels"):
        columns_of_schema(json.dumps(record(field("a", schema))))
