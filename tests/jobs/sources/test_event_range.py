"""Positions in the log and the stream reader over a real log, driven as Spark drives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import delete, insert, literal, select, text, update

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.sources import event_range
from hms_cache.jobs.sources.event_range import EventLogError
from hms_cache.jobs.sources.events import EventOptions, HmsEventsReader, HmsEventsStreamReader
from hms_cache.notifications.event_log import EventLog, LogPage
from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE

LOG = NOTIFICATION_LOG.c


def append(database: Database, count: int, name: str = "t") -> None:
    def work(transaction: WriteTransaction) -> None:
        for number in range(count):
            row = EventRow("DROP_TABLE", "hive", "d", f"{name}{number}", '{"table": "é\\u0041"}', "json-0.2")
            transaction.append_event(row)

    run_write(database, work)


def trim(database: Database, last_event_id: int) -> None:
    run_write(
        database,
        lambda transaction: transaction.connection.execute(
            delete(NOTIFICATION_LOG).where(LOG.EVENT_ID <= last_event_id)
        ),
    )


def stream(database: Database, **options: str) -> HmsEventsStreamReader:
    url = database.url.render_as_string(hide_password=False)
    return HmsEventsStreamReader(EventOptions.of_options({"database": url, **options}))


def ids(reader: Any, start: dict[str, object], end: dict[str, object]) -> list[int]:
    return [row[0] for part in reader.partitions(start, end) for row in reader.read(part)]


@contextmanager
def failing(text: str) -> Iterator[None]:
    with pytest.raises(EventLogError) as raised:
        yield
    assert text in str(raised.value)


def test_batches_follow_each_other_within_the_limit(sqlite_database: Database) -> None:
    append(sqlite_database, 25)
    reader = stream(sqlite_database, max_events_per_batch="10", events_per_slice="4")
    # Spark calls in this order.
    first = reader.latestOffset()
    assert first["event_id"] == 10
    place = reader.initialOffset()
    assert place == {"event_id": 0, "digest": None}
    batches = []
    while (end := reader.latestOffset()) != place:
        batches.append(ids(reader, place, end))
        place = end
    assert batches == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]
    # Without new events, the offset does not change: Spark compares its text.
    assert reader.latestOffset() == place
    append(sqlite_database, 2)
    # A restart: Spark plans an empty batch at the last offset before it requests a later one.
    again = stream(sqlite_database, max_events_per_batch="1")
    assert ids(again, place, place) == []
    assert again.latestOffset()["event_id"] == 26


class PagesOfAMetastore:
    """The log with pages that do not say whether they are the last one, as through a metastore."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.head = log.head

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        rows = self._log.fetch(after_event_id, limit, known_event_id).rows
        return LogPage(rows, exhausted=not rows)


@pytest.mark.parametrize("twice", range(1, 10))
def test_an_id_that_the_log_has_twice_is_read_twice(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, twice: int
) -> None:
    """As in logs of Hive releases without the unique index, wherever pages and slices end."""
    append(sqlite_database, 9)

    def work(transaction: WriteTransaction) -> None:
        transaction.connection.execute(text(f"DROP INDEX {NOTIFICATION_LOG.name}_EVENT_ID"))
        columns = [column for column in LOG if column.name not in ("NL_ID", "MESSAGE")]
        copy = select(literal(1000), *columns, literal("second")).where(LOG.EVENT_ID == twice)
        names = ["NL_ID", *(column.name for column in columns), "MESSAGE"]
        transaction.connection.execute(insert(NOTIFICATION_LOG).from_select(names, copy))

    run_write(sqlite_database, work)
    expected = sorted([*range(1, 10), twice])
    for rows in range(1, 5):
        monkeypatch.setattr(event_range, "ROWS_OF_A_READ", rows)
        for slice_ in ("2", "3", "100"):
            reader = stream(sqlite_database, events_per_slice=slice_)
            assert ids(reader, reader.initialOffset(), reader.latestOffset()) == expected
        log = PagesOfAMetastore(NotificationLog(sqlite_database))
        for last in range(1, 10):
            read = [row.event_id for row in event_range.read_events(log, 0, last)]
            assert read == [one for one in expected if one <= last]


def test_where_a_stream_begins(sqlite_database: Database) -> None:
    append(sqlite_database, 9)
    trim(sqlite_database, 4)
    assert stream(sqlite_database).initialOffset() == {"event_id": 4, "digest": None}
    latest = stream(sqlite_database, start="latest").initialOffset()
    assert latest["event_id"] == 9 and latest["digest"]
    after_seven = stream(sqlite_database, start="7", end="8")
    first = after_seven.initialOffset()
    assert ids(after_seven, first, after_seven.latestOffset()) == [8]
    with pytest.raises(ConfigurationError, match="start must be"):
        stream(sqlite_database, start="yesterday")


