"""The poller on a real log: batches, holes, other histories, bad events, outages, waiting readers."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import insert, update

from hms_cache.metadata.object_names import TableName
from hms_cache.metrics import Metrics
from hms_cache.notifications import events as ev
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.notifications.scope import EVERYTHING
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE
from tests.notifications.conftest import Stage
from tests.notifications.log_writer import BUILDER, RecordingSink, UnreliableLog
from tests.notifications.samples import table

# ---- following ------------------------------------------------------------------------------------------------------


def test_start_drops_everything_and_begins_at_the_end(stage: Stage) -> None:
    stage.writer.create_tables(3)
    stage.poller.start()
    assert stage.poller.status is PollerStatus.NEEDS_RESYNC
    result = stage.poller.step()
    assert result.outcome is StepOutcome.RESYNCED
    assert stage.poller.status is PollerStatus.ACTIVE
    assert stage.sink.resets == [("starting: nothing is known yet", 3)]
    assert stage.sink.events == []
    assert stage.poller.applied_position == 3


def test_events_arrive_in_order_in_batches(running: Stage) -> None:
    poller = running.new_poller(batch_size=4)
    poller.start()
    poller.step()
    running.writer.create_tables(10)
    results = [poller.step() for _ in range(4)]
    assert [result.outcome for result in results] == [StepOutcome.MORE, StepOutcome.MORE] + [StepOutcome.CAUGHT_UP] * 2
    assert [result.received for result in results] == [4, 4, 2, 0]
    assert [result.next_step_in_s > 0 for result in results] == [False, False, True, True]
    assert running.sink.applied_ids == list(range(4, 14))
    assert running.sink.position == poller.applied_position == 13


def test_empty_log_is_followed_from_the_first_event(stage: Stage) -> None:
    stage.poller.start()
    stage.poller.step()
    assert stage.poller.step().outcome is StepOutcome.CAUGHT_UP
    stage.writer.create_tables(2)
    stage.poller.step()
    assert stage.sink.applied_ids == [1, 2]
    assert len(stage.sink.resets) == 1


def test_skipped_ids_move_the_position(running: Stage) -> None:
    poller = running.new_poller(header_filter=lambda header: "boring" if header.table == "t1" else None)
    poller.start()
    poller.step()
    running.writer.create_tables(2)
    running.writer.create_tables(1)
    poller.step()
    assert running.sink.applied_ids == [5]
    assert running.sink.position == 6
    statistics = poller.statistics()
    assert (statistics.received, statistics.applied, statistics.skipped) == (3, 1, {"boring": 2})


def test_filter_that_fails_skips_nothing(running: Stage) -> None:
    def broken(header: ev.EventHeader) -> str | None:
        raise KeyError(header.table)

    poller = running.new_poller(header_filter=broken)
    poller.start()
    poller.step()
    running.writer.create_tables(2)
    poller.step()
    assert running.sink.applied_ids == [4, 5]


def test_stored_position_is_continued_if_it_is_proven(running: Stage) -> None:
    stored = running.poller.position()
    running.writer.create_tables(2)
    poller = running.new_poller()
    poller.start(stored)
    assert poller.status is PollerStatus.NEEDS_RESYNC
    assert poller.step().outcome is StepOutcome.CAUGHT_UP
    assert running.sink.resets == []
    assert running.sink.applied_ids == [4, 5]


def test_stored_position_of_another_history_is_not_used(running: Stage) -> None:
    stored = running.poller.position()
    running.writer.restore_to(2)
    running.writer.create_tables(1, "other")
    poller = running.new_poller()
    poller.start(stored)
    assert poller.step().outcome is StepOutcome.RESYNCED
    assert len(running.sink.resets) == 1
    assert poller.applied_position == 3


# ---- P7: holes and other histories ----------------------------------------------------------------------------------


def assert_healed(running: Stage, position: int, reason: str) -> None:
    assert [at for _, at in running.sink.resets] == [position]
    assert reason in running.sink.resets[0][0]
    assert running.sink.events == []
    assert running.poller.status is PollerStatus.ACTIVE
    assert running.poller.applied_position == position
    assert running.poller.statistics().resyncs == 2
    last = running.writer.create_tables(1, "afterwards")
    running.poller.step()
    assert running.sink.applied_ids == [last]


def test_log_trimmed_under_a_running_poller(running: Stage) -> None:
    last = running.writer.create_tables(5)
    running.writer.delete(*range(1, last))
    assert running.poller.step().outcome is StepOutcome.RESYNCED
    assert_healed(running, last, "event 3 is no longer in the log")


@pytest.mark.parametrize("missing", [(4,), (5, 6), (7,), (8,)])
def test_hole_anywhere(running: Stage, missing: tuple[int, ...]) -> None:
    assert running.writer.create_tables(5) == 8
    running.writer.delete(*missing)
    running.poller.step()
    assert_healed(running, 8, f"events {missing[0]} to {missing[-1]} are missing")


def test_log_emptied_under_a_running_poller(running: Stage) -> None:
    running.writer.delete(1, 2, 3)
    running.poller.step()
    assert_healed(running, 3, "event 3 is no longer in the log")


def test_hole_beyond_the_batch_is_found_when_its_turn_comes(running: Stage) -> None:
    poller = running.new_poller(batch_size=2)
    poller.start()
    poller.step()
    running.sink.resets.clear()
    running.writer.create_tables(5)
    running.writer.delete(8)
    assert [poller.step().outcome for _ in range(3)] == [StepOutcome.MORE, StepOutcome.MORE, StepOutcome.RESYNCED]
    assert running.sink.resets == [("events 8 to 8 are missing from the log", 8)]


def test_database_restored_to_an_older_copy(running: Stage) -> None:
    running.writer.restore_to(1)
    running.poller.step()
    assert_healed(running, 1, "the log ends at event 1, before the last one applied, 3")


@pytest.mark.parametrize("later_events", [1, 2, 30])
def test_restored_database_that_has_moved_on(running: Stage, later_events: int) -> None:
    running.writer.restore_to(2)
    last = running.writer.create_tables(later_events, "other")
    running.poller.step()
    assert_healed(running, last, "event 3 is not the one that was applied")


def test_changed_row_under_the_same_id(running: Stage) -> None:
    running.writer.set_message(3, "something else")
    running.poller.step()
    assert_healed(running, 3, "event 3 is not the one that was applied")


def test_other_server(running: Stage) -> None:
    running.log.server_suffix = "/2"
    running.poller.step()
    assert_healed(running, 3, "the database server is another one")


def test_id_that_stands_in_the_log_twice(running: Stage) -> None:
    # Hive releases without the unique index could do this; SQLite's schema has the index, so it is dropped.
    running.writer.create_tables(3)
    with running.database.writing() as connection:
        connection.exec_driver_sql('DROP INDEX "NOTIFICATION_LOG_EVENT_ID"')
        twin = BUILDER.build_drop_table(table("twin"))
        connection.execute(
            insert(NOTIFICATION_LOG).values(
                NL_ID=999, EVENT_ID=5, EVENT_TIME=1, EVENT_TYPE=twin.event_type, CAT_NAME=twin.catalog,
                DB_NAME=twin.database, TBL_NAME=twin.table, MESSAGE=twin.message, MESSAGE_FORMAT=twin.message_format,
            )
        )  # fmt: skip
        connection.commit()
    running.poller.step()
    assert running.sink.applied_ids == [4, 5, 5, 6]
    assert running.sink.resets == []
    assert running.poller.step().outcome is StepOutcome.CAUGHT_UP


def test_commit_between_head_and_page_is_no_hole(running: Stage) -> None:
    running.log.before_fetch = lambda: running.writer.create_tables(1) and None
    assert running.poller.step().outcome is StepOutcome.CAUGHT_UP
    assert running.sink.resets == []
    assert running.sink.applied_ids == [4]


def test_reset_that_fails_is_tried_again(running: Stage) -> None:
    running.writer.restore_to(1)
    running.sink.refuses_reset = True
    assert running.poller.step().outcome is StepOutcome.SINK_FAILED
    assert running.poller.status is PollerStatus.NEEDS_RESYNC
    assert running.poller.step().outcome is StepOutcome.SINK_FAILED
    running.sink.refuses_reset = False
    assert running.poller.step().outcome is StepOutcome.RESYNCED
    assert_healed(running, 1, "the log ends at event 1")


def test_outage_in_the_middle_of_beginning_anew(running: Stage) -> None:
    running.writer.restore_to(1)
    fetches: list[int] = []

    def away_at_the_second() -> None:
        fetches.append(1)
        running.log.away = len(fetches) == 2

    running.log.before_fetch = away_at_the_second
    assert running.poller.step().outcome is StepOutcome.DATABASE_AWAY
    assert running.poller.status is PollerStatus.NEEDS_RESYNC
    assert running.sink.resets == []
    running.log.away = False
    running.poller.step()
    assert_healed(running, 1, "the log ends at event 1")


# ---- P8: bad events -------------------------------------------------------------------------------------------------


def test_undecodable_event_drops_what_it_names_and_the_stream_goes_on(running: Stage) -> None:
    running.writer.create_tables(3)
    running.writer.set_message(5, "not a message")
    running.poller.step()
    assert running.sink.applied_ids == [4, 5, 6]
    bad = running.sink.events[1]
    assert isinstance(bad, ev.UndecodedEvent)
    assert bad.scope.tables == {TableName("hive", "d", "t2")}
    statistics = running.poller.statistics()
    assert statistics.failed == 1
    assert [(failure.header.event_id, failure.at_s) for failure in statistics.failures] == [
        (5, running.clock.epoch_s())
    ]


def test_unknown_type_without_names_concerns_everything(running: Stage) -> None:
    running.writer.append(ev.EventRow("FROM_THE_FUTURE", None, None, None, "{}", "json-0.2"))
    running.poller.step()
    assert [event.scope for event in running.sink.events] == [EVERYTHING]


@pytest.mark.parametrize("sample_type", ["CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"])
def test_event_that_cannot_be_applied_is_replaced(running: Stage, sample_type: str) -> None:
    running.sink.refuses = lambda event: event.event_id == 5 and not isinstance(event, ev.UndecodedEvent)
    running.writer.append(
        BUILDER.build_create_table(table("a")),
        {
            "CREATE_TABLE": BUILDER.build_create_table(table("b")),
            "ALTER_TABLE": BUILDER.build_alter_table(table("b"), table("c")),
            "DROP_TABLE": BUILDER.build_drop_table(table("b")),
        }[sample_type],
        BUILDER.build_create_table(table("z")),
    )
    assert running.poller.step().outcome is StepOutcome.CAUGHT_UP
    assert running.sink.applied_ids == [4, 5, 6]
    bad = running.sink.events[1]
    assert isinstance(bad, ev.UndecodedEvent)
    assert bad.scope.concerns_table(TableName("hive", "d", "b"))
    assert bad.scope.everything == (sample_type == "ALTER_TABLE")
    assert running.poller.statistics().failed == 1
    assert running.sink.resets == []


def test_replacement_is_widened_until_it_is_taken(running: Stage) -> None:
    running.sink.refuses = lambda event: event.event_id == 4 and bool(event.scope.tables)
    running.writer.create_tables(2)
    running.poller.step()
    assert running.sink.applied_ids == [4, 5]
    assert {tuple(name) for name in running.sink.events[0].scope.whole_databases} == {("hive", "d")}


def test_event_that_is_taken_in_no_form_drops_everything(running: Stage) -> None:
    running.sink.refuses = lambda event: event.event_id == 4
    running.writer.create_tables(2)
    assert running.poller.step().outcome is StepOutcome.RESYNCED
    running.sink.refuses = lambda event: False
    assert_healed(running, 5, "event 4 (CREATE_TABLE) could not be applied in any way")


def test_operator_skips_an_event(running: Stage) -> None:
    running.poller.skip(5)
    running.writer.create_tables(3)
    running.poller.step()
    assert [isinstance(event, ev.UndecodedEvent) for event in running.sink.events] == [False, True, False]
    assert running.sink.events[1].scope.tables == {TableName("hive", "d", "t2")}
    statistics = running.poller.statistics()
    assert (statistics.skipped, statistics.failed) == ({"operator": 1}, 0)
    with pytest.raises(ValueError, match="applied already"):
        running.poller.skip(6)


# ---- outages --------------------------------------------------------------------------------------------------------


def test_outage_changes_no_status_and_is_survived(running: Stage) -> None:
    running.writer.create_tables(2)
    running.log.away = True
    waits = []
    for _ in range(12):
        result = running.poller.step()
        assert result.outcome is StepOutcome.DATABASE_AWAY
        waits.append(result.next_step_in_s)
    assert running.poller.status is PollerStatus.ACTIVE
    assert waits[0] <= 0.1 < waits[5] <= 3.2 < waits[-1] <= 30
    statistics = running.poller.statistics()
    assert statistics.consecutive_fetch_failures == 12
    assert "the database is away" in statistics.last_fetch_error
    running.log.away = False
    assert running.poller.step().outcome is StepOutcome.CAUGHT_UP
    assert running.sink.applied_ids == [4, 5]
    assert running.sink.resets == []
    assert running.poller.statistics().consecutive_fetch_failures == 0


def test_start_without_a_database_waits_for_it(stage: Stage) -> None:
    stage.writer.create_tables(1)
    stage.log.away = True
    stage.poller.start()
    assert stage.poller.step().outcome is StepOutcome.DATABASE_AWAY
    assert stage.poller.status is PollerStatus.NEEDS_RESYNC
    stage.log.away = False
    assert stage.poller.step().outcome is StepOutcome.RESYNCED
    assert stage.poller.applied_position == 1


# ---- waiting readers ------------------------------------------------------------------------------------------------


def test_waiting_reader_steps_for_itself(running: Stage) -> None:
    last = running.writer.create_tables(2)
    assert running.poller.ensure_applied(last, 10.0) is True
    assert running.sink.position == last
    assert running.log.heads == 2
    assert running.poller.ensure_applied(last - 1, 0.0) is True
    assert running.log.heads == 2


def test_waiting_reader_takes_as_many_batches_as_it_needs(running: Stage) -> None:
    poller = running.new_poller(batch_size=2)
    poller.start()
    last = running.writer.create_tables(9)
    assert poller.ensure_applied(last, 10.0) is True


def test_position_that_the_log_does_not_have(running: Stage) -> None:
    assert running.poller.ensure_applied(4, 10.0) is False


def test_wait_ends_early_when_it_is_hopeless(running: Stage) -> None:
    last = running.writer.create_tables(1)
    running.log.away = True
    assert running.poller.ensure_applied(last, 1_000.0) is False
    running.log.away = False
    running.poller.pause()
    assert running.poller.ensure_applied(last, 1_000.0) is False
    assert running.poller.ensure_applied(last - 1, 1_000.0) is True
    running.poller.fail("unlogged writer")
    assert running.poller.ensure_applied(last - 1, 1_000.0) is False
    running.poller.stop()
    assert running.poller.ensure_applied(0, 1_000.0) is False


def test_wait_across_a_hole(running: Stage) -> None:
    last = running.writer.create_tables(3)
    running.writer.delete(4)
    assert running.poller.ensure_applied(last, 10.0) is True
    assert len(running.sink.resets) == 1
    running.writer.restore_to(1)
    assert running.poller.ensure_applied(last + 1, 10.0) is False
    assert running.sink.resets[-1][1] == 1


def test_waiting_readers_share_a_step(running: Stage) -> None:
    """One leads, the others wait for it; a reader that arrives while it is reading needs a step that begins later."""
    reading, go_on = threading.Event(), threading.Event()

    def block_once() -> None:
        if not reading.is_set():
            reading.set()
            assert go_on.wait(60)

    last = running.writer.create_tables(3)
    running.log.before_fetch = block_once
    heads = running.log.heads
    with ThreadPoolExecutor(9) as pool:
        leader = pool.submit(running.poller.ensure_applied, last, 60.0)
        assert reading.wait(60)
        assert running.poller.step().outcome is StepOutcome.BUSY
        assert running.poller.ensure_applied(last, 0.0) is False
        followers = [pool.submit(running.poller.ensure_applied, last, 60.0) for _ in range(8)]
        go_on.set()
        assert leader.result() is True
        assert all(follower.result() for follower in followers)
    assert running.log.heads == heads + 1
    assert running.sink.applied_ids == [4, 5, 6]


def test_reader_that_came_during_a_step_gets_one_that_began_later(running: Stage) -> None:
    """The current step read the log's end before the write; it must not report to this reader that there is nothing."""
    applying, go_on, wrote = threading.Event(), threading.Event(), []

    def block_once() -> None:
        if not applying.is_set():
            applying.set()
            assert go_on.wait(60)

    running.writer.create_tables(1)
    running.sink.before_apply = block_once
    with ThreadPoolExecutor(2) as pool:
        step = pool.submit(running.poller.step)
        assert applying.wait(60)
        wrote.append(running.writer.create_tables(1, "late"))
        reader = pool.submit(running.poller.ensure_applied, wrote[0], 60.0)
        go_on.set()
        assert step.result().position == 4
        assert reader.result() is True
    assert running.sink.position == 5


