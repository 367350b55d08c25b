"""Names with characters that a column of MySQL does not have hide none of the others: in our own schema those beyond
the basic plane, in Hive's those beyond latin1.

latin1 there is Windows' code page 1252: it has the euro, dashes and quotation marks, and not the control characters
that ISO 8859-1 has in their place.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.object_store import ObjectStore
from hms_cache.thrift_gen.hive_metastore.ttypes import UnknownDBException
from tests.store.partitions.catalog import PartitionCatalog, partition

T = TableName("hive", "d", "t")
KEPT = ("plain", "é", "5–10 €", "“x”")


@pytest.mark.parametrize("other", ["日本", "\x80", "\x9f", "\U0001f600"])
def test_they_hide_no_others(database_of_any_schema: Database, tmp_path: Path, other: str) -> None:
    catalog = PartitionCatalog(database_of_any_schema, tmp_path)
    catalog.create_table()
    added = [partition(value, "1") for value in KEPT]
    catalog.writes.add_partitions(T, added)
    names = catalog.reads.get_partition_names(
        PartitionQuery(T, ByNames(tuple(f"dt={value}/hr=1" for value in (*KEPT, other))))
    )
    assert sorted(names) == sorted(f"dt={value}/hr=1" for value in KEPT)
    again = catalog.writes.add_partitions(T, added, if_not_exists=True)
    assert not again
    dropped = catalog.writes.drop_partitions(
        T, ByNames(tuple(f"dt={value}/hr=1" for value in (*KEPT, other))), delete_data=False, if_exists=True
    )
    assert len(dropped) == len(KEPT)


@pytest.mark.parametrize("other", ["日本", "\x80", "\U0001f600"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dt = '5–10 €' or dt = '{other}'", ["5–10 €"]),
        ("dt in ('plain', 'é', '{other}')", ["plain", "é"]),
        ("dt != '{other}'", [*KEPT]),
        ("dt = 'plain' and hr = 1 or dt = '{other}' and hr = 1", ["plain"]),
        ("dt like 'pl%' or dt like '{other}%'", ["plain"]),
        ("dt >= 'é' and dt != '{other}'", ["é", "“x”"]),
        ("dt < '{other}' or dt = 'plain'", None),
    ],
)
def test_they_hide_none_of_a_filter(
    database_of_any_schema: Database, tmp_path: Path, other: str, text: str, wanted: list[str] | None
) -> None:
    catalog = PartitionCatalog(database_of_any_schema, tmp_path)
    catalog.create_table()
    catalog.writes.add_partitions(T, [partition(value, "1") for value in KEPT])
    if wanted is None:
        wanted = [value for value in KEPT if value < other or value == "plain"]
    names = catalog.reads.get_partition_names(PartitionQuery(T, ByFilter(text.replace("{other}", other))))
    assert sorted(names) == sorted(f"dt={value}/hr=1" for value in wanted)


@pytest.mark.parametrize("most", range(len(KEPT) + 2))
def test_the_first_of_them_are_the_first_by_code_point(
    database_of_any_schema: Database, tmp_path: Path, most: int
) -> None:
    """As in memory. By its bytes in latin1, a quotation mark sorts before `é`."""
    catalog = PartitionCatalog(database_of_any_schema, tmp_path)
    catalog.create_table()
    catalog.writes.add_partitions(T, [partition(value, "1") for value in KEPT])
    first = [f"dt={value}/hr=1" for value in sorted(KEPT)][:most]
    query = PartitionQuery(T, AllPartitions(), most)
    assert catalog.reads.get_partition_names(query) == first
    assert [f"dt={one.values[0]}/hr=1" for one in catalog.reads.get_partitions(query).partitions] == first


@pytest.mark.parametrize("other", ["日本", "\x80", "\U0001f600"])
def test_nothing_is_there_of_such_a_name(database_of_any_schema: Database, tmp_path: Path, other: str) -> None:
    """MySQL's own answer is an error about collations."""
    catalog = PartitionCatalog(database_of_any_schema, tmp_path)
    catalog.create_table()
    objects = ObjectStore(catalog.context).reads
    assert objects.tables.get_table_names(DatabaseName("hive", other)) == []
    assert objects.tables.get_materialized_view_names("hive", other) == []
    assert objects.constraints.get_foreign_keys("hive", (None, None), (other, None)) == []
    with pytest.raises(UnknownDBException):
        objects.tables.get_tables(DatabaseName("hive", other), ["t"])
