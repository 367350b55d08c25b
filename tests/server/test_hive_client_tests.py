"""Refusals and special cases that the tests of Hive's own client look at."""

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
        link.call("get_table_objects_by_name_req", req=by_name([], include="foo"))


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
