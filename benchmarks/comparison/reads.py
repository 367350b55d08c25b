"""Reads from memory and from the database, with their bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.client import connect, has_get_table
from benchmarks.comparison.context import Comparison
from benchmarks.comparison.results import Results, Row, cpu_us
from benchmarks.operations import Operation, read_operations
from benchmarks.processes import resident_bytes

OURS_0, OURS_500, OURS_INF = "ours, staleness 0", "ours, 500 ms", "ours, inf"
OURS_UNCACHED, JAVA, JAVA_UNCACHED = "ours, no cache", "Hive CachedStore", "Hive, no cache"

LARGE = ("get_partitions 1", "get_table_objects", "get_partitions_by_names 1,000", "filter range")
UNCACHED = ("get_table", "get_partitions 10", "get_table_statistics", "get_partitions_by_names 100")
INF = ("get_table", "get_database", "get_partition", "get_partition_names", "get_table_statistics")
LARGEST_CLIENTS = 16
#: Measured in turn: see `hot_reads`.
HOT_OPERATIONS = ("get_table", "get_partition", "get_database")
ROUNDS = 4
#: From how many clients on the bars of hot reads hold.
HOT = ((OURS_500, 4), (OURS_0, 16))


def operations(comparison: Comparison, address: str) -> list[Operation]:
    """Returns all reads, with the methods that the server supports."""
    return read_operations(comparison.plan, plain_get_table=has_get_table(connect(address)))


def measure_all(comparison: Comparison, server: str, address: str, pid: int, warm_s: float = 0.3) -> None:
    """Measures all reads except hot ones, with every number of clients."""
    chosen = [one for one in operations(comparison, address) if one.name not in HOT_OPERATIONS]
    comparison.measure(server, address, pid, chosen, _clients(comparison), warm_s=warm_s)


def _clients(comparison: Comparison) -> Callable[[Operation], Sequence[int]]:
    sizes = comparison.sizes

    def clients(operation: Operation) -> Sequence[int]:
        return sizes.large_clients if operation.name.startswith(LARGE) else sizes.clients

    return clients


def warm_the_compiler(comparison: Comparison, address: str, seconds: float) -> None:
    """Sends hot reads that are not measured: Java compiles code that runs often, which is then several times faster."""
    for operation in operations(comparison, address):
        if operation.name in HOT_OPERATIONS:
            comparison.generator.run(address, operation, 16, seconds)


def measure_some(comparison: Comparison, server: str, address: str, pid: int, names: Sequence[str]) -> None:
    """Measures the named reads with 4 clients."""
    exact = [one for one in operations(comparison, address) if _is_named(one, names)]
    comparison.measure(server, address, pid, exact, lambda _: (4,), warm_s=1.0)


def _is_named(operation: Operation, names: Sequence[str]) -> bool:
    return operation.name in names or any(
        operation.name.startswith(f"{name} ") or (name[-1].isdigit() and operation.name.startswith(name))
        for name in names
    )


def peak_under_large_answers(comparison: Comparison, address: str, pid: int) -> int:
    """Returns the resident bytes while 16 clients read the largest answer."""
    large = next(
        one for one in operations(comparison, address) if one.name == f"get_partitions {comparison.plan.large:,}"
    )
    comparison.generator.run(address, large, LARGEST_CLIENTS, max(1.0, comparison.sizes.seconds))
    return resident_bytes(pid)


def more_clients_than_connections(comparison: Comparison, server: str, address: str, pid: int) -> None:
    """Measures 64 clients whose reads all need the database, with far fewer database connections: calls queue, and none
    stalls."""
    chosen = [one for one in operations(comparison, address) if one.name == "get_partitions_by_names 100"]
    rows = comparison.measure(server, address, pid, chosen, lambda _: (16, 64), label=", queueing")
    if len(rows) == 2:
        few, many = rows
        growth = many["p99_us"] / few["p99_us"]
        comparison.results.bar(
            "more clients than database connections: 16, then 64 clients, all reads to the database",
            "queueing only: p99 grows with the number of clients (4 ×, half as much again allowed)",
            f"p99 {few['p99_us'] / 1000:,.0f} ms, then {many['p99_us'] / 1000:,.0f} ms: {growth:.1f} ×",
            growth <= 6,
        )


# Bars


def judge(results: Results, large: int) -> None:
    """Judges all bars on cells."""
    _judge_hot(results)
    of = "of Hive's CPU per call"
    for what, operation, least in (
        ("get_partitions of 1,000", "get_partitions 1,000", 10),
        (f"get_partitions of {large:,}", f"get_partitions {large:,}", 10),
        (f"get_partition_names of {large:,}", f"get_partition_names {large:,}", 100),
        ("get_partitions_by_names of 100", "get_partitions_by_names 100", 20),
        ("get_partitions_by_names of 1,000", "get_partitions_by_names 1,000", 20),
        ("filter =, 24 answers", "filter =, 24 answers", 20),
        ("filter range, 720 answers", "filter range, 720 answers", 20),
        ("get_partitions_ps_with_auth, 24", "get_partitions_ps_with_auth 24", 100),
        ("get_table_objects_by_name of 50", "get_table_objects_by_name 50", 100),
        ("get_tables", "get_tables", 10),
        ("get_aggr_stats_for 100 partitions", "get_aggr_stats_for 100", 5),
    ):
        results.ratio_bar(f"{what}, per CPU second", least, _cheaper(results, JAVA, operation), of)
    results.ratio_bar(
        "column statistics of a table, per CPU second",
        50,
        _cheaper(results, JAVA_UNCACHED, "get_table_statistics"),
        "of Hive's CPU per call without its cache (with it the answer is empty)",
    )


def _judge_hot(results: Results) -> None:
    """Judges small answers. With few clients, a read at staleness 0 bears most of a position check, which Hive does not
    make. So these bars begin at 16 clients; the cells show all."""
    for operation, least in (("get_table", 2), ("get_partition", 1.5), ("get_database", 1)):
        for server, least_clients in HOT:
            ratios = [
                (f"{ours['clients']} clients", cpu_us(java) / cpu_us(ours))
                for ours, java in _pairs(results, server, JAVA, operation)
                if ours["clients"] >= least_clients
            ]
            title = f"{operation}, hot, {server}, {least_clients} clients or more, per CPU second"
            results.ratio_bar(title, least, ratios, "of Hive's CPU per call")
    results.ratio_bar(
        "get_table, hot, answers/s at 16 and 64 clients",
        1.5,
        _faster(results, "get_table", (16, 64)),
        "Hive's answers/s",
    )
    pairs = [
        (ours, java)
        for server, least_clients in HOT
        for ours, java in _pairs(results, server, JAVA, "get_table")
        if ours["clients"] >= least_clients
    ]
    text = ", ".join(f"{o['server']}, {o['clients']}: {o['p99_us']:,.0f} / {j['p99_us']:,.0f} µs" for o, j in pairs)
    passed = all(ours["p99_us"] < java["p99_us"] for ours, java in pairs) if pairs else None
    results.bar("get_table, hot, p99", "below Hive's", text or "not measured", passed)


def _pairs(results: Results, ours: str, other: str, operation: str) -> list[tuple[Row, Row]]:
    found = [(row, results.cell(other, operation, row["clients"])) for row in results.cells(ours, operation)]
    return [(row, against) for row, against in found if against is not None]


def _cheaper(results: Results, other: str, operation: str) -> list[tuple[str, float]]:
    """Returns Hive's CPU time divided by this server's at 4 clients, for both values of max_staleness."""
    ratios = []
    for server in (OURS_0, OURS_500):
        ours, against = results.cell(server, operation, 4), results.cell(other, operation, 4)
        if ours is not None and against is not None:
            ratios.append((server.removeprefix("ours, "), cpu_us(against) / cpu_us(ours)))
    return ratios


def _faster(results: Results, operation: str, clients: Sequence[int]) -> list[tuple[str, float]]:
    return [
        (
            f"{server.removeprefix('ours, ')}, {ours['clients']} clients",
            ours["calls_per_second"] / java["calls_per_second"],
        )
        for server in (OURS_0, OURS_500)
        for ours, java in _pairs(results, server, JAVA, operation)
        if ours["clients"] in clients
    ]


def judge_uncached(results: Results, large: int) -> None:
    """Judges reads that need the database, compared with Hive's without its cache."""
    for operation, statements, least in (("get_table", 6, 3.0), (f"get_partitions {large:,}", 10, 1.5)):
        ours, java = results.cell(OURS_UNCACHED, operation, 4), results.cell(JAVA_UNCACHED, operation, 4)
        if ours is None or java is None:
            results.bar(f"{operation}, uncached", f"≤ {statements} statements, ≥ {least:g} ×", "not measured", None)
            continue
        ratio = cpu_us(java) / cpu_us(ours)
        results.bar(
            f"{operation}, uncached",
            f"≤ {statements} statements, ≥ {least:g} × of Hive's CPU per call",
            f"{ours['statements']:.1f} statements (Hive {java['statements']:.1f}), {ratio:.1f} ×",
            round(ours["statements"], 1) <= statements and ratio >= least,
        )


def judge_checks(results: Results) -> None:
    """Judges whether reads at `max_staleness` 0 share their position checks."""
    rows = [row for row in results.cells(OURS_0, "get_table") if row["clients"] >= 4]
    text = ", ".join(f"{row['clients']} clients {row['statements']:.2f}" for row in rows)
    passed = all(row["statements"] < 1 for row in rows) if rows else None
    results.bar("statements per read at `max_staleness` 0 under load", "< 1", text or "not measured", passed)
