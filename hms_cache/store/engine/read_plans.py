"""Reads as plans: all queries that a read needs at the same time take one round trip.

A plan is a generator. It yields the queries whose results it needs next, is sent the rows of each, and returns its
result. Several plans can run side by side: the queries that all of them need at a time are sent together. So a read
takes as many round trips as its longest chain of dependent queries.

MySQL and MariaDB get the queries as one bare packet (`direct_statements`), PostgreSQL in the driver's pipeline mode,
with BEGIN first if necessary. On SQLite, which has no round trips, they are executed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, SQLAlchemyError

from hms_cache.store.engine.dialects import is_uncomparable
from hms_cache.store.engine.direct_statements import (
    DirectQuery,
    Values,
    execute_directly,
    executed_as_one,
    supports_direct_statements,
)
from hms_cache.store.engine.errors import DatabaseUnavailable, RetryableConflict
from hms_cache.values import frozen

if TYPE_CHECKING:
    from hms_cache.store.engine.drivers.postgresql_driver import LimitedConnection

T = TypeVar("T")

Rows = Sequence[Any]


class PlannedQuery(NamedTuple):
    """A query and its values."""

    query: DirectQuery
    values: Values
    compares_texts: bool = False
    """Whether the result is empty if MySQL cannot compare a given text with a column: Hive's own schema stores names in
    latin1, and a comparison with other text is an error."""


Plan = Generator[Sequence[PlannedQuery], Sequence[Rows], T]

_WAITING: Final = "hms_cache.waiting_plan"


def execute_plan(connection: Connection, plan: Plan[T]) -> T:
    """Runs the plan and returns its result. Raises what the plan raises, and what `Connection.execute` does."""
    waiting = connection.info.get(_WAITING)
    if waiting is not None:
        return cast(T, _execute_plan(connection, side_by_side(waiting(), plan))[1])
    return _execute_plan(connection, plan)


def _execute_plan(connection: Connection, plan: Plan[T]) -> T:
    try:
        queries = next(plan)
        while True:
            queries = plan.send(fetch_together(connection, queries))
    except StopIteration as end:
        return cast(T, end.value)


def combine_with_next(connection: Connection, make: Callable[[], Plan[T]]) -> Callable[[], T]:
    """Makes a plan run together with the next plan on this connection, or, if that one fails before its first query,
    with the one after it. The returned function returns the plan's result; if the plan has not run yet, it runs it.

    `forget_waiting` has to be called before the connection is returned.
    """
    found: list[T] = []

    def kept() -> Plan[None]:
        found.append((yield from make()))
        connection.info.pop(_WAITING, None)

    connection.info[_WAITING] = kept

    def result() -> T:
        if not found:
            if connection.info.get(_WAITING) is not kept:
                raise RuntimeError("the connection was given back")
            _execute_plan(connection, kept())
        return found[0]

    return result


def forget_waiting(connection: Connection) -> None:
    """Drops a plan that waits for another one."""
    if not connection.closed and not connection.invalidated:
        connection.info.pop(_WAITING, None)


def side_by_side(*plans: Plan[Any]) -> Plan[tuple[Any, ...]]:
    """Combines several plans into one. If some raise, the error of the first one counts."""
    results: list[Any] = [None] * len(plans)
    yielded: dict[int, Sequence[PlannedQuery]] = {}
    answers: Sequence[Rows] = ()
    running = dict.fromkeys(range(len(plans)), 0)
    while running:
        rest = iter(answers)
        for number, count in list(running.items()):
            plan = plans[number]
            try:
                yielded[number] = (
                    plan.send(list(islice(rest, count))) if yielded.get(number) is not None else next(plan)
                )
            except StopIteration as end:
                results[number] = end.value
                del running[number]
                continue
            running[number] = len(yielded[number])
        if running:
            answers = yield [planned for number in running for planned in yielded[number]]
    return tuple(results)


@frozen
class Outcome(Generic[T]):
    """What a plan returned or raised."""

    value: T | None
    error: Exception | None

    def result(self) -> T:
        """Returns the plan's result or raises its error."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


def attempt(plan: Plan[T]) -> Plan[Outcome[T]]:
    """The plan's outcome, for plans that rely on an assumption. Errors of the database are raised anyway: the
    transaction must not continue after them."""
    try:
        return Outcome((yield from plan), None)
    except (SQLAlchemyError, DatabaseUnavailable, RetryableConflict):
        raise
    except Exception as error:
        return Outcome(None, error)


def fetch(planned: PlannedQuery) -> Plan[Rows]:
    """Runs one query and returns its rows."""
    [rows] = yield [planned]
    return rows


def fetch_together(connection: Connection, queries: Sequence[PlannedQuery], *, ends: bool = False) -> list[Rows]:
    """Returns the rows of each query. `ends`: the last query also ends the transaction (of a load connection), if
    they are sent together. Raises what `Connection.execute` does."""
    if not queries:
        return []
    try:
        if supports_direct_statements(connection):
            return execute_directly(connection, [planned[:2] for planned in queries], commits=ends)
        if connection.dialect.name == "postgresql":
            driver = cast("LimitedConnection", connection.connection.dbapi_connection)
            if driver.has_pipelines:
                return _fetch_in_pipeline(connection, driver, queries, ends)
    except DataError as error:
        # On MySQL the transaction and its snapshot continue after the error.
        if not is_uncomparable(error) or not any(one.compares_texts for one in queries):
            raise
        return [_fetch_alone(connection, one) for one in queries]
    return [connection.execute(one.query.statement, dict(one.values)).all() for one in queries]


def _fetch_alone(connection: Connection, planned: PlannedQuery) -> Rows:
    try:
        [rows] = execute_directly(connection, [planned[:2]])
    except DataError as error:
        if not is_uncomparable(error) or not planned.compares_texts:
            raise
        return []
    return cast(Rows, rows)


def _fetch_in_pipeline(
    connection: Connection, driver: LimitedConnection, queries: Sequence[PlannedQuery], ends: bool
) -> list[Rows]:
    dialect = connection.dialect
    filled = [planned.query.with_values(dialect, planned.values) for planned in queries]
    shown = "; ".join(text for text, _ in filled)
    found = executed_as_one(connection, shown, lambda: driver.fetch_in_pipeline(filled, ends=ends))
    return [planned.query.rows(dialect, rows) for planned, rows in zip(queries, found, strict=True)]
