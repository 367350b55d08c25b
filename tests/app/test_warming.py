"""The prewarm as background work: what restarts it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.app.warming import Warming
from hms_cache.app.warming_process import WarmingReads
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import LoadRequest, SnapshotRead, SnapshotReads
from hms_cache.config import Settings, load
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from tests.app.test_service import client, configured
from tests.cache.world import CATALOG, Server, create_database, table
from tests.consistency.observers import wait_until
from tests.servers import MAX_WAIT_S

TABLES = [f"t{number:03}" for number in range(120)]


@pytest.fixture
def server(sqlite_database: Database, tmp_path: Path) -> Iterator[Server]:
    """The prewarm of a catalog with these tables, none of them cached."""
    made = Server(sqlite_database.url.render_as_string(hide_password=False), tmp_path)
    fill(made)
    yield made
    made.close()


def held(cache: SharedCache) -> set[str]:
    with cache.view():
        return {key.table for key in cache.tables}


def fill(server: Server) -> None:
    create_database(server.objects, "d")
    for name in TABLES:
        server.objects.writes.tables.create_table(table("d", name))


class Process(WarmingReads):
    """What reads for the prewarm; it fails while the database is down."""

    def __init__(self, server: Server, when_away: Callable[[int], bool]) -> None:
        self._reads = SnapshotReads(server.objects.reads, 10**9)
        self._when_away = when_away
        self.requested = 0
        self.was_away = False
        self.closed = 0

    def __call__(self, wanted: Sequence[LoadRequest]) -> SnapshotRead:
        self.requested += 1
        if self._when_away(self.requested):
            self.was_away = True
            raise DatabaseUnavailable("it is away")
        return self._reads.read(wanted)

    def close(self) -> None:
        self.closed += 1


@contextmanager
def warming(server: Server, *processes: Process) -> Iterator[Warming]:
    settings: Settings = load(command_line={"cache.warm": "full"}, environment={}).settings
    made = Warming(settings, server.cache, server.objects.reads, server.poller, processes)
    with ExitStack() as stack:
        made.start(stack)
        yield made


@pytest.mark.parametrize("count", [1, 2])
def test_after_an_outage_the_processes_go_on(count: int, server: Server) -> None:
    """It ended for good, and what was not loaded by then stayed cold until a client requested it."""
    processes = [Process(server, lambda requested: requested == 2) for _ in range(count)]
    with warming(server, *processes) as made:
        wait_until(lambda: made.prewarm is not None and made.prewarm.outage_at_s is not None, "the database is away")
        assert not any(one.closed for one in processes if one.was_away)
        wait_until(lambda: server.poller.step() is not None and held(server.cache.shared) == {*TABLES}, "all is warm")
        wait_until(lambda: all(one.closed for one in processes), "then they end")
    assert made.prewarm is not None and not made.prewarm.ended_early


def test_while_the_database_is_away_it_is_not_tried_again_and_again(server: Server) -> None:
    process = Process(server, lambda requested: True)
    with warming(server, process) as made:
        first = made.prewarm
        wait_until(lambda: first is not None and first.outage_at_s is not None, "the database is away")
        assert made._task(0) is made._task(0), "the poller has not found it"
        assert made.prewarm is first and process.requested == 1


def test_a_process_ends_when_there_is_nothing_left_for_it(server: Server) -> None:
    """It reads for several workers, and waits for those that may still make requests: half a minute for one that never
    would."""
    other_has_ended = threading.Event()

    class Ending(Process):
        def close(self) -> None:
            super().close()
            other_has_ended.set()

    waiting = Process(server, lambda requested: not other_has_ended.wait(MAX_WAIT_S))
    other = Ending(server, lambda requested: False)
    with warming(server, waiting, other):
        wait_until(lambda: held(server.cache.shared) == {*TABLES}, "all is warm")
        wait_until(lambda: bool(waiting.closed), "the other one ends")
    assert not waiting.was_away


def test_another_task_that_looks_at_once_does_not_begin_anew(server: Server) -> None:
    """It assumed that the database was reachable again: the time of the outage was set after the first task's end was
    reported."""
    processes = [Process(server, lambda requested: True), Process(server, lambda requested: False)]
    settings: Settings = load(command_line={"cache.warm": "full"}, environment={}).settings
    made = Warming(settings, server.cache, server.objects.reads, server.poller, processes)
    first, found = made.prewarm, []

    class OtherTask(logging.Handler):
        """Checks when the first task reports that the database is down, the earliest possible time."""

        def emit(self, record: logging.LogRecord) -> None:
            made._task(1)
            found.append(made.prewarm is first)

    logger, other = logging.getLogger("hms_cache.cache.warming.prewarm"), OtherTask()
    logger.addHandler(other)
    try:
        for _ in range(20):
            made._step(0)
    finally:
        logger.removeHandler(other)
    assert found == [True]


def test_a_reload_warms_what_may_be_cached_by_then(tmp_path: Path) -> None:
    """Everything is dropped then, and only what was requested was loaded again."""
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0, cache__warm="full"))
    uri = service.start()
    try:
        assert service.admin_sources is not None and service.admin_sources.cache is not None
        cache = service.admin_sources.cache.shared
        with client(uri) as metastore:
            given = metastore.get_database("default")
            assert given.name == "default"
        writer = Server(f"sqlite:///{tmp_path / 'hms.db'}", tmp_path)
        fill(writer)
        writer.close()
        for exclude, expected in (("d.t00*", {*TABLES[10:]}), ("d.t1*", {*TABLES[:100]})):
            settings = {"admin__enabled": True, "admin__port": 0, "cache__warm": "full", "cache__exclude": exclude}
            assert service.reload(configured(tmp_path, **settings))[0] == ["cache.exclude"]
            wait_until(lambda expected=expected: held(cache) == expected, f"all but {exclude} are warm")
        assert TableName(CATALOG, "d", "t050") in cache.tables
    finally:
        service.stop()
