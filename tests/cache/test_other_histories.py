"""P7 between two steps of the poller: a check that finds a lower position than that of memory proves another
history."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE, TABLE_PARAMS
from hms_cache.store.snapshots import Snapshot
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, table
from tests.databases import put_in_place
from tests.manual_clock import ManualClock


def _restore(server: Server, lost_events: int) -> int:
    """As if the database had been replaced by an older copy: without the last events, and with the old `version`."""
    last = server.log.current_event_id()
    with server.database.writing() as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID > last - lost_events))
        connection.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=last - lost_events + 1))
        version = TABLE_PARAMS.c.PARAM_KEY == "version"
        connection.execute(update(TABLE_PARAMS).where(version).values(PARAM_VALUE="restored"))
        connection.commit()
    return last - lost_events


def _version(server: Server) -> str:
    return str(server.store.reads.tables.get_table(TableName(CATALOG, "d", "t")).parameters["version"])


@pytest.mark.parametrize("mode", ["check", "trust"])
def test_a_read_that_finds_the_log_shorter_is_not_answered_from_memory(mode: str, servers: MakeServer) -> None:
    here = servers(CacheOptions(modes=ReadModes(trust_write_ids=mode == "trust")))
    elsewhere = servers()
    create_database(elsewhere.objects, "d")
    for name in ("t", "u"):
        elsewhere.objects.writes.tables.create_table(table("d", name, version="first"))
    for _ in range(2):
        assert _version(here) == "first"
    resets, generation = here.cache.shared.resets, here.cache.shared.generation
    position = _restore(elsewhere, 1)
    here.reasons()
    assert _version(here) == "restored"
    assert here.reasons() == [Reason.BEHIND_EVENTS]
    # The read itself woke the poller: everything is dropped, and it follows the current log.
    assert (here.cache.shared.resets, here.cache.shared.generation) == (resets + 1, generation + 1)
    assert here.cache.shared.position == here.poller.applied_position == position
    assert not here.cache.shared.tables
    assert _version(here) == "restored"
    assert here.reasons() == [Reason.MISS]
    assert _version(here) == "restored"
    assert here.reasons() == [Reason.HIT]


def test_a_read_that_finds_the_log_shorter_and_longer_again_is_noticed_by_the_step_it_waits_for(
    servers: MakeServer,
) -> None:
    """Restored, then written beyond memory's position: the missing events are not applied on top of another history."""
    here, elsewhere = servers(), servers()
    create_database(elsewhere.objects, "d")
    elsewhere.objects.writes.tables.create_table(table("d", "t", version="first"))
    assert _version(here) == "first"
    resets = here.cache.shared.resets
    _restore(elsewhere, 1)
    for name in ("u", "v", "w"):
        elsewhere.objects.writes.tables.create_table(table("d", name, version="other"))
    assert _version(here) == "restored"
    assert here.cache.shared.resets == resets + 1
    assert here.store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")) == ["t", "u", "v", "w"]


def _replace_file(server: Server, copy: Path) -> None:
    """The database is replaced by an older copy of the same name, as by a restore."""
    path = Path(server.database.url.database or "")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    put_in_place(copy, path)


def _copy(server: Server, directory: Path) -> Path:
    source, target = sqlite3.connect(server.database.url.database or ""), sqlite3.connect(directory / "copy.db")
    source.backup(target)
    source.close()
    target.close()
    return directory / "copy.db"


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused and resumed"])
@pytest.mark.parametrize("max_staleness_s", [0.0, 500.0, float("inf")])
def test_another_history_under_the_same_id_is_not_mixed_with_the_one_in_memory(
    max_staleness_s: float, paused: bool, servers: MakeServer, tmp_path: Path
) -> None:
    """Event N is lost with its database, and another write gets id N: equal ids prove nothing."""
    clock = ManualClock()
    here, elsewhere = servers(CacheOptions(max_staleness_s=max_staleness_s), clock), servers()
    create_database(elsewhere.objects, "d")
    for name in ("t", "u"):
        elsewhere.objects.writes.tables.create_table(table("d", name, version="first"))
    copy = _copy(elsewhere, tmp_path)
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(elsewhere.objects, "d", "t", version="lost")
    )
    here.poller.step()
    lost = here.cache.shared.position
    for _ in range(2):
        assert _version(here) == "lost"
        assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "u")).parameters["version"] == "first"
    if paused:
        here.poller.pause()
    _replace_file(here, copy)
    after = servers()
    after.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "u"), changed_table(after.objects, "d", "u", version="other")
    )
    assert after.objects.reads.current_event_id() == lost, "the same id, another event"
    clock.advance(1000)
    if paused:
        here.poller.resume()
    elif max_staleness_s == float("inf"):
        here.poller.step()  # a read that needs no proof sees what the poller saw
    assert _version(here) == "first", "what was lost is lost"
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "u")).parameters["version"] == "other"
    here.poller.step()
    assert here.cache.shared.resets == 2
    for _ in range(2):
        here.reasons()
        assert (
            _version(here),
            here.store.reads.tables.get_table(TableName(CATALOG, "d", "u")).parameters["version"],
        ) == ("first", "other")
    assert here.reasons() == [Reason.HIT] * 2, "memory answers again"


