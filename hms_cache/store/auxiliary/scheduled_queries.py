"""Scheduled queries and their executions. Facts: `ObjectStore.scheduledQuery…` (Hive 4.0.1). They have no events.

A query's row contains the time of its next execution and the running execution. HiveServer2 asks for a due query
(`poll`) and reports its progress (`report_progress`).
"""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from hms_cache.clock import LATEST_STORED_S
from hms_cache.config.quantities import whole_seconds
from hms_cache.limited_log import LimitedLog
from hms_cache.metadata.quartz_schedule import parse_schedule
from hms_cache.store.engine.context import StoreContext, require_table
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.rows.name_locks import hold_names
from hms_cache.store.schema import SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)
from hms_cache.values import frozen

_logger = logging.getLogger(__name__)

_LONGEST_ERROR = 1000
"""Maximum length of a stored error message: Hive's own limit, half of the column."""

_QUERIES, _EXECUTIONS = SCHEDULED_QUERIES.c, SCHEDULED_EXECUTIONS.c

_NEXT_STATES = {
    "INITED": {"EXECUTING", "FAILED", "FINISHED", "TIMED_OUT", "AUTO_DISABLED"},
    "EXECUTING": {"EXECUTING", "FAILED", "FINISHED", "TIMED_OUT"},
}
_RUNNING = ("INITED", "EXECUTING")
_FAILED = ("FAILED", "TIMED_OUT")


@frozen
class Cleaned:
    """What `ScheduledQueries.clean` has done."""

    timed_out: int
    deleted: int


