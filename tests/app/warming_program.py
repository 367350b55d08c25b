"""A program without other threads, so that it can fork the process of the prewarm; prints its results as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from typing import Any

from hms_cache.app.database import open_database
from hms_cache.app.stores import build_database_stores
from hms_cache.app.warming_process import WarmingProcess, WarmingProcessLost, warming_processes
from hms_cache.cache.entries import Facet
from hms_cache.cache.warming.snapshot_reads import LoadRequest, SnapshotRead, SnapshotReads
from hms_cache.config import load
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.wire import encode_struct

WANTED = [
    LoadRequest("hive", Facet.DATABASE_NAMES),
    LoadRequest(DatabaseName("hive", "d"), Facet.TABLE_NAMES),
    *(LoadRequest(TableName("hive", "d", name), Facet.TABLE) for name in ("t01", "t02", "acid", "p", "gone")),
    LoadRequest(TableName("hive", "d", "p"), Facet.PARTITIONS),
]


def described(read: SnapshotRead) -> list[Any]:
    found: list[Any] = [read.fence, read.highest_id]
    for item in read.loaded:
        if item.facet is Facet.PARTITIONS:
            value: Any = [encode_struct(one).hex() for one in item.value.all().structs()]
        else:
            value = encode_struct(item.value).hex() if item.facet is Facet.TABLE else str(item.value)
        facts = item.facts
        beside = [facts.table_id, str(facts.tag), facts.encoded.hex(), facts.is_transactional] if facts else None
        found.append([str(item.requested), item.facet.name, item.weight, value, beside])
    return found


def outcome(process: WarmingProcess) -> Any:
    try:
        return described(process.read(WANTED))
    except (DatabaseUnavailable, WarmingProcessLost) as error:
        return type(error).__name__


def has_ended(process: WarmingProcess) -> bool:
    try:
        os.kill(process.process_id, 0)
    except ProcessLookupError:
        return True
    return False


def main(url: str, what: str) -> dict[str, Any]:
    settings = load(command_line={"database.url": url, "cache.warm": "full"}, environment={}).settings
    with warming_processes(settings) as processes:
        process = processes[0]
        seen: dict[str, Any] = {}
        if what == "read":
            seen["there"] = outcome(process)
            with closing(open_database(settings)) as database:
                store = build_database_stores(settings, database).objects.reads
                seen["here"] = described(SnapshotReads(store, settings.cache.budget_bytes).read(WANTED))
            seen["priority"] = os.getpriority(os.PRIO_PROCESS, process.process_id)
        elif what == "kill":
            os.kill(process.process_id, signal.SIGKILL)
        elif what == "close":
            process.close()
            process.close()
        elif what == "outlive":
            sys.stdout.write(" ".join(str(one.process_id) for one in processes))
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        seen["then"] = outcome(process)
    seen["ended"] = all(map(has_ended, processes))
    return seen


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
