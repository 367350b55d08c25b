"""A pool of connections that can be let go of while threads wait for one."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final, cast

from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util import queue

_MAKE_ONE: Final = cast(ConnectionPoolEntry, object())
"""In the queue of a pool that was disposed of: whoever takes it makes a connection."""


# SQLAlchemy tells of each pool and connection under the name of the class, and takes this package's level for its own.
logging.getLogger(f"{__name__}.RenewablePool").setLevel(logging.WARNING)


class RenewablePool(QueuePool):
    """As `QueuePool`, but nobody waits for a connection that `dispose` has closed.

    A thread of SQLAlchemy's own pool (2.0) that finds all connections made waits for one to be given back. If `dispose`
    closes the idle ones meanwhile, none ever is: after a failover the thread would sleep for the whole of
    `database.pool_timeout_s`, with the event poller or a write in its hands, and only then make a connection.
    """

    _is_disposed = False

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        """Nobody would take it from the queue of a pool that was disposed of: it is closed."""
        if self._is_disposed:
            record.close()
            return
        super()._do_return_conn(record)
        if self._is_disposed:
            self.dispose()  # just now, perhaps before it stood in the queue

    def _do_get(self) -> ConnectionPoolEntry:
        found = super()._do_get()
        if found is not _MAKE_ONE:
            return found
        self._put_mark()  # for the next one that waits
        return self._create_connection()

    def dispose(self) -> None:
        """Closes what is idle. New calls use another pool (`Engine.dispose`); threads that wait in this one make a
        connection each, as many at most as have waited. What is in use is closed when it is given back."""
        self._is_disposed = True
        with suppress(queue.Empty):
            while True:
                found = self._pool.get(False)
                if found is not _MAKE_ONE:
                    found.close()
        self._overflow = -self.size()
        self._put_mark()

    def _put_mark(self) -> None:
        # Full: as many were given back meanwhile as the pool may hold, and wake those that wait.
        with suppress(queue.Full):
            self._pool.put(_MAKE_ONE, False)
