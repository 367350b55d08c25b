"""How replies and exceptions name objects that a request spells differently than they are stored.

Hive 4.0.1 gave all of these answers (`tests/differential/scenarios/names.py` repeats the requests); clients parse the
texts.
"""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.thrift_gen.base import ThriftException
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, database, table

PLACES = [
    ("d", "None", "hive.d.None"),
    ("D", "NONE", "hive.D.NONE"),
    ("@HIVE#D", " None ", "HIVE.D. None "),
    ("d", "ТАБЛИЦА", "hive.d.ТАБЛИЦА"),
    ("NoDb", "T", "hive.NoDb.T"),
    ("@NoCat#D", "T", "NoCat.D.T"),
]
"""Database and table of a call, and how they are told."""


@pytest.fixture(params=["memory", "store"])
def link(serve: Serve, request: pytest.FixtureRequest) -> Link:
    """A client with the tables d.t and d.p, which is answered from memory or not."""
    link = serve(**{"cache.enabled": request.param == "memory"}).link()
    link.call("set_ugi", user_name="client", group_names=[])
    link.call("create_database", database=database("d"))
    for name in ("t", "p"):
        link.call("create_table", tbl=table("d", name))
    return link


def refused(link: Link, method: str, **arguments: Any) -> tuple[type[Exception], str]:
    """Type and text of what a call raises."""
    with pytest.raises(ThriftException) as raised:
        link.call(method, **arguments)
    return type(raised.value), raised.value.message


@pytest.mark.parametrize(("place", "of", "named"), PLACES)
def test_a_table_that_is_not_there_is_named_as_it_is_sent(link: Link, place: str, of: str, named: str) -> None:
    for _ in range(2):  # the second time, complete lists of names may be used
        assert refused(link, "get_table", dbname=place, tbl_name=of) == (
            t.NoSuchObjectException,
            f"{named} table not found",
        )
        link.call("get_all_tables", db_name=place)
    unknown = (t.UnknownTableException, f"{named} table not found")
    assert refused(link, "get_fields", db_name=place, table_name=of) == unknown
    assert refused(link, "get_schema", db_name=place, table_name=f"{of}.column") == unknown
    missing = (t.NoSuchObjectException, f"Unable to get partition because {named} does not exist")
    assert refused(link, "get_partition", db_name=place, tbl_name=of, part_vals=["1"]) == missing
    assert refused(link, "drop_partition", db_name=place, tbl_name=of, part_vals=["1"], deleteData=False) == missing
    in_database = named.partition(".")[2]
    assert refused(link, "get_partition_by_name", db_name=place, tbl_name=of, part_name="p=1") == (
        t.NoSuchObjectException,
        f"{in_database} table not found",
    )


@pytest.mark.parametrize(("place", "of", "named"), PLACES)
def test_some_texts_name_it_as_it_would_be_stored(link: Link, place: str, of: str, named: str) -> None:
    stored = ".".join(part.strip().lower() for part in named.split("."))
    specified = (t.NoSuchObjectException, f"Specified catalog.database.table does not exist : {stored}")
    filtered = {"db_name": place, "tbl_name": of, "filter": "p = '1'"}
    assert refused(link, "get_partitions_by_filter", **filtered, max_parts=-1) == specified
    assert refused(link, "get_num_partitions_by_filter", **filtered) == specified
    assert refused(link, "get_table_column_statistics", db_name=place, tbl_name=of, col_name="a") == specified
    of_names = {"db_name": place, "tbl_name": of, "part_vals": ["1"], "max_parts": -1}
    assert refused(link, "get_partition_names_ps", **of_names) == (
        t.NoSuchObjectException,
        f"{stored} table not found",
    )


@pytest.mark.parametrize(
    ("place", "named"),
    [("NoDb", "hive.NoDb"), ("@HIVE#NoDb", "HIVE.NoDb"), (" NoDb", "hive. NoDb"), ("@NoCat#D", "NoCat.D")],
)
def test_a_database_that_is_not_there_is_named_as_it_is_sent(link: Link, place: str, named: str) -> None:
    missing = (t.NoSuchObjectException, f"database {named}")
    for _ in range(2):
        assert refused(link, "get_database", name=place) == missing
        link.call("get_all_databases")
    assert refused(link, "drop_database", name=place, deleteData=False, cascade=False) == missing
    assert refused(link, "alter_database", dbname=place, db=database("x")) == missing
    assert refused(link, "drop_table", dbname=place, name="T", deleteData=False) == missing
    new = t.Function("F", place, "c", ownerType=1, functionType=1, resourceUris=[])
    assert refused(link, "create_function", func=new) == missing


@pytest.mark.parametrize("name", ["T", " t ", "t"])
@pytest.mark.parametrize("place", ["D", "d"])
def test_what_exists_already_is_named_as_it_is_sent(link: Link, place: str, name: str) -> None:
    told = f"Table hive.{place}.{name} already exists"
    assert refused(link, "create_table", tbl=table(place, name)) == (t.AlreadyExistsException, told)
    exists = f"Database {place} already exists"
    assert refused(link, "create_database", database=database(place)) == (t.AlreadyExistsException, exists)


def test_functions_are_named_as_they_are_sent(link: Link) -> None:
    new = {"className": "c", "ownerType": 1, "functionType": 1, "resourceUris": []}
    link.call("create_function", func=t.Function("Mixed", "D", **new))
    made = link.call("get_function", dbName="d", funcName="MIXED")
    assert (made.dbName, made.functionName) == ("d", "mixed")
    exists = (t.AlreadyExistsException, "Function MIXED already exists")
    assert refused(link, "create_function", func=t.Function("MIXED", "D", **new)) == exists
    missing = (t.NoSuchObjectException, "Function NoNe does not exist")
    assert refused(link, "drop_function", dbName="D", funcName="NoNe") == missing
    gone = (t.MetaException, "function none doesn't exist")
    assert refused(link, "alter_function", dbName="D", funcName="NoNe", newFunc=t.Function("x", "D", **new)) == gone


def test_added_partitions_are_answered_with_the_names_that_were_sent(link: Link) -> None:
    new = t.Partition(["1"], "D", "T", sd=table("d", "t").sd, parameters={})
    added = link.call("add_partition", new_part=new)
    assert (added.dbName, added.tableName) == ("D", "T")
    appended = link.call("append_partition", db_name="D", tbl_name="T", part_vals=["2"])
    assert (appended.dbName, appended.tableName) == ("D", "T")
    for stored in link.call("get_partitions", db_name="D", tbl_name="T", max_parts=-1):
        assert (stored.dbName, stored.tableName, stored.catName) == ("d", "t", "hive")


def test_memory_keeps_nothing_of_how_a_name_was_spelled(serve: Serve) -> None:
    running = serve()
    link = running.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    blanks = " " * 100_000
    assert link.call("get_table", dbname="D", tbl_name=f"{blanks}T{blanks}").tableName == "t"
    for name in ("None", "NONE", "none"):
        assert refused(link, "get_table", dbname="d", tbl_name=name)[1] == f"hive.d.{name} table not found"