def test_the_beginning_does_not_move_before_the_first_batch(sqlite_database: Database) -> None:
    append(sqlite_database, 3)
    reader = stream(sqlite_database, start="latest")
    end = reader.latestOffset()
    append(sqlite_database, 2)
    place = reader.initialOffset()
    assert place == end and place["event_id"] == 3
    assert ids(reader, place, reader.latestOffset()) == [4, 5]


def test_a_log_trimmed_below_the_place_is_an_error(sqlite_database: Database) -> None:
    append(sqlite_database, 20)
    reader = stream(sqlite_database)
    place, end = reader.initialOffset(), reader.latestOffset()
    trim(sqlite_database, 5)
    with failing("events 1 to 5 are no longer in the notification log"):
        ids(reader, place, end)
    end["event_id"] = 12
    end["digest"] = stream(sqlite_database, start="12").initialOffset()["digest"]
    trim(sqlite_database, 15)
    restarted = stream(sqlite_database)
    with failing("event 12, the last one that was read, is no longer in the notification log"):
        restarted.partitions(end, end)


def test_a_log_trimmed_up_to_the_place_goes_on(sqlite_database: Database) -> None:
    append(sqlite_database, 20)
    reader = stream(sqlite_database)
    assert len(ids(reader, reader.initialOffset(), reader.latestOffset())) == 20
    end = reader.latestOffset()
    trim(sqlite_database, 20)
    for restarted in (reader, stream(sqlite_database)):
        assert ids(restarted, end, end) == []
        assert restarted.latestOffset() == end
    append(sqlite_database, 3)
    restarted = stream(sqlite_database)
    assert ids(restarted, end, end) == []
    assert ids(restarted, end, restarted.latestOffset()) == [21, 22, 23]
    trim(sqlite_database, 21)
    with failing("event 20, the last one that was read, is no longer in the notification log"):
        stream(sqlite_database).partitions(end, end)


def test_a_batch_reads_from_where_the_log_begins(sqlite_database: Database) -> None:
    append(sqlite_database, 12)
    trim(sqlite_database, 3)
    url = sqlite_database.url.render_as_string(hide_password=False)

    def read(**options: str) -> list[Any]:
        reader = HmsEventsReader(EventOptions.of_options({"database": url, **options}))
        return [row for part in reader.partitions() for row in reader.read(part)]

    assert [row[0] for row in read()] == list(range(4, 13))
    with failing("event 3 is no longer"):
        read(start="2")
    assert read(start="11")[0][6] == '{"table": "éA"}'
    assert read(start="11", message="raw")[0][6] == '{"table": "é\\u0041"}'
    assert read(start="11", message="none")[0][6] is None


def test_a_hole_inside_is_an_error(sqlite_database: Database) -> None:
    append(sqlite_database, 10)
    reader = stream(sqlite_database, events_per_slice="3")
    place, end = reader.initialOffset(), reader.latestOffset()
    run_write(
        sqlite_database,
        lambda transaction: transaction.connection.execute(delete(NOTIFICATION_LOG).where(LOG.EVENT_ID.in_([5, 6]))),
    )
    with failing("events 5 to 6 are no longer in the notification log"):
        ids(reader, place, end)


def test_another_history_is_an_error(sqlite_database: Database) -> None:
    append(sqlite_database, 10)
    reader = stream(sqlite_database)
    reader.initialOffset()
    end = reader.latestOffset()
    assert len(ids(reader, {"event_id": 0, "digest": None}, end)) == 10
    run_write(
        sqlite_database,
        lambda transaction: transaction.connection.execute(
            update(NOTIFICATION_LOG).where(LOG.EVENT_ID == 10).values(TBL_NAME="another")
        ),
    )
    with failing("event 10 is not the event that was read before with this id"):
        stream(sqlite_database).partitions(end, end)
    run_write(
        sqlite_database,
        lambda transaction: (
            transaction.connection.execute(delete(NOTIFICATION_LOG).where(LOG.EVENT_ID > 7)),
            transaction.connection.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=8)),
        ),
    )
    with failing("the notification log ends at event 7, but event 10 was read from it before"):
        stream(sqlite_database).partitions(end, end)
    # A running stream notices when it requests new events.
    with failing("the notification log ends at event 7"):
        reader.latestOffset()
