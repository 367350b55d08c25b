"""The log in the three databases: head and pages, the calls of clients, retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import event, insert

from hms_cache.notifications import events as ev
from hms_cache.notifications.event_log import MAX_RECOGNIZED, RECOGNIZED_END, History, LogHead, LogPage, digest_of
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.store.engine.database import Database
from hms_cache.store.events import notification_log
from hms_cache.store.events.notification_log import EventCleaner, NotificationLog
from hms_cache.store.schema import NOTIFICATION_LOG
from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest, NotificationEventsCountRequest
from tests.databases import closing, count_statements
from tests.manual_clock import ManualClock
from tests.notifications import samples
from tests.notifications.log_writer import BUILDER, LogWriter, RecordingSink
from tests.notifications.samples import table

NOW_S = 1_700_000_000


@pytest.fixture
def writer(initialized_database: Database) -> LogWriter:
    return LogWriter(initialized_database)


def ids_of(log: NotificationLog, last_event: int = 0, **filters: object) -> list[int]:
    request = NotificationEventRequest(lastEvent=last_event, **filters)
    return [event.eventId for event in log.get_next_notification(request).events]


# ---- for the poller -------------------------------------------------------------------------------------------------


def test_head_and_pages(writer: LogWriter) -> None:
    log = NotificationLog(writer.database)
    assert log.head().last_event_id == 0
    assert log.fetch(0, 10)[:2] == ([], True)
    writer.append(*(sample.build(BUILDER) for sample in samples.SAMPLES))
    count = len(samples.SAMPLES)
    with count_statements(writer.database) as statements:
        head = log.head()
        page = log.fetch(0, 1000)
    assert statements.count == 2
    assert head.last_event_id == count
    assert page.exhausted is True
    assert [row.event_id for row in page.rows] == list(range(1, count + 1))
    for row, sample in zip(page.rows, samples.SAMPLES, strict=True):
        assert row[2:] == sample.build(BUILDER)._replace(message=row.message)[:6]
        assert read_event(row).scope == sample.scope
    assert [row.event_id for row in log.fetch(3, 2).rows] == [4, 5]
    assert log.fetch(3, 2).exhausted is False
    assert log.fetch(count, 2)[:2] == ([], True)


def test_the_head_and_a_page_are_read_together(writer: LogWriter) -> None:
    """As one after the other, on one connection: the page contains what the head counts, or is not complete."""
    log = NotificationLog(writer.database)
    head, page = log.read(0, 10)
    assert (head.last_event_id, list(page.rows), page.exhausted) == (0, [], True)
    writer.append(*(sample.build(BUILDER) for sample in samples.SAMPLES))
    count = len(samples.SAMPLES)
    for after, limit in ((0, 1000), (0, 5), (3, 2), (count - 1, 2), (count, 2), (0, count), (0, count + 1)):
        with count_statements(writer.database) as statements:
            head, page = log.read(after, limit)
        assert head == log.head() and head.last_event_id == count
        assert page[:2] == log.fetch(after, limit)[:2]
        assert all(type(row) is NotificationRow for row in page.rows)
        if not writer.database.is_sqlite:
            assert page.history is head.history
            assert statements.count == (1 if min(limit, count - after) <= notification_log._FIRST_ROWS else 2)


def test_identity_names_server_and_database(writer: LogWriter, database_server: object) -> None:
    one = NotificationLog(writer.database).head().history.server_identity
    assert one == NotificationLog(writer.database).head().history.server_identity
    other_url = database_server.initialized_database()  # type: ignore[attr-defined]
    with closing(Database(other_url)) as other:
        assert NotificationLog(other).head().history.server_identity != one
    database_server.give_back(other_url)  # type: ignore[attr-defined]


def pages_of(log: NotificationLog, way: str) -> Callable[[int, int], LogPage]:
    return log.fetch if way == "fetch" else lambda after, limit: log.read(after, limit)[1]


@pytest.mark.parametrize("way", ["fetch", "read"])
def test_large_messages_come_in_smaller_pages(writer: LogWriter, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(notification_log, "_MAX_PAGE_BYTES", 10_000)
    monkeypatch.setattr(notification_log, "_FIRST_ROWS", 3)
    fetch = pages_of(NotificationLog(writer.database), way)
    writer.append(*(ev.EventRow("CREATE_TABLE", "hive", "d", "t", "x" * 900, "json-0.2") for _ in range(30)))
    page = fetch(0, 1000)
    assert 3 < len(page.rows) < 30
    assert page.exhausted is False
    writer.append(*(ev.EventRow("CREATE_TABLE", "hive", "d", "t", "x" * 50_000, "json-0.2") for _ in range(5)))
    assert [row.event_id for row in fetch(30, 1000).rows] == [31, 32]  # never one alone: a poller would be stuck


@pytest.mark.parametrize("way", ["fetch", "read"])
def test_no_statement_brings_many_long_messages(writer: LogWriter, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    page_bytes = 4_000
    monkeypatch.setattr(notification_log, "_MAX_PAGE_BYTES", page_bytes)
    monkeypatch.setattr(notification_log, "_LONG_MESSAGE", 40)
    monkeypatch.setattr(notification_log, "_FIRST_ROWS", 20)
    brought: list[int] = []
    whole_rows = notification_log._whole_rows

    def noting(read: Sequence[Any], longest: int | None, known_event_id: int | None) -> list[Any]:
        brought.append(sum(len(row.MESSAGE or "") for row in read))
        return whole_rows(read, longest, known_event_id)

    monkeypatch.setattr(notification_log, "_whole_rows", noting)
    # A few short ones suggest that many fit, and then long ones follow; or long ones at once.
    lengths = [*[1] * 25, *[9_000] * 4, 1, 300, *[9_000] * 2, *[10] * 60, 500, 9_000]
    writer.append(*(ev.EventRow("CREATE_TABLE", "hive", "d", "t", "x" * length, "json-0.2") for length in lengths))
    fetch, found = pages_of(NotificationLog(writer.database), way), list[int]()
    while True:
        page = fetch(len(found), 1000)
        found += [len(row.message or "") for row in page.rows]
        if page.exhausted:
            break
        assert len(page.rows) > 1
    assert found == lengths
    assert max(brought) <= max(9_000, 2 * page_bytes)


@pytest.mark.parametrize("way", ["fetch", "read"])
def test_a_known_event_is_recognized_without_its_long_message(
    writer: LogWriter, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Each poll of each server would read it again: a table with a parameter of 100 MB."""
    monkeypatch.setattr(notification_log, "_MAX_PAGE_BYTES", 4 * MAX_RECOGNIZED)
    log = NotificationLog(writer.database)
    some = "ü" * RECOGNIZED_END
    long = some + "x" * MAX_RECOGNIZED + some
    messages = [long, "ü" * MAX_RECOGNIZED, "x" * (MAX_RECOGNIZED + 1), f"other{long[5:]}", f"{long}.", "short"]
    writer.append(*(ev.EventRow("CREATE_TABLE", "hive", "d", "t", message, "json-0.2") for message in messages))
    digests = []
    for event_id, message in enumerate(messages, 1):
        [whole] = log.fetch(event_id - 1, 1).rows
        assert whole.message == message
        if way == "fetch":
            rows = log.fetch(event_id - 1, 1000, event_id).rows
        else:
            rows = log.read(event_id - 1, 1000, event_id)[1].rows
        assert [row.message for row in rows[1:2]] == messages[event_id : event_id + 1], "what follows is whole"
        is_long = len(message) > MAX_RECOGNIZED
        assert (len(rows[0].message or "") < 3 * RECOGNIZED_END) == (is_long or message == "short")
        assert digest_of([whole]) == digest_of(rows[:1])
        digests.append(digest_of([whole._replace(event_id=1, event_time_s=1)]))
    assert len(set(digests)) == len(messages)


