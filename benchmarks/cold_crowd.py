"""Measures `lock`, `heartbeat` and `commit_txn` beside clients whose reads are not cached.

The readers read days of the table of `scale` by filter, without a pause. The table is kept out of the cache, so that
every read needs the database. One client opens transactions, locks, sends a heartbeat and commits: first alone, then
beside the readers.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.client import connect
from benchmarks.day_readers import reading
from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import cpu_seconds
from benchmarks.scale import DATABASE, TABLE
from hms_cache.thrift_gen.hive_metastore import ttypes

CALLS: Final = ("lock", "heartbeat", "commit_txn")
QUIET, BESIDE = "quiet", "beside"
LIMIT: Final = 2.0
"""The bar, as a multiple of the quiet p99."""


class Round(NamedTuple):
    """The measurements of one round of one program."""

    program: str
    moment: str
    took_ms: Mapping[str, Sequence[float]]
    """Milliseconds of each call of `CALLS`."""
    reads: int
    server_cpu_s: float
    database_cpu_s: float


def measure(
    url: str,
    directory: Path,
    partitions: int,
    programs: Mapping[str, Path | None],
    *,
    readers: int,
    rounds: int,
    seconds: float,
    database_process: int,
) -> Iterator[Round]:
    """Measures all rounds, the programs in turn.

    :param programs: the command `hms-cache` of each program, by name; None: this one's.
    """
    servers: dict[str, OwnMetastore] = {}
    try:
        for name, program in programs.items():
            servers[name] = OwnMetastore(url, directory / name, CACHE__WARM="off", CACHE__EXCLUDE=f"{DATABASE}.*")
            servers[name].program = program
            _transactions(servers[name].start(), time.monotonic() + 1)  # connections, statements
        for _ in range(rounds):
            for name, server in servers.items():
                for moment, crowd in ((QUIET, 0), (BESIDE, readers)):
                    with reading(server.address, crowd, partitions, rest_s=0.0) as reads:
                        before = cpu_seconds(server.pid), cpu_seconds(database_process)
                        took_ms = _transactions(server.address, time.monotonic() + seconds)
                        after = cpu_seconds(server.pid), cpu_seconds(database_process)
                    yield Round(name, moment, took_ms, len(reads()), after[0] - before[0], after[1] - before[1])
    finally:
        for server in servers.values():
            server.stop()


def _transactions(address: str, end_s: float) -> dict[str, list[float]]:
    client = connect(address)
    took_ms: dict[str, list[float]] = defaultdict(list)

    def timed(call: str, ask: Callable[[], Any]) -> Any:
        began_s = time.perf_counter()
        answer = ask()
        took_ms[call].append((time.perf_counter() - began_s) * 1000)
        return answer

    while time.monotonic() < end_s:
        opened = client.open_txns(ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="bench"))
        [txn_id] = opened.txn_ids
        component = ttypes.LockComponent(
            type=ttypes.LockType.SHARED_READ, level=ttypes.LockLevel.TABLE, dbname=DATABASE, tablename=TABLE
        )
        request = ttypes.LockRequest(component=[component], txnid=txn_id, user="bench", hostname="bench")
        timed("lock", partial(client.lock, request))
        timed("heartbeat", partial(client.heartbeat, ttypes.HeartbeatRequest(txnid=txn_id)))
        timed("commit_txn", partial(client.commit_txn, ttypes.CommitTxnRequest(txnid=txn_id)))
    return took_ms


def _percentiles(took_ms: Sequence[float]) -> tuple[float, float, float]:
    """p50, p90 and p99."""
    cuts = statistics.quantiles(took_ms, n=100, method="inclusive")
    return cuts[49], cuts[89], cuts[98]


def render(rounds: Sequence[Round]) -> str:
    """Returns a table with a row for each call and program. Percentiles are of all rounds together, answers are a
    round's mean."""
    lines = [
        "| call | program | quiet: p50 / p90 / p99, ms | beside: p50 / p90 / p99, ms | p99 beside / quiet |",
        "|---|---|---|---|---|",
    ]
    programs = list(dict.fromkeys(one.program for one in rounds))
    for call in CALLS:
        for program in programs:
            found = [
                _percentiles(
                    [
                        took
                        for one in rounds
                        if (one.program, one.moment) == (program, moment)
                        for took in one.took_ms[call]
                    ]
                )
                for moment in (QUIET, BESIDE)
            ]
            cells = (" / ".join(f"{value:.1f}" for value in values) for values in found)
            lines.append(f"| `{call}` | {program} | {' | '.join(cells)} | {found[1][2] / found[0][2]:.1f} |")
    lines += [
        "",
        "| program | answers of readers | transactions | server, CPU s | database, CPU s |",
        "|---|---|---|---|---|",
    ]
    for program in programs:
        beside = [one for one in rounds if (one.program, one.moment) == (program, BESIDE)]
        means = (
            statistics.mean(one.reads for one in beside),
            statistics.mean(len(one.took_ms["lock"]) for one in beside),
            statistics.mean(one.server_cpu_s for one in beside),
            statistics.mean(one.database_cpu_s for one in beside),
        )
        lines.append(f"| {program} | {means[0]:.0f} | {means[1]:.0f} | {means[2]:.1f} | {means[3]:.1f} |")
    return "\n".join(lines)