def test_command_while_a_step_is_applying(running: Stage) -> None:
    applying, go_on = threading.Event(), threading.Event()

    def block() -> None:
        applying.set()
        assert go_on.wait(60)

    running.writer.create_tables(1)
    running.sink.before_apply = block
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(running.poller.step)
        assert applying.wait(60)
        running.poller.pause()
        assert running.poller.wait_until_idle(0.0) is False
        go_on.set()
        assert step.result().position == 4
    assert running.poller.wait_until_idle(60.0) is True
    assert running.poller.status is PollerStatus.PAUSED
    assert running.poller.step().outcome is StepOutcome.IDLE
    running.poller.resume()
    assert running.poller.step().outcome is StepOutcome.CAUGHT_UP
    assert running.sink.resets == []


def test_failure_reported_by_the_sink_is_not_overwritten(running: Stage) -> None:
    running.sink.before_apply = lambda: running.poller.fail("unlogged writer: table id 17")
    running.writer.create_tables(1)
    running.poller.step()
    report = running.poller.status_report()
    assert (report.status, report.reason) == (PollerStatus.ERROR, "unlogged writer: table id 17")
    assert running.poller.step().outcome is StepOutcome.IDLE


# ---- numbers --------------------------------------------------------------------------------------------------------


def test_lag_is_a_number_in_every_status(running: Stage) -> None:
    running.poller.step()
    assert running.poller.statistics().pending_events == 0
    assert running.poller.statistics().seconds_since_current == 0
    poller = running.new_poller(batch_size=2)
    poller.start()
    poller.step()
    running.writer.create_tables(7)
    poller.step()
    assert poller.statistics().pending_events == 5
    poller.pause()
    running.clock.advance(30)
    statistics = poller.statistics()
    assert statistics.pending_events == 5
    assert statistics.seconds_since_current == float("inf")
    poller.resume()
    assert poller.ensure_applied(10, 10.0)
    running.clock.advance(7)
    assert poller.statistics().seconds_since_current == 7
    poller.stop()
    running.clock.advance(3)
    assert poller.statistics().seconds_since_current == 10


