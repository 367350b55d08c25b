"""Scheduled queries as stored by Hive's `ObjectStore`."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select

from hms_cache.store.schema import SCHEDULED_EXECUTIONS
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.workload.conftest import Workload

KEY = ttypes.ScheduledQueryKey("nightly", "hive")
EXECUTING, FAILED, FINISHED, INITED = (
    ttypes.QueryState._NAMES_TO_VALUES[name] for name in ("EXECUTING", "FAILED", "FINISHED", "INITED")
)


def query(schedule: str = "0 * * * * ?", **fields: object) -> ttypes.ScheduledQuery:
    values: dict[str, object] = {"enabled": True, "user": "u", "query": "select 1"} | fields
    return ttypes.ScheduledQuery(KEY, schedule=schedule, **values)


def executions(workload: Workload) -> list[tuple[str, str | None]]:
    """(state, error message) of each execution, in the order they began."""
    table = SCHEDULED_EXECUTIONS.c
    statement = select(table.STATE, table.ERROR_MESSAGE).order_by(table.SCHEDULED_EXECUTION_ID)
    with workload.database.checking() as connection:
        return [(state, text) for state, text in connection.execute(statement)]


def test_a_query_from_creation_to_drop(workload: Workload) -> None:
    queries, clock = workload.stores().scheduled_queries, workload.clock
    queries.create(query())
    created = queries.get(KEY)
    now_s = int(clock.epoch_s())
    assert created.nextExecution is not None
    assert 0 < created.nextExecution - now_s <= 60
    assert created == query(nextExecution=created.nextExecution)
    with pytest.raises(ttypes.AlreadyExistsException, match="name: nightly@hive already exists"):
        queries.create(query())
    assert queries.poll("hive") == ttypes.ScheduledQueryPollResponse()

    clock.advance(created.nextExecution - now_s)
    assert queries.poll("other") == ttypes.ScheduledQueryPollResponse()
    due = queries.poll("hive")
    assert (due.scheduleKey, due.query, due.user) == (KEY, "/* schedule: nightly */select 1", "u")
    assert queries.get(KEY).nextExecution == created.nextExecution + 60
    clock.advance(60)
    assert queries.poll("hive") == ttypes.ScheduledQueryPollResponse(), "it is under way"
    queries.report_progress(ttypes.ScheduledQueryProgressInfo(due.executionId, EXECUTING, "q1"))
    queries.report_progress(ttypes.ScheduledQueryProgressInfo(due.executionId, FAILED, "q1", "x" * 2000))
    assert executions(workload) == [("FAILED", "x" * 997 + "...")]
    with pytest.raises(ttypes.InvalidOperationException, match="Invalid state change: FAILED=>EXECUTING"):
        queries.report_progress(ttypes.ScheduledQueryProgressInfo(due.executionId, EXECUTING, "q1"))
    again = queries.poll("hive")
    assert again.executionId is not None
    assert again.executionId != due.executionId

    queries.alter(query("0 0 0 1 1 ? 2098", enabled=False, user="v"))
    altered = queries.get(KEY)
    assert (altered.enabled, altered.user, altered.schedule) == (False, "v", "0 0 0 1 1 ? 2098")
    assert altered.nextExecution is None, "never within the 32 bits of the field"
    queries.alter(query(nextExecution=5))
    assert queries.get(KEY).nextExecution == 5
    queries.drop(KEY)
    assert executions(workload) == []
    for missing in (lambda: queries.drop(KEY), lambda: queries.alter(query())):
        with pytest.raises(ttypes.NoSuchObjectException, match="name: nightly@hive doesn't exists"):
            missing()
    with pytest.raises(ttypes.NoSuchObjectException, match="There is no scheduled query for: nightly@hive"):
        queries.get(KEY)


def test_one_of_many_pollers_gets_a_query(workload: Workload) -> None:
    queries = workload.stores().scheduled_queries
    queries.create(query())
    workload.clock.advance(60)
    ready, answers = threading.Barrier(4, timeout=60), list[ttypes.ScheduledQueryPollResponse]()

    def poll() -> None:
        ready.wait()
        answers.append(queries.poll("hive"))

    threads = [threading.Thread(target=poll) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert len([answer for answer in answers if answer.executionId is not None]) == 1


def test_what_does_not_report_is_given_up_and_old_executions_go(workload: Workload) -> None:
    queries, clock = workload.stores(scheduled_query_retention_s=1000).scheduled_queries, workload.clock
    queries.create(query())
    clock.advance(60)
    assert queries.poll("hive").executionId is not None
    assert (queries.clean().timed_out, executions(workload)) == (0, [("INITED", None)])
    clock.advance(120)
    assert queries.clean().timed_out == 1
    text = "Query stuck in: INITED state for >120 seconds. Execution timed out."
    assert executions(workload) == [("TIMED_OUT", text)]
    assert queries.poll("hive").executionId is not None
    clock.advance(880)
    cleaned = queries.clean()
    assert (cleaned.timed_out, cleaned.deleted, len(executions(workload))) == (1, 1, 1)


def fail_once(workload: Workload, **settings: object) -> None:
    """A run of the query that fails."""
    queries = workload.stores(**settings).scheduled_queries
    due_s = queries.get(KEY).nextExecution
    assert due_s is not None
    workload.clock.advance(max(0, due_s - workload.clock.epoch_s()))
    execution = queries.poll("hive")
    queries.report_progress(ttypes.ScheduledQueryProgressInfo(execution.executionId, FAILED, "q"))


def test_a_query_that_fails_again_and_again_is_disabled(workload: Workload) -> None:
    workload.stores().scheduled_queries.create(query())
    for expected in (True, True, False):
        fail_once(workload, scheduled_query_disable_count=3)
        assert workload.stores().scheduled_queries.get(KEY).enabled is expected
    assert executions(workload)[-1] == ("AUTO_DISABLED", "Disabling query after 3 consecutive failures")


def test_a_query_that_fails_again_and_again_misses_turns(sqlite_workload: Workload) -> None:
    queries = sqlite_workload.stores().scheduled_queries
    queries.create(query())
    for turns in (1, 2, 3, 3):
        fail_once(sqlite_workload, scheduled_query_skips=3)
        next_s = queries.get(KEY).nextExecution
        assert next_s is not None
        assert next_s - sqlite_workload.clock.epoch_s() == 60 * turns


def test_refusals(sqlite_workload: Workload) -> None:
    queries = sqlite_workload.stores().scheduled_queries
    with pytest.raises(ttypes.InvalidInputException, match="Invalid QUARTZ schedule expression: 'daily'"):
        queries.create(query("daily"))
    with pytest.raises(ttypes.MetaException, match="no scheduled execution 7"):
        queries.report_progress(ttypes.ScheduledQueryProgressInfo(7, FINISHED, "q"))
    off = sqlite_workload.stores(scheduled_queries=False).scheduled_queries
    for refused in (lambda: off.create(query()), lambda: off.poll("hive"), lambda: off.drop(KEY)):
        with pytest.raises(ttypes.MetaException, match=r"disabled via metastore\.scheduled\.queries\.enabled"):
            refused()
    assert off.clean().timed_out == 0


UNREADABLE = "0 0|30 0 * * ?"
"""Hive's parser may know more of Quartz than ours, and beside it Hive stores what it knows."""


