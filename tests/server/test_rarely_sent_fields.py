"""Fields that clients omit, leave empty, or name in another way, where Hive 4.0.1's answer was recorded."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, database, table


@pytest.fixture
def link(serve: Serve) -> Link:
    """A client with the tables d.t and d.p."""
    link = serve().link()
    link.call("set_ugi", user_name="client", group_names=[])
    link.call("create_database", database=database("d"))
    for name in ("t", "p"):
        link.call("create_table", tbl=table("d", name))
    return link


def function(**fields: Any) -> t.Function:
    given = {"functionName": "f", "dbName": "d", "className": "c", "ownerType": 1, "functionType": 1}
    return t.Function(**{**given, "resourceUris": [], **fields})


OWNERS = [pytest.param(None, "client", id="absent"), pytest.param("", "", id="empty"), ("owner", "owner")]


@pytest.mark.parametrize(("given", "kept"), OWNERS)
def test_only_an_absent_owner_is_the_caller(link: Link, given: str | None, kept: str) -> None:
    link.call("create_function", func=function(ownerName=given))
    assert link.call("get_function", dbName="d", funcName="f").ownerName == kept
    connector = t.DataConnector("c", "mysql", "jdbc:mysql://host/db", ownerName=given, ownerType=1)
    link.call("create_dataconnector_req", connectorReq=t.CreateDataConnectorRequest(connector))
    found = link.call("get_dataconnector_req", request=t.GetDataConnectorRequest("c"))
    assert found.ownerName == kept


def test_a_function_stays_in_its_catalog(link: Link) -> None:
    link.call("create_function", func=function())
    with pytest.raises(t.MetaException, match="cannot move a function between catalogs"):
        link.call("alter_function", dbName="d", funcName="f", newFunc=function(catName="other"))
    link.call("alter_function", dbName="@hive#d", funcName="F", newFunc=function(catName="HIVE", className="new"))
    assert link.call("get_function", dbName="d", funcName="f").className == "new"


def test_privileges_of_a_partition_without_values_are_none(link: Link) -> None:
    for values in (None, []):
        reference = t.HiveObjectRef(t.HiveObjectType.PARTITION, "d", "p", values)
        found = link.call("get_privilege_set", hiveObject=reference, user_name="u", group_names=["g"])
        assert (found.userPrivileges, found.groupPrivileges) == ({"u": []}, {"g": []})


@pytest.mark.parametrize(
    ("kind", "groups"), [(t.HiveObjectType.GLOBAL, {}), (t.HiveObjectType.DATABASE, {"g": []})], ids=["global", "other"]
)
def test_principals_without_privileges_are_answered(link: Link, kind: int, groups: dict[str, list[Any]]) -> None:
    reference = t.HiveObjectRef(kind, "d")
    found = link.call("get_privilege_set", hiveObject=reference, user_name="", group_names=["g"])
    assert found.groupPrivileges == groups
    assert found.userPrivileges == (None if kind == t.HiveObjectType.GLOBAL else {"": []})


def test_privileges_of_somebody_are_never_everybodys(link: Link) -> None:
    reference = t.HiveObjectRef(t.HiveObjectType.GLOBAL)
    assert link.call("list_privileges", principal_name=None, principal_type=None, hiveObject=reference)
    with pytest.raises(t.MetaException, match="principal type"):
        link.call("list_privileges", principal_name="u", principal_type=None, hiveObject=reference)


def test_patterns_of_parameters_are_passed_over_beside_fields_of_tables(link: Link) -> None:
    def names(fields: list[str] | None, include: str | None) -> list[str]:
        request = t.GetTablesRequest("d", ["t"], projectionSpec=t.GetProjectionsSpec(fields, include))
        return [one.tableName for one in link.call("get_table_objects_by_name_req", req=request).tables]

    assert names(["tableName"], "a%") == names([], "a%") == names(None, None) == ["t"]
    for pattern in ("a%", ""):
        with pytest.raises(t.InvalidOperationException):
            names(None, pattern)


@pytest.mark.parametrize("condition", ["dbName", "tbName", "partName", "poolName", "state"])
def test_no_compaction_meets_an_empty_condition(link: Link, condition: str) -> None:
    link.call("compact2", rqst=t.CompactionRequest("d", "t", None, t.CompactionType.MAJOR))
    assert link.call("show_compact", rqst=t.ShowCompactRequest()).compacts
    assert link.call("show_compact", rqst=t.ShowCompactRequest(**{condition: ""})).compacts == []


@pytest.mark.parametrize("progress", ["{}", None])
def test_a_format_goes_with_the_metrics_that_have_it(link: Link, progress: str | None) -> None:
    for text, form in (("zipped", "gzip(json-2.0)"), (progress, None)):
        metrics = t.ReplicationMetrics(1, "p", 7, progress=text, messageFormat=form)
        link.call("add_replication_metrics", replicationMetricList=t.ReplicationMetricList([metrics]))
    request = t.GetReplicationMetricsRequest(1)
    (found,) = link.call("get_replication_metrics", rqst=request).replicationMetricList
    assert (found.progress, found.messageFormat) == (progress or "zipped", None)


@pytest.mark.parametrize("key", [None, t.ScheduledQueryKey(None, "ns"), t.ScheduledQueryKey("s", None)])
def test_a_scheduled_query_has_a_name(link: Link, key: t.ScheduledQueryKey | None) -> None:
    """Both parts are required: clients in Java could not read the reply."""
    query = t.ScheduledQuery(key, True, "* * * * * ?", "u", "select 1")
    request = t.ScheduledQueryMaintenanceRequest(t.ScheduledQueryMaintenanceRequestType.CREATE, query)
    with pytest.raises((t.InvalidInputException, TApplicationException)):
        link.call("scheduled_query_maintenance", request=request)
    assert link.call("scheduled_query_poll", request=t.ScheduledQueryPollRequest("ns")).executionId is None


def test_a_type_has_no_two_fields_of_one_name(link: Link) -> None:
    fields = [t.FieldSchema("a", "int", None), t.FieldSchema("a", "string", None)]
    with pytest.raises(t.InvalidObjectException, match="two fields"):
        link.call("create_type", type=t.Type("twice", fields=fields))


def statistics(of: str, part: str | None, **fields: Any) -> t.SetPartitionsStatsRequest:
    data = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(numNulls=0, numDVs=1))
    description = t.ColumnStatisticsDesc(part is None, "d", of, part)
    columns = t.ColumnStatistics(description, [t.ColumnStatisticsObj("a", "int", data)])
    return t.SetPartitionsStatsRequest([columns], engine="hive", **fields)


@pytest.mark.parametrize(
    ("method", "argument", "part", "error"),
    [
        ("set_aggr_stats_for", "request", None, t.NoSuchObjectException),
        ("set_aggr_stats_for", "request", "k=1", t.InvalidObjectException),
        ("update_table_column_statistics_req", "req", None, t.NoSuchObjectException),
        ("update_table_column_statistics_req", "req", "k=1", t.NoSuchObjectException),
        ("update_partition_column_statistics_req", "req", "k=1", t.InvalidObjectException),
    ],
)
def test_statistics_of_an_absent_table(
    link: Link, method: str, argument: str, part: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"hive\.d\.none"):
        link.call(method, **{argument: statistics("none", part)})


def test_statistics_of_partitions_name_one(link: Link) -> None:
    with pytest.raises(t.MetaException, match="Partition name is invalid"):
        link.call("update_partition_column_statistics_req", req=statistics("t", None))


def test_a_transaction_of_the_source_is_named_once(link: Link) -> None:
    request = t.OpenTxnRequest(2, "u", "h", replPolicy="p", replSrcTxnIds=[7, 7], txn_type=t.TxnType.REPL_CREATED)
    with pytest.raises(TApplicationException, match="named twice"):
        link.call("open_txns", rqst=request)


@pytest.mark.parametrize(("database", "name"), [("d", "None"), ("D", "Mixed"), ("@hive#d", "d.F"), ("none", "f")])
def test_an_absent_function_is_named_as_it_was_asked_for(link: Link, database: str, name: str) -> None:
    """Clients search for the name in the text: Spark's `functionExists` returns false if it finds it."""
    with pytest.raises(t.NoSuchObjectException) as refused:
        link.call("get_function", dbName=database, funcName=name)
    assert refused.value.message == f"Function {database}.{name} does not exist"
