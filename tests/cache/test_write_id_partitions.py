"""Partitions and statistics read with a write-id list: from memory if the tag covers the list, equal to the store's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from hms_cache.cache.reads import cached_validity
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionProjection,
    PartitionQuery,
)
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.statistics.writes import normalized_partition_name
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, encoded, partition, table
from tests.databases import count_statements

T = (CATALOG, "d", "t")
NAMES = [f"p={number}" for number in range(4)]
ACCURATE = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
KEEP = environment_options(ttypes.EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"}))
COUNTS = PartitionProjection(("values", "writeId", "parameters"))

Ask = Callable[[MetadataStore, str | None, int | None], object]

READS: dict[str, Ask] = {
    "one": lambda store, valid, id_: store.reads.partitions.get_partition(
        TableName(*T), ["0"], version=ReadVersion(valid_write_ids=valid, table_id=id_)
    ),
    "absent": lambda store, valid, id_: store.reads.partitions.get_partition(
        TableName(*T), ["9"], version=ReadVersion(valid_write_ids=valid, table_id=id_)
    ),
    "all": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), AllPartitions(), version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "some": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), AllPartitions(), 2, version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "by_names": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(
            TableName(*T), ByNames(("p=1", "p=9", "p=2")), version=ReadVersion(valid_write_ids=valid, table_id=id_)
        )
    ),
    "by_values": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), ByValues(("2",)), version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "by_part": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), ByPartialValues(("",)), version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "by_filter": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), ByFilter('p > "0"'), version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "projected": lambda store, valid, id_: store.reads.partitions.get_partitions(
        PartitionQuery(TableName(*T), AllPartitions(), version=ReadVersion(valid_write_ids=valid, table_id=id_)),
        projection=COUNTS,
    ),
    "names": lambda store, valid, id_: store.reads.partitions.get_partition_names(
        PartitionQuery(TableName(*T), AllPartitions(), version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "count": lambda store, valid, id_: store.reads.partitions.get_partition_count(
        PartitionQuery(TableName(*T), AllPartitions(), version=ReadVersion(valid_write_ids=valid, table_id=id_))
    ),
    "values": lambda store, valid, id_: store.reads.partitions.get_partition_values(
        PartitionQuery(TableName(*T), version=ReadVersion(valid_write_ids=valid, table_id=id_)), ["p"]
    ),
    "columns": lambda store, valid, id_: store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a"], version=ReadVersion(valid_write_ids=valid, table_id=id_)),
        ["p=0", "P=1", "p=9"],
    ),
    "columns_of_all": lambda store, valid, id_: store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["a"], version=ReadVersion(valid_write_ids=valid, table_id=id_)), NAMES
    ),
    "table_columns": lambda store, valid, id_: store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(
            TableName(CATALOG, "d", "u"),
            ["a", "b"],
            version=ReadVersion(valid_write_ids=valid and valid.replace("d.t:", "d.u:"), table_id=None),
        )
    ),
    "plain_columns": lambda store, valid, id_: store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(
            TableName(CATALOG, "d", "plain"),
            ["a"],
            version=ReadVersion(valid_write_ids=valid and "d.plain:0:9223372036854775807::", table_id=None),
        )
    ),
}
AGGREGATES: dict[str, Ask] = {
    f"aggregate of {','.join(names)}": lambda store, valid, _, names=names: (
        store.reads.statistics.get_aggregate_statistics(
            StatisticsQuery(TableName(*T), ["a"], version=ReadVersion(valid_write_ids=valid)), names
        )
    )
    for names in (NAMES[:1], NAMES[2:3], NAMES, ["p=1", "p=9"])
}
AGGREGATES["aggregate of no columns"] = lambda store, valid, _: store.reads.statistics.get_aggregate_statistics(
    StatisticsQuery(TableName(*T), [], version=ReadVersion(valid_write_ids=valid)), NAMES
)


def _statistics(name: str, part: str | None, values: int) -> ttypes.ColumnStatistics:
    data = ttypes.ColumnStatisticsData(
        stringStats=ttypes.StringColumnStatsData(maxColLen=values, avgColLen=1.5, numNulls=0, numDVs=values)
    )
    described = ttypes.ColumnStatisticsDesc(
        isTblLevel=part is None, dbName="d", tableName=name, catName=CATALOG, partName=part
    )
    return ttypes.ColumnStatistics(
        statsDesc=described,
        statsObj=[ttypes.ColumnStatisticsObj(colName="a", colType="string", statsData=data)],
        engine="hive",
    )


def _insert(server: Server, part: str, *, ends: str = "commit") -> str:
    """A transaction that writes a partition's and a table's statistics, like an INSERT. Returns the list it wrote
    with."""
    client = server.transactions
    txn_id = client.open()
    client.allocate([txn_id], "u")
    write_id = client.allocate([txn_id])[txn_id]
    valid = ValidWriteIdList.parse(client.valid("d.t")[0].to_text()).with_own(write_id).to_text()
    store = server.objects
    found = store.reads.partitions.get_partition(TableName(*T), [part])
    found.parameters = {**found.parameters, "numRows": str(write_id), "COLUMN_STATS_ACCURATE": ACCURATE}
    store.writes.partitions.alter_partitions(
        TableName(*T), [found], writer=Writer(write_id=write_id, valid_write_ids=valid, options=KEEP)
    )
    own = [_statistics("t", f"p={part}", write_id)]
    store.writes.statistics.update_partition_column_statistics(
        own, writer=Writer(write_id=write_id, valid_write_ids=valid)
    )
    whole = changed_table(store, "d", "u", COLUMN_STATS_ACCURATE=ACCURATE, numRows=str(write_id))
    for_u = valid.replace("d.t:", "d.u:")
    store.writes.tables.alter_table(
        TableName(CATALOG, "d", "u"), whole, writer=Writer(write_id=write_id, valid_write_ids=for_u, options=KEEP)
    )
    store.writes.statistics.update_table_column_statistics(
        _statistics("u", None, write_id), writer=Writer(write_id=write_id, valid_write_ids=for_u)
    )
    {"commit": client.commit, "abort": client.abort, "stay": lambda txn_id: None}[ends](txn_id)
    return valid


def _make(server: Server) -> int:
    create_database(server.objects, "d")
    kind = {"transactional": "true", "transactional_properties": "insert_only"}
    server.objects.writes.tables.create_table(table("d", "u", **kind))
    server.objects.writes.tables.create_table(table("d", "plain"))
    server.objects.writes.statistics.update_table_column_statistics(_statistics("plain", None, 1))
    described = table("d", "t", (("p", "string"),), **kind)
    server.objects.writes.tables.create_table(described)
    server.objects.writes.partitions.add_partitions(
        TableName(*T), [partition(described, (str(number),)) for number in range(4)]
    )
    return int(server.objects.reads.tables.get_table(TableName(*T)).id)


def _now(server: Server) -> str:
    return server.transactions.valid("d.t")[0].to_text()


def _lists(server: Server) -> dict[str, str]:
    """Writes by a committed, an aborted and an open transaction, with lists of readers in between."""
    lists = {"first": _now(server)}
    _insert(server, "0")
    lists["after a commit"] = _now(server)
    lists["of the aborted"] = _insert(server, "1", ends="abort")
    lists["after an abort"] = _now(server)
    lists["of the open"] = _insert(server, "2", ends="stay")
    _insert(server, "3")
    lists["last"] = _now(server)
    lists["forgets the aborted"] = ValidWriteIdList.of("d.t", 4, [3]).to_text()
    return lists


MODES = ["check", "trust"]


@pytest.mark.parametrize("mode", MODES)
def test_every_read_with_a_list_answers_as_the_store_does(mode: str, servers: MakeServer) -> None:
    """For each reader, before and after the events were applied, twice.

    With `trust`, a reader with a list from before them may get the state before them.
    """
    writer, here = servers(), servers(CacheOptions(modes=ReadModes(trust_write_ids=mode == "trust")))
    table_id = _make(writer)
    for ask in (READS | AGGREGATES).values():
        encoded(lambda ask=ask: ask(here.store, None, None))
    lists = _lists(writer)
    for stepped in (False, True):
        if stepped:
            here.poller.step()
        for who, valid in lists.items():
            if mode == "trust" and not stepped and who == "first":
                continue
            for what, ask in (READS | AGGREGATES).items():
                for given in (table_id, None):
                    for round_ in range(2):
                        answered = encoded(partial(ask, here.store, valid, given))
                        expected = encoded(partial(ask, writer.objects, valid, given))
                        assert answered == expected, (who, what, given, stepped, round_)


@pytest.mark.parametrize("mode", MODES)
def test_covered_lists_are_answered_from_memory(mode: str, servers: MakeServer) -> None:
    """With `trust`, without a statement if the request has a table id; otherwise with that of the shared check."""
    here = servers(CacheOptions(modes=ReadModes(trust_write_ids=mode == "trust")))
    table_id = _make(here)
    lists = _lists(here)
    covered = ["first", "after a commit", "after an abort", "last"]
    for who in covered:
        for what, ask in (READS | AGGREGATES).items():
            if what == "absent":
                continue  # the exception's text is the store's
            ask(here.store, lists[who], table_id)
            here.reads.clear()
            with count_statements(here.database) as seen:
                ask(here.store, lists[who], table_id)
            assert here.reasons() == [Reason.HIT], (who, what)
            has_id = what in READS and not what.endswith("_columns")
            assert seen.count == (0 if mode == "trust" and has_id else 1), (who, what)


def test_names_of_partitions_are_read_while_nobody_waits_for_memory(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query planner names all partitions that a query reads, in each request for their statistics."""
    here = servers()
    table_id = _make(here)
    under_the_lock = []

    def watched(name: str) -> str:
        under_the_lock.append(here.cache.shared.view().locked())
        return normalized_partition_name(name)

    monkeypatch.setattr(cached_validity, "normalized_partition_name", watched)
    for _ in range(2):
        READS["columns_of_all"](here.store, _now(here), table_id)
    assert here.reasons()[-1] is Reason.HIT
    assert under_the_lock and not any(under_the_lock)


