"""Cold reads of a distant database, each of a table that has not been read before.

Two programs can be measured in one run, one after the other for each delay: this one, and one of another revision.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy.engine import make_url

from benchmarks.client import connect
from benchmarks.comparison.delay_proxy import DelayProxy
from benchmarks.own_metastore import OwnMetastore
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE: Final = "distant"
DELAYS_MS: Final = (0.0, 1.0, 5.0, 20.0)
TABLES: Final = 9
"""Number of tables whose median counts; one more is read first, and does not count."""
PARTITIONS: Final = 24

WAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "cold, loaded": {},
    "cold, passed through": {"CACHE__LOAD_AT_ONCE_PARTITIONS": "0"},
    "no cache": {"CACHE__ENABLED": "false"},
}
"""Settings, by how a read of a table with few partitions is answered."""

_HOURS: Final = [f"dt=a/hour={hour}" for hour in range(0, 20, 2)]
CALLS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "get_table": lambda client, table: client.get_table(DATABASE, table),
    "one partition": lambda client, table: client.get_partition(DATABASE, table, ["a", "1"]),
    "day by filter": lambda client, table: client.get_partitions_by_filter(DATABASE, table, 'dt = "a"', -1),
    "ten by name": lambda client, table: client.get_partitions_by_names(DATABASE, table, _HOURS),
    "names of a day": lambda client, table: client.get_partition_names_ps(DATABASE, table, ["a"], -1),
}


class Cell(NamedTuple):
    """The median of some calls, in milliseconds."""

    way: str
    call: str
    program: str
    delay_ms: float
    took_ms: float


def _tables(call: str, delay_ms: float) -> list[str]:
    return [f"{call}_{delay_ms:g}_{number}".replace(" ", "_") for number in range(TABLES + 1)]


def fill(url: str, directory: Path) -> None:
    """Creates a table for each measured call."""
    metastore = OwnMetastore(url, directory / "fill", CACHE__ENABLED="false", WAREHOUSE__FILES="leave")
    client = connect(metastore.start())
    try:
        client.create_database(ttypes.Database(name=DATABASE, catalogName="hive"))
        columns = [ttypes.FieldSchema(f"c{number}", "string") for number in range(20)]
        serde = ttypes.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {"a": "b"})
        sd = ttypes.StorageDescriptor(
            columns, None, "i", "o", numBuckets=-1, serdeInfo=serde, bucketCols=[], sortCols=[], parameters={}
        )
        keys = [ttypes.FieldSchema("dt", "string"), ttypes.FieldSchema("hour", "int")]
        for name in (name for call in CALLS for delay_ms in DELAYS_MS for name in _tables(call, delay_ms)):
            client.create_table(
                ttypes.Table(
                    tableName=name,
                    dbName=DATABASE,
                    sd=copy.deepcopy(sd),
                    partitionKeys=keys,
                    parameters={"EXTERNAL": "TRUE", "k": "v"},
                    tableType="EXTERNAL_TABLE",
                )
            )
            client.add_partitions(
                [
                    ttypes.Partition(["a", str(hour)], DATABASE, name, sd=copy.deepcopy(sd), parameters={"k": "v"})
                    for hour in range(PARTITIONS)
                ]
            )
    finally:
        metastore.stop()


def measure(url: str, directory: Path, programs: Mapping[str, Path | None]) -> Iterator[Cell]:
    """Measures all cells.

    :param programs: the command `hms-cache` of each program, by name; None: this one's.
    """
    target = make_url(url)
    proxy = DelayProxy(target.port or 3306)
    distant = target.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    servers: list[OwnMetastore] = []
    try:
        for way, settings in WAYS.items():
            clients = {}
            for name, program in programs.items():
                server = OwnMetastore(
                    distant,
                    directory / f"{way}-{name}",
                    CACHE__WARM="off",
                    EVENTS__POLL_INTERVAL_S="3600",
                    **settings,
                )
                server.program = program
                servers.append(server)
                clients[name] = connect(server.start())
                clients[name].get_all_databases()
            for delay_ms in DELAYS_MS:
                proxy.delay(delay_ms)
                for call, ask in CALLS.items():
                    for name, client in clients.items():
                        took = [_milliseconds(ask, client, table) for table in _tables(call, delay_ms)]
                        yield Cell(way, call, name, delay_ms, statistics.median(took[1:]))
            proxy.delay(0)
            while servers:
                servers.pop().stop()
    finally:
        for server in servers:
            server.stop()
        proxy.close()


def _milliseconds(ask: Callable[[Any, str], Any], client: Any, table: str) -> float:
    started_s = time.perf_counter()
    ask(client, table)
    return (time.perf_counter() - started_s) * 1000


def render(cells: Sequence[Cell]) -> str:
    """Returns a table with a row for each call and a column for each delay."""
    found = {cell[:4]: cell.took_ms for cell in cells}
    names = list(dict.fromkeys(cell.program for cell in cells))
    lines = [
        f"| read | call | program | {' | '.join(f'{delay_ms:g} ms' for delay_ms in DELAYS_MS)} |",
        "|---|---|---|" + "---|" * len(DELAYS_MS),
    ]
    for way in WAYS:
        for call in CALLS:
            for name in names:
                took = (f"{found[way, call, name, delay_ms]:.1f}" for delay_ms in DELAYS_MS)
                lines.append(f"| {way} | {call} | {name} | {' | '.join(took)} |")
    return "\n".join(lines)
