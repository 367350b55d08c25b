"""Changes that outgrow a block are moved into a new one, and the accounted size is that of the new one."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions import segment
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.rebuild import Rebuild
from hms_cache.cache.partitions.segment import SMALLEST_TAIL
from hms_cache.cache.verification import invariants
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.cache.weights import weight_of
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, encoded, partition, table

KEYS = (("dt", "string"),)
KEY = TableName(CATALOG, "d", "t")
VALUES = [(f"{number:03d}",) for number in range(100)]


def prepared(servers: MakeServer) -> tuple[Server, PartitionSet]:
    """A server that holds all partitions of a table."""
    server = servers()
    server.store.writes.databases.create_database(
        ttypes.Database(name="d", catalogName=CATALOG, description="", parameters={})
    )
    server.store.writes.tables.create_table(table("d", "t", KEYS))
    server.store.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(table("d", "t"), one) for one in VALUES]
    )
    server.store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t")))
    return server, held(server)


def held(server: Server) -> PartitionSet:
    found = server.cache.shared.tables[KEY].facets[Facet.PARTITIONS]
    assert isinstance(found, PartitionSet)
    return found


def change(server: Server, count: int) -> None:
    changed = [partition(table("d", "t"), one, changed="yes") for one in VALUES[:count]]
    server.store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), changed)


def compare(server: Server) -> None:
    def ask(store: Any) -> Any:
        return lambda: store.reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, "d", "t")))

    assert encoded(ask(server.store)) == encoded(ask(server.objects))


def test_few_changes_stay_beside_the_block(servers: MakeServer) -> None:
    server, partitions = prepared(servers)
    block = partitions.segments[0].block
    change(server, 3)
    compare(server)
    assert held(server).segments[0].block is block


def test_many_changes_are_taken_into_a_new_block(servers: MakeServer) -> None:
    server, partitions = prepared(servers)
    block = partitions.segments[0].block
    change(server, SMALLEST_TAIL + 1)
    compare(server)
    assert held(server) is partitions
    assert partitions.segments[0].block is not block
    assert not partitions.segments[0].changed
    assert server.cache.shared.tables[KEY].weights[Facet.PARTITIONS] == weight_of(partitions)
    compare(server)


def test_what_changes_while_a_new_block_is_made_is_not_lost(servers: MakeServer, monkeypatch: Any) -> None:
    server, partitions = prepared(servers)
    run = Rebuild.run
    late = VALUES[5]

    def run_with_a_change(rebuild: Rebuild) -> None:
        run(rebuild)
        server.store.writes.partitions.drop_partitions(
            TableName(CATALOG, "d", "t"), ByNames((f"dt={late[0]}",)), delete_data=False
        )
        assert server.poller.ensure_applied(server.objects.reads.current_event_id(), 5.0)

    monkeypatch.setattr(Rebuild, "run", run_with_a_change)
    change(server, SMALLEST_TAIL + 1)
    block = partitions.segments[0].block
    server.store.reads.partitions.get_partition_count(PartitionQuery(TableName(CATALOG, "d", "t")))
    monkeypatch.undo()
    assert partitions.segments[0].block is not block
    assert partitions.find(late) is None
    compare(server)
    assert len(held(server)) == len(VALUES) - 1


@pytest.mark.parametrize("how", ["reset", "flush", "start", "refresh"])
def test_what_is_dropped_while_a_new_block_is_made_is_not_charged_again(
    servers: MakeServer, monkeypatch: Any, how: str
) -> None:
    server, _ = prepared(servers)
    shared, run = server.cache.shared, Rebuild.run
    drops = {
        "reset": lambda: shared.reset("for the test", shared.position),
        "flush": shared.forget_all,
        "start": lambda: shared.start_at(shared.position),
        "refresh": lambda: shared.forget(KEY),
    }
    after: list[tuple[int, int]] = []

    def run_and_drop(rebuild: Rebuild) -> None:
        run(rebuild)
        drops[how]()
        after.append((shared.weight, len(shared.segmented)))

    monkeypatch.setattr(segment, "SEGMENT_PARTITIONS", 20)
    monkeypatch.setattr(Rebuild, "run", run_and_drop)
    entry = shared.tables[KEY]
    change(server, SMALLEST_TAIL + 1)
    assert server.poller.ensure_applied(server.objects.reads.current_event_id(), 5.0)
    wanted = LoadRequest(KEY, Facet.PARTITIONS, tuple(VALUES[: SMALLEST_TAIL + 1]))
    server.cache.loader.load([wanted])
    assert after, "no block was made anew"
    assert shared.tables.get(KEY) is not entry
    assert (shared.weight, len(shared.segmented)) == after[-1]
    invariants.check(shared)


def test_a_block_that_cannot_be_made_changes_nothing(servers: MakeServer, monkeypatch: Any) -> None:
    server, partitions = prepared(servers)
    block = partitions.segments[0].block

    def fail(rebuild: Rebuild) -> None:
        raise MemoryError

    monkeypatch.setattr(Rebuild, "run", fail)
    change(server, SMALLEST_TAIL + 1)
    compare(server)
    assert partitions.segments[0].block is block
    monkeypatch.undo()
    change(server, SMALLEST_TAIL + 2)
    compare(server)
    assert partitions.segments[0].block is not block
