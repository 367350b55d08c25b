"""Deleting statistics by the request of later releases: what it names, and what it omits.

Facts: `DeleteColumnStatisticsHandler`, `DirectSqlDeleteStats`, `StatisticsManagementTask` (Hive 4.2): the task names
neither columns nor partitions, of tables of which some partitions have no statistics.
"""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, database, table

PARTS = ["p=1", "p=2"]


@pytest.fixture
def link(serve: Serve) -> Link:
    """A server with a table `flat` and a partitioned one, `t`, each with statistics; `p=3` has none."""
    link = serve().link()
    link.call("create_database", database=database("d"))
    for name in ("t", "flat"):
        made = table("d", name)
        made.sd.cols = [t.FieldSchema("a", "int"), t.FieldSchema("b", "int")]
        if name == "flat":
            made.partitionKeys = []
        link.call("create_table", tbl=made)
    for part in (*PARTS, "p=3"):
        link.call("append_partition_by_name", db_name="d", tbl_name="t", part_name=part)
    for name, part in (("flat", None), ("t", None), *(("t", part) for part in PARTS)):
        about = t.ColumnStatisticsDesc(isTblLevel=part is None, dbName="d", tableName=name, partName=part)
        number = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(1, 2, 0, 2))
        columns = [t.ColumnStatisticsObj(column, "int", number) for column in ("a", "b")]
        own = t.ColumnStatistics(about, columns, engine="hive")
        link.call("set_aggr_stats_for", request=t.SetPartitionsStatsRequest([own], engine="hive"))
    return link


def left(link: Link) -> dict[str, list[str]]:
    """Which columns have statistics."""
    found: dict[str, Any] = {}
    for name in ("flat", "t"):
        requested = t.TableStatsRequest("d", name, ["a", "b"], engine="hive")
        found[name] = link.call("get_table_statistics_req", request=requested).tableStats
    of_parts = t.PartitionsStatsRequest("d", "t", ["a", "b"], PARTS, engine="hive")
    found.update(link.call("get_partitions_statistics_req", request=of_parts).partStats)
    return {name: [one.colName for one in columns] for name, columns in found.items() if columns}


BOTH = ["a", "b"]
ALL = {"flat": BOTH, "t": BOTH, "p=1": BOTH, "p=2": BOTH}


@pytest.mark.parametrize(
    ("of", "fields", "gone"),
    [
        ("t", {}, {"p=1": [], "p=2": []}),
        ("t", {"part_names": []}, {"p=1": [], "p=2": []}),
        ("t", {"col_names": ["A"]}, {"p=1": ["b"], "p=2": ["b"]}),
        ("t", {"part_names": ["P=2", "p=3", "p=9"]}, {"p=2": []}),
        ("t", {"part_names": ["p=3"], "col_names": ["a"]}, {}),
        ("t", {"col_names": ["none"]}, {}),
        ("t", {"engine": "impala"}, {}),
        ("t", {"tableLevel": True, "part_names": ["p=1"]}, {"t": []}),
        ("flat", {}, {"flat": []}),
        ("flat", {"tableLevel": False, "col_names": ["b"]}, {"flat": ["a"]}),
        ("flat", {"part_names": ["p=1"]}, {"flat": []}),
        ("flat", {"tableLevel": True, "engine": "impala"}, {}),
    ],
)
def test_what_is_not_named_is_meant(link: Link, of: str, fields: dict[str, Any], gone: dict[str, list[str]]) -> None:
    assert left(link) == ALL
    head = link.call("get_current_notificationEventId").eventId
    for _ in range(2):
        request = t.DeleteColumnStatisticsRequest(db_name="d", tbl_name=of, **fields)
        assert link.call("delete_column_statistics_req", req=request) is True
        assert left(link) == {name: columns for name, columns in {**ALL, **gone}.items() if columns}
    # Each is logged once, and nothing for missing ones.
    assert link.call("get_current_notificationEventId").eventId - head == len(gone)


def test_refusals(link: Link) -> None:
    absent = t.DeleteColumnStatisticsRequest(db_name="d", tbl_name="none")
    with pytest.raises(t.InvalidObjectException):
        link.call("delete_column_statistics_req", req=absent)
    absent.tableLevel = True
    with pytest.raises(t.NoSuchObjectException):
        link.call("delete_column_statistics_req", req=absent)
    changed = table("d", "acid", transactional="true", transactional_properties="insert_only")
    link.call("create_table", tbl=changed)
    with pytest.raises(t.MetaException, match="transactional table"):
        link.call("delete_column_statistics_req", req=t.DeleteColumnStatisticsRequest(db_name="d", tbl_name="acid"))
