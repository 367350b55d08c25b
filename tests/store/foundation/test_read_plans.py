"""Plans return the same as separate queries, in one state, in as many round trips as they have rounds."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, func, insert, literal, make_url, select, true
from sqlalchemy.exc import DBAPIError

from hms_cache.config.sections import DatabaseSettings
from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.read_plans import (
    Plan,
    PlannedQuery,
    Rows,
    attempt,
    combine_with_next,
    execute_plan,
    fetch,
    fetch_together,
    forget_waiting,
    side_by_side,
)
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from tests.databases import closing, count_statements
from tests.store.foundation.relay import Relay

P = schema.METASTORE_DB_PROPERTIES.c
COLUMNS = (P.PROPERTY_KEY, P.PROPERTY_VALUE, func.length(P.PROPERTY_VALUE).label("bytes"), literal("%s 'x'").label("c"))
READ = DirectQuery(
    select(*COLUMNS).where(P.PROPERTY_KEY.in_(bindparam("keys", expanding=True))).order_by(P.PROPERTY_KEY)
)
OTHERS = DirectQuery(
    select(P.PROPERTY_KEY).where(P.PROPERTY_KEY.not_in(bindparam("keys", expanding=True))).order_by(P.PROPERTY_KEY)
)
LIKE = DirectQuery(
    select(P.PROPERTY_KEY)
    .where(P.PROPERTY_VALUE.like(bindparam("pattern"), escape="!"))
    .order_by(P.PROPERTY_KEY)
    .limit(bindparam("most"))
)
COUNT = DirectQuery(select(func.count().label("found")).select_from(schema.METASTORE_DB_PROPERTIES))
_ONE, _TWO, _THREE = (schema.METASTORE_DB_PROPERTIES.alias(f"of_{at}") for at in range(3))
LARGE = DirectQuery(
    select(*(one.c.PROPERTY_VALUE.label(f"v_{at}") for at, one in enumerate((_ONE, _TWO, _THREE)))).select_from(
        _ONE.join(_TWO, true()).join(_THREE, true())
    )
)
"""Each value with each other and with each again: more than a socket's buffer."""
BROKEN = DirectQuery(select(P.PROPERTY_KEY).where(func.no_such_function(P.PROPERTY_KEY) == 1))

AWKWARD = ["it's", '"', "\\", "%", "%s %(key)s %%", ":x", "; COMMIT; ", "ä 雪", "\n\r\x1a", "x" * 200, "{}", "{a,b}"]


def write(database: Database, *keys: str, values: Sequence[str] = AWKWARD) -> None:
    def work(transaction: WriteTransaction) -> None:
        for at, key in enumerate(keys):
            row = {"PROPERTY_KEY": key, "PROPERTY_VALUE": values[at % len(values)]}
            transaction.connection.execute(insert(schema.METASTORE_DB_PROPERTIES).values(row))

    run_write(database, work)


def counted(connection: Connection) -> int:
    return int(execute_plan(connection, fetch(PlannedQuery(COUNT, {})))[0].found)


def test_rows_are_those_that_sqlalchemy_answers(initialized_database: Database) -> None:
    write(initialized_database, *AWKWARD)
    questions = [
        PlannedQuery(READ, {"keys": AWKWARD}),
        PlannedQuery(READ, {"keys": []}),
        PlannedQuery(READ, {"keys": ["it's", "no such"]}),
        PlannedQuery(OTHERS, {"keys": AWKWARD[3:]}),
        PlannedQuery(OTHERS, {"keys": []}),
        PlannedQuery(LIKE, {"pattern": "!%%", "most": 10}),
        PlannedQuery(LIKE, {"pattern": "%'%", "most": 1}),
        PlannedQuery(DirectQuery(select(P.PROPERTY_VALUE).where(P.PROPERTY_KEY == AWKWARD[4]), is_kept=False), {}),
    ]
    with initialized_database.loading() as connection:
        usual = [connection.execute(one.query.statement, dict(one.values)).all() for one in questions]
    assert [len(rows) for rows in usual] == [len(AWKWARD), 0, 1, 3, len(AWKWARD), 2, 1, 1]
    for _ in range(7):  # PostgreSQL's driver prepares frequent statements
        found = run_read(initialized_database, lambda connection: fetch_together(connection, questions))
        assert [list(map(tuple, rows)) for rows in found] == [list(map(tuple, rows)) for rows in usual]
    assert [one.c for one in found[0]] == ["%s 'x'"] * len(AWKWARD)


def rounds(count: int) -> Plan[list[int]]:
    seen = []
    for _ in range(count):
        rows, _ = yield [PlannedQuery(COUNT, {}), PlannedQuery(READ, {"keys": ["a"]})]
        seen.append(rows[0].found)
    return seen


