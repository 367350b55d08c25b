"""A connection pool that can be disposed of while threads wait for a connection."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final, cast

from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util import queue

_MAKE_ONE: Final = cast(ConnectionPoolEntry, object())
"""Queue item of a disposed pool: the thread that takes it opens a connection."""


# SQLAlchemy logs each pool and connection under the name of the class, at this package's level.
logging.getLogger(f"{__name__}.RenewablePool").setLevel(logging.WARNING)


class RenewablePool(QueuePool):
    """Like `QueuePool`, but no thread waits for a connection that `dispose` has closed.

    In SQLAlchemy's own pool (2.0), if all connections are in use, a thread waits until one is returned. If `dispose`
    closes idle connections meanwhile, none is ever returned: after a failover the thread, which may be the event poller
    or a writer, would wait for all of `database.pool_timeout_s` before it opens a connection.
    """

    _is_disposed = False

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        """Closes a connection that is returned to a disposed pool: no thread would take it from the queue."""
        if self._is_disposed:
            record.close()
            return
        super()._do_return_conn(record)
        if self._is_disposed:
            self.dispose()  # disposed of just now, perhaps before the connection was in the queue

    def _do_get(self) -> ConnectionPoolEntry:
        found = super()._do_get()
        if found is not _MAKE_ONE:
            return found
        self._put_mark()  # for the next waiting thread
        return self._create_connection()

    def dispose(self) -> None:
        """Closes idle connections. New calls use another pool (`Engine.dispose`). Each thread that waits in this one
        opens a connection. Connections in use are closed when they are returned."""
        self._is_disposed = True
        with suppress(queue.Empty):
            while True:
                found = self._pool.get(False)
                if found is not _MAKE_ONE:
                    found.close()
        self._overflow = -self.size()
        self._put_mark()

    def _put_mark(self) -> None:
        # If the queue is full, as many connections were returned meanwhile as the pool may hold; they wake the waiting
        # threads.
        with suppress(queue.Full):
            self._pool.put(_MAKE_ONE, False)
