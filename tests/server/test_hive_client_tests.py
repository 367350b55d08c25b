"""Refusals and special cases that the tests of Hive's own client check."""

from __future__ import annotations

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve, database, table


@pytest.fixture
def link(serve: Serve) -> Link:
    link = serve().link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    return link


def primary_key(table_name: str) -> ttypes.AddPrimaryKeyRequest:
    column = table("d", "t").sd.cols[0].name
    return ttypes.AddPrimaryKeyRequest([ttypes.SQLPrimaryKey("d", table_name, column, 1, "pk", True, False, False)])


def test_constraints_that_cannot_be_added_or_dropped(link: Link) -> None:
    with pytest.raises(TApplicationException, match="add_primary_key: Parent table not found: nope") as raised:
        link.call("add_primary_key", req=primary_key("nope"))
    assert raised.value.type == TApplicationException.INTERNAL_ERROR
    with pytest.raises(TApplicationException, match="drop_constraint: The constraint: pk does not exist"):
        link.call("drop_constraint", req=ttypes.DropConstraintRequest("d", "t", "pk"))
    link.call("add_primary_key", req=primary_key("t"))
    with pytest.raises(ttypes.MetaException, match="Primary key already exists for"):
        link.call("add_primary_key", req=primary_key("t"))
    link.call("drop_constraint", req=ttypes.DropConstraintRequest("d", "t", "pk"))


def test_an_altered_function_needs_its_database(link: Link) -> None:
    function = ttypes.Function(
        "f", "d", "org.example.F", "o", ttypes.PrincipalType.USER, 0, ttypes.FunctionType.JAVA, []
    )
    link.call("create_function", func=function)
    function.dbName = None
    with pytest.raises(ttypes.MetaException, match="Database name in Function cannot be null"):
        link.call("alter_function", dbName="d", funcName="f", newFunc=function)


def by_name(fields: list[str] | None, include: str | None = None) -> ttypes.GetTablesRequest:
    return ttypes.GetTablesRequest("d", ["t"], projectionSpec=ttypes.GetProjectionsSpec(fields, include))


def test_projections_of_tables(link: Link) -> None:
    (found,) = link.call("get_table_objects_by_name_req", req=by_name(["sd.location"])).tables
    assert found.sd.location.endswith("/t")
    assert (found.dbName, found.tableName, found.sd.cols, found.sd.serdeInfo) == (None, None, None, None)
    (whole,) = link.call(
        "get_table_objects_by_name_req", req=by_name(["sd.location", "sd.serdeInfo.parameters"])
    ).tables
    assert whole == link.call("get_table_objects_by_name_req", req=by_name([])).tables[0], "many values: all of it"
    assert whole.sd.cols and whole.tableName == "t"
    with pytest.raises(ttypes.MetaException, match=r"Invalid table fields in the projection spec \[nope\]"):
        link.call("get_table_objects_by_name_req", req=by_name(["nope"]))
    with pytest.raises(ttypes.InvalidOperationException, match="Param key are not supported"):
        link.call("get_table_objects_by_name_req", req=by_name(None, include="foo"))


def test_altered_tables_need_a_database_and_created_ones_no_owner(link: Link) -> None:
    new = table("d", "u")
    new.owner = None
    link.call("create_table", tbl=new)
    found = link.call("get_table_req", req=ttypes.GetTableRequest("d", "u")).table
    assert found.owner is None
    found.dbName = None
    with pytest.raises(ttypes.MetaException, match="Database name cannot be null"):
        link.call("alter_table", dbname="d", tbl_name="u", new_tbl=found)


@pytest.mark.parametrize("name", [None, "", "@hive#", "@hive#!", "@#d"])
def test_a_filter_of_table_names_needs_a_database(link: Link, name: str | None) -> None:
    with pytest.raises(ttypes.UnknownDBException, match="DB name is null or empty"):
        link.call("get_table_names_by_filter", dbname=name, filter='hive_filter_field_owner__ = "o"', max_tables=-1)