def test_plans_side_by_side_take_as_many_round_trips_as_the_longest(initialized_database: Database) -> None:
    write(initialized_database, "a", "b")

    def nothing() -> Plan[str]:
        return "nothing"
        yield []  # makes it a generator

    with initialized_database.loading() as connection, count_statements(initialized_database) as seen:
        found = execute_plan(
            connection, side_by_side(rounds(1), rounds(3), nothing(), side_by_side(rounds(2), rounds(0)))
        )
    assert found == ([2], [2, 2, 2], "nothing", ([2, 2], []))
    assert seen.count == (12 if initialized_database.is_sqlite else 3)


def test_all_rounds_show_one_moment(initialized_database: Database) -> None:
    def plan() -> Plan[list[int]]:
        seen = []
        for key in "abc":
            [rows] = yield [PlannedQuery(COUNT, {})]
            seen.append(rows[0].found)
            if not initialized_database.is_sqlite:
                write_elsewhere(key)
        return seen

    def write_elsewhere(key: str) -> None:
        with initialized_database.write_engine.connect() as connection:
            connection.execute(
                insert(schema.METASTORE_DB_PROPERTIES).values({"PROPERTY_KEY": key, "PROPERTY_VALUE": "v"})
            )
            connection.commit()

    with initialized_database.loading() as connection:
        assert execute_plan(connection, plan()) == [0, 0, 0]
    with initialized_database.loading() as connection:
        assert counted(connection) == (0 if initialized_database.is_sqlite else 3), "and the next one the next"


def test_a_transaction_that_ends_with_its_questions_leaves_no_snapshot(initialized_database: Database) -> None:
    if initialized_database.is_sqlite:
        pytest.skip("it ends with its connection's use")
    with initialized_database.loading() as connection:
        [rows] = fetch_together(connection, [PlannedQuery(COUNT, {})], ends=True)
        assert rows[0].found == 0
        with initialized_database.write_engine.connect() as other:
            other.execute(insert(schema.METASTORE_DB_PROPERTIES).values({"PROPERTY_KEY": "a", "PROPERTY_VALUE": "v"}))
            other.commit()
        assert counted(connection) == 1


def test_what_is_attempted_goes_on_beside_and_tells_its_error(initialized_database: Database) -> None:
    def failing() -> Plan[None]:
        yield [PlannedQuery(COUNT, {})]
        raise ValueError("of the assumption")

    def work(connection: Connection) -> tuple[Any, ...]:
        return execute_plan(connection, side_by_side(attempt(failing()), attempt(rounds(2)), rounds(1)))

    wrong, right, beside = run_read(initialized_database, work)
    with pytest.raises(ValueError, match="of the assumption"):
        wrong.result()
    assert right.result() == [0, 0] and beside == [0]
    with pytest.raises(ValueError, match="of the assumption"):
        run_read(initialized_database, lambda connection: execute_plan(connection, side_by_side(rounds(1), failing())))


def test_what_the_database_refuses_is_no_outcome_of_an_attempt(initialized_database: Database) -> None:
    """On PostgreSQL, the transaction ends with it: later statements would be refused with an uninformative error."""

    def inline(connection: Connection) -> Plan[None]:
        yield [PlannedQuery(COUNT, {})]
        connection.execute(BROKEN.statement)

    with pytest.raises(DBAPIError, match="no_such_function"), initialized_database.loading() as connection:
        execute_plan(connection, side_by_side(attempt(inline(connection)), rounds(3)))
    assert run_read(initialized_database, counted) == 0


def test_a_plan_waits_for_one_that_asks_something(initialized_database: Database) -> None:
    """One that fails before its first query does not affect the others."""

    def bad() -> Plan[None]:
        raise ValueError("bad")
        yield []

    with initialized_database.loading() as connection, count_statements(initialized_database) as seen:
        waiting = combine_with_next(connection, lambda: rounds(1))
        with pytest.raises(ValueError, match="bad"):
            execute_plan(connection, bad())
        assert execute_plan(connection, rounds(1)) == waiting() == [0]
        execute_plan(connection, rounds(1))
    assert seen.count == (6 if initialized_database.is_sqlite else 2)


def test_a_plan_waits_for_the_next_one(initialized_database: Database) -> None:
    with initialized_database.loading() as connection:
        with count_statements(initialized_database) as seen:
            waiting = combine_with_next(connection, lambda: rounds(1))
            assert execute_plan(connection, rounds(2)) == [0, 0] and waiting() == waiting() == [0]
        assert seen.count == (6 if initialized_database.is_sqlite else 2)
        assert combine_with_next(connection, lambda: rounds(1))() == [0], "by itself"
        left = combine_with_next(connection, lambda: rounds(1))
        forget_waiting(connection)
        with pytest.raises(RuntimeError):
            left()
        failing = combine_with_next(connection, lambda: rounds(1))
        with pytest.raises(ValueError, match="late"):
            execute_plan(connection, late())
        assert failing() == [0], "its answer came with what the other one failed on"


