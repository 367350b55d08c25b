"""Lists of the tables of one large database: without a cache, from memory, and immediately after a table was altered.

The alteration changes a parameter through another server, as Spark does after each INSERT.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.client import connect
from benchmarks.cloning import multiply_tables
from benchmarks.own_metastore import OwnMetastore
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE: Final = "names"
SEED: Final = "seed"
REPEATS: Final = 5
OBJECTS: Final = 300
"""Number of tables in one `get_table_objects_by_name`: the batch size of Hive's clients."""

Ask = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class NamesCell:
    """One call, in milliseconds."""

    name: str
    uncached_ms: float
    held_ms: float
    after_alter_ms: float


def calls() -> dict[str, Ask]:
    """The cells."""
    some = [f"table_{number:06d}" for number in range(OBJECTS)]
    return {
        "get_all_tables": lambda client: client.get_all_tables(DATABASE),
        "get_tables, by prefix": lambda client: client.get_tables(DATABASE, "table_0001*"),
        "get_table_meta, all": lambda client: client.get_table_meta(DATABASE, "*", []),
        "get_table_meta, by prefix": lambda client: client.get_table_meta(DATABASE, "table_0001*", []),
        f"get_table_objects_by_name, {OBJECTS}": lambda client: client.get_table_objects_by_name(DATABASE, some),
    }


def fill(url: str, directory: Path, tables: int) -> None:
    """Creates one table by calls, and copies of it within the database."""
    metastore = OwnMetastore(url, directory / "fill", CACHE__ENABLED="false")
    client = connect(metastore.start())
    try:
        client.create_database(ttypes.Database(name=DATABASE, catalogName="hive"))
        columns = [ttypes.FieldSchema(f"column_{number}", "string") for number in range(10)]
        serde = ttypes.SerDeInfo(
            None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"serialization.format": "1"}
        )
        sd = ttypes.StorageDescriptor(
            cols=columns, serdeInfo=serde, numBuckets=-1, bucketCols=[], sortCols=[], parameters={}
        )
        client.create_table(
            ttypes.Table(
                tableName=SEED,
                dbName=DATABASE,
                owner="bench",
                sd=sd,
                partitionKeys=[],
                parameters={"comment": "one of many", "EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
            )
        )
    finally:
        metastore.stop()
    multiply_tables(url, DATABASE, SEED, tables)


def measure(url: str, directory: Path, report: Callable[[str], None]) -> list[NamesCell]:
    """Measures all cells with two servers running: one without a cache, which also alters, and one with a cache."""
    uncached = OwnMetastore(url, directory / "without", CACHE__ENABLED="false")
    cached = OwnMetastore(url, directory / "with", CACHE__WARM="names")
    try:
        plain, client = connect(uncached.start()), connect(cached.start())
        return [_measured(name, ask, plain, client, report) for name, ask in calls().items()]
    finally:
        cached.stop()
        uncached.stop()


def _measured(name: str, ask: Ask, plain: Any, client: Any, report: Callable[[str], None]) -> NamesCell:
    uncached_ms = min(_milliseconds(ask, plain) for _ in range(REPEATS))
    held_ms = min(_milliseconds(ask, client) for _ in range(REPEATS))
    after_ms = []
    for number in range(REPEATS):
        changed = copy.deepcopy(plain.get_table(DATABASE, SEED))
        changed.parameters["numRows"] = f"{number}"
        plain.alter_table(DATABASE, SEED, changed)
        after_ms.append(_milliseconds(ask, client))
    cell = NamesCell(name, uncached_ms, held_ms, min(after_ms))
    report(f"{name}: {uncached_ms:.1f} ms uncached, {held_ms:.1f} ms held, {cell.after_alter_ms:.1f} ms after an alter")
    return cell


def _milliseconds(ask: Ask, client: Any) -> float:
    started_s = time.perf_counter()
    ask(client)
    return (time.perf_counter() - started_s) * 1000


def render(cells: list[NamesCell], tables: int, command: str, revision: str) -> str:
    """Returns the evidence page."""
    rows = [
        f"| {cell.name} | {cell.uncached_ms:.1f} | {cell.held_ms:.1f} | {cell.after_alter_ms:.1f} |" for cell in cells
    ]
    return "\n".join(
        [
            "# Names of a large database",
            "",
            f"`{command}` at {revision}: one database of {tables:,} tables on MariaDB, on the machine of the server,",
            f"decoded by a client in Python (part of each figure). *Uncached*: the best of {REPEATS} calls to a server",
            "with `cache.enabled = false`. *Held*: the best of as many from memory. *After an alter*: the best of as",
            "many first calls after another server altered a parameter of one of the tables. Milliseconds.",
            "",
            "| call | uncached | held | after an alter |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
