"""What optional fields of creations and exchanges write: constraints with a table, lists of descriptors, locations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPrimaryKeyRequest,
    AllTableConstraintsRequest,
    Catalog,
    CreateCatalogRequest,
    CreateTableRequest,
    Order,
    SerDeInfo,
    SkewedInfo,
)
from tests.differential.comparison import WAREHOUSE, Call, Scenario, call
from tests.differential.objects import (
    LAZY_SERDE,
    SORTED_AND_BUCKETED,
    columns,
    database,
    descriptor,
    partition,
    table,
    view,
)
from tests.differential.reasons import (
    FORGOTTEN_SERDE,
    KEY_IN_OTHER_CASE,
    NO_SUCH_COLUMN,
    OWN_PLACE,
    SKEW_IN_OTHER_CASE,
)
from tests.differential.scenarios.constraints import check, default, foreign, not_null, primary, unique
from tests.differential.scenarios.partition_changes import exchange
from tests.differential.scenarios.tables import get_table

_OF_NEW: dict[str, Any] = {"table_name": "new"}
_KINDS: dict[str, Any] = {
    "primaryKeys": primary,
    "uniqueConstraints": unique,
    "notNullConstraints": not_null,
    "defaultConstraints": default,
    "checkConstraints": check,
}


def _one(field: str, **fields: Any) -> Any:
    if field == "foreignKeys":
        return foreign(**{"fktable_name": "new", "pktable_name": "parent", "pk_name": "parent_pk", **fields})
    return _KINDS[field](**{**_OF_NEW, **fields})


FIELDS = (*_KINDS, "foreignKeys")


def _created(differs: str = "", *, is_named: bool = True, **constraints: list[Any]) -> Iterable[Call]:
    """A table with these, read and dropped. `is_named`: otherwise, each metastore generates names of its own."""
    request = CreateTableRequest(table=table("new"), **constraints)
    read = AllTableConstraintsRequest("d", "new", "hive")
    return (
        call("create_table_req", request, differs=differs, is_answer_compared=False),
        call("get_all_table_constraints", read, is_ordered=False, is_answer_compared=is_named, differs=differs),
        call("drop_table", "d", "new", True, differs=differs),
    )


CONSTRAINTS = Scenario.of(
    "constraints of new tables",
    call("create_database", database("d")),
    call("create_table", table("parent")),
    call("add_primary_key", AddPrimaryKeyRequest([primary(table_name="parent", name="parent_pk")])),
    [step for field in FIELDS for step in _created(**{field: [_one(field)]})],
    [
        step
        for one, other in combinations(FIELDS, 2)
        for step in _created(**{field: [_one(field, name=f"of_{field}")] for field in (one, other)})
    ],
    # `CREATE TABLE new (a INT PRIMARY KEY NOT NULL DEFAULT 0 CHECK (a = 5))`: Hive's client names none of them.
    [
        step
        for one, other in combinations(FIELDS, 2)
        for step in _created(is_named=False, **{field: [_one(field, name=None)] for field in (one, other)})
    ],
    _created(is_named=False, **{field: [_one(field, name=None)] for field in FIELDS}),
    _created(**{field: [] for field in FIELDS}),
    [
        step
        for field in _KINDS
        for fields in (
            {"table_name": None},
            {"table_db": None},
            {"catName": None},
            {"table_name": "NEW"},
            {"table_db": "D"},
            {"catName": "HIVE"},
            {"table_db": "none"},
            {"catName": "none"},
            {"table_name": ""},
            {"enable_cstr": None, "validate_cstr": None, "rely_cstr": None},
            {"column": "A"},
        )
        for step in _created(**{field: [_one(field, **fields)]})
    ],
    [
        step
        for field in _KINDS
        for step in _created(
            NO_SUCH_COLUMN if field in ("defaultConstraints", "checkConstraints") else "",
            **{field: [_one(field, column="none")]},
        )
    ],
    [
        step
        for fields in (
            {"pktable_name": "none"},
            {"pktable_name": "PARENT"},
            {"pkcolumn_name": "b"},
            {"pk_name": None},
            {"pk_name": "none"},
            {"fktable_name": "NEW"},
            {"fkcolumn_name": "none"},
            {"pktable_name": "new"},
            {"catName": None},
            {"update_rule": 3, "delete_rule": 4},
            {"key_seq": 7},
        )
        for step in _created(foreignKeys=[_one("foreignKeys", **fields)])
    ],
    _created(primaryKeys=[_one("primaryKeys", column=name, seq=number) for number, name in enumerate("ab", 1)]),
    _created(primaryKeys=[_one("primaryKeys", column=name, seq=number) for number, name in ((5, "a"), (3, "b"))]),
    _created(
        primaryKeys=[_one("primaryKeys")],
        foreignKeys=[_one("foreignKeys", pktable_name="new", pk_name="t_pk", fkcolumn_name="b")],
    ),
)

_SKEW = SkewedInfo(["A"], [["X"], ["y"]], {("X",): "file:/x"})
DESCRIPTORS: tuple[dict[str, Any], ...] = (
    {"bucketCols": ["A"], "sortCols": [Order("A", 1), Order("b", 0)], "numBuckets": 2},
    {"bucketCols": [" a "], "sortCols": [Order(" a ", 1)]},
    {"bucketCols": ["none"], "sortCols": [Order("none", 1)]},
    {"sortCols": [Order("a", 1), Order("A", 1)]},
    {"bucketCols": None, "sortCols": None, "parameters": None, "skewedInfo": None, "numBuckets": 0},
    {"skewedInfo": SkewedInfo(["a"], [["X"], ["y"]], {("X",): "file:/x"}), "storedAsSubDirectories": True},
    {"skewedInfo": SkewedInfo([], [], {})},
    {"cols": columns("A:INT:C", "bB:String")},
    {"parameters": {"P": "q", "": "e"}, "compressed": True},
    {"serdeInfo": SerDeInfo("N", LAZY_SERDE, {"A": "b"}, "text", "Ser", "Des", 1)},
)
_PARTITION = call("get_partition", "d", "p", ["1"])
PLACES = {"t": f"{WAREHOUSE}/managed/d.db/t", "p": f"{WAREHOUSE}/managed/d.db/p/k=1"}

LISTS = Scenario.of(
    "lists of descriptors",
    call("create_database", database("d")),
    call("create_table", table("p", keys=("k:string",))),
    [
        step
        for fields in DESCRIPTORS
        for step in (
            call("create_table", table("new", sd=descriptor(**fields))),
            get_table("d", "new"),
            call("get_fields", "d", "new"),
            call("drop_table", "d", "new", True),
            call("add_partitions", [partition("1", sd=descriptor(**fields))]),
            _PARTITION,
            call("drop_partition", "d", "p", ["1"], True),
        )
    ],
    call("create_table", table("new", sd=descriptor(skewedInfo=_SKEW)), differs=SKEW_IN_OTHER_CASE),
    call("drop_table", "d", "new", True, differs=SKEW_IN_OTHER_CASE),
    call("create_table", table("t")),
    call("add_partitions", [partition("1")]),
    [
        step
        for fields in DESCRIPTORS
        for step in (
            call("alter_table", "d", "t", table("t", sd=descriptor(location=PLACES["t"], **fields))),
            get_table("d", "t", differs=FORGOTTEN_SERDE if "serdeInfo" in fields else ""),
            call("alter_partition", "d", "p", partition("1", sd=descriptor(location=PLACES["p"], **fields))),
            call("get_partition", "d", "p", ["1"], differs=FORGOTTEN_SERDE if "serdeInfo" in fields else ""),
        )
        if fields.get("bucketCols") != ["none"]
    ],
)

_KEYS = ("y:string", "m:int")
_EXTERNAL: dict[str, Any] = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
_INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
_OTHERS: dict[str, dict[str, Any]] = {
    "outside": _EXTERNAL,
    "acid": {"parameters": _INSERT_ONLY},
    "commented": {"sd": descriptor("a:int:another", "b:string")},
    "texts": {"keys": ("y:string", "m:string")},
    "formats": {"sd": descriptor(inputFormat="x", outputFormat="y")},
    "serde": {"sd": descriptor(serdeInfo=SerDeInfo("s", "other", {"q": "r"}))},
    "buckets": {"sd": descriptor(**SORTED_AND_BUCKETED)},
    "placed": {"sd": descriptor(location=f"{WAREHOUSE}/managed/placed")},
}


def _filled(of: str, **fields: Any) -> list[Call]:
    parts = [
        partition(year, month, of=of, parameters={"k": "v", "numRows": "3"}, **fields)
        for year in "12"
        for month in "12"
    ]
    return [call("add_partitions", parts)]


def _moved(
    specification: dict[str, str], *names: str, differs: str = "", method: str = "exchange_partition"
) -> list[Call]:
    source_database, source, target_database, target = names or ("d", "source", "d", "target")
    moved = exchange(specification, source_database, source, target_database, target, method=method)
    return [
        Call(moved.method, moved.arguments, differs, is_ordered=False),
        call("get_partitions", source_database, source, -1, is_ordered=False, differs=differs),
        call("get_partitions", target_database, target, -1, is_ordered=False, differs=differs),
    ]


def _tables(place: dict[str, Any]) -> list[Call]:
    names = ("source", "target")
    return [call("create_table", table(name, **{"keys": _KEYS, **place})) for name in names]


def _anew(*steps: Call) -> list[Call]:
    """On two tables created for it."""
    return [
        *_tables({}),
        *_filled("source"),
        *steps,
        *(call("drop_table", "d", name, True) for name in ("source", "target")),
    ]


EXCHANGES = Scenario.of(
    "exchanges",
    call("create_database", database("d")),
    call("create_database", database("e")),
    call("create_catalog", CreateCatalogRequest(Catalog("c", "other", f"{WAREHOUSE}/c"))),
    call("create_database", database("d", catalogName="c")),
    [call("create_table", table(name, **{"keys": _KEYS, **fields})) for name, fields in _OTHERS.items()],
    call("create_table", table("target", dbName="e", keys=_KEYS)),
    call("create_table", view("v")),
    [
        step
        for method in ("exchange_partition", "exchange_partitions")
        for specification in (
            {"y": "1", "m": "1"},
            {"y": "1"},
            {"m": "1"},
            {"y": "1", "m": ""},
            {"y": "", "m": "1"},
            {"y": "1", "m": "01"},
            {"y": "1", "q": "x"},
            {"y": "%31", "m": "1"},
        )
        for step in _anew(*_moved(specification, method=method))
    ],
    _anew(*_moved({"Y": "1", "M": "1"}, differs=KEY_IN_OTHER_CASE)),
    [step for name in (*_OTHERS, "v", "source") for step in _anew(*_moved({"y": "1"}, "d", "source", "d", name))],
    [
        step
        for names in (("d", "source", "e", "target"), ("d", "source", "@c#d", "target"))
        for step in _anew(*_moved({"y": "1"}, *names))
    ],
    _anew(*_moved({"y": "2"}, "D", "source", "E", "target", method="exchange_partitions")),
    # Java moves the directory that the partition would have, and drops the one that contains its files.
    _anew(
        call(
            "alter_partition",
            *("d", "source", partition("1", "1", of="source", sd=descriptor(location=f"{WAREHOUSE}/managed/own"))),
        ),
        *_moved({"y": "1", "m": "1"}, differs=OWN_PLACE),
    ),
)

SCENARIOS = (CONSTRAINTS, LISTS, EXCHANGES)
