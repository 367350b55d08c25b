"""Partitions added, appended, altered, renamed, exchanged and dropped."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AlterPartitionsRequest,
    AppendPartitionsRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    RenamePartitionRequest,
    RequestPartsSpec,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, descriptor, partition, table, view
from tests.differential.reasons import CATALOG_IGNORED, NO_LOCATION, NO_PARTITIONS

TABLES = (
    call("create_database", database("d")),
    call("create_table", table("p", keys=("k:string",))),
    call("create_table", table("two", keys=("day:string", "hour:int"))),
    call("create_table", table("flat")),
    call("create_table", view("v")),
    call("create_table", table("ext", keys=("k:string",), tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})),
)
LISTED = call("get_partitions", "d", "p", -1, is_ordered=False)
NAMED = call("get_partition_names", "d", "p", -1)


def one(*values: Any, **fields: Any) -> Call:
    return call("add_partition", partition(*values, **fields))


def request(*parts: Any, **fields: Any) -> Call:
    given = {
        "dbName": "d",
        "tblName": "p",
        "parts": list(parts),
        "ifNotExists": False,
        "needResult": True,
        "catName": "hive",
    }
    return call("add_partitions_req", AddPartitionsRequest(**{**given, **fields}))


def spec(*parts: Any, **fields: Any) -> Call:
    given = {
        "dbName": "d",
        "tableName": "p",
        "rootPath": "",
        "catName": "hive",
        "partitionList": PartitionListComposingSpec(list(parts)),
    }
    return call("add_partitions_pspec", [PartitionSpec(**{**given, **fields})])


ADD = Scenario.of(
    "add",
    TABLES,
    one("1"),
    one("1"),
    one("2", catName="hive"),
    one("3", dbName="none"),
    one("3", of="none"),
    one("3", dbName=""),
    one("3", of=""),
    one("3", dbName=None),
    one("3", of=None),
    one(),
    one("", of="p"),
    one("1", "2"),
    one("a/b=c d%"),
    one("ü"),
    one("x" * 1000),
    call("add_partition", None),
    call("add_partition", partition("n", values=None)),
    one("1", of="flat"),
    one(of="flat"),
    one("1", of="v"),
    one("4", parameters=None),
    one("5", sd=descriptor(location="{warehouse}/elsewhere/5")),
    one("6", sd=descriptor(location="")),
    one("7", sd=descriptor("x:date", "y:double")),
    one("8", sd=descriptor(cols=None)),
    one("9", sd=descriptor(serdeInfo=None)),
    call("add_partition", partition("10", sd=None, parameters={})),
    one("1", of="ext"),
    one("1", "x", of="two"),
    one("1", "2", of="two"),
    LISTED,
    NAMED,
    call("add_partition_with_environment_context", partition("ctx"), EnvironmentContext(properties={"a": "b"})),
    call("add_partition_with_environment_context", partition("ctx2"), None),
    call("add_partitions", []),
    call("add_partitions", None),
    call("add_partitions", [partition("m1"), partition("m2")]),
    call("add_partitions", [partition("m3"), partition("m1")]),
    call("add_partitions", [partition("m4"), partition("m4")]),
    call("add_partitions", [partition("m5"), partition("m6", of="ext")]),
    call("add_partitions", [partition("m5"), partition("m6", dbName="none")]),
    call("add_partitions", [partition("m5"), partition()]),
    call("add_partitions", [partition("m5"), partition("m6", "too many")]),
    call("add_partitions", [partition("m7", of="none")]),
    NAMED,
    request(partition("r1")),
    request(partition("r1")),
    request(partition("r1"), partition("r2"), ifNotExists=True),
    request(partition("r3"), needResult=False),
    request(),
    request(partition("r4"), tblName="none"),
    request(partition("r4"), dbName="none"),
    request(partition("r4", of="ext")),
    request(partition("r4", "x")),
    request(partition("r5"), partition("r5"), ifNotExists=True),
    request(partition("r6"), catName=None),
    NAMED,
    spec(partition("s1", catName="hive"), partition("s2", catName="hive")),
    spec(partition("s1", catName="hive")),
    spec(),
    spec(partition("s3"), tableName="none"),
    spec(partition("s3"), dbName="none"),
    spec(partition("s3"), dbName=None),
    call("add_partitions_pspec", []),
    call("add_partitions_pspec", None),
    NAMED,
)

APPEND = Scenario.of(
    "append",
    TABLES,
    call("append_partition", "D", "P", ["2"]),
    [
        call("append_partition", *arguments)
        for arguments in (
            ("d", "p", ["1"]),
            ("d", "p", ["1"]),
            ("d", "p", []),
            ("d", "p", None),
            ("d", "p", [""]),
            ("d", "p", ["1", "2"]),
            ("d", "two", ["1"]),
            ("d", "two", ["1", "x"]),
            ("d", "flat", ["1"]),
            ("d", "v", ["1"]),
            ("d", "ext", ["1"]),
            ("d", "none", ["1"]),
            ("none", "p", ["1"]),
            ("", "p", ["1"]),
            ("d", "", ["1"]),
            (None, "p", ["1"]),
            ("d", None, ["1"]),
            ("@hive#d", "p", ["3"]),
            ("@none#d", "p", ["3"]),
        )
    ],
    [
        call("append_partition_by_name", *arguments)
        for arguments in (
            ("d", "p", "k=n1"),
            ("d", "p", "k=n1"),
            ("d", "p", "K=n2"),
            ("d", "p", "k=a%2Fb"),
            ("d", "p", "k"),
            ("d", "p", "x=1"),
            ("d", "p", "k=1/l=2"),
            ("d", "p", "k="),
            ("d", "p", ""),
            ("d", "p", None),
            ("d", "two", "day=1/hour=2"),
            ("d", "two", "hour=3/day=2"),
            ("d", "two", "day=1"),
            ("d", "flat", "k=1"),
            ("d", "none", "k=1"),
            ("none", "p", "k=1"),
            (None, "p", "k=1"),
            ("d", None, "k=1"),
            ("d", "", "k=1"),
        )
    ],
    call("append_partition_with_environment_context", "d", "p", ["c1"], EnvironmentContext(properties={})),
    call("append_partition_with_environment_context", "d", "p", ["c2"], None),
    call("append_partition_by_name_with_environment_context", "d", "p", "k=c3", None),
    [
        call(
            "append_partition_req",
            AppendPartitionsRequest(catalogName="hive", dbName="d", tableName=of, name=name, partVals=values),
        )
        for of, name, values in (
            ("p", "k=q1", None),
            ("p", None, ["q2"]),
            ("p", None, None),
            ("p", "k=q1", None),
            ("none", "k=q1", None),
            ("p", "", ["q3"]),
        )
    ],
    NAMED,
    LISTED,
)


PLACE = "{warehouse}/managed/d.db/p/k="


def placed(value: str, **fields: Any) -> Partition:
    """With the location of its value: Java does not alter partitions without one."""
    return partition(value, **{"sd": descriptor(location=PLACE + value), **fields})


def alter(*values: Any, database_name: Any = "d", of: Any = "p", differs: str = "", **fields: Any) -> Call:
    fields = {"sd": descriptor(location=PLACE + (values or ("",))[0]), **fields}
    return call("alter_partition", database_name, of, partition(*values, **fields), differs=differs)


ALTER = Scenario.of(
    "alter",
    TABLES,
    one("1"),
    one("2"),
    one("3"),
    alter("1", parameters={"n": "1"}, sd=descriptor("a:int", "z:date", location=PLACE + "1")),
    LISTED,
    alter("1", sd=descriptor(location="{warehouse}/other")),
    alter("1", sd=descriptor(location=None), differs=NO_LOCATION),
    alter("1", sd=descriptor(location=""), differs=NO_LOCATION),
    LISTED,
    alter("none"),
    alter("1", of="none"),
    alter("1", database_name="none"),
    alter("1", database_name=None),
    alter("1", of=None),
    alter("1", of=""),
    alter("1", database_name=""),
    alter("1", "2"),
    alter(),
    alter("1", dbName="other"),
    alter("1", catName="none", differs=CATALOG_IGNORED),
    call("alter_partition", "d", "p", None),
    call("alter_partition", "d", "flat", partition("1", of="flat")),
    call(
        "alter_partition_with_environment_context",
        "d",
        "p",
        placed("1", parameters={"m": "2"}),
        EnvironmentContext(properties={}),
    ),
    call("alter_partitions", "d", "p", [placed("1", parameters={"l": "1"}), placed("2", parameters={"l": "2"})]),
    LISTED,
    call("alter_partitions", "d", "p", [], differs=NO_PARTITIONS),
    call("alter_partitions", "d", "p", None),
    call("alter_partitions", "d", "p", [partition("1"), partition("none")]),
    call("alter_partitions", "d", "none", [partition("1", of="none")]),
    call("alter_partitions", "none", "p", [partition("1", dbName="none")]),
    call("alter_partitions", "d", "p", [partition("1", dbName="other")]),
    call("alter_partitions", "d", "p", [partition("1", of="two")]),
    call("alter_partitions", None, "p", [partition("1")]),
    call("alter_partitions", "d", None, [partition("1")]),
    call("alter_partitions", "", "p", [partition("1")]),
    call("alter_partitions", "d", "", [partition("1")]),
    call("alter_partitions_with_environment_context", "d", "p", [placed("1", parameters={"c": "1"})], None),
    call("alter_partitions_with_environment_context", "d", "p", [partition("none")], EnvironmentContext(properties={})),
    call(
        "alter_partitions_req",
        AlterPartitionsRequest(
            catName="hive", dbName="d", tableName="p", partitions=[placed("1", parameters={"q": "1"})]
        ),
    ),
    call("alter_partitions_req", AlterPartitionsRequest(dbName="d", tableName="p", partitions=[partition("none")])),
    call("alter_partitions_req", AlterPartitionsRequest(dbName="d", tableName="none", partitions=[partition("1")])),
    LISTED,
    [
        call("rename_partition", database_name, of, values, new)
        for database_name, of, values, new in (
            ("d", "p", ["1"], partition("renamed", sd=descriptor(location=PLACE + "1"))),
            ("d", "p", ["1"], partition("again")),
            ("d", "p", ["renamed"], partition("2")),
            ("d", "p", ["none"], partition("new")),
            ("d", "p", ["renamed"], partition("new", "x")),
            ("d", "p", ["renamed"], partition()),
            ("d", "p", ["renamed"], None),
            ("d", "p", [], partition("new")),
            ("d", "p", None, partition("new")),
            ("d", "none", ["1"], partition("new")),
            ("none", "p", ["1"], partition("new")),
            (None, "p", ["1"], partition("new")),
            ("d", None, ["1"], partition("new")),
            ("", "p", ["1"], partition("new")),
            ("d", "", ["1"], partition("new")),
            ("d", "p", ["2"], partition("new", dbName="other")),
            ("d", "p", ["3"], partition("a/b", sd=descriptor(location=PLACE + "3"))),
        )
    ],
    call(
        "rename_partition_req",
        RenamePartitionRequest(
            catName="hive",
            dbName="d",
            tableName="p",
            partVals=["renamed"],
            newPart=partition("by_request", sd=descriptor(location=PLACE + "1")),
        ),
    ),
    call(
        "rename_partition_req",
        RenamePartitionRequest(dbName="d", tableName="p", partVals=["none"], newPart=partition("by_request")),
    ),
    LISTED,
    NAMED,
)

MORE = tuple(one(str(number)) for number in range(1, 10))


def drop_request(spec: Any, **fields: Any) -> Call:
    given = {
        "dbName": "d",
        "tblName": "p",
        "parts": spec,
        "deleteData": True,
        "ifExists": False,
        "needResult": True,
        "catName": "hive",
    }
    return call("drop_partitions_req", DropPartitionsRequest(**{**given, **fields}))


DROP = Scenario.of(
    "drop",
    TABLES,
    MORE,
    one("a/b"),
    [
        call("drop_partition", *arguments)
        for arguments in (
            ("d", "p", ["1"], True),
            ("d", "p", ["1"], True),
            ("D", "P", ["a/b"], False),
            ("d", "p", [], True),
            ("d", "p", None, True),
            ("d", "p", [""], True),
            ("d", "p", ["2", "3"], True),
            ("d", "none", ["1"], True),
            ("none", "p", ["1"], True),
            (None, "p", ["1"], True),
            ("d", None, ["1"], True),
            ("", "p", ["1"], True),
            ("d", "", ["1"], True),
            ("d", "flat", ["1"], True),
            ("d", "two", ["1"], True),
        )
    ],
    [
        call("drop_partition_by_name", *arguments)
        for arguments in (
            ("d", "p", "k=2", True),
            ("d", "p", "k=2", True),
            ("d", "p", "K=3", True),
            ("d", "p", "nonsense", True),
            ("d", "p", "", True),
            ("d", "p", None, True),
            ("d", "p", "x=1", True),
            ("d", "none", "k=1", True),
            ("none", "p", "k=1", True),
            (None, "p", "k=1", True),
            ("d", None, "k=1", True),
            ("d", "", "k=1", True),
        )
    ],
    call(
        "drop_partition_with_environment_context",
        "d",
        "p",
        ["4"],
        True,
        EnvironmentContext(properties={"ifPurge": "true"}),
    ),
    call("drop_partition_by_name_with_environment_context", "d", "p", "k=none", True, None),
    drop_request(RequestPartsSpec(names=["k=5"])),
    drop_request(RequestPartsSpec(names=["k=5"])),
    drop_request(RequestPartsSpec(names=["k=5"]), ifExists=True),
    drop_request(RequestPartsSpec(names=["k=5", "k=6"])),
    NAMED,
    drop_request(RequestPartsSpec(names=["k=5", "k=6"]), ifExists=True),
    drop_request(RequestPartsSpec(names=["k=7"]), needResult=False),
    drop_request(RequestPartsSpec(names=[])),
    one("bare"),
    drop_request(RequestPartsSpec(names=["k=bare"]), skipColumnSchemaForPartition=True),
    drop_request(RequestPartsSpec(names=["k=8"]), tblName="none"),
    drop_request(RequestPartsSpec(names=["k=8"]), dbName="none"),
    drop_request(RequestPartsSpec(names=["nonsense"])),
    [
        call(
            "drop_partition_req",
            DropPartitionRequest(
                catName="hive", dbName="d", tblName=of, partName=name, partVals=values, deleteData=True
            ),
        )
        for of, name, values in (
            ("p", "k=8", None),
            ("p", "k=8", None),
            ("p", None, ["9"]),
            ("p", None, None),
            ("none", "k=1", None),
        )
    ],
    NAMED,
)


def exchange(specification: Any, *names: Any, method: str = "exchange_partition") -> Call:
    return call(method, specification, *(names or ("d", "source", "d", "target")))


EXCHANGE = Scenario.of(
    "exchange",
    call("create_database", database("d")),
    [call("create_table", table(name, keys=("y:string", "m:string"))) for name in ("source", "target")],
    call("create_table", table("other_columns", keys=("y:string", "m:string"), sd=descriptor("z:int"))),
    call("create_table", table("other_keys", keys=("x:string",))),
    call("create_table", table("flat")),
    [one(year, month, of="source") for year in ("1", "2", "3") for month in ("1", "2")],
    one("3", "1", of="target"),
    exchange({"y": "1", "m": "1"}),
    exchange({"y": "1", "m": "1"}),
    exchange({"y": "1", "m": ""}),
    exchange({"y": "2"}),
    exchange({"y": "3", "m": "1"}),
    exchange({"m": "2"}),
    exchange({"y": "", "m": "2"}),
    exchange({}),
    exchange(None),
    exchange({"z": "1"}),
    exchange({"y": "9", "m": "9"}),
    exchange({"y": "3", "m": "2"}, "d", "source", "d", "other_columns"),
    exchange({"y": "3", "m": "2"}, "d", "source", "d", "other_keys"),
    exchange({"y": "3", "m": "2"}, "d", "source", "d", "flat"),
    exchange({"y": "3", "m": "2"}, "d", "source", "d", "none"),
    exchange({"y": "3", "m": "2"}, "d", "none", "d", "target"),
    exchange({"y": "3", "m": "2"}, "none", "source", "d", "target"),
    exchange({"y": "3", "m": "2"}, "d", "source", "none", "target"),
    exchange({"y": "3", "m": "2"}, None, "source", "d", "target"),
    exchange({"y": "3", "m": "2"}, "d", None, "d", "target"),
    exchange({"y": "3", "m": "2"}, "d", "source", None, "target"),
    exchange({"y": "3", "m": "2"}, "d", "source", "d", None),
    exchange({"y": "3", "m": "2"}, "d", "", "d", "target"),
    exchange({"y": "3", "m": "2"}, method="exchange_partitions"),
    exchange({"y": "3", "m": "2"}, method="exchange_partitions"),
    call("get_partition_names", "d", "source", -1),
    call("get_partition_names", "d", "target", -1),
    call("get_partitions", "d", "target", -1, is_ordered=False),
)

SCENARIOS = [ADD, APPEND, ALTER, DROP, EXCHANGE]
