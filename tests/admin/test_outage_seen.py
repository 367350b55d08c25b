"""The database goes down under load, and operators see it on /readyz, /events, /metrics and the overview."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hmsclient.genthrift.hive_metastore import ttypes
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import make_url

from tests.admin.running import TOKEN, Running
from tests.admin.test_commands import new_table
from tests.consistency.observers import wait_until
from tests.consistency.proxy import proxy_to
from tests.servers import metastore_client


class Load:
    """Clients that read repeatedly, on a new connection after each failure; their results are counted."""

    def __init__(self, port: int, clients: int) -> None:
        self.good = 0
        self.bad = 0
        self._port = port
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with metastore_client(self._port) as client:
                    while not self._stopping.is_set():
                        client.get_table("shop", "sales")
                        self.good += 1
            except Exception:
                self.bad += 1
                self._stopping.wait(0.02)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)


def samples(server: Running) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(server.ask("/metrics")[1])
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def until(server: Running, path: str, right: Callable[[Any], bool], what: str) -> None:
    wait_until(lambda: right(server.json(path)), what)


@pytest.mark.mariadb
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_an_outage_is_seen_and_so_is_its_end(initialized_database_url: str, tmp_path: Path) -> None:
    real = make_url(initialized_database_url)
    with proxy_to(str(real.host), int(real.port or 3306)) as proxy:
        url = real.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        server = Running(
            tmp_path,
            database__url=url,
            events__poll_interval_s=0.1,
            database__connect_timeout_s=2,
            warehouse__files="leave",
        )
        try:
            server.client.create_database(ttypes.Database(name="shop"))
            server.client.create_table(new_table("sales"))
            load = Load(int(server.uri.rpartition(":")[2]), clients=4)
            wait_until(lambda: load.good > 50, "the clients read")
            assert server.ask("/readyz")[0] == 200
            assert samples(server)["hms_cache_database_reachable",] == 1
            applied = server.json("/events")["status"]["position"]

            proxy.cut()
            wait_until(lambda: server.ask("/readyz")[0] == 503, "no more clients are sent here")
            wait_until(lambda: samples(server)["hms_cache_database_reachable",] == 0, "the metric tells")
            until(server, "/events", lambda page: page["consecutive_fetch_failures"] > 1, "the log cannot be read")
            page = server.json("/events")
            assert page["database_error"] and page["status"]["last_fetch_error"]
            assert page["status"]["position"] == applied
            seen = samples(server)
            assert seen["hms_cache_events_fetch_failures_total",] > 1 and seen["hms_cache_events_age_seconds",] > 0
            wait_until(
                lambda: samples(server)["hms_cache_events_age_seconds",] > seen["hms_cache_events_age_seconds",],
                "the age of what is known grows",
            )
            assert not server.json("/")["ready"]
            assert server.ask("/locks")[0] == 503, "it is there, and cannot be shown now"
            assert server.ask("/events/seek?event_id=0", TOKEN, post=True)[0] == 503
            bad = load.bad
            wait_until(lambda: load.bad > bad, "reads that need a proof fail")
            assert server.ask("/livez")[0] == 200, "a restart would not help"
            errors = sum(
                value for key, value in samples(server).items() if key[0] == "hms_cache_calls_total" and "error" in key
            )
            assert errors >= 1

            proxy.mend()
            wait_until(lambda: server.ask("/readyz")[0] == 200, "clients are sent here again")
            until(server, "/events", lambda page: page["consecutive_fetch_failures"] == 0, "the log is followed again")
            good = load.good
            wait_until(lambda: load.good > good + 50, "the clients read again")
            page = server.json("/events")
            assert page["database_error"] is None and page["status"]["status"] == "ACTIVE"
            assert page["fetch_failures"] > 1 and samples(server)["hms_cache_database_reachable",] == 1
            load.stop()
        finally:
            server.close()
