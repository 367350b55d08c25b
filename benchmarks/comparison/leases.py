"""Exact `get_table` by lease and by position check, compared with Hive's cache; with writes on the other server; with a
distant database."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy.engine import make_url

from benchmarks.catalog import TablePlan, table
from benchmarks.client import connect
from benchmarks.comparison import reads, starting
from benchmarks.comparison.context import Comparison
from benchmarks.comparison.delay_proxy import DelayProxy
from benchmarks.comparison.hot_reads import AT_REST
from benchmarks.java_metastore import fetch, load_schema
from benchmarks.own_metastore import OwnMetastore
from hms_cache.thrift_gen.hive_metastore.ttypes import Database

LEASE, CHECK = "ours, lease", "ours, check"
EXACTNESS = {
    LEASE: {"CACHE__EXACTNESS": "lease", "LEASE__SECRET": "a secret of the benchmarks"},
    CHECK: {},
}
ROUNDS = 3
WRITES_PER_S = 20.0
DELAY_MS = 5.0
FIRST_LEASE_S = 5.0
"""The first member of a set waits two seconds for its lease; then both have one."""

WRITTEN = TablePlan("bench_00", "written_all_the_time", 8)


@dataclass(frozen=True, slots=True)
class _Server:
    label: str
    address: str
    pid: int


def measure_leases(comparison: Comparison) -> None:
    """Measures without writes, all servers in turn; then pairs of each kind one after the other, since a write ends the
    leases of other sets."""
    c = comparison
    rows: list[list[str]] = []
    with ExitStack() as stack:
        java = stack.enter_context(c.java("java-lease", cached=True, properties=AT_REST))
        starting.java_prewarm_s(java)
        servers = [_of(label, stack.enter_context(_own(c, label, "reads"))) for label in EXACTNESS]
        servers.append(_Server(reads.JAVA, java.address, java.pid))
        time.sleep(FIRST_LEASE_S)
        reads.warm_the_compiler(c, java.address, 2 * c.sizes.seconds)
        for clients in c.sizes.clients:
            rows += _in_turn(c, servers, clients, "none")
    for label in EXACTNESS:
        with _pair(c, label, c.url) as (reader, writer), _writing(writer) as took_s:
            for clients in c.sizes.clients:
                rows += _in_turn(c, [_of(label, reader)], clients, f"{WRITES_PER_S:g}/s")
        rows.append(_write_row(c, label, "on this machine", took_s))
    _beside_other_writes(c, rows)
    _far_away(c, rows)
    titles = ["server", "writes on the other server", "clients", "calls/s", "p50 ms", "p99 ms", "statements/call"]
    c.results.sections.append(("Exact reads of `get_table`", titles, rows))


def _beside_other_writes(comparison: Comparison, rows: list[list[str]]) -> None:
    """Sends the same writes to a separate database on the same machine: measures only what they take of its
    processors."""
    other = make_url(comparison.url).set(database="unrelated")
    with comparison.counter.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {other.database}")
    url = other.render_as_string(hide_password=False)
    load_schema(fetch(), url)
    with _own(comparison, LEASE, "reader") as reader, _own(comparison, LEASE, "unrelated", url) as writer:
        time.sleep(FIRST_LEASE_S)
        client = connect(writer.address)
        client.create_database(Database(name=WRITTEN.database))
        with _writing(writer):
            rows += _in_turn(comparison, [_of(LEASE, reader)], 16, f"{WRITES_PER_S:g}/s to another database")


def _far_away(comparison: Comparison, rows: list[list[str]]) -> None:
    target = make_url(comparison.url)
    proxy = DelayProxy(target.port or 3306)
    try:
        url = target.set(port=proxy.port).render_as_string(hide_password=False)
        for label in EXACTNESS:
            proxy.delay(0)
            with _pair(comparison, label, url) as (reader, writer):
                proxy.delay(DELAY_MS)
                for clients in comparison.sizes.clients:
                    rows += _in_turn(comparison, [_of(label, reader)], clients, f"none, database {DELAY_MS:g} ms away")
                with _writing(writer) as took_s:
                    rows += _in_turn(
                        comparison, [_of(label, reader)], 16, f"{WRITES_PER_S:g}/s, database {DELAY_MS:g} ms away"
                    )
                rows.append(_write_row(comparison, label, f"{DELAY_MS:g} ms away", took_s))
                proxy.delay(0)
    finally:
        proxy.close()


def _of(label: str, server: OwnMetastore) -> _Server:
    return _Server(label, server.address, server.pid)


@contextmanager
def _own(comparison: Comparison, label: str, name: str, url: str | None = None) -> Iterator[OwnMetastore]:
    directory = f"lease-{name}-{label.rpartition(' ')[2]}-{time.monotonic_ns()}"
    with comparison.own(directory, url, CACHE__WARM="full", **EXACTNESS[label]) as server:
        starting.wait_until_warm(server)
        yield server


@contextmanager
def _pair(comparison: Comparison, label: str, url: str) -> Iterator[tuple[OwnMetastore, OwnMetastore]]:
    with _own(comparison, label, "reader", url) as reader, _own(comparison, label, "writer", url) as writer:
        time.sleep(FIRST_LEASE_S)
        yield reader, writer


@contextmanager
def _writing(server: OwnMetastore) -> Iterator[list[float]]:
    """Alters one table at a steady pace, or as fast as possible; yields the duration of each call."""
    client, written = connect(server.address), table(WRITTEN)
    if WRITTEN.name not in client.get_all_tables(WRITTEN.database):
        client.create_table(written)
    ended, took_s = threading.Event(), list[float]()

    def write() -> None:
        next_s = time.monotonic()
        while not ended.wait(max(0.0, next_s - time.monotonic())):
            began_s = time.monotonic()
            client.alter_table(WRITTEN.database, WRITTEN.name, written)
            took_s.append(time.monotonic() - began_s)
            next_s = max(next_s + 1 / WRITES_PER_S, time.monotonic())

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield took_s
    finally:
        ended.set()
        thread.join(30)


def _in_turn(comparison: Comparison, servers: list[_Server], clients: int, writes: str) -> list[list[str]]:
    operations = {one.label: reads.operations(comparison, one.address)[0] for one in servers}
    found: dict[str, list[dict[str, float]]] = {one.label: [] for one in servers}
    for server in servers:
        comparison.generator.run(server.address, operations[server.label], 4, 0.3)
    for _ in range(ROUNDS):
        for server in servers:
            operation = operations[server.label]
            found[server.label].append(
                comparison.cell(server.label, server.address, server.pid, operation, operation.name, clients)
            )
    rows: list[list[str]] = []
    for label, rounds in found.items():
        figure = {name: statistics.median(one[name] for one in rounds) for name in _FIGURES}
        rows.append(
            [
                label,
                writes,
                str(clients),
                f"{figure['calls_per_second']:,.0f}",
                f"{figure['p50_us'] / 1000:,.2f}",
                f"{figure['p99_us'] / 1000:,.2f}",
                f"{figure['statements']:.3f}",
            ]
        )
        comparison.report(" | ".join(rows[-1]))
    return rows


_FIGURES = ("calls_per_second", "p50_us", "p99_us", "statements")


def _write_row(comparison: Comparison, label: str, where: str, took_s: list[float]) -> list[str]:
    """Returns the row of the writes: alter_table."""
    times = sorted(took_s)
    row = [
        f"{label}: the writes",
        f"database {where}",
        "1",
        "",
        f"{statistics.median(times) * 1000:,.2f}",
        f"{times[int(len(times) * 0.99)] * 1000:,.2f}",
        "",
    ]
    comparison.report(" | ".join(row))
    return row
