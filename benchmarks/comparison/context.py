"""What the parts of the comparison share: the database, the generator, the clock and the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.catalog import CatalogPlan
from benchmarks.comparison.results import Results, Row
from benchmarks.generator import GeneratorProcess
from benchmarks.java_metastore import JavaMetastore, statements
from benchmarks.operations import Operation
from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import cpu_seconds

READY_TIMEOUT_S = 150.0
"""Hive's CachedStore does not answer before its prewarm has ended: 30 to 50 s for 100,000 partitions."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths and sizes. `quick` is the same work with fewer numbers of clients and shorter times."""

    seconds: float
    clients: tuple[int, ...]
    large_clients: tuple[int, ...]
    """Numbers of clients for answers of a megabyte and more."""
    delays_ms: tuple[float, ...]
    large_table: int
    """Partitions of the table that is built in memory."""
    limit_s: float
    """No part begins later than this after the start."""


@dataclass(slots=True)
class Comparison:
    """One run."""

    url: str
    database_pid: int
    counter: Any
    directory: Path
    plan: CatalogPlan
    sizes: Sizes
    report: Callable[[str], None]
    results: Results = field(default_factory=Results)
    generator: GeneratorProcess = field(default_factory=GeneratorProcess)
    started_s: float = field(default_factory=time.monotonic)

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started_s

    @contextmanager
    def own(self, name: str, url: str | None = None, **settings: str) -> Iterator[OwnMetastore]:
        """Starts this project's server, and stops it at the end. It polls seldom, so that no statement of the poller is
        counted as a call's."""
        given = {"ADMIN__PORT": "0", "EVENTS__POLL_INTERVAL_S": "3600", "LOG__LEVEL": "info", **settings}
        server = OwnMetastore(url or self.url, self.directory / name, **given)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    @contextmanager
    def java(
        self, name: str, url: str | None = None, *, cached: bool, properties: dict[str, str] | None = None
    ) -> Iterator[JavaMetastore]:
        """Starts Hive's server, and stops it at the end. It listens, but may not answer yet."""
        server = JavaMetastore(url or self.url, self.directory / name, cached=cached, properties=properties)
        try:
            server.start()
            yield server
        finally:
            server.stop()

    def measure(
        self,
        server: str,
        address: str,
        pid: int,
        operations: Sequence[Operation],
        clients: Callable[[Operation], Sequence[int]],
        *,
        warm_s: float = 0.3,
        label: str = "",
    ) -> list[Row]:
        """Measures a cell for each operation and number of clients. A failed cell is noted, and the others are
        measured."""
        rows: list[Row] = []
        for operation in operations:
            name = operation.name + label
            try:
                self.generator.run(address, operation, 4, warm_s)
                for count in clients(operation):
                    rows.append(self.add(self.cell(server, address, pid, operation, name, count)))
            except RuntimeError as error:
                self.results.failures.append(f"{server}: {error}")
                self.report(f"{server}: {error}")
        return rows

    def cell(self, server: str, address: str, pid: int, operation: Operation, name: str, clients: int) -> Row:
        """Measures one cell. Raises RuntimeError if calls fail."""
        before = (cpu_seconds(pid), cpu_seconds(self.database_pid), statements(self.counter))
        load = self.generator.run(address, operation, clients, self.sizes.seconds)
        after = (cpu_seconds(pid), cpu_seconds(self.database_pid), statements(self.counter))
        return {
            "server": server,
            "operation": name,
            "clients": clients,
            "calls": load.calls,
            "calls_per_second": load.calls_per_second,
            "p50_us": load.p50_s * 1e6,
            "p95_us": load.p95_s * 1e6,
            "p99_us": load.p99_s * 1e6,
            "server_cpu_us": (after[0] - before[0]) / load.calls * 1e6,
            "database_cpu_us": (after[1] - before[1]) / load.calls * 1e6,
            "statements": max(0, after[2] - before[2] - 1) / load.calls,
        }

    def add(self, row: Row) -> Row:
        """Adds a cell to the results and prints it."""
        self.results.rows.append(row)
        self.report(
            f"{self.elapsed_s():5.0f} s  {row['server']:22s} {row['operation']:32s} "
            f"{row['clients']:3d}  {row['calls_per_second']:9.0f}/s  "
            f"p99 {row['p99_us']:9.0f} us  cpu {row['server_cpu_us']:9.1f} + {row['database_cpu_us']:8.1f} us  "
            f"{row['statements']:.2f} statements"
        )
        return row
