"""Runtime statistics, replication metrics, named types, the database's UUID."""

from __future__ import annotations

import uuid

import pytest
from sqlalchemy import insert, select

from hms_cache.store.auxiliary import runtime_statistics
from hms_cache.store.auxiliary.runtime_statistics import Cleaned
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import MV_CREATION_METADATA, MV_TABLES_USED, TBLS
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, ReplicationMetrics, RuntimeStat, Type
from tests.store.auxiliary.conftest import World


def test_runtime_statistics(world: World) -> None:
    statistics = world.stores.runtime_statistics
    # The client's time has no effect.
    for weight, payload in ((5, b"a"), (1, b"b"), (7, b"c")):
        statistics.add(RuntimeStat(99, weight, payload))
        world.clock.advance(10)
    now_s = int(world.clock.epoch_s())
    everything = [
        RuntimeStat(now_s - ago_s, weight, payload)
        for ago_s, weight, payload in ((10, 7, b"c"), (20, 1, b"b"), (30, 5, b"a"))
    ]
    assert statistics.get(-1, 0) == everything
    assert statistics.get(8, 0) == everything[:2]
    assert statistics.get(7, 0) == everything[:1]
    assert statistics.get(-1, now_s - 10) == everything[1:]
    for incomplete in (RuntimeStat(None, None, b""), RuntimeStat(None, 1, None)):
        with pytest.raises(ttypes.MetaException, match="need a weight and a payload"):
            statistics.add(incomplete)


def test_replication_metrics(world: World) -> None:
    statistics = world.stores.runtime_statistics
    first = ReplicationMetrics(1, "p", 5, "m", "q", "json-0.2")
    statistics.add_replication_metrics([first, ReplicationMetrics(2, "p", 6, None, "r", "gzip(json-2.0)")])
    statistics.add_replication_metrics([ReplicationMetrics(1, "ignored", 9, "", "s", None)])
    first.progress, first.messageFormat = "s", None
    assert statistics.get_replication_metrics("p", None)[1] == first
    assert [each.scheduledExecutionId for each in statistics.get_replication_metrics("p", None)] == [2, 1]
    assert statistics.get_replication_metrics(None, 1) == [first]
    assert statistics.get_replication_metrics(None, None) == []
    statistics.add_replication_metrics([ReplicationMetrics(5, "r", 7)])
    assert statistics.get_replication_metrics("r", None)[0].messageFormat is None
    with pytest.raises(ttypes.MetaException, match="need a scheduled execution, a policy"):
        statistics.add_replication_metrics([ReplicationMetrics(6, None, 7)])
    statistics.add_replication_metrics(
        [ReplicationMetrics(3, "q", 7, "m" * 4001), ReplicationMetrics(4, "q", 7, "", "p" * 10001)]
    )
    assert [each.progress for each in statistics.get_replication_metrics("q", None)] == [
        "RM_Progress limit exceeded to 10001",
        "RM_Metadata limit exceeded to 4001",
    ]


DAY_S = 86400


def test_what_was_reported_long_ago_is_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call of the protocol deletes it: without housekeeping it would remain for ever."""
    monkeypatch.setattr(runtime_statistics, "_BATCH_SIZE", 2)
    statistics = world.stores.runtime_statistics
    for number in range(5):
        statistics.add(RuntimeStat(0, number, b"old"))
        statistics.add_replication_metrics([ReplicationMetrics(number, "p", 1)])
    assert statistics.clean() == Cleaned(0, 0)
    world.clock.advance(3 * DAY_S - 1)
    statistics.add(RuntimeStat(0, 7, b"new"))
    statistics.add_replication_metrics([ReplicationMetrics(7, "p", 1)])
    assert statistics.clean() == Cleaned(0, 0)
    world.clock.advance(1)
    assert statistics.clean() == Cleaned(5, 0)
    assert [one.payload for one in statistics.get(-1, 0)] == [b"new"]
    world.clock.advance(4 * DAY_S)
    assert statistics.clean() == Cleaned(1, 5)
    assert statistics.clean() == Cleaned(0, 0)
    assert [one.scheduledExecutionId for one in statistics.get_replication_metrics("p", None)] == [7]


def test_changed_rows_of_a_view_s_sources(world: World) -> None:
    world.create_table("t")
    with world.database.loading() as connection:
        table_id = connection.execute(select(TBLS.c.TBL_ID)).scalar_one()

    def use(transaction: object) -> None:
        connection = transaction.connection  # type: ignore[attr-defined]
        connection.execute(
            insert(MV_CREATION_METADATA).values(
                MV_CREATION_METADATA_ID=1, CAT_NAME="hive", DB_NAME="d", TBL_NAME="v", MATERIALIZATION_TIME=0
            )
        )
        connection.execute(insert(MV_TABLES_USED).values(MV_CREATION_METADATA_ID=1, TBL_ID=table_id))

    run_write(world.database, use)
    for _ in range(2):
        world.stores.runtime_statistics.add_changed_rows(table_id, 1, 2, 3)
    world.stores.runtime_statistics.add_changed_rows(table_id + 1, 1, 1, 1)
    used = MV_TABLES_USED.c
    with world.database.loading() as connection:
        rows = connection.execute(select(used.INSERTED_COUNT, used.UPDATED_COUNT, used.DELETED_COUNT)).all()
    assert [tuple(row) for row in rows] == [(2, 4, 6)]


def test_named_types(world: World) -> None:
    types = world.stores.types
    person = Type("person", None, None, [FieldSchema("name", "string", "c"), FieldSchema("age", "int")])
    types.create(person)
    assert types.get("person") == types.get(" person ") == person
    with pytest.raises(ttypes.AlreadyExistsException, match="Type person already exists"):
        types.create(person)
    with pytest.raises(ttypes.InvalidObjectException, match="Invalid type name"):
        types.create(Type(""))
    types.drop("person")
    types.drop("person")
    with pytest.raises(ttypes.NoSuchObjectException, match='Type "person" not found'):
        types.get("person")


def test_the_uuid_is_made_once(world: World) -> None:
    found = world.stores.identity.get()
    assert str(uuid.UUID(found)) == found == world.stores.identity.get()
