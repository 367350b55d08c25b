"""An error among the answers of the database, such as a lack of memory: unread answers are not used for another
query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, Integer, String, bindparam, cast, literal_column, select
from sqlalchemy.exc import StatementError

from hms_cache.computing import scheduler
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import DirectQuery, execute_directly
from hms_cache.store.engine.drivers import mysql_driver, mysql_rows
from hms_cache.store.engine.read_plans import PlannedQuery, fetch_together
from hms_cache.store.engine.work_units import run_read

ON_MARIADB = [pytest.mark.mariadb, pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)]
ROWS = 300
"""More than packets have numbers: the rest of an answer may be numbered as the beginning of another one."""

COUNTED = select(literal_column("0", Integer()).label("n")).cte("counted", recursive=True)
COUNTED = COUNTED.union_all(
    select(COUNTED.c.n + literal_column("1")).where(COUNTED.c.n < literal_column(str(ROWS - 1)))
)
NUMBERS = select(COUNTED.c.n, cast(bindparam("v"), String(9)).label("v"))
QUERY = DirectQuery(NUMBERS)


def as_usual(connection: Connection, value: str) -> list[list[tuple[Any, ...]]]:
    return [[tuple(row) for row in connection.execute(NUMBERS, {"v": value}).all()]]


def together(connection: Connection, value: str) -> list[list[tuple[Any, ...]]]:
    requested = fetch_together(connection, [PlannedQuery(QUERY, {"v": f"{value}{at}"}) for at in range(3)])
    return [[tuple(row) for row in rows] for rows in requested]


def expected(values: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    return [[(number, value) for number in range(ROWS)] for value in values]


class Failing:
    """Replaces a function, and raises instead of its `at`-th call."""

    def __init__(self, function: Callable[..., Any], at: int) -> None:
        self._function = function
        self._left = at

    def __call__(self, *arguments: Any) -> Any:
        self._left -= 1
        if not self._left:
            raise MemoryError("no room for an answer")
        return self._function(*arguments)


def drivers_of(database: Database, fail: Callable[[Connection], object]) -> Any:
    """The driver's connection on which this failed, with its own error."""
    with pytest.raises((MemoryError, StatementError), match="no room"), database.loading() as connection:
        of_driver = connection.connection.dbapi_connection
        fail(connection)
    return of_driver


class TestMariaDb:
    """PyMySQL's connection."""

    pytestmark = ON_MARIADB

    @pytest.mark.parametrize("read", [as_usual, together])
    @pytest.mark.parametrize("at", [1, 2])
    def test_amid_rows(
        self, initialized_database: Database, monkeypatch: pytest.MonkeyPatch, read: Callable[..., Any], at: int
    ) -> None:
        monkeypatch.setattr(mysql_rows, "BUFFER_BYTES", 512)
        monkeypatch.setattr(mysql_driver, "BUFFER_BYTES", 512)
        with initialized_database.loading() as connection:
            assert read(connection, "w")[0] == expected(["w" if read is as_usual else "w0"])[0]
        monkeypatch.setattr(mysql_rows, "_rows_of", Failing(mysql_rows._rows_of, at))
        failed = drivers_of(initialized_database, lambda connection: read(connection, "x"))
        monkeypatch.undo()
        assert not failed.open
        assert run_read(initialized_database, lambda connection: as_usual(connection, "y")) == expected(["y"])

    def test_amid_acknowledgements(self, initialized_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mysql_driver, "_number", Failing(mysql_driver._number, 1))

        def fail(connection: Connection) -> None:
            driver = connection.connection.dbapi_connection
            assert isinstance(driver, mysql_driver.MySqlConnection)
            driver.send_together(["SET @a = 1", "SET @a = 2", "SELECT 3"], queries=[2])

        failed = drivers_of(initialized_database, fail)
        monkeypatch.undo()
        assert not failed.open
        assert run_read(initialized_database, lambda connection: as_usual(connection, "y")) == expected(["y"])

    def test_an_error_of_the_servers_costs_no_connection(self, initialized_database: Database) -> None:
        with initialized_database.loading() as connection:
            driver = connection.connection.dbapi_connection
            assert isinstance(driver, mysql_driver.MySqlConnection)
            for fail in (
                lambda: driver.send_together(["SET @a = 1", "SELECT no_such", "SET @a = 2"], queries=[1]),
                lambda: connection.exec_driver_sql("SELECT no_such"),
                lambda: execute_directly(connection, [(DirectQuery(select(literal_column("no_such"))), {})]),
            ):
                with pytest.raises(Exception, match="no_such"):
                    fail()
                assert driver.open
                assert as_usual(connection, "y") == expected(["y"])


@pytest.mark.postgresql
@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
@pytest.mark.parametrize("read", [as_usual, together])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_amid_answers_of_postgresql(
    initialized_database: Database, monkeypatch: pytest.MonkeyPatch, read: Callable[..., Any], at: int
) -> None:
    """libpq sends nothing while an answer is being received, and a pipeline that cannot be ended closes the
    connection."""
    with initialized_database.loading() as connection:
        assert read(connection, "w")
    failing = Failing(lambda: False, at)
    monkeypatch.setattr(scheduler, "pause", failing)
    try:
        # What was repeated because the connection could not be used further has its answer.
        found = run_read(initialized_database, lambda connection: read(connection, "x"))
    except (MemoryError, StatementError) as error:
        assert "no room" in str(error)
    else:
        assert found == expected(["x"] if read is as_usual else ["x0", "x1", "x2"])
    monkeypatch.undo()
    for _ in range(2):
        assert run_read(initialized_database, lambda connection: as_usual(connection, "y")) == expected(["y"])
