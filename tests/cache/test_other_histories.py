"""P7 between two steps of the poller: a check that finds a lower position than memory's proves another history."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, update

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE, TABLE_PARAMS
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, table


def _restore(server: Server, lost_events: int) -> int:
    """As if an older copy of the database had been put in place: without the last events, `version` as it was then."""
    last = server.log.current_event_id()
    with server.database.writing() as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID > last - lost_events))
        connection.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=last - lost_events + 1))
        version = TABLE_PARAMS.c.PARAM_KEY == "version"
        connection.execute(update(TABLE_PARAMS).where(version).values(PARAM_VALUE="restored"))
        connection.commit()
    return last - lost_events


def _version(server: Server) -> str:
    return str(server.store.get_table(CATALOG, "d", "t").parameters["version"])


@pytest.mark.parametrize("mode", ["check", "trust"])
def test_a_read_that_finds_the_log_shorter_is_not_answered_from_memory(mode: str, servers: MakeServer) -> None:
    here = servers(CacheOptions(modes=ReadModes(trust_write_ids=mode == "trust")))
    elsewhere = servers()
    create_database(elsewhere.objects, "d")
    for name in ("t", "u"):
        elsewhere.objects.create_table(table("d", name, version="first"))
    for _ in range(2):
        assert _version(here) == "first"
    resets, generation = here.cache.shared.resets, here.cache.shared.generation
    position = _restore(elsewhere, 1)
    here.reasons()
    assert _version(here) == "restored"
    assert here.reasons() == [Reason.BEHIND_EVENTS]
    # The read itself made the poller look: everything is dropped, and it follows the log that there is now.
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
    """Restored, then written past memory's position: what is missing is not applied on top of another history."""
    here, elsewhere = servers(), servers()
    create_database(elsewhere.objects, "d")
    elsewhere.objects.create_table(table("d", "t", version="first"))
    assert _version(here) == "first"
    resets = here.cache.shared.resets
    _restore(elsewhere, 1)
    for name in ("u", "v", "w"):
        elsewhere.objects.create_table(table("d", name, version="other"))
    assert _version(here) == "restored"
    assert here.cache.shared.resets == resets + 1
    assert here.store.get_table_names(CATALOG, "d") == ["t", "u", "v", "w"]