def test_a_resumed_poller_proves_before_memory_answers(servers: MakeServer) -> None:
    """The log was replaced unnoticed, up to the same id, by a restored dump."""
    here, elsewhere = servers(), servers()
    create_database(elsewhere.objects, "d")
    for name in ("t", "u"):
        elsewhere.objects.writes.tables.create_table(table("d", name, version="first"))
    assert _version(here) == "first"
    assert _version(here) == "first"
    here.poller.pause()
    _restore(elsewhere, 1)
    elsewhere.objects.writes.tables.create_table(table("d", "other"))
    assert elsewhere.objects.reads.current_event_id() == here.cache.shared.position
    here.poller.resume()
    assert _version(here) == "restored"


def test_a_load_that_shows_less_than_was_applied_is_refused(servers: MakeServer) -> None:
    """As through a proxy that sends loads to a replica, or on a connection to a demoted primary."""
    here = servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", version="first"))
    behind: list[Snapshot] = []
    snapshot = here.objects.reads.snapshot

    @contextmanager
    def older() -> Iterator[Callable[[], Snapshot]]:
        with snapshot() as now:
            behind.append(now()._replace(event_id=now().event_id - 1))
            yield lambda: behind[-1]

    here.objects.reads.snapshot = older  # type: ignore[method-assign]
    for _ in range(2):
        assert _version(here) == "first"
    assert behind
    assert here.reasons()[-1] is Reason.INCOMPLETE
    assert here.cache.loader.refused == len(behind)
    assert not here.cache.shared.tables
    here.objects.reads.snapshot = snapshot  # type: ignore[method-assign]
    for _ in range(2):
        assert _version(here) == "first"
    assert here.reasons()[-1] is Reason.HIT


@pytest.mark.parametrize("noticed", ["by the load", "meanwhile"])
@pytest.mark.parametrize("max_staleness_s", [0.0, float("inf")])
def test_a_load_of_a_log_that_is_gone_leaves_no_floor(
    max_staleness_s: float, noticed: str, servers: MakeServer
) -> None:
    """Its fence is beyond the end of the current log. Before, memory answered nothing until the log reached it
    again."""
    here, elsewhere = servers(CacheOptions(max_staleness_s=max_staleness_s)), servers()
    create_database(elsewhere.objects, "d")
    for name in ("t", "u"):
        elsewhere.objects.writes.tables.create_table(table("d", name, version="first"))
    here.poller.step()
    left = []

    def restore() -> None:
        if not left:
            left.append(_restore(elsewhere, 3))
            if noticed == "meanwhile":
                here.poller.step()

    snapshot = here.objects.reads.snapshot

    @contextmanager
    def of_later_events() -> Iterator[Callable[[], Snapshot]]:
        """Two writes that memory does not have yet, and that are lost after the load."""
        for name in ("v", "w"):
            if not left:
                elsewhere.objects.writes.tables.create_table(table("d", name))
        with snapshot() as now:
            yield now

    here.objects.reads.snapshot = of_later_events  # type: ignore[method-assign]
    here.during_loads(restore)
    _version(here)
    assert left and here.cache.shared.resets == 2 and here.cache.shared.position == left[0]
    here.objects.reads.snapshot = snapshot  # type: ignore[method-assign]
    here.reasons()
    for _ in range(2):
        assert _version(here) == "restored"
    assert here.reasons() == [Reason.MISS, Reason.HIT]


@pytest.mark.parametrize("ahead", [0, 1000])
def test_a_load_from_another_server_is_refused(ahead: int, servers: MakeServer) -> None:
    """Its log may be longer than the one that is followed: this is no lower bound."""
    here = servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", version="first"))
    snapshot = here.objects.reads.snapshot

    @contextmanager
    def of_another_server() -> Iterator[Callable[[], Snapshot]]:
        with snapshot() as now:
            yield lambda: now()._replace(server_identity="another", event_id=now().event_id + ahead)

    here.objects.reads.snapshot = of_another_server  # type: ignore[method-assign]
    assert _version(here) == "first"
    assert not here.cache.shared.tables
    assert here.cache.freshness.floor <= here.cache.shared.position
    assert here.cache.loader.refused == 1
