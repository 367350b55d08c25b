"""The contents of a cache are moved to shared memory however they were cached, and changes remove them as usual."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.memory_files import MemoryFiles, is_available
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.partitions.shared_blocks import is_shared
from hms_cache.cache.warming.block_sharing import BlockSharing
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, encoded, partition, table

pytestmark = pytest.mark.skipif(not is_available(), reason="the system has no sealed files in memory")

NAME = TableName(CATALOG, "d", "t")
KEYS = (("dt", "string"),)


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blocks, "SMALLEST_BYTES", 0)


def _fill(server: Server) -> None:
    server.objects.writes.databases.create_database(ttypes.Database(name="d", catalogName=CATALOG))
    server.objects.writes.tables.create_table(table("d", "t", keys=KEYS))
    of = server.objects.reads.tables.get_table(NAME)
    some = [partition(of, (f"day-{number}",)) for number in range(40)]
    server.objects.writes.partitions.add_partitions(NAME, some)


def _check(server: Server) -> None:
    """It returns the answers of the database, from memory."""
    server.poller.step()
    server.cache.reads.partitions.get_partitions(PartitionQuery(NAME))
    assert encoded(lambda: server.cache.reads.partitions.get_partitions(PartitionQuery(NAME))) == encoded(
        lambda: server.objects.reads.partitions.get_partitions(PartitionQuery(NAME))
    )


def _are_shared(server: Server) -> list[bool]:
    held = server.cache.shared.tables[NAME].facets[Facet.PARTITIONS]
    return [is_shared(one.block) for one in held.segments if len(one.block)]


def test_loaded_partitions_are_shared_and_followed_by_each_server_itself(servers: MakeServer, tmp_path: Path) -> None:
    one, other = servers(), servers()
    _fill(one)
    files = [MemoryFiles(tmp_path, 100) for _ in range(2)]
    sharing = [BlockSharing(server.cache.shared, each) for server, each in zip((one, other), files, strict=True)]
    for server, each in zip((one, other), sharing, strict=True):
        _check(server)
        assert each.step() and not each.step()
        assert _are_shared(server) == [True]
        _check(server)
    assert (files[0].created, files[1].reused) == (1, 1)
    changed = one.objects.reads.partitions.get_partition(NAME, ["day-7"])
    changed.parameters = {"changed": "yes"}
    one.objects.writes.partitions.alter_partitions(NAME, [changed])
    for server in (one, other):
        _check(server)


def test_what_finds_no_room_waits_for_it(servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    _fill(server)
    files = MemoryFiles(tmp_path, 1)
    sharing = BlockSharing(server.cache.shared, files)
    in_the_way = files.hold([memoryview(b"another")])
    _check(server)
    assert not sharing.step()
    assert _are_shared(server) == [False]
    del in_the_way
    assert sharing.step()
    assert _are_shared(server) == [True]
    _check(server)


def test_what_is_forgotten_is_not_shared_later(servers: MakeServer, tmp_path: Path) -> None:
    server = servers()
    _fill(server)
    sharing = BlockSharing(server.cache.shared, MemoryFiles(tmp_path, 100))
    _check(server)
    server.cache.shared.forget_all()
    assert not sharing.step()
    assert list(tmp_path.glob("*-*")) == []
