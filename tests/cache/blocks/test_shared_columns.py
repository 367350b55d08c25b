"""Equal columns of tables are held once, and tables stay equal to what was read."""

from __future__ import annotations

import copy

from hms_cache.cache.process_memory import SharedColumns, give_back_freed_memory
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, create_database, encoded, table


def test_equal_columns_of_two_tables_are_one_struct() -> None:
    shared = SharedColumns()
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


def test_what_a_caller_does_with_its_answer_changes_no_other_table(servers: MakeServer) -> None:
    here = servers()
    create_database(here.store, "d")
    for name in ("one", "two"):
        here.store.create_table(table("d", name))
    for name in ("one", "two"):
        here.store.get_table(CATALOG, "d", name)
    changed = copy.deepcopy(here.store.get_table(CATALOG, "d", "one"))
    changed.sd.cols[0].comment = "changed"
    here.store.alter_table(CATALOG, "d", "one", changed)
    assert here.store.get_table(CATALOG, "d", "one").sd.cols[0].comment == "changed"
    two = here.store.get_table(CATALOG, "d", "two")
    assert encoded(two) == encoded(here.objects.get_table(CATALOG, "d", "two"))
    assert two.sd.cols[0].comment != "changed"


def test_giving_memory_back_is_harmless_everywhere() -> None:
    kept = [bytes(100) for _ in range(10_000)]
    give_back_freed_memory()
    assert all(one == bytes(100) for one in kept)
