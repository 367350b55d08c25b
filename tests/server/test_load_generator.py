"""The load generator of the benchmarks counts answers, not refusals."""

from __future__ import annotations

import pytest

from benchmarks.generator import run
from benchmarks.operations import Operation
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.server.conftest import Serve, database, table


def operation(method: str, **arguments: object) -> Operation:
    return Operation(method, method, [METHODS[method].args_class(**arguments)])


def test_a_refusal_ends_the_run(serve: Serve) -> None:
    """The benchmark of reads by write ids measured refusals, since its request did not name a required capability."""
    running = serve()
    link = running.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "plain"))
    link.call("create_table", tbl=table("d", "t", transactional="true", transactional_properties="insert_only"))
    address = f"127.0.0.1:{running.port}"
    answered = [
        operation("get_table", dbname="d", tbl_name="plain"),
        operation("get_partition_names", db_name="d", tbl_name="plain", max_parts=-1),
        operation("flushCache"),
    ]
    for one in answered:
        assert run(address, one, 2, 0.0).calls == 2, one.name
    refused = [
        operation("get_table", dbname="d", tbl_name="none"),
        operation("get_table_req", req=ttypes.GetTableRequest("d", "t")),
        operation("drop_table", dbname="d", name="none", deleteData=False),
        operation("drop_index_by_name", db_name="d", tbl_name="t", index_name="i", deleteData=False),
    ]
    for one in refused:
        with pytest.raises(RuntimeError, match="the call failed"):
            run(address, one, 2, 0.0)
