"""CPU time of reads of partitions in memory, in one process: `python -m benchmarks.partitions_in_memory`.

Each call is processed from the request's bytes to the reply's by reader, dispatcher, handler and cache. There is no
socket, and no answers are kept by the bytes of requests, so each answer is built. SQLite holds the catalog. Prints the
least CPU time of some repetitions, and the size of the reply.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.assembly import CacheOptions, build_cache
from hms_cache.clock import SystemClock
from hms_cache.config import Settings
from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.messages import MessageFormat
from hms_cache.notifications.poller import Poller
from hms_cache.server.audit import AuditLog
from hms_cache.server.dispatch import Dispatcher
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.installation.init import init_schema
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.warehouse import Warehouse
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS, MessageReader
from hms_cache.wire.encodings import BINARY, write_header

CATALOG, DATABASE, LARGE, MIDDLE = "hive", "bench", "part_large", "part_1000"
BATCH = 2_000


def values(number: int) -> list[str]:
    """Returns partition values of the load's tables: 24 hours a day, 28 days a month."""
    day, hour = divmod(number, 24)
    month, day = divmod(day, 28)
    return [f"{2020 + month // 12}-{1 + month % 12:02d}-{1 + day:02d}", str(hour)]


def name(number: int) -> str:
    """The name of a partition."""
    day, hour = values(number)
    return f"dt={day}/hr={hour}"


def _descriptor() -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(f"column_{number:02d}", "string", "a column") for number in range(20)],
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def _partition(table: str, number: int) -> ttypes.Partition:
    return ttypes.Partition(
        values(number),
        DATABASE,
        table,
        1_700_000_000 + number,
        0,
        _descriptor(),
        {
            "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
            "numFiles": str(1 + number % 9),
            "numRows": str(number * 7_919 % 90_000),
            "rawDataSize": str(number * 7_919_000 % 90_000_000),
            "totalSize": str(number * 3_571_000 % 90_000_000),
            "transient_lastDdlTime": str(1_700_000_000 + number),
        },
        catName=CATALOG,
    )


def load(store: MetadataStore, count: int) -> None:
    """Two tables with partitions by day and hour."""
    store.writes.databases.create_database(
        ttypes.Database(name=DATABASE, catalogName=CATALOG, description="", parameters={})
    )
    keys = [ttypes.FieldSchema("dt", "string", None), ttypes.FieldSchema("hr", "int", None)]
    for table, partitions in ((LARGE, count), (MIDDLE, 1_000)):
        store.writes.tables.create_table(
            ttypes.Table(
                tableName=table,
                dbName=DATABASE,
                catName=CATALOG,
                owner="bench",
                createTime=1_700_000_000,
                sd=_descriptor(),
                partitionKeys=keys,
                parameters={},
                tableType="MANAGED_TABLE",
            )
        )
        for first in range(0, partitions, BATCH):
            batch = [_partition(table, number) for number in range(first, min(first + BATCH, partitions))]
            store.writes.partitions.add_partitions(TableName(CATALOG, DATABASE, table), batch)


