"""A month of nights on an object store: tables change each day, and each third night's jobs are killed.

With 2,000 tables, and with a few for a quick check. ``HMS_CACHE_MONTH_TABLES`` and ``HMS_CACHE_MONTH_NIGHTS`` set the
size of the large one, ``HMS_CACHE_MONTH_SEED`` repeats one.
"""

from __future__ import annotations

import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from hms_cache.client import MetastoreClient
from tests.clients.spark.session import base_conf
from tests.conftest import ServerStarter
from tests.jobs.month import hadoop_aws, oracle
from tests.jobs.month.lake import BUCKET, Lake
from tests.jobs.month.night import PREFIX
from tests.moto_server import ObjectStore, object_store
from tests.servers import MAX_WAIT_S

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(24 * 3600)]

TABLES = int(os.environ.get("HMS_CACHE_MONTH_TABLES", "2000"))
NIGHTS = int(os.environ.get("HMS_CACHE_MONTH_NIGHTS", "30"))

READ_AT_MOST = 1.1
"""Bytes that the store sends of data files, of the bytes of the partitions and plain tables that changed."""

ANSWER_LIMIT_S = 3_600
HISTORY, FILES = "jobs/history", "jobs/files"
STAGES = ("statistics", "history", "files", "repair")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """The server and the jobs that need no Spark find it like Amazon's: by environment variables."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    if shutil.which("mvn") is None:
        pytest.skip("needs Maven for fetching Hadoop's S3A")
    with object_store(tmp_path) as made:
        for name, value in {
            "AWS_ENDPOINT_URL": made.endpoint,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        yield made


class Nights:
    """The process of the jobs; a new one after it was killed."""

    def __init__(self, directory: Path, store: ObjectStore) -> None:
        jars = hadoop_aws.fetch()
        s3a = "spark.hadoop.fs.s3a"
        self._conf = base_conf(directory) | {
            "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "2",
            f"{s3a}.endpoint": store.endpoint,
            f"{s3a}.path.style.access": "true",
            f"{s3a}.access.key": "any",
            f"{s3a}.secret.key": "any",
            f"{s3a}.endpoint.region": "us-east-1",
        }
        self._directory = directory
        self._store = store
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.requests: Counter[str] = Counter()
        """Of each job in the last whole night."""

    def begin(self, jobs: list[tuple[str, dict[str, Any]]]) -> None:
        """Starts a night."""
        if self._process is None:
            conf = self._conf | {"spark.hadoop.hive.metastore.uris": jobs[0][1]["metastore"]}
            with (self._directory / "nights.log").open("a") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.jobs.month.night"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    cwd=Path(__file__).parents[3],
                    start_new_session=True,
                )
            self._lines = queue.SimpleQueue()
            threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()
            self._tell(conf)
        self._tell(jobs)

    def _tell(self, what: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        line = self._lines.get(timeout=ANSWER_LIMIT_S)
        assert line, f"the night's process ended: {(self._directory / 'nights.log').read_text()[-4000:]}"
        answer: dict[str, Any] = json.loads(line.removeprefix(PREFIX))
        return answer

    def whole(self) -> dict[str, dict[str, Any]]:
        """The reports of all jobs."""
        reports: dict[str, dict[str, Any]] = {}
        before = 0
        while (answer := self._next()) != {"end": "night"}:
            now = self._store.traffic().requests
            if "begin" in answer:
                before = now
            else:
                reports[answer["end"]] = answer
                self.requests[answer["end"]] = now - before
        return reports

    def kill(self, stage: str, chance: random.Random) -> None:
        """Kills all processes of the night in the middle of a stage: after a random number of requests."""
        while self._next().get("begin") != stage:
            pass
        process = self._process
        assert process is not None
        until = self._store.traffic().requests + chance.randint(0, max(1, self.requests[stage]))
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while self._store.traffic().requests < until and self._lines.empty() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Kills all of them; a night that is over loses nothing."""
        process, self._process = self._process, None
        if process is not None:
            deadline = time.monotonic() + MAX_WAIT_S
            while (left := _of_session(process.pid)) and time.monotonic() < deadline:
                for one in left:
                    _kill(one)
                process.poll()
                time.sleep(0.05)
            process.wait(MAX_WAIT_S)


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(PREFIX):
            lines.put(line)
    lines.put("")


