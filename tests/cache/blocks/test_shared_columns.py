"""Equal parts of tables are stored once, and tables remain equal to what was read."""

from __future__ import annotations

import copy
import gc
import tracemalloc

import pytest

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.warming.process_memory import MAX_SHARED_BYTES, SharedParts, give_back_freed_memory
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, create_database, encoded_value, table


def test_equal_columns_of_two_tables_are_one_struct() -> None:
    shared = SharedParts()
    tables = [table("d", name, (("p", "string"),)) for name in ("one", "two")]
    for one in tables:
        one.sd.cols = [ttypes.FieldSchema("a", "bigint", None), ttypes.FieldSchema("b", "string", one.tableName)]
    before = copy.deepcopy(tables)
    for one in tables:
        shared.share(one)
    assert tables == before
    assert tables[0].sd.cols[0] is tables[1].sd.cols[0]
    assert tables[0].sd.cols[1] is not tables[1].sd.cols[1]
    assert tables[0].partitionKeys[0] is tables[1].partitionKeys[0]


def test_equal_descriptions_of_the_format_are_one_struct_and_others_are_not() -> None:
    shared = SharedParts()
    tables = [table("d", name) for name in ("one", "two", "three")]
    for number, one in enumerate(tables):
        one.sd.serdeInfo = ttypes.SerDeInfo(None, "serde", {"a": "1", "b": "2"})
        one.sd.skewedInfo = ttypes.SkewedInfo(["x"], [["1"]] if number < 2 else [["2"]], {})
        one.sd.bucketCols, one.sd.sortCols, one.sd.parameters = [], [], {}
    tables[2].sd.serdeInfo.parameters = {"b": "2", "a": "1"}  # equal as a struct, but in another order in the answer
    tables[1].sd.bucketCols = ["x"]
    before, answers = copy.deepcopy(tables), [encoded_value(one) for one in tables]
    for one in tables:
        shared.share(one)
    assert tables == before and [encoded_value(one) for one in tables] == answers
    assert tables[0].sd.serdeInfo is tables[1].sd.serdeInfo
    assert tables[0].sd.serdeInfo is not tables[2].sd.serdeInfo
    assert tables[0].sd.skewedInfo is tables[1].sd.skewedInfo
    assert tables[0].sd.skewedInfo is not tables[2].sd.skewedInfo
    assert tables[0].sd.bucketCols is tables[2].sd.bucketCols


def test_what_a_caller_does_with_its_answer_changes_no_other_table(servers: MakeServer) -> None:
    here = servers()
    create_database(here.store, "d")
    for name in ("one", "two"):
        here.store.writes.tables.create_table(table("d", name))
    for name in ("one", "two"):
        here.store.reads.tables.get_table(TableName(CATALOG, "d", name))
    changed = copy.deepcopy(here.store.reads.tables.get_table(TableName(CATALOG, "d", "one")))
    changed.sd.cols[0].comment = "changed"
    here.store.writes.tables.alter_table(TableName(CATALOG, "d", "one"), changed)
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "one")).sd.cols[0].comment == "changed"
    two = here.store.reads.tables.get_table(TableName(CATALOG, "d", "two"))
    assert encoded_value(two) == encoded_value(here.objects.reads.tables.get_table(TableName(CATALOG, "d", "two")))
    assert two.sd.cols[0].comment != "changed"


@pytest.mark.parametrize("length", [10_000, 100_000])
@pytest.mark.parametrize("what", ["columns", "serdes"])
def test_what_is_remembered_to_be_shared_is_bounded(what: str, length: int) -> None:
    """P11: otherwise it would remain after its tables are gone, outside of any budget."""
    shared = SharedParts()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2 * MAX_SHARED_BYTES // 10_000):
            one, text = table("d", "t"), f"{number}".ljust(length, "x")
            if what == "columns":
                one.sd.cols = [ttypes.FieldSchema("a", text, None)]
            else:
                one.sd.serdeInfo = ttypes.SerDeInfo(None, "serde", {"avro.schema.literal": text})
            expected = copy.deepcopy(one)
            shared.share(one)
            assert one == expected
        most = 3 * MAX_SHARED_BYTES if length == 10_000 else 10 * length
        assert tracemalloc.get_traced_memory()[0] - before < most
    finally:
        tracemalloc.stop()


def test_the_serdes_of_a_table_that_changes_are_not_all_kept(servers: MakeServer) -> None:
    here = servers(CacheOptions(budget_bytes=1_500_000))
    create_database(here.store, "d")
    name = TableName(CATALOG, "d", "t")
    here.store.writes.tables.create_table(table("d", "t"))
    kept = []
    for number in range(60):
        changed = copy.deepcopy(here.objects.reads.tables.get_table(name))
        changed.sd.serdeInfo.parameters = {"avro.schema.literal": f"{number}".ljust(100_000, "x")}
        here.store.writes.tables.alter_table(name, changed)
        here.store.reads.tables.get_table(name)
        if number in (10, 59):
            gc.collect()
            kept.append(_serdes())
    assert kept[1] <= kept[0] + 2


def _serdes() -> int:
    """Live structs with this literal."""
    return sum(
        type(one) is ttypes.SerDeInfo and len((one.parameters or {}).get("avro.schema.literal", "")) == 100_000
        for one in gc.get_objects()
    )


def test_giving_memory_back_is_harmless_everywhere() -> None:
    kept = [bytes(100) for _ in range(10_000)]
    give_back_freed_memory()
    assert all(one == bytes(100) for one in kept)
