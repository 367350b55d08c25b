"""Writes with fields that few clients send, and with those that other scenarios omit: alone and in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_cache.metadata.partition_names import escape_path_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AppendPartitionsRequest,
    CreateDatabaseRequest,
    CreateTableRequest,
    DatabaseType,
    DropDatabaseRequest,
    DropPartitionRequest,
    DropTableRequest,
    EnvironmentContext,
    FireEventRequest,
    FireEventRequestData,
    GetDatabaseRequest,
    GetTableRequest,
    InsertEventRequestData,
    PrincipalType,
)
from tests.differential.comparison import WAREHOUSE, Call, Scenario, call
from tests.differential.objects import database, descriptor, partition, table
from tests.differential.scenarios.combined_fields import (
    CAPABILITIES,
    CLIENT,
    WORLD,
    combined,
    pairs,
)

CONTEXTS = (EnvironmentContext(), EnvironmentContext({"ifPurge": "TRUE"}), EnvironmentContext({"skipTrash": "true"}))


def each(made: Sequence[Call], *after: Call) -> list[Call]:
    """Each with what shows its effect, and reverts it."""
    return [one for step in made for one in (step, *after)]


DATABASES = Scenario.of(
    "databases",
    each(
        combined(
            *("create_database_req", CreateDatabaseRequest, {"databaseName": "New"}),
            {
                "description": ("", "text"),
                "locationUri": ("", f"{WAREHOUSE}/external/elsewhere", f"{WAREHOUSE}/managed/new.db/"),
                "managedLocationUri": (f"{WAREHOUSE}/managed/elsewhere",),
                "parameters": ({}, {"k": "v"}),
                "ownerName": ("", "owner"),
                "ownerType": (PrincipalType.ROLE, PrincipalType.GROUP),
                "catalogName": ("hive", "missing"),
                "createTime": (7,),
                "type": (DatabaseType.NATIVE,),
                "dataConnectorName": ("none",),
                "remote_dbname": ("other",),
            },
            is_answer_compared=False,
        ),
        call("get_database_req", GetDatabaseRequest("new")),
        call("drop_database_req", DropDatabaseRequest("NEW", "hive", False, True, False), is_answer_compared=False),
    ),
    each(
        [
            call("create_database", database("n", **fields))
            for fields in pairs(
                {
                    "ownerName": ("", "owner"),
                    "ownerType": tuple(PrincipalType._VALUES_TO_NAMES),
                    "catalogName": ("hive", "HIVE"),
                    "locationUri": (f"{WAREHOUSE}/external/at",),
                    "managedLocationUri": (f"{WAREHOUSE}/managed/at",),
                    "createTime": (7,),
                }
            )
        ],
        call("get_database", "n"),
        *(
            call("alter_database", "n", database("n", description="", **fields))
            for fields in (
                {"ownerName": "another", "ownerType": PrincipalType.ROLE},
                {"ownerName": "another"},
                {"locationUri": f"{WAREHOUSE}/external/at"},
            )
        ),
        call("get_database", "n"),
        call("drop_database", "n", True, False),
    ),
    # The options of a drop.
    [
        step
        for fields in pairs(
            {
                "catalogName": ("HIVE", "missing"),
                "ignoreUnknownDb": (True,),
                "deleteData": (True,),
                "cascade": (True,),
                "deleteManagedDir": (False,),
                "softDelete": (True,),
                "txnId": (5,),
            }
        )
        for step in (
            call("create_database", database("n"), is_answer_compared=False),
            call("create_table", table("t", dbName="n"), is_answer_compared=False),
            call(
                "drop_database_req",
                DropDatabaseRequest(
                    **{
                        "name": "n",
                        "catalogName": "hive",
                        "ignoreUnknownDb": False,
                        "deleteData": False,
                        "cascade": False,
                        **fields,
                    }
                ),
                is_answer_compared=False,
            ),
            call("get_all_tables", "n"),
        )
    ],
)

TRANSACTIONAL = {"transactional": "true", "transactional_properties": "insert_only"}
READ_NEW = call("get_table_req", GetTableRequest("d", "new", capabilities=CAPABILITIES[2], getColumnStats=True))


def _dropped(options: dict[str, Any]) -> Call:
    """4.0.1 has the fields in the arguments of another method."""
    catalog = options.get("catalogName")
    database_name = f"@{catalog}#d" if catalog else "d"
    spelled = database_name, "new", options.get("deleteData", False), options.get("envContext")
    return call(
        *("drop_table_req", DropTableRequest(**{"dbName": "d", "tableName": "new", **options})),
        java_spelling=("drop_table_with_environment_context", spelled, lambda answer: answer),
        is_answer_compared=False,
    )


def _new(**fields: Any) -> Any:
    return table("new", **fields)


NEW_TABLES = {
    "managed": {},
    "transactional": {"parameters": TRANSACTIONAL},
    "external": {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}},
    "external by parameter": {"parameters": {"EXTERNAL": "TRUE"}},
    "external by type": {"tableType": "EXTERNAL_TABLE"},
    "partitioned": {"keys": ("day:string",)},
    "written": {"parameters": TRANSACTIONAL, "writeId": 3},
    "owned by a role": {"ownerType": PrincipalType.ROLE},
    "of nobody": {"owner": None},
    "of another catalog": {"catName": "missing"},
    "of the catalog": {"catName": "HIVE"},
    "with statistics": {"parameters": {"numRows": "5", "totalSize": "9", "STATS_GENERATED": "TASK"}},
    "temporary": {"temporary": True},
    "with capabilities": {"requiredReadCapabilities": ["R"], "requiredWriteCapabilities": ["W"], "accessType": 8},
}

TABLES = [
    Scenario.of(
        f"tables created and dropped: {kind}",
        WORLD,
        each(
            combined(
                *("create_table_req", CreateTableRequest, {"table": _new(**fields)}),
                {
                    "envContext": (
                        EnvironmentContext(),
                        EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}),
                        EnvironmentContext({"STATS_GENERATED": "TASK"}),
                    ),
                    **CLIENT,
                },
                is_answer_compared=False,
            ),
            READ_NEW,
            call("drop_table", "d", "new", True, is_answer_compared=False),
        ),
        [
            step
            for options in pairs(
                {
                    "catalogName": ("hive", "missing"),
                    "deleteData": (False, True),
                    "envContext": CONTEXTS,
                    "dropPartitions": (False, True),
                }
            )
            for step in (
                call("create_table", _new(**fields), is_answer_compared=False),
                _dropped(options),
                READ_NEW,
            )
        ],
        call("drop_table", "d", "new", True, is_answer_compared=False),
    )
    for kind, fields in NEW_TABLES.items()
]

ADDED = [partition("2025", "1", of="acid")]
NAMES = call("get_partition_names", "d", "acid", -1, is_ordered=False)

PARTITIONS = Scenario.of(
    "partitions added and dropped",
    WORLD,
    each(
        combined(
            *(
                "add_partitions_req",
                AddPartitionsRequest,
                {"dbName": "d", "tblName": "acid", "parts": ADDED, "ifNotExists": True},
            ),
            {"environmentContext": CONTEXTS, "catName": ("hive",), "needResult": (False,)},
            is_answer_compared=False,
        ),
        NAMES,
        call("drop_partition", "d", "acid", ["2025", "1"], True, is_answer_compared=False),
    ),
    each(
        combined(
            *("append_partition_req", AppendPartitionsRequest, {"dbName": "d", "tableName": "acid"}),
            {
                "catalogName": ("hive", "HIVE", "missing"),
                "name": ("", "day=2025/hour=1", "DAY=2025/HOUR=1", "hour=1/day=2025", "day=2025"),
                "partVals": ([], ["2025", "1"], ["2025"], ["2025", ""]),
                "environmentContext": (EnvironmentContext({"k": "v"}),),
            },
        ),
        NAMES,
        call("drop_partition", "d", "acid", ["2025", "1"], True, is_answer_compared=False),
    ),
    [
        step
        for fields in pairs(
            {
                "catName": ("hive", "missing"),
                "partVals": (["2025", "1"], ["2025"], []),
                "deleteData": (False, True),
                "environmentContext": CONTEXTS,
            }
        )
        for step in (
            call("append_partition", "d", "acid", ["2025", "1"], is_answer_compared=False),
            call(
                "drop_partition_req",
                DropPartitionRequest(**{"catName": "hive", "dbName": "d", "tblName": "acid", **fields}),
            ),
            NAMES,
            call("drop_partition", "d", "acid", ["2025", "1"], True, is_answer_compared=False),
        )
    ],
    [
        step
        for context in (*CONTEXTS, EnvironmentContext({"DO_NOT_UPDATE_STATS": "true", "k": "v"}))
        for step in (
            call("append_partition_by_name_with_environment_context", "d", "acid", "day=2026/hour=1", context),
            call("drop_partition_by_name_with_environment_context", "d", "acid", "day=2026/hour=1", True, context),
            NAMES,
        )
    ],
)

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
ODD = (
    "a/b", "a=b", "a%b", "a b", " a", "a ", "a:b", "a#b", "a'b", 'a"b', "a\\b", "a{b}", "[a]", "a*b", "a?b", "a^b",
    "\u00e9", "A", "", "__HIVE_DEFAULT_PARTITION__", "\x01", "\t", "a\nb", "%41", "a%2Fb",
    "1970-01-01 00:00:00",
    "x" * 200,
)  # fmt: skip


def _quoted(value: str) -> str:
    return f"'{value}!'" if '"' in value else f'"{value}!"'


def _renamed(value: str) -> Any:
    location = f"{WAREHOUSE}/managed/d.db/odd/v={escape_path_name(value) if value else DEFAULT_PARTITION}"
    return partition(f"{value}!", of="odd", sd=descriptor(location=location))


ODD_NAMES = Scenario.of(
    "partitions of odd names",
    call("create_database", database("d")),
    call("create_table", table("odd", keys=("v:string",))),
    [
        step
        for value in ODD
        for step in (
            call("append_partition", "d", "odd", [value]),
            call("get_partition", "d", "odd", [value]),
            call("get_partition_names_ps", "d", "odd", [value], -1),
            call("rename_partition", "d", "odd", [value], _renamed(value)),
            call("get_partition", "d", "odd", [f"{value}!"]),
            call("get_partition_names", "d", "odd", -1, is_ordered=False),
            call("get_partitions_by_filter", "d", "odd", f"v = {_quoted(value)}", -1),
            call("drop_partition", "d", "odd", [f"{value}!"], True),
            call("append_partition_by_name", "d", "odd", f"v={value}"),
            call("partition_name_to_vals", f"v={value}"),
            call("partition_name_to_spec", f"v={value}"),
            call("get_partition_by_name", "d", "odd", f"v={value}"),
            call("get_partitions_by_names", "d", "odd", [f"v={value}"], is_ordered=False),
            call("drop_partition_by_name", "d", "odd", f"v={value}", True),
            call("get_partition_names", "d", "odd", -1, is_ordered=False),
        )
    ],
)

EVENTS = Scenario.of(
    "events fired",
    WORLD,
    [
        call(
            "fire_listener_event",
            FireEventRequest(
                **{
                    "successful": True,
                    "data": FireEventRequestData(insertData=InsertEventRequestData(filesAdded=["f"])),
                    "dbName": "d",
                    "tableName": "acid",
                    **fields,
                }
            ),
            is_answer_compared=False,
        )
        for fields in pairs(
            {
                "catName": ("hive", "HIVE", "missing"),
                "tableName": ("flat", "ACID", "missing"),
                "dbName": ("D", "missing"),
                "partitionVals": ([], ["2024-01-01", "1"], ["2024-01-01", "9"]),
                "data": tuple(
                    FireEventRequestData(insertData=InsertEventRequestData(**insert))
                    for insert in pairs(
                        {
                            "replace": (True,),
                            "filesAdded": ([], ["a", "b"]),
                            "filesAddedChecksum": (["1", "2"],),
                            "subDirectoryList": (["x", "y"],),
                        }
                    )
                    if "filesAdded" in insert
                ),
            }
        )
    ],
)

SCENARIOS = (DATABASES, *TABLES, PARTITIONS, ODD_NAMES, EVENTS)