@pytest.mark.parametrize("noticed_by", ["an event", "a doubt"])
def test_a_poller_leaves_a_long_message_alone_until_it_needs_a_proof(
    noticed_by: str, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_log, "_MAX_PAGE_BYTES", 4 * MAX_RECOGNIZED)
    log = NotificationLog(writer.database)
    sink = RecordingSink()
    poller = Poller(log, sink, ManualClock())
    poller.start()
    poller.step()
    row = BUILDER.build_create_table(table("t"))
    long = f"{row.message}{' ' * 3 * MAX_RECOGNIZED}"
    writer.append(row._replace(message=long))
    read = log.read
    lengths: list[int] = []

    def noting(after_event_id: int, limit: int, known_event_id: int | None = None) -> tuple[LogHead, LogPage]:
        head, page = read(after_event_id, limit, known_event_id)
        lengths.append(max(len(one.message or "") for one in page.rows))
        return head, page

    monkeypatch.setattr(log, "read", noting)
    for _ in range(3):
        assert poller.step().outcome is StepOutcome.CAUGHT_UP
    assert lengths == [len(long)]
    history = log.head().history
    assert poller.prove(History(history.server_identity, "another session"), 10)
    poller.pause()
    poller.resume()
    for _ in range(2):
        assert poller.step().outcome is StepOutcome.CAUGHT_UP
    assert poller.step_with_proof().outcome is StepOutcome.CAUGHT_UP
    assert len(lengths) == 4 and max(lengths[1:]) < 3 * RECOGNIZED_END
    writer.set_message(poller.applied_position, f"{long[:-1]}.")
    if noticed_by == "an event":
        writer.create_tables(1)
        assert poller.step().outcome is StepOutcome.RESYNCED
    else:
        assert poller.step().outcome is StepOutcome.CAUGHT_UP
        assert poller.step_with_proof().outcome is StepOutcome.RESYNCED


