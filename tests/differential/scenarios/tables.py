"""Tables and views: reads in each form, patterns and types, creation, alteration, drop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlterTableRequest,
    ClientCapabilities,
    CreateTableRequest,
    CreationMetadata,
    DropTableRequest,
    EnvironmentContext,
    GetFieldsRequest,
    GetProjectionsSpec,
    GetSchemaRequest,
    GetTableRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    SerDeInfo,
    TruncateTableRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import SORTED_AND_BUCKETED, columns, database, descriptor, partition, table, view
from tests.differential.reasons import (
    DATABASE_ERROR,
    EMPTY_CATALOG,
    EXTERNAL_DATA,
    NULL_PATTERNS,
    PROJECTION,
    SERDE_COMMENTS,
)


def get_table(database_name: str | None, name: str | None, **expectations: Any) -> Call:
    """`get_table`; Hive 4.0.1 has `get_table_req` instead, to which the releases with both map it, for a client without
    capabilities."""
    bare = database_name.removeprefix("@hive#") if database_name else database_name
    request = GetTableRequest(dbName=bare, tblName=name)
    spelling = ("get_table_req", (request,), lambda result: result.table)
    return call("get_table", database_name, name, java_spelling=spelling, **expectations)


def get_table_req(**fields: Any) -> Call:
    expectations = {name: fields.pop(name) for name in ("differs", "is_message_compared") if name in fields}
    request = GetTableRequest(**{"dbName": "d", "tblName": "t", "capabilities": ClientCapabilities([1, 2]), **fields})
    return call("get_table_req", request, **expectations)


def by_names(*names: str, **fields: Any) -> Call:
    differs = fields.pop("differs", "")
    given = {"dbName": "d", "tblNames": list(names), "capabilities": ClientCapabilities([1, 2]), **fields}
    return call("get_table_objects_by_name_req", GetTablesRequest(**given), is_ordered=False, differs=differs)


def former_by_names(*names: str) -> Call:
    request = GetTablesRequest(dbName="d", tblNames=list(names))
    spelling = ("get_table_objects_by_name_req", (request,), lambda result: result.tables)
    return call("get_table_objects_by_name", "d", list(names), java_spelling=spelling, is_ordered=False)


WORLD = (
    call("create_database", database("d")),
    call("create_database", database("e")),
    call("create_table", table("t", parameters={"comment": "one", "a": "b"})),
    call("create_table", table("T2", keys=("day:string:when", "hour:int"), sd=descriptor(**SORTED_AND_BUCKETED))),
    call("create_table", table("ext", tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})),
    call(
        "create_table",
        table(
            "placed",
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
            sd=descriptor(location="{warehouse}/x/y"),
        ),
    ),
    call("create_table", view("v", parameters={"comment": "seen"})),
    call("create_table", table("other", dbName="e", owner="another")),
    call("create_table", table("io", parameters={"transactional": "true", "transactional_properties": "insert_only"})),
    call(
        "create_table",
        view(
            "mv",
            tableType="MATERIALIZED_VIEW",
            rewriteEnabled=True,
            creationMetadata=CreationMetadata(catName="hive", dbName="d", tblName="mv", tablesUsed={"d.t"}),
        ),
    ),
)

READ = Scenario.of(
    "read",
    WORLD,
    [get_table("d", name) for name in ("t", "T", "t2", "ext", "placed", "v", "io")],
    get_table("D", "T2"),
    get_table("@hive#d", "t"),
    get_table("d", "none", is_message_compared=True),
    get_table("none", "t", is_message_compared=True),
    get_table("@none#d", "t"),
    get_table("d", ""),
    get_table("", "t"),
    get_table(None, "t"),
    get_table("d", None),
    get_table_req(),
    get_table_req(catName="hive"),
    get_table_req(catName="none"),
    get_table_req(tblName="none", is_message_compared=True),
    get_table_req(dbName="none", is_message_compared=True),
    get_table_req(tblName="io"),
    get_table_req(tblName="io", capabilities=None),
    get_table_req(tblName="io", capabilities=ClientCapabilities([1])),
    get_table_req(tblName="t", capabilities=None),
    get_table_req(getColumnStats=True, engine="hive"),
    get_table_req(tblName="mv"),
    [former_by_names("t", "t2"), former_by_names("none"), former_by_names("t", "t", "T"), former_by_names()],
    former_by_names("t", "io"),
    [by_names("t", "v", "none"), by_names("ext"), by_names(), by_names("none"), by_names("t", "T")],
    by_names("t", catName="hive"),
    by_names("t", dbName="none"),
    by_names("t", catName="none"),
    by_names("t", "io", capabilities=None),
    by_names("io", capabilities=ClientCapabilities([1])),
    by_names(tblNames=None),
    by_names(tblNames=None, tablesPattern="t*"),
    by_names(tblNames=None, tablesPattern="*"),
    by_names(tblNames=["t"], projectionSpec=GetProjectionsSpec(fieldList=["tableName", "dbName"]), differs=PROJECTION),
    [
        by_names(tblNames=["t"], projectionSpec=GetProjectionsSpec(fields, *patterns), differs=differs)
        for fields, differs in ((None, ""), ([], ""), (["parameters"], ""), (["none"], ""), (["tableName"], PROJECTION))
        for patterns in (("", ""), ("a%", None), (None, "a%"), ("a%", "b%"))
    ],
    by_names(dbName=None),
    by_names(dbName=""),
    [
        by_names(dbName=name, tblNames=None, tablesPattern=pattern)
        for name in ("*", "d*", "D*", "none*", "d|default", "d*|x")
        for pattern in ("*", "t*", "none")
    ],
    [
        call("get_tables", "d", pattern)
        for pattern in ("*", "t*", "T*", "t|v", "*2", "none", "", None, "t.", ".*", "_", "e%", "e_t", "t2|T2|x*")
    ],
    [call("get_tables", name, "*") for name in ("none", "", None, "D", "@hive#d", "@hive#", "@none#d", "*", "d*")],
    [call("get_all_tables", name) for name in ("d", "D", "none", "", None, "@hive#e", "@none#d", "default")],
    [
        call("get_tables_by_type", "d", pattern, kind)
        for pattern, kind in (
            ("*", "MANAGED_TABLE"),
            ("*", "EXTERNAL_TABLE"),
            ("*", "VIRTUAL_VIEW"),
            ("*", "MATERIALIZED_VIEW"),
            ("t*", "MANAGED_TABLE"),
            ("*", "NO_TYPE"),
            ("*", ""),
            ("*", "managed_table"),
            (None, "MANAGED_TABLE"),
            ("none", "VIRTUAL_VIEW"),
        )
    ],
    call("get_tables_by_type", "none", "*", "VIRTUAL_VIEW"),
    call("get_tables_by_type", "d*", "*", "VIRTUAL_VIEW"),
    call("get_tables_by_type", "d", "*", None),
    [
        call("get_table_meta", *arguments, is_ordered=False)
        for arguments in (
            ("*", "*", None),
            ("*", "*", []),
            ("d", "*", ["VIRTUAL_VIEW"]),
            ("d", "*", ["VIRTUAL_VIEW", "EXTERNAL_TABLE"]),
            ("d", "t", None),
            ("d|e", "t|other", None),
            ("none", "*", None),
            ("*", "none", None),
            ("d", "*", ["NONE"]),
            ("@hive#d", "t*", None),
            ("@none#*", "*", None),
            ("", "", None),
            ("", "*", None),
            ("*", "", None),
            ("@hive#", "*", None),
            ("@hive#!", "*", None),
            ("d", None, None),
            ("D", "T", None),
            ("d", "t2", ["TABLE"]),
        )
    ],
    call("get_table_meta", None, "*", None, is_ordered=False, differs=NULL_PATTERNS),
    call("get_table_meta", None, None, None, is_ordered=False, differs=NULL_PATTERNS),
    [
        call("get_fields", *name)
        for name in (
            ("d", "t"),
            ("d", "t2"),
            ("d", "v"),
            ("D", "T"),
            ("d", "none"),
            ("none", "t"),
            ("d", None),
            (None, "t"),
            ("d", ""),
        )
    ],
    [
        call("get_schema", *name)
        for name in (("d", "t"), ("d", "t2"), ("d", "none"), ("none", "t"), ("d", None), (None, "t"))
    ],
    call("get_fields_with_environment_context", "d", "t2", EnvironmentContext(properties={})),
    call("get_fields_with_environment_context", "d", "t2", None),
    call("get_schema_with_environment_context", "d", "t2", EnvironmentContext(properties={})),
    call("get_fields_req", GetFieldsRequest(dbName="d", tblName="t2")),
    call("get_fields_req", GetFieldsRequest(dbName="d", tblName="none", catName="hive")),
    call("get_schema_req", GetSchemaRequest(dbName="d", tblName="t2")),
    call("get_schema_req", GetSchemaRequest(dbName="none", tblName="t2", catName="hive")),
    [
        call("get_table_names_by_filter", "d", text, limit, is_ordered=False)
        for text, limit in (
            ('hive_filter_field_owner__ = "owner"', -1),
            ('hive_filter_field_owner__ = "nobody"', -1),
            ('hive_filter_field_owner__ like "own.*"', -1),
            ("hive_filter_field_last_access__ < 100", -1),
            ("hive_filter_field_last_access__ >= 1", -1),
            ('hive_filter_field_params__comment = "one"', -1),
            ('hive_filter_field_params__comment like "see.*"', -1),
            ('hive_filter_field_params__comment != "one"', -1),
            ('hive_filter_field_params__comment = "one" or hive_filter_field_params__comment = "seen"', -1),
            ('hive_filter_field_params__comment = "one" and hive_filter_field_owner__ = "owner"', -1),
            ('hive_filter_field_tableType__ = "VIRTUAL_VIEW"', -1),
            ('hive_filter_field_params__none = "one"', -1),
            ("", -1),
            (None, -1),
            ("nonsense", -1),
            ('no_field = "x"', -1),
            ('hive_filter_field_owner__ = "owner" and', -1),
        )
    ],
    call("get_table_names_by_filter", "none", 'hive_filter_field_owner__ = "owner"', -1),
    call("get_table_names_by_filter", "", 'hive_filter_field_owner__ = "owner"', -1),
    call("get_table_names_by_filter", None, 'hive_filter_field_owner__ = "owner"', -1),
    call("get_table_names_by_filter", "d", 'hive_filter_field_owner__ = "nobody"', 0),
    [
        call(
            "get_tables_ext",
            GetTablesExtRequest(
                catalog="hive", database="d", tableNamePattern=pattern, requestedFields=2147483647, limit=limit
            ),
            is_ordered=False,
        )
        for pattern, limit in (("*", 0), ("t*", 0), ("none", 0))
    ],
    call("get_materialized_views_for_rewriting", "d"),
    call("get_materialized_views_for_rewriting", "e"),
    call("get_materialized_views_for_rewriting", "none"),
    call("get_all_materialized_view_objects_for_rewriting"),
)

CREATE = Scenario.of(
    "create",
    call("create_database", database("d")),
    call("create_table", table("t")),
    get_table("d", "t"),
    call("create_table", table("t"), is_message_compared=True),
    call("create_table", table("T")),
    call("create_table", table("nodb", dbName="none"), is_message_compared=True),
    call("create_table", table("nocat", catName="none")),
    [
        call("create_table", table(name))
        for name in ("", None, "a b", "a-b", "a.b", "ü", "a/b", "a$b", "_ok", "1ok", "x" * 257)
    ],
    call("create_table", table("badcol", sd=descriptor("a b:int"))),
    get_table("d", "badcol"),
    call("create_table", table("emptycol", sd=descriptor(":int"))),
    call("create_table", table("twice", sd=descriptor("a:int", "A:int")), differs=DATABASE_ERROR),
    get_table("d", "twice"),
    call("create_table", table("keytwice", keys=("a:int",))),
    call("create_table", table("badtype", sd=descriptor("a:nonsense"))),
    call("create_table", table("notype", sd=descriptor(cols=columns("a")))),
    call("create_table", table("nocols", sd=descriptor(cols=None))),
    call("create_table", table("emptycols", sd=descriptor(cols=[]))),
    get_table("d", "emptycols"),
    call("create_table", table("nosd", sd=None, tableType="VIRTUAL_VIEW")),
    call("create_table", table("noserde", sd=descriptor(serdeInfo=None))),
    call("create_table", table("noformat", sd=descriptor(inputFormat=None, outputFormat=None))),
    get_table("d", "noformat"),
    call("create_table", table("nullparam", parameters=None)),
    get_table("d", "nullparam"),
    call("create_table", table("badkey", keys=("a:int", "k y:int"))),
    call("create_table", table("keyless", keys=())),
    call("create_table", table("upper", sd=descriptor("AbC:INT", "Def:String"), keys=("KeY:STRING",))),
    get_table("d", "upper"),
    call("create_table", table("nullkeys", partitionKeys=None)),
    get_table("d", "nullkeys"),
    call("create_table", table("notabletype", tableType=None)),
    get_table("d", "notabletype"),
    call("create_table", table("oddtype", tableType="STRANGE")),
    get_table("d", "oddtype"),
    call("create_table", table("onlyparam", tableType="MANAGED_TABLE", parameters={"EXTERNAL": "TRUE"})),
    get_table("d", "onlyparam"),
    call("create_table", table("onlytype", tableType="EXTERNAL_TABLE")),
    get_table("d", "onlytype"),
    call("create_table", table("noowner", owner=None)),
    call("create_table", table("role", ownerType=2)),
    get_table("d", "role"),
    call("create_table", table("located", sd=descriptor(location="{warehouse}/loc"))),
    get_table("d", "located"),
    call("create_table", table("Ünicode_param", parameters={"ü": "ß"})),
    call(
        "create_table",
        table("unicode", parameters={"k": "ascii"}, sd=descriptor("a:int:comment with 'quotes' \"and\" %")),
    ),
    get_table("d", "unicode"),
    call("create_table_with_environment_context", table("ctx"), EnvironmentContext(properties={"a": "b"})),
    call("create_table_with_environment_context", table("ctx2"), None),
    call("create_table_req", CreateTableRequest(table=table("req"))),
    call("create_table_req", CreateTableRequest(table=table("req"))),
    call("create_table", view("vw")),
    get_table("d", "vw"),
    call("create_table", view("vw_ohne", viewExpandedText=None, viewOriginalText=None)),
    get_table("d", "vw_ohne"),
    call("get_all_tables", "d"),
)


def alter(name: str | None, new: Any, database_name: str | None = "d", **expectations: Any) -> Call:
    return call("alter_table", database_name, name, new, **expectations)


LOCATED = "{warehouse}/managed/d.db/"

ALTER = Scenario.of(
    "alter",
    call("create_database", database("d")),
    call("create_database", database("e")),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string",))),
    call("add_partition", partition("1")),
    alter("t", table("t", parameters={"n": "1"}, sd=descriptor(location=LOCATED + "t"))),
    get_table("d", "t"),
    alter("none", table("none"), is_message_compared=True),
    alter("t", table("t"), "none"),
    alter("t", table("t", sd=descriptor("a:string:first", "b:string", location=LOCATED + "t"))),
    alter("t", table("t", sd=descriptor("a:string:first", "b:string", "c:date", location=LOCATED + "t"))),
    get_table("d", "t"),
    alter("t", table("t", sd=descriptor("a:int:first", "b:string", location=LOCATED + "t")), is_message_compared=False),
    alter("t", table("t", sd=descriptor("x y:string", location=LOCATED + "t"))),
    alter("t", table("t", sd=descriptor("x:nonsense", location=LOCATED + "t"))),
    alter("t", table("a b", sd=descriptor(location=LOCATED + "t"))),
    alter("t", table("", sd=descriptor(location=LOCATED + "t"))),
    alter("t", table(None, sd=descriptor(location=LOCATED + "t"))),
    alter("t", table("t", sd=None)),
    alter("", table("t")),
    alter(None, table("t")),
    alter("t", table("t"), None),
    alter("t", table("t", keys=("k:string",), sd=descriptor(location=LOCATED + "t"))),
    alter("p", table("p", sd=descriptor(location=LOCATED + "p"))),
    alter("p", table("p", keys=("z:string",), sd=descriptor(location=LOCATED + "p"))),
    alter("p", table("p", keys=("k:int",), sd=descriptor(location=LOCATED + "p"))),
    get_table("d", "p"),
    alter("t", table("renamed", sd=descriptor("a:string:first", "b:string", "c:date", location=LOCATED + "t"))),
    get_table("d", "t"),
    get_table("d", "renamed"),
    alter(
        "renamed",
        table("p", sd=descriptor("a:string:first", "b:string", "c:date", location=LOCATED + "renamed")),
        is_message_compared=True,
    ),
    alter(
        "renamed", table("Upper", sd=descriptor("a:string:first", "b:string", "c:date", location=LOCATED + "renamed"))
    ),
    get_table("d", "upper"),
    alter(
        "upper",
        table("upper", dbName="e", sd=descriptor("a:string:first", "b:string", "c:date", location=LOCATED + "upper")),
    ),
    get_table("e", "upper"),
    alter(
        "upper",
        table("upper", dbName="none", sd=descriptor("a:string:first", "b:string", "c:date")),
        "e",
        is_message_compared=True,
    ),
    alter("p", table("q", keys=("k:string",), sd=descriptor(location=LOCATED + "p"))),
    call("get_partitions", "d", "q", -1),
    call(
        "alter_table_with_cascade",
        "d",
        "q",
        table("q", keys=("k:string",), sd=descriptor("a:int:first", "b:string", "c:int", location=LOCATED + "q")),
        True,
    ),
    call("get_partitions", "d", "q", -1),
    call(
        "alter_table_with_environment_context",
        "d",
        "q",
        table(
            "q", keys=("k:string",), sd=descriptor("a:int:first", "b:string", "c:int", "d:int", location=LOCATED + "q")
        ),
        EnvironmentContext(properties={}),
    ),
    call("get_partitions", "d", "q", -1),
    call(
        "alter_table_with_environment_context",
        "d",
        "q",
        table("q", keys=("k:string",), parameters={"v": "2"}, sd=descriptor(location=LOCATED + "q")),
        EnvironmentContext(properties={"expected_parameter_key": "v", "expected_parameter_value": "1"}),
        is_message_compared=True,
    ),
    call(
        "alter_table_req",
        AlterTableRequest(
            dbName="d",
            tableName="q",
            table=table("q", keys=("k:string",), parameters={"v": "3"}, sd=descriptor(location=LOCATED + "q")),
        ),
    ),
    get_table("d", "q"),
    call(
        "alter_table_req",
        AlterTableRequest(
            dbName="d",
            tableName="q",
            table=table("q", keys=("k:string",), parameters={"v": "4"}, sd=descriptor(location=LOCATED + "q")),
            expectedParameterKey="v",
            expectedParameterValue="2",
        ),
        is_message_compared=True,
    ),
    call(
        "alter_table_req",
        AlterTableRequest(catName="none", dbName="d", tableName="q", table=table("q", keys=("k:string",))),
    ),
    alter(
        "q",
        table(
            "q",
            keys=("k:string",),
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
            sd=descriptor(location=LOCATED + "q"),
        ),
    ),
    get_table("d", "q"),
    call("create_table", view("v")),
    alter("v", view("v", viewExpandedText="SELECT 2", parameters={"n": "2"})),
    get_table("d", "v"),
    alter("v", view("w")),
    get_table("d", "w"),
)

DROP = Scenario.of(
    "drop",
    call("create_database", database("d")),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string",))),
    call("add_partition", partition("1")),
    call("drop_table", "d", "none", True, is_message_compared=True),
    call("drop_table", "none", "t", True, is_message_compared=True),
    call("drop_table", None, "t", True),
    call("drop_table", "@hive#", "t", True),
    call("drop_table", "@hive#!", "t", True),
    call("drop_table", "d", None, True),
    call("drop_table", "d", "", True),
    call("drop_table", "D", "T", True),
    get_table("d", "t"),
    call("drop_table", "d", "t", True, is_message_compared=True),
    call("truncate_table", "d", "p", []),
    call("truncate_table", "d", "p", ["k=1"]),
    call("truncate_table", "d", "p", ["k=none"]),
    call("truncate_table", "d", "p", None),
    call("truncate_table", "d", "none", None),
    call("truncate_table", "none", "none", None),
    call("truncate_table", None, "p", None),
    call("truncate_table", "d", None, None),
    call("truncate_table_req", TruncateTableRequest(dbName="d", tableName="p", partNames=["k=1"])),
    call("truncate_table_req", TruncateTableRequest(dbName="d", tableName="none")),
    get_table("d", "p"),
    call("create_table", table("flat", parameters={"numRows": "5"})),
    [call("truncate_table", "d", "flat", names) for names in ([], ["k=1"])],
    call("truncate_table_req", TruncateTableRequest(dbName="d", tableName="flat", partNames=[])),
    get_table("d", "flat"),
    call("drop_table", "d", "flat", True),
    call("drop_table_with_environment_context", "d", "p", True, EnvironmentContext(properties={"ifPurge": "TRUE"})),
    call("create_table", table("t")),
    call("drop_table_req", DropTableRequest("hive", "d", "t", deleteData=True), is_answer_compared=False),
    call("drop_table_req", DropTableRequest("hive", "d", "t", deleteData=True), is_answer_compared=False),
    call("drop_table_req", DropTableRequest(catalogName="none", dbName="d", tableName="t"), is_answer_compared=False),
    call("create_table", view("v")),
    call("truncate_table", "d", "v", None),
    call("drop_table", "d", "v", True),
    call("create_table", table("x", tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})),
    call("truncate_table", "d", "x", None, differs=EXTERNAL_DATA),
    call("get_all_tables", "d"),
)


def _measured() -> Iterator[Call]:
    """Whether the table or the context says that files are not to be counted, and which of it is stored."""
    yield call("create_database", database("d"))
    words = ({}, {"DO_NOT_UPDATE_STATS": "true"}, {"DO_NOT_UPDATE_STATS": "false"})
    contexts = (*words, {"STATS_GENERATED": "TASK"}, {"DO_NOT_POPULATE_QUICK_STATS": "true"})
    for kind, made in (("t", table), ("p", partial(table, keys=("k:string",))), ("v", view)):
        for number, (word, context) in enumerate(product(words, contexts)):
            name, properties = f"{kind}{number}", EnvironmentContext(properties=context)
            located = {} if kind == "v" else {"sd": descriptor(location=LOCATED + name)}
            yield call("create_table_with_environment_context", made(name, parameters={**word}), properties)
            yield get_table("d", name)
            new = made(name, parameters={**word, "n": "1"}, **located)
            yield call("alter_table_with_environment_context", "d", name, new, properties)
            yield get_table("d", name)


MEASURED = Scenario.of("files counted", _measured())


def of_serde(name: str, library: str | None, *, differs: str = "", **parameters: str) -> list[Call]:
    """A table of this serde, and its columns, two without a comment."""
    cols = ("a:int:first", "b:string", "m:map<string,array<int>>")
    sd = descriptor(*cols, serdeInfo=SerDeInfo("s", library, {"field.delim": ",", **parameters}))
    return [
        call("create_table", table(name, sd=sd, keys=("k:string:key",))),
        call("get_fields", "d", name, differs=differs),
        call("get_schema", "D", name.upper(), differs=differs),
        call("get_fields_req", GetFieldsRequest("hive", "d", name), differs=differs),
        call("get_schema_req", GetSchemaRequest(dbName="d", tblName=name), differs=differs),
        call("get_fields_req", GetFieldsRequest("", "d", name), differs=EMPTY_CATALOG),
        call("get_schema_req", GetSchemaRequest("", "d", name), differs=EMPTY_CATALOG),
    ]


_AVRO = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
_AVRO_SCHEMA = (
    '{"type": "record", "name": "r", "fields": [{"name": "A", "type": "int", "doc": "d"},'
    ' {"name": "b", "type": ["null", "string"]}]}'
)
SERDES = Scenario.of(
    "serdes",
    call("create_database", database("d")),
    of_serde("avro", _AVRO),
    of_serde("avro_literal", _AVRO, **{"avro.schema.literal": _AVRO_SCHEMA}),
    of_serde("avro_none", _AVRO, **{"avro.schema.literal": "none", "columns.comments": "x"}),
    [
        step
        for name, library, differs in (
            ("parquet", "ql.io.parquet.serde.ParquetHiveSerDe", ""),
            ("orc", "ql.io.orc.OrcSerde", ""),
            ("columnar", "serde2.columnar.ColumnarSerDe", ""),
            ("binary", "serde2.columnar.LazyBinaryColumnarSerDe", ""),
            ("rows", "serde2.lazybinary.LazyBinarySerDe", ""),
            ("json", "serde2.JsonSerDe", SERDE_COMMENTS),
            ("csv", "serde2.OpenCSVSerde", ""),
            ("delimited", "serde2.MultiDelimitSerDe", SERDE_COMMENTS),
        )
        for step in of_serde(name, f"org.apache.hadoop.hive.{library}", differs=differs)
    ],
    of_serde("iceberg", "org.apache.iceberg.mr.hive.HiveIcebergSerDe"),
    of_serde("serdeless", None),
)

SCENARIOS = [READ, CREATE, ALTER, MEASURED, DROP, SERDES]
