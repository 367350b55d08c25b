"""A database that no longer answers and closes nothing: position checks give up by their own limit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import make_url, select

from hms_cache.config.sections import DatabaseSettings
from hms_cache.store import schema
from hms_cache.store.engine.database import Database, read_log_end
from hms_cache.store.engine.errors import DatabaseUnavailable
from tests.consistency.proxy import proxy_to
from tests.databases import closing

LONGEST_WAIT_S = 30.0
_ANY = select(schema.DBS.c.NAME)


@pytest.mark.parametrize(
    "database_kind", [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("mariadb", "postgresql")]
)
def test_a_check_does_not_wait_as_long_as_a_statement_may(initialized_database_url: str) -> None:
    """The cached reads of all clients wait for it, and a slow statement may take minutes."""
    url = make_url(initialized_database_url)
    settings = DatabaseSettings(check_timeout_s=1, statement_timeout_s=3600)
    with proxy_to(str(url.host), int(url.port or 0)) as proxy:
        through = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        with closing(Database(through, settings)) as database, ThreadPoolExecutor(2) as threads:
            stalled = threading.Event()

            def load() -> None:
                with database.loading() as connection:
                    connection.execute(_ANY).all()
                    proxy.stall()
                    stalled.set()
                    connection.execute(_ANY).all()

            read_log_end(database)  # opens the connection that will hang
            loading = threads.submit(load)
            assert stalled.wait(LONGEST_WAIT_S)
            try:
                with pytest.raises(DatabaseUnavailable):
                    threads.submit(read_log_end, database).result(LONGEST_WAIT_S)
                assert not loading.done(), "a statement may take longer"
            finally:
                proxy.cut()
            with pytest.raises(DatabaseUnavailable):
                loading.result(LONGEST_WAIT_S)
