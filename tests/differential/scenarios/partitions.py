"""Partitions: all ways to read them, their names and values, and which are refused."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetPartitionNamesPsRequest,
    GetPartitionRequest,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetProjectionsSpec,
    PartitionsRequest,
    PartitionValuesRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import columns, database, partition, table, view

WORLD = (
    call("create_database", database("d")),
    call("create_table", table("p", keys=("day:string:when", "hour:int"))),
    call("create_table", table("flat")),
    call("create_table", table("none", keys=("k:string",))),
    call("create_table", view("v")),
    call("create_table", table("typed", keys=("dt:date", "n:bigint", "s:varchar(20)"))),
    call("add_partitions", [partition(day, hour) for day in ("2024-01-01", "2024-01-02") for hour in ("1", "2", "10")]),
    call(
        "add_partitions",
        [partition("a b", "3"), partition("x=y/z%", "4"), partition("__HIVE_DEFAULT_PARTITION__", "5")],
    ),
    call(
        "add_partitions",
        [
            partition(*values, of="typed")
            for values in (("2024-01-01", "5", "a"), ("2024-02-01", "10", "b"), ("2023-12-31", "-1", "c"))
        ],
    ),
    call("add_partitions", [partition("2024-03-01", "7", "__HIVE_DEFAULT_PARTITION__", of="typed")]),
)

NAMES = (
    ("d", "p"),
    ("D", "P"),
    ("@hive#d", "p"),
    ("d", "none"),
    ("d", "flat"),
    ("d", "v"),
    ("d", "missing"),
    ("missing", "p"),
    ("", "p"),
    ("d", ""),
    (None, "p"),
    ("d", None),
    ("@hive#", "p"),
    ("@missing#d", "p"),
)
LIMITS = (-1, 0, 1, 2, 100, -2, 32767)


def listed(method: str, *arguments: Any, **expectations: Any) -> Call:
    """A list whose order Hive does not define."""
    return call(method, *arguments, is_ordered=False, **expectations)


LISTS = Scenario.of(
    "lists",
    WORLD,
    [call("get_partition_names", *name, -1) for name in NAMES],
    [call("get_partition_names", "d", "p", limit) for limit in LIMITS],
    [listed("get_partitions", *name, -1) for name in NAMES],
    [call("get_partitions", "d", "p", limit, is_ordered=limit in (1, 2)) for limit in LIMITS],
    [listed("get_partitions_with_auth", *name, -1, "client", ["group"]) for name in NAMES],
    listed("get_partitions_with_auth", "d", "p", 2, "client", []),
    listed("get_partitions_with_auth", "d", "p", 2, None, None),
    [call("get_partitions_pspec", *name, -1, is_ordered=False) for name in NAMES],
    call("get_partitions_pspec", "d", "p", 1),
    call("get_partitions_pspec", "d", "p", 0),
    [
        call("fetch_partition_names_req", PartitionsRequest(dbName=name, tblName=of, maxParts=limit))
        for name, of, limit in (
            ("d", "p", -1),
            ("d", "p", 2),
            ("d", "missing", -1),
            ("missing", "p", -1),
            ("d", "p", 0),
        )
    ],
    [
        call(
            "get_partitions_req",
            PartitionsRequest(catName="hive", dbName=name, tblName=of, maxParts=limit),
            is_answer_compared=limit != 2,
        )
        for name, of, limit in (
            ("d", "p", 1),
            ("d", "p", 2),
            ("d", "missing", -1),
            ("missing", "p", -1),
            ("d", "p", 0),
            (None, "p", 1),
        )
    ],
    call("get_partitions_req", PartitionsRequest(dbName="d", tblName="p", maxParts=1)),
)

ONE = Scenario.of(
    "one",
    WORLD,
    [
        call("get_partition", *name, values)
        for name, values in (
            (("d", "p"), ["2024-01-01", "1"]),
            (("D", "P"), ["2024-01-01", "1"]),
            (("@hive#d", "p"), ["2024-01-01", "10"]),
            (("d", "p"), ["a b", "3"]),
            (("d", "p"), ["x=y/z%", "4"]),
            (("d", "p"), ["__HIVE_DEFAULT_PARTITION__", "5"]),
            (("d", "p"), ["2024-01-01", "01"]),
            (("d", "p"), ["2024-01-01", "9"]),
            (("d", "p"), ["2024-01-01"]),
            (("d", "p"), ["2024-01-01", "1", "2"]),
            (("d", "p"), []),
            (("d", "p"), None),
            (("d", "p"), ["", "1"]),
            (("d", "flat"), ["1"]),
            (("d", "flat"), []),
            (("d", "v"), ["1"]),
            (("d", "missing"), ["1", "2"]),
            (("missing", "p"), ["1", "2"]),
            ((None, "p"), ["1", "2"]),
            (("d", None), ["1", "2"]),
            (("", "p"), ["1", "2"]),
            (("d", ""), ["1", "2"]),
        )
    ],
    [
        call("get_partition_req", GetPartitionRequest(catName="hive", dbName=name, tblName=of, partVals=values))
        for name, of, values in (
            ("d", "p", ["2024-01-01", "1"]),
            ("d", "p", ["2024-01-01", "9"]),
            ("d", "p", ["2024-01-01"]),
            ("d", "missing", ["2024-01-01"]),
            ("d", "p", None),
        )
    ],
    call("get_partition_req", GetPartitionRequest(dbName="d", tblName="p", partVals=["2024-01-01", "1"])),
    [
        call("get_partition_with_auth", *name, values, "client", ["group"])
        for name, values in (
            (("d", "p"), ["2024-01-01", "1"]),
            (("d", "p"), ["2024-01-01", "9"]),
            (("d", "p"), ["2024-01-01"]),
            (("d", "p"), None),
            (("d", "missing"), ["1", "2"]),
            (("missing", "p"), ["1", "2"]),
            ((None, "p"), ["1", "2"]),
            (("d", None), ["1", "2"]),
            (("d", ""), ["1", "2"]),
        )
    ],
    call("get_partition_with_auth", "d", "p", ["2024-01-01", "1"], None, None),
    call("get_partition_with_auth", "d", "p", ["2024-01-01", "1"], "", []),
    [
        call("get_partition_by_name", *name, text)
        for name, text in (
            (("d", "p"), "day=2024-01-01/hour=1"),
            (("d", "p"), "DAY=2024-01-01/HOUR=1"),
            (("d", "p"), "day=2024-01-01/hour=01"),
            (("d", "p"), "hour=1/day=2024-01-01"),
            (("d", "p"), "day=a b/hour=3"),
            (("d", "p"), "day=a%20b/hour=3"),
            (("d", "p"), "day=x%3Dy%2Fz%25/hour=4"),
            (("d", "p"), "day=2024-01-01"),
            (("d", "p"), "day=2024-01-01/hour=9"),
            (("d", "p"), "day=2024-01-01/hour=1/more=2"),
            (("d", "p"), "nonsense"),
            (("d", "p"), "other=1/hour=2"),
            (("d", "p"), ""),
            (("d", "p"), None),
            (("d", "flat"), "k=1"),
            (("d", "missing"), "k=1"),
            (("missing", "p"), "k=1"),
            ((None, "p"), "k=1"),
            (("d", None), "k=1"),
            (("d", ""), "k=1"),
        )
    ],
)

P_NAMES = ["day=2024-01-01/hour=1", "day=2024-01-02/hour=10"]

BY_NAMES = Scenario.of(
    "by_names",
    WORLD,
    [
        listed("get_partitions_by_names", *name, names)
        for name, names in (
            (("d", "p"), P_NAMES),
            (("D", "P"), P_NAMES),
            (("d", "p"), [*P_NAMES, "day=none/hour=1"]),
            (("d", "p"), ["day=none/hour=1"]),
            (("d", "p"), ["day=a b/hour=3", "day=x%3Dy%2Fz%25/hour=4"]),
            (("d", "p"), [P_NAMES[0], P_NAMES[0]]),
            (("d", "p"), ["nonsense"]),
            (("d", "p"), [""]),
            (("d", "p"), ["day=2024-01-01"]),
            (("d", "p"), []),
            (("d", "p"), None),
            (("d", "flat"), ["k=1"]),
            (("d", "missing"), P_NAMES),
            (("missing", "p"), P_NAMES),
            (("", "p"), P_NAMES),
            (("d", ""), P_NAMES),
            ((None, "p"), P_NAMES),
            (("d", None), P_NAMES),
        )
    ],
    [
        call("get_partitions_by_names_req", GetPartitionsByNamesRequest(db_name=name, tbl_name=of, names=names, **more))
        for name, of, names, more in (
            ("d", "p", [P_NAMES[0]], {}),
            ("@hive#d", "p", [P_NAMES[0]], {}),
            ("d", "p", [], {}),
            ("d", "p", None, {}),
            ("d", "p", ["none"], {}),
            ("d", "missing", [P_NAMES[0]], {}),
            ("missing", "p", [P_NAMES[0]], {}),
            ("d", "p", [P_NAMES[0]], {"get_col_stats": True, "engine": "hive"}),
            ("d", "p", [P_NAMES[0]], {"skipColumnSchemaForPartition": True}),
            ("d", "p", [P_NAMES[0]], {"includeParamKeyPattern": "k%"}),
            ("d", "p", [P_NAMES[0]], {"excludeParamKeyPattern": "k%"}),
        )
    ],
)

PREFIXES = (
    ["2024-01-01"],
    ["2024-01-01", ""],
    ["", "1"],
    ["", ""],
    ["2024-01-01", "1"],
    ["2024-01-03", ""],
    ["a b", ""],
    ["x=y/z%"],
    ["2024-01-01", "1", "2"],
    [""],
    [],
    None,
    ["2024"],
    ["2024.*", ""],
)

PARTIAL = Scenario.of(
    "partial",
    WORLD,
    [call("get_partition_names_ps", "d", "p", values, -1, is_ordered=False) for values in PREFIXES],
    [call("get_partition_names_ps", "d", "p", [""], limit) for limit in LIMITS],
    [listed("get_partition_names_ps", *name, ["1"], -1) for name in NAMES],
    [listed("get_partitions_ps", "d", "p", values, -1) for values in PREFIXES],
    [listed("get_partitions_ps", *name, ["1"], -1) for name in NAMES],
    [call("get_partitions_ps", "d", "p", ["2024-01-01"], limit, is_ordered=limit == 1) for limit in LIMITS],
    [listed("get_partitions_ps_with_auth", "d", "p", values, -1, "client", ["group"]) for values in PREFIXES],
    [listed("get_partitions_ps_with_auth", *name, ["1"], -1, "client", ["group"]) for name in NAMES],
    listed("get_partitions_ps_with_auth", "d", "p", ["2024-01-01"], 0, None, None),
    [
        call(
            "get_partition_names_ps_req",
            GetPartitionNamesPsRequest(catName="hive", dbName="d", tblName=of, partValues=values),
        )
        for of, values in (("p", ["2024-01-01"]), ("p", None), ("p", []), ("missing", ["1"]), ("p", ["1", "2", "3"]))
    ],
    [
        call(
            "get_partitions_ps_with_auth_req",
            GetPartitionsPsWithAuthRequest(catName="hive", dbName="d", tblName=of, partVals=values, maxParts=limit),
        )
        for of, values, limit in (
            ("p", ["2024-01-01", "1"], -1),
            ("p", None, 1),
            ("p", [], 1),
            ("missing", ["1"], -1),
            ("p", ["2024-01-01"], 0),
        )
    ],
    call(
        "get_partitions_ps_with_auth_req",
        GetPartitionsPsWithAuthRequest(catName="hive", dbName="d", tblName="p", partNames=[P_NAMES[0]]),
    ),
)

FILTERS = (
    'day = "2024-01-01"',
    'day = "2024-01-01" and hour = 1',
    'day = "2024-01-01" or hour = 3',
    "hour > 2",
    "hour >= 2 and hour <= 10",
    "hour < 10",
    "hour != 1",
    "hour <> 1",
    "hour = 01",
    'hour = "1"',
    "hour in (1, 3)",
    "hour not in (1, 3)",
    "hour between 2 and 4",
    "hour not between 2 and 4",
    'day like "2024%"',
    'day like "2024.*"',
    'day like "%02"',
    "not (hour = 1)",
    '(day = "2024-01-01")',
    '((day = "2024-01-01") and ((hour = 1) or (hour = 2)))',
    'day > "2024-01-01"',
    'day >= "2024-01-01" and day < "2024-01-02"',
    'day = "a b"',
    'day = "x=y/z%"',
    'day = "__HIVE_DEFAULT_PARTITION__"',
    'day != "2024-01-01"',
    "day = '2024-01-01'",
    '"2024-01-01" = day',
    "1 = hour",
    'DAY = "2024-01-01"',
    'day="2024-01-01"',
    'day in ("2024-01-01", "a b")',
    '(day, hour) in (("2024-01-01", 1), ("2024-01-02", 2))',
    "",
    None,
    " ",
    "nonsense",
    "day",
    "day =",
    'day = "2024-01-01" and',
    "a = 1",
    'missing = "1"',
    'day = "2024-01-01" and missing = 1',
    'day == "2024-01-01"',
    "day = 2024",
    'hour = "x"',
    "hour is null",
    'day = "2024-01-01" AND hour = 1',
    'day = "2024-01-01" OR hour = 3 AND hour = 4',
)
TYPED_FILTERS = (
    'dt = "2024-01-01"',
    "dt = '2024-01-01'",
    "dt = 2024-01-01",
    "dt = date '2024-01-01'",
    "dt > date '2024-01-01'",
    "dt between date '2024-01-01' and date '2024-02-15'",
    "dt in (date '2024-01-01')",
    "dt = 'x'",
    "n = 5",
    "n > 5",
    "n < 0",
    "n >= -1",
    'n = "5"',
    's = "a"',
    's >= "b"',
    "dt like '2024%'",
    "n like '1%'",
)

BY_FILTER = Scenario.of(
    "by_filter",
    WORLD,
    [listed("get_partitions_by_filter", "d", "p", text, -1) for text in FILTERS],
    [listed("get_partitions_by_filter", "d", "typed", text, -1) for text in TYPED_FILTERS],
    [listed("get_partitions_by_filter", *name, 'day = "2024-01-01"', -1) for name in NAMES],
    [call("get_partitions_by_filter", "d", "p", "hour >= 1", limit, is_answer_compared=limit != 2) for limit in LIMITS],
    [call("get_num_partitions_by_filter", "d", "p", text) for text in FILTERS],
    [call("get_num_partitions_by_filter", *name, 'day = "2024-01-01"') for name in NAMES],
    [
        call("get_part_specs_by_filter", *name, 'day = "2024-01-01" and hour = 1', -1)
        for name in (("d", "p"), ("d", "missing"), ("missing", "p"), ("d", "flat"))
    ],
    [
        listed(
            "get_partitions_by_filter_req",
            GetPartitionsByFilterRequest(catName="hive", dbName=name, tblName=of, filter=text),
        )
        for name, of, text in (
            ("d", "p", "hour = 1"),
            ("d", "missing", "hour = 1"),
            ("d", "p", None),
            ("d", "p", ""),
            ("d", "p", "nonsense"),
        )
    ],
)

VALUES = Scenario.of(
    "values",
    WORLD,
    [
        listed(
            "get_partition_values",
            PartitionValuesRequest(**{"dbName": "d", "tblName": "p", "partitionKeys": columns("day:string"), **more}),
        )
        for more in (
            {},
            {"partitionKeys": columns("day:string", "hour:int")},
            {"partitionKeys": columns("hour:int")},
            {"partitionKeys": []},
            {"partitionKeys": columns("missing:int")},
            {"applyDistinct": False},
            {"filter": "hour = 1"},
            {"filter": "nonsense"},
            {"catName": "hive"},
            {"tblName": "flat"},
            {"tblName": "missing"},
            {"dbName": "missing"},
        )
    ],
    [
        call(
            "get_partition_values",
            PartitionValuesRequest(
                "d", "p", columns("day:string"), partitionOrder=columns("day:string"), ascending=up, maxParts=limit
            ),
        )
        for up in (True, False)
        for limit in (-1, 2, 0)
    ],
    [
        call(method, text)
        for method in ("partition_name_to_vals", "partition_name_to_spec")
        for text in ("a=1/b=2", "a=x%3Dy/b=2", "a=1", "A=1", "", "nonsense", "a=", "a=1/", "/a=1", "a=1/b", None)
    ],
    [
        call("partition_name_has_valid_characters", values, throws)
        for values in (["a", "b"], ["a/b"], ["ü"], [""], [])
        for throws in (True, False)
    ],
)


def with_specs(**fields: Any) -> Call:
    given = {
        "catName": "hive",
        "dbName": "d",
        "tblName": "p",
        "projectionSpec": GetProjectionsSpec(fieldList=[]),
        "filterSpec": GetPartitionsFilterSpec(filters=[]),
    }
    return call("get_partitions_with_specs", GetPartitionsRequest(**{**given, **fields}))


WITH_SPECS = Scenario.of(
    "with_specs",
    call("create_database", database("d")),
    call("create_table", table("p", keys=("day:string:when", "hour:int"))),
    call("add_partitions", [partition("2024-01-01", "1")]),
    with_specs(),
    with_specs(tblName="missing"),
    with_specs(dbName="missing"),
    with_specs(projectionSpec=None),
    with_specs(filterSpec=None),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["values"])),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["values", "sd.location"])),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["values", "parameters"])),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["values", "parameters"], includeParamKeyPattern="k%")),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["values", "parameters"], excludeParamKeyPattern="k%")),
    with_specs(
        projectionSpec=GetProjectionsSpec(
            fieldList=["dbName", "tableName", "catName", "createTime", "lastAccessTime", "values"]
        )
    ),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["sd.cols.name", "values"])),
    with_specs(projectionSpec=GetProjectionsSpec(fieldList=["sd.serdeInfo.serializationLib", "values"])),
    [
        with_specs(projectionSpec=GetProjectionsSpec(fieldList=fields))
        for fields in (
            ["missing"],
            ["sd.missing"],
            ["values.missing"],
            ["sd.location.missing"],
            ["sd", "sd.cols"],
            ["sd.cols", "sd"],
            ["sd.serdeInfo.name", "sd.serdeInfo"],
            ["sd.cols.name", "sd.cols"],
        )
    ],
    [
        with_specs(filterSpec=GetPartitionsFilterSpec(filterMode=mode, filters=filters))
        for mode, filters in (
            (0, ["day=2024-01-01/hour=1"]),
            (0, ["none"]),
            (1, ["2024-01-01", "1"]),
            (1, ["2024-01-01", ""]),
            (1, ["2024-01-01"]),
            (1, ["none", "1"]),
            (2, ["hour = 1"]),
            (2, ["hour = 1", "day = '2024-01-01'"]),
            (2, ["nonsense"]),
            (0, []),
            (0, None),
        )
    ],
)

SCENARIOS = [LISTS, ONE, BY_NAMES, PARTIAL, BY_FILTER, VALUES, WITH_SPECS]
