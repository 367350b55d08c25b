"""`cache.reads_without_write_ids`: all three modes, for each method that reads a table, transactional or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Running, database, table

TRANSACTIONAL = {"transactional": "true", "transactional_properties": "insert_only"}
NAMES = ("plain", "acid")
_OF_TABLE = {"tbl_name", "tblName", "tableName", "table_name", "tblname", "tablename"}
_OF_DATABASE = {"db_name", "dbName", "dbname", "database"}
_VALUES: dict[str, Any] = {
    "part_vals": ["1"],
    "partVals": ["1"],
    "part_name": "p=1",
    "partValues": ["1"],
    "names": ["p=1"],
    "partNames": ["p=1"],
    "col_name": "a",
    "colNames": ["a"],
    "filter": "p = '1'",
    "max_parts": -1,
    "maxParts": -1,
    "user_name": "u",
    "group_names": [],
    "tbl_names": None,
    "tblNames": None,
    "partitionKeys": [ttypes.FieldSchema("p", "string", None)],
    "projectionSpec": ttypes.GetProjectionsSpec(),
    "filterSpec": ttypes.GetPartitionsFilterSpec(),
    "capabilities": ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES]),
    "expr": b"",
    "engine": "hive",
    "part_specs": {"p": "1"},
}

#: Reads that name a table, but are not answered from a cached table: locks, transactions, privileges, and so on.
OTHER = (
    *("get_max_allocated_table_write_id", "get_valid_write_ids", "get_partition_by_id", "get_index_by_name"),
    *(
        "get_indexes",
        "get_index_names",
        "get_privilege_set",
        "get_lock_materialization_rebuild",
        "get_all_write_event_info",
    ),
    *("get_notification_events_count", "get_latest_committed_compaction_info", "get_lock_materialization_rebuild_req"),
    *(
        "get_metastore_db_uuid",
        "get_tables_by_type",
        "get_tables_ext",
        "get_table_names_by_filter",
        "get_next_notification",
    ),
    *("get_file_metadata_by_expr", "get_file_metadata", "get_next_compact", "get_max_allocated_write_id"),
)


def methods() -> list[str]:
    """Reads that name one table, by their fields."""
    found = []
    for name, method in METHODS.items():
        if not name.startswith(("get_", "fetch_")) or name in OTHER:
            continue
        if any(field in _OF_TABLE for field in fields_of(method.args_class)):
            found.append(name)
    return sorted(found)


def fields_of(struct: Any) -> set[str]:
    """Names of the fields, and of those of its requests."""
    names: set[str] = set()
    for entry in filter(None, struct.thrift_spec):
        if hasattr(entry[3], "__len__") and entry[3] and hasattr(entry[3][0], "thrift_spec"):
            names |= {field[2] for field in filter(None, entry[3][0].thrift_spec)}
        names.add(entry[2])
    return names


def filled(struct: Any, name: str) -> Any:
    """The arguments of a read of a table."""
    value = struct()
    for entry in filter(None, struct.thrift_spec):
        field = entry[2]
        if field in _OF_TABLE:
            setattr(value, field, name)
        elif field in _OF_DATABASE:
            # As clients of Hive 3 and later write it in calls without a field for the catalog.
            setattr(value, field, "@hive#d" if struct.__name__.endswith("_args") else "d")
        elif field in _VALUES:
            setattr(value, field, _VALUES[field])
        elif hasattr(entry[3], "__len__") and entry[3] and hasattr(entry[3][0], "thrift_spec"):
            setattr(value, field, filled(entry[3][0], name))
    return value


def arguments(method: str, name: str) -> dict[str, Any]:
    value = filled(METHODS[method].args_class, name)
    return {entry[2]: getattr(value, entry[2]) for entry in filter(None, value.thrift_spec)}


def outcome(link: Link, method: str, name: str) -> Any:
    """The answer, or the type and text of the exception."""
    try:
        return link.call(method, **arguments(method, name))
    except TException as error:
        return type(error).__name__, str(getattr(error, "message", error))


@pytest.fixture(scope="module", params=["check", "store", "reject"])
def links(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Link, Link]]:
    """The mode; a connection to a server in it, and one to a server without a cache on the same database."""
    directory = tmp_path_factory.mktemp(request.param)
    given = {
        "server.port": 0,
        "admin.port": 0,
        "database.url": f"sqlite:///{directory / 'metastore.db'}",
        "warehouse.directory": str(directory / "wh"),
        # Some of the reads cannot declare support for insert-only tables.
        "catalog.client_capability_check": False,
    }
    with ExitStack() as stack:
        opened = []
        for more in ({"cache.reads_without_write_ids": request.param}, {"cache.enabled": False}):
            service = Service(load(command_line={**given, **more}, environment={}))
            uri = service.start()
            stack.callback(service.stop)
            opened.append(Running(service, uri, stack).link())
        cached, plain = opened
        plain.call("create_database", database=database("d"))
        for name in NAMES:
            made = table("d", name)
            made.parameters = dict(TRANSACTIONAL) if name == "acid" else {}
            plain.call("create_table", tbl=made)
            part = ttypes.Partition(["1"], "d", name, 0, 0, made.sd, {}, catName="hive")
            part.sd.location = None
            plain.call("add_partition", new_part=part)
        yield request.param, cached, plain


def test_the_methods_are_those_that_read_tables() -> None:
    assert len(methods()) > 40
    assert {"get_table", "get_table_req", "get_partition_names", "get_fields", "get_aggr_stats_for"} <= set(methods())


@pytest.mark.parametrize("name", NAMES)
def test_every_read_is_answered_as_without_a_cache_or_refused_by_name(links: tuple[str, Link, Link], name: str) -> None:
    mode, cached, plain = links
    wrong = []
    refused = set()
    for method in methods():
        expected = outcome(plain, method, name)
        # The first one loads the table.
        for found in [outcome(cached, method, name) for _ in range(3)]:
            if isinstance(found, tuple) and "without a ValidWriteIdList" in found[1]:
                if found[0] != "MetaException":
                    wrong.append((method, found))
                refused.add(method)
            elif found != expected:
                wrong.append((method, found, expected))
    assert not wrong, "\n".join(map(str, wrong))
    if (mode, name) == ("reject", "acid"):
        # A client of 2.3 knows one exception of this method, in the field where later ones have another with one text.
        with pytest.raises(TException, match="without a ValidWriteIdList"):
            cached.call("get_partition_names", db_name="d", tbl_name=name, max_parts=-1)
        assert {"get_table", "get_partition_names", "get_partitions", "get_fields", "get_schema"} <= refused
    else:
        assert not refused
