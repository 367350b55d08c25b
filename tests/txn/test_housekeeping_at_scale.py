"""How much housekeeping reads, sends and deletes at a time, beside rows that remain."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, insert

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.index_walk import IndexWalk
from hms_cache.store.schema import (
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    NEXT_WRITE_ID,
    TABLE_PARAMS,
    TBLS,
    TXN_TO_WRITE_ID,
    WRITE_SET,
)
from hms_cache.store.transactions import housekeeping
from hms_cache.thrift_gen.hive_metastore.ttypes import AbortCompactionRequest, CompactionRequest, CompactionType
from tests.database_kinds import SERVER_KINDS
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient, counted_statements
from tests.txn.test_rows_read import RowsRead, steps_of_sqlite

KEPT = 3_000


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_write_ids_that_stay_are_not_read(client: TxnClient) -> None:
    """Each run read all of them, and each step of a run read them again."""
    database = client.database
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)
    tables = [f"t{number}" for number in range(7)]
    client.change(
        insert(NEXT_WRITE_ID).values([{"NWI_DATABASE": "d", "NWI_TABLE": one, "NWI_NEXT": 10**7} for one in tables])
    )
    client.open()
    before = measure(client.store.clean)
    rows = [
        {"T2W_TXNID": number, "T2W_DATABASE": "d", "T2W_TABLE": tables[number % 7], "T2W_WRITEID": number}
        for number in range(1_000_000, 1_000_000 + KEPT)
    ]
    client.change(insert(TXN_TO_WRITE_ID).values(rows[: KEPT // 2]))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[KEPT // 2 :]))
    assert measure(client.store.clean) < before + KEPT // 10
    assert client.count(TXN_TO_WRITE_ID) == KEPT


def test_write_ids_of_names_without_a_table_go(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables were found by NEXT_WRITE_ID only: what a drop had left without a row of it remained for ever."""
    monkeypatch.setattr(housekeeping, "_MAX_SEARCHED", 5)
    monkeypatch.setattr(housekeeping, "_BATCH_SIZE", 8)
    for txn_id in client.open_many(19):
        client.commit(txn_id)
    clock = client.store.context.clock
    assert isinstance(clock, ManualClock)
    clock.advance(1)  # the lowest one that may be open is read again
    client.age(2000)
    still_open = client.open()
    tables = [(database, f"t{number}") for database in ("c", "d") for number in range(20)]
    known = tables[::3]
    numbers = [
        {"NWI_DATABASE": database, "NWI_TABLE": table, "NWI_NEXT": still_open + 1}
        for database, table in [*known, ("e", "none_written")]
    ]
    client.change(insert(NEXT_WRITE_ID).values(numbers))
    rows = [
        {"T2W_DATABASE": database, "T2W_TABLE": table, "T2W_WRITEID": txn_id, "T2W_TXNID": txn_id}
        for database, table in tables
        for txn_id in range(1, still_open + 1)
    ]
    client.change(insert(TXN_TO_WRITE_ID).values(rows))
    client.age(2000)

    def left() -> list[tuple[str, str, int]]:
        return client.rows(TXN_TO_WRITE_ID, "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID")

    for _ in range(2 * len(tables)):
        client.store.clean()
    assert left() == sorted(((*table, still_open) for table in tables), key=repr)
    client.commit(still_open)
    client.commit(client.open())
    client.age(2000)
    for _ in range(2 * len(tables)):
        client.store.clean()
    assert left() == []


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_completed_writes_that_stay_are_not_all_counted(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them were, once a minute by each server: each partition that was ever written to has one."""
    monkeypatch.setattr(IndexWalk, "ROWS_OF_A_PART", 20)
    database = client.database
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)

    def keep_house() -> None:
        assert client.store.clean().completed_components == 0
        assert client.store.initiate_compactions("here") == []

    before = measure(keep_house)
    written = {"CTC_DATABASE": "d", "CTC_TXNID": 1, "CTC_WRITEID": 1, "CTC_UPDATE_DELETE": "N"}
    rows = [
        {**written, "CTC_TABLE": f"t{number % 300}", "CTC_PARTITION": f"p={number // 300}"} for number in range(KEPT)
    ]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    assert measure(keep_house) < before + KEPT // 5


@pytest.mark.parametrize("seed", range(3))
def test_completed_writes_go_as_if_they_were_looked_at_at_once(
    seed: int, client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the parts end, and whatever was written to whole databases."""
    chance = random.Random(seed)
    monkeypatch.setattr(housekeeping, "LEAST_KEPT", 2)
    monkeypatch.setattr(housekeeping, "writes_kept", lambda _threshold: 2)
    places = [
        (database, table, partition)
        for database in ("a", "b", "b_", "c")
        for table, partition in [(None, None), ("t", None), ("t", "p=1"), ("t_", "p=1"), ("u", "p=2")]
        if chance.random() < 0.8
    ]
    written: dict[tuple[str, str | None, str | None], list[int]] = defaultdict(list)
    rows = []
    for txn_id in range(1, 120):
        place = chance.choice(places)
        written[place].append(txn_id)
        names = dict(zip(("CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"), place, strict=True))
        write_id = None if place[1] is None else txn_id
        rows.append({"CTC_TXNID": txn_id, "CTC_WRITEID": write_id, "CTC_UPDATE_DELETE": "N", **names})
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    deleted = 0
    for _ in range(60):
        monkeypatch.setattr(IndexWalk, "ROWS_OF_A_PART", chance.randint(1, 7))
        deleted += client.store.clean().completed_components
    # One more than are kept remains if there are no more.
    expected = {place: ids[-2:] if len(ids) > 3 else ids for place, ids in written.items()}
    left = defaultdict(list)
    for *place, txn_id in client.rows(
        COMPLETED_TXN_COMPONENTS, "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_TXNID"
    ):
        left[tuple(place)].append(txn_id)
    assert {place: sorted(ids) for place, ids in left.items()} == expected
    assert deleted == len(rows) - sum(map(len, expected.values()))


def test_compactions_are_asked_for_wherever_the_parts_end(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexWalk, "ROWS_OF_A_PART", 30)
    client.make_table()
    names = [f"p={number}" for number in range(9)]
    client.make_partitions(*names)
    done = [
        {"CTC_DATABASE": database, "CTC_TABLE": "t", "CTC_PARTITION": name, "CTC_TXNID": one, "CTC_WRITEID": one}
        for database in ("c", "d", "e")
        for name in names
        for one in range(1, 12)
    ]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values([{**one, "CTC_UPDATE_DELETE": "N"} for one in done]))
    assert sum(len(client.store.initiate_compactions("here")) for _ in range(4)) == len(names)


