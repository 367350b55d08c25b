"""``/operations``: running and finished commands and changes of the catalog, and which users and tables cause load."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from hms_cache.admin.pages.cache import shown_name
from hms_cache.admin.pages.context import PageContext
from hms_cache.cache.reads.assembly import Cache
from hms_cache.metrics.loads import Load, Traffic
from hms_cache.metrics.operations import FinishedOperation, RunningOperation
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.values import frozen

MAX_ROWS = 25
"""Maximum length of each list of loads."""


@frozen
class ClientLoad:
    """A user or a client address: its calls since the start, and the traffic of its open connections.

    ``busy_s`` may be too high by up to ``max_error_s``; calls and loads count from the time at which the name became
    one of the busiest. Requests that are answered without decoding count in the bytes only.
    """

    name: str
    busy_s: float
    calls: int
    loads: int
    max_error_s: float
    connections: int
    received_bytes: int
    sent_bytes: int


@frozen
class TableLoad:
    """A table: calls about it, counted as for a client, and ``reads`` from memory since it was cached."""

    name: str
    busy_s: float
    calls: int
    loads: int
    max_error_s: float
    reads: int


@frozen
class OperationsPage:
    """The page: running ones, the oldest first; finished ones, the latest first."""

    running: tuple[RunningOperation, ...]
    finished: tuple[FinishedOperation, ...]
    thread_pools: tuple[ThreadPoolLoad, ...]
    users: tuple[ClientLoad, ...]
    addresses: tuple[ClientLoad, ...]
    tables: tuple[TableLoad, ...]


def operations_page(context: PageContext) -> OperationsPage:
    """The page with the current state."""
    sources = context.sources
    operations, loads = sources.operations, sources.metrics.loads
    return OperationsPage(
        tuple(operations.running()),
        tuple(operations.last()),
        sources.thread_pool_loads(),
        _clients(loads.by_user(), sources.traffic_by("user")),
        _clients(loads.by_address(), sources.traffic_by("address")),
        _tables(loads.by_table(), sources.cache),
    )


def _clients(loads: Iterable[Load], traffic: Iterable[Traffic]) -> tuple[ClientLoad, ...]:
    """The busiest clients, then those with the most bytes sent."""
    carried = {one.name: one for one in traffic}
    busy = {one.name: one for one in loads}
    names = dict.fromkeys([*list(busy)[:MAX_ROWS], *list(carried)[:MAX_ROWS]])
    rows = []
    for name in names:
        load = busy.get(name, Load(name, 0.0, 0, 0, 0.0))
        rows.append(ClientLoad(*load, *carried.get(name, Traffic(name, 0, 0, 0))[1:]))
    return tuple(rows)


def _tables(loads: Iterable[Load], cache: Cache | None) -> tuple[TableLoad, ...]:
    """The busiest tables, then those with the most reads from memory."""
    busy = {one.name: one for one in loads}
    reads: dict[str, int] = {}
    if cache is not None:
        shared = cache.shared
        with shared.view():
            entries = list(shared.tables.items())
        reads = {shown_name(key): shared.reads_of(entry) for key, entry in entries}
    hottest = [name for name in heapq.nlargest(MAX_ROWS, reads, key=lambda one: reads[one]) if reads[name]]
    names = dict.fromkeys([*list(busy)[:MAX_ROWS], *hottest])
    return tuple(TableLoad(*busy.get(name, Load(name, 0.0, 0, 0, 0.0)), reads.get(name, 0)) for name in names)