def questions(count: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Returns (method, arguments) by label; the labels are those of the bars."""
    day, last_day = values(24 * 30)[0], values(24 * 60)[0]
    hundred = [name(number) for number in range(0, count, max(1, count // 100))][:100]
    thousand = [name(number) for number in range(0, count, max(1, count // 1_000))][:1_000]
    large, middle = {"db_name": DATABASE, "tbl_name": LARGE}, {"db_name": DATABASE, "tbl_name": MIDDLE}
    return {
        "get_partitions, 1,000": ("get_partitions", {**middle, "max_parts": -1}),
        "get_partitions, all": ("get_partitions", {**large, "max_parts": -1}),
        "get_partition_names, all": ("get_partition_names", {**large, "max_parts": -1}),
        "get_partitions_by_names, 100": ("get_partitions_by_names", {**large, "names": hundred}),
        "get_partitions_by_names, 1,000": ("get_partitions_by_names", {**large, "names": thousand}),
        "get_partitions_by_filter, dt =": (
            "get_partitions_by_filter",
            {**large, "filter": f'dt = "{day}"', "max_parts": -1},
        ),
        "get_partitions_by_filter, dt range": (
            "get_partitions_by_filter",
            {**large, "filter": f'dt >= "{day}" and dt <= "{last_day}"', "max_parts": -1},
        ),
        "get_partitions_ps_with_auth, one day": (
            "get_partitions_ps_with_auth",
            {**large, "part_vals": [day, ""], "max_parts": -1, "user_name": "bench", "group_names": []},
        ),
        "get_partition_names_ps, one day": (
            "get_partition_names_ps",
            {**large, "part_vals": [day, ""], "max_parts": -1},
        ),
        "get_partitions_pspec, all": ("get_partitions_pspec", {**large, "max_parts": -1}),
        "get_num_partitions_by_filter, hr = 3": ("get_num_partitions_by_filter", {**large, "filter": "hr = 3"}),
        "get_partition_values, dt": (
            "get_partition_values",
            {"request": ttypes.PartitionValuesRequest(DATABASE, LARGE, [ttypes.FieldSchema("dt", "string", None)])},
        ),
        "get_partition": ("get_partition", {**large, "part_vals": values(count // 2)}),
    }


def request(method: str, arguments: dict[str, Any]) -> bytes:
    """Returns a call in strict, unframed binary encoding."""
    spec = METHODS[method]
    encoded = BINARY.encode(spec.args_class(**arguments), spec.args_table)
    return write_header(BINARY, 1, method.encode(), 1) + encoded


def measure(ask: Callable[[], bytes | None], repetitions: int) -> tuple[float, int]:
    """Returns (least CPU time in ms, bytes of the reply)."""
    reply = ask()
    best_s = float("inf")
    for _ in range(repetitions):
        started_s = time.process_time()
        reply = ask()
        best_s = min(best_s, time.process_time() - started_s)
    return best_s * 1000, len(reply or b"")


def main() -> None:
    """Loads, then measures each question from memory; with `--uncached` also without the cache."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--uncached", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        database = Database(f"sqlite:///{Path(directory) / 'metastore.db'}", clock=SystemClock())
        init_schema(database)
        clock = SystemClock()
        context = StoreContext(
            database,
            MessageBuilder(MessageFormat.JSON),
            Warehouse(WarehouseSettings(directory=str(Path(directory) / "warehouse"), files="leave")),
            Settings(),
            clock,
        )
        objects = ObjectStore(context)
        pollers: list[Poller] = []

        def follow(sink: Any) -> Poller:
            pollers.append(Poller(NotificationLog(database), sink, clock))
            return pollers[-1]

        cache = build_cache(objects.reads, clock, CacheOptions(), follow)
        load(objects, options.partitions)
        pollers[0].start()
        pollers[0].step()
        stores = {"cached": cache.reads} | ({"uncached": objects.reads} if options.uncached else {})
        print("| question | store | CPU ms | reply bytes |\n|---|---|---|---|")
        for label, (method, arguments) in questions(options.partitions).items():
            data = request(method, arguments)
            for kind, store in stores.items():
                nothing: Any = None
                served = Stores(store, *[nothing] * (len(fields(Stores)) - 1))
                dispatcher = Dispatcher(all_handlers(), served, AuditLog("off"))

                def ask(dispatcher: Dispatcher = dispatcher, data: bytes = data) -> bytes | None:
                    reader = MessageReader(1 << 24)
                    reader.feed(data)
                    message = reader.next_message()
                    assert message is not None
                    return dispatcher.execute(Session("bench"), message)

                milliseconds, size = measure(ask, options.repetitions if kind == "cached" else 3)
                print(f"| {label} | {kind} | {milliseconds:.3f} | {size:,} |")
        for key, entry in cache.shared.tables.items():
            charged = entry.weights.get(Facet.PARTITIONS, 0)
            print(f"{key.table}: {charged:,} bytes charged for its partitions")
        database.close()


if __name__ == "__main__":
    main()
