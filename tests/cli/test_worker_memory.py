"""Worker processes share the memory of equal partitions, also after one of them ends."""

from __future__ import annotations

import os
import re
import signal
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from prometheus_client.parser import text_string_to_metric_families

from hms_cache.cache.memory_files import is_available
from tests.cli import test_serve
from tests.cli.test_serve import MAX_WAIT_S, children, client
from tests.cli.test_workers import management_of
from tests.consistency.observers import wait_until

serving = partial(test_serve.serving, is_forked=True)

PARTITIONS = 3_000


def _table() -> Table:
    serde = SerDeInfo(None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {})
    text = "org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
    sd = StorageDescriptor([FieldSchema("a", "int")], None, *text, False, -1, serde, [], [], {})
    return Table(
        tableName="t",
        dbName="default",
        owner="o",
        sd=sd,
        partitionKeys=[FieldSchema("p", "int")],
        parameters={},
        tableType="MANAGED_TABLE",
    )


def _fill(port: int) -> None:
    with client(port) as one:
        one.create_table(_table())
        sd = one.get_table("default", "t").sd
        made = [
            Partition([str(number)], "default", "t", sd=sd, parameters={"n": str(number)})
            for number in range(PARTITIONS)
        ]
        for each in made:
            each.sd = StorageDescriptor(**{**vars(sd), "location": f"{sd.location}/p={each.values[0]}"})
        one.add_partitions(made)


def _outcomes(management: str) -> dict[tuple[str, str], float]:
    """Blocks put into shared memory, by worker and outcome."""
    with urlopen(f"{management}/metrics", timeout=MAX_WAIT_S) as answer:
        families = {one.name: one for one in text_string_to_metric_families(answer.read().decode())}
    found = families["hms_cache_cache_shared_blocks"].samples if "hms_cache_cache_shared_blocks" in families else []
    return {(one.labels["worker"], one.labels["outcome"]): one.value for one in found if one.name.endswith("_total")}


def _shared_files(pid: int) -> set[str]:
    try:
        return set(re.findall(r" (\d+) +/memfd:\S+", Path(f"/proc/{pid}/maps").read_text()))
    except FileNotFoundError:  # a child that has just ended
        return set()


def _check(port: int) -> None:
    """On any worker."""
    for _ in range(6):
        with client(port) as one:
            found = one.get_partitions("default", "t", -1)
            assert {(each.values[0], each.parameters["n"]) for each in found} == {
                (str(number), str(number)) for number in range(PARTITIONS)
            }
            assert one.get_partition("default", "t", ["77"]).sd.location.endswith("/p=77")


@pytest.mark.skipif(not is_available(), reason="the system has no sealed files in memory")
def test_workers_hold_partitions_once(tmp_path: Path) -> None:
    with serving("--port", "0", cwd=tmp_path) as (process, port):
        _fill(port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0
    settings = ("--set", "admin.port=0", "--set", "cache.warm=full")
    with serving("--port", "0", "--workers", "2", *settings, cwd=tmp_path) as (process, port):
        management = management_of(process)

        def share_all() -> bool:
            workers = children(process.pid)
            files = [_shared_files(one) for one in workers]
            return len(workers) == 2 and bool(set.intersection(*files))

        wait_until(share_all, "both have mapped one file")
        outcomes = _outcomes(management)
        assert sum(count for (_, outcome), count in outcomes.items() if outcome == "reused") >= 1
        _check(port)
        # The one that created it ends, and its successor shares with the other again.
        maker = next(one for one in children(process.pid) if _holds_files(one))
        os.kill(maker, signal.SIGKILL)
        wait_until(lambda: maker not in children(process.pid) and len(children(process.pid)) == 2, "it is replaced")
        _check(port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0


def _holds_files(pid: int) -> bool:
    return any(os.readlink(one).startswith("/memfd:") for one in Path(f"/proc/{pid}/fd").iterdir() if one.is_symlink())


@pytest.mark.soak
def test_workers_that_shall_not_share_do_not(tmp_path: Path) -> None:
    with serving("--port", "0", cwd=tmp_path) as (process, port):
        _fill(port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0
    settings = ("--set", "admin.port=0", "--set", "cache.warm=full", "--set", "server.workers_share_memory=false")
    with serving("--port", "0", "--workers", "2", *settings, cwd=tmp_path) as (process, port):
        management = management_of(process)
        _check(port)
        assert _outcomes(management) == {}
        assert not any(_shared_files(one) for one in children(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_S) == 0
