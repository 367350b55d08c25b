"""Dropping without the data, through a whole server: what is queued for cleaning, and which write ids continue."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve, database, table

Drop = Callable[[Link, bool, ttypes.EnvironmentContext | None], Any]


@pytest.fixture
def link(serve: Serve) -> Link:
    """A server with a transactional table `d.t` that has the partitions p=1 and p=2, and two write ids."""
    # It reads tables by `get_table`, which refuses insert-only tables.
    link = serve(**{"catalog.client_capability_check": False}).link()
    link.call("create_database", database=database("d"))
    make_table(link)
    (txn_id,) = begin(link)
    allocate(link, txn_id)
    link.call("commit_txn", rqst=ttypes.CommitTxnRequest(txn_id))
    return link


def make_table(link: Link, **parameters: str) -> None:
    parameters = {"transactional": "true", "transactional_properties": "insert_only", **parameters}
    link.call("create_table", tbl=table("d", "t", **parameters))
    for value in ("1", "2"):
        made = link.call("get_table", dbname="d", tbl_name="t")
        descriptor = made.sd
        descriptor.location = f"{descriptor.location}/p={value}"
        link.call("add_partition", new_part=ttypes.Partition([value], "d", "t", 0, 0, descriptor, {}))


def begin(link: Link, txn_type: int = ttypes.TxnType.DEFAULT) -> list[int]:
    request = ttypes.OpenTxnRequest(1, "u", "h", txn_type=txn_type)
    return list(link.call("open_txns", rqst=request).txn_ids)


def allocate(link: Link, txn_id: int) -> int:
    request = ttypes.AllocateTableWriteIdsRequest("d", "t", [txn_id])
    return int(link.call("allocate_table_write_ids", rqst=request).txnToWriteIds[0].writeId)


def queued(link: Link) -> list[ttypes.ShowCompactResponseElement]:
    return list(link.call("show_compact", rqst=ttypes.ShowCompactRequest(order="CC_ID")).compacts)


def highest(link: Link) -> int:
    request = ttypes.MaxAllocatedTableWriteIdRequest("d", "t")
    return int(link.call("get_max_allocated_table_write_id", rqst=request).maxWriteId)


def drop_table(link: Link, delete_data: bool, context: ttypes.EnvironmentContext | None) -> Any:
    if context is None:
        return link.call("drop_table", dbname="d", name="t", deleteData=delete_data)
    named = {"dbname": "d", "name": "t", "deleteData": delete_data, "environment_context": context}
    return link.call("drop_table_with_environment_context", **named)


def drop_table_req(link: Link, delete_data: bool, context: ttypes.EnvironmentContext | None) -> Any:
    request = ttypes.DropTableRequest("hive", "d", "t", deleteData=delete_data, envContext=context)
    return link.call("drop_table_req", dropTableReq=request)


def drop_partition(link: Link, delete_data: bool, context: ttypes.EnvironmentContext | None) -> Any:
    named = {"db_name": "d", "tbl_name": "t", "part_vals": ["1"], "deleteData": delete_data}
    if context is None:
        return link.call("drop_partition", **named)
    return link.call("drop_partition_with_environment_context", **named, environment_context=context)


def drop_by_name(link: Link, delete_data: bool, context: ttypes.EnvironmentContext | None) -> Any:
    named = {"db_name": "d", "tbl_name": "t", "part_name": "p=1", "deleteData": delete_data}
    if context is None:
        return link.call("drop_partition_by_name", **named)
    return link.call("drop_partition_by_name_with_environment_context", **named, environment_context=context)


def drop_partition_req(link: Link, delete_data: bool, context: ttypes.EnvironmentContext | None) -> Any:
    request = ttypes.DropPartitionRequest(
        "hive", "d", "t", partName="p=1", deleteData=delete_data, environmentContext=context
    )
    return link.call("drop_partition_req", dropPartitionReq=request)


def drop_partitions_req(link: Link, delete_data: bool, context: ttypes.EnvironmentContext | None) -> Any:
    spec = ttypes.RequestPartsSpec(names=["p=1"])
    request = ttypes.DropPartitionsRequest("d", "t", spec, deleteData=delete_data, environmentContext=context)
    return link.call("drop_partitions_req", req=request)


OF_TABLES: list[Drop] = [drop_table, drop_table_req]
OF_PARTITIONS: list[Drop] = [drop_partition, drop_by_name, drop_partition_req, drop_partitions_req]


@pytest.mark.parametrize("has_txn", [False, True])
@pytest.mark.parametrize("delete_data", [False, True])
@pytest.mark.parametrize("drop", [*OF_TABLES, *OF_PARTITIONS])
def test_every_way_to_drop(link: Link, tmp_path: Path, drop: Drop, delete_data: bool, has_txn: bool) -> None:
    (txn_id,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    write_id = allocate(link, txn_id)
    location = link.call("get_table", dbname="d", tbl_name="t").sd.location
    context = ttypes.EnvironmentContext({"txnId": str(txn_id), "ifPurge": "true"}) if has_txn else None
    drop(link, delete_data, context)

    is_partition = drop in OF_PARTITIONS
    entries = queued(link)
    assert len(entries) == (has_txn and not delete_data)
    for entry in entries:
        name = "p=1" if is_partition else None
        assert (entry.dbname, entry.tablename, entry.partitionname, entry.txnId) == ("d", "t", name, txn_id)
        assert (entry.state, entry.type) == ("ready for cleaning", ttypes.CompactionType.MAJOR)
        assert entry.runAs == Path(tmp_path).owner()
    assert highest(link) == (0 if delete_data and not is_partition else write_id)
    place = Path(location.removeprefix("file:")) / ("p=1" if is_partition else "")
    assert place.exists() is not delete_data

    link.call("commit_txn", rqst=ttypes.CommitTxnRequest(txn_id))
    for entry in queued(link):
        assert entry.nextTxnId == txn_id + 1 and entry.commitTime
    if not is_partition:
        make_table(link)
        # If the old files still exist, the new ones must have other names.
        assert allocate(link, *begin(link)) == (1 if delete_data else write_id + 1)


@pytest.mark.parametrize("drop", [drop_table, drop_partitions_req])
@pytest.mark.parametrize("end", ["commit_txn", "abort_txn", "unknown", "abort_txn later"])
def test_files_wait_for_readers_whatever_becomes_of_the_transaction(link: Link, drop: Drop, end: str) -> None:
    """The drop is not committed yet, which takes a while if its client is gone; or its transaction has timed out
    before. A cleaner immediately deletes what has no transaction to wait for."""
    (txn_id,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    requests = {"commit_txn": ttypes.CommitTxnRequest(txn_id), "abort_txn": ttypes.AbortTxnRequest(txn_id)}
    if end in requests:
        link.call(end, rqst=requests[end])
    (reader,) = begin(link)
    requested = reader + 100 if end == "unknown" else txn_id
    drop(link, False, ttypes.EnvironmentContext({"txnId": str(requested)}))
    if end == "abort_txn later":
        assert [entry.nextTxnId for entry in queued(link)] == [reader + 1]
        link.call("abort_txn", rqst=requests["abort_txn"])
    [entry] = queued(link)
    assert (entry.txnId, entry.nextTxnId) == (requested, reader + 1)


@pytest.mark.parametrize("drop", OF_PARTITIONS)
def test_a_partition_made_anew_does_not_show_the_old_files(link: Link, drop: Drop) -> None:
    (txn_id,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    write_id = allocate(link, txn_id)
    location = link.call("get_table", dbname="d", tbl_name="t").sd.location
    drop(link, False, ttypes.EnvironmentContext({"txnId": str(txn_id), "writeId": str(write_id)}))
    marker = Path(location.removeprefix("file:")) / "p=1" / f"base_{write_id:07d}" / "_metadata_acid"
    assert marker.read_text() == '{"thisFileVersion":"0","dataFormat":"dropped"}'
    assert [entry.hightestWriteId for entry in queued(link)] == [write_id]


def test_a_database_drops_softly_the_tables_that_ask_for_it(link: Link) -> None:
    hard = table("d", "hard", transactional="true", transactional_properties="insert_only")
    link.call("create_table", tbl=hard)
    link.call("drop_table", dbname="d", name="t", deleteData=True)
    make_table(link, soft_delete="true")
    places = []
    for name in ("t", "hard"):
        found = link.call("get_table", dbname="d", tbl_name=name)
        places.append(Path(found.sd.location.removeprefix("file:")))
    (txn_id,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    request = ttypes.DropDatabaseRequest(
        "d", "hive", ignoreUnknownDb=False, deleteData=True, cascade=True, softDelete=True, txnId=txn_id
    )
    link.call("drop_database_req", req=request)
    assert [(entry.tablename, entry.txnId, entry.state) for entry in queued(link)] == [
        ("t", txn_id, "ready for cleaning")
    ]
    assert [place.exists() for place in places] == [True, False]
    assert highest(link) == 0


def test_an_id_that_is_none(link: Link) -> None:
    with pytest.raises(ttypes.MetaException, match="txnId of the environment context is no number: x"):
        drop_table(link, False, ttypes.EnvironmentContext({"txnId": "x"}))
    assert highest(link) == 1


def softly_dropped(link: Link, txn_id: int, **location: str) -> Path:
    """The directory of a table that Hive 4 creates in a transaction, and drops in another one without its data."""
    sent = table("d", "u", transactional="true", transactional_properties="insert_only", soft_delete="true")
    sent.txnId = txn_id
    sent.sd.location = location.get("location")
    link.call("create_table_req", request=ttypes.CreateTableRequest(sent))
    found = link.call("get_table", dbname="d", tbl_name="u")
    (dropping,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    context = ttypes.EnvironmentContext({"txnId": str(dropping)})
    link.call(
        "drop_table_req", dropTableReq=ttypes.DropTableRequest("hive", "d", "u", deleteData=False, envContext=context)
    )
    return Path(found.sd.location.removeprefix("file:"))


def test_a_table_made_anew_does_not_lie_where_the_cleaner_deletes(link: Link) -> None:
    """A softly dropped table's directory is queued for a cleaner, which deletes everything in it by then."""
    first, second = begin(link) + begin(link)
    old, new = softly_dropped(link, first), softly_dropped(link, second)
    assert [place.name for place in (old, new)] == [f"u.v{first:07d}", f"u.v{second:07d}"]
    assert old.parent == new.parent
    assert old.is_dir() and new.is_dir()
    assert [entry.txnId for entry in queued(link)] == [first + 2, second + 2]


