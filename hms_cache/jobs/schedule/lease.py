"""A lease on tables, in the database: only one job at a time works on a table, wherever it runs.

A lease is an exclusive lock of Hive's metastore (HIVE_LOCKS), on names that no table has: queries do not wait for it,
and every metastore of the database can show it (``SHOW LOCKS``, ``hms-cache locks list``). The holder sends heartbeats;
a killed holder loses the lease after the metastore's `txn.timeout`.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable

from thrift.Thrift import TException

from hms_cache.client import MetastoreClient, Metastores
from hms_cache.errors import HmsCacheError
from hms_cache.jobs.frame.heartbeats import GONE, UNANSWERED, timeout_s
from hms_cache.metadata.lease_names import bounded, lease_of
from hms_cache.system_user import system_user
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CheckLockRequest,
    DataOperationType,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    UnlockRequest,
)

_CHECK_INTERVAL_S = 1.0

_OF_THE_TIME = 1 / 6
"""Fraction of the timeout between heartbeats."""

_MAX_WAIT_S = 10.0
"""Maximum wait for a heartbeat: it takes a statement or two."""

Target = tuple[str, str | None]
"""A database (``catalog.database``) or another namespace, and a table in it; None: all of it."""


class LeaseBusyError(HmsCacheError):
    """Another job holds a lease on one of the tables."""

    retriable = True


class Lease:
    """A lease that is held until `release`, or until it is lost.

    One thread sends heartbeats; only that thread uses `_client` once the lease is held.
    """

    def __init__(
        self, metastore: str | Metastores, targets: Iterable[Target], *, agent_info: str, wait_s: float = 0
    ) -> None:
        """Acquires the lease on all targets or on none; waits at most `wait_s`.

        Raises LeaseBusyError, MetastoreUnavailableError, TException.
        """
        self._client = MetastoreClient(metastore)
        self._ended = threading.Event()
        self.lost = threading.Event()
        """Set when the lease is no longer held: another job may work on the tables."""

        try:
            self._timeout_s = timeout_s(self._client)
            self._lock_id = self._acquire(list(targets), agent_info, wait_s)
        except BaseException:
            self._client.close()
            raise
        self._client.close()
        # An unresponsive metastore is noticed while the lease is still held.
        max_wait_s = min(_MAX_WAIT_S, self._timeout_s * _OF_THE_TIME)
        self._client = MetastoreClient(metastore, connect_timeout_s=max_wait_s, call_timeout_s=max_wait_s)
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def _acquire(self, targets: list[Target], agent_info: str, wait_s: float) -> int:
        components = [_component(*target) for target in dict.fromkeys(targets)]
        request = LockRequest(
            component=components, user=system_user(), hostname=socket.gethostname(), agentInfo=agent_info
        )
        answer = self._client.call("lock", request)
        until_s = time.monotonic() + wait_s
        pause = threading.Event()
        unanswered: Exception | None = None
        try:
            while answer.state == LockState.WAITING:
                remaining_s = until_s - time.monotonic()
                if remaining_s <= 0:
                    break
                pause.wait(min(_CHECK_INTERVAL_S, remaining_s))
                try:
                    answer, unanswered = self._client.call("check_lock", CheckLockRequest(lockid=answer.lockid)), None
                except GONE:
                    raise
                except UNANSWERED as error:  # as in `_keep`
                    unanswered = error
            if unanswered is not None:
                raise unanswered
        except BaseException:
            self._unlock(answer.lockid)
            raise
        if answer.state == LockState.ACQUIRED:
            return int(answer.lockid)
        self._unlock(answer.lockid)
        raise LeaseBusyError("another job works on these tables: " + ", ".join(map(_text, targets[:5])))

    def _keep(self) -> None:
        alive_s = time.monotonic()
        while not self._ended.wait(self._timeout_s * _OF_THE_TIME):
            try:
                self._client.call("heartbeat", HeartbeatRequest(lockid=self._lock_id))
                alive_s = time.monotonic()
            except GONE:
                self.lost.set()
                return
            except UNANSWERED:  # the lease is held until it times out
                if time.monotonic() - alive_s > self._timeout_s * 2 / 3:
                    self.lost.set()
                    return

    def release(self) -> None:
        """Releases the lease; if no metastore can be reached, it times out."""
        self._ended.set()
        self._thread.join()
        self._unlock(self._lock_id)
        self._client.close()

    def _unlock(self, lock_id: int) -> None:
        try:
            self._client.call("unlock", UnlockRequest(lockid=lock_id))
        except (HmsCacheError, TException):
            return  # it times out


def _component(namespace: str, table: str | None) -> LockComponent:
    return LockComponent(
        type=LockType.EXCLUSIVE,
        level=LockLevel.DB if table is None else LockLevel.TABLE,
        dbname=lease_of(namespace),
        tablename=None if table is None else bounded(table),
        operationType=DataOperationType.NO_TXN,
        isTransactional=False,
    )


def _text(target: Target) -> str:
    return ".".join(part for part in (target[0], target[1]) if part)


def is_running(pid: int, kill: Callable[[int, int], None] = os.kill) -> bool:
    """Whether a process with this id exists on this machine."""
    try:
        kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
