"""Handlers read only fields that their requests have: no type checker verifies this."""

from __future__ import annotations

import logging
import random
import re
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError
from thrift.protocol.TBase import TBase
from thrift.Thrift import TApplicationException, TException

from hms_cache.limited_log import INTERVAL_S, LimitedLog
from hms_cache.server import faults
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddNotNullConstraintRequest,
    AlterISchemaRequest,
    AppendPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    DropDataConnectorRequest,
    FieldSchema,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    InsertEventRequestData,
    InvalidInputException,
    InvalidObjectException,
    ISchema,
    ISchemaName,
    MetaException,
    NotificationEventRequest,
    Order,
    PrincipalType,
    PrivilegeBag,
    ResourceUri,
    Role,
    SchemaCompatibility,
    SchemaType,
    SchemaValidation,
    SetPartitionsStatsRequest,
    SQLNotNullConstraint,
    StringColumnStatsData,
    Type,
    WMCreateTriggerRequest,
    WMTrigger,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from hms_cache.wire import METHODS
from tests.manual_clock import ManualClock
from tests.server.conftest import Link, Serve, database, table
from tests.wire.strategies import filled

PLACES = {
    "d": {"db", "dbname", "db_name", "dbnames", "database", "db_patterns", "pattern"},
    "t": {"table", "tablename", "tbl_name", "tblname", "table_name", "tbl"},
    "hive": {"cat_name", "catname", "catalog", "catalogname", "catalogs"},
    "p=1": {"part_name", "partname", "partitionname"},
}
NAMES = {field: name for name, fields in PLACES.items() for field in fields}
#: They end the server or its connections, or have no reply.
LEFT_OUT = {"shutdown", "reinitialize", "set_ugi"}


def in_place(value: Any) -> Any:
    """The names of an existing database, table and partition, in whatever field has one."""
    if isinstance(value, TBase):
        for entry in type(value).thrift_spec:
            if entry is not None:
                name = NAMES.get(entry[2].lower())
                found = getattr(value, entry[2])
                setattr(value, entry[2], name if name and isinstance(found, str) else in_place(found))
    elif isinstance(value, list):
        return [in_place(item) for item in value]
    return value


@pytest.fixture
def link(serve: Serve) -> Link:
    link = serve().link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    return link


def test_no_handler_asks_for_a_field_that_is_not_there(link: Link) -> None:
    source, wrong = random.Random(7), []
    for method in sorted(set(METHODS) - LEFT_OUT):
        arguments = in_place(filled(METHODS[method].args_class, source))
        given = {entry[2]: getattr(arguments, entry[2]) for entry in arguments.thrift_spec if entry is not None}
        try:
            link.call(method, **given)
        except TApplicationException as error:
            if "has no attribute" in str(error.message):
                wrong.append(f"{method}: {error.message}")
        except TException:
            pass
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("method", ["update_table_column_statistics_req", "update_partition_column_statistics_req"])
def test_statistics_are_merged_by_their_own_method_only(link: Link, method: str) -> None:
    """As in Hive 4.0.1: a client that wants to merge statistics must not get success for a replacement."""
    numbers = ColumnStatisticsData(stringStats=StringColumnStatsData(maxColLen=1, avgColLen=1.0, numNulls=0, numDVs=1))
    statistics = ColumnStatistics(
        ColumnStatisticsDesc(True, "d", "t"), [ColumnStatisticsObj("a", "string", numbers)], engine="hive"
    )
    for elements, merges in (([statistics], True), ([], False), ([statistics, statistics], False)):
        request = SetPartitionsStatsRequest(elements, merges, engine="hive")
        with pytest.raises(InvalidInputException):
            link.call(method, req=request)


def test_a_partition_is_appended_by_values_or_a_name(link: Link) -> None:
    for given in ({}, {"partVals": []}, {"name": ""}):
        with pytest.raises(MetaException):
            link.call("append_partition_req", appendPartitionsReq=AppendPartitionsRequest("hive", "d", "t", **given))
    with pytest.raises(InvalidObjectException, match="table not found"):
        request = AppendPartitionsRequest("hive", "d", "missing", name="")
        link.call("append_partition_req", appendPartitionsReq=request)


def test_an_owner_without_a_name_stays_so(link: Link) -> None:
    """Only a missing owner is replaced by the user who creates the database."""
    for name, given, kept in (("e", "", ""), ("f", None, "somebody")):
        if given is None:
            link.call("set_ugi", user_name="somebody", group_names=[])
        link.call("create_database", database=Database(name, ownerName=given))
        assert (link.call("get_database", name=name).ownerName or "") == kept


