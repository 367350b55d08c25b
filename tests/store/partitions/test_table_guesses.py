"""What was last seen of a table is only assumed: however the table has changed since, answers are those of a store
without assumptions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import delete, select, update

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.engine.read_plans import execute_plan
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.partition_store import StoredPartitions
from hms_cache.store.partitions import table_guesses
from hms_cache.store.partitions.partitioned_tables import partitioned_table_plan
from hms_cache.store.partitions.table_guesses import TableGuesses
from hms_cache.store.schema import PARTITION_KEYS, TABLE_PARAMS, TBLS
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException
from tests.databases import count_statements
from tests.store.partitions.catalog import PartitionCatalog, partition

T = TableName("hive", "d", "t")

SELECTIONS: list[PartitionSelection] = [
    AllPartitions(),
    ByNames(("dt=a/hr=1", "dt=b/hr=2", "x=a/hr=1")),
    ByValues(("a", "1")),
    ByPartialValues(("a",)),
    ByPartialValues(("", "2")),
    ByFilter('dt = "a"'),
    ByFilter("hr > 1"),
    ByFilter('x = "a"'),
]


def rename_away(catalog: PartitionCatalog) -> None:
    run_write(catalog.database, lambda one: _set(one, {"TBL_NAME": "other"}))


def other_keys(catalog: PartitionCatalog) -> None:
    """Another table of the same name, whose partitions have other names."""
    rename_away(catalog)
    catalog.create_table(keys=(("x", "string"), ("hr", "int")))
    catalog.writes.add_partitions(T, [partition("a", "1"), partition("c", "3")])


def same_again(catalog: PartitionCatalog) -> None:
    """Another table of the same name that looks the same."""
    rename_away(catalog)
    catalog.create_table()
    catalog.writes.add_partitions(T, [partition("a", "7")])


def other_type(catalog: PartitionCatalog) -> None:
    def change(transaction: WriteTransaction) -> None:
        keys = PARTITION_KEYS.c
        is_hour = keys.PKEY_NAME == "hr"
        transaction.connection.execute(update(PARTITION_KEYS).where(is_hour).values(PKEY_TYPE="string"))

    run_write(catalog.database, change)


def transactional(catalog: PartitionCatalog) -> None:
    def change(transaction: WriteTransaction) -> None:
        connection = transaction.connection
        table_id = connection.execute(select(TBLS.c.TBL_ID).where(TBLS.c.TBL_NAME == "t")).scalar_one()
        values = {"TBL_ID": table_id, "PARAM_KEY": "transactional", "PARAM_VALUE": "true"}
        connection.execute(delete(TABLE_PARAMS).where(TABLE_PARAMS.c.PARAM_KEY == "transactional"))
        connection.execute(TABLE_PARAMS.insert().values(values))

    run_write(catalog.database, change)


def nothing(catalog: PartitionCatalog) -> None:
    """It is unchanged."""


def _set(transaction: WriteTransaction, values: dict[str, str]) -> None:
    transaction.connection.execute(update(TBLS).where(TBLS.c.TBL_NAME == "t").values(**values))


def outcome(fetch: Callable[[], object]) -> object:
    try:
        return fetch()
    except (MetaException, NoSuchObjectException) as error:
        return type(error), error.message


def answers(reads: StoredPartitions, selection: PartitionSelection) -> list[object]:
    return [
        outcome(lambda: reads.get_partitions(PartitionQuery(T, selection))),
        outcome(lambda: reads.get_partitions(PartitionQuery(T, selection, 1))),
        outcome(lambda: reads.get_partition_names(PartitionQuery(T, selection))),
        outcome(lambda: reads.get_partition_names(PartitionQuery(T, selection), order="1:-")),
        outcome(lambda: reads.get_partition_count(PartitionQuery(T, selection))),
        outcome(lambda: reads.get_partition_values(PartitionQuery(T, selection), ["hr"])),
    ]


@pytest.mark.parametrize("change", [nothing, rename_away, other_keys, same_again, other_type, transactional])
def test_a_wrong_guess_changes_no_answer(change: Callable[[PartitionCatalog], None], catalog: PartitionCatalog) -> None:
    catalog.create_table()
    catalog.writes.add_partitions(T, [partition("a", "1"), partition("a", "2"), partition("b", "2")])
    with catalog.database.loading() as connection:
        guessed = execute_plan(connection, partitioned_table_plan(T))
    change(catalog)
    for selection in SELECTIONS:
        expected = answers(StoredPartitions(catalog.context), selection)
        known = TableGuesses()
        reads = StoredPartitions(catalog.context, known)
        found = []
        for at in range(len(expected)):
            known.remember(T, guessed)
            found.append(answers(reads, selection)[at])
        assert found == expected, selection


def test_a_guess_saves_a_round_trip(catalog: PartitionCatalog) -> None:
    if catalog.database.is_sqlite:
        pytest.skip("there are none")
    catalog.create_table()
    catalog.writes.add_partitions(T, [partition("a", "1")])
    counts = []
    for _ in range(2):
        with count_statements(catalog.database) as seen:
            assert len(catalog.reads.get_partitions(PartitionQuery(T, ByNames(("dt=a/hr=1",)))).partitions) == 1
        counts.append(seen.count)
    assert counts == [2, 1]


def test_what_is_remembered_is_bounded(catalog: PartitionCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_guesses, "MAX_REMEMBERED", 3)
    catalog.create_table()
    with catalog.database.loading() as connection:
        table = execute_plan(connection, partitioned_table_plan(T))
    known = TableGuesses()
    names = [TableName("hive", "d", f"t{number}") for number in range(5)]
    for name in names:
        known.remember(name, table)
        assert known.guess(names[0]) == table
    assert [name for name in names if known.guess(name)] == [names[0], names[3], names[4]], "the last that were used"
    monkeypatch.setattr(table_guesses, "MAX_CHARACTERS", 10)
    known.remember(names[4], table)
    known.remember(names[3], None)
    assert [name for name in names if known.guess(name)] == [names[0]]
