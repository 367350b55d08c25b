"""Two events with the same id, as Hive releases without the unique index can log them (HIVE-16886): both are
applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table

KEYS = (("p", "string"),)
D = DatabaseName(CATALOG, "d")
T, U, V = (TableName(CATALOG, "d", name) for name in "tuv")

READS: list[Callable[[MetadataStore], Any]] = [
    lambda store: store.reads.tables.get_table_names(D),
    *(lambda store, name=name: store.reads.tables.get_table(name) for name in (T, U, V)),
    *(lambda store, name=name: store.reads.partitions.get_partitions(PartitionQuery(name)) for name in (T, U, V)),
]

Write = Callable[[Server], object]


def alter(name: TableName) -> Write:
    return lambda server: server.objects.writes.tables.alter_table(
        name, changed_table(server.objects, "d", name.table, k="new")
    )


def rename(server: Server) -> None:
    named = server.objects.reads.tables.get_table(U)
    named.tableName = V.table
    server.objects.writes.tables.alter_table(U, named)


def add_partition(server: Server) -> None:
    server.objects.writes.partitions.add_partitions(U, [partition(table("d", "u", KEYS), ("2",))])


def drop(server: Server) -> None:
    server.objects.writes.tables.drop_table(T, delete_data=False)


PAIRS: dict[str, tuple[Write, Write]] = {
    "two alters": (alter(T), alter(U)),
    # Equal images in one event do not show that the other changed nothing.
    "a rename and an alter": (rename, alter(T)),
    "an alter and a rename": (alter(T), rename),
    "a drop and a partition": (drop, add_partition),
    "a partition and a drop": (add_partition, drop),
}


def give_the_last_event_the_id_before(server: Server) -> None:
    log, next_id = NOTIFICATION_LOG.c, NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID
    with server.database.writing() as connection:
        connection.exec_driver_sql('DROP INDEX "NOTIFICATION_LOG_EVENT_ID"')
        last = connection.execute(select(func.max(log.EVENT_ID))).scalar_one()
        connection.execute(update(NOTIFICATION_LOG).where(log.EVENT_ID == last).values(EVENT_ID=last - 1))
        connection.execute(update(NOTIFICATION_SEQUENCE).values({next_id: last}))
        connection.commit()


@pytest.mark.parametrize("fails", [None, 0, 1], ids=["both are applied", "the first fails", "the second fails"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_both_events_count(
    pair: tuple[Write, Write], fails: int | None, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = servers(), servers()
    create_database(elsewhere.objects, "d")
    for name in "tu":
        elsewhere.objects.writes.tables.create_table(table("d", name, KEYS))
        added = [partition(table("d", name, KEYS), ("1",))]
        elsewhere.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", name), added)
    for read in READS:
        encoded(lambda read=read: read(here.store))
    for write in pair:
        write(elsewhere)
    give_the_last_event_the_id_before(elsewhere)
    if fails is not None:
        apply_one, seen = here.cache.shared._apply_one, iter(range(1000))

        def failing(event: Any, *rest: Any) -> None:
            if type(event).__name__ != "UndecodedEvent" and next(seen) % 2 == fails:
                raise RuntimeError("a defect")
            apply_one(event, *rest)

        monkeypatch.setattr(here.cache.shared, "_apply_one", failing)
    for read in READS:
        assert encoded(lambda read=read: read(here.store)) == encoded(lambda read=read: read(elsewhere.objects))
    assert here.cache.shared.resets == 1, "of the start alone"
    assert here.poller.statistics().failed == (0 if fails is None else 2)
