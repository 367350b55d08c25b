"""Statistics written by a transaction, in each reply that contains statistics: only for readers whose lists include
it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from tests.server.conftest import Link, Serve, database, table

Found = list[t.ColumnStatisticsObj]
TRANSACTIONAL = {"transactional": "true", "transactional_properties": "insert_only"}
ACCURATE = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
KEEP = t.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})


def of_get_table(link: Link, valid: str) -> Found:
    capable = t.ClientCapabilities([t.ClientCapability.INSERT_ONLY_TABLES])
    request = t.GetTableRequest(
        "d", "flat", capabilities=capable, validWriteIdList=valid, getColumnStats=True, engine="hive"
    )
    statistics = link.call("get_table_req", req=request).table.colStats
    return [] if statistics is None else statistics.statsObj


def of_table(link: Link, valid: str) -> Found:
    request = t.TableStatsRequest("d", "flat", ["a"], engine="hive", validWriteIdList=valid)
    return link.call("get_table_statistics_req", request=request).tableStats


def _of_parts(valid: str) -> t.PartitionsStatsRequest:
    return t.PartitionsStatsRequest("d", "parts", ["a"], ["p=1"], engine="hive", validWriteIdList=valid)


def of_partitions(link: Link, valid: str) -> Found:
    return link.call("get_partitions_statistics_req", request=_of_parts(valid)).partStats.get("p=1", [])


def of_all_partitions(link: Link, valid: str) -> Found:
    return link.call("get_aggr_stats_for", request=_of_parts(valid)).colStats


def of_partitions_by_name(link: Link, valid: str) -> Found:
    request = t.GetPartitionsByNamesRequest(
        "d", "parts", ["p=1"], get_col_stats=True, engine="hive", validWriteIdList=valid
    )
    [partition] = link.call("get_partitions_by_names_req", req=request).partitions
    return [] if partition.colStats is None else partition.colStats.statsObj


READS: dict[str, tuple[str, Callable[[Link, str], Found]]] = {
    "get_table_req": ("flat", of_get_table),
    "get_table_statistics_req": ("flat", of_table),
    "get_partitions_statistics_req": ("parts", of_partitions),
    "get_aggr_stats_for": ("parts", of_all_partitions),
    "get_partitions_by_names_req": ("parts", of_partitions_by_name),
}


def with_tables(link: Link) -> None:
    link.call("create_database", database=database("d"))
    for name, keys in (("flat", []), ("parts", [t.FieldSchema("p", "int", None)])):
        made = table("d", name)
        made.sd.cols = [t.FieldSchema("a", "int", None)]
        made.partitionKeys, made.parameters = keys, dict(TRANSACTIONAL)
        link.call("create_table", tbl=made)
    link.call("append_partition", db_name="d", tbl_name="parts", part_vals=["1"])


def list_of(link: Link, name: str) -> ValidWriteIdList:
    """What a reader that starts now may see."""
    answer = link.call("get_valid_write_ids", rqst=t.GetValidWriteIdsRequest([f"d.{name}"]))
    return ValidWriteIdList.from_thrift(answer.tblValidWriteIds[0])


def statistics(name: str, highest: int) -> t.ColumnStatistics:
    part = "p=1" if name == "parts" else None
    data = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(0, highest, 0, 1))
    described = t.ColumnStatisticsDesc(part is None, "d", name, part)
    return t.ColumnStatistics(described, [t.ColumnStatisticsObj("a", "int", data)], engine="hive")


def write(link: Link, highest: int) -> tuple[int, dict[str, str]]:
    """A transaction that writes the statistics of both tables as an INSERT does. Returns its id, and its own lists."""
    [txn_id] = link.call("open_txns", rqst=t.OpenTxnRequest(1, "u", "h")).txn_ids
    own: dict[str, str] = {}
    for name in ("flat", "parts"):
        allocation = t.AllocateTableWriteIdsRequest("d", name, [txn_id])
        write_id = link.call("allocate_table_write_ids", rqst=allocation).txnToWriteIds[0].writeId
        own[name] = list_of(link, name).with_own(write_id).to_text()
        written = {"writeId": write_id, "validWriteIdList": own[name], "environmentContext": KEEP}
        claims = {"numRows": str(highest), "COLUMN_STATS_ACCURATE": ACCURATE}
        if name == "flat":
            changed = link.call("get_table", dbname="d", tbl_name="flat")
            changed.parameters, changed.writeId = {**TRANSACTIONAL, **claims}, write_id
            link.call("alter_table_req", req=t.AlterTableRequest("hive", "d", "flat", changed, **written))
        else:
            part = link.call("get_partition", db_name="d", tbl_name="parts", part_vals=["1"])
            part.parameters = claims
            link.call("alter_partitions_req", req=t.AlterPartitionsRequest("hive", "d", "parts", [part], **written))
        request = t.SetPartitionsStatsRequest([statistics(name, highest)], False, write_id, own[name], "hive")
        link.call("set_aggr_stats_for", request=request)
    return txn_id, own


@pytest.mark.parametrize("method", READS)
def test_only_readers_whose_lists_have_the_write_see_its_statistics(serve: Serve, method: str) -> None:
    link = serve(**{"catalog.client_capability_check": False}).link()
    with_tables(link)
    name, read = READS[method]

    def seen(valid: str) -> list[int]:
        cold, warm = ([one.statsData.longStats.highValue for one in read(link, valid)] for _ in range(2))
        assert cold == warm
        return cold

    before = list_of(link, name).to_text()
    txn_id, own = write(link, 10)
    meanwhile = list_of(link, name).to_text()
    assert [seen(before), seen(meanwhile), seen(own[name])] == [[], [], [10]]
    link.call("commit_txn", rqst=t.CommitTxnRequest(txn_id))
    committed = list_of(link, name).to_text()
    assert [seen(before), seen(meanwhile), seen(committed)] == [[], [], [10]]
    txn_id, own = write(link, 20)
    meanwhile = list_of(link, name).to_text()
    assert [seen(before), seen(committed), seen(meanwhile), seen(own[name])] == [[], [], [], [20]]
    link.call("abort_txn", rqst=t.AbortTxnRequest(txn_id))
    aborted = list_of(link, name).to_text()
    wrong = f"d.{name}:2:9223372036854775807::"
    assert [seen(valid) for valid in (before, committed, meanwhile, aborted, own[name], wrong)] == [[]] * 6