class ScheduledQueries:
    """Reads and writes of scheduled queries. Thread-safe; each method is one transaction.

    If `workload.scheduled_queries` is off, all methods except `get` raise MetaException.
    """

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._settings = context.settings.workload
        self._database = context.database
        self._log = LimitedLog(_logger)

    @property
    def is_available(self) -> bool:
        """Whether the database has the tables, which Hive 3.1's has not."""
        return self._database.features.has(SCHEDULED_QUERIES)

    def create(self, query: ScheduledQuery) -> None:
        """Creates a scheduled query.

        :raises AlreadyExistsException: its name exists.
        :raises InvalidInputException: an invalid schedule, or no name: clients could not parse the reply when it is
          due.
        """
        next_s = self._next_execution_s(query.schedule)
        key = query.scheduleKey
        if key is None or key.scheduleName is None or key.clusterNamespace is None:
            raise InvalidInputException("A scheduled query needs a name and a namespace")

        def work(transaction: WriteTransaction) -> None:
            query_id = transaction.id("MScheduledQuery")
            hold_names(transaction.connection)
            if _find(transaction.connection, key) is not None:
                raise AlreadyExistsException(f"Scheduled query with name: {_named(key)} already exists.")
            values = {
                **_values_of(query),
                "SCHEDULED_QUERY_ID": query_id,
                "SCHEDULE_NAME": key.scheduleName,
                "NEXT_EXECUTION": next_s,
            }
            transaction.connection.execute(insert(SCHEDULED_QUERIES).values(values))

        self._require_enabled()
        run_write(self._database, work)

    def alter(self, query: ScheduledQuery) -> None:
        """Replaces everything except the name. Without a next execution, that is computed.

        :raises NoSuchObjectException: it does not exist.
        :raises InvalidInputException: an invalid schedule.
        """
        given = query.nextExecution is not None
        next_s = query.nextExecution if given else self._next_execution_s(query.schedule)

        def work(transaction: WriteTransaction) -> None:
            row = _require_existing(transaction.connection, query.scheduleKey)
            values = {**_values_of(query), "NEXT_EXECUTION": next_s}
            _update_query(transaction.connection, row.SCHEDULED_QUERY_ID, values)

        self._require_enabled()
        run_write(self._database, work)

    def drop(self, key: ScheduledQueryKey) -> None:
        """Drops a query with its executions.

        :raises NoSuchObjectException: it does not exist.
        """

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            row = _require_existing(connection, key)
            for table in (SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES):
                connection.execute(delete(table).where(table.c.SCHEDULED_QUERY_ID == row.SCHEDULED_QUERY_ID))

        self._require_enabled()
        run_write(self._database, work)

    def get(self, key: ScheduledQueryKey) -> ScheduledQuery:
        """:raises NoSuchObjectException: it does not exist."""
        require_table(self._database, SCHEDULED_QUERIES)
        row = run_read(self._database, lambda connection: _find(connection, key))
        if row is None:
            raise NoSuchObjectException(f"There is no scheduled query for: {_named(key)}")
        return ScheduledQuery(
            scheduleKey=ScheduledQueryKey(row.SCHEDULE_NAME, row.CLUSTER_NAMESPACE),
            enabled=bool(row.ENABLED),
            schedule=row.SCHEDULE,
            user=row.USER,
            query=row.QUERY,
            nextExecution=row.NEXT_EXECUTION,
        )

    def poll(self, namespace: str) -> ScheduledQueryPollResponse:
        """Starts the execution of the namespace's query that has been due for the longest time; empty if none is due.

        If several servers ask at the same time, one gets it. A query whose schedule cannot be parsed is skipped: the
        program that stored it may support more, and others must not wait for it.
        """

        def work(transaction: WriteTransaction) -> ScheduledQueryPollResponse:
            connection, now_s = transaction.connection, self._context.now_s()
            is_due = and_(
                _QUERIES.NEXT_EXECUTION <= now_s,
                _QUERIES.ENABLED.is_(True),
                same_text(_QUERIES.CLUSTER_NAMESPACE, namespace),
                _QUERIES.ACTIVE_EXECUTION_ID.is_(None),
            )
            found = self._first_due(connection, is_due)
            if found is None:
                return ScheduledQueryPollResponse()
            row, next_s = found
            execution_id = transaction.id("MScheduledExecution")
            connection.execute(
                insert(SCHEDULED_EXECUTIONS).values(
                    SCHEDULED_EXECUTION_ID=execution_id,
                    SCHEDULED_QUERY_ID=row.SCHEDULED_QUERY_ID,
                    STATE="INITED",
                    START_TIME=now_s,
                    LAST_UPDATE_TIME=now_s,
                )
            )
            values = {"NEXT_EXECUTION": next_s, "ACTIVE_EXECUTION_ID": execution_id}
            _update_query(connection, row.SCHEDULED_QUERY_ID, values)
            return ScheduledQueryPollResponse(
                scheduleKey=ScheduledQueryKey(row.SCHEDULE_NAME, row.CLUSTER_NAMESPACE),
                executionId=execution_id,
                query=f"/* schedule: {row.SCHEDULE_NAME} */{row.QUERY}",
                user=row.USER,
            )

        self._require_enabled()
        return run_write(self._database, work)

    def report_progress(self, info: ScheduledQueryProgressInfo) -> None:
        """Records an execution's new state. When it ends, the query may run again.

        :raises MetaException: no such execution.
        :raises InvalidOperationException: this change of state is not possible.
        """
        self._require_enabled()
        run_write(self._database, lambda transaction: self._record_progress(transaction, info))

    def clean(self) -> Cleaned:
        """Ends executions that do not report, releases their queries, and deletes old executions."""
        require_table(self._database, SCHEDULED_QUERIES)
        if not self._settings.scheduled_queries:
            return Cleaned(0, 0)
        return run_write(self._database, self._clean)

    def _require_enabled(self) -> None:
        require_table(self._database, SCHEDULED_QUERIES)
        if not self._settings.scheduled_queries:
            raise MetaException(
                "Scheduled query request processing is disabled via metastore.scheduled.queries.enabled"
            )

    def _next_execution_s(self, schedule: str | None, after_s: int | None = None) -> int | None:
        """None if it never becomes due again, or only after 2038, which the field cannot represent."""
        try:
            found_s = parse_schedule(schedule or "").next_epoch_s(self._context.now_s() if after_s is None else after_s)
        except ValueError as error:
            raise InvalidInputException(f"Invalid QUARTZ schedule expression: '{schedule}'") from error
        return None if found_s is None or found_s > LATEST_STORED_S else found_s

    def _first_due(self, connection: Connection, is_due: ColumnElement[bool]) -> tuple[Any, int | None] | None:
        """The query that has been due for the longest time, with its row locked, and its next time."""
        order = (_QUERIES.NEXT_EXECUTION, _QUERIES.SCHEDULED_QUERY_ID)
        due = connection.execute(
            select(_QUERIES.SCHEDULED_QUERY_ID, _QUERIES.SCHEDULE).where(is_due).order_by(*order)
        ).all()
        for query_id, schedule in due:
            try:
                next_s = self._next_execution_s(schedule)
            except InvalidInputException:
                self._log.warning(
                    "Scheduled query %d is due and not handed out: its schedule %r cannot be read", query_id, schedule
                )
                continue
            is_it = and_(is_due, _QUERIES.SCHEDULED_QUERY_ID == query_id, _QUERIES.SCHEDULE == schedule)
            row = connection.execute(select(*_QUERIES).where(is_it).with_for_update()).first()
            if row is not None:  # otherwise another server has taken it, or it has been altered
                return row, next_s
        return None

    def _record_progress(self, transaction: WriteTransaction, info: ScheduledQueryProgressInfo) -> None:
        connection, now_s = transaction.connection, self._context.now_s()
        is_it = _EXECUTIONS.SCHEDULED_EXECUTION_ID == info.scheduledExecutionId
        row = connection.execute(select(*_EXECUTIONS).where(is_it).with_for_update()).first()
        if row is None:
            raise MetaException(f"There is no scheduled execution {info.scheduledExecutionId}")
        state = QueryState._VALUES_TO_NAMES.get(info.state)
        if state not in _NEXT_STATES.get(row.STATE, ()):
            raise InvalidOperationException(f"Invalid state change: {row.STATE}=>{state}")
        if state == "AUTO_DISABLED":
            raise InvalidOperationException(f"invalid state: {state}")
        values: dict[str, Any] = {"STATE": state}
        if info.executorQueryId is not None:
            values["EXECUTOR_QUERY_ID"] = info.executorQueryId
        if info.errorMessage is not None:
            values["ERROR_MESSAGE"] = _abbreviated(info.errorMessage)
        values |= {"LAST_UPDATE_TIME": now_s} if state in _RUNNING else {"END_TIME": now_s, "LAST_UPDATE_TIME": None}
        connection.execute(update(SCHEDULED_EXECUTIONS).where(is_it).values(values))
        if state not in _RUNNING:
            _update_query(connection, row.SCHEDULED_QUERY_ID, {"ACTIVE_EXECUTION_ID": None})
        if state in _FAILED:
            self._handle_failures(transaction, row.SCHEDULED_QUERY_ID, now_s)

    def _handle_failures(self, transaction: WriteTransaction, query_id: int, now_s: int) -> None:
        """Disables a query, or skips some of its executions, after consecutive failures, as the settings require."""
        disable_count, skip_count = self._settings.scheduled_query_disable_count, self._settings.scheduled_query_skips
        considered = max(disable_count, skip_count)
        if considered <= 0:
            return
        connection = transaction.connection
        states = connection.execute(
            select(_EXECUTIONS.STATE)
            .where(_EXECUTIONS.SCHEDULED_QUERY_ID == query_id)
            .order_by(_EXECUTIONS.SCHEDULED_EXECUTION_ID.desc())
            .limit(considered)
        ).scalars()
        failures = 0
        for state in states:
            if state not in _FAILED:
                break
            failures += 1
        if 0 < disable_count <= failures:
            _update_query(connection, query_id, {"ENABLED": False})
            connection.execute(
                insert(SCHEDULED_EXECUTIONS).values(
                    SCHEDULED_EXECUTION_ID=transaction.id("MScheduledExecution"),
                    SCHEDULED_QUERY_ID=query_id,
                    STATE="AUTO_DISABLED",
                    START_TIME=now_s,
                    END_TIME=now_s,
                    LAST_UPDATE_TIME=now_s,
                    ERROR_MESSAGE=f"Disabling query after {disable_count} consecutive failures",
                )
            )
        query = connection.execute(select(*_QUERIES).where(_QUERIES.SCHEDULED_QUERY_ID == query_id)).one()
        due_s = query.NEXT_EXECUTION
        for _ in range(min(skip_count, failures) - 1):
            if due_s is not None:
                try:
                    due_s = self._next_execution_s(query.SCHEDULE, due_s) or due_s
                except InvalidInputException:
                    break  # the end of this execution and of others is recorded nevertheless
        if due_s != query.NEXT_EXECUTION:
            _update_query(connection, query_id, {"NEXT_EXECUTION": due_s})

    def _clean(self, transaction: WriteTransaction) -> Cleaned:
        connection, now_s = transaction.connection, self._context.now_s()
        timeout_s = whole_seconds(self._settings.scheduled_query_timeout_s)
        retention_s = whole_seconds(self._settings.scheduled_query_retention_s)
        stuck = connection.execute(
            select(_EXECUTIONS.SCHEDULED_EXECUTION_ID, _EXECUTIONS.STATE)
            .where(_EXECUTIONS.LAST_UPDATE_TIME <= now_s - timeout_s, _EXECUTIONS.STATE.in_(_RUNNING))
            .order_by(_EXECUTIONS.SCHEDULED_EXECUTION_ID)
            # Excludes those that report, or that another server ends, meanwhile.
            .with_for_update()
        ).all()
        for execution_id, state in stuck:
            text = f"Query stuck in: {state} state for >{timeout_s} seconds. Execution timed out."
            self._record_progress(
                transaction, ScheduledQueryProgressInfo(execution_id, QueryState.TIMED_OUT, None, text)
            )
        running = select(_EXECUTIONS.SCHEDULED_EXECUTION_ID).where(_EXECUTIONS.STATE.in_(_RUNNING))
        connection.execute(
            update(SCHEDULED_QUERIES)
            .where(_QUERIES.ACTIVE_EXECUTION_ID.is_not(None), _QUERIES.ACTIVE_EXECUTION_ID.not_in(running))
            .values(ACTIVE_EXECUTION_ID=None)
        )
        is_old = (_EXECUTIONS.START_TIME <= now_s - retention_s) & _EXECUTIONS.STATE.not_in(_RUNNING)
        return Cleaned(len(stuck), connection.execute(delete(SCHEDULED_EXECUTIONS).where(is_old)).rowcount)