@pytest.mark.parametrize(("given", "made"), [("own", "own.v0000007"), ("own.v12", "own.v12"), ("own/", "own.v0000007")])
def test_a_given_directory_gets_the_transaction_once(link: Link, tmp_path: Path, given: str, made: str) -> None:
    root = tmp_path / "warehouse" / "places"
    assert softly_dropped(link, 7, location=f"file:{root}/{given}") == root / made


@pytest.mark.parametrize(
    ("txn_id", "parameters", "kind"),
    [
        (None, {"soft_delete": "true"}, "MANAGED_TABLE"),
        (7, {"soft_delete": "no"}, "MANAGED_TABLE"),
        (7, {}, "MANAGED_TABLE"),
    ],
)
def test_other_tables_lie_where_their_names_say(
    link: Link, txn_id: int | None, parameters: dict[str, str], kind: str
) -> None:
    sent = table("d", "u", **parameters)
    sent.txnId, sent.tableType = txn_id, kind
    link.call("create_table", tbl=sent)
    assert link.call("get_table", dbname="d", tbl_name="u").sd.location.endswith("/u")


@pytest.mark.parametrize("keeps", [True, False])
def test_a_database_that_is_dropped_leaves_the_files_of_tables_that_were_dropped_softly_before(
    link: Link, keeps: bool
) -> None:
    """Hive 4 drops the tables of a large database one by one, and then the database without its managed directory."""
    (txn_id,) = begin(link)
    place = softly_dropped(link, txn_id)
    request = ttypes.DropDatabaseRequest(
        "d", "hive", ignoreUnknownDb=False, deleteData=True, cascade=True, softDelete=True, txnId=txn_id
    )
    request.deleteManagedDir = not keeps
    link.call("drop_database_req", req=request)
    assert place.exists() is keeps