def late() -> Plan[None]:
    yield [PlannedQuery(COUNT, {})]
    raise ValueError("late")


def test_an_error_among_the_questions_leaves_the_connection_in_order(initialized_database: Database) -> None:
    """And it is the error of the query that failed, not the driver's error for those behind it."""
    write(initialized_database, *AWKWARD)
    for before, behind in product(range(3), repeat=2):
        questions = [PlannedQuery(LARGE, {})] * before + [PlannedQuery(BROKEN, {})] + [PlannedQuery(LARGE, {})] * behind
        with pytest.raises(DBAPIError, match="no_such_function"), initialized_database.loading() as connection:
            fetch_together(connection, questions)
        # What follows is this query's answer and no other's.
        assert run_read(initialized_database, counted) == len(AWKWARD)


def test_a_question_that_takes_too_long_is_said_to(
    initialized_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the time of the others does not count for it: each has a limit."""
    kind = make_url(initialized_database_url).get_backend_name()
    if kind == "sqlite":
        pytest.skip("it has no limit")
    sleep = {"mysql": func.sleep, "postgresql": func.pg_sleep}[kind]

    def sleeping(seconds: float) -> PlannedQuery:
        return PlannedQuery(
            DirectQuery(select(sleep(bindparam("seconds")).label("slept"), literal("x"))), {"seconds": seconds}
        )

    monkeypatch.setattr("hms_cache.store.engine.drivers.sessions._SOCKET_MARGIN_S", 0.5)
    with closing(Database(initialized_database_url, DatabaseSettings(statement_timeout_s=2))) as database:
        # Together they take longer than the socket's limit for one of them.
        run_read(database, lambda connection: fetch_together(connection, [sleeping(0.7)] * 4))
        with database.loading() as connection:
            if kind == "mysql" and "maria" not in connection.execute(select(func.lower(func.version()))).scalar_one():
                pytest.skip("MySQL's SLEEP ends early where its time is over, without an error")
        with pytest.raises(DatabaseUnavailable) as raised, database.loading() as connection:
            fetch_together(connection, [PlannedQuery(COUNT, {}), sleeping(30), *[PlannedQuery(COUNT, {})] * 3])
        assert not raised.value.connection_lost
        assert run_read(database, counted) == 0


def test_a_connection_that_breaks_is_asked_again_on_another(initialized_database: Database) -> None:
    if initialized_database.is_sqlite:
        pytest.skip("there is no connection")
    write(initialized_database, "a")
    tries: list[int] = []

    def work(connection: Connection) -> Rows:
        tries.append(1)
        found = execute_plan(connection, rounds(1))
        if len(tries) == 1:
            driver: Any = connection.connection.dbapi_connection
            with socket.socket(fileno=driver.fileno() if hasattr(driver, "fileno") else driver._sock.fileno()) as sock:
                sock.shutdown(socket.SHUT_RDWR)
                sock.detach()
        return found + execute_plan(connection, rounds(1))

    assert run_read(initialized_database, work) == [1, 1]
    assert len(tries) == 2
    with pytest.raises(DatabaseUnavailable), initialized_database.snapshot() as connection:
        tries.clear()
        work(connection)
    assert run_read(initialized_database, counted) == 1


@pytest.mark.soak
def test_answers_that_break_off_anywhere_are_asked_for_again(initialized_database_url: str) -> None:
    """Half of a packet's answers are not used, and the next read gets its own."""
    url = make_url(initialized_database_url)
    if url.get_backend_name() == "sqlite":
        pytest.skip("there is no connection")
    keys = [f"key {number}" for number in range(12)]

    def plan() -> Plan[list[list[str]]]:
        first = yield [
            PlannedQuery(READ, {"keys": keys[:6]}),
            PlannedQuery(COUNT, {}),
            PlannedQuery(READ, {"keys": keys[6:]}),
        ]
        found = [[one.PROPERTY_KEY for one in rows] for rows in (first[0], first[2])]
        rest = yield [PlannedQuery(OTHERS, {"keys": one}) for one in found]
        return [*found, *([one.PROPERTY_KEY for one in rows] for rows in rest)]

    def read(database: Database) -> list[list[str]]:
        return run_read(database, lambda connection: execute_plan(connection, plan()))

    relay = Relay(url.port or 0)
    through = url.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    ordered = sorted(keys)
    first, second = sorted(keys[:6]), sorted(keys[6:])
    expected = [first, second, [key for key in ordered if key not in first], [key for key in ordered if key in first]]
    with closing(Database(through, DatabaseSettings(pool_size=1))) as database:
        write(database, *keys)
        for _ in range(7):  # until the driver prepares nothing any more
            before = relay.answered
            assert read(database) == expected
        size = relay.answered - before
        assert size > 500
        for position in range(0, size, max(1, size // 40)):
            relay.cut_answers_after(position)
            assert read(database) == expected, position
            assert relay.cut.wait(30)
            assert read(database) == expected, position
    relay.close()
