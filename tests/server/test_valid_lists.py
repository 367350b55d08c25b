"""Long lists of individually valid elements: work proportional to the square of their number begins after the checks.

`test_long_lists` sends each list of each method, with names that mostly do not exist.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from hms_cache.call_context import call_context
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, database, table
from tests.server.test_authorization import outcome

COLUMNS = 50


@contextmanager
def counted() -> Iterator[list[int]]:
    """The number of statements of calls: other threads follow the log, and load requested data."""
    count = [0]

    def count_one(*_: Any) -> None:
        count[0] += call_context.call > 0

    event.listen(Engine, "before_cursor_execute", count_one)
    try:
        yield count
    finally:
        event.remove(Engine, "before_cursor_execute", count_one)


def with_wide_table(link: Link) -> None:
    link.call("create_database", database=database("d"))
    made = table("d", "t")
    made.sd.cols = [t.FieldSchema(f"a{n}", "int", None) for n in range(COLUMNS)]
    link.call("create_table", tbl=made)
    primary = t.SQLPrimaryKey("d", "t", f"a{COLUMNS - 1}", 1, "key", True, False, False, catName="hive")
    link.call("add_primary_key", req=t.AddPrimaryKeyRequest([primary]))


def not_nulls(count: int) -> tuple[str, Any]:
    given = [
        t.SQLNotNullConstraint("hive", "d", "t", f"a{COLUMNS - 1 - n % 9}", f"n{n}", True, False, False)
        for n in range(count)
    ]
    return "add_not_null_constraint", t.AddNotNullConstraintRequest(given)


def foreign_keys(count: int) -> tuple[str, Any]:
    last = f"a{COLUMNS - 1}"
    given = [
        t.SQLForeignKey("d", "t", last, "d", "t", "a0", 1, 0, 0, f"f{n}", "key", True, False, False, catName="hive")
        for n in range(count)
    ]
    return "add_foreign_key", t.AddForeignKeyRequest(given)


@pytest.mark.parametrize(
    "number",
    # The square of the larger one is some ten seconds of processor time and more.
    [2_000, pytest.param(20_000, marks=[pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(60)])],
)
@pytest.mark.parametrize("request_of", [not_nulls, foreign_keys])
def test_many_constraints_at_once(serve: Serve, request_of: Callable[[int], tuple[str, Any]], number: int) -> None:
    """While a table is changed, other changes of it wait, and on SQLite all changes."""
    link = serve().link()
    with_wide_table(link)
    method, request = request_of(number)
    with counted() as count:
        link.call(method, req=request)
    assert count[0] < number // 10
    again = outcome(link, method, req=request)
    assert "Constraint name already exists: " in again[1], "they are there"


@pytest.mark.parametrize("path", ["sd", "none"])
def test_the_path_of_a_field_is_no_tree_of_any_depth(serve: Serve, path: str) -> None:
    """A dictionary for each part: two bytes of the request would take some hundred of memory."""
    link = serve().link()
    with_wide_table(link)
    fields = [path + ".a" * 500_000]
    request = t.GetPartitionsRequest("hive", "d", "t", projectionSpec=t.GetProjectionsSpec(fields))
    tracemalloc.start()
    try:
        with pytest.raises(t.MetaException, match="Invalid partition fields in the projection spec") as told:
            link.call("get_partitions_with_specs", request=request)
        _, max_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max_bytes < 40_000_000 and len(str(told.value)) < 1_000


def test_a_sketch_full_of_entries_is_no_sketch(serve: Serve) -> None:
    """What a client writes as the sketch of a column is decoded when it is merged with the existing one."""
    link = serve().link()
    with_wide_table(link)
    entries = 8_000_000
    size = bytes([0x80 | entries & 0x7F, 0x80 | entries >> 7 & 0x7F, 0x80 | entries >> 14 & 0x7F, entries >> 21])
    hostile = b"HLL" + bytes([10 << 4, 1]) + size + b"\x41" * entries

    def write(sketch: bytes | None, *, merge: bool) -> bool:
        data = t.LongColumnStatsData(1, 2, 0, 5, sketch)
        one = t.ColumnStatisticsObj("a1", "int", t.ColumnStatisticsData(longStats=data))
        of = t.ColumnStatistics(t.ColumnStatisticsDesc(True, "d", "t"), [one], engine="hive")
        request = t.SetPartitionsStatsRequest([of], needMerge=merge, engine="hive")
        return bool(link.call("set_aggr_stats_for", request=request))

    assert write(None, merge=False)
    tracemalloc.start()
    try:
        assert write(hostile, merge=True)
        _, max_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max_bytes < 10 * entries, "an entry that is read takes a hundred bytes"


@pytest.mark.parametrize("part", [None, "p=1"])
def test_a_column_that_is_named_often_is_deleted_once(serve: Serve, part: str | None) -> None:
    """Each event has the table in it."""
    link = serve().link()
    with_wide_table(link)
    link.call("append_partition_by_name", db_name="d", tbl_name="t", part_name="p=1")
    data = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(1, 2, 0, 5))
    stored = [t.ColumnStatisticsObj(name, "int", data) for name in ("a1", "a2")]
    of = t.ColumnStatistics(t.ColumnStatisticsDesc(part is None, "d", "t", part), stored, engine="hive")
    assert link.call("set_aggr_stats_for", request=t.SetPartitionsStatsRequest([of], engine="hive"))
    before = link.call("get_current_notificationEventId").eventId
    request = t.DeleteColumnStatisticsRequest(
        "hive", "d", "t", [part] if part else None, ["a1"] * 500, "hive", tableLevel=part is None
    )
    assert link.call("delete_column_statistics_req", req=request)
    assert link.call("get_current_notificationEventId").eventId == before + 1


@pytest.mark.soak
@pytest.mark.long
def test_more_names_than_a_statement_takes_are_refused(serve: Serve, initialized_database_url: str) -> None:
    link = serve(**{"database.url": initialized_database_url}).link()
    names = [f"n{number}" for number in range(70_000)]
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    assert link.call("get_table_meta", db_patterns="*", tbl_patterns="*", tbl_types=names) == []
    partitions = t.PartitionsStatsRequest("d", "t", names, ["p=1"])
    for method, request in (
        ("get_table_statistics_req", t.TableStatsRequest("d", "t", names)),
        ("get_partitions_statistics_req", partitions),
        ("get_aggr_stats_for", partitions),
    ):
        try:
            link.call(method, request=request)
        except t.MetaException as error:
            assert "refuses a value" in error.message, method
        assert link.call("get_table", dbname="d", tbl_name="t").tableName == "t", "the connection goes on"


def shared_by(count: int, columns: int, parameters: int = 0) -> list[t.PartitionSpec]:
    """This many partitions, sent with one storage descriptor."""
    descriptor = table("d", "t").sd
    descriptor.cols = [t.FieldSchema(f"a{n}", "int", "a comment") for n in range(columns)]
    descriptor.parameters = {f"parameter {n}": "value" for n in range(parameters)}
    shorts = [t.PartitionWithoutSD([str(n)], 0, 0, f"/p={n}") for n in range(count)]
    shared = t.PartitionSpecWithSharedSD(shorts, descriptor)
    return [t.PartitionSpec("d", "t", "file:/nowhere", sharedSDPartitionSpec=shared, catName="hive")]


def test_what_partitions_share_is_not_there_for_each(serve: Serve) -> None:
    """10 kB of a request stand for as many columns as there are partitions, times those of one."""
    link = serve(**{"warehouse.files": "leave"}).link()
    with_wide_table(link)
    tracemalloc.start()
    try:
        assert link.call("add_partitions_pspec", new_parts=shared_by(300, 600)) == 300
        _, max_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max_bytes < 30_000_000
    found = link.call("get_partition_by_name", db_name="d", tbl_name="t", part_name="p=7")
    assert (len(found.sd.cols), found.sd.location) == (600, "file:/nowhere/p=7")


def test_what_is_written_for_each_partition_is_not_sent_once_for_many(serve: Serve) -> None:
    link = serve(**{"warehouse.files": "leave"}).link()
    with_wide_table(link)
    with pytest.raises(t.MetaException, match="too long for 10000 partitions: send fewer"):
        link.call("add_partitions_pspec", new_parts=shared_by(10_000, 1, 10_000))
    assert link.call("add_partitions_pspec", new_parts=shared_by(100, 1, 100)) == 100


@pytest.mark.parametrize("specs", [1, 300])
def test_a_long_path_is_not_sent_once_for_many_partitions(serve: Serve, specs: int) -> None:
    """A megabyte for 4,000 partitions took 4 GB before anything was checked."""
    link = serve(**{"warehouse.files": "leave"}).link()
    with_wide_table(link)
    sent = [shared_by(3_000 // specs, 1)[0] for _ in range(specs)]
    for spec in sent:
        spec.rootPath = f"file:/{'x' * 100_000}"
    tracemalloc.start()
    try:
        with pytest.raises(t.MetaException, match="send fewer at a time"):
            link.call("add_partitions_pspec", new_parts=sent)
        _, max_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max_bytes < 250_000_000