def test_queries_run_beside_one_whose_schedule_cannot_be_read(workload: Workload) -> None:
    queries, clock = workload.stores().scheduled_queries, workload.clock
    for name in ("first", "second"):
        other = query()
        other.scheduleKey = ttypes.ScheduledQueryKey(name, "hive")
        queries.create(other)
    queries.create(query())
    stored = query(UNREADABLE, nextExecution=5)
    queries.alter(stored)
    clock.advance(60)
    polled = [queries.poll("hive").scheduleKey for _ in range(3)]
    assert [key and key.scheduleName for key in polled] == ["first", "second", None]
    assert queries.get(KEY) == stored, "it stays due, for whoever can read it"


def test_executions_of_a_query_whose_schedule_cannot_be_read_end(workload: Workload) -> None:
    settings = {"scheduled_query_skips": 5}
    workload.stores().scheduled_queries.create(query())
    fail_once(workload, **settings)
    queries, clock = workload.stores(**settings).scheduled_queries, workload.clock
    clock.advance(120)
    assert queries.poll("hive").executionId is not None
    queries.alter(query(UNREADABLE, nextExecution=5))
    clock.advance(1000)
    assert queries.clean().timed_out == 1
    assert [state for state, _ in executions(workload)] == ["FAILED", "TIMED_OUT"]
    assert queries.get(KEY).nextExecution == 5
