"""P8: an event that cannot be applied invalidates what it names, is counted, and does not delay others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table

KEYS = (("p", "string"),)
WRITES: dict[str, Callable[[Server], object]] = {
    "alter": lambda server: server.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "t"), changed_table(server.objects, "d", "t", k="new")
    ),
    "drop": lambda server: server.objects.writes.tables.drop_table(TableName(CATALOG, "d", "t"), delete_data=True),
    "add a partition": lambda server: server.objects.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(table("d", "t", KEYS), ("2",))]
    ),
    "alter the database": lambda server: server.objects.writes.databases.alter_database(
        DatabaseName(CATALOG, "d"), ttypes.Database(name="d", description="new", parameters={"k": "v"})
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_an_event_that_cannot_be_applied(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch, write: Callable[[Server], object]
) -> None:
    here, elsewhere = servers(), servers()
    for name in ("d", "e"):
        create_database(elsewhere.objects, name)
        elsewhere.objects.writes.tables.create_table(table(name, "t", KEYS))
        elsewhere.objects.writes.partitions.add_partitions(
            TableName(CATALOG, name, "t"), [partition(table(name, "t", KEYS), ("1",))]
        )
    reads: list[Callable[[Any], Any]] = [
        lambda store: store.reads.databases.get_database(DatabaseName(CATALOG, "d")),
        lambda store: store.reads.tables.get_table(TableName(CATALOG, "d", "t")),
        lambda store: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t"))),
        lambda store: store.reads.tables.get_table_names(DatabaseName(CATALOG, "d")),
        lambda store: store.reads.tables.get_table(TableName(CATALOG, "e", "t")),
        lambda store: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "e", "t"))),
    ]
    for read in reads:
        encoded(lambda read=read: read(here.store))  # type: ignore[misc]
    shared, failures = here.cache.shared, 0
    apply_one = shared._apply_one

    def failing(event: Any, *rest: Any) -> None:
        nonlocal failures
        if failures < 2 and type(event).__name__ != "UndecodedEvent":
            failures += 1  # in its batch, then alone
            raise RuntimeError("a defect")
        apply_one(event, *rest)

    monkeypatch.setattr(shared, "_apply_one", failing)
    write(elsewhere)
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "e", "t"), changed_table(elsewhere.objects, "e", "t", k="later")
    )
    for read in reads:
        requested = encoded(lambda read=read: read(here.store))  # type: ignore[misc]
        assert requested == encoded(lambda read=read: read(elsewhere.objects))  # type: ignore[misc]
    assert failures == 2
    assert here.poller.statistics().failed == 1
    assert here.cache.shared.resets == 1, "of the start alone"


def test_what_changes_all_the_time_stays_within_the_budget(servers: MakeServer) -> None:
    """Markers of partitions that events named are accounted, and a set that misses most of its partitions is
    dropped."""
    here, elsewhere = servers(), servers()
    create_database(elsewhere.objects, "d")
    elsewhere.objects.writes.tables.create_table(table("d", "t", KEYS))
    many = [partition(table("d", "t", KEYS), (str(number),)) for number in range(1500)]
    elsewhere.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), many[:10])
    here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t")))
    entry = here.cache.shared.tables[TableName(CATALOG, "d", "t")]
    before = entry.weights[Facet.PARTITIONS]
    elsewhere.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), many[10:900])
    here.poller.step()
    held = entry.facets[Facet.PARTITIONS]
    assert len(held.missing) == 890
    assert entry.weights[Facet.PARTITIONS] >= held.memory_bytes() > before + 890 * 100
    elsewhere.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), many[900:])
    here.poller.step()
    assert Facet.PARTITIONS not in entry.facets
    assert (
        len(here.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t"))).partitions) == 1500
    )
    assert here.reasons()[-1] is Reason.MISS
