"""Clients that read the log, however slowly, delay no position check and no step of the poller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from hms_cache.config.sections import DatabaseSettings
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.store.engine.database import Database, read_log_end
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest, NotificationEventsCountRequest
from tests.databases import closing

READS: dict[str, Callable[[NotificationLog], object]] = {
    "get_next_notification": lambda log: log.get_next_notification(NotificationEventRequest(0, 100)),
    "get_notification_events_count": lambda log: log.get_notification_events_count(
        NotificationEventsCountRequest(0, "*")
    ),
    "get_current_notificationEventId": lambda log: log.current_event_id(),
}
LIMIT_S = 30


@contextmanager
def held_up(database: Database, threads: set[int], begun: threading.Semaphore) -> Iterator[None]:
    """Statements of these threads wait until the end."""
    go_on = threading.Event()

    def hold(*_: Any) -> None:
        if threading.get_ident() in threads:
            begun.release()
            assert go_on.wait(LIMIT_S)

    for engine in database.engines:
        event.listen(engine, "before_cursor_execute", hold)
    try:
        yield
    finally:
        go_on.set()  # the listeners go with the database's engines


@pytest.mark.parametrize("method", READS)
def test_busy_readers_of_the_log_hold_up_no_position_check(method: str, initialized_database_url: str) -> None:
    busy = 2
    options = DatabaseSettings(pool_size=busy, pool_timeout_s=5)
    with closing(Database(initialized_database_url, options)) as database:
        log = NotificationLog(database)
        threads: set[int] = set()
        begun = threading.Semaphore(0)
        failed: list[BaseException] = []

        def read() -> None:
            threads.add(threading.get_ident())
            try:
                READS[method](log)
            except BaseException as error:
                failed.append(error)

        readers = [threading.Thread(target=read) for _ in range(busy)]
        with held_up(database, threads, begun):
            for reader in readers:
                reader.start()
            for _ in range(busy):
                assert begun.acquire(timeout=LIMIT_S)
            assert read_log_end(database).last_event_id == 0
            poller = Poller(log, _Sink())
            poller.start()
            assert poller.ensure_applied(0, LIMIT_S)
            assert poller.status is PollerStatus.ACTIVE
        for reader in readers:
            reader.join(LIMIT_S)
        assert not failed


class _Sink:
    """Caches nothing."""

    def apply(self, events: Any, new_position: int) -> None:
        """Nothing to drop."""

    def reset(self, reason: str, position: int) -> None:
        """Nothing to drop."""
