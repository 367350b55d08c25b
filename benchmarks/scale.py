"""Reads of one large table that is not cached, compared with the same reads with the cache off (P12).

Each cell is measured on a server that has just started, without a prewarm: once for the cold read, then until the
answer comes from memory. The same call is sent several times to a server with `cache.enabled = false`. The best time
counts, since the first call also opens a connection, and the database first has to read from its disk.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.client import connect
from benchmarks.cloning import multiply_partitions
from benchmarks.own_metastore import OwnMetastore
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE: Final = "scale"
TABLE: Final = "events"
HOURS: Final = 24
SEED_PARTITIONS: Final = 1_000
"""Number of partitions created by calls; all others are copies of them."""

REPEATS: Final = 5
HOT_LIMIT_S: Final = 120.0

FACTOR: Final = 1.3
ALLOWANCE_MS: Final = 5.0
"""The bar: a multiple of the uncached call, plus this allowance."""

SMALL_TABLE: Final = "few"
"""Table that is read first: this opens connections, checks the schema and compiles statements, which no cache
avoids."""

STARTS: Final = 2
"""Number of servers on which each cold read is measured; the best counts, as for the uncached call."""

Ask = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One call: milliseconds uncached, cold, and from memory after the background load (None: not reached)."""

    name: str
    uncached_ms: float
    cold_ms: float
    hot_ms: float | None

    @property
    def is_met(self) -> bool:
        """Whether the bar holds."""
        return self.cold_ms <= FACTOR * self.uncached_ms + ALLOWANCE_MS


def day_of(number: int) -> str:
    """Returns the value of the first partition key of the partition with this number."""
    return f"day-{number // HOURS:06d}"