def test_poller_follows_every_database(writer: LogWriter) -> None:
    sink = RecordingSink()
    poller = Poller(NotificationLog(writer.database), sink, ManualClock())
    poller.start()
    poller.step()
    writer.append(*(sample.build(BUILDER) for sample in samples.SAMPLES))
    assert poller.step().outcome is StepOutcome.CAUGHT_UP
    assert [type(event) for event in sink.events] == [sample.event_class for sample in samples.SAMPLES]
    writer.delete(*range(1, 6))
    last = writer.create_tables(2)
    assert poller.step().outcome is StepOutcome.CAUGHT_UP
    writer.delete(last)
    assert poller.step().outcome is StepOutcome.RESYNCED
    writer.restore_to(3)
    assert poller.step().outcome is StepOutcome.RESYNCED
    assert poller.applied_position == 3


# ---- for clients ----------------------------------------------------------------------------------------------------


def test_next_notification(writer: LogWriter) -> None:
    log = NotificationLog(writer.database, max_response=4)
    assert log.current_event_id() == 0
    row = BUILDER.build_create_table(table())
    writer.append(row, BUILDER.build_open_transactions(1, 1))
    assert log.current_event_id() == 2
    created, opened = log.get_next_notification(NotificationEventRequest(lastEvent=0)).events
    assert (created.eventId, created.eventType, created.catName, created.dbName, created.tableName) == (
        1, "CREATE_TABLE", "hive", "d", "t",
    )  # fmt: skip
    assert (created.message, created.messageFormat) == (row.message, row.message_format)
    assert (opened.catName, opened.dbName, opened.tableName) == (None, None, None)
    writer.create_tables(8)
    assert ids_of(log, 2, maxEvents=3) == [3, 4, 5]
    for unlimited in (0, -1, None, 100):
        assert ids_of(log, 2, maxEvents=unlimited) == [3, 4, 5, 6]
    assert ids_of(log, 10) == []