@pytest.mark.parametrize("delete_data", [True, False])
@pytest.mark.parametrize("keeps", [True, False])
def test_a_dropped_database_leaves_to_the_cleaner_what_nobody_else_deletes(
    link: Link, tmp_path: Path, keeps: bool, delete_data: bool
) -> None:
    """Hive deletes all entries except those of the dropping transaction, and their directories remain for ever."""
    first, second = begin(link) + begin(link)
    elsewhere = f"file:{tmp_path}/warehouse/places/u"
    places = [softly_dropped(link, first), softly_dropped(link, second, location=elsewhere)]
    request = ttypes.DropDatabaseRequest("d", "hive", ignoreUnknownDb=False, deleteData=delete_data, cascade=True)
    request.deleteManagedDir = not keeps
    link.call("drop_database_req", req=request)
    assert [place.exists() for place in places] == [keeps or not delete_data, True]
    # What the drop itself has deleted need not wait; what was to remain, without the data, must not be deleted.
    waiting = [place.name for place in places if delete_data and place.exists()]
    assert [entry.tablename for entry in queued(link)] == ["u"] * len(waiting)
    assert highest(link) == (0 if delete_data else 1)


def test_a_table_in_the_old_place_takes_the_old_entry_with_it(link: Link) -> None:
    """Its directory is deleted, and otherwise a cleaner would search for it again and again."""
    sent = table("d", "u", transactional="true", transactional_properties="insert_only")
    link.call("create_table", tbl=sent)
    place = Path(link.call("get_table", dbname="d", tbl_name="u").sd.location.removeprefix("file:"))
    (dropping,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    context = ttypes.EnvironmentContext({"txnId": str(dropping)})
    request = ttypes.DropTableRequest("hive", "d", "u", deleteData=False, envContext=context)
    link.call("drop_table_req", dropTableReq=request)
    assert len(queued(link)) == 1
    link.call("create_table", tbl=sent)
    link.call("drop_table", dbname="d", name="u", deleteData=True)
    assert (place.exists(), queued(link)) == (False, [])


def test_an_empty_managed_directory_goes_also_where_it_may_stay(link: Link) -> None:
    place = Path(link.call("get_database", name="d").locationUri.removeprefix("file:"))
    request = ttypes.DropDatabaseRequest("d", "hive", ignoreUnknownDb=False, deleteData=True, cascade=True)
    request.deleteManagedDir = False
    link.call("drop_database_req", req=request)
    assert not place.exists()


def clean_up(link: Link, location: str | None, partition: str | None = None) -> Any:
    """As Hive 4 does when a CREATE TABLE AS SELECT that has written into the table's directory has failed."""
    request = ttypes.CompactionRequest("d", "made", partition, ttypes.CompactionType.MAJOR, "u")
    request.properties = {"ifPurge": "true"} | ({} if location is None else {"location": location})
    return link.call("submit_for_cleanup", o1=request, o2=0, o3=1)


@pytest.mark.parametrize("partition", [None, "p=1"])
def test_a_cleaner_is_only_given_what_a_drop_would_delete(link: Link, tmp_path: Path, partition: str | None) -> None:
    table_place = link.call("get_table", dbname="d", tbl_name="t").sd.location
    root = table_place.rpartition("/")[0]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "warehouse" / "link").symlink_to(elsewhere)
    warehouse = f"file:{tmp_path}/warehouse"
    outside = (f"file:{elsewhere}", f"{warehouse}/link/x", f"{root}/../../elsewhere", "hdfs://other/x", "nonsense:", "")
    for location in (*outside, warehouse, root, table_place, f"{table_place}/p=1", f"{table_place}/p=9"):
        with pytest.raises(ttypes.MetaException, match="No cleaner may delete"):
            clean_up(link, location, partition)
    assert queued(link) == []
    assert clean_up(link, f"{root}/made", partition)
    assert clean_up(link, None, partition)
    assert [(entry.tablename, entry.partitionname) for entry in queued(link)] == [("made", partition)] * 2