def calls(partitions: int, table: str = TABLE) -> dict[str, Ask]:
    """Returns the cells for a table with this many partitions."""
    day = day_of(partitions // 2)
    names = [f"dt={day_of(number)}/hour={number % HOURS}" for number in range(0, partitions, max(1, partitions // 10))]
    spec = [day]
    request = ttypes.GetPartitionsByNamesRequest(db_name=DATABASE, tbl_name=table, names=names[:10])
    return {
        "day by filter": lambda client: client.get_partitions_by_filter(DATABASE, table, f'dt = "{day}"', -1),
        "ten by name": lambda client: client.get_partitions_by_names_req(request).partitions,
        "one partition": lambda client: [client.get_partition(DATABASE, table, [day, "1"])],
        "day by values (ps)": lambda client: client.get_partitions_ps(DATABASE, table, spec, -1),
        "names of a day": lambda client: client.get_partition_names_ps(DATABASE, table, spec, -1),
        "count by filter": lambda client: client.get_num_partitions_by_filter(DATABASE, table, f'dt = "{day}"'),
        "all names": lambda client: client.get_partition_names(DATABASE, table, -1),
    }


def fill(
    url: str, directory: Path, partitions: int, report: Callable[[str], None], figures: Sequence[str] = ()
) -> None:
    """Creates the table: some partitions by calls, the rest within the database.

    :param figures: parameters that differ between partitions.
    """
    metastore = OwnMetastore(url, directory / "fill", CACHE__ENABLED="false")
    client = connect(metastore.start())
    try:
        client.create_database(ttypes.Database(name=DATABASE, catalogName="hive"))
        text = [ttypes.FieldSchema(name, "string") for name in ("id", "payload")]
        serde = ttypes.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {})
        sd = ttypes.StorageDescriptor(
            cols=text,
            inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
            serdeInfo=serde,
            numBuckets=-1,
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
        keys = [ttypes.FieldSchema("dt", "string"), ttypes.FieldSchema("hour", "int")]
        table = ttypes.Table(
            tableName=TABLE,
            dbName=DATABASE,
            owner="bench",
            sd=sd,
            partitionKeys=keys,
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        )
        small = copy.deepcopy(table)
        small.tableName = SMALL_TABLE
        client.create_table(small)
        few = ttypes.Partition([day_of(0), "1"], DATABASE, SMALL_TABLE, sd=copy.deepcopy(sd), parameters={})
        few.sd.location = f"{client.get_table(DATABASE, SMALL_TABLE).sd.location}/dt={day_of(0)}/hour=1"
        client.add_partitions([few])
        client.create_table(table)
        location = client.get_table(DATABASE, TABLE).sd.location
        made = []
        for number in range(min(partitions, SEED_PARTITIONS)):
            values = [day_of(number), str(number % HOURS)]
            own = copy.deepcopy(sd)
            own.location = f"{location}/dt={values[0]}/hour={values[1]}"
            made.append(
                ttypes.Partition(
                    values=values,
                    dbName=DATABASE,
                    tableName=TABLE,
                    sd=own,
                    parameters=dict.fromkeys(("numRows", *figures), str(number)),
                )
            )
        client.add_partitions(made)
    finally:
        metastore.stop()
    report(f"{len(made)} partitions by calls")
    multiply_partitions(url, DATABASE, TABLE, partitions, HOURS, figures)
    report(f"{partitions} partitions in the database")


def measure(url: str, directory: Path, partitions: int, report: Callable[[str], None]) -> list[Cell]:
    """Measures all cells. Each cold read has its own server."""
    cells = []
    uncached = OwnMetastore(url, directory / "uncached", CACHE__ENABLED="false")
    client = connect(uncached.start())
    try:
        for name, ask in calls(partitions).items():
            without_ms = min(_milliseconds(ask, client) for _ in range(REPEATS))
            starts = [
                _cold(url, directory / f"{number}-{name}", name, ask, without_ms, number) for number in range(STARTS)
            ]
            cell = min(starts, key=lambda one: one.cold_ms)
            cell = replace(cell, hot_ms=starts[0].hot_ms)
            report(f"{name}: {without_ms:.1f} ms uncached, {cell.cold_ms:.1f} ms cold, {cell.hot_ms} ms hot")
            cells.append(cell)
    finally:
        uncached.stop()
    return cells


def _cold(url: str, directory: Path, name: str, ask: Ask, without_ms: float, number: int) -> Cell:
    """Measures a cold read. Only the first start (`number`) is also measured from memory."""
    # The small table, too, is answered by the database: its calls compile the statements that the cold read sends.
    metastore = OwnMetastore(url, directory, CACHE__WARM="names", CACHE__LOAD_AT_ONCE_PARTITIONS="0")
    client = connect(metastore.start())
    try:
        client.get_all_databases()
        for warm in calls(HOURS, SMALL_TABLE).values():
            with suppress(ttypes.NoSuchObjectException):
                warm(client)
        cold_ms = _milliseconds(ask, client)
        before, deadline_s = _loads(ask, client), time.monotonic() + HOT_LIMIT_S
        hot_ms = None
        while not number and time.monotonic() < deadline_s:
            took_ms = min(_milliseconds(ask, client) for _ in range(3))
            if took_ms < max(1.0, before / 4):
                hot_ms = took_ms
                break
            time.sleep(0.5)
    finally:
        metastore.stop()
    return Cell(name, without_ms, cold_ms, hot_ms)


def _loads(ask: Ask, client: Any) -> float:
    return min(_milliseconds(ask, client) for _ in range(2))


def _milliseconds(ask: Ask, client: Any) -> float:
    started_s = time.perf_counter()
    ask(client)
    return (time.perf_counter() - started_s) * 1000


def render(cells: list[Cell], partitions: int, command: str, revision: str) -> str:
    """The evidence page."""
    rows = [
        f"| {cell.name} | {cell.uncached_ms:.1f} | {cell.cold_ms:.1f} | {FACTOR * cell.uncached_ms + ALLOWANCE_MS:.1f} "
        f"| {'yes' if cell.is_met else 'no'} | {'-' if cell.hot_ms is None else f'{cell.hot_ms:.1f}'} |"
        for cell in cells
    ]
    return "\n".join(
        [
            "# Large tables",
            "",
            f"`{command}` at {revision}: one table of {partitions:,} partitions on MariaDB,",
            "on the machine of the server. *Uncached*: the best of 5 calls to a server with `cache.enabled = false`.",
            "*Cold*: the first call about the table to a server that has just started, the best of two. *Bar*: 1.3",
            "times the uncached call and 5 ms. *From memory*: after the background load. Milliseconds.",
            "",
            "| call | uncached | cold | bar | met | from memory |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
