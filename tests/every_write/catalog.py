"""The catalog to which each request is sent: one object of each kind, and what requests must name of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, create_database, partition, table
from tests.txn.client import TxnClient

DATABASE, OTHER_DATABASE = "d", "e"
FLAT, PARTITIONED, SOURCE, ACID, VIEW = "flat", "parts", "source", "acid", "mv"
TABLES = (FLAT, PARTITIONED, SOURCE, ACID, VIEW)
MADE = "made"
"""The name of what requests create."""

KEYS = (("p", "string"),)
POLICY, SOURCE_TXNS = "policy", [901, 902, 903]


@dataclass
class Facts:
    """The contents of the catalog, for requests; read once, never changed."""

    databases: dict[str, ttypes.Database] = field(default_factory=dict)
    tables: dict[str, ttypes.Table] = field(default_factory=dict)
    partitions: dict[str, ttypes.Partition] = field(default_factory=dict)
    open_txns: list[int] = field(default_factory=list)
    """Open; each has a write id on `ACID`, from 3 on."""
    write_ids: list[int] = field(default_factory=list)
    replicated_txns: list[int] = field(default_factory=list)
    lock_id: int = 0
    compaction_id: int = 0

    @property
    def valid_write_ids(self) -> str:
        """A list that includes the two committed writes."""
        return f"{DATABASE}.{ACID}:2:9223372036854775807::"

    def table(self, name: str) -> ttypes.Table:
        return copy.deepcopy(self.tables[name])

    def partition(self, name: str) -> ttypes.Partition:
        return copy.deepcopy(self.partitions[name])


def statistics(
    table_name: str, partition_name: str | None = None, column: str = "a", maximum: int = 9
) -> ttypes.ColumnStatistics:
    """Statistics of one column."""
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=maximum, numNulls=0, numDVs=3)
    return ttypes.ColumnStatistics(
        statsDesc=ttypes.ColumnStatisticsDesc(
            isTblLevel=partition_name is None, dbName=DATABASE, tableName=table_name, partName=partition_name
        ),
        statsObj=[ttypes.ColumnStatisticsObj(column, "bigint", ttypes.ColumnStatisticsData(longStats=numbers))],
        engine="hive",
    )


def function(name: str) -> ttypes.Function:
    """A function."""
    return ttypes.Function(
        functionName=name,
        dbName=DATABASE,
        className="c",
        ownerName="o",
        ownerType=ttypes.PrincipalType.USER,
        createTime=1,
        functionType=ttypes.FunctionType.JAVA,
        resourceUris=[ttypes.ResourceUri(ttypes.ResourceType.JAR, "file:/j.jar")],
        catName=CATALOG,
    )


def fill(store: MetadataStore, client: TxnClient) -> Facts:
    """Creates the catalog."""
    facts = Facts()
    for name in (DATABASE, OTHER_DATABASE):
        create_database(store, name, owner="x")
    for name in (FLAT, PARTITIONED, SOURCE, ACID):
        keys = () if name == FLAT else KEYS
        made = table(DATABASE, name, keys, comment="c", **({"transactional": "true"} if name == ACID else {}))
        if name == ACID:
            made.sd.inputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
            made.sd.outputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
        for column in made.sd.cols:
            column.type = "bigint"
        store.writes.tables.create_table(made)
        if keys:
            values = ("8", "9") if name == SOURCE else ("1", "2", "3")
            stored = store.reads.tables.get_table(TableName(CATALOG, DATABASE, name))
            store.writes.partitions.add_partitions(
                TableName(CATALOG, DATABASE, name), [partition(stored, (value,)) for value in values]
            )
            store.writes.statistics.update_partition_column_statistics(
                [statistics(name, f"p={value}") for value in values[:2]]
            )
        else:
            store.writes.statistics.update_table_column_statistics(statistics(name))
    view = table(DATABASE, VIEW)
    view.tableType, view.viewOriginalText, view.viewExpandedText = "MATERIALIZED_VIEW", "select 1", "select 1"
    view.creationMetadata = ttypes.CreationMetadata(CATALOG, DATABASE, VIEW, {f"{DATABASE}.{SOURCE}"})
    store.writes.tables.create_table(view)
    store.writes.functions.create_function(function("f"))
    common = {"table_db": DATABASE, "enable_cstr": True, "validate_cstr": False, "rely_cstr": True, "catName": CATALOG}
    store.writes.constraints.add_constraints(
        ttypes.SQLAllTableConstraints(
            primaryKeys=[
                ttypes.SQLPrimaryKey(table_name=PARTITIONED, column_name="a", key_seq=1, pk_name="pk", **common)
            ]
        )
    )
    store.writes.constraints.add_constraints(
        ttypes.SQLAllTableConstraints(
            notNullConstraints=[ttypes.SQLNotNullConstraint(table_name=FLAT, column_name="a", nn_name="nn", **common)]
        )
    )
    for _ in range(2):
        txn = client.open()
        client.allocate([txn], ACID, DATABASE)
        client.commit(txn)
    facts.open_txns = client.open_many(3)
    facts.write_ids = list(client.allocate(facts.open_txns, ACID, DATABASE).values())
    request = ttypes.OpenTxnRequest(
        num_txns=3,
        user="u",
        hostname="h",
        agentInfo="a",
        replPolicy=POLICY,
        replSrcTxnIds=SOURCE_TXNS,
        txn_type=ttypes.TxnType.REPL_CREATED,
    )
    facts.replicated_txns = client.store.open_txns(request).txn_ids
    client.allocate(facts.replicated_txns, ACID, DATABASE)
    component = ttypes.LockComponent(
        type=ttypes.LockType.SHARED_READ, level=ttypes.LockLevel.TABLE, dbname=DATABASE, tablename=FLAT
    )
    facts.lock_id = client.store.lock(ttypes.LockRequest(component=[component], user="u", hostname="h")).lockid
    facts.compaction_id = client.store.compact2(
        ttypes.CompactionRequest(dbname=DATABASE, tablename=ACID, partitionname="p=1", type=ttypes.CompactionType.MAJOR)
    ).id
    facts.databases = {one.name: one for one in store.reads.databases.get_databases(CATALOG)}
    facts.tables = {name: store.reads.tables.get_table(TableName(CATALOG, DATABASE, name)) for name in TABLES}
    for name in (PARTITIONED, SOURCE, ACID):
        value = "8" if name == SOURCE else "1"
        facts.partitions[name] = store.reads.partitions.get_partition(TableName(CATALOG, DATABASE, name), [value])
    return facts