def waiting_places(link: Link) -> list[tuple[str, str | None]]:
    return [(entry.tablename, entry.partitionname) for entry in queued(link)]


def drop_softly(link: Link, name: str, values: list[str] | None = None, **more: str) -> str:
    """The directory that is queued for a cleaner from then on."""
    found = link.call("get_table", dbname="d", tbl_name=name)
    (txn_id,) = begin(link, ttypes.TxnType.SOFT_DELETE)
    context = ttypes.EnvironmentContext({"txnId": str(txn_id), **more})
    named = {"deleteData": False, "environment_context": context}
    if values is None:
        link.call("drop_table_with_environment_context", dbname="d", name=name, **named)
        return str(found.sd.location)
    place = link.call("get_partition", db_name="d", tbl_name=name, part_vals=values).sd.location
    link.call("drop_partition_with_environment_context", db_name="d", tbl_name=name, part_vals=values, **named)
    return str(place)


def create_at(link: Link, place: str) -> None:
    new = table("d", "new")
    new.sd.location, new.tableType = place, "EXTERNAL_TABLE"
    new.parameters = {"EXTERNAL": "TRUE"}
    link.call("create_table", tbl=new)


def create_by_name(link: Link, place: str) -> None:
    """At the location given by the name, like a repeated CREATE TABLE AS SELECT."""
    new = table("d", place.rpartition("/")[2])
    link.call("create_table", tbl=new)