def test_a_client_that_repeats_its_mistakes_gets_one_trace_of_each_and_few_lines(
    link: Link, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any combination of missing fields: thousands of small requests a second, each logging a line of hundreds of
    bytes."""
    clock = ManualClock()
    monkeypatch.setattr(faults, "_logged_traces", set())
    monkeypatch.setattr(faults, "_limited_log", LimitedLog(logging.getLogger("hms_cache"), clock.monotonic_s))
    for turn in range(3):
        for request in (DropDataConnectorRequest(), DropDataConnectorRequest(ifNotExists=True)):
            with pytest.raises(TApplicationException, match="connectorName"):
                link.call("drop_dataconnector_req", dropDcReq=request)
        if turn == 1:
            clock.advance(INTERVAL_S)
    told = [record for record in caplog.records if "connectorName" in record.getMessage()]
    assert [bool(record.exc_info) for record in told] == [True, False]
    assert "(3 more of such" in told[1].getMessage()


def test_what_fails_inside_again_and_again_is_few_lines(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "_logged_traces", set())
    monkeypatch.setattr(faults, "_limited_log", LimitedLog(logging.getLogger("hms_cache"), ManualClock().monotonic_s))
    for _ in range(3):
        for method in ("get_table", "get_fields"):
            fault = faults.application_exception(method, ZeroDivisionError("by zero"))
            assert fault.message == f"Internal error processing {method}: ZeroDivisionError: by zero"
    told = [(record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert told == [(f"internal error in {method}: 'by zero'", True) for method in ("get_table", "get_fields")]


@pytest.mark.parametrize(
    ("method", "request_of", "told"),
    [
        ("create_wm_trigger", {"request": WMCreateTriggerRequest(WMTrigger("plan"))}, "WMTrigger.triggerName"),
        (
            "grant_privileges",
            {"privileges": PrivilegeBag([HiveObjectPrivilege(None, "a", PrincipalType.USER)])},
            "HiveObjectPrivilege.hiveObject",
        ),
        ("get_next_notification", {"rqst": NotificationEventRequest()}, "NotificationEventRequest.lastEvent"),
        (
            "update_table_column_statistics",
            {"stats_obj": ColumnStatistics(ColumnStatisticsDesc(True, "d", "t"), [ColumnStatisticsObj()])},
            "ColumnStatisticsObj.colName",
        ),
    ],
)
def test_what_is_absent_is_named_however_deep(link: Link, method: str, request_of: dict[str, Any], told: str) -> None:
    with pytest.raises(TApplicationException, match=re.escape(told)) as raised:
        link.call(method, **request_of)
    assert raised.value.type == TApplicationException.PROTOCOL_ERROR
    assert "None" not in raised.value.message


@pytest.mark.parametrize("field", ["txnId", "writeId", "db", "table", "fileInfo", "filesAdded"])
@pytest.mark.parametrize("in_batch", [False, True])
def test_a_write_notification_without_what_hives_protocol_requires_is_refused_and_writes_no_line(
    link: Link, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, field: str, in_batch: bool
) -> None:
    """Hive's own clients cannot send it."""
    monkeypatch.setattr(faults, "_logged_traces", set())
    files = InsertEventRequestData(replace=False, filesAdded=["file:/f"])
    request = WriteNotificationLogRequest(1, 1, "d", "t", files)
    setattr(files if field == "filesAdded" else request, field, None)
    with pytest.raises(TApplicationException, match=rf"absent are: \w+\.{field}$") as raised:
        if in_batch:
            batch = WriteNotificationLogBatchRequest("hive", "d", "t", [request])
            link.call("add_write_notification_log_in_batch", rqst=batch)
        else:
            link.call("add_write_notification_log", rqst=request)
    assert raised.value.type == TApplicationException.PROTOCOL_ERROR
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_column_that_is_sorted_without_an_order_has_that_of_java(link: Link) -> None:
    sorted_table = table("d", "s")
    sorted_table.sd.sortCols = [Order("a")]
    link.call("create_table", tbl=sorted_table)
    assert link.call("get_table", dbname="d", tbl_name="s").sd.sortCols == [Order("a", 0)]


def test_what_a_database_does_not_store_is_told_as_absent(link: Link) -> None:
    with pytest.raises(TApplicationException, match=r"absent are: .*FieldSchema\.name") as raised:
        link.call("create_type", type=Type("n", fields=[FieldSchema(type="int")]))
    assert raised.value.type == TApplicationException.PROTOCOL_ERROR


def test_a_role_without_a_name_is_refused_and_keeps_no_other_from_being_listed(link: Link) -> None:
    """It was stored, and then no client could list the roles any more."""
    with pytest.raises(MetaException, match="Role name cannot be null"):
        link.call("create_role", role=Role(ownerName="o"))
    link.call("create_role", role=Role("r"))
    assert "r" in link.call("get_role_names")


@pytest.mark.parametrize("column", [None, ""])
def test_a_constraint_without_a_name_or_a_column_is_refused(link: Link, column: str | None) -> None:
    constraint = SQLNotNullConstraint("hive", "d", "t", column, None, True, True, True)
    with pytest.raises((TApplicationException, InvalidObjectException)) as raised:
        link.call("add_not_null_constraint", req=AddNotNullConstraintRequest([constraint]))
    assert "fkcolumn_name" not in raised.value.message


def test_what_tables_require_of_a_request_is_refused(link: Link) -> None:
    resources = [ResourceUri(uri="file:/a.jar")]
    function = Function("f", "d", "c", "o", PrincipalType.USER, 0, FunctionType.JAVA, resources)
    with pytest.raises(MetaException, match="Resource type cannot be null"):
        link.call("create_function", func=function)
    schema = ISchema(SchemaType.HIVE, "s", "hive", "d", SchemaCompatibility.BOTH, SchemaValidation.ALL, True)
    link.call("create_ischema", schema=schema)
    schema.compatibility = None
    with pytest.raises(MetaException, match="needs a compatibility"):
        link.call("alter_ischema", rqst=AlterISchemaRequest(ISchemaName("hive", "d", "s"), schema))


def test_a_fault_tells_no_statement() -> None:
    error = IntegrityError("INSERT INTO a VALUES (?)", ("secret",), ValueError("NOT NULL constraint failed"))
    told = faults.application_exception("create_table", error).message
    assert "NOT NULL constraint failed" in told
    assert "INSERT" not in told
    assert "secret" not in told
