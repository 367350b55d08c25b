"""The server as one object: thread pools, audit log, listener. The event loop that it runs on belongs to its caller."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from hms_cache.authorization.decisions import Authorizer
from hms_cache.cache.reads.reading import Reading
from hms_cache.config.sections import ServerSettings
from hms_cache.metrics.loads import CallLoads, Traffic
from hms_cache.metrics.operations import Operations
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.server.audit import AuditLog
from hms_cache.server.authorization.guard import Guard
from hms_cache.server.authorization.hot_requests import AuthorizedHotPath
from hms_cache.server.calls import Handler
from hms_cache.server.dispatch import CallObserver, Dispatcher
from hms_cache.server.hot_path import HotPath, PositionSource
from hms_cache.server.listener import Listener
from hms_cache.server.loads.traffic import traffic_by
from hms_cache.server.method_pools import SCHEDULED_POOLS, PoolName, ThreadPools
from hms_cache.server.port import Port
from hms_cache.server.stores import Stores
from hms_cache.server.thread_pool import Connections, ThreadPool


class MetastoreServer:
    """Serves the metastore protocol. `start` and `stop` run on the event loop."""

    def __init__(
        self,
        stores: Stores,
        handlers: Mapping[str, Handler],
        settings: ServerSettings,
        observe: CallObserver | None = None,
        cache: Reading | None = None,
        position_source: Callable[[asyncio.AbstractEventLoop], PositionSource] | None = None,
        operations: Operations | None = None,
        *,
        slow_call_s: float = math.inf,
        max_connections: int | None = None,
        on_transaction_thread: Callable[[], None] | None = None,
        connections: Connections | None = None,
        observe_wait: Callable[[str, float], None] | None = None,
        authorizer: Authorizer | None = None,
        loads: CallLoads | None = None,
    ) -> None:
        """`cache` and `position_source`: if both are given, hot requests are answered by their bytes, except with
        `audit = all`, which needs the decoded request for the line of each call, and with an authorizer that decides
        anew each time.

        `on_transaction_thread` runs first on each thread of the pool of transactions. `connections`: those to the
        database; a call past its time limit loses its connection. `observe_wait`: gets the name of the pool and the
        seconds. `authorizer`: authorizes every call; without one, everybody may do everything. `slow_call_s`: longer
        calls are logged. `max_connections`: fewer than the setting, if the system allows fewer.
        """
        self._guard = Guard(authorizer) if authorizer is not None else None
        is_kept = settings.audit != "all" and (authorizer is None or authorizer.keeps_answers)
        self._hot = (cache, position_source) if cache and position_source and is_kept else None
        self._source: PositionSource | None = None
        self.audit = AuditLog(settings.audit, settings.audit_format, settings.audit_queue_bytes)
        threads = {
            PoolName.TRANSACTIONS: settings.transaction_threads,
            PoolName.READS: settings.threads,
            PoolName.WRITES: settings.write_threads,
            PoolName.HEAVY: settings.heavy_threads,
        }
        self.pools = ThreadPools(
            {
                name: ThreadPool(
                    count,
                    name.value,
                    max_waiting=settings.max_waiting_per_pool,
                    on_thread_start=on_transaction_thread if name is PoolName.TRANSACTIONS else None,
                    connections=connections,
                    observe_wait=observe_wait,
                    is_scheduled=name in SCHEDULED_POOLS,
                    max_large=settings.large_reply_threads if name is PoolName.READS else None,
                )
                for name, count in threads.items()
            }
        )
        self.dispatcher = Dispatcher(
            handlers,
            stores,
            self.audit,
            slow_call_s=slow_call_s,
            observe=observe,
            keep=cache if self._hot else None,
            operations=operations,
            guard=self._guard,
            loads=loads,
            large_reply_bytes=settings.large_reply_bytes,
        )
        self.listener = Listener(self.dispatcher, self.pools, settings, max_connections)

    def thread_pool_loads(self) -> tuple[ThreadPoolLoad, ...]:
        """What each thread pool does now. From any thread."""
        return tuple(pool.load() for pool in self.pools.by_name.values())

    def traffic_by(self, of: Literal["user", "address"]) -> tuple[Traffic, ...]:
        """Traffic of the open connections; those to which the most was sent come first. From any thread."""
        return traffic_by(of, self.listener.admission.everyone())

    async def start(self, ports: Sequence[Port], *, reuse_port: bool = False) -> None:
        """Starts threads and listens. Raises ListenError when a port is taken."""
        self.audit.start()
        self.pools.start()
        if self._hot is not None:
            loop = asyncio.get_running_loop()
            reading, make_source = self._hot
            self._source = make_source(loop)
            self.listener.hot_path = HotPath(reading, self._source, loop)
            if self._guard is not None:
                self.listener.authorized_hot_path = partial(AuthorizedHotPath, self.listener.hot_path, self._guard)
        await self.listener.start(ports, reuse_port=reuse_port)

    async def stop(self) -> None:
        """Drains: accepts no connections, lets running calls answer, then ends the threads and writes out the audit
        log."""
        await self.listener.drain()
        if self._source is not None:
            self._source.close()
        self.pools.stop(timeout_s=1.0)
        self.audit.stop()
