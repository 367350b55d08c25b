"""Objects as clients send them back: with fields that a metastore returns and clients do not set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlterDatabaseRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateDatabaseRequest,
    DatabaseType,
    EnvironmentContext,
    FileMetadata,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    LongColumnStatsData,
    ObjectDictionary,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeGrantInfo,
)
from tests.differential.comparison import WAREHOUSE, Scenario, call
from tests.differential.objects import database, descriptor, partition, table
from tests.differential.scenarios.combined_fields import CAPABILITIES, WORLD


def _statistics(name: str, partition_name: str | None = None) -> ColumnStatistics:
    return ColumnStatistics(
        ColumnStatisticsDesc(partition_name is None, "d", name, partition_name, 1000000000, "hive"),
        [ColumnStatisticsObj("a", "int", ColumnStatisticsData(longStats=LongColumnStatsData(3, 4, 0, 2)))],
        True,
        "hive",
    )


_PRIVILEGES = PrincipalPrivilegeSet(
    {"u": [PrivilegeGrantInfo("SELECT", 1000000000, "g", PrincipalType.USER, True)]},
    {"g": [PrivilegeGrantInfo("INSERT", 1000000000, "g", PrincipalType.USER, False)]},
    {},
)
OF_TABLES: dict[str, tuple[Any, ...]] = {
    "accessType": (0, 1, 8),
    "catName": ("hive", "HIVE", "missing"),
    "dictionary": (ObjectDictionary({"k": [b"v"]}),),
    "fileMetadata": (FileMetadata(1, 1, [b"x"]),),
    "id": (12345,),
    "isStatsCompliant": (False, True),
    "ownerType": tuple(PrincipalType._VALUES_TO_NAMES),
    "privileges": (_PRIVILEGES, PrincipalPrivilegeSet({}, {}, {})),
    "requiredReadCapabilities": (["R"], []),
    "requiredWriteCapabilities": (["W"], []),
    "retention": (7,),
    "rewriteEnabled": (False, True),
    "temporary": (False, True),
    "txnId": (5,),
    "viewExpandedText": ("", "SELECT 1"),
    "viewOriginalText": ("", "SELECT 1"),
    "writeId": (0, 5),
}
OF_PARTITIONS: dict[str, tuple[Any, ...]] = {
    "catName": ("hive", "HIVE"),
    "colStats": (_statistics("acid", "day=2024-01-01/hour=1"),),
    "isStatsCompliant": (False, True),
    "privileges": (_PRIVILEGES,),
    "writeId": (0, 5),
}
OF_DATABASES: dict[str, tuple[Any, ...]] = {
    "catalogName": ("hive", "HIVE"),
    "connector_name": ("none",),
    "createTime": (7,),
    "ownerType": tuple(PrincipalType._VALUES_TO_NAMES),
    "privileges": (_PRIVILEGES,),
    "remote_dbname": ("other",),
    "type": (DatabaseType.NATIVE,),
}


def _alone(fields: dict[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    return ({name: value} for name, values in fields.items() for value in values)


READ = call("get_table_req", GetTableRequest("d", "flat", capabilities=CAPABILITIES[2], getColumnStats=True))
READ_NEW = call("get_table_req", GetTableRequest("d", "new", capabilities=CAPABILITIES[2], getColumnStats=True))
READ_PARTITION = call(
    "get_partitions_by_names_req", GetPartitionsByNamesRequest("d", "acid", ["day=2024-01-01/hour=1"], True)
)
DROP_NEW = call("drop_table", "d", "new", True, is_answer_compared=False)

ALTERED_TABLES = Scenario.of(
    "tables altered",
    WORLD,
    [
        step
        for fields in _alone(OF_TABLES | {"colStats": (_statistics("flat"),)})
        for step in (
            call("alter_table", "d", "flat", table("flat", **fields), is_answer_compared=False),
            READ,
            call(
                *("alter_table_with_environment_context", "d", "flat", table("flat", **fields)),
                EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}),
                is_answer_compared=False,
            ),
            READ,
            call("alter_table_with_cascade", "d", "flat", table("flat", **fields), True, is_answer_compared=False),
            READ,
        )
    ],
)
CREATED_TABLES = Scenario.of(
    "tables created",
    WORLD,
    [
        step
        for fields in _alone(OF_TABLES | {"colStats": (_statistics("new"),)})
        for step in (
            call("create_table", table("new", **fields), is_answer_compared=False),
            READ_NEW,
            DROP_NEW,
            call(
                *("create_table_with_environment_context", table("new", **fields), EnvironmentContext({"k": "v"})),
                is_answer_compared=False,
            ),
            READ_NEW,
            DROP_NEW,
            call(
                *("create_table_with_constraints", table("new", **fields), None, None, None, None, None, None),
                is_answer_compared=False,
            ),
            READ_NEW,
            DROP_NEW,
        )
    ],
)


def _stored(**fields: Any) -> Any:
    """The partition with these fields."""
    location = f"{WAREHOUSE}/managed/d.db/acid/day=2024-01-01/hour=1"
    return partition("2024-01-01", "1", of="acid", sd=descriptor(location=location), **fields)


def _of_added(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"colStats": _statistics("acid", "day=2025/hour=1")} if "colStats" in fields else fields


def _added(**fields: Any) -> Any:
    return partition("2025", "1", of="acid", **fields)


PARTITIONS = Scenario.of(
    "partitions",
    WORLD,
    [
        step
        for fields in _alone(OF_PARTITIONS)
        for step in (
            call("alter_partition", "d", "acid", _stored(**fields), is_answer_compared=False),
            READ_PARTITION,
            call(
                *("alter_partition_with_environment_context", "d", "acid", _stored(**fields)),
                EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}),
                is_answer_compared=False,
            ),
            READ_PARTITION,
            call("add_partition", _added(**_of_added(fields))),
            call("drop_partition", "d", "acid", ["2025", "1"], True, is_answer_compared=False),
            call(
                *("add_partition_with_environment_context", _added(**_of_added(fields))),
                EnvironmentContext({"k": "v"}),
            ),
            call("drop_partition", "d", "acid", ["2025", "1"], True, is_answer_compared=False),
        )
    ],
)
DATABASES = Scenario.of(
    "databases",
    call("create_database", database("n")),
    [
        step
        for fields in _alone(OF_DATABASES)
        for step in (
            call("alter_database", "n", database("n", **fields)),
            call("get_database", "n"),
            call("alter_database_req", AlterDatabaseRequest("n", database("n", **fields)), is_answer_compared=False),
            call("get_database", "n"),
        )
    ],
    [
        step
        for request in (
            CreateDatabaseRequest("p", privileges=_PRIVILEGES),
            CreateDatabaseRequest("p", ownerName="o", ownerType=PrincipalType.USER),
        )
        for step in (
            call("create_database_req", request, is_answer_compared=False),
            call("get_database", "p"),
            call("drop_database", "p", True, False, is_answer_compared=False),
        )
    ],
)

SCENARIOS = (ALTERED_TABLES, CREATED_TABLES, PARTITIONS, DATABASES)
