from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hms_cache.config.sections import EventSettings
from hms_cache.notifications.events import EventHeader
from hms_cache.notifications.poller import Poller
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import NotificationLog
from tests.manual_clock import ManualClock
from tests.notifications.log_writer import LogWriter, RecordingSink, UnreliableLog


@dataclass
class Stage:
    """A poller with all its parts."""

    database: Database
    writer: LogWriter
    log: UnreliableLog
    sink: RecordingSink
    clock: ManualClock
    poller: Poller

    def new_poller(self, header_filter: Callable[[EventHeader], str | None] | None = None, **settings: float) -> Poller:
        """Replaces the first by another poller of the same log and sink."""
        events = EventSettings(**settings)  # type: ignore[arg-type]
        self.poller = Poller(self.log, self.sink, self.clock, events, header_filter=header_filter)
        return self.poller


@pytest.fixture
def stage(sqlite_database: Database) -> Stage:
    """A poller that is not started, on an empty log."""
    log, sink, clock = UnreliableLog(NotificationLog(sqlite_database)), RecordingSink(), ManualClock()
    return Stage(sqlite_database, LogWriter(sqlite_database), log, sink, clock, Poller(log, sink, clock))


@pytest.fixture
def running(stage: Stage) -> Stage:
    """The same, with three events in the log, started and at the log's end."""
    stage.writer.create_tables(3, "old")
    stage.poller.start()
    stage.poller.step()
    stage.sink.resets.clear()
    return stage
