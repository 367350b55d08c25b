"""Events that are skipped before they are decoded, and why this is safe."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine, update

from hms_cache.cache.entries import Facet
from hms_cache.cache.invalidation import SKIPPED_EXCLUDED, SKIPPED_NOT_CACHED
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.store.schema import NOTIFICATION_LOG
from tests.cache.conftest import MakeServer
from tests.cache.test_event_cells import ACID, CASES, EVENT, FENCE, PLAIN, Fact, begin, finish, header, held, new_cache
from tests.cache.world import CATALOG, create_database, partition, table


@pytest.mark.parametrize("left", ["nothing", "not its table"])
@pytest.mark.parametrize("fact", CASES)
def test_an_event_that_is_skipped_changes_nothing_that_is_held(fact: Fact, left: str) -> None:
    """All event types, with nothing in memory, and with everything except what the event's row names."""
    cache = new_cache(has_peers=fact.has_peers)
    of_row = fact.event.own_table
    if left == "not its table":
        finish(cache, begin(cache), FENCE)
        if of_row is not None:
            cache.forget(of_row)
    before = held(cache)
    skipped = cache.reason_to_skip(fact.event.header)
    cache.apply([] if skipped else [fact.event], EVENT)
    assert not held(cache) & fact.changes
    if skipped:
        assert held(cache) == before
        assert skipped == SKIPPED_NOT_CACHED


@pytest.mark.parametrize("facet", [one for one in Facet if one is not Facet.EXCLUDED])
def test_nothing_is_skipped_of_a_table_of_which_anything_is_held_loading_or_too_large(facet: Facet) -> None:
    about = header("INSERT", PLAIN)
    cache = new_cache()
    anything: Any = PartitionSet.bare([("k", "string")]) if facet is Facet.PARTITIONS else {}
    load = cache.begin_load(PLAIN, [facet])
    assert cache.reason_to_skip(about) is None
    assert cache.install(load, FENCE, facet, anything, 100)
    cache.end_load(load)
    assert cache.reason_to_skip(about) is None
    assert cache.reason_to_skip(header("INSERT", ACID)) == SKIPPED_NOT_CACHED
    cache.forget(PLAIN, frozenset({facet}))
    assert cache.reason_to_skip(about) == SKIPPED_NOT_CACHED
    load = cache.begin_load(PLAIN, [facet])
    assert not cache.install(load, EVENT, facet, {}, cache.budget_bytes + 1)
    cache.end_load(load)
    load = cache.begin_load(PLAIN, [facet])
    cache.apply([], EVENT)
    assert not cache.install(load, EVENT, facet, {}, cache.budget_bytes + 1)
    cache.end_load(load)
    assert cache.reason_to_skip(about) is None


def test_a_load_that_begins_after_an_event_was_skipped_must_show_it() -> None:
    cache = new_cache()
    assert cache.begin_load(PLAIN, [Facet.TABLE]).began_at == FENCE
    assert cache.reason_to_skip(header("INSERT", ACID)) == SKIPPED_NOT_CACHED
    assert cache.position == FENCE
    # Whichever copy of the database it reads: the loader refuses a snapshot older than this.
    assert cache.begin_load(ACID, [Facet.TABLE]).began_at == EVENT
    cache.reset("another history", FENCE - 5)
    assert cache.begin_load(ACID, [Facet.TABLE]).began_at == FENCE - 5


def test_events_are_counted_before_their_message_is_decoded(servers: MakeServer) -> None:
    server = servers()
    create_database(server.objects, "d")
    create_database(server.objects, "off", **{"impala.disableHmsSync": "true"})
    out = {"impala.disableHmsSync": "true"}
    names = (("d", "held", {}), ("d", "cold", {}), ("d", "out", out), ("off", "t", {}))
    for database, name, parameters in names:
        server.objects.writes.tables.create_table(table(database, name, (("k", "string"),), **parameters))
    server.poller.step()
    for database, name in (("d", "held"), ("d", "out"), ("off", "t")):
        server.store.reads.tables.get_table(TableName(CATALOG, database, name))
    seen = server.poller.position().event_id
    for database, name, _ in names:
        of = server.objects.reads.tables.get_table(TableName(CATALOG, database, name))
        server.objects.writes.partitions.add_partitions(TableName(CATALOG, database, name), [partition(of, ("1",))])
    engine = create_engine(server.url)
    with engine.begin() as connection:
        broken = update(NOTIFICATION_LOG).where(
            NOTIFICATION_LOG.c.EVENT_ID > seen, NOTIFICATION_LOG.c.TBL_NAME != "held"
        )
        connection.execute(broken.values(MESSAGE="no message at all"))
    engine.dispose()
    before = server.poller.statistics()
    server.poller.step()
    now = server.poller.statistics()
    assert now.received - before.received == 4
    assert (now.failed, now.applied - before.applied) == (0, 1)
    counted = {reason: count - before.skipped.get(reason, 0) for reason, count in now.skipped.items()}
    assert counted == {SKIPPED_NOT_CACHED: 1, SKIPPED_EXCLUDED: 2}
    # The alter that admits a table to the cache is not skipped.
    of = server.objects.reads.tables.get_table(TableName(CATALOG, "d", "out"))
    of.parameters = {}
    server.objects.writes.tables.alter_table(TableName(CATALOG, "d", "out"), of)
    server.reads.clear()
    for _ in range(2):
        assert (
            server.store.reads.tables.get_table(TableName(CATALOG, "d", "out")).parameters.get("impala.disableHmsSync")
            is None
        )
    assert server.reasons()[-1] is Reason.HIT
    assert TableName(CATALOG, "d", "out") in server.cache.shared.tables
