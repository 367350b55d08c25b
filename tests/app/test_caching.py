"""The cache's part in a server's stop and reload, after any commands to the poller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.cache.entries import Facet
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import PollerStatus
from tests.app.test_service import client, configured
from tests.cache.world import partition, table
from tests.consistency.observers import wait_until

BEFORE: dict[PollerStatus, Callable[[Poller], None]] = {
    PollerStatus.ACTIVE: lambda poller: None,
    PollerStatus.PAUSED: lambda poller: poller.pause(),
    PollerStatus.ERROR: lambda poller: poller.fail("an unlogged writer"),
    PollerStatus.STOPPED: lambda poller: poller.stop(),
}


@pytest.mark.parametrize("status", BEFORE)
def test_a_server_stops_and_reloads_whatever_its_poller_does(status: PollerStatus, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0, events__poll_interval_s=3600))
    uri = service.start()
    assert service.admin_sources is not None
    poller = service.admin_sources.poller
    assert poller is not None
    poller.ensure_applied(0, 30)  # the first step, from NEEDS_RESYNC to ACTIVE
    BEFORE[status](poller)
    assert poller.status is status
    assert service.reload(configured(tmp_path, admin__enabled=True, admin__port=0, cache__exclude="shop.*"))[0] == [
        "cache.exclude"
    ]
    assert poller.status is status, "a reload is no command to the poller"
    with client(uri) as metastore:
        assert metastore.get_all_databases() == ["default"]
    service.stop()
    assert poller.status is PollerStatus.STOPPED
    assert [thread.name for thread in threading.enumerate() if thread not in before and thread.is_alive()] == []


def test_a_reload_drops_what_the_old_rules_let_in(tmp_path: Path) -> None:
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0))
    uri = service.start()
    assert service.admin_sources is not None and service.admin_sources.cache is not None
    shared = service.admin_sources.cache.shared
    with client(uri) as metastore:
        for _ in range(3):
            assert metastore.get_database("default").name == "default"
        assert shared.databases
        assert len(shared.answers)
        position, resets = shared.position, shared.resets
        service.reload(configured(tmp_path, admin__enabled=True, admin__port=0, cache__exclude="shop.*"))
        assert not shared.databases
        assert not len(shared.answers)
        assert (shared.position, shared.resets) == (position, resets)
        assert metastore.get_database("default").name == "default"
    service.stop()


def test_without_a_cache_the_status_of_the_poller_is_disabled(tmp_path: Path) -> None:
    service = Service(configured(tmp_path, cache__enabled=False))
    service.start()
    try:
        samples = service.metrics.events.status.collect()
        shown = {one.labels["status"]: one.value for metric in samples for one in metric.samples}
    finally:
        service.stop()
    assert {status for status, value in shown.items() if value} == {PollerStatus.DISABLED.value}
    assert set(shown) == {status.value for status in PollerStatus}


@pytest.mark.parametrize("warm", ["full", "names", "off"])
def test_after_a_resync_the_cache_is_warmed_again(warm: str, tmp_path: Path) -> None:
    """Nobody reads meanwhile: with `full`, all tables are loaded again, otherwise those that were read recently."""
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0, cache__warm=warm))
    uri = service.start()
    try:
        assert service.admin_sources is not None
        cache, poller = service.admin_sources.cache, service.admin_sources.poller
        assert cache is not None and poller is not None
        wanted = {"read", "unread"} if warm == "full" else {"read"}

        def held() -> set[str]:
            with cache.shared.view():
                return {key.table for key, entry in cache.shared.tables.items() if Facet.TABLE in entry.facets}

        with client(uri) as metastore:
            for name in ("read", "unread"):
                metastore.create_table(table("default", name))
            for _ in range(2):

                def is_hit() -> bool:
                    metastore.get_table("default", "read")
                    hits = service.reads_by_outcome().get("hit", 0)
                    metastore.get_table("default", "read")
                    return service.reads_by_outcome().get("hit", 0) > hits

                wait_until(is_hit, "it is read from memory")
                generation = cache.shared.generation
                poller.resync()
                assert poller.ensure_applied(0, 30)
                assert cache.shared.generation > generation
                wait_until(lambda: held() == wanted, "it is warm again")
    finally:
        service.stop()


@pytest.mark.parametrize("poll_interval_s", [0, 3600])
def test_a_resync_that_is_due_does_not_wait_for_the_next_poll(poll_interval_s: int, tmp_path: Path) -> None:
    """Until then, reads are answered by the database, and do not bring it about sooner. Before, that took up to an hour
    if nothing is prewarmed."""
    service = Service(
        configured(
            tmp_path, admin__enabled=True, admin__port=0, cache__warm="off", events__poll_interval_s=poll_interval_s
        )
    )
    service.start()
    try:
        assert service.admin_sources is not None
        poller = service.admin_sources.poller
        assert poller is not None
        commands: list[Callable[[], object]] = [
            poller.resync,
            lambda: poller.seek(0),
            lambda: (poller.fail("an unlogged writer"), poller.start()),
        ]
        for resyncs, command in enumerate(commands, start=1):
            wait_until(lambda: poller.status is PollerStatus.ACTIVE, "it follows the log")
            assert poller.statistics().resyncs == resyncs
            command()
        wait_until(lambda: poller.status is PollerStatus.ACTIVE, "it follows the log")
    finally:
        service.stop()


def test_a_server_skips_events_of_tables_that_are_not_held(tmp_path: Path) -> None:
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0))
    uri = service.start()
    try:
        assert service.admin_sources is not None
        poller = service.admin_sources.poller
        assert poller is not None
        with client(uri) as metastore:
            cold = table("default", "cold", (("k", "string"),))
            metastore.create_table(cold)
            metastore.add_partitions([partition(cold, ("1",))])
            wait_until(lambda: sum(poller.statistics().skipped.values()) > 0, "an event is skipped")
    finally:
        service.stop()


def test_a_poll_interval_of_nothing_reads_the_log_when_a_call_needs_it(tmp_path: Path) -> None:
    service = Service(configured(tmp_path, events__poll_interval_s=0))
    uri = service.start()
    try:
        with client(uri) as metastore:
            assert metastore.get_all_databases() == ["default"]
            assert metastore.get_all_databases() == ["default"]
        assert service.reads_by_outcome()["hit"] >= 1
    finally:
        service.stop()
