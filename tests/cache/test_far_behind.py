"""Memory lacks many events, as after a pause: the database answers at once, while memory catches up (P12)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.config import Settings
from hms_cache.config.sections import EventSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.poller_steps import StepOutcome
from hms_cache.store.contract.metadata import MetadataStore
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, table

LIMIT_S = 20
NEVER_S = 3600.0
"""How long a read may wait for events here: longer than any test."""

PAGE = 5
"""Events that the poller reads at a time."""

FAR = 12
"""Events that nobody waits for; less than three pages."""

INF = float("inf")
T, U = (TableName(CATALOG, "d", name) for name in "tu")


def version_of(store: MetadataStore, name: TableName) -> str:
    return store.reads.tables.get_table(name).parameters["version"]


def write(store: MetadataStore, count: int) -> None:
    for number in range(count):
        store.writes.tables.alter_table(U, changed_table(store, "d", "u", version=str(number)))


def made(servers: MakeServer, max_staleness_s: float = 0.0) -> tuple[Server, Server]:
    """Two servers; the first has both tables in memory."""
    options = CacheOptions(max_staleness_s=max_staleness_s, apply_timeout_s=NEVER_S)
    here = servers(options, None, Settings(events=EventSettings(batch_size=PAGE)))
    here.cache.freshness.max_awaited = FAR
    create_database(here.store, "d")
    for name in "tu":
        here.store.writes.tables.create_table(table("d", name, version="old"))
        version_of(here.store, TableName(CATALOG, "d", name))
    here.reasons()
    return here, servers()


@pytest.mark.parametrize("max_staleness_s", [0.0, INF], ids=["0", "inf"])
def test_a_read_applies_one_page_and_leaves_the_rest(max_staleness_s: float, servers: MakeServer) -> None:
    """If nobody else reads the log, each read processes a page; then memory answers again."""
    here, _ = made(servers, max_staleness_s)
    position = here.cache.shared.position
    write(here.objects, 2 * FAR)  # its own: `inf` must show them, too (P4)
    for pages in (1, 2):
        assert version_of(here.store, U) == str(2 * FAR - 1)
        assert here.reasons() == [Reason.BEHIND_EVENTS]
        assert here.cache.shared.position == position + PAGE * pages
    assert version_of(here.store, U) == str(2 * FAR - 1)
    assert here.reasons() == [Reason.MISS], "what is missing is not far any more"
    assert here.cache.shared.position == position + 2 * FAR
    assert [version_of(here.store, T), here.reasons()] == ["old", [Reason.HIT]]


@contextmanager
def stepping(server: Server) -> Iterator[None]:
    """During it, another thread reads the log."""
    began, go_on = threading.Event(), threading.Event()
    log, read = server.log, server.log.read

    def slow(*given: int) -> object:
        began.set()
        assert go_on.wait(LIMIT_S)
        return read(*given)

    log.read = slow  # type: ignore[method-assign, assignment]
    thread = threading.Thread(target=server.poller.step, daemon=True)
    thread.start()
    assert began.wait(LIMIT_S)
    log.read = read  # type: ignore[method-assign]
    try:
        yield
    finally:
        go_on.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_a_read_waits_for_nobody_who_applies_a_great_many(servers: MakeServer) -> None:
    here, elsewhere = made(servers)
    write(elsewhere.objects, 2 * FAR)
    position = here.cache.shared.position
    answers: list[str] = []
    with stepping(here):
        for name in (T, U):
            reader = threading.Thread(
                target=lambda name=name: answers.append(version_of(here.store, name)), daemon=True
            )
            reader.start()
            reader.join(LIMIT_S)
            assert not reader.is_alive()
        assert here.cache.shared.position == position
    assert answers == ["old", str(2 * FAR - 1)]
    assert here.reasons() == [Reason.BEHIND_EVENTS] * 2
    while here.poller.step().outcome is StepOutcome.MORE:
        pass
    assert [version_of(here.store, T), here.reasons()] == ["old", [Reason.HIT]]


def of_a_read(server: Server) -> Callable[[], bool]:
    return lambda: server.cache.loader.load([LoadRequest(U, Facet.TABLE)])


def of_nobody(server: Server) -> Callable[[], bool]:
    return lambda: server.cache.loader.load_ahead([LoadRequest(U, Facet.TABLE)])


@pytest.mark.parametrize(("kind", "is_kept"), [(of_a_read, False), (of_nobody, True)])
def test_a_load_that_nobody_waits_for_is_kept_all_the_same(
    kind: Callable[[Server], Callable[[], bool]], is_kept: bool, servers: MakeServer
) -> None:
    """After a restart from a dump, the prewarm would read all tables unnecessarily."""
    here, elsewhere = made(servers, INF)
    here.cache.shared.forget(U)
    write(elsewhere.objects, 2 * FAR)
    assert kind(here)() is is_kept
    assert (U in here.cache.shared.tables) is is_kept
    assert version_of(here.store, U) == str(2 * FAR - 1), "P3"
