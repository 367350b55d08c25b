"""A range of a table's names contains each partition whose name is in it, whatever the database's own order of
texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update

from hms_cache.metadata.name_ranges import EVERY_NAME, NameRange, may_begin_range
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_read, run_write
from hms_cache.store.partitions.reads import partitions_of_rows
from hms_cache.store.partitions.windows import read_partition_window
from hms_cache.store.schema import PARTITIONS
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.databases import count_statements
from tests.store.partitions.catalog import PartitionCatalog, partition

T = TableName("hive", "d", "t")
VALUES = ["d1", "d1 x", "d1-", "d1~", "d10", "d2", "d2 ", "dä", "D1", "e", "e%", "zz", "z", "~"]
BEYOND_ASCII = ["dÿ", "d€", "d€1", "é", "ÿ", "€", "œ", "“"]
"""In latin1, in which Hive's script for MySQL has names, their order is another one than by code point."""


@pytest.fixture
def catalog(database_of_any_schema: Database, tmp_path: Path) -> PartitionCatalog:
    """Names that databases sort in different orders, beside those of another table; one has a character that writers
    usually escape."""
    made = PartitionCatalog(database_of_any_schema, tmp_path, files="leave")
    made.create_table()
    made.create_table("other")
    made.writes.add_partitions(T, [partition(value, "1") for value in (*VALUES, *BEYOND_ASCII)])
    made.writes.add_partitions(
        TableName("hive", "d", "other"), [partition(value, "0", table="other") for value in VALUES[::2]]
    )
    changed = update(PARTITIONS).where(PARTITIONS.c.PART_NAME == name_of(made, "d10"))
    run_write(made.database, lambda work: work.connection.execute(changed.values(PART_NAME="dt=d1\x01/hr=1")))
    return made


def name_of(catalog: PartitionCatalog, value: str) -> str:
    return next(name for name in all_names(catalog) if name.split("/")[0].endswith(f"={value}"))


def all_names(catalog: PartitionCatalog) -> list[str]:
    statement = select(PARTITIONS.c.PART_NAME)
    found = run_read(catalog.database, lambda connection: connection.execute(statement).scalars().all())
    return sorted(name for name in found if name.endswith("1"))


def window(catalog: PartitionCatalog, within: NameRange, around: str, most: int) -> tuple[NameRange, list[str]] | None:
    with catalog.database.snapshot():
        found = read_partition_window(catalog.context, T, within, around, most)
        return (found[0], [name for page in found[1] for name in page.names]) if found is not None else None


def test_a_window_has_all_partitions_in_its_range(catalog: PartitionCatalog) -> None:
    names = all_names(catalog)
    assert len(names) == len(VALUES) + len(BEYOND_ASCII)
    plain = [name for name in names if may_begin_range(name)]
    ranges = [EVERY_NAME, NameRange(plain[2], plain[8]), NameRange("", plain[5]), NameRange(plain[5], None)]
    for within in ranges:
        inside = [name for name in names if within.holds(name)]
        for around in ["", "a", *names[::2], "dt=b", "dt=d1/", "z", "☃"]:
            for most in (2, 5, 100):
                found = window(catalog, within, around, most)
                if found is None:
                    continue
                covered, got = found
                assert got == [name for name in inside if covered.holds(name)], (within, around, most)
                assert len(got) <= most
                assert within.holds(covered.first) or covered.first == within.first
                assert covered.end == within.end or (covered.end is not None and within.holds(covered.end))
                if most == 100:
                    assert covered == within
                if may_begin_range(around) and within.holds(around):
                    assert covered.first <= around


def test_the_first_of_all_are_the_first_by_code_point(catalog: PartitionCatalog) -> None:
    names = all_names(catalog)
    for most in range(len(names) + 2):
        assert catalog.reads.get_partition_names(PartitionQuery(T, max_parts=most)) == names[:most]


def side_by_side(catalog: PartitionCatalog, most: int) -> list[str]:
    """The names in all ranges of this size, each of which begins where the previous one ends."""
    seen: list[str] = []
    first = ""
    while True:
        found = window(catalog, NameRange(first, None), first, most)
        assert found is not None
        covered, got = found
        assert covered.first == first
        seen += got
        if covered.end is None:
            return seen
        first = covered.end


def test_windows_side_by_side_have_every_partition_once(catalog: PartitionCatalog) -> None:
    assert side_by_side(catalog, 8) == all_names(catalog)


def test_a_window_has_the_partitions_as_other_reads_show_them(catalog: PartitionCatalog) -> None:
    with catalog.database.snapshot():
        found = read_partition_window(catalog.context, T, EVERY_NAME, name_of(catalog, "e"), 6)
        assert found is not None
        covered, pages = found
        got = [one for page in pages for one in partitions_of_rows(page)]
    inside = [name for name in all_names(catalog) if covered.holds(name)]
    assert got == catalog.reads.get_partitions(PartitionQuery(T, ByNames(tuple(inside)))).partitions


def test_a_window_costs_a_fixed_number_of_statements(catalog: PartitionCatalog) -> None:
    def statements(most: int) -> int:
        window(catalog, EVERY_NAME, name_of(catalog, "e"), most)
        with count_statements(catalog.database) as seen:
            window(catalog, EVERY_NAME, name_of(catalog, "e"), most)
        return seen.count

    assert statements(3) == statements(12)


def test_a_table_that_is_gone_has_none(catalog: PartitionCatalog) -> None:
    with catalog.database.snapshot(), pytest.raises(NoSuchObjectException):
        read_partition_window(catalog.context, TableName("hive", "d", "nowhere"), EVERY_NAME, "", 5)
