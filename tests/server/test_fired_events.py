"""Events that clients fire, and their files written by transactions."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.message_reader import read_event
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve, database, table
from tests.server.test_valid_lists import counted


@pytest.fixture
def link(serve: Serve) -> Link:
    link = serve().link()
    made = table("d", "p")
    made.partitionKeys = [ttypes.FieldSchema("dt", "string")]
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=made)
    without_keys = table("d", "t")
    without_keys.partitionKeys = []
    link.call("create_table", tbl=without_keys)
    descriptor = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "int")], serdeInfo=ttypes.SerDeInfo())
    partitions = [
        ttypes.Partition(values=[value], dbName="d", tableName="p", sd=descriptor, parameters={}) for value in "12"
    ]
    link.call("add_partitions", new_parts=partitions)
    return link


def fire(link: Link, data: ttypes.FireEventRequestData, **fields: Any) -> list[int]:
    request = ttypes.FireEventRequest(True, data, **{"dbName": "d", "tableName": "p", **fields})
    return link.call("fire_listener_event", rqst=request).eventIds or []


def events_after(link: Link, event_id: int) -> list[tuple[int, str]]:
    found = link.call("get_next_notification", rqst=ttypes.NotificationEventRequest(event_id)).events
    return [(event.eventId, event.eventType) for event in found]


def decoded_after(link: Link, event_id: int) -> list[Any]:
    found = link.call("get_next_notification", rqst=ttypes.NotificationEventRequest(event_id)).events
    return [read_event(NotificationRow.received(event)) for event in found]


@pytest.mark.parametrize("is_refresh", [True, False])
def test_reloads_of_a_table_and_of_partitions(link: Link, is_refresh: bool) -> None:
    before = link.call("get_current_notificationEventId").eventId
    data = ttypes.FireEventRequestData(refreshEvent=is_refresh)
    told = fire(link, data)
    told += fire(link, data, partitionVals=["1"])
    told += fire(link, data, batchPartitionValsForRefresh=[["1"], ["2"]])
    assert events_after(link, before) == [(event_id, "RELOAD") for event_id in told]
    assert len(told) == 4


def test_a_reload_tells_the_parameters_that_its_client_sends(link: Link) -> None:
    """Impala recognizes its own events by them, and otherwise repeats its work. They belong to the event, not to the
    table."""
    before = link.call("get_current_notificationEventId").eventId
    stored = link.call("get_table", dbname="d", tbl_name="p").parameters
    mine = {"impala.events.catalogServiceId": "7:9", "impala.events.catalogVersion": "3"}
    data = ttypes.FireEventRequestData(refreshEvent=True)
    fire(link, data, tblParams=mine)
    fire(link, data, tblParams=mine, batchPartitionValsForRefresh=[["1"], ["2"]])
    fire(link, data, tblParams={})
    told = [event.table().parameters for event in decoded_after(link, before)]
    assert told == [{**stored, **mine}] * 3 + [stored]
    assert link.call("get_table", dbname="d", tbl_name="p").parameters == stored


def inserted(values: list[str], **fields: Any) -> ttypes.InsertEventRequestData:
    return ttypes.InsertEventRequestData(filesAdded=["file:/f"], partitionVal=values, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"data": ttypes.FireEventRequestData(insertDatas=[inserted(["1"]), inserted(["9"]), inserted(["2"])])},
        {
            "data": ttypes.FireEventRequestData(refreshEvent=True),
            "batchPartitionValsForRefresh": [["1"], ["9"], ["2"]],
        },
    ],
    ids=["inserts", "reloads"],
)
def test_of_several_partitions_all_are_told_or_none(link: Link, fields: dict[str, Any]) -> None:
    """Impala names each partition of an INSERT in one call, and sends it again if it is refused."""
    before = link.call("get_current_notificationEventId").eventId
    with pytest.raises(TApplicationException, match=r"partition values=\[9\]"):
        fire(link, **fields)
    assert events_after(link, before) == []


def test_events_of_partitions_are_in_the_order_of_the_request(link: Link) -> None:
    """The client stores the ids with its partitions, to recognize its own events."""
    before = link.call("get_current_notificationEventId").eventId
    wanted = ["2", "1", "2"]
    told = fire(link, ttypes.FireEventRequestData(insertDatas=[inserted([value]) for value in wanted]))
    events = decoded_after(link, before)
    assert [(event.event_id, event.partition().values) for event in events] == [
        (event_id, [value]) for event_id, value in zip(told, wanted, strict=True)
    ]


@pytest.mark.parametrize(("sent", "is_told"), [(None, True), (True, True), (False, False)])
def test_an_insert_that_does_not_say_so_may_have_replaced_what_was_there(
    link: Link, sent: bool | None, is_told: bool
) -> None:
    """As in Hive, for clients that cannot say: replicating an overwrite as an append would double rows."""
    before = link.call("get_current_notificationEventId").eventId
    fire(link, ttypes.FireEventRequestData(insertData=ttypes.InsertEventRequestData(sent, ["file:/f"])))
    fire(link, ttypes.FireEventRequestData(insertDatas=[inserted(["1"], replace=sent)]))
    assert [event.is_replace for event in decoded_after(link, before)] == [is_told] * 2


def test_an_insert_into_no_partition_writes_no_event(link: Link) -> None:
    before = link.call("get_current_notificationEventId").eventId
    assert fire(link, ttypes.FireEventRequestData(insertDatas=[])) == []
    with pytest.raises(TApplicationException, match="must say what was inserted"):
        fire(link, ttypes.FireEventRequestData())
    assert events_after(link, before) == []


def test_written_files_of_a_table_without_keys_are_of_the_table(link: Link) -> None:
    files = ttypes.InsertEventRequestData(filesAdded=["file:/f"])
    [txn] = link.call("open_txns", rqst=ttypes.OpenTxnRequest(1, "u", "h")).txn_ids
    link.call("add_write_notification_log", rqst=ttypes.WriteNotificationLogRequest(txn, 1, "d", "t", files, ["1"]))
    [written] = link.call("get_all_write_event_info", request=ttypes.GetAllWriteEventInfoRequest(txn))
    assert (written.table, written.partition or "") == ("t", "")


@pytest.mark.parametrize("limit", [-1, 7])
def test_partitions_that_are_told_of_together_take_no_more_statements(serve: Serve, limit: int) -> None:
    """Hive's clients send a thousand in a call (`hive.write.notification.max.batch.size`); each took ten statements.
    The limit on the partitions of a request does not apply: it requests none."""
    few, many = 20, 60  # more than the ids reserved at once
    link = serve(**{"cache.enabled": False, "catalog.partition_request_limit": limit}).link()
    link.call("create_database", database=database("d"))
    made = table("d", "p")
    link.call("create_table", tbl=made)
    values = [f"{number:02d} a/b" for number in range(few + many)]
    added = [ttypes.Partition([value], "d", "p", sd=made.sd, parameters={}) for value in values]
    link.call("add_partitions", new_parts=added)
    [txn] = link.call("open_txns", rqst=ttypes.OpenTxnRequest(1, "u", "h")).txn_ids

    def told(some: list[str], file: str) -> None:
        data = ttypes.InsertEventRequestData(filesAdded=[file])
        writes = [ttypes.WriteNotificationLogRequest(txn, 1, "d", "p", data, [value]) for value in some]
        request = ttypes.WriteNotificationLogBatchRequest("hive", "d", "p", writes)
        link.call("add_write_notification_log_in_batch", rqst=request)

    def inserted(some: list[str], _file: str) -> None:
        data = [ttypes.InsertEventRequestData(filesAdded=[], partitionVal=[value]) for value in some]
        request = ttypes.FireEventRequest(True, ttypes.FireEventRequestData(insertDatas=data), "d", "p")
        link.call("fire_listener_event", rqst=request)

    told(values[:1], "file:/warm")
    counts = {}
    for tell in (told, inserted):
        for file in ("file:/a", "file:/b"):
            for size, some in (("few", values[:few]), ("many", values[few:])):
                with counted() as statements:
                    tell(some, file)
                counts[tell.__name__, file, size] = statements[0]
    if limit < 0:
        for tell in (told, inserted):
            for file in ("file:/a", "file:/b"):
                assert counts[tell.__name__, file, "few"] >= counts[tell.__name__, file, "many"], counts
    found = link.call("get_all_write_event_info", request=ttypes.GetAllWriteEventInfoRequest(txn))
    files = {one.partition: one.files for one in found}
    assert len(files) == few + many
    assert files.pop(f"p={values[0].replace('/', '%2F')}") == "file:/b###]file:/a###]file:/warm###"
    assert set(files.values()) == {"file:/b###]file:/a###"}


def test_a_partition_that_is_missing_is_told_of_no_others(link: Link) -> None:
    [txn] = link.call("open_txns", rqst=ttypes.OpenTxnRequest(1, "u", "h")).txn_ids
    data = ttypes.InsertEventRequestData(filesAdded=["file:/f"])
    writes = [ttypes.WriteNotificationLogRequest(txn, 1, "d", "p", data, [value]) for value in ("1", "none", "2")]
    request = ttypes.WriteNotificationLogBatchRequest("hive", "d", "p", writes)
    with pytest.raises(TApplicationException, match="none"):
        link.call("add_write_notification_log_in_batch", rqst=request)
    assert link.call("get_all_write_event_info", request=ttypes.GetAllWriteEventInfoRequest(txn)) == []


def test_a_changed_view_is_as_of_the_change(link: Link) -> None:
    view = table("d", "mv")
    view.tableType = "MATERIALIZED_VIEW"
    view.viewOriginalText = view.viewExpandedText = "SELECT a FROM t"
    view.creationMetadata = ttypes.CreationMetadata("hive", "d", "mv", {"d.t"}, materializationTime=1)
    link.call("create_table", tbl=view)

    def as_of() -> int:
        found = link.call("get_table_req", req=ttypes.GetTableRequest("d", "mv")).table
        return int(found.creationMetadata.materializationTime)

    assert as_of() == 1
    for sent, is_kept in ((7, True), (None, False)):
        metadata = ttypes.CreationMetadata("hive", "d", "mv", {"d.t"}, materializationTime=sent)
        link.call("update_creation_metadata", catName="hive", dbname="d", tbl_name="mv", creation_metadata=metadata)
        assert (as_of() == sent) == is_kept
        assert as_of() > 1


def test_files_of_a_replayed_commit_are_told_where_they_are_here(link: Link) -> None:
    """To a replica of this metastore. Files that no longer exist are omitted."""
    opening = ttypes.OpenTxnRequest(1, "u", "h", "a", "d.*", [77], ttypes.TxnType.REPL_CREATED)
    [txn_id] = link.call("open_txns", rqst=opening).txn_ids
    of_table = link.call("get_table", dbname="d", tbl_name="t").sd.location
    of_partition = link.call("get_partition", db_name="d", tbl_name="p", part_vals=["1"]).sd.location
    written = [
        ttypes.WriteEventInfo(5, "d", "t", "hdfs://s/w/t/delta_5_5/f#sum#hdfs://s/cm#delta_5_5]hdfs://s/w/t/g"),
        ttypes.WriteEventInfo(6, "D", "P", "hdfs://s/w/p/dt=1/delta_6_6/f###delta_6_6", "dt=1"),
        ttypes.WriteEventInfo(6, "d", "p", "hdfs://s/w/p/dt=9/delta_6_6/f###delta_6_6", "dt=9"),
        ttypes.WriteEventInfo(7, "d", "gone", "hdfs://s/w/gone/f###"),
    ]
    commit = ttypes.CommitTxnRequest(77, "d.*", written, txn_type=ttypes.TxnType.REPL_CREATED)
    for _ in range(2):
        link.call("commit_txn", rqst=commit)
    found = link.call("get_all_write_event_info", request=ttypes.GetAllWriteEventInfoRequest(txn_id))
    assert [(one.writeId, one.table, one.partition or "", one.files) for one in found] == [
        (6, "p", "dt=1", f"{of_partition}/delta_6_6/f###delta_6_6"),
        (5, "t", "", f"{of_table}/delta_5_5/f###delta_5_5]{of_table}/g###"),
    ]