def test_next_notification_filters(writer: LogWriter) -> None:
    log = NotificationLog(writer.database)
    writer.append(
        BUILDER.build_create_table(table("a")),
        BUILDER.build_create_table(table("b")),
        BUILDER.build_drop_table(table("a")),
        BUILDER.build_create_table(table("a", "d2")),
        BUILDER.build_open_transactions(1, 1),
        BUILDER.build_create_table(table("a", catName="spark")),
        BUILDER.build_allocate_write_ids("d", "a", [(1, 1)]),
    )
    assert ids_of(log, eventTypeSkipList=["CREATE_TABLE", "OPEN_TXN"]) == [3, 7]
    assert ids_of(log, eventTypeList=["CREATE_TABLE"]) == [1, 2, 4, 6]
    assert ids_of(log, catName="HIVE") == [1, 2, 3, 4]
    assert ids_of(log, dbName="D") == [1, 2, 3, 6, 7]
    assert ids_of(log, dbName="") == ids_of(log, catName="") == []
    assert ids_of(log, dbName="d", tableNames=["A", "c"]) == [1, 3, 6, 7]
    assert ids_of(log, catName="hive", dbName="d", tableNames=["a"], eventTypeSkipList=["DROP_TABLE"]) == [1]
    assert ids_of(log, eventTypeSkipList=[], tableNames=[]) == [1, 2, 3, 4, 5, 6, 7]


def test_events_count(writer: LogWriter) -> None:
    log = NotificationLog(writer.database)
    writer.append(
        BUILDER.build_create_table(table("a")),
        BUILDER.build_create_table(table("a", "d2")),
        BUILDER.build_open_transactions(1, 1),
        BUILDER.build_create_table(table("b", catName="spark")),
        BUILDER.build_create_table(table("b")),
    )

    def count(from_event_id: int = 0, **fields: object) -> int:
        request = NotificationEventsCountRequest(fromEventId=from_event_id, **fields)
        answer: int = log.get_notification_events_count(request).eventsCount
        return answer

    assert count(dbName="*") == 4
    assert count(dbName="d") == 3  # with the transaction
    assert count(dbName="d", catName="spark") == 2
    assert count(1, dbName="d") == 2
    assert count(dbName="d", toEventId=3) == 2
    assert count(dbName="*", limit=3) == 3
    assert count(dbName="*", limit=300) == 4
    assert count(dbName="d", tableNames=["b"]) == 1
    assert count(99, dbName="*") == 0
    assert count(dbName="*", limit=0) == 0
    assert count(dbName="*", limit=-1) == -1


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_a_count_with_a_limit_ends_there(writer: LogWriter) -> None:
    """A replication that asks whether there are new events does not cause a whole long log to be counted."""
    log = NotificationLog(writer.database)
    writer.create_tables(500)
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    for engine in writer.database.engines:
        event.listen(engine, "checkout", lambda driver, *_: driver.set_progress_handler(step, 1))
    taken = {}
    for limit in (1, 10, 400, None):
        steps = 0
        request = NotificationEventsCountRequest(fromEventId=0, dbName="d", limit=limit)
        assert log.get_notification_events_count(request).eventsCount == (limit or 500)
        taken[limit] = steps
    assert taken[1] < taken[10] < taken[None] / 10, taken


# ---- retention ------------------------------------------------------------------------------------------------------


def test_old_events_go_in_bounded_batches_from_the_front(writer: LogWriter) -> None:
    writer.create_tables(10)
    writer.set_time(NOW_S - 100, *range(1, 8))
    writer.set_time(NOW_S - 10, 8, 9, 10)
    cleaner = EventCleaner(writer.database, ManualClock(epoch_s=NOW_S))
    assert cleaner.clean_events(1_000, 3) == 0
    assert cleaner.clean_events(50, 3) == 7
    assert writer.ids() == [8, 9, 10]
    assert cleaner.clean_events(50, 3) == 0


def test_no_hole_opens_behind_a_younger_event(writer: LogWriter) -> None:
    """The clock of the server that wrote event 4 is ahead."""
    writer.create_tables(8)
    writer.set_time(NOW_S - 100, 1, 2, 3, 5, 6)
    writer.set_time(NOW_S, 4, 7, 8)
    assert EventCleaner(writer.database, ManualClock(epoch_s=NOW_S)).clean_events(50, 100) == 3
    assert writer.ids() == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("ahead", [[1, 2, 3], [3, 4, 5, 6, 7, 8], [9, 12]])
