"""The server as one object: workers, audit log, listener. The event loop it runs on belongs to its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hms_cache.cache.reads.reading import Reading
from hms_cache.metrics.operations import Operations
from hms_cache.server.audit import QUEUE_BYTES, AuditLog
from hms_cache.server.calls import Handler
from hms_cache.server.dispatch import CallObserver, Dispatcher
from hms_cache.server.hot_path import HotPath, PositionSource
from hms_cache.server.listener import Limits, Listener
from hms_cache.server.stores import Stores
from hms_cache.server.workers import WorkerPool


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the settings' `server` and `log` sections say."""

    limits: Limits
    threads: int
    audit: str = "writes"
    audit_format: Literal["hive", "json"] = "hive"
    audit_queue_bytes: int = QUEUE_BYTES
    slow_call_s: float = 1.0


class MetastoreServer:
    """Serves the metastore protocol. `start` and `stop` run on the event loop."""

    def __init__(
        self,
        stores: Stores,
        handlers: Mapping[str, Handler],
        options: ServerOptions,
        observe: CallObserver | None = None,
        cache: Reading | None = None,
        position_source: Callable[[asyncio.AbstractEventLoop], PositionSource] | None = None,
        operations: Operations | None = None,
    ) -> None:
        """`cache` and `position_source`: given together, hot requests are answered from their bytes.

        With `audit = all` they are not: every call has its line there, which needs the decoded request.
        """
        self._hot = (cache, position_source) if cache and position_source and options.audit != "all" else None
        self._source: PositionSource | None = None
        self.audit = AuditLog(options.audit, options.audit_format, options.audit_queue_bytes)
        self._workers = WorkerPool(options.threads)
        self.dispatcher = Dispatcher(
            handlers,
            stores,
            self.audit,
            slow_call_s=options.slow_call_s,
            observe=observe,
            keep=cache if self._hot else None,
            operations=operations,
        )
        self.listener = Listener(self.dispatcher, self._workers, options.limits)

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> tuple[str, int]:
        """Starts threads, listens, returns the address. Raises OSError when the port is taken."""
        self.audit.start()
        self._workers.start()
        if self._hot is not None:
            loop = asyncio.get_running_loop()
            reading, make_source = self._hot
            self._source = make_source(loop)
            self.listener.hot_path = HotPath(reading, self._source, loop)
        return await self.listener.start(host, port, reuse_port=reuse_port)

    async def stop(self) -> None:
        """Drains: no new connections, running calls answer, then threads end and the audit log is written out."""
        await self.listener.drain()
        if self._source is not None:
            self._source.close()
        self._workers.stop(timeout_s=1.0)
        self.audit.stop()