@pytest.mark.parametrize("name", ["d", "D", " d ", "@hive#D", "@Hive#d"])
def test_a_filter_of_table_names_finds_its_database_however_spelt(link: Link, name: str) -> None:
    names = link.call(
        "get_table_names_by_filter", dbname=name, filter='hive_filter_field_owner__ like ".*"', max_tables=-1
    )
    assert names == ["t"]


def test_the_name_of_the_database_may_be_a_pattern(link: Link) -> None:
    link.call("create_database", database=database("other"))
    link.call("create_table", tbl=table("other", "t"))
    for pattern, databases in (("*", ["d", "other"]), ("oth*", ["other"])):
        request = ttypes.GetTablesRequest(dbName=pattern, tablesPattern="t")
        found = link.call("get_table_objects_by_name_req", req=request).tables
        assert [(table.dbName, table.tableName) for table in found] == [(name, "t") for name in databases]
    for pattern, names in (("*", "none"), ("none*", "*"), ("d|other", "*")):
        with pytest.raises(ttypes.UnknownDBException):
            link.call("get_table_objects_by_name_req", req=ttypes.GetTablesRequest(dbName=pattern, tablesPattern=names))
    # The older methods, which Hive 4's client does not use for this, accept names only.
    assert link.call("get_tables", db_name="*", pattern="*") == []
    assert link.call("get_tables_by_type", db_name="*", pattern="*", tableType="MANAGED_TABLE") == []


def test_names_and_a_pattern_of_tables_both_narrow(link: Link) -> None:
    for name in ("fact", "flat"):
        link.call("create_table", tbl=table("d", name))
    request = ttypes.GetTablesRequest(dbName="d", tblNames=["FACT", "flat", "no"], tablesPattern="fl*")
    assert [one.tableName for one in link.call("get_table_objects_by_name_req", req=request).tables] == ["flat"]


def test_tables_without_their_parameters_need_no_capability(link: Link) -> None:
    parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    new = table("d", "inserted")
    new.parameters = parameters
    link.call("create_table", tbl=new)
    request = ttypes.GetTablesRequest(dbName="d", tblNames=["inserted"])
    with pytest.raises(ttypes.MetaException, match="does not appear to support insert-only tables"):
        link.call("get_table_objects_by_name_req", req=request)
    # Empty patterns count as absent.
    request.projectionSpec = ttypes.GetProjectionsSpec(["dbName", "tableName"], "", "")
    assert [one.tableName for one in link.call("get_table_objects_by_name_req", req=request).tables] == ["inserted"]
    request.projectionSpec.fieldList.append("parameters")
    with pytest.raises(ttypes.MetaException, match="does not appear to support insert-only tables"):
        link.call("get_table_objects_by_name_req", req=request)


@pytest.mark.parametrize("values", [None, []])
def test_names_of_partitions_of_no_table(link: Link, values: list[str] | None) -> None:
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("get_partition_names_ps", db_name="d", tbl_name="no", part_vals=values, max_parts=-1)
    with pytest.raises(ttypes.NoSuchObjectException):
        request = ttypes.GetPartitionNamesPsRequest(dbName="d", tblName="no", partValues=values)
        link.call("get_partition_names_ps_req", req=request)


def partition(value: str, database: str | None = "d", name: str | None = "p") -> ttypes.Partition:
    descriptor = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "int")], serdeInfo=ttypes.SerDeInfo())
    return ttypes.Partition(values=[value], dbName=database, tableName=name, sd=descriptor, parameters={})


def partitioned_table() -> ttypes.Table:
    created = table("d", "p")
    created.partitionKeys = [ttypes.FieldSchema("dt", "string")]
    return created


@pytest.fixture
def partitioned(link: Link) -> Link:
    link.call("create_table", tbl=partitioned_table())
    return link


def test_partitions_of_a_list_name_their_table_in_one_spelling(partitioned: Link) -> None:
    for wrong in (partition("2", "D"), partition("2", name="P"), partition("2", None), partition("2", name=None)):
        with pytest.raises(ttypes.MetaException):
            partitioned.call("add_partitions", new_parts=[partition("1"), wrong])
    with pytest.raises(ttypes.InvalidObjectException):
        partitioned.call("add_partitions", new_parts=[partition("1", "nope"), partition("2")])
    assert partitioned.call("get_partition_names", db_name="d", tbl_name="p", max_parts=-1) == []
    assert partitioned.call("add_partitions", new_parts=[partition("1", "D", "P"), partition("2", "D", "P")]) == 2