@pytest.mark.parametrize("batch", [2, 100])
def test_times_that_are_to_come_keep_nothing(writer: LogWriter, ahead: list[int], batch: int) -> None:
    """A server whose clock was years ahead wrote some events: the log would grow until that time."""
    writer.create_tables(12)
    writer.set_time(NOW_S - 100, *range(1, 11))
    writer.set_time(NOW_S - 10, 11, 12)
    writer.set_time(NOW_S + 1_000_000, *ahead)
    cleaner = EventCleaner(writer.database, ManualClock(epoch_s=NOW_S))
    cleaner.clean_events(50, batch)
    assert writer.ids() == [11, 12]


def test_times_that_are_to_come_tell_nothing(writer: LogWriter) -> None:
    """This server's clock is behind, or all events are from a server whose clock is ahead: none is known to be old."""
    writer.create_tables(6)
    writer.set_time(NOW_S + 1_000_000, *range(1, 7))
    cleaner = EventCleaner(writer.database, ManualClock(epoch_s=NOW_S))
    assert cleaner.clean_events(50, 2) == 0
    writer.set_time(NOW_S - 10, 6)
    assert cleaner.clean_events(50, 2) == 0
    writer.set_time(NOW_S - 100, 5)
    assert cleaner.clean_events(50, 2) == 5


def test_newest_event_stays(writer: LogWriter) -> None:
    writer.create_tables(4)
    sink = RecordingSink()
    poller = Poller(NotificationLog(writer.database), sink, ManualClock())
    poller.start()
    poller.step()
    writer.set_time(NOW_S - 100, 1, 2, 3)
    cleaner = EventCleaner(writer.database, ManualClock(epoch_s=NOW_S + 1_000_000_000))
    assert cleaner.clean_events(1, 2) == 3
    assert cleaner.clean_events(1, 2) == 0
    assert writer.ids() == [4]
    assert poller.step().outcome is StepOutcome.CAUGHT_UP


def test_batches_that_end_on_the_last_event(writer: LogWriter) -> None:
    writer.create_tables(6)
    writer.set_time(1, *range(1, 7))
    assert EventCleaner(writer.database, ManualClock(epoch_s=NOW_S)).clean_events(1, 1) == 5
    assert writer.ids() == [6]


def test_cleaners_of_several_servers(initialized_database_url: str) -> None:
    """They take turns; together they delete what one would have, each event once."""
    with closing(Database(initialized_database_url)) as database:
        writer = LogWriter(database)
        writer.create_tables(200)
        writer.set_time(NOW_S - 100, *range(1, 151))
        writer.set_time(NOW_S, *range(151, 201))
        start = Barrier(4, timeout=60)

        def clean(_: int) -> int:
            with closing(Database(initialized_database_url)) as own:
                start.wait(60)
                return EventCleaner(own, ManualClock(epoch_s=NOW_S)).clean_events(50, 10)

        with ThreadPoolExecutor(4) as pool:
            deleted = list(pool.map(clean, range(4)))
        assert sum(deleted) == 150
        assert writer.ids() == list(range(151, 201))


def test_statements_of_a_batch_do_not_depend_on_its_size(writer: LogWriter) -> None:
    writer.create_tables(120)
    writer.set_time(NOW_S - 100, *range(1, 111))
    cleaner = EventCleaner(writer.database, ManualClock(epoch_s=NOW_S))
    cleaner.clean_events(1_000, 100)
    counts = []
    for ttl_s in (90, 50):
        writer.execute(insert(NOTIFICATION_LOG).values(
            NL_ID=ttl_s + 10_000, EVENT_ID=-ttl_s, EVENT_TIME=NOW_S - 100, EVENT_TYPE="DROP_TABLE"
        ))  # fmt: skip
        with count_statements(writer.database) as statements:
            assert cleaner.clean_events(ttl_s, 1000) == (111 if ttl_s == 90 else 1)
        counts.append(statements.count)
    assert counts[0] == counts[1] <= 4
