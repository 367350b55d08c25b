"""Fields that can be in a request or in an object inside it: each, in each place, has its effect in Hive.

Facts: `HMSHandler`, `HiveAlterHandler` and `ObjectStore` (4.0.1). The last test finds fields in two places that no
other test covers.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from thrift.Thrift import TType

from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Running, database, table

ACCURATE = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
STORED, INNER, OUTER = 5, 8, 9
"""The write id in the database before the call, the one in the nested object, the one in the request."""

LIST = f"d.t:20:{2**63 - 1}::"
TRANSACTIONAL = {"transactional": "true", "transactional_properties": "insert_only"}
CAPABILITIES = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])
KEEP = ttypes.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})


class World:
    """A server with transactional tables `t` and `p`, the latter with partition `k=1`, both of write id `STORED`."""

    def __init__(self, link: Link, url: str) -> None:
        self.link, self._engine = link, create_engine(url)
        self.create()

    def renew(self) -> World:
        """Resets everything to the initial state."""
        self.link.call("drop_database", name="d", deleteData=True, cascade=True)
        self.create()
        return self

    def create(self) -> None:
        link = self.link
        parameters = {**TRANSACTIONAL, "COLUMN_STATS_ACCURATE": ACCURATE}
        link.call("create_database", database=database("d"))
        plain = table("d", "t")
        plain.partitionKeys = []
        plain.parameters, plain.writeId = dict(parameters), STORED
        link.call("create_table", tbl=plain)
        keyed = copy.deepcopy(plain)
        keyed.tableName, keyed.partitionKeys = "p", [ttypes.FieldSchema("k", "string", None)]
        keyed.sd.location = None
        link.call("create_table", tbl=keyed)
        part = self.new_partition("1")
        part.writeId = STORED
        part.parameters = {"COLUMN_STATS_ACCURATE": ACCURATE}
        link.call("add_partition", new_part=part)

    def new_partition(self, value: str) -> ttypes.Partition:
        descriptor = copy.deepcopy(self.table("p").sd)
        descriptor.location = None
        return ttypes.Partition([value], "d", "p", 0, 0, descriptor, {}, catName="hive")

    def table(self, name: str) -> ttypes.Table:
        return self.link.call("get_table_req", req=ttypes.GetTableRequest("d", name, CAPABILITIES)).table

    def partition(self, name: str = "k=1") -> ttypes.Partition:
        return self.link.call("get_partition_by_name", db_name="d", tbl_name="p", part_name=name)

    def value(self, statement: str) -> Any:
        with self._engine.connect() as connection:
            return connection.execute(text(statement)).scalar()

    def table_write_id(self, name: str = "t") -> int:
        return int(self.value(f"SELECT WRITE_ID FROM TBLS WHERE TBL_NAME = '{name}'"))

    def partition_write_id(self, name: str = "k=1") -> int:
        return int(self.value(f"SELECT WRITE_ID FROM PARTITIONS WHERE PART_NAME = '{name}'"))

    def close(self) -> None:
        self._engine.dispose()


def column_statistics(name: str, part: str | None = None) -> ttypes.ColumnStatistics:
    data = ttypes.ColumnStatisticsData(
        longStats=ttypes.LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=2)
    )
    described = ttypes.ColumnStatisticsDesc(part is None, "d", name, part)
    return ttypes.ColumnStatistics(described, [ttypes.ColumnStatisticsObj("a", "int", data)])


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("fields")
    url = f"sqlite:///{directory / 'metastore.db'}"
    settings = {"server.port": 0, "admin.port": 0, "database.url": url, "warehouse.directory": str(directory / "wh")}
    service = Service(load(command_line=settings, environment={}))
    with ExitStack() as stack:
        uri = service.start()
        stack.callback(service.stop)
        made = World(Running(service, uri, stack).link(), url)
        stack.callback(made.close)
        yield made


@pytest.fixture
def world(shared_world: World) -> World:
    return shared_world.renew()


# Write ids


@dataclass(frozen=True)
class WriteIdCase:
    """A method with a write id in its request, in the object that it writes, or in both."""

    method: str
    send: Callable[[World, int | None, int | None, str | None], None]
    """With the id of the object, of the request, and the list of valid write ids."""
    stored: Callable[[World], int]
    expected: Callable[[int | None, int | None], int | None]
    """What counts, of the object's id and the request's; None: neither."""
    places: tuple[str, ...] = ("object", "request")
    needs_list: bool = True
    refused_without: bool = False
    """Whether the call fails where it cannot prove what it claims of statistics."""


def _alter_table(name: str, **changes: Any) -> Callable[[World, int | None, int | None, str | None], None]:
    def send(world: World, inner: int | None, outer: int | None, valid: str | None) -> None:
        new = world.table(name)
        new.writeId = inner
        for key, value in changes.items():
            setattr(new, key, value)
        request = ttypes.AlterTableRequest("hive", "d", name, new, KEEP, validWriteIdList=valid)
        if outer is not None:
            request.writeId = outer
        world.link.call("alter_table_req", req=request)

    return send


def _alter_partitions(world: World, inner: int | None, outer: int | None, valid: str | None) -> None:
    new = world.partition()
    new.writeId = inner
    request = ttypes.AlterPartitionsRequest("hive", "d", "p", [new], KEEP, validWriteIdList=valid)
    if outer is not None:
        request.writeId = outer
    world.link.call("alter_partitions_req", req=request)


def _rename_partition(world: World, inner: int | None, outer: int | None, valid: str | None) -> None:
    new = world.partition()
    new.values, new.writeId = ["2"], inner
    request = ttypes.RenamePartitionRequest("hive", "d", "p", ["1"], new, valid)
    world.link.call("rename_partition_req", req=request)


def _truncate(name: str) -> Callable[[World, int | None, int | None, str | None], None]:
    def send(world: World, inner: int | None, outer: int | None, valid: str | None) -> None:
        request = ttypes.TruncateTableRequest("d", name, validWriteIdList=valid)
        if outer is not None:
            request.writeId = outer
        world.link.call("truncate_table_req", req=request)

    return send


def _statistics(
    method: str, name: str, part: str | None
) -> Callable[[World, int | None, int | None, str | None], None]:
    def send(world: World, inner: int | None, outer: int | None, valid: str | None) -> None:
        request = ttypes.SetPartitionsStatsRequest([column_statistics(name, part)], validWriteIdList=valid)
        if outer is not None:
            request.writeId = outer
        argument = "request" if method == "set_aggr_stats_for" else "req"
        world.link.call(method, **{argument: request})

    return send


def _create(world: World, inner: int | None, outer: int | None, valid: str | None) -> None:
    new = table("d", "n")
    new.parameters, new.writeId = dict(TRANSACTIONAL), inner
    world.link.call("create_table_req", request=ttypes.CreateTableRequest(new))


def _of_object(inner: int | None, outer: int | None) -> int | None:
    return inner


def _of_request(inner: int | None, outer: int | None) -> int | None:
    return outer


def _of_request_or_stored(inner: int | None, outer: int | None) -> int | None:
    return STORED if outer is None else outer


def _request_first(inner: int | None, outer: int | None) -> int | None:
    return inner if outer is None else outer


WRITE_IDS = [
    WriteIdCase("alter_table_req", _alter_table("t"), World.table_write_id, _of_object),
    WriteIdCase("alter_table_req", _alter_table("p"), lambda w: w.table_write_id("p"), _of_object),
    WriteIdCase("alter_partitions_req", _alter_partitions, World.partition_write_id, _request_first),
    WriteIdCase(
        "rename_partition_req", _rename_partition, lambda w: w.partition_write_id("k=2"), _of_object, ("object",)
    ),
    WriteIdCase(
        *("truncate_table_req", _truncate("t"), World.table_write_id),
        *(_of_request_or_stored, ("request",)),
        refused_without=True,
    ),
    WriteIdCase(
        *("truncate_table_req", _truncate("p"), World.partition_write_id),
        *(_of_request_or_stored, ("request",)),
        refused_without=True,
    ),
    *(
        WriteIdCase(method, _statistics(method, "t", None), World.table_write_id, _of_request, ("request",), True, True)
        for method in ("set_aggr_stats_for", "update_table_column_statistics_req")
    ),
    *(
        WriteIdCase(
            method, _statistics(method, "p", "k=1"), World.partition_write_id, _of_request, ("request",), True, True
        )
        for method in ("set_aggr_stats_for", "update_partition_column_statistics_req")
    ),
    WriteIdCase(
        "create_table_req", _create, lambda w: w.table_write_id("n"), _of_object, ("object",), needs_list=False
    ),
]


@pytest.mark.parametrize("case", WRITE_IDS, ids=lambda case: case.method)
def test_the_write_id_comes_from_where_hive_takes_it(case: WriteIdCase, world: World) -> None:
    inner_ids = (None, -1, INNER) if "object" in case.places else (None,)
    outer_ids = (None, -1, OUTER) if "request" in case.places else (None,)
    wrong = []
    for inner, outer, with_list in itertools.product(inner_ids, outer_ids, (True, False)):
        world.renew()
        expected = case.expected(positive(inner), positive(outer))
        counts = expected is not None and (with_list or not case.needs_list)
        failure = None
        try:
            case.send(world, inner, outer, LIST if with_list else None)
        except ttypes.MetaException as error:
            failure = error.message
        if case.refused_without and not counts:
            if "Cannot change stats state" not in (failure or ""):
                wrong.append((inner, outer, with_list, f"not refused: {failure}"))
        elif failure:
            wrong.append((inner, outer, with_list, failure))
        else:
            unmoved = STORED if case.needs_list else (-1 if inner is None else inner)
            if case.stored(world) != (expected if counts else unmoved):
                wrong.append((inner, outer, with_list, f"stored {case.stored(world)}"))
    assert not wrong, "\n".join(map(str, wrong))


def positive(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None


def test_statistics_are_withdrawn_with_the_write_id_of_the_table(world: World) -> None:
    """What Hive 4 sends after an UPDATE: without it, a query would be answered from the previous statistics."""
    new = world.table("t")
    new.writeId = INNER
    new.parameters.pop("COLUMN_STATS_ACCURATE")
    world.link.call("alter_table_req", req=ttypes.AlterTableRequest("hive", "d", "t", new, KEEP, validWriteIdList=LIST))
    reader = ttypes.GetTableRequest("d", "t", CAPABILITIES, validWriteIdList=f"d.t:{STORED}:{2**63 - 1}::")
    old = world.link.call("get_table_req", req=reader)
    assert (old.table.writeId, old.isStatsCompliant) == (INNER, False)
    assert "COLUMN_STATS_ACCURATE" not in old.table.parameters


# Other fields


@pytest.mark.parametrize("method", ["set_aggr_stats_for", "update_table_column_statistics_req"])
@pytest.mark.parametrize(
    ("inner", "outer", "stored"),
    [(None, None, "hive"), ("impala", None, "impala"), ("impala", "hive", "impala"), (None, "impala", "hive")],
)
def test_statistics_are_stored_for_the_engine_that_they_name(
    world: World, method: str, inner: str | None, outer: str | None, stored: str
) -> None:
    statistics = column_statistics("t")
    if inner is not None:
        statistics.engine = inner
    request = ttypes.SetPartitionsStatsRequest([statistics], writeId=OUTER, validWriteIdList=LIST)
    if outer is not None:
        request.engine = outer
    world.link.call(method, **{"request" if method == "set_aggr_stats_for" else "req": request})
    assert world.value("SELECT GROUP_CONCAT(DISTINCT ENGINE) FROM TAB_COL_STATS") == stored


@pytest.mark.parametrize("key_place", ["request", "context"])
@pytest.mark.parametrize("value_place", ["request", "context"])
@pytest.mark.parametrize("value", ["right", "wrong"])
def test_an_expected_parameter_may_stand_in_either_place(
    world: World, key_place: str, value_place: str, value: str
) -> None:
    new = world.table("t")
    new.parameters["x"] = "right"
    world.link.call("alter_table_req", req=ttypes.AlterTableRequest("hive", "d", "t", new, KEEP))
    new.parameters["x"] = "next"
    request = ttypes.AlterTableRequest("hive", "d", "t", new, copy.deepcopy(KEEP))
    # The context has no effect where the request contains a value.
    request.environmentContext.properties.update(expected_parameter_key="other", expected_parameter_value="other")
    for place, name, given in ((key_place, "Key", "x"), (value_place, "Value", value)):
        if place == "request":
            setattr(request, f"expectedParameter{name}", given)
        else:
            request.environmentContext.properties[f"expected_parameter_{name.lower()}"] = given
    if value == "right":
        world.link.call("alter_table_req", req=request)
    else:
        with pytest.raises(ttypes.MetaException, match="The table has been modified"):
            world.link.call("alter_table_req", req=request)
    assert world.table("t").parameters["x"] == ("next" if value == "right" else "right")


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("alter_table_with_cascade", {"cascade": True}),
        (
            "alter_table_with_environment_context",
            {"environment_context": ttypes.EnvironmentContext({"CASCADE": "true"})},
        ),
        ("alter_table", {}),
    ],
)
def test_a_change_of_columns_goes_on_to_partitions_by_an_argument_or_the_environment(
    world: World, method: str, more: dict[str, Any]
) -> None:
    new = world.table("p")
    new.parameters = {key: value for key, value in new.parameters.items() if key != "COLUMN_STATS_ACCURATE"}
    new.sd.cols = [*new.sd.cols, ttypes.FieldSchema("more", "string", None)]
    world.link.call(method, dbname="d", tbl_name="p", new_tbl=new, **more)
    assert (world.partition().sd.cols == new.sd.cols) == bool(more)


@pytest.mark.parametrize("place", ["table", "request", "partition"])
def test_columns_of_partitions_stand_in_them_in_the_request_or_in_the_table(world: World, place: str) -> None:
    column = [ttypes.FieldSchema("b", "string", None)]
    new = world.new_partition("2")
    new.sd.cols = column if place == "partition" else []
    request = ttypes.AddPartitionsRequest("d", "p", [new], False, True, "hive")
    request.skipColumnSchemaForPartition = place != "partition"
    request.partitionColSchema = column if place == "request" else None
    answer = world.link.call("add_partitions_req", request=request)
    expected = world.table("p").sd.cols if place == "table" else column
    assert world.partition("k=2").sd.cols == expected
    if place == "partition":
        assert (answer.partitions[0].sd.cols, answer.partitionColSchema) == (column, None)
    else:
        assert (answer.partitions[0].sd.cols, answer.partitionColSchema) == ([], expected)


@pytest.mark.parametrize("write_id", [-1, 7])
@pytest.mark.parametrize("transactional", [True, False])
def test_statistics_may_come_with_a_new_table_or_partition(world: World, write_id: int, transactional: bool) -> None:
    """As a replication sends them; only the id in the object shows who wrote them."""
    new = table("d", "n")
    new.parameters, new.writeId = dict(TRANSACTIONAL) if transactional else {}, write_id
    part = world.new_partition("2")
    part.tableName, part.writeId, part.colStats = "n", write_id, column_statistics("n", "p=2")
    new.colStats = column_statistics("n")
    world.link.call("create_table_req", request=ttypes.CreateTableRequest(new))
    assert world.value("SELECT COUNT(*) FROM TAB_COL_STATS WHERE COLUMN_NAME = 'a'") == 1
    assert '"a":"true"' in world.table("n").parameters["COLUMN_STATS_ACCURATE"]
    request = ttypes.AddPartitionsRequest("d", "n", [part], False, True, "hive")
    assert world.link.call("add_partitions_req", request=request).partitions[0].colStats is None
    assert world.value("SELECT COUNT(*) FROM PART_COL_STATS WHERE COLUMN_NAME = 'a'") == 1
    if transactional and write_id > 0:
        assert (world.table_write_id("n"), world.partition_write_id("p=2")) == (7, 7)


@pytest.mark.parametrize("request_catalog", [None, "hive", "c"])
@pytest.mark.parametrize("object_catalog", [None, "hive", "c"])
def test_the_catalog_is_that_of_the_request(
    world: World, request_catalog: str | None, object_catalog: str | None
) -> None:
    """No catalog in the request means the default catalog; an object with another catalog than its request is refused
    or moved."""
    link = world.link
    catalog = ttypes.Catalog("c", None, world.table("t").sd.location.rpartition("/d.db")[0] + "/c")
    link.call("create_catalog", catalog=ttypes.CreateCatalogRequest(catalog))
    there = database("d")
    there.catalogName = "c"
    link.call("create_database", database=there)
    for name in ("t", "p"):
        described = copy.deepcopy(world.table(name))
        described.catName, described.sd.location = "c", None
        link.call("create_table", tbl=described)
    target = request_catalog or "hive"
    new = world.table("t")
    new.catName, new.parameters = object_catalog, {**new.parameters, "seen": "yes"}
    new.sd.location = link.call(
        "get_table_req", req=ttypes.GetTableRequest("d", "t", CAPABILITIES, catName=target)
    ).table.sd.location
    request = ttypes.AlterTableRequest(request_catalog, "d", "t", new, KEEP)
    if object_catalog not in (None, target):
        with pytest.raises(ttypes.InvalidOperationException, match="cannot be moved between catalogs"):
            link.call("alter_table_req", req=request)
    else:
        link.call("alter_table_req", req=request)
        seen = {
            name: link.call(
                "get_table_req", req=ttypes.GetTableRequest("d", "t", CAPABILITIES, catName=name)
            ).table.parameters
            for name in ("hive", "c")
        }
        assert [name for name, parameters in seen.items() if "seen" in parameters] == [target]
    part = world.new_partition("9")
    part.catName = object_catalog
    link.call("add_partitions_req", request=ttypes.AddPartitionsRequest("d", "p", [part], False, True, request_catalog))
    part.lastAccessTime = 77
    part.sd.location = None
    link.call("alter_partitions_req", req=ttypes.AlterPartitionsRequest(request_catalog, "d", "p", [part], KEEP))
    part.values = ["10"]
    link.call("rename_partition_req", req=ttypes.RenamePartitionRequest(request_catalog, "d", "p", ["9"], part))
    found = link.call("get_partition_req", req=ttypes.GetPartitionRequest(target, "d", "p", ["10"])).partition
    assert (found.catName, found.lastAccessTime) == (target, 77)
    link.call("drop_database", name="@c#d", deleteData=True, cascade=True)
    link.call("drop_database", name="@c#default", deleteData=True, cascade=True)
    link.call("drop_catalog", catName=ttypes.DropCatalogRequest("c"))


# No field is missed

WATCHED = {
    "writeId",
    "validWriteIdList",
    "engine",
    "catName",
    "id",
    "tableId",
    "txnId",
    "colStats",
    "partitionColSchema",
}

JUDGED_ABOVE = {
    ("add_partitions_req", "catName"),
    ("alter_partitions_req", "catName"),
    ("alter_partitions_req", "writeId"),
    ("alter_table_req", "catName"),
    ("alter_table_req", "writeId"),
    ("rename_partition_req", "catName"),
    ("set_aggr_stats_for", "engine"),
    ("update_partition_column_statistics_req", "engine"),
    ("update_table_column_statistics_req", "engine"),
}
OF_ITS_OWN = {
    # Each object names its own catalog: the new and the old schema, the view and its metadata, and so on.
    **dict.fromkeys(
        [
            ("add_partitions_pspec", "catName"),
            ("alter_ischema", "catName"),
            ("create_table_req", "catName"),
            ("create_table_with_constraints", "catName"),
            ("get_materialization_invalidation_info", "catName"),
            ("refresh_privileges", "catName"),
            ("translate_table_dryrun", "catName"),
            ("update_creation_metadata", "catName"),
        ],
        "objects of their own",
    ),
    ("add_partitions_pspec", "writeId"): "Hive never looks at the list's",
}


def test_every_field_that_stands_in_two_places_is_judged() -> None:
    found: set[tuple[str, str]] = set()
    for method, definition in METHODS.items():
        places: dict[str, set[str]] = {}
        collect(definition.args_class, "", places, frozenset())
        found.update((method, field) for field, paths in places.items() if len(paths) > 1)
    assert found == JUDGED_ABOVE | set(OF_ITS_OWN)


def collect(struct: Any, path: str, places: dict[str, set[str]], above: frozenset[Any]) -> None:
    for entry in struct.thrift_spec:
        if entry is None:
            continue
        kind, name, argument = entry[1], entry[2], entry[3]
        # Descriptions of tables and statistics inside a table name the table that contains them.
        if name in ("colStats", "creationMetadata") and "." in path:
            places.setdefault(name, set()).add(path)
            if name == "creationMetadata" or not path.endswith((".request.", ".req.")):
                continue
        if name in WATCHED:
            places.setdefault(name, set()).add(path)
        while kind in (TType.LIST, TType.SET):
            kind, argument = argument[0], argument[1]
        if kind == TType.STRUCT and argument[0] not in above:
            collect(argument[0], f"{path}.{name}.", places, above | {argument[0]})


@pytest.mark.parametrize("method", ["alter_database", "alter_database_req"])
@pytest.mark.parametrize("object_catalog", [None, "hive", "c"])
@pytest.mark.parametrize(("named", "target"), [("d", "hive"), ("@hive#d", "hive"), ("@c#d", "c")])
def test_a_database_is_altered_in_the_catalog_of_its_name(
    world: World, named: str, target: str, object_catalog: str | None, method: str
) -> None:
    """The object may name another one, as clients of one catalog fill it in: Hive ignores it."""
    link = world.link
    catalog = ttypes.Catalog("c", None, world.table("t").sd.location.rpartition("/d.db")[0] + "/c")
    link.call("create_catalog", catalog=ttypes.CreateCatalogRequest(catalog))
    there = database("d")
    there.catalogName = "c"
    link.call("create_database", database=there)
    new = link.call("get_database", name=f"@{target}#d")
    new.catalogName, new.description = object_catalog, "seen"
    if method == "alter_database":
        link.call(method, dbname=named, db=new)
    else:
        link.call(method, alterDbReq=ttypes.AlterDatabaseRequest(named, new))
    found = {name: link.call("get_database", name=f"@{name}#d") for name in ("hive", "c")}
    assert [name for name, one in found.items() if one.description == "seen"] == [target]
    assert {name: one.catalogName for name, one in found.items()} == {"hive": "hive", "c": "c"}
    link.call("drop_database", name="@c#d", deleteData=True, cascade=True)
    link.call("drop_database", name="@c#default", deleteData=True, cascade=True)
    link.call("drop_catalog", catName=ttypes.DropCatalogRequest("c"))
