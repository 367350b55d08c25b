"""Partitions by expressions in Kryo, as written by Hive's compiler, and by the filter texts that MSCK sends instead.

The expressions are those that Hive 4.0.1 generated for `tests/expressions`, on a table with the same keys and
partitions.
"""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    DropPartitionsExpr,
    DropPartitionsRequest,
    GetFileMetadataByExprRequest,
    PartitionsByExprRequest,
    RequestPartsSpec,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, partition, table, view
from tests.differential.reasons import (
    EMPTY_CATALOG,
    EMPTY_EXPRESSION,
    KEYLESS,
    LIMIT_FORGOTTEN,
    NO_SUCH_KEY,
    ORDER_OF_TEXTS,
    SELECTED_TWICE,
)
from tests.expressions.recorded import recorded

NO_CONDITION = b"\xff"
METHODS = ("get_partitions_by_expr", "get_partitions_spec_by_expr", "get_partition_names_req")
PROXY = "metastore.expression.proxy"
MSCK_PROXY = "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"
HIVE_PROXY = "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore"

ANSWERS = recorded("4.0.1")
NAMED = {text: expression for expression, _, _, text in ANSWERS.expressions}
FEW, NONE, IS_NULL, EVALUATED, BY_FUNCTION = (
    NAMED[text] for text in ("(s >= 'b')", "(s > 'é')", "s is null", "(t = 9Y)", "(year(d) = 2024)")
)
"""Of 40 partitions 8, none, 5, 7, and 15. Java has its database evaluate the first three, and evaluates the others."""

WORLD = (
    call("create_database", database("d")),
    call("create_table", table("t", keys=tuple(f"{name}:{kind}" for name, kind in ANSWERS.keys))),
    call("add_partitions", [partition(*row, of="t") for row in ANSWERS.rows]),
    call("create_table", table("none", keys=("s:string", "t:tinyint", "d:date"))),
    call("create_table", table("flat")),
    call("create_table", view("v")),
)


def by_expression(
    method: str, expression: bytes | None, *, differs: str = "", is_on_new_connection: bool = False, **fields: Any
) -> Call:
    given = {"dbName": "d", "tblName": "t", "expr": expression, "maxParts": -1, **fields}
    is_ordered = bool(fields.get("order")) or method == METHODS[2]
    return Call(
        method,
        (PartitionsByExprRequest(**given),),
        differs=differs,
        is_ordered=is_ordered,
        is_on_new_connection=is_on_new_connection,
    )


def drop(*expressions: bytes, differs: str = "", **fields: Any) -> Call:
    parts = RequestPartsSpec(exprs=[DropPartitionsExpr(expression) for expression in expressions])
    given = {"dbName": "d", "tblName": "t", "parts": parts, "deleteData": False, **fields}
    return call("drop_partitions_req", DropPartitionsRequest(**given), is_ordered=False, differs=differs)


LEFT = call("get_partition_names", "d", "t", -1)

EVERY = Scenario.of(
    "every",
    WORLD,
    [
        by_expression(METHODS[number % len(METHODS)], expression)
        for number, (expression, _, _, _) in enumerate(ANSWERS.expressions)
    ],
)

ASKED = Scenario.of(
    "asked",
    WORLD,
    [by_expression(method, expression) for method in METHODS for expression in (FEW, NONE, IS_NULL, BY_FUNCTION)],
    [
        by_expression(method, FEW, dbName=place, tblName=of)
        for method in METHODS
        for place, of in (
            ("D", "T"),
            ("d", "missing"),
            ("missing", "t"),
            ("d", "none"),
            ("", "t"),
            ("d", ""),
            (None, "t"),
            ("d", None),
        )
    ],
    [by_expression(method, FEW, tblName=of, differs=KEYLESS) for method in METHODS for of in ("flat", "v")],
    [by_expression(method, FEW, catName=catalog) for method in METHODS for catalog in ("hive", "HIVE", "none")],
    [by_expression(method, FEW, catName="", differs=EMPTY_CATALOG) for method in METHODS],
    [by_expression(method, FEW, maxParts=most) for method in METHODS for most in (0, 1, 3, 100, 32767, -2, None)],
    [by_expression(method, EVALUATED, maxParts=3, differs=LIMIT_FORGOTTEN) for method in METHODS],
    [by_expression(method, NONE, maxParts=3) for method in METHODS],
    [
        by_expression(method, IS_NULL, defaultPartitionName=name)
        for method in METHODS
        for name in ("__HIVE_DEFAULT_PARTITION__", "b", "")
    ],
    [by_expression(method, expression) for method in METHODS[:2] for expression in (b"", b"x", FEW[:100])],
    [by_expression(METHODS[2], expression) for expression in (NO_CONDITION, b"x", FEW[:100])],
    by_expression(METHODS[2], b"", differs=EMPTY_EXPRESSION),
    [by_expression(method, None) for method in METHODS],
    [
        by_expression(METHODS[2], expression, order=order, maxParts=most)
        for expression in (FEW, NO_CONDITION)
        for order in (
            "0,1,2,3:++++",
            "0,1,2,3:-+-+",
            "1,0,2,3:-+++",
            "4,0,1,2,3:+++++",
            "x:+",
            "0",
            "",
        )
        for most in (-1, 3)
    ],
    [
        by_expression(METHODS[2], NO_CONDITION, order=order, differs=ORDER_OF_TEXTS)
        for order in ("5,0,1,2,3:-++++", "7,0,1,2,3:+++++")
    ],
    by_expression(METHODS[2], FEW, order="0,1:+"),
    by_expression(METHODS[2], FEW, order="99:+", differs=NO_SUCH_KEY),
    [
        by_expression(method, FEW, **{field: pattern})
        for method in METHODS[:2]
        for field in ("includeParamKeyPattern", "excludeParamKeyPattern")
        for pattern in ("k", "none", "%", "")
    ],
    [by_expression(method, FEW, skipColumnSchemaForPartition=True) for method in METHODS],
    call("get_file_metadata_by_expr", GetFileMetadataByExprRequest([1], FEW, True, 1), is_answer_compared=False),
)

TEXTS = Scenario.of(
    "texts",
    WORLD,
    call("setMetaConf", PROXY, MSCK_PROXY, is_on_new_connection=True),
    [
        by_expression(method, text)
        for method in METHODS
        for text in (b"i=9", b"i=9 and s>'b'", b"s='ab'", b"s='none'", b"i = 9 or b = 10")
    ],
    drop(b"i=9"),
    LEFT,
    drop(b"s='ab'", b"b=10"),
    LEFT,
    by_expression(METHODS[2], FEW, is_on_new_connection=True),
)

DROPPED = Scenario.of(
    "dropped",
    WORLD,
    drop(NONE),
    drop(NONE, ifExists=False),
    drop(NONE, ifExists=True),
    drop(FEW, ifExists=False),
    drop(FEW, ifExists=False),
    LEFT,
    drop(IS_NULL, needResult=False),
    LEFT,
    drop(NAMED["(v = 'ab')"], NAMED["(d) IN (DATE'2023-12-31')"], differs=SELECTED_TWICE),
    LEFT,
    drop(NAMED["s is null"], NONE, ifExists=False),
    LEFT,
    drop(b"x"),
    drop(),
    drop(FEW, tblName="missing"),
    drop(FEW, dbName="missing"),
    drop(EVALUATED, tblName="flat", differs=KEYLESS),
    drop(FEW, tblName="none"),
    LEFT,
)

SCENARIOS = (EVERY, ASKED, TEXTS, DROPPED)
