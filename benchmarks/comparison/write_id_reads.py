"""Reads that carry a list of valid write ids, in the mode that trusts them."""

from __future__ import annotations

from benchmarks.catalog import TablePlan, table
from benchmarks.client import connect
from benchmarks.comparison.context import Comparison
from benchmarks.operations import Operation
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS

LABEL = "ours, trust"


def measure_trusted(comparison: Comparison) -> None:
    """Measures `get_table_req` with a write-id list and the table id, on a transactional table, which needs no database
    call."""
    database, name = "bench_00", "transactional"
    with comparison.own("own-trust", CACHE__WARM="off", CACHE__WRITE_ID_READS="trust") as server:
        client = connect(server.address)
        wanted = table(TablePlan(database, name, 20))
        wanted.parameters = {"transactional": "true", "transactional_properties": "insert_only"}
        wanted.tableType = "MANAGED_TABLE"
        wanted.sd.location = None  # type: ignore[assignment]  # left out of the message
        client.create_table(wanted)
        request = ttypes.GetTableRequest(
            dbName=database,
            tblName=name,
            capabilities=ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES]),
        )
        request.id = client.get_table_req(request).table.id
        txn = client.open_txns(ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="bench")).txn_ids[0]
        client.allocate_table_write_ids(
            ttypes.AllocateTableWriteIdsRequest(dbName=database, tableName=name, txnIds=[txn])
        )
        client.commit_txn(ttypes.CommitTxnRequest(txnid=txn))
        requested = ttypes.GetValidWriteIdsRequest(fullTableNames=[f"{database}.{name}"])
        lists = client.get_valid_write_ids(requested).tblValidWriteIds[0]
        request.validWriteIdList = f"{lists.fullTableName}:{lists.writeIdHighWaterMark}:{_MAX_LONG}::"
        operation = Operation(
            "get_table, write ids", "get_table_req", [METHODS["get_table_req"].args_class(req=request)]
        )
        rows = comparison.measure(LABEL, server.address, server.pid, [operation], lambda _: (4,))
    per_read = rows[0]["statements"] if rows else None
    comparison.results.bar(
        "statements per covered write-id read with `write_id_reads = trust`",
        "0",
        "not measured" if per_read is None else f"{per_read:.4f}",
        None if per_read is None else round(per_read, 3) == 0,
    )


_MAX_LONG = 9223372036854775807
