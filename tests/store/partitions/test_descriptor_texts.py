"""One text contains the values of thirteen columns of a descriptor and its serde."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions, ByNames, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.partitions import reads as partition_reads
from hms_cache.store.rows.descriptor_texts import DESCRIPTOR_TEXT, values_of_text
from hms_cache.store.rows.storage_descriptor_statements import DESCRIPTOR_COLUMNS
from hms_cache.store.schema import SDS, SERDES
from tests.databases import count_statements
from tests.store.partitions.catalog import PartitionCatalog, partition

T = TableName("hive", "d", "t")
TEXTS = (None, "", " ", "a", "a ", "A", "\x02", "é", "1", "it's %s", "\\")
NUMBERS = (None, 0, -1, 7)
TEXT_COLUMNS = (SDS.c.INPUT_FORMAT, SDS.c.OUTPUT_FORMAT, SERDES.c.NAME, SERDES.c.SLIB, SERDES.c.SERIALIZER_CLASS)
SEED = random.randrange(2**32)


@pytest.fixture
def catalog(initialized_database: Database, tmp_path: Path) -> PartitionCatalog:
    found = PartitionCatalog(initialized_database, tmp_path, files="leave")
    found.create_table()
    return found


def _store(catalog: PartitionCatalog, rows: list[dict[str, Any]]) -> None:
    """Creates as many partitions, whose descriptors and serdes have these values, bypassing the store's rules."""
    catalog.writes.add_partitions(T, [partition(f"{number}", "1") for number in range(len(rows))])
    ids = select(SDS.c.SD_ID, SDS.c.SERDE_ID).where(SDS.c.LOCATION.like("%hr=1")).order_by(SDS.c.SD_ID)
    with catalog.database.write_engine.begin() as connection:
        for row, (sd_id, serde_id) in zip(rows, connection.execute(ids).all(), strict=True):
            for table, key in ((SDS, SDS.c.SD_ID == sd_id), (SERDES, SERDES.c.SERDE_ID == serde_id)):
                values = {
                    name: value
                    for name, value in row.items()
                    if name in table.c and not (table is SERDES and name == "SERDE_ID")
                }
                connection.execute(update(table).where(key).values(values))


def _rows(values: list[str | None], chance: random.Random) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{column.name: value} for column, value in itertools.product(TEXT_COLUMNS, values)]
    for row in rows:
        row["NUM_BUCKETS"], row["SERDE_TYPE"] = chance.choice((0, -1, 7)), chance.choice(NUMBERS)
        row["IS_COMPRESSED"], row["IS_STOREDASSUBDIRECTORIES"] = chance.random() < 0.5, chance.random() < 0.5
    rows[0]["CD_ID"] = None
    rows[1]["SERDE_ID"] = None
    return rows


def test_it_says_what_the_columns_say(catalog: PartitionCatalog) -> None:
    print(f"seed {SEED}")
    _store(catalog, _rows(list(TEXTS), random.Random(SEED)))
    source = SDS.outerjoin(SERDES, SERDES.c.SERDE_ID == SDS.c.SERDE_ID)
    with catalog.database.loading() as connection:
        rows = connection.execute(select(DESCRIPTOR_TEXT, *DESCRIPTOR_COLUMNS).select_from(source)).all()
    assert len(rows) > len(TEXTS) * len(TEXT_COLUMNS)
    for text, *columns in rows:
        assert values_of_text(text) == tuple(columns)


def test_a_value_with_the_separator_is_read_from_its_column(
    catalog: PartitionCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each combination that could be confused with another: a separator at an end, in the middle, beside an absent
    value."""
    values = ["\x01", "a\x01", "\x01a", "a\x01b", "a", None]
    _store(catalog, _rows([*values, *values], random.Random(SEED)))

    names = tuple(catalog.reads.get_partition_names(PartitionQuery(T)))
    monkeypatch.setattr(partition_reads, "FEW", len(names))
    by_columns = catalog.reads.get_partitions(PartitionQuery(T, ByNames(names))).partitions
    with count_statements(catalog.database) as seen:
        assert catalog.reads.get_partitions(PartitionQuery(T)).partitions == by_columns
    grouped_by_the_server = seen.count
    assert {one.sd.inputFormat for one in by_columns} >= set(values)
    catalog.writes.drop_partitions(T, AllPartitions(), delete_data=False)
    _store(catalog, _rows(["a", None], random.Random(SEED)))
    with count_statements(catalog.database) as seen:
        catalog.reads.get_partitions(PartitionQuery(T))
    assert seen.count == grouped_by_the_server - 1