def test_without_an_interval_the_log_is_read_when_a_call_needs_it(running: Stage) -> None:
    poller = running.new_poller(poll_interval_s=0)
    poller.start()
    poller.step()
    assert poller.step().next_step_in_s == math.inf, "it reads the log again and again"
    running.writer.create_tables(1)
    assert poller.step().received == 1


def test_counters_and_rates(running: Stage) -> None:
    running.poller.step()
    running.writer.create_tables(60)
    running.poller.step()
    running.clock.advance(5)
    statistics = running.poller.statistics()
    assert (statistics.received, statistics.applied) == (60, 60)
    assert statistics.rate_1_minute == statistics.rate_15_minutes == 12.0
    running.clock.advance(60)
    statistics = running.poller.statistics()
    assert 0 < statistics.rate_1_minute < statistics.rate_5_minutes < statistics.rate_15_minutes < 12.0
    assert statistics.fetch_durations.runs == 2
    assert statistics.apply_durations.runs == 1


def test_a_batchs_duration_is_that_of_reading_and_of_applying_it(
    running: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Impala's `avg-events-fetch-duration`: the time to fetch and process a batch of events."""
    fetch, apply = running.log.fetch, running.sink.apply

    def slow_fetch(*place: int | None) -> Any:
        running.clock.advance(2)
        return fetch(*place)

    def slow_apply(events: Any, new_position: int) -> None:
        running.clock.advance(5)
        apply(events, new_position)

    monkeypatch.setattr(running.log, "fetch", slow_fetch)
    monkeypatch.setattr(running.sink, "apply", slow_apply)
    running.writer.create_tables(3)
    running.poller.step()
    statistics = running.poller.statistics()
    assert (statistics.fetch_durations.last_s, statistics.apply_durations.last_s) == (2, 5)
    assert statistics.batch_durations.last_s == 7


def test_metrics_say_the_same(running: Stage) -> None:
    metrics = Metrics().events
    poller = Poller(running.log, running.sink, running.clock, metrics=metrics)
    assert metrics.status.labels("STOPPED")._value.get() == 1
    poller.start()
    poller.step()
    running.writer.create_tables(3)
    running.writer.set_message(5, "damaged")
    poller.step()
    assert metrics.received.value() == 3
    assert metrics.failed.value() == 1
    assert metrics.position._value.get() == 6
    assert metrics.lag._value.get() == 0
    assert metrics.status.labels("ACTIVE")._value.get() == 1
    assert metrics.status.labels("STOPPED")._value.get() == 0


def test_status_keeps_its_time_and_reason(running: Stage) -> None:
    since = running.poller.status_report().since_s
    running.clock.advance(10)
    running.poller.step()
    assert running.poller.status_report().since_s == since
    running.poller.pause("maintenance")
    assert running.poller.status_report() == (PollerStatus.PAUSED, "maintenance", since + 10)


# ---- several servers ------------------------------------------------------------------------------------------------


def test_head_that_runs_ahead_of_the_sequence_row_is_a_hole(running: Stage) -> None:
    """According to the sequence, event 9 exists; there is no row."""
    running.writer.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=10))
    running.poller.step()
    assert_healed(running, 9, "events 4 to 9 are missing")


def test_pollers_of_two_servers_see_the_same(running: Stage) -> None:
    other_sink = RecordingSink()
    other = Poller(UnreliableLog(running.log.log), other_sink, running.clock)
    other.start()
    other.step()
    for _ in range(3):
        running.writer.create_tables(2)
    running.poller.step()
    other.step()
    assert running.sink.applied_ids == other_sink.applied_ids == [4, 5, 6, 7, 8, 9]
