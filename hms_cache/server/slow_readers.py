"""Clients that take replies more slowly than they are sent: each has to take some bytes within a time limit, or its
connection is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hms_cache.event_loops import ClientTimer

if TYPE_CHECKING:
    from hms_cache.server.listener import Listener

LEAST_PROGRESS_BYTES = 64 * 1024
"""Bytes of a reply to take within `write_timeout_s`. A client that takes less is not just slow."""


class SlowReader:
    """The client of one connection, from the time when it took no more until everything written has been sent."""

    def __init__(
        self, listener: Listener, transport: asyncio.Transport, charge: Callable[[], None], abort: Callable[[], None]
    ) -> None:
        """`charge`: reports to the budget how many bytes are held; `abort` closes the connection."""
        self._listener = listener
        self._transport = transport
        self._charge = charge
        self._abort = abort
        self._timer: ClientTimer | None = None
        self.unsent_bytes = transport.get_write_buffer_size()
        self._watch()

    def _watch(self) -> None:
        timeout_s = self._listener.write_timeout_s()
        if timeout_s:
            self._timer = ClientTimer(self._listener.loop, timeout_s, self._check_overdue)

    def restart(self) -> None:
        """Applies the present limit, if a limit applied before."""
        if self._timer is not None:
            self._timer.cancel()
            self._watch()

    def end_limit(self) -> None:
        """Ends its time limit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_overdue(self) -> None:
        self._timer = None
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes > self.unsent_bytes - LEAST_PROGRESS_BYTES:
            self._listener.count_timeout("write")
            self._abort()
            return
        self.unsent_bytes = unsent_bytes
        self._charge()
        self._watch()
