"""The catalog that is loaded: the same objects in every metastore."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hms_cache.thrift_gen.hive_metastore import ttypes

ROOT = Path(tempfile.gettempdir()) / "hms-cache-bench"
"""Root of all locations, where servers create directories."""

PARTITION_KEYS = (("dt", "string"), ("hr", "int"))


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table of the catalog. `partitions` 0: not partitioned."""

    database: str
    name: str
    columns: int
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """How large the catalog is: `databases` × `tables` small tables, and the three measured partitioned ones."""

    databases: int = 10
    tables: int = 50
    large: int = 10_000
    copies_1000: int = 0
    copies_100: int = 0
    """Number of further tables with 1,000 and with 100 partitions in `bench_00`: see `benchmarks.cloning`."""

    def tables_planned(self) -> list[TablePlan]:
        """Every table, the partitioned ones last."""
        small = [
            TablePlan(f"bench_{d:02d}", f"table_{t:03d}", 4 + (d * self.tables + t) % 40)
            for d in range(self.databases)
            for t in range(self.tables)
        ]
        return [
            *small,
            TablePlan("bench_00", "part_100", 20, 100),
            TablePlan("bench_00", "part_1000", 20, 1_000),
            TablePlan("bench_00", "part_large", 20, self.large),
        ]

    def copies_planned(self) -> dict[str, list[str]]:
        """Names of the further partitioned tables of `bench_00`, by the table whose partitions they get."""
        return {
            "part_1000": [f"copy_1000_{number:03d}" for number in range(self.copies_1000)],
            "part_100": [f"copy_100_{number:03d}" for number in range(self.copies_100)],
        }

    def size(self) -> tuple[int, int]:
        """(tables, partitions) of the whole catalog."""
        tables = self.databases * self.tables + 3 + self.copies_1000 + self.copies_100
        return tables, self.large + 1_000 * (1 + self.copies_1000) + 100 * (1 + self.copies_100)


def columns(count: int) -> list[ttypes.FieldSchema]:
    """Returns typical columns: a mixture of types, a comment on every third."""
    types = ("bigint", "string", "double", "timestamp", "decimal(18,2)")
    return [
        ttypes.FieldSchema(f"column_{i:02d}", types[i % len(types)], f"number {i}" if i % 3 == 0 else None)
        for i in range(count)
    ]


def descriptor(plan: TablePlan, location: str | None) -> ttypes.StorageDescriptor:
    """A Parquet table's storage descriptor."""
    return ttypes.StorageDescriptor(
        cols=columns(plan.columns),
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(
            None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {"serialization.format": "1"}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def table(plan: TablePlan) -> ttypes.Table:
    """The table as a client creates it: external, so that no server touches its directory."""
    return ttypes.Table(
        tableName=plan.name,
        dbName=plan.database,
        owner="bench",
        createTime=1_700_000_000,
        lastAccessTime=0,
        retention=0,
        sd=descriptor(plan, f"file:{ROOT}/{plan.database}/{plan.name}"),
        partitionKeys=[ttypes.FieldSchema(n, t, None) for n, t in PARTITION_KEYS] if plan.partitions else [],
        parameters={"EXTERNAL": "TRUE", "bench.number": "1", "comment": "made for measurements"},
        tableType="EXTERNAL_TABLE",
    )


def partition_values(number: int) -> list[str]:
    """Values of the n-th partition: 24 hours a day from the first of January 2020."""
    day, hour = divmod(number, 24)
    month, day_of_month = divmod(day, 28)
    return [f"{2020 + month // 12}-{month % 12 + 1:02d}-{day_of_month + 1:02d}", str(hour)]


def partition_name(number: int) -> str:
    """The name of the n-th partition."""
    dt, hr = partition_values(number)
    return f"dt={dt}/hr={hr}"


def partition(plan: TablePlan, number: int) -> ttypes.Partition:
    """The n-th partition as a client adds it."""
    dt, hr = partition_values(number)
    return ttypes.Partition(
        values=[dt, hr],
        dbName=plan.database,
        tableName=plan.name,
        createTime=1_700_000_000,
        lastAccessTime=0,
        sd=descriptor(plan, f"file:{ROOT}/{plan.database}/{plan.name}/dt={dt}/hr={hr}"),
        parameters={"numFiles": "3", "totalSize": str(1_000_000 + number), "numRows": str(number)},
    )