def _named(key: ScheduledQueryKey) -> str:
    return f"{key.scheduleName}@{key.clusterNamespace}"


def _values_of(query: ScheduledQuery) -> dict[str, Any]:
    return {
        "CLUSTER_NAMESPACE": query.scheduleKey.clusterNamespace,
        "ENABLED": bool(query.enabled),
        "SCHEDULE": query.schedule,
        "USER": query.user,
        "QUERY": query.query,
    }


def _find(connection: Connection, key: ScheduledQueryKey, *, lock: bool = False) -> Any:
    statement = (
        select(*_QUERIES)
        .where(
            same_text(_QUERIES.SCHEDULE_NAME, key.scheduleName),
            same_text(_QUERIES.CLUSTER_NAMESPACE, key.clusterNamespace),
        )
        .order_by(_QUERIES.SCHEDULED_QUERY_ID)
    )
    return connection.execute(statement.with_for_update() if lock else statement).first()


def _require_existing(connection: Connection, key: ScheduledQueryKey) -> Any:
    row = _find(connection, key, lock=True)
    if row is None:
        raise NoSuchObjectException(f"Scheduled query with name: {_named(key)} doesn't exists.")
    return row


def _update_query(connection: Connection, query_id: int, values: dict[str, Any]) -> None:
    connection.execute(update(SCHEDULED_QUERIES).where(_QUERIES.SCHEDULED_QUERY_ID == query_id).values(values))


def _abbreviated(text: str) -> str:
    """A long message may end in a stack trace: its first line has the essential part."""
    if len(text) < _LONGEST_ERROR:
        return text
    line = text.split("\n", 1)[0]
    return line if len(line) <= _LONGEST_ERROR else line[: _LONGEST_ERROR - 3] + "..."
