"""One write of each kind, its expected row in the log, and what a reader should get from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.events.rows import EventRow
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.scope import Scope, scope_of_partitions, scope_of_tables
from hms_cache.notifications.tjson import write_struct
from hms_cache.thrift_gen.hive_metastore import ttypes

# Everything that may be a problem for JSON: quotes, a backslash, control characters, two- to four-byte characters, a
# slash.
AWKWARD = 'a"b\\c\x01\x1f\t\né/ß€\u2028😀'

T = TableName("hive", "d", "t")
RENAMED = TableName("hive", "d2", "t2")


def storage_descriptor(location: str = "file:/w/d/t") -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("c", "int", AWKWARD), ttypes.FieldSchema("e", "double", None)],
        location=location,
        inputFormat="in",
        outputFormat="out",
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo("s", "lib", {"serialization.format": "\x01"}),
        bucketCols=["c"],
        sortCols=[ttypes.Order("c", 1)],
        parameters={},
        skewedInfo=ttypes.SkewedInfo(["c"], [["1"]], {("1",): "file:/w/skewed"}),
        storedAsSubDirectories=True,
    )


def table(name: str = "t", database: str = "d", **changes: object) -> ttypes.Table:
    fields: dict[str, object] = {
        "tableName": name,
        "dbName": database,
        "owner": "o",
        "createTime": 1700000000,
        "lastAccessTime": 0,
        "retention": 0,
        "sd": storage_descriptor(),
        "partitionKeys": [ttypes.FieldSchema("p", "int", None), ttypes.FieldSchema("a", "string", None)],
        "parameters": {"k": AWKWARD, "transactional": "true"},
        "tableType": "MANAGED_TABLE",
        "catName": "hive",
        "ownerType": ttypes.PrincipalType.USER,
        "writeId": 1 << 40,
    }
    return ttypes.Table(**{**fields, **changes})


def partition(*values: str, write_id: int = -1) -> ttypes.Partition:
    return ttypes.Partition(
        values=list(values),
        dbName="d",
        tableName="t",
        createTime=1,
        lastAccessTime=2,
        sd=storage_descriptor("file:/w/d/t/p"),
        parameters={"numRows": "3"},
        catName="hive",
        writeId=write_id,
    )


def database(name: str = "d", **changes: object) -> ttypes.Database:
    return ttypes.Database(
        **{
            "name": name,
            "description": AWKWARD,
            "locationUri": "file:/w/d",
            "parameters": {"x": "y"},
            "catalogName": "hive",
            "ownerType": ttypes.PrincipalType.ROLE,
            **changes,
        }
    )


def function() -> ttypes.Function:
    return ttypes.Function(
        functionName="f",
        dbName="d",
        className="org.example.F",
        ownerName="o",
        ownerType=ttypes.PrincipalType.USER,
        createTime=5,
        functionType=ttypes.FunctionType.JAVA,
        resourceUris=[ttypes.ResourceUri(ttypes.ResourceType.JAR, "file:/f.jar")],
        catName="hive",
    )


def acid_write(builder: MessageBuilder) -> EventRow:
    """Hive logs it only in TXN_WRITE_NOTIFICATION_LOG; hms-cache reads it, and never writes it."""
    fields = {
        "txnid": 3,
        "writeId": 1,
        "database": "d",
        "table": "t",
        "partition": "p=1/a=x",
        "tableObjJson": write_struct(table()),
        "partitionObjJson": write_struct(partition("1", "x")),
        "files": ["f"],
    }
    return builder._table_row(EventType.ACID_WRITE_EVENT, table(), fields)


def statistics(is_table: bool = True) -> ttypes.ColumnStatistics:
    numbers = ttypes.LongColumnStatsData(lowValue=-5, highValue=1 << 60, numNulls=1, numDVs=2, bitVectors=b"\x01\xff")
    floats = ttypes.DoubleColumnStatsData(lowValue=float("-inf"), highValue=1.5e-7, numNulls=0, numDVs=3)
    return ttypes.ColumnStatistics(
        statsDesc=ttypes.ColumnStatisticsDesc(is_table, "d", "t", None if is_table else "p=1/a=x", catName="hive"),
        statsObj=[
            ttypes.ColumnStatisticsObj("c", "int", ttypes.ColumnStatisticsData(longStats=numbers)),
            ttypes.ColumnStatisticsObj("e", "double", ttypes.ColumnStatisticsData(doubleStats=floats)),
        ],
        engine="hive",
    )


def primary_key() -> ttypes.SQLPrimaryKey:
    return ttypes.SQLPrimaryKey("d", "t", "c", 1, "pk", True, False, True, catName="hive")


def foreign_key() -> ttypes.SQLForeignKey:
    return ttypes.SQLForeignKey(
        "d", "t", "c", "d2", "child", "c2", 1, 0, 0, "fk", "pk", True, False, True, catName="hive"
    )


def unique_constraint() -> ttypes.SQLUniqueConstraint:
    return ttypes.SQLUniqueConstraint("hive", "d", "t", "c", 1, "u", True, False, True)


def not_null_constraint() -> ttypes.SQLNotNullConstraint:
    return ttypes.SQLNotNullConstraint("hive", "d", "t", "c", "n", True, False, True)


def default_constraint() -> ttypes.SQLDefaultConstraint:
    return ttypes.SQLDefaultConstraint("hive", "d", "t", "c", "'x'", "df", True, False, True)


def check_constraint() -> ttypes.SQLCheckConstraint:
    return ttypes.SQLCheckConstraint("hive", "d", "t", "c", "c > 1", "ck", True, False, True)


@dataclass(frozen=True)
class Sample:
    """``build`` creates the row; ``event_class``, ``scope`` and ``details`` are what a reader should get."""

    name: str
    build: Callable[[MessageBuilder], ev.EventRow]
    event_class: type[ev.Event]
    scope: Scope
    details: dict[str, object]


def _partitions(*values: tuple[str, ...]) -> Scope:
    return scope_of_partitions(T, values)


ONE_TABLE = scope_of_tables([T])
ONE_TABLE_AND_KEYS = scope_of_tables([T], foreign_keys=True)
ONE_DATABASE = Scope(databases=frozenset([DatabaseName("hive", "d")]))

SAMPLES: list[Sample] = [
    Sample("create database", lambda b: b.build_create_database(database()), ev.DatabaseCreated, ONE_DATABASE, {}),
    Sample(
        "alter database",
        lambda b: b.build_alter_database(database(), database(description="after")),
        ev.DatabaseAltered,
        ONE_DATABASE,
        {},
    ),
    Sample(
        "drop database",
        lambda b: b.build_drop_database(database()),
        ev.DatabaseDropped,
        Scope(whole_databases=frozenset([DatabaseName("hive", "d")]), foreign_keys=True),
        {},
    ),
    Sample(
        "create table",
        lambda b: b.build_create_table(table(), ["f1", AWKWARD]),
        ev.TableCreated,
        ONE_TABLE,
        {"files": ("f1", AWKWARD), "table_type": "MANAGED_TABLE"},
    ),
    Sample(
        "alter table",
        lambda b: b.build_alter_table(table(), table(owner="p"), is_truncate=True, write_id=7),
        ev.TableAltered,
        ONE_TABLE_AND_KEYS,
        {"is_rename": False, "is_truncate": True, "write_id": 7},
    ),
    Sample(
        "rename table",
        lambda b: b.build_alter_table(table(), table("t2", "d2")),
        ev.TableAltered,
        scope_of_tables([T, RENAMED], foreign_keys=True),
        {"is_rename": True, "is_truncate": False, "write_id": -1, "old_name": T, "new_name": RENAMED},
    ),
    Sample("drop table", lambda b: b.build_drop_table(table()), ev.TableDropped, ONE_TABLE_AND_KEYS, {}),
    Sample(
        "add partitions",
        lambda b: next(
            b.build_add_partitions(
                table(),
                [partition("1", AWKWARD), partition("2", "")],
                {("2", ""): ev.PartitionFiles("p=2/a=", ("f",))},
            )
        ),
        ev.PartitionsAdded,
        _partitions(("1", AWKWARD), ("2", "")),
        {"files": (ev.PartitionFiles("p=2/a=", ("f",)),)},
    ),
    Sample(
        "alter partition",
        lambda b: next(b.build_alter_partition_each(table(), [(partition("1", "x"), partition("1", "x"))], write_id=3)),
        ev.PartitionAltered,
        _partitions(("1", "x")),
        {"partitions": (("1", "x"),), "write_id": 3, "is_truncate": False},
    ),
    Sample(
        "rename partition",
        lambda b: next(b.build_alter_partition_each(table(), [(partition("1", "x"), partition("9", "y"))])),
        ev.PartitionAltered,
        _partitions(("1", "x"), ("9", "y")),
        {},
    ),
    Sample(
        "drop partitions",
        lambda b: next(b.build_drop_partitions(table(), [("1", "x"), ("2", AWKWARD)])),
        ev.PartitionsDropped,
        _partitions(("1", "x"), ("2", AWKWARD)),
        {},
    ),
    Sample(
        "insert into a table",
        lambda b: b.build_insert(table(), is_replace=True, files=["f"]),
        ev.DataInserted,
        ONE_TABLE,
        {"is_replace": True, "files": ("f",), "partitions": None},
    ),
    Sample(
        "insert into a partition",
        lambda b: b.build_insert(table(), partition("1", "x")),
        ev.DataInserted,
        _partitions(("1", "x")),
        {"is_replace": False},
    ),
    Sample("reload a table", lambda b: b.build_reload(table()), ev.TableReloaded, ONE_TABLE, {"is_refresh": True}),
    Sample(
        "reload a partition",
        lambda b: b.build_reload(table(), partition("1", "x"), is_refresh=False),
        ev.TableReloaded,
        _partitions(("1", "x")),
        {"is_refresh": False},
    ),
    Sample(
        "create function",
        lambda b: b.build_create_function(function()),
        ev.FunctionCreated,
        Scope(functions=frozenset([FunctionName("hive", "d", "f")])),
        {},
    ),
    Sample(
        "drop function",
        lambda b: b.build_drop_function(function()),
        ev.FunctionDropped,
        Scope(functions=frozenset([FunctionName("hive", "d", "f")])),
        {"function_name": "f"},
    ),
    Sample(
        "add primary key",
        lambda b: b.build_add_constraints(table(), [primary_key()]),
        ev.PrimaryKeyAdded,
        ONE_TABLE_AND_KEYS,
        {},
    ),
    Sample(
        "add foreign key",
        lambda b: b.build_add_constraints(table(), [foreign_key()]),
        ev.ForeignKeyAdded,
        scope_of_tables([T, TableName("hive", "d2", "child")]),
        {},
    ),
    Sample(
        "add unique constraint",
        lambda b: b.build_add_constraints(table(), [unique_constraint()]),
        ev.UniqueConstraintAdded,
        ONE_TABLE_AND_KEYS,
        {},
    ),
    Sample(
        "add not-null constraint",
        lambda b: b.build_add_constraints(table(), [not_null_constraint()]),
        ev.NotNullConstraintAdded,
        ONE_TABLE,
        {},
    ),
    Sample(
        "add default constraint",
        lambda b: b.build_add_constraints(table(), [default_constraint()]),
        ev.DefaultConstraintAdded,
        ONE_TABLE,
        {},
    ),
    Sample(
        "add check constraint",
        lambda b: b.build_add_constraints(table(), [check_constraint()]),
        ev.CheckConstraintAdded,
        ONE_TABLE,
        {},
    ),
    Sample(
        "drop constraint",
        lambda b: b.build_drop_constraint(table(), "pk"),
        ev.ConstraintDropped,
        ONE_TABLE_AND_KEYS,
        {"constraint_name": "pk"},
    ),
    Sample(
        "open transactions",
        lambda b: b.build_open_transactions(3, 5),
        ev.TransactionsOpened,
        Scope(transactions=range(3, 6)),
        {},
    ),
    Sample(
        "commit transaction",
        lambda b: b.build_commit_transaction(3),
        ev.TransactionCommitted,
        Scope(transactions=frozenset([3])),
        {"transaction_id": 3, "tables": None},
    ),
    Sample(
        "abort transaction",
        lambda b: b.build_abort_transaction(3, ["d", "d2"]),
        ev.TransactionAborted,
        Scope(transactions=frozenset([3])),
        {"databases": ("d", "d2")},
    ),
    Sample(
        "allocate write ids",
        lambda b: b.build_allocate_write_ids("d", "t", [(3, 1), (4, 2)]),
        ev.WriteIdsAllocated,
        Scope(tables=frozenset([T]), transactions=frozenset([3, 4])),
        {"write_ids": (ev.TransactionWriteId(3, 1), ev.TransactionWriteId(4, 2))},
    ),
    Sample(
        "commit compaction of a table",
        lambda b: b.build_commit_compaction(7, 9, "MINOR", "d", "t"),
        ev.CompactionCommitted,
        ONE_TABLE,
        {"transaction_id": 7, "compaction_id": 9, "compaction_type": "MINOR"},
    ),
    Sample(
        "commit compaction of a partition",
        lambda b: b.build_commit_compaction(7, 9, "MAJOR", "d", "t", "p=1/a=x%2Fy"),
        ev.CompactionCommitted,
        _partitions(("1", "x/y")),
        {},
    ),
    Sample(
        "update statistics of a table",
        lambda b: b.build_update_table_column_statistics(table(), statistics(), write_id=4, parameters={"k": "v"}),
        ev.TableColumnStatisticsUpdated,
        ONE_TABLE,
        {"write_id": 4, "parameters": {"k": "v"}},
    ),
    Sample(
        "delete statistics of a table",
        lambda b: b.build_delete_table_column_statistics(table(), "c"),
        ev.TableColumnStatisticsDeleted,
        ONE_TABLE,
        {"column": "c"},
    ),
    Sample(
        "update statistics of a partition",
        lambda b: next(
            b.build_update_partition_column_statistics_each(
                table(), [(["1", "x"], statistics(False), None)], write_id=4
            )
        ),
        ev.PartitionColumnStatisticsUpdated,
        _partitions(("1", "x")),
        {"write_id": 4, "parameters": None},
    ),
    Sample(
        "delete statistics of a partition",
        lambda b: b.build_delete_partition_column_statistics(table(), "p=1/a=x", ["1", "x"], None),
        ev.PartitionColumnStatisticsDeleted,
        _partitions(("1", "x")),
        {"column": None},
    ),
]

# Types that Hive 4.0's server does not read from a log, or cannot build.
OWN_SAMPLES: list[Sample] = [
    Sample(
        "alter partitions in one event",
        lambda b: next(
            b.build_alter_partitions(table(), [partition("1", "x", write_id=3), partition("2", "y", write_id=3)])
        ),
        ev.PartitionsAltered,
        _partitions(("1", "x"), ("2", "y")),
        {"write_id": 3},
    ),
    Sample(
        "create catalog",
        lambda b: b.build_create_catalog(ttypes.Catalog("c", "text", "file:/c")),
        ev.CatalogCreated,
        Scope(catalogs=frozenset(["c"])),
        {},
    ),
    Sample(
        "alter catalog",
        lambda b: b.build_alter_catalog(ttypes.Catalog("c", "1", "file:/c"), ttypes.Catalog("c", "2", "file:/c")),
        ev.CatalogAltered,
        Scope(catalogs=frozenset(["c"])),
        {},
    ),
    Sample(
        "drop catalog",
        lambda b: b.build_drop_catalog(ttypes.Catalog("c", "text", "file:/c")),
        ev.CatalogDropped,
        Scope(whole_catalogs=frozenset(["c"]), foreign_keys=True),
        {},
    ),
    Sample(
        "write in a transaction",
        acid_write,
        ev.AcidDataWritten,
        _partitions(("1", "x")),
        {"transaction_id": 3, "write_id": 1, "files": ("f",)},
    ),
]
