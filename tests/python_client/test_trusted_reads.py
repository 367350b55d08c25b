"""Each request with a list and a table id: in `trust` mode answered without a statement, and equal to one without a
cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.client import Transaction
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AllTableConstraintsRequest,
    GetPartitionNamesPsRequest,
    GetPartitionRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsPsWithAuthRequest,
    GetTableRequest,
    PartitionsByExprRequest,
    PartitionsRequest,
    TableStatsRequest,
)
from tests.python_client.conftest import (
    DATABASE,
    INSERT_ONLY,
    Metastore,
    StartMetastore,
    partition,
    statements,
    transactional,
)

T = {"dbName": "d", "tblName": "t"}
MSCK = "org.apache.hadoop.hive.ql.exec.MsckPartitionExpressionProxy"
HIT = str(Reason.HIT.value)


def by_expression() -> PartitionsByExprRequest:
    return PartitionsByExprRequest(expr=b'p > "0"', defaultPartitionName="__HIVE_DEFAULT_PARTITION__", **T)


REQUESTS: dict[str, Callable[[], Any]] = {
    "get_table_req": lambda: GetTableRequest(capabilities=INSERT_ONLY, **T),
    "get_partition_req": lambda: GetPartitionRequest(partVals=["1"], **T),
    "get_partitions_req": lambda: PartitionsRequest(maxParts=-1, **T),
    "fetch_partition_names_req": lambda: PartitionsRequest(maxParts=-1, **T),
    "get_partition_names_ps_req": lambda: GetPartitionNamesPsRequest(partValues=[""], **T),
    "get_partition_names_req": by_expression,
    "get_partitions_ps_with_auth_req": lambda: GetPartitionsPsWithAuthRequest(
        partVals=[""], userName="u", groupNames=["g"], **T
    ),
    "get_partitions_by_names_req": lambda: GetPartitionsByNamesRequest(
        db_name="d", tbl_name="t", names=["p=1", "p=2"], get_col_stats=True, engine="hive"
    ),
    "get_partitions_by_expr": by_expression,
    "get_partitions_spec_by_expr": by_expression,
    "get_table_statistics_req": lambda: TableStatsRequest(colNames=["a"], engine="hive", **T),
    "get_all_table_constraints": lambda: AllTableConstraintsRequest(catName="hive", **T),
}
"""Calls that take a list and a table id. `get_partitions_with_specs`, `get_partition_values`, the statistics of
partitions and their aggregate take a list alone: those are checked."""


@pytest.fixture
def pair(start_metastore: StartMetastore) -> tuple[Metastore, Metastore]:
    """One in `trust` mode, one without a cache, with partitions of a transactional table."""
    trusting = start_metastore(**{"cache.write_id_reads": "trust"})
    plain = start_metastore(**{"cache.enabled": False})
    trusting.client.call("create_database", DATABASE)
    described = transactional("t", keys=("p",))
    trusting.client.call("create_table", described)
    with Transaction(trusting.client, ["d.t"]) as txn:
        parts = [partition(described, value) for value in ("1", "2", "3")]
        request = AddPartitionsRequest(dbName="d", tblName="t", parts=parts, ifNotExists=False, needResult=False)
        txn.write("add_partitions_req", "d.t", request)
    for metastore in (trusting, plain):
        metastore.client.call("setMetaConf", "metastore.expression.proxy", MSCK)
    return trusting, plain


def test_a_covered_read_costs_no_statement(pair: tuple[Metastore, Metastore]) -> None:
    trusting, plain = pair
    with Transaction(trusting.client, ["d.t"]) as txn:
        trusting.sees()
        for method, request in REQUESTS.items():
            expected = txn.read(method, "d.t", request(), through=plain.client)
            for _ in range(2):
                assert txn.read(method, "d.t", request()) == expected, method
            with trusting.answers() as answers, statements() as sent:
                assert txn.read(method, "d.t", request()) == expected
            assert sent == [], method
            assert set(answers) == {HIT}, method