def test_lists_of_writers_go_to_the_database(servers: MakeServer) -> None:
    here = servers()
    table_id = _make(here)
    lists = _lists(here)
    for who in ("of the aborted", "of the open", "forgets the aborted"):
        for what, ask in (READS | AGGREGATES).items():
            if what == "plain_columns":
                continue
            here.reads.clear()
            encoded(lambda ask=ask, who=who: ask(here.store, lists[who], table_id))
            assert here.reasons()[-1] is Reason.STALE_WRITE_IDS, (who, what)


NO_LISTS = ["null", "null:5:5::", "nonsense", "d.t:9223372036854775807:1::", "d.w:1:1::"]


def test_what_is_no_list_of_the_table_is_judged_by_the_store(servers: MakeServer) -> None:
    here = servers()
    table_id = _make(here)
    _lists(here)
    for what, ask in (READS | AGGREGATES).items():
        encoded(partial(ask, here.store, None, table_id))
        for text in NO_LISTS:
            answered = encoded(partial(ask, here.store, text, table_id))
            assert answered == encoded(partial(ask, here.objects, text, table_id)), (what, text)


def test_a_wrong_table_id_is_no_hit(servers: MakeServer) -> None:
    here = servers()
    table_id = _make(here)
    valid = _now(here)
    for what, ask in READS.items():
        if what.endswith("_columns"):
            continue
        encoded(lambda ask=ask: ask(here.store, valid, table_id))
        here.reads.clear()
        encoded(lambda ask=ask: ask(here.store, valid, table_id + 1))
        assert here.reasons()[-1] is Reason.WRONG_TABLE_ID, what


def test_answers_are_copies_that_a_judgement_leaves_as_they_are_in_memory(servers: MakeServer) -> None:
    here = servers()
    table_id = _make(here)
    lists = _lists(here)
    judged = lists["first"]
    for _ in range(2):
        first = here.store.reads.statistics.get_partition_column_statistics(
            StatisticsQuery(TableName(*T), ["a"], version=ReadVersion(valid_write_ids=judged, table_id=table_id)), NAMES
        )
        assert {one.isStatsCompliant for one in first} == {False}
        is_unchecked = here.store.reads.statistics.get_partition_column_statistics(
            StatisticsQuery(TableName(*T), ["a"], version=ReadVersion(valid_write_ids=None)), NAMES
        )
        assert {one.isStatsCompliant for one in is_unchecked} == {None}