def _of_session(session: int) -> list[int]:
    """Spark's Python workers are process groups of their own, but belong to one session."""
    found = []
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *numbers = one.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(numbers[2]) == session and state != "Z":
            found.append(int(one.parent.name))
    return found


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _sent(store: ObjectStore) -> Counter[str]:
    """Bytes of data files, by key."""
    sent = store.traffic().sent
    return Counter({path.partition("/")[2]: size for path, size in sent.items() if "/w/" in path})


def _by_table(sent: Counter[str], lake: Lake) -> dict[str, int]:
    found: Counter[str] = Counter()
    for key, size in sent.items():
        name = key.split("/")[1]
        kind = lake.tables[name].kind if name in lake.tables else "dropped"
        found[f"{name} ({kind})"] += size
    return dict(found)


@pytest.mark.parametrize(
    ("tables", "nights"),
    [pytest.param(60, 4, marks=pytest.mark.long), pytest.param(TABLES, NIGHTS, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_nothing_is_missed_or_counted_twice(
    start_server: ServerStarter, store: ObjectStore, tmp_path: Path, tables: int, nights: int
) -> None:
    seed = int(os.environ.get("HMS_CACHE_MONTH_SEED") or random.randrange(1 << 32))
    changes_a_day = max(12, tables // 10)
    print(f"seed {seed}, {tables} tables, {nights} nights, {changes_a_day} changes a day")
    chance = random.Random(seed)
    server = start_server("sqlite", **{"catalog.statistics_sketches": "true", "warehouse.files": "leave"})
    metastore = {"metastore": server.uri}
    jobs: list[tuple[str, dict[str, Any]]] = [
        ("repair", metastore | {"state": str(tmp_path / "repair.json"), "drop_limit": 1_000}),
        ("statistics", metastore | {"state": f"s3a://{BUCKET}/jobs/statistics.json"}),
        ("files", metastore | {"output": f"s3a://{BUCKET}/{FILES}", "full_every": 7}),
        ("history", metastore | {"output": f"s3a://{BUCKET}/{HISTORY}", "batch_events": 200}),
    ]
    engine = create_engine(server.database_url)
    outputs = oracle.Outputs(store.endpoint)
    night_after_night = Nights(tmp_path, store)
    kills = 0
    read_in_all = changed_in_all = 0
    try:
        with MetastoreClient(server.uri) as client:
            lake = Lake(store, client, chance.randrange(1 << 32))
            lake.create_all(tables)
            for night in range(1, nights + 1):
                began_s = time.monotonic()
                kinds = Counter(lake.a_day(changes_a_day)) if night > 1 else Counter()
                sent, changed = _sent(store), lake.bytes_of(lake.changed)
                night_after_night.begin(jobs)
                if night % 3 == 0 and night != nights:
                    night_after_night.kill(stage := STAGES[kills % len(STAGES)], chance)
                    kills += 1
                    print(f"night {night}: killed in {stage}; {dict(kinds)}")
                    read = (now := _sent(store) - sent).total()
                else:
                    reports = night_after_night.whole()
                    read = (now := _sent(store) - sent).total()
                    with engine.connect() as connection:
                        wrong = oracle.wrong_catalog(connection, lake)
                        wrong += outputs.wrong_history(connection, HISTORY)
                    wrong += outputs.wrong_files(lake, FILES)
                    failed = [row for report in reports.values() for row in report["tables"].get("Failures", ())]
                    print(
                        f"night {night}: {time.monotonic() - began_s:.0f} s, {read:,} bytes read of {changed:,} that "
                        f"changed in {len(lake.changed)} places, {dict(kinds)}, seconds by job "
                        f"{ {name: report['seconds'] for name, report in reports.items()} }"
                    )
                    assert not failed
                    assert not wrong, f"{len(wrong)} wrong: {wrong[:20]}\n{json.dumps(reports, indent=1)[:6000]}"
                    changed_in_all += changed
                    lake.changed.clear()
                read_in_all += read
                assert read <= READ_AT_MOST * changed, f"{read:,} read, {changed:,} changed: {_by_table(now, lake)}"
    finally:
        night_after_night.close()
        engine.dispose()
    print(f"{read_in_all:,} bytes read in all of {changed_in_all:,} that changed; {kills} nights killed")
    assert kills == (nights - 1) // 3
