"""Partitions by expressions: expressions that cannot be evaluated, empty ones, and drops by several at once."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from hms_cache.store.partition_store import PartitionWriter
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import MAX_WAIT_S, Link, Serve, database, table

NAMES = ["dt=1", "dt=2", "dt=3"]
UNKNOWN = b"no expression"


@pytest.fixture
def link(serve: Serve) -> Link:
    link = serve().link()
    made = table("d", "p")
    made.partitionKeys = [ttypes.FieldSchema("dt", "string")]
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=made)
    descriptor = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "int")], serdeInfo=ttypes.SerDeInfo())
    partitions = [
        ttypes.Partition(values=[value], dbName="d", tableName="p", sd=descriptor, parameters={}) for value in "123"
    ]
    link.call("add_partitions", new_parts=partitions)
    return link


def take_texts(link: Link) -> None:
    """From now on, the connection's expressions are filter texts, as those of MSCK."""
    proxy = "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"
    link.call("setMetaConf", key="metastore.expression.proxy", value=proxy)


def requested(expression: bytes, **fields: Any) -> ttypes.PartitionsByExprRequest:
    return ttypes.PartitionsByExprRequest("d", "p", expression, **fields)


def drop(link: Link, *expressions: bytes, if_exists: bool | None) -> list[str]:
    """The values of the dropped partitions."""
    parts = ttypes.RequestPartsSpec(exprs=[ttypes.DropPartitionsExpr(expression) for expression in expressions])
    request = ttypes.DropPartitionsRequest("d", "p", parts, ifExists=if_exists)
    return [one.values[0] for one in link.call("drop_partitions_req", req=request).partitions]


def left(link: Link) -> list[str]:
    return list(link.call("get_partition_names", db_name="d", tbl_name="p", max_parts=-1))


def test_names_are_only_told_of_what_can_be_decided(link: Link) -> None:
    for _ in ("the store", "memory"):
        with pytest.raises(ttypes.MetaException, match="cannot be evaluated exactly"):
            link.call("get_partition_names_req", req=requested(UNKNOWN))
    found = link.call("get_partitions_by_expr", req=requested(UNKNOWN))
    assert (found.hasUnknownPartitions, len(found.partitions)) == (True, 3)


def test_no_expression_means_all_partitions(link: Link) -> None:
    found = link.call("get_partitions_by_expr", req=requested(b""))
    assert (found.hasUnknownPartitions, len(found.partitions)) == (False, 3)
    assert link.call("get_partitions_spec_by_expr", req=requested(b"")).hasUnknownPartitions is False
    assert link.call("get_partition_names_req", req=requested(b"\xff")) == NAMES


def test_the_columns_of_descriptors_may_be_left_out(link: Link) -> None:
    for skip, columns in ((False, ["a"]), (True, [])):
        request = requested(b"", skipColumnSchemaForPartition=skip)
        for found in link.call("get_partitions_by_expr", req=request).partitions:
            assert [column.name for column in found.sd.cols] == columns
        for group in link.call("get_partitions_spec_by_expr", req=request).partitionsSpec:
            assert [column.name for column in group.sharedSDPartitionSpec.sd.cols] == columns


def test_each_of_several_expressions_must_select_something(link: Link) -> None:
    take_texts(link)
    for if_exists in (False, None):
        with pytest.raises(ttypes.NoSuchObjectException, match="Some partitions to drop are missing"):
            drop(link, b"dt = '1'", b"dt = 'none'", if_exists=if_exists)
        assert left(link) == NAMES
    assert drop(link, b"dt = '1'", b"dt = 'none'", if_exists=True) == ["1"]
    assert drop(link, b"dt >= '2'", b"dt = '3'", if_exists=False) == ["2", "3"]
    assert left(link) == []


def test_nothing_is_dropped_by_expressions_that_cannot_be_decided(link: Link) -> None:
    for if_exists in (True, False):
        for expressions in ((UNKNOWN,), (UNKNOWN, UNKNOWN)):
            with pytest.raises(ttypes.MetaException):
                drop(link, *expressions, if_exists=if_exists)
    assert left(link) == NAMES


def test_several_expressions_drop_what_is_there_when_they_drop(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just before, another client drops one of the partitions and adds another one."""
    take_texts(link)
    drops = PartitionWriter.drop_partitions

    def drop_later(writer: PartitionWriter, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(PartitionWriter, "drop_partitions", drops)
        added = ttypes.Partition(
            values=["4"], dbName="d", tableName="p", sd=ttypes.StorageDescriptor(serdeInfo=ttypes.SerDeInfo())
        )
        with socket.create_connection(link.sock.getpeername(), timeout=MAX_WAIT_S) as connection:
            other = Link(connection)
            other.call("add_partition", new_part=added)
            other.call("drop_partition", db_name="d", tbl_name="p", part_vals=["1"], deleteData=False)
        return drops(writer, *arguments, **options)

    monkeypatch.setattr(PartitionWriter, "drop_partitions", drop_later)
    assert drop(link, b"dt <= '2'", b"dt >= '3'", if_exists=False) == ["2", "3", "4"]
    assert left(link) == []
