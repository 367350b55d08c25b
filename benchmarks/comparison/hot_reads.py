"""Small reads from memory, the servers in turn.

Consecutive parts are minutes apart, during which the speed of a virtual machine may change by a fifth. This is too much
for bars on ratios of two. So here all servers run at the same time and answer in turn, round by round.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.comparison import reads, starting
from benchmarks.comparison.context import Comparison
from benchmarks.comparison.results import Row
from benchmarks.operations import Operation

#: Hive's cache reads its whole catalog again every minute. Here it never does, since this server's poller does not poll
#: either.
AT_REST = {"metastore.cached.rawstore.cache.update.frequency": "3600s"}


@dataclass(frozen=True, slots=True)
class _Server:
    label: str
    address: str
    pid: int


def measure_hot_reads(comparison: Comparison) -> None:
    """Measures hot reads for all numbers of clients: this server with both values of max_staleness, and Hive's."""
    c = comparison
    with ExitStack() as running:
        ours_0 = running.enter_context(c.own("own-hot-0", CACHE__WARM="full"))
        ours_500 = running.enter_context(c.own("own-hot-500", CACHE__WARM="full", CACHE__MAX_STALENESS_MS="500"))
        for own in (ours_0, ours_500):
            starting.wait_until_warm(own)
        java = running.enter_context(c.java("java-hot", cached=True, properties=AT_REST))
        starting.java_prewarm_s(java)
        reads.warm_the_compiler(c, java.address, 4 * c.sizes.seconds)
        servers = [
            _Server(reads.OURS_0, ours_0.address, ours_0.pid),
            _Server(reads.OURS_500, ours_500.address, ours_500.pid),
            _Server(reads.JAVA, java.address, java.pid),
        ]
        spelled = {one.label: {op.name: op for op in reads.operations(c, one.address)} for one in servers}
        for name in reads.HOT_OPERATIONS:
            operations = {one.label: spelled[one.label][name] for one in servers}
            for server in servers:
                c.generator.run(server.address, operations[server.label], 4, 0.3)
            for clients in c.sizes.clients:
                _in_turn(c, servers, operations, clients)


def _in_turn(comparison: Comparison, servers: list[_Server], operations: dict[str, Operation], clients: int) -> None:
    rounds: dict[str, list[Row]] = {server.label: [] for server in servers}
    for _ in range(reads.ROUNDS):
        for server in servers:
            operation = operations[server.label]
            cell = comparison.cell(server.label, server.address, server.pid, operation, operation.name, clients)
            rounds[server.label].append(cell)
    for server in servers:
        comparison.add(_mean(rounds[server.label]))


def _mean(rounds: list[Row]) -> Row:
    """Returns the mean of several cells; times per call are weighted by the number of calls."""
    calls = sum(row["calls"] for row in rounds)
    mean: Row = dict(rounds[0], calls=calls)
    for figure in ("server_cpu_us", "database_cpu_us", "statements"):
        mean[figure] = sum(row[figure] * row["calls"] for row in rounds) / calls
    for figure in ("calls_per_second", "p50_us", "p95_us", "p99_us"):
        mean[figure] = sum(row[figure] for row in rounds) / len(rounds)
    return mean
