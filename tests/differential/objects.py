"""Databases, tables and partitions that scenarios are about."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    Order,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
LAZY_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


def database(name: str = "d", **fields: Any) -> Database:
    return Database(**{"name": name, "description": "a database", "parameters": {}, **fields})


def columns(*specifications: str) -> list[FieldSchema]:
    """`name:type`, `name:type:comment`."""
    return [FieldSchema(*[*specification.split(":"), None][:3]) for specification in specifications]


def descriptor(*cols: str, location: str | None = None, **fields: Any) -> StorageDescriptor:
    given = {
        "cols": columns(*(cols or ("a:int:first", "b:string"))),
        "location": location,
        "inputFormat": TEXT_INPUT,
        "outputFormat": TEXT_OUTPUT,
        "compressed": False,
        "numBuckets": -1,
        "serdeInfo": SerDeInfo("serde", LAZY_SERDE, {"field.delim": ","}),
        "bucketCols": [],
        "sortCols": [],
        "parameters": {},
        "storedAsSubDirectories": False,
    }
    return StorageDescriptor(**{**given, **fields})


def table(name: str | None = "t", *, keys: tuple[str, ...] = (), **fields: Any) -> Table:
    """`keys`: as columns."""
    given = {
        "tableName": name,
        "dbName": "d",
        "owner": "owner",
        "createTime": 1000000000,
        "lastAccessTime": 0,
        "retention": 0,
        "sd": descriptor(),
        "partitionKeys": columns(*keys),
        "parameters": {},
        "tableType": "MANAGED_TABLE",
    }
    return Table(**{**given, **fields})


def view(name: str = "v", **fields: Any) -> Table:
    text = {"viewOriginalText": "SELECT a FROM t", "viewExpandedText": "SELECT `t`.`a` FROM `d`.`t`"}
    sd = descriptor("a:int", inputFormat=TEXT_INPUT, outputFormat=TEXT_OUTPUT)
    return table(name, **{"sd": sd, "tableType": "VIRTUAL_VIEW", **text, **fields})


def partition(*values: str, of: str | None = "p", **fields: Any) -> Partition:
    given = {
        "values": list(values),
        "dbName": "d",
        "tableName": of,
        "createTime": 1000000000,
        "lastAccessTime": 0,
        "sd": descriptor(),
        "parameters": {"k": "v"},
    }
    return Partition(**{**given, **fields})


SORTED_AND_BUCKETED = {"numBuckets": 2, "bucketCols": ["a"], "sortCols": [Order("b", 1), Order("a", 0)]}
