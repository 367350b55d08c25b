"""Partitions selected and dropped by Hive's serialized expressions."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import AllPartitions, ByAnyExpression, ByExpression, PartitionQuery
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException
from tests.expressions.recorded import DATA, HiveAnswers
from tests.store.partitions.catalog import PartitionCatalog, partition

T = ("hive", "d", "t")


@pytest.fixture(scope="module")
def answers() -> HiveAnswers:
    """Expressions that Hive 4.0.1 serialized and evaluated over random partitions."""
    with gzip.open(Path(DATA) / "hive-4.0.1.tsv.gz", "rt", encoding="utf-8") as lines:
        return HiveAnswers.from_lines(lines)


def filled(catalog: PartitionCatalog, answers: HiveAnswers) -> dict[tuple[str, ...], set[int]]:
    """The partitions of the recording in a table, and the rows of it that each represents."""
    catalog.create_table(keys=answers.keys)
    rows: dict[tuple[str, ...], set[int]] = {}
    for index, row in enumerate(answers.rows):
        rows.setdefault(tuple(row), set()).add(index)
    catalog.writes.add_partitions(TableName(*T), [partition(*row) for row in rows])
    return rows


def test_reads_select_at_least_what_hive_selects(catalog: PartitionCatalog, answers: HiveAnswers) -> None:
    rows = filled(catalog, answers)
    decided = 0
    for expression, unknown, kept, text in answers.expressions[:120]:
        if unknown not in ("0", "false"):
            continue
        selection = ByExpression(expression, "__HIVE_DEFAULT_PARTITION__")
        answer = catalog.reads.get_partitions(PartitionQuery(TableName(*T), selection))
        found = {index for one in answer.partitions for index in rows[tuple(one.values)]}
        assert found >= kept, text
        if not answer.has_unknown:
            assert found == kept, text
            decided += 1
        assert catalog.reads.get_partition_count(PartitionQuery(TableName(*T), selection)) == len(answer.partitions)
    assert decided >= 30


def test_what_is_not_understood_is_read_whole_and_not_dropped(catalog: PartitionCatalog, answers: HiveAnswers) -> None:
    filled(catalog, answers)
    count = catalog.reads.get_partition_count(PartitionQuery(TableName(*T)))
    answer = catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByExpression(b"no expression")))
    assert (answer.has_unknown, len(answer.partitions)) == (True, count)
    assert (
        len(catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByExpression(b"no expression"), 3)).partitions)
        == 3
    )
    for if_exists in (True, False):
        with pytest.raises(MetaException, match="Unexpected unknown partitions to drop"):
            catalog.writes.drop_partitions(
                TableName(*T), ByExpression(b"no expression"), delete_data=False, if_exists=if_exists
            )
    assert catalog.reads.get_partition_count(PartitionQuery(TableName(*T))) == count


def test_plain_text_in_place_of_an_expression(sqlite_catalog: PartitionCatalog) -> None:
    """As sent by MSCK's connections."""
    catalog = sqlite_catalog
    catalog.create_table()
    catalog.writes.add_partitions(TableName(*T), [partition("a", str(hour)) for hour in range(5)])
    text = ByExpression(b"hr >= 3", plain_text=True)
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), text)) == ["dt=a/hr=3", "dt=a/hr=4"]
    assert len(catalog.writes.drop_partitions(TableName(*T), text, delete_data=True)) == 2
    with pytest.raises(NoSuchObjectException, match="Some partitions to drop are missing"):
        catalog.writes.drop_partitions(TableName(*T), text, delete_data=True)
    assert catalog.writes.drop_partitions(TableName(*T), text, delete_data=True, if_exists=True) == []
    with pytest.raises(MetaException):
        catalog.reads.get_partitions(PartitionQuery(TableName(*T), ByExpression(b"hr >= >=", plain_text=True)))


def test_several_expressions_take_as_many_statements_as_one(sqlite_catalog: PartitionCatalog) -> None:
    catalog = sqlite_catalog
    catalog.create_table()
    counts = []
    for count in (1, 60):
        catalog.writes.add_partitions(TableName(*T), [partition(str(day), "0") for day in range(60)])
        requested = ByAnyExpression(
            tuple(ByExpression(f"dt = '{day}'".encode(), plain_text=True) for day in range(count))
        )
        before = catalog.statements()
        assert len(catalog.writes.drop_partitions(TableName(*T), requested, delete_data=False)) == count
        counts.append(catalog.statements() - before)
        catalog.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=False)
    assert counts[0] == counts[1]