@pytest.mark.parametrize("field", ["name", "type"])
def test_columns_of_partitions_are_whole(partitioned: Link, field: str) -> None:
    sent = partition("1")
    setattr(sent.sd.cols[0], field, None)
    with pytest.raises(ttypes.MetaException, match=f"Column {field} cannot be null"):
        partitioned.call("add_partition", new_part=sent)


def test_specs_of_partitions(partitioned: Link) -> None:
    """Of both forms, the list is used; a missing path below the shared descriptor's location is completed."""
    location = partitioned.call("get_table", dbname="d", tbl_name="p").sd.location
    shared = ttypes.StorageDescriptor(location=f"{location}/x/", cols=[], serdeInfo=ttypes.SerDeInfo())
    grouped = ttypes.PartitionSpecWithSharedSD([ttypes.PartitionWithoutSD(["2"], parameters={})], shared)
    listed = ttypes.PartitionListComposingSpec([partition("1")])
    both = ttypes.PartitionSpec("d", "p", sharedSDPartitionSpec=grouped, partitionList=listed)
    assert partitioned.call("add_partitions_pspec", new_parts=[both]) == 1
    assert partitioned.call("get_partition_names", db_name="d", tbl_name="p", max_parts=-1) == ["dt=1"]
    partitioned.call("add_partitions_pspec", new_parts=[ttypes.PartitionSpec("d", "p", sharedSDPartitionSpec=grouped)])
    found = partitioned.call("get_partition", db_name="d", tbl_name="p", part_vals=["2"])
    assert found.sd.location == f"{location}/x/null"
    bare = ttypes.PartitionSpecWithSharedSD([ttypes.PartitionWithoutSD(["4"])], None)
    with pytest.raises(ttypes.MetaException, match="storage descriptor of the partitions cannot be null"):
        partitioned.call("add_partitions_pspec", new_parts=[ttypes.PartitionSpec("d", "p", sharedSDPartitionSpec=bare)])
    without_names = ttypes.PartitionListComposingSpec([partition("3", None, None)])
    with pytest.raises(ttypes.MetaException, match="must be set in the partition"):
        partitioned.call(
            "add_partitions_pspec", new_parts=[ttypes.PartitionSpec("d", "p", partitionList=without_names)]
        )


def test_altered_and_renamed_partitions(partitioned: Link) -> None:
    partitioned.call("add_partition", new_part=partition("1"))
    with pytest.raises(ttypes.InvalidOperationException, match="no partitions to alter"):
        partitioned.call("alter_partitions", db_name="d", tbl_name="p", new_parts=[])
    for unnamed in (partition("2", None), partition("2", name=None)):
        with pytest.raises(ttypes.MetaException, match="must be set in the partition"):
            partitioned.call("rename_partition", db_name="d", tbl_name="p", part_vals=["1"], new_part=unnamed)
    with pytest.raises(ttypes.InvalidOperationException):
        partitioned.call("rename_partition", db_name="d", tbl_name="no", part_vals=["1"], new_part=ttypes.Partition())
    altered = partitioned.call("get_partition", db_name="d", tbl_name="p", part_vals=["1"])
    root = altered.sd.location.removesuffix("/dt=1")
    altered.sd.location = "somewhere"
    partitioned.call("alter_partition", db_name="d", tbl_name="p", new_part=altered)
    found = partitioned.call("get_partition", db_name="d", tbl_name="p", part_vals=["1"])
    assert found.sd.location == f"{root}/somewhere", "a whole location, which can be deleted later"
    partitioned.call("drop_table", dbname="d", name="p", deleteData=True)


