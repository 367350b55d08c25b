"""A notification log that a test writes and damages, and a sink that records its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import delete, func, select, update

from hms_cache.notifications.event_log import FollowedLog, History, LogHead, LogPage
from hms_cache.notifications.events import Event, EventRow
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE
from tests.notifications.samples import table

LOG = NOTIFICATION_LOG.c
BUILDER = MessageBuilder()


class LogWriter:
    """Writes to the log of a database, as servers do, and as none does."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def append(self, *rows: EventRow) -> int:
        """Appends events in one transaction. Returns the id of the last."""

        def work(transaction: object) -> None:
            for row in rows:
                transaction.append_event(row)  # type: ignore[attr-defined]

        run_write(self.database, work)
        return self.last_event_id()

    def create_tables(self, count: int, prefix: str = "t") -> int:
        """CREATE_TABLE events of ``d.<prefix>1`` and so on, in one transaction. Returns the id of the last."""
        return self.append(*(BUILDER.build_create_table(table(f"{prefix}{number}")) for number in range(1, count + 1)))

    def last_event_id(self) -> int:
        with self.database.checking() as connection:
            return connection.execute(select(func.max(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID))).scalar_one() - 1

    def ids(self) -> list[int]:
        with self.database.checking() as connection:
            return list(connection.execute(select(LOG.EVENT_ID).order_by(LOG.EVENT_ID)).scalars())

    def execute(self, *statements: object) -> None:
        with self.database.writing() as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]
            connection.commit()

    def delete(self, *event_ids: int) -> None:
        self.execute(delete(NOTIFICATION_LOG).where(LOG.EVENT_ID.in_(event_ids)))

    def restore_to(self, event_id: int) -> None:
        """Changes the log to its state after an older copy of the database was restored."""
        self.execute(
            delete(NOTIFICATION_LOG).where(LOG.EVENT_ID > event_id),
            update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=event_id + 1),
        )

    def set_time(self, event_time_s: int, *event_ids: int) -> None:
        self.execute(update(NOTIFICATION_LOG).where(LOG.EVENT_ID.in_(event_ids)).values(EVENT_TIME=event_time_s))

    def set_message(self, event_id: int, message: str) -> None:
        self.execute(update(NOTIFICATION_LOG).where(LOG.EVENT_ID == event_id).values(MESSAGE=message))


class UnreliableLog:
    """A log whose database can become unavailable, whose server can change, and whose reads can be observed."""

    def __init__(self, log: FollowedLog) -> None:
        self.log = log
        self.away = False
        self.server_suffix = ""
        self.heads = 0
        self.renewals = 0
        self.keeps_connections = True
        self.histories: dict[History, History] = {}
        self.before_fetch: Callable[[], None] = lambda: None

    def head(self) -> LogHead:
        if self.away:
            raise DatabaseUnavailable("the database is away")
        self.heads += 1
        head = self.log.head()
        return head._replace(history=self._elsewhere(head.history))

    def _elsewhere(self, history: History) -> History:
        identity = history.server_identity + self.server_suffix
        known = self.histories.get(history)
        if known is None or known.server_identity != identity:
            known = self.histories[history] = History(identity, history.session, history.stale_reason)
        return known

    def renew(self) -> None:
        self.renewals += 1
        self.log.renew()

    def keep_connections(self, *, enabled: bool) -> None:
        self.keeps_connections = enabled
        self.log.keep_connections(enabled=enabled)

    def read(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> tuple[LogHead, LogPage]:
        """One after the other, so that a test can do something between them."""
        return self.head(), self.fetch(after_event_id, limit, known_event_id)

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        self.before_fetch()
        if self.away:
            raise DatabaseUnavailable("the database is away")
        page = self.log.fetch(after_event_id, limit, known_event_id)
        return page._replace(history=None if page.history is None else self._elsewhere(page.history))


class RecordingSink:
    """Records its calls; ``refuses`` decides which events it refuses."""

    def __init__(self) -> None:
        self.position = -1
        self.events: list[Event] = []
        self.resets: list[tuple[str, int]] = []
        self.refuses: Callable[[Event], bool] = lambda event: False
        self.refuses_reset = False
        self.before_apply: Callable[[], None] = lambda: None

    def apply(self, events: Sequence[Event], new_position: int) -> None:
        self.before_apply()
        for event in events:
            if self.refuses(event):
                raise RuntimeError(f"cannot take event {event.event_id}")
        self.events.extend(events)
        assert new_position >= self.position
        self.position = new_position

    def reset(self, reason: str, position: int) -> None:
        if self.refuses_reset:
            raise RuntimeError("cannot drop anything")
        self.resets.append((reason, position))
        self.events.clear()
        self.position = position

    @property
    def applied_ids(self) -> list[int]:
        return [event.event_id for event in self.events]
