"""Functions."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Catalog,
    CreateCatalogRequest,
    Function,
    FunctionType,
    GetFunctionsRequest,
    PrincipalType,
    ResourceType,
    ResourceUri,
)
from tests.differential.comparison import Scenario, call
from tests.differential.objects import database
from tests.differential.reasons import PREFIX, RESOURCES


def function(name: str | None = "f", **fields: Any) -> Function:
    given = {
        "functionName": name,
        "dbName": "d",
        "className": "org.example.F",
        "ownerName": "owner",
        "ownerType": PrincipalType.USER,
        "createTime": 1000000000,
        "functionType": FunctionType.JAVA,
        "resourceUris": [
            ResourceUri(ResourceType.JAR, "hdfs:///f.jar"),
            ResourceUri(ResourceType.FILE, "hdfs:///f.txt"),
        ],
        "catName": "hive",
    }
    return Function(**{**given, **fields})


FUNCTIONS = Scenario.of(
    "functions",
    call("create_database", database("d")),
    call("create_database", database("e")),
    call("create_function", function()),
    call("create_function", function()),
    call("create_function", function("F")),
    call("create_function", function("g", resourceUris=[])),
    call("create_function", function("h", resourceUris=None)),
    call("create_function", function("i", dbName="e", ownerType=PrincipalType.ROLE)),
    [call("create_function", function(name)) for name in ("bad-name", "a b", "", None, "a.b")],
    call("create_function", function("x", dbName="none")),
    call("create_function", function("x", dbName=None)),
    call("create_function", function("x", className=None)),
    call("create_function", function("x2", ownerName=None)),
    call("create_function", function("x3", ownerType=None)),
    call("create_function", function("x4", functionType=None)),
    call("create_function", function("x5", catName=None)),
    call("create_function", function("x6", catName="none")),
    [
        call("get_function", *name)
        for name in (
            ("d", "f"),
            ("D", "F"),
            ("d", "g"),
            ("@hive#e", "i"),
            ("d", "none"),
            ("none", "f"),
            ("d", None),
            (None, "f"),
            ("", "f"),
            ("d", ""),
        )
    ],
    [
        call("get_functions", name, pattern, is_ordered=False)
        for name, pattern in (
            ("d", "*"),
            ("d", "f*"),
            ("d", "F*"),
            ("d", "f|g"),
            ("d", "none"),
            ("d", ""),
            ("d", None),
            ("none", "*"),
            (None, "*"),
            ("D", "*"),
            ("@hive#d", "*"),
        )
    ],
    call("get_functions_req", GetFunctionsRequest("d", "hive", "*")),
    call("get_functions_req", GetFunctionsRequest("d", "hive", "f*", returnNames=False)),
    call("get_all_functions", is_answer_compared=False),
    call("alter_function", "d", "f", function("f", className="org.example.G", resourceUris=[])),
    call("get_function", "d", "f", differs=RESOURCES),
    call("alter_function", "d", "f", function("renamed")),
    call("get_function", "d", "renamed"),
    call("alter_function", "d", "renamed", function("g")),
    call("alter_function", "d", "renamed", function("renamed", dbName="e")),
    call("alter_function", "d", "none", function("none")),
    call("alter_function", "none", "f", function("f")),
    call("alter_function", "d", "g", None),
    call("alter_function", "d", "g", function("bad-name")),
    call("alter_function", None, "g", function("g")),
    call("alter_function", "d", None, function("g")),
    call("drop_function", "d", "none"),
    call("drop_function", "none", "f"),
    call("drop_function", None, "g"),
    call("drop_function", "d", None),
    call("drop_function", "D", "G"),
    call("drop_function", "d", "g"),
    call("get_functions", "d", "*", is_ordered=False),
)

OWNERS = Scenario.of(
    "owners and catalogs",
    call("create_catalog", CreateCatalogRequest(Catalog("c", None, "{warehouse}/managed/c"))),
    call("create_database", database("d")),
    call("create_database", database("d", catalogName="c")),
    [
        step
        for number, owner in enumerate((None, "", "x"))
        for step in (
            call("create_function", function(f"owned{number}", ownerName=owner)),
            call("get_function", "d", f"owned{number}"),
        )
    ],
    call("create_function", function("every", resourceUris=[ResourceUri(kind, "hdfs:///x") for kind in (1, 2, 3)])),
    call("get_function", "d", "EVERY"),
    call("create_function", function("In", catName="C")),
    [call("get_function", name, "iN") for name in ("@c#d", "@C#D", "d", "@none#d")],
    call("alter_function", "@c#d", "IN", function("in", catName="c", className="new")),
    call("get_function", "@c#d", "in"),
    call("alter_function", "@c#d", "in", function("in")),
    call("alter_function", "@c#d", "in", function("renamed", catName="c")),
    call("get_functions", "@c#d", "*"),
    call("create_function", function("p", dbName="@c#d", catName=None), differs=PREFIX),
    call("drop_function", "@c#d", "P", differs=PREFIX),
    call("drop_function", "@C#D", "RENAMED"),
    call("get_functions", "@c#d", "*"),
)

SCENARIOS = [FUNCTIONS, OWNERS]