def test_a_look_at_what_is_large_is_followed_by_a_pause(client: TxnClient) -> None:
    clock = ManualClock()
    walk = IndexWalk(clock, COMPLETED_TXN_COMPONENTS.c.CTC_DATABASE, COMPLETED_TXN_COMPONENTS.c.CTC_TABLE)

    def has_part() -> bool:
        with client.database.checking() as connection:
            walk.go_on(connection)
        return bool(walk.part)

    assert has_part()
    with walk.working():
        clock.advance(0.05)
    assert has_part()
    with walk.working():
        clock.advance(2)
    assert not has_part()
    clock.advance(199)
    assert not has_part()
    clock.advance(2)
    assert has_part()


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_tables_without_many_writes_are_not_looked_at(client: TxnClient) -> None:
    """Each was, once a minute and for each 10,000 deleted rows: a few set the number of writes before a compaction."""
    database = client.database
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)
    client.make_table({"compactorthreshold.hive.compactor.delta.num.threshold": "70"})
    written = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_UPDATE_DELETE": "N"}
    rows = [{**written, "CTC_TXNID": number, "CTC_WRITEID": number} for number in range(1, 61)]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))

    def keep_house() -> None:
        assert client.store.clean().completed_components == 0
        assert client.store.initiate_compactions("here") == []

    before = measure(keep_house)
    times = {"CREATE_TIME": 0, "LAST_ACCESS_TIME": 0, "RETENTION": 0}
    others = [{"TBL_ID": 100 + number, "DB_ID": 7, "TBL_NAME": f"other{number}", **times} for number in range(KEPT)]
    client.change(insert(TBLS).values(others))
    parameters = [{"TBL_ID": 100 + number, "PARAM_KEY": "k", "PARAM_VALUE": "v"} for number in range(KEPT)]
    client.change(insert(TABLE_PARAMS).values(parameters))
    assert measure(keep_house) < before + KEPT // 10


