"""The processes that read for the prewarm: real ones, forked by a process without other threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.warming import pause_s
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, partition, table
from tests.consistency.observers import wait_until
from tests.prepared.commands import run_program
from tests.servers import ServerProcess, metastore_client

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("warming_program.py").read_text()


@pytest.fixture
def filled(initialized_database: Database, tmp_path: Path) -> str:
    """URL of a catalog with 60 tables, one that is transactional, and one of ten partitions."""
    url = initialized_database.url.render_as_string(hide_password=False)
    writer = Server(url, tmp_path)
    writer.objects.writes.databases.create_database(ttypes.Database(name="d", catalogName=CATALOG, parameters={}))
    for number in range(60):
        writer.objects.writes.tables.create_table(table("d", f"t{number:02d}"))
    writer.objects.writes.tables.create_table(
        table("d", "acid", transactional="true", transactional_properties="insert_only")
    )
    partitioned = table("d", "p", keys=(("dt", "string"),))
    writer.objects.writes.tables.create_table(partitioned)
    writer.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "p"), [partition(partitioned, (str(n),)) for n in range(10)]
    )
    writer.close()
    return url


def run(url: str, what: str) -> subprocess.CompletedProcess[str]:
    return run_program(PROGRAM, (url, what), ROOT)


def seen(url: str, what: str) -> dict[str, Any]:
    ran = run(url, what)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_prewarm_rests_while_calls_need_the_processors() -> None:
    assert pause_s(0.2, 0.0) == pause_s(0.0, 0.0) == 0
    assert pause_s(0.2, 0.02) == pytest.approx(0.2), "calls that take a tenth of a processor halve its pace"
    assert pause_s(0.2, 0.2) == pause_s(0.2, 5.0) == pytest.approx(20.0)


def test_threads_that_end_meanwhile_count_nothing() -> None:
    """A server stops while its prewarm reads the clocks of the threads of calls: their memory is freed, and must not be
    read.

    In a process of its own: accessing that memory ended it with a segmentation fault.
    """
    ran = subprocess.run([sys.executable, "-c", LOOKS_AT_ENDED_THREADS], cwd=ROOT, capture_output=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, b"")


LOOKS_AT_ENDED_THREADS = """
import threading
from hms_cache.app.warming import processor_time_of_calls_s
from hms_cache.server.thread_pool import CALL_THREADS

go_on = threading.Event()
work = threading.Thread(name=CALL_THREADS + "-0", target=lambda: (sum(range(3_000_000)), go_on.wait(60)))
work.start()
while not processor_time_of_calls_s() > 0.01:
    pass
threading.stack_size(64 << 20)  # more than glibc keeps: each is unmapped when the next thread ends
threads = [work]
for number in range(4):
    threads.append(threading.Thread(name=CALL_THREADS + "-1", target=lambda: None))
    threads[-1].start()
    threads[-1].join()
threading.enumerate = lambda: threads
assert processor_time_of_calls_s() > 0.01, "the one that works is counted all the same"
go_on.set()
"""


def test_what_it_reads_is_what_the_server_would_read(filled: str) -> None:
    found = seen(filled, "read")
    assert found["there"] == found["here"] == found["then"]
    assert len(found["here"]) > 8
    assert (found["priority"], found["ended"]) == (19, True)


SQLITE = pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)


@SQLITE
@pytest.mark.parametrize(("what", "then"), [("kill", "WarmingProcessLost"), ("close", "DatabaseUnavailable")])
def test_a_process_that_is_gone_reads_nothing(what: str, then: str, filled: str) -> None:
    assert seen(filled, what) == {"then": then, "ended": True}


@SQLITE
def test_they_end_with_their_parent(filled: str) -> None:
    ran = run(filled, "outlive")
    assert ran.returncode == -signal.SIGKILL
    processes = [int(one) for one in ran.stdout.split()]
    assert processes
    wait_until(lambda: not any(map(is_running, processes)), "the processes end")


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(process: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ended meanwhile
            found += map(int, (task / "children").read_text().split())
    return found


@pytest.mark.soak
@SQLITE
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("ends", ["done", "killed"])
def test_a_server_is_warm_in_the_end_and_has_no_process_left(
    ends: str, filled: str, start_server: Callable[..., ServerProcess]
) -> None:
    server = start_server(filled, **{"cache.warm": "full"})
    if ends == "killed":
        for child in children(server.process_id):
            os.kill(child, signal.SIGKILL)
    wait_until(lambda: "warmed up: 62 of 62 tables" in server.log, "all tables are warm")
    wait_until(lambda: not children(server.process_id), "the processes end")
    with metastore_client(int(server.uri.rpartition(":")[2])) as client:
        assert len(client.get_partitions("d", "p", -1)) == 10
    assert "failed" not in server.log