def test_reads_of_partitions(partitioned: Link) -> None:
    name = {"db_name": "d", "tbl_name": "p"}
    with pytest.raises(ttypes.MetaException, match="names cannot be null"):
        partitioned.call("get_partitions_by_names", **name, names=None)
    request = ttypes.GetPartitionsByNamesRequest(db_name="", tbl_name="p", names=["dt=1"])
    with pytest.raises(ttypes.NoSuchObjectException, match="dbName is not valid"):
        partitioned.call("get_partitions_by_names_req", req=request)
    for values in (
        ttypes.PartitionValuesRequest("d", "nope", [ttypes.FieldSchema("dt", "string")]),
        ttypes.PartitionValuesRequest("d", "p", []),
    ):
        with pytest.raises(ttypes.MetaException):
            partitioned.call("get_partition_values", request=values)
    with pytest.raises(TApplicationException):
        partitioned.call("get_partitions_pspec", db_name="d", tbl_name=None, max_parts=-1)
    assert partitioned.call("get_partitions", db_name="d", tbl_name="nope", max_parts=-1) == []
    assert partitioned.call("get_partitions_ps", **name, part_vals=[], max_parts=-1) == []


def test_filters_of_partitions_of_no_table(link: Link) -> None:
    text = "Specified catalog.database.table does not exist : hive.nodatabase.notable"
    names = {"db_name": "noDatabase", "tbl_name": "noTable"}
    request = ttypes.GetPartitionsByFilterRequest("hive", "noDatabase", "noTable", 'p = "x"', -1)
    for method, arguments in (
        ("get_partitions_by_filter", {**names, "filter": 'p = "x"', "max_parts": -1}),
        ("get_partitions_by_filter_req", {"req": request}),
        ("get_num_partitions_by_filter", {**names, "filter": 'p = "x"'}),
        ("get_num_partitions_by_filter", {**names, "filter": ""}),
    ):
        with pytest.raises(ttypes.NoSuchObjectException) as raised:
            link.call(method, **arguments)
        assert raised.value.message == text, method


def with_specs(fields: list[str], mode: int | None, filters: list[str] | None) -> ttypes.GetPartitionsRequest:
    return ttypes.GetPartitionsRequest(
        dbName="d",
        tblName="p",
        projectionSpec=ttypes.GetProjectionsSpec(fields),
        filterSpec=ttypes.GetPartitionsFilterSpec(filterMode=mode, filters=filters),
    )


@pytest.mark.parametrize("filters", [None, []])
@pytest.mark.parametrize("mode", ttypes.PartitionFilterMode._VALUES_TO_NAMES)
def test_who_filters_by_nothing_does_not_get_all_partitions(
    partitioned: Link, mode: int, filters: list[str] | None
) -> None:
    partitioned.call("add_partitions", new_parts=[partition("1"), partition("2")])
    with pytest.raises(ttypes.MetaException, match="Invalid filter expressions in the filter spec"):
        partitioned.call("get_partitions_with_specs", request=with_specs(["sd.location"], mode, filters))
    # If all fields are requested, Hive ignores the filters; ours applies them.
    for fields, of_no_mode in (([], mode), (["values"], None)):
        found = partitioned.call("get_partitions_with_specs", request=with_specs(fields, of_no_mode, filters))
        assert len(found.partitionSpec[0].sharedSDPartitionSpec.partitions) == 2


@pytest.mark.parametrize("names", [[""], ["invalidPartitionName"], ["dt=3"]])
def test_names_of_no_partition_select_none(partitioned: Link, names: list[str]) -> None:
    partitioned.call("add_partition", new_part=partition("1"))
    request = with_specs(["sd.location"], ttypes.PartitionFilterMode.BY_NAMES, names)
    assert partitioned.call("get_partitions_with_specs", request=request).partitionSpec == []


def test_reads_of_partitions_under_a_limit(serve: Serve) -> None:
    """Hive counts first, and so detects what it otherwise ignores."""
    link = serve(**{"catalog.partition_request_limit": 100}).link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=partitioned_table())
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("get_partitions", db_name="d", tbl_name="nope", max_parts=-1)
    with pytest.raises(ttypes.MetaException, match="Invalid partition key & values"):
        link.call("get_partitions_ps", db_name="d", tbl_name="p", part_vals=[], max_parts=-1)
