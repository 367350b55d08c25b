"""Housekeeping: a step that fails does not prevent the others."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from hms_cache.app.database import ensure_first_rows, open_database, require_schema
from hms_cache.app.housekeeping import Housekeeping
from hms_cache.app.stores import DatabaseStores, build_database_stores
from hms_cache.store.engine import features, inspection
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.schema import AUX_TABLE, COMPACTION_QUEUE, TXNS
from hms_cache.store.transactions.time_outs import TimedOut
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.app.test_service import configured
from tests.databases import closing

AGE_MS = 10 * 86_400_000


def work_for_each_step(database: Database, stores: DatabaseStores) -> None:
    """Ended transactions, and a compaction whose worker is gone."""
    request = ttypes.OpenTxnRequest(num_txns=3, user="u", hostname="h")
    for txn_id in stores.transactions.open_txns(request).txn_ids:
        stores.transactions.abort_txn(ttypes.AbortTxnRequest(txnid=txn_id))
    with database.writing() as connection:
        connection.execute(update(TXNS).values(TXN_STARTED=TXNS.c.TXN_STARTED - AGE_MS))
        connection.execute(
            insert(COMPACTION_QUEUE).values(
                CQ_ID=1, CQ_DATABASE="d", CQ_TABLE="t", CQ_STATE="w", CQ_TYPE="a", CQ_START=1, CQ_WORKER_ID="gone-1"
            )
        )
        connection.commit()


def left(database: Database) -> tuple[int, str]:
    with database.loading() as connection:
        transactions = connection.execute(select(TXNS.c.TXN_ID)).all()
        state = connection.execute(select(COMPACTION_QUEUE.c.CQ_STATE)).scalar_one()
    return len(transactions), state


def test_a_row_that_one_step_cannot_read_stops_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured(tmp_path).settings
    with closing(open_database(settings)) as database:
        require_schema(database, settings)
        ensure_first_rows(database, settings)
        stores = build_database_stores(settings, database)
        work_for_each_step(database, stores)
        with database.writing() as connection:
            connection.execute(insert(AUX_TABLE).values(MT_KEY1="HmsCacheTimeOuts", MT_KEY2=0, MT_COMMENT="rubbish"))
            connection.commit()
        housekeeping, interval_s = Housekeeping(settings, stores), settings.transactions.housekeeping_interval_s
        assert housekeeping._time_out() == interval_s
        monkeypatch.setattr(stores.transactions, "clean", lambda: int("rubbish"))
        assert housekeeping._keep_transactions() == interval_s
        assert left(database) == (4, "i"), "the compaction waits for another worker"
        monkeypatch.undo()
        assert housekeeping._keep_transactions() == interval_s
        assert left(database) == (1, "i"), "the newest transaction stays"
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == [
        "what has timed out could not be aborted",
        "a step of the housekeeping failed; the others go on",
    ]


def test_a_server_may_leave_it_to_others(tmp_path: Path) -> None:
    settings = configured(tmp_path, transactions__housekeeping_interval_s="inf").settings
    with closing(open_database(settings)) as database, ExitStack() as stack:
        require_schema(database, settings)
        ensure_first_rows(database, settings)
        Housekeeping(settings, build_database_stores(settings, database)).start(stack)
        assert not {"hms-time-outs", "hms-transactions"} & {one.name for one in threading.enumerate()}


def test_time_outs_wait_for_nothing_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If millions of rows had accumulated, nothing timed out before they were deleted, which took hours: each run found
    that the last one was too long ago, and gave clients time for a heartbeat."""
    settings = configured(tmp_path, transactions__housekeeping_interval_s=0.01).settings
    cleaning, cleaned, runs = threading.Event(), threading.Event(), threading.Semaphore(0)

    def clean() -> None:
        cleaning.set()
        cleaned.wait()

    with closing(open_database(settings)) as database, ExitStack() as stack:
        require_schema(database, settings)
        ensure_first_rows(database, settings)
        stores = build_database_stores(settings, database)
        give_up = stores.transactions.give_up_timed_out

        def give_up_timed_out(longest_pause_s: float | None = None) -> TimedOut:
            given_up = give_up(longest_pause_s)
            runs.release()
            return given_up

        monkeypatch.setattr(stores.transactions, "clean", clean)
        monkeypatch.setattr(stores.transactions, "give_up_timed_out", give_up_timed_out)
        Housekeeping(settings, stores).start(stack)
        stack.callback(cleaned.set)
        assert cleaning.wait(30)
        assert all(runs.acquire(timeout=30) for _ in range(3))


def test_a_start_looks_at_the_schema_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a database server, it takes several queries of the catalog, and was done three times."""
    settings = configured(tmp_path).settings
    with closing(open_database(settings)) as database:
        require_schema(database, settings)
    looks = []
    inspect = inspection.inspect_tables
    monkeypatch.setattr(features, "inspect_tables", lambda connection: looks.append(1) or inspect(connection))
    with closing(open_database(settings)) as database:
        require_schema(database, settings)
        ensure_first_rows(database, settings)
        Housekeeping(settings, build_database_stores(settings, database))
    assert looks == [1]


def test_an_outage_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured(tmp_path).settings
    with closing(open_database(settings)) as database:
        require_schema(database, settings)
        stores = build_database_stores(settings, database)

        def away(*_: object, **__: object) -> None:
            raise DatabaseUnavailable("away")

        for step in ("give_up_timed_out", "clean", "keep_compactions"):
            monkeypatch.setattr(stores.transactions, step, away)
        Housekeeping(settings, stores)._time_out()
        Housekeeping(settings, stores)._keep_transactions()
    assert [one.getMessage() for one in caplog.records] == [
        "nothing times out while the database is unavailable: away",
        "no housekeeping while the database is unavailable: away",
    ]
