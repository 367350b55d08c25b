"""`get_fields` and `get_schema` of Avro tables, in all variants, return the schema's columns, as Hive 3.1.3 does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema
from tests.server.conftest import Link, Serve, database, table

AVRO = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
STORED = [FieldSchema("old", "int", None)]
KEYS = [FieldSchema("p", "string", None)]
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "Id", "type": ["null", "long"], "doc": "key"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
COLUMNS = [FieldSchema("id", "bigint", "key"), FieldSchema("price", "decimal(9,2)", "")]
OTHER = json.dumps({"type": "record", "name": "o", "fields": [{"name": "x", "type": "int"}]})
OTHER_COLUMNS = [FieldSchema("x", "int", "")]

SPELLINGS: dict[str, tuple[bool, Callable[[Link], list[FieldSchema]]]] = {
    "get_fields": (False, lambda link: link.call("get_fields", db_name="d", table_name="t")),
    "get_fields_with_environment_context": (
        False,
        lambda link: link.call(
            "get_fields_with_environment_context",
            db_name="d",
            table_name="t",
            environment_context=ttypes.EnvironmentContext({}),
        ),
    ),
    "get_fields_req": (
        False,
        lambda link: link.call("get_fields_req", req=ttypes.GetFieldsRequest("hive", "d", "t")).fields,
    ),
    "get_schema": (True, lambda link: link.call("get_schema", db_name="d", table_name="t")),
    "get_schema_with_environment_context": (
        True,
        lambda link: link.call(
            "get_schema_with_environment_context",
            db_name="d",
            table_name="t",
            environment_context=ttypes.EnvironmentContext({}),
        ),
    ),
    "get_schema_req": (
        True,
        lambda link: link.call("get_schema_req", req=ttypes.GetSchemaRequest("hive", "d", "t")).fields,
    ),
}


def create(
    link: Link, *, serde: str = AVRO, parameters: dict[str, str], of_serde: dict[str, str] | None = None
) -> None:
    link.call("create_database", database=database("d"))
    created = table("d", "t", **parameters)
    created.sd.cols = STORED
    created.sd.serdeInfo = ttypes.SerDeInfo(None, serde, of_serde or {})
    link.call("create_table", tbl=created)


def answers(link: Link) -> dict[str, list[FieldSchema]]:
    """By variant, each without its required keys."""
    found = {}
    for name, (has_keys, call) in SPELLINGS.items():
        fields = call(link)
        if has_keys:
            assert fields[-1:] == KEYS, name
            fields = fields[:-1]
        found[name] = fields
    return found


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    path = tmp_path / "warehouse" / "schemas" / "r.avsc"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(SCHEMA))
    return path


CASES: dict[str, dict[str, Any]] = {
    "literal": {"parameters": {"avro.schema.literal": json.dumps(SCHEMA)}, "columns": COLUMNS},
    "literal of the serde": {"of_serde": {"avro.schema.literal": json.dumps(SCHEMA)}, "columns": COLUMNS},
    "url": {"parameters": {"avro.schema.url": "URL"}, "columns": COLUMNS},
    "url of the serde": {"of_serde": {"avro.schema.url": "URL"}, "columns": COLUMNS},
    "table before serde": {
        "parameters": {"avro.schema.literal": OTHER},
        "of_serde": {"avro.schema.literal": json.dumps(SCHEMA)},
        "columns": OTHER_COLUMNS,
    },
    "literal before url": {
        "parameters": {"avro.schema.literal": OTHER, "avro.schema.url": "URL"},
        "columns": OTHER_COLUMNS,
    },
    "no literal, but a url": {
        "parameters": {"avro.schema.literal": "none", "avro.schema.url": "URL"},
        "columns": COLUMNS,
    },
    "neither": {"columns": [FieldSchema("old", "int", "")]},
    "another serde": {
        "serde": "org.apache.hadoop.hive.serde2.OpenCSVSerde",
        "parameters": {"avro.schema.literal": OTHER},
        "columns": STORED,
    },
    "a serde of the metastore": {
        "serde": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
        "parameters": {"avro.schema.literal": OTHER},
        "columns": STORED,
    },
    "no file": {"parameters": {"avro.schema.url": "URL.none"}, "error": "Unable to read schema from given path"},
    "url that is none": {"parameters": {"avro.schema.url": "none"}, "error": "Neither avro.schema.literal nor"},
    "no schema": {"parameters": {"avro.schema.literal": "{}"}, "error": "must be of type RECORD"},
    "a length without end": {
        "parameters": {
            "avro.schema.literal": '{"type": "record", "name": "r", "fields": [{"name": "a", "type":'
            ' {"type": "string", "logicalType": "varchar", "maxLength": 1e999}}]}'
        },
        "error": "Failed to obtain maxLength value",
    },
    "half a surrogate pair": {
        "parameters": {
            "avro.schema.literal": r'{"type": "record", "name": "r", "fields":'
            r' [{"name": "a", "type": "int", "doc": "\ud800"}]}'
        },
        "columns": [FieldSchema("a", "int", "?")],
    },
    "half a surrogate pair in an error": {
        "parameters": {
            "avro.schema.literal": r'{"type": "record", "name": "r", "fields": [{"name": "a", "type": "\ud800"}]}'
        },
        "error": r'"\?" is not a defined name',
    },
    "no scheme known": {"parameters": {"avro.schema.url": "nosuch://h/x"}, "error": "Unable to read schema"},
}


@pytest.mark.parametrize("name", CASES)
def test_columns(serve: Serve, schema_file: Path, name: str) -> None:
    case = dict(CASES[name])
    columns, error = case.pop("columns", None), case.pop("error", None)
    for place in ("parameters", "of_serde"):
        case[place] = {key: value.replace("URL", f"file:{schema_file}") for key, value in case.get(place, {}).items()}
    link = serve().link()
    create(link, **case)
    if error is None:
        assert answers(link) == dict.fromkeys(SPELLINGS, columns)
        return
    for _, call in SPELLINGS.values():
        with pytest.raises(ttypes.MetaException, match=error):
            call(link)


def test_a_changed_file_is_seen_at_once_and_one_too_large_is_refused(serve: Serve, schema_file: Path) -> None:
    link = serve(**{"catalog.schema_file_limit_bytes": 4096}).link()
    create(link, parameters={"avro.schema.url": f"file:{schema_file}"})
    assert answers(link) == dict.fromkeys(SPELLINGS, COLUMNS)
    schema_file.write_text(OTHER)
    assert answers(link) == dict.fromkeys(SPELLINGS, OTHER_COLUMNS)
    schema_file.write_text(OTHER + " " * 5000)
    with pytest.raises(ttypes.MetaException, match="larger than 4096 bytes"):
        SPELLINGS["get_schema"][1](link)


@pytest.mark.parametrize(
    "setting", [{"catalog.storage_schema_reader": "refuse"}, {"catalog.serdes_using_metastore_for_schema": AVRO}]
)
def test_settings_decide_whether_the_schema_is_read(serve: Serve, setting: dict[str, str]) -> None:
    link = serve(**setting).link()
    create(link, parameters={"avro.schema.literal": OTHER})
    if "refuse" in setting.values():
        with pytest.raises(ttypes.MetaException, match="Storage schema reading not supported"):
            answers(link)
    else:
        assert answers(link) == dict.fromkeys(SPELLINGS, STORED)
