"""Names as long as their columns, in characters of four bytes: they may be too long for an index of PostgreSQL.

Each is stored or refused as a value, and does not affect later calls.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, create_database, partition, table

T = TableName(CATALOG, "d", "t")


def many_bytes(length: int) -> str:
    """Random, so that no database compresses them."""
    draw = random.Random(length)
    return "".join(chr(draw.randrange(0x20000, 0x2A6D0)) for _ in range(length))


def add_partition(server: Server) -> None:
    made = server.objects.reads.tables.get_table(T)
    added = partition(made, tuple(many_bytes(length) for length in (248, 249, 250)))
    server.objects.writes.partitions.add_partitions(T, [added])


def rename_partition(server: Server) -> None:
    server.objects.writes.partitions.add_partitions(
        T, [partition(server.objects.reads.tables.get_table(T), ("1",) * 3)]
    )
    renamed = server.objects.reads.partitions.get_partition(T, ("1",) * 3)
    renamed.values = [many_bytes(length) for length in (248, 249, 250)]
    server.objects.writes.partitions.rename_partition(T, ["1"] * 3, renamed)


def create_pool(server: Server) -> None:
    server.auxiliary.resource_plans.create(ttypes.WMResourcePlan("p"), None)
    server.auxiliary.plan_parts.create_pool(ttypes.WMPool("p", many_bytes(700), 0.5, 1))


def create_role(server: Server) -> None:
    server.auxiliary.roles.create_role(many_bytes(128), "o")


def add_token(server: Server) -> None:
    server.auxiliary.tokens.add_token(many_bytes(767), "t")


def commit_a_write(server: Server) -> None:
    txn_id = server.transactions.open()
    component = ttypes.LockComponent(
        ttypes.LockType.SHARED_WRITE,
        ttypes.LockLevel.PARTITION,
        "d",
        "t",
        many_bytes(760),
        ttypes.DataOperationType.UPDATE,
        True,
    )
    server.transactions.store.lock(ttypes.LockRequest([component], txn_id, "u", "h"))
    try:
        server.transactions.commit(txn_id)
    except ttypes.MetaException:
        server.transactions.abort(txn_id)
        raise


def save_procedure(server: Server) -> None:
    server.auxiliary.procedures.save_procedure(ttypes.StoredProcedure(many_bytes(255), "d", CATALOG, "o", "source"))


@pytest.mark.parametrize(
    "write", [add_partition, rename_partition, create_pool, create_role, add_token, commit_a_write, save_procedure]
)
def test_it_is_stored_or_refused(
    initialized_database_url: str, tmp_path: Path, write: Callable[[Server], None]
) -> None:
    with closing(Server(initialized_database_url, tmp_path)) as server:
        create_database(server.objects, "d")
        server.objects.writes.tables.create_table(table("d", "t", tuple((key, "string") for key in "xyz")))
        try:
            write(server)
        except ttypes.MetaException as error:
            assert "refuses a value" in error.message
        server.objects.writes.tables.create_table(table("d", "after"))
