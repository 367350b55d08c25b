"""Ids: unique over threads and processes, above existing ones, returned if nothing used them."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from sqlalchemy import delete, insert, select, update

from hms_cache.store import schema
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.sequences import ID_COLUMNS, raise_lagging_sequences
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from tests.databases import count_statements
from tests.store.foundation.writes import take_table_ids

MODEL = "org.apache.hadoop.hive.metastore.model."
AMOUNTS = [1, 1, 3, 1, 12, 1, 1, 25, 1, 2]


def next_value(database: Database, model: str) -> int | None:
    with database.checking() as connection:
        statement = select(schema.SEQUENCE_TABLE.c.NEXT_VAL).where(
            schema.SEQUENCE_TABLE.c.SEQUENCE_NAME == MODEL + model
        )
        value: int | None = connection.execute(statement).scalar()
        return value


def test_ids_are_unique_over_threads_and_processes(
    initialized_database: Database, initialized_database_url: str
) -> None:
    def take(_: int) -> list[int]:
        return [
            each
            for amount in AMOUNTS
            for each in run_write(initialized_database, lambda write, amount=amount: write.ids("MTable", amount))
        ]

    with ThreadPoolExecutor(8) as threads, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        others = [processes.submit(take_table_ids, initialized_database_url, AMOUNTS) for _ in range(2)]
        taken = [each for ids in threads.map(take, range(8)) for each in ids]
        taken += [each for other in others for each in other.result(timeout=120)]
    assert len(taken) == 10 * sum(AMOUNTS)
    assert len(set(taken)) == len(taken)
    assert next_value(initialized_database, "MTable") > max(taken)


def test_ids_of_a_write_ascend_and_do_not_repeat_within_it(initialized_database: Database) -> None:
    def take(write: WriteTransaction) -> list[int]:
        return [*write.ids("MPartition", 4), write.id("MPartition"), *write.ids("MPartition", 30)]

    first, second = run_write(initialized_database, take), run_write(initialized_database, take, ids={"MPartition": 35})
    for ids in (first, second):
        assert len(set(ids)) == 35
    assert not set(first) & set(second)


def test_a_missing_sequence_starts_above_the_largest_id(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        connection.execute(insert(schema.ROLES).values(ROLE_ID=41, CREATE_TIME=1, ROLE_NAME="r"))
        connection.commit()
    assert run_write(initialized_database, lambda write: write.id("MRole")) == 42


def test_ids_of_a_write_that_failed_are_used_by_the_next(initialized_database: Database) -> None:
    seen: list[int] = []

    def fail(write: WriteTransaction) -> None:
        seen.extend(write.ids("MTable", 3))
        raise LookupError

    with pytest.raises(LookupError):
        run_write(initialized_database, fail)
    assert run_write(initialized_database, lambda write: write.ids("MTable", 3)) == seen


@pytest.mark.parametrize(
    "database_kind",
    [
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ],
)
def test_blocks_spare_the_sequence_most_statements(initialized_database: Database) -> None:
    def take(write: WriteTransaction) -> int:
        return write.id("MTable")

    run_write(initialized_database, take)
    with count_statements(initialized_database) as sent:
        ids = [run_write(initialized_database, take) for _ in range(9)]
    assert ids == list(range(2, 11))
    assert sent.count == 0
    assert next_value(initialized_database, "MTable") == 11


def test_a_bulk_takes_exactly_what_it_needs(initialized_database: Database) -> None:
    run_write(initialized_database, lambda write: write.ids("MPartition", 1000), ids={"MPartition": 1000})
    assert next_value(initialized_database, "MPartition") == 1001


def test_lagging_sequences_are_raised(initialized_database: Database) -> None:
    with initialized_database.writing() as connection:
        connection.execute(insert(schema.ROLES).values(ROLE_ID=7, CREATE_TIME=1, ROLE_NAME="r"))
        for model, value in (("MRole", 7), ("MTable", 5)):
            connection.execute(insert(schema.SEQUENCE_TABLE).values(SEQUENCE_NAME=MODEL + model, NEXT_VAL=value))
        raised = raise_lagging_sequences(connection)
        connection.commit()
    assert [(each.model, each.next_value, each.raised_to) for each in raised] == [("MRole", 7, 8)]
    assert next_value(initialized_database, "MRole") == 8
    assert next_value(initialized_database, "MTable") == 5


def test_every_class_has_a_column_of_whole_numbers() -> None:
    for model, column in ID_COLUMNS.items():
        assert list(column.table.primary_key.columns) == [column] or model == "MTxnWriteNotificationLog", model


def test_a_sequence_that_vanished_is_made_again(initialized_database: Database) -> None:
    first = run_write(initialized_database, lambda write: write.ids("MFunction", 20), ids={"MFunction": 20})
    with initialized_database.writing() as connection:
        connection.execute(insert(schema.FUNCS).values(FUNC_ID=first[-1], CREATE_TIME=1, FUNC_TYPE=1, FUNC_NAME="f"))
        connection.execute(delete(schema.SEQUENCE_TABLE))
        connection.commit()
    assert run_write(initialized_database, lambda write: write.id("MFunction")) == 21


def test_a_sequence_raised_by_another_server_is_followed(initialized_database: Database) -> None:
    run_write(initialized_database, lambda write: write.ids("MTable", 10), ids={"MTable": 10})
    with initialized_database.writing() as connection:
        connection.execute(
            update(schema.SEQUENCE_TABLE)
            .where(schema.SEQUENCE_TABLE.c.SEQUENCE_NAME == MODEL + "MTable")
            .values(NEXT_VAL=101)
        )
        connection.commit()
    assert run_write(initialized_database, lambda write: write.id("MTable")) == 101
