"""Periodic tasks: timeouts, deletion of old rows and events, automatic compactions.

Every server of a set runs these; mutexes and row locks in the database let one of them work at a time.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from hms_cache.app.background import BackgroundTask
from hms_cache.app.stores import DatabaseStores
from hms_cache.authentication.delegation.token_manager import TokenManager
from hms_cache.config import Settings
from hms_cache.store.engine.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

#: How long a task may take to end when the server stops.
_STOP_TIMEOUT_S = 5.0

_REPORTS_INTERVAL_S = 3600.0
"""Interval of deleting old reports of clients, as in Hive."""

_FIRST_PAUSE_S = 5.0
"""Pause between the start and the first run of each task, unless its interval is shorter: in its first seconds the
server is busy with clients that reconnect, and with loading its memory."""

_PAUSES = 3.0
"""Number of intervals without housekeeping on any server that counts as an outage: one run may be late on a busy
machine."""


class Housekeeping:
    """The background tasks of the stores."""

    def __init__(self, settings: Settings, stores: DatabaseStores, tokens: TokenManager | None = None) -> None:
        self._settings = settings
        self._stores = stores
        self._tokens = tokens
        self._name = f"{socket.gethostname()}-initiator"
        self._tasks: list[BackgroundTask] = []
        if not math.isinf(interval_s := settings.transactions.housekeeping_interval_s):
            # A separate thread: deleting accumulated rows may take hours, during which calls would wait for locks of
            # clients that are gone. A late run does not time out anything either (`time_outs`).
            self._tasks.append(_task("hms-time-outs", self._time_out, interval_s))
            self._tasks.append(_task("hms-transactions", self._keep_transactions, interval_s))
        if not (math.isinf(settings.events.retention_s) and math.isinf(settings.events.marker_retention_s)):
            self._tasks.append(_task("hms-retention", self._clean_events, settings.events.clean_interval_s))
        if settings.workload.scheduled_queries and stores.auxiliary.scheduled_queries.is_available:
            interval_s = settings.workload.scheduled_query_maintenance_interval_s
            self._tasks.append(_task("hms-scheduled-queries", self._clean_scheduled_queries, interval_s))
        self._tasks.append(_task("hms-reports", self._clean_reports, _REPORTS_INTERVAL_S))
        if tokens is not None:
            interval_s = settings.authentication.token_clean_interval_s
            self._tasks.append(_task("hms-tokens", self._clean_tokens, interval_s))

    def start(self, stack: ExitStack) -> None:
        """Starts the tasks. Actions for the shutdown are pushed onto the stack."""
        for task in self._tasks:
            task.start()
            stack.callback(task.stop, _STOP_TIMEOUT_S)

    def _time_out(self) -> float:
        try:
            self._give_up_timed_out()
        except DatabaseUnavailable as error:
            _log.warning("nothing times out while the database is unavailable: %s", error)
        except Exception:
            _log.exception("what has timed out could not be aborted")
        return self._settings.transactions.housekeeping_interval_s

    def _keep_transactions(self) -> float:
        transactions = self._stores.transactions
        steps: list[Callable[[], object]] = [transactions.clean, transactions.keep_compactions]
        if self._settings.compactions.initiator:
            steps.append(partial(transactions.initiate_compactions, self._name))
        for step in steps:
            try:
                step()
            except DatabaseUnavailable as error:
                _log.warning("no housekeeping while the database is unavailable: %s", error)
                break
            except Exception:
                # One row that cannot be read must not prevent the other steps.
                _log.exception("a step of the housekeeping failed; the others go on")
        return self._settings.transactions.housekeeping_interval_s

    def _give_up_timed_out(self) -> None:
        interval_s = self._settings.transactions.housekeeping_interval_s
        given_up = self._stores.transactions.give_up_timed_out(longest_pause_s=_PAUSES * interval_s)
        if given_up.txns or given_up.locks or given_up.rebuild_locks:
            _log.info(
                "aborted %d transactions, and released %d locks and %d rebuild locks, without a heartbeat",
                *(given_up.txns, given_up.locks, given_up.rebuild_locks),
            )

    def _clean_events(self) -> float:
        events = self._settings.events
        try:
            cleaner = self._stores.event_cleaner
            if not math.isinf(events.retention_s):
                deleted = cleaner.clean_events(events.retention_s, events.clean_batch_size)
                if deleted:
                    _log.info("deleted %d events older than %g s", deleted, events.retention_s)
            if not math.isinf(events.marker_retention_s):
                deleted = cleaner.clean_markers(events.marker_retention_s)
                if deleted:
                    _log.info("deleted %d markers on partitions older than %g s", deleted, events.marker_retention_s)
        except DatabaseUnavailable as error:
            _log.warning("no events are deleted while the database is unavailable: %s", error)
        return events.clean_interval_s

    def _clean_scheduled_queries(self) -> float:
        try:
            cleaned = self._stores.auxiliary.scheduled_queries.clean()
            if cleaned.timed_out or cleaned.deleted:
                _log.info(
                    "timed out %d executions of scheduled queries, deleted %d", cleaned.timed_out, cleaned.deleted
                )
        except DatabaseUnavailable as error:
            _log.warning("scheduled queries are not maintained while the database is unavailable: %s", error)
        return self._settings.workload.scheduled_query_maintenance_interval_s

    def _clean_reports(self) -> float:
        try:
            cleaned = self._stores.auxiliary.runtime_statistics.clean()
            if cleaned.statistics or cleaned.metrics:
                _log.info(
                    "deleted %d runtime statistics and %d replication metrics that have expired",
                    *(cleaned.statistics, cleaned.metrics),
                )
        except DatabaseUnavailable as error:
            _log.warning("no runtime statistics are deleted while the database is unavailable: %s", error)
        return _REPORTS_INTERVAL_S

    def _clean_tokens(self) -> float:
        assert self._tokens is not None
        try:
            cleaned = self._tokens.clean()
            if cleaned.tokens or cleaned.keys:
                _log.info("deleted %d delegation tokens and %d keys that have expired", cleaned.tokens, cleaned.keys)
        except DatabaseUnavailable as error:
            _log.warning("no delegation tokens are deleted while the database is unavailable: %s", error)
        return self._settings.authentication.token_clean_interval_s


def _task(name: str, work: Callable[[], float], interval_s: float) -> BackgroundTask:
    return BackgroundTask(name, work, first_pause_s=min(_FIRST_PAUSE_S, interval_s))
