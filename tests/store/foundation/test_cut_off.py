"""A thread that waits for the database is freed by another one."""

from __future__ import annotations

import threading

from hms_cache.store.engine.database import Database
from tests.servers import PATIENCE_S


def test_a_thread_that_waits_for_the_database_is_cut_off(empty_database: Database) -> None:
    database = empty_database
    holding = threading.Event()
    outcome: list[object] = []
    sleep = "SELECT SLEEP(60)" if database.dialect == "mysql" else "SELECT pg_sleep(60)"
    if database.is_sqlite:
        sleep = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    def wait() -> None:
        try:
            with database.loading() as connection:
                connection.exec_driver_sql("SELECT 1").scalar()
                holding.set()
                outcome.append(connection.exec_driver_sql(sleep).scalar())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert holding.wait(PATIENCE_S)
    identifier = thread.ident
    assert identifier is not None
    while thread.is_alive() and database.cut_off(identifier):
        thread.join(0.2)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert isinstance(outcome[0], Exception), outcome
    assert not database.cut_off(identifier), "it holds nothing any more"
    with database.loading() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1, "the pool gives no connection that was cut off"
