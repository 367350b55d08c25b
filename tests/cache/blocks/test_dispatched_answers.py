"""Replies through the dispatcher from a cached store are byte for byte equal to those from the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.server.audit import AuditLog
from hms_cache.server.dispatch import Dispatcher
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS, MessageReader
from hms_cache.wire.encodings import BINARY, COMPACT, FRAMED_BINARY, Encoding, write_header
from tests.cache.world import CATALOG, Server, partition, table

KEYS = (("dt", "string"), ("hr", "int"))
NAMES = ["dt=2024-01-02/hr=3", "dt=2024-01-01/hr=10", "dt=nowhere/hr=1", "dt=2024-01-02/hr=3"]
EMPTY = ttypes.GetPartitionsFilterSpec()

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("get_partitions", {"max_parts": -1}),
    ("get_partitions", {"max_parts": 3}),
    ("get_partitions", {"max_parts": 0}),
    ("get_partitions_req", {"req": ttypes.PartitionsRequest(dbName="d", tblName="t", maxParts=5)}),
    ("get_partitions_with_auth", {"max_parts": -1, "user_name": "u", "group_names": []}),
    ("get_partitions_ps", {"part_vals": ["", "3"], "max_parts": -1}),
    ("get_partitions_ps", {"part_vals": ["2024-01-01"], "max_parts": 2}),
    ("get_partitions_ps_with_auth", {"part_vals": ["2024-01-01", ""], "max_parts": -1, "user_name": "u"}),
    ("get_partitions_ps_with_auth_req", {"req": ttypes.GetPartitionsPsWithAuthRequest(dbName="d", tblName="t")}),
    ("get_partitions_by_filter", {"filter": "hr > 2", "max_parts": -1}),
    ("get_partitions_by_filter", {"filter": "hr > 2", "max_parts": 1}),
    ("get_partitions_by_filter", {"filter": "nope = 1", "max_parts": -1}),
    ("get_partitions_by_names", {"names": NAMES}),
    ("get_partitions_by_names", {"names": []}),
    ("get_partitions_by_names_req", {"req": ttypes.GetPartitionsByNamesRequest("d", "t", NAMES)}),
    ("get_partitions_by_names_req", {"req": ttypes.GetPartitionsByNamesRequest("d", "t", NAMES, get_col_stats=True)}),
    ("get_partitions_pspec", {"max_parts": -1}),
    ("get_part_specs_by_filter", {"filter": 'dt = "2024-01-02"', "max_parts": -1}),
    ("get_partitions_with_specs", {"request": ttypes.GetPartitionsRequest(None, "d", "t", filterSpec=EMPTY)}),
    (
        "get_partitions_with_specs",
        {
            "request": ttypes.GetPartitionsRequest(
                None,
                "d",
                "t",
                projectionSpec=ttypes.GetProjectionsSpec(["values", "sd.location"], "k%", "kb"),
                filterSpec=EMPTY,
            )
        },
    ),
    ("get_partition_names", {"max_parts": -1}),
    ("get_partition_names", {"max_parts": 4}),
    ("get_partition_names_ps", {"part_vals": ["2024-01-02"], "max_parts": -1}),
    ("get_partition_names_ps_req", {"req": ttypes.GetPartitionNamesPsRequest("d", "t", partValues=["", "10"])}),
    ("get_partition_names_req", {"req": ttypes.PartitionsByExprRequest("d", "t", b"", order="1,0:-+", maxParts=5)}),
    ("get_num_partitions_by_filter", {"filter": "hr = 3"}),
    (
        "get_partition_values",
        {"request": ttypes.PartitionValuesRequest("d", "t", [ttypes.FieldSchema("HR", "int", None)], ascending=False)},
    ),
    (
        "get_partition_values",
        {
            "request": ttypes.PartitionValuesRequest(
                "d", "t", [ttypes.FieldSchema("dt"), ttypes.FieldSchema("hr")], applyDistinct=False, maxParts=3
            )
        },
    ),
    ("get_partition_values", {"request": ttypes.PartitionValuesRequest("d", "t", [ttypes.FieldSchema("a")])}),
]


@pytest.fixture
def server(sqlite_database: Database, tmp_path: Path) -> Iterator[Server]:
    made = Server(sqlite_database.url.render_as_string(hide_password=False), tmp_path / "warehouse")
    store = made.store
    store.writes.databases.create_database(
        ttypes.Database(name="d", catalogName=CATALOG, description="", parameters={})
    )
    owner = table("d", "t", KEYS)
    store.writes.tables.create_table(owner)
    values = [(f"2024-01-0{day}", str(hour)) for day in (1, 2) for hour in (1, 3, 10, 21)]
    store.writes.partitions.add_partitions(
        TableName(CATALOG, "d", "t"), [partition(owner, one, ka=one[1], kb="x") for one in values]
    )
    made.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t"), ByNames(())))
    # Some partitions of the set changed after its block was built.
    store.writes.partitions.alter_partitions(
        TableName(CATALOG, "d", "t"), [partition(owner, values[2], ka="new", kb="")]
    )
    store.writes.partitions.drop_partitions(
        TableName(CATALOG, "d", "t"), ByNames(("dt=2024-01-02/hr=21",)), delete_data=True
    )
    store.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), [partition(owner, ("2024-01-01", "5"))])
    yield made
    made.close()


def reply(store: MetadataStore, encoding: Encoding, method: str, arguments: dict[str, Any]) -> bytes:
    dispatcher = Dispatcher(all_handlers(), Stores(store.reads, store.writes, None, None, None, None), AuditLog("off"))  # type: ignore[arg-type]
    spec = METHODS[method]
    given = spec.args_class(**arguments)
    for name, value in (("db_name", "d"), ("tbl_name", "t")):
        if hasattr(given, name):
            setattr(given, name, value)
    header = write_header(encoding, 1, method.encode(), 77)
    body = header + encoding.encode(given, spec.args_table)
    reader = MessageReader(1 << 20)
    reader.feed(len(body).to_bytes(4, "big") + body if encoding.framed else body)
    message = reader.next_message()
    assert message is not None
    answer = dispatcher.execute(Session("test"), message)
    assert answer is not None
    return answer


@pytest.mark.parametrize("encoding", [BINARY, FRAMED_BINARY, COMPACT], ids=repr)
def test_replies_are_those_of_the_database(server: Server, encoding: Encoding) -> None:
    for method, arguments in REQUESTS:
        expected = reply(server.objects, encoding, method, arguments)
        server.reasons()
        assert reply(server.store, encoding, method, arguments) == expected, (method, arguments)
        again = reply(server.store, encoding, method, arguments)
        assert again == expected, (method, arguments)
    server.reasons()


def test_all_but_refused_questions_are_answered_from_memory(server: Server) -> None:
    server.store.reads.partitions.get_partition_names(PartitionQuery(TableName(CATALOG, "d", "t"), ByNames(())))
    for method, arguments in REQUESTS:
        server.reasons()
        reply(server.store, BINARY, method, arguments)
        refused = "nope" in str(arguments) or "name='a'" in str(arguments)
        assert (Reason.UNSUPPORTED_FIELD in server.reasons()) == refused, (method, arguments)