def create_below(link: Link, place: str) -> None:
    create_at(link, f"{place}/below")


def alter_to(link: Link, place: str) -> None:
    link.call("create_table", tbl=table("d", "new"))
    new = link.call("get_table", dbname="d", tbl_name="new")
    new.sd.location = place
    link.call("alter_table", dbname="d", tbl_name="new", new_tbl=new)


def partitioned(link: Link, name: str) -> ttypes.Table:
    link.call("create_table", tbl=table("d", name))
    return link.call("get_table", dbname="d", tbl_name=name)


def partition_at(made: ttypes.Table, value: str, place: str) -> ttypes.Partition:
    made.sd.location = place
    return ttypes.Partition([value], "d", made.tableName, 0, 0, made.sd, {})


def add_partition_at(link: Link, place: str) -> None:
    link.call("add_partition", new_part=partition_at(partitioned(link, "new"), "x", place))


def alter_partition_to(link: Link, place: str) -> None:
    made = partitioned(link, "new")
    link.call("add_partition", new_part=partition_at(made, "x", f"{made.sd.location}/p=x"))
    link.call("alter_partition", db_name="d", tbl_name="new", new_part=partition_at(made, "x", place))


PUT: list[Callable[[Link, str], None]] = [
    create_at,
    create_by_name,
    create_below,
    alter_to,
    add_partition_at,
    alter_partition_to,
]


@pytest.mark.parametrize("put", PUT)
def test_a_cleaner_deletes_nothing_that_was_put_there_since(link: Link, put: Callable[[Link, str], None]) -> None:
    """A cleaner deletes what is at the queued location by then; not what it cannot mark there."""
    link.call("create_table", tbl=table("d", "other", transactional="true", transactional_properties="insert_only"))
    drop_softly(link, "other")
    put(link, drop_softly(link, "t"))
    assert waiting_places(link) == [("other", None)]


@pytest.mark.parametrize("put", PUT)
def test_nothing_is_put_where_a_cleaner_is_at_it(link: Link, tmp_path: Path, put: Callable[[Link, str], None]) -> None:
    place = drop_softly(link, "t")
    with closing(sqlite3.connect(tmp_path / "metastore.db")) as database_file, database_file:
        database_file.execute("UPDATE COMPACTION_QUEUE SET CQ_CLEANER_START = 1")
    with pytest.raises(ttypes.MetaException, match="A cleaner has begun to delete"):
        put(link, place)
    assert waiting_places(link) == [("t", None)]


@pytest.mark.parametrize(("value", "waits"), [("1", True), ("3", False)])
def test_a_partition_that_was_dropped_waits_unless_another_one_is_put_there(
    link: Link, value: str, waits: bool
) -> None:
    """For a partition that exists again, a cleaner deletes what its write ids cover; it checks the partition by its
    name."""
    made = link.call("get_table", dbname="d", tbl_name="t")
    place = drop_softly(link, "t", ["1"])
    link.call("add_partition", new_part=partition_at(made, value, place))
    assert waiting_places(link) == [("t", "p=1")] * waits


def test_a_renamed_table_is_not_deleted_in_its_new_place(link: Link) -> None:
    link.call("create_table", tbl=table("d", "u", transactional="true", transactional_properties="insert_only"))
    place = drop_softly(link, "u")
    Path(place.removeprefix("file:")).rmdir()  # by hand, or by a cleaner that could not record it
    renamed = link.call("get_table", dbname="d", tbl_name="t")
    renamed.tableName = "u"
    link.call("alter_table", dbname="d", tbl_name="t", new_tbl=renamed)
    assert waiting_places(link) == []
