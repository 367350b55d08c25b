"""Filters beyond the configured limits are refused, from memory and from the database alike, and counted."""

from __future__ import annotations

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Running, Serve, database, table

OWNER = "hive_filter_field_owner__"
LONG = "p = 'x' or " * 30 + "p = 'y'"
DEEP = "(" * 6 + "p = 'x'" + ")" * 6


def refused(running: Running) -> int:
    return int(running.service.metrics.database.refused_filters.value())


def ask(link: Link, text: str) -> list[ttypes.Partition]:
    found: list[ttypes.Partition] = link.call(
        "get_partitions_by_filter", db_name="d", tbl_name="t", filter=text, max_parts=-1
    )
    return found


@pytest.mark.parametrize("caches", [True, False])
def test_filters_beyond_the_limits(serve: Serve, caches: bool) -> None:
    running = serve(
        **{"catalog.filter_max_characters": 256, "catalog.filter_max_depth": 5, "cache.enabled": caches},
    )
    link = running.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    link.call("append_partition", db_name="d", tbl_name="t", part_vals=["x"])
    for _ in range(2):
        assert [one.values for one in ask(link, DEEP[1:-1])] == [["x"]]
    for number, (text, reason) in enumerate(((LONG, "filter_max_characters"), (DEEP, "filter_max_depth")), start=1):
        with pytest.raises(ttypes.MetaException, match=reason):
            ask(link, text)
        assert refused(running) == number
    with pytest.raises(ttypes.MetaException, match="filter_max_depth"):
        link.call("get_table_names_by_filter", dbname="d", filter="(" * 6 + "a = 1" + ")" * 6, max_tables=-1)
    assert refused(running) == 3


@pytest.mark.parametrize("caches", [True, False])
def test_as_many_ors_in_ors_as_spark_and_hudi_write(serve: Serve, caches: bool) -> None:
    """Two and two of a thousand values: `((p = 'a' OR p = 'b') OR p = 'c')`."""
    link = serve(**{"cache.enabled": caches}).link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    for value in "abc":
        link.call("append_partition", db_name="d", tbl_name="t", part_vals=[value])
    values = ["a", *(f"x{number}" for number in range(998)), "c"]
    for _ in range(2):
        text = "(" * 999 + "p = 'a'" + "".join(f" OR p = '{value}')" for value in values[1:])
        assert sorted(one.values for one in ask(link, text)) == [["a"], ["c"]]
    text = "(" * 999 + f"{OWNER} = 'a'" + "".join(f" OR {OWNER} = '{value}')" for value in values[1:])
    assert link.call("get_table_names_by_filter", dbname="d", filter=text, max_tables=-1) == []


@pytest.mark.parametrize("caches", [True, False])
def test_filters_that_compare_too_much(serve: Serve, caches: bool) -> None:
    running = serve(**{"catalog.filter_max_comparisons": 1_000, "cache.enabled": caches})
    link = running.link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    for value in "abcdef":
        link.call("append_partition", db_name="d", tbl_name="t", part_vals=[value])
    assert len(ask(link, "p like '%a%'")) == 1
    before = refused(running)
    with pytest.raises(ttypes.MetaException, match="filter_max_comparisons"):
        ask(link, " or ".join(f"p like '%{number}%'" for number in range(1_000)))
    with pytest.raises(ttypes.MetaException, match="filter_max_comparisons"):
        filter_text = " or ".join(f"{OWNER} like '{number}.*'" for number in range(1_001))
        link.call("get_table_names_by_filter", dbname="d", filter=filter_text, max_tables=-1)
    assert refused(running) > before


def test_parameters_in_a_filter_of_tables_are_counted(serve: Serve) -> None:
    link = serve().link()
    text = " or ".join(f"hive_filter_field_params__k{number} = 'x'" for number in range(20_000))
    with pytest.raises(ttypes.MetaException, match="1000 parameters"):
        link.call("get_table_names_by_filter", dbname="default", filter=text, max_tables=-1)


@pytest.mark.parametrize("pattern", ["includeParamKeyPattern", "excludeParamKeyPattern"])
@pytest.mark.parametrize("caches", [True, False])
def test_a_pattern_of_parameters_is_as_short_as_one_of_names(serve: Serve, pattern: str, caches: bool) -> None:
    link = serve(**{"limits.name_pattern_characters": 256, "cache.enabled": caches}).link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t"))
    for _ in range(2):
        for characters in (256, 257):
            sent = {pattern: "%" * characters}
            requested = ttypes.GetPartitionsRequest("hive", "d", "t", projectionSpec=ttypes.GetProjectionsSpec(**sent))
            plain = ttypes.PartitionsRequest("hive", "d", "t", **sent)
            for method, given in (
                ("get_partitions_with_specs", {"request": requested}),
                ("get_partitions_req", {"req": plain}),
            ):
                if characters > 256:
                    with pytest.raises(ttypes.MetaException, match=r"limits\.name_pattern_characters"):
                        link.call(method, **given)
                else:
                    link.call(method, **given)
