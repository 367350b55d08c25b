"""Each request that may ask for its partitions without columns, which are usually the table's."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import METHODS, Link, Serve, database, table

FIELD = "skipColumnSchemaForPartition"
NAMES = ["p=1", "p=2"]

REQUESTS: dict[str, dict[str, Any]] = {
    "drop_partitions_req": {"parts": t.RequestPartsSpec(names=NAMES)},
    "get_partitions_by_expr": {"expr": b""},
    "get_partitions_by_filter_req": {"filter": "p = '1' or p = '2'"},
    "get_partitions_by_names_req": {"names": NAMES},
    "get_partitions_ps_with_auth_req": {},
    "get_partitions_req": {},
    "get_partitions_spec_by_expr": {"expr": b""},
}
"""What they ask for, by method."""

OTHERS = {
    "add_partitions_req": "its own columns are left out, and those of the answer, too",
    "alter_partitions_req": "leaves out its own",
    "fetch_partition_names_req": "answers names",
    "get_partition_names_req": "answers names",
}


def request_class(method: str) -> Any:
    """In the only struct of the method."""
    fields = [one for one in METHODS[method].args_class.thrift_spec if one is not None]
    return fields[0][3][0] if len(fields) == 1 and isinstance(fields[0][3], list) and fields[0][3] else None


def test_these_are_all() -> None:
    requested = {method: getattr(request_class(method), "thrift_spec", ()) for method in METHODS}
    found = {method for method, fields in requested.items() if FIELD in [one[2] for one in fields if one is not None]}
    assert found == REQUESTS.keys() | OTHERS.keys()


def described(value: Any) -> list[t.StorageDescriptor]:
    """The storage descriptors in a reply."""
    if isinstance(value, t.StorageDescriptor):
        return [value]
    if isinstance(value, list):
        return [found for one in value for found in described(one)]
    if not hasattr(value, "thrift_spec"):
        return []
    return [found for one in value.thrift_spec if one is not None for found in described(getattr(value, one[2]))]


@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize("skipped", [None, False, True])
def test_columns_are_left_out_if_the_request_says_so(serve: Serve, method: str, skipped: bool | None) -> None:
    link = serve().link()
    with_partitions(link)
    kind = request_class(method)
    assert kind is not None
    named = {"dbName": "d", "db_name": "d", "tblName": "t", "tbl_name": "t"}
    names = {one[2] for one in kind.thrift_spec if one is not None}
    request = kind(**{key: value for key, value in named.items() if key in names}, **REQUESTS[method])
    setattr(request, FIELD, skipped)
    [argument] = [one[2] for one in METHODS[method].args_class.thrift_spec if one is not None]
    found = described(link.call(method, **{argument: request}))
    assert found
    assert {bool(one.cols) for one in found} == {not skipped}


def with_partitions(link: Link) -> None:
    link.call("create_database", database=database("d"))
    made = table("d", "t")
    link.call("create_table", tbl=made)
    parts = [t.Partition([value], "d", "t", sd=made.sd, parameters={}) for value in "12"]
    link.call("add_partitions", new_parts=parts)