def test_what_is_left_of_one_table_has_no_other_read_again(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The completed writes of all tables were counted in each of the steps that deleted write sets."""
    monkeypatch.setattr(housekeeping, "_BATCH_SIZE", 10)
    client.commit(client.open())
    client.age(2000)
    row = {"WS_DATABASE": "d", "WS_TABLE": "t", "WS_TXNID": 1, "WS_COMMIT_ID": 1, "WS_OPERATION_TYPE": "u"}

    def grouped(rows: int) -> int:
        client.change(insert(WRITE_SET).values([row] * rows))
        with counted_statements(client.database) as statements:
            assert client.store.clean().write_sets == rows
        return sum("GROUP BY" in one for one in statements)

    assert grouped(55) == grouped(5)


@pytest.mark.parametrize("write_id", [True, False], ids=["with write ids", "without"])
def test_completed_writes_go_by_a_limited_number_of_rows(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch, write_id: bool
) -> None:
    monkeypatch.setattr(housekeeping, "_BATCH_SIZE", 30)
    monkeypatch.setattr(housekeeping, "_GROUPS_AT_ONCE", 2)
    places = [("t", None), ("t", "p=1"), ("t", "P=1"), ("u", "p=1"), ("u", "p=1 ")]
    rows = [
        {
            "CTC_TXNID": number,
            "CTC_DATABASE": "d",
            "CTC_TABLE": table,
            "CTC_PARTITION": partition,
            "CTC_WRITEID": number if write_id else None,
            "CTC_UPDATE_DELETE": "Y" if number == 7 else "N",
        }
        for table, partition in places
        for number in range(1, 101)
    ]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    step, deleted = None, []
    while step is None or not step.is_complete:
        step = client.store._write(housekeeping.clean, client.store.context, step)
        deleted.append(step.completed_components)
    assert max(deleted) == 30
    left = client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TABLE", "CTC_PARTITION", "CTC_TXNID")
    for place in places:
        assert sorted(number for *one, number in left if tuple(one) == place) == [7, *range(51, 101)], place
    assert client.store.clean().completed_components == 0


class FetchedRows:
    """Rows that the database has sent to the program."""

    def __init__(self) -> None:
        self.count = 0

    def executed(self, _connection: object, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith("SELECT"):
            self.count += cursor.rowcount


@contextmanager
def fetched_rows(database: Database) -> Iterator[FetchedRows]:
    fetched = FetchedRows()
    for engine in database.engines:
        event.listen(engine, "after_cursor_execute", fetched.executed)
    try:
        yield fetched
    finally:
        for engine in database.engines:
            event.remove(engine, "after_cursor_execute", fetched.executed)


@pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)
def test_a_history_that_is_short_enough_is_not_read(client: TxnClient) -> None:
    """That of a warehouse with many partitions was, by each server once a minute, and by the initiator."""
    client.make_table()
    client.make_partitions("p=0", "p=1")
    entries = [
        {
            "CC_ID": 4 * number + place,
            "CC_DATABASE": "d",
            "CC_TABLE": "t",
            "CC_PARTITION": f"p={number}",
            "CC_STATE": "sf"[place % 2],
            "CC_TYPE": "i",
        }
        for number in range(200)
        for place in range(4)
    ]
    client.change(insert(COMPLETED_COMPACTIONS).values(entries))
    names = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_PARTITION": "p=1", "CTC_UPDATE_DELETE": "N"}
    done = [{**names, "CTC_TXNID": number, "CTC_WRITEID": number} for number in range(1, 12)]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(done))
    with fetched_rows(client.database) as fetched:
        assert client.store.keep_compactions() == 0
        assert len(client.store.initiate_compactions("here")) == 1
    assert fetched.count < 50


def test_compactions_are_initiated_by_a_number_of_statements_that_does_not_grow(client: TxnClient) -> None:
    """Another request meanwhile waited for four statements for each of a thousand."""
    client.make_table()
    client.make_partitions(*(f"p={number}" for number in range(40)))
    names = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_UPDATE_DELETE": "N"}

    def sent(places: range) -> int:
        rows = [
            {**names, "CTC_PARTITION": f"p={place}", "CTC_TXNID": number, "CTC_WRITEID": number}
            for place in places
            for number in range(1, 12)
        ]
        client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
        with counted_statements(client.database) as statements:
            assert len(client.store.initiate_compactions("here")) == len(places)
        return len(statements)

    sent(range(1))
    assert sent(range(1, 3)) == sent(range(3, 40))


def test_compactions_are_taken_back_by_a_number_of_statements_that_does_not_grow(client: TxnClient) -> None:
    def sent(table: str, count: int) -> int:
        request = CompactionRequest("d", table, type=CompactionType.MAJOR)
        ids = []
        for number in range(count):
            request.partitionname = f"p={number}"
            ids.append(client.store.compact2(request).id)
        with counted_statements(client.database) as statements:
            answer = client.store.abort_compactions(AbortCompactionRequest(ids)).abortedcompacts
        assert {one.status for one in answer.values()} == {"Success"}
        return len(statements)

    assert sent("t", 2) == sent("u", 30)
    assert client.rows(COMPLETED_COMPACTIONS, "CC_STATE", "CC_ERROR_MESSAGE")[0][0] == "x"
    assert client.count(COMPLETED_COMPACTIONS) == 32
